/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the configuration: one table for tacho-record, config files and TACHO_ variables.
 *
 * The library reads only variables, once, in config_read(); tacho-record fills the same struct from
 * file and command line and turns it into variables with config_export().  The struct is constant
 * after start, and any thread may read it.
 */
#pragma once

#include "collector/config/preset.h"
#include "collector/schedule/trigger.h"
#include "collector/schedule/window.h"
#include "schemas/base/option.h"
#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The run id is a text that distinguishes launches of a job and is the same in all ranks of a
 * launch.
 *
 * It consists of the job's name from the scheduler or launcher, the time at which the outermost
 * tacho-record began, and the number of the restart.  The time is the same in all ranks only if one
 * tacho-record started all of them, so it is left out in ranks of several nodes.  An empty text is
 * better than one that would separate the ranks of a launch.
 */

enum { RUN_ID_MAX = 160 };

/* Set by the outermost tacho-record, unless it is started once for each rank. */
#define RUN_STARTED_VARIABLE "TACHO_STARTED"

/* Writes the run id to `out`, or "" if nothing is known.  The user's TACHO_RUN_ID has
 * precedence. */
void run_id_find(char *const *envp, char out[RUN_ID_MAX]);

/*
 * The rank of this process in its job, from variables that launchers set.  These functions are
 * pure: the environment is an argument.
 *
 * To add a launcher, add a row to the table in rank.c.
 */

#define RANK_UNKNOWN UINT32_MAX
struct rank {
	uint32_t rank;        /* or RANK_UNKNOWN */
	uint32_t world_size;  /* 0: unknown */
	const char *launcher; /* constant text; "": none */
};

/* Returns the rank from the first row of the table whose variable holds a number. */
struct rank rank_find(char *const *envp);

/*
 * Sets *wanted to whether `ranks` contains the rank: "all"; "main", which is rank 0; or a list such
 * as "0,4-7".  A process without a rank counts as rank 0.
 */
enum status rank_is_wanted(const char *ranks, uint32_t rank, bool *wanted, struct error *err);

/* Returns the value of a variable, or NULL. */
const char *rank_variable(char *const *envp, const char *name);

enum { CONFIG_DEVICES = 64, CONFIG_HOST = 64, CONFIG_MADE = 5 };

enum config_graphs { GRAPHS_NODE, GRAPHS_GRAPH, GRAPHS_AUTO };
enum config_nccl { NCCL_NO, NCCL_CALLS, NCCL_ALL };
enum config_finalize { FINALIZE_NO, FINALIZE_YES, FINALIZE_AUTO };

struct config {
	/* Values as the user wrote them: rows of config_options. */
	const char *out, *window, *ranks, *sample, *kinds, *clock, *graphs, *cupti_lib, *finalize,
		*nccl;
	const char *ring_dir, *save_on;
	uint64_t max_disk, rotate, min_free, memory, buffer, cupti_buffer, ring;
	bool enabled, totals, nvtx, workers, trace_python;
	bool automatic; /* only the Python package reads it */

	/* Keys of other profilers' guides, and the texts of options that were made from them. */
	struct preset preset;
	char *made[CONFIG_MADE];
	bool beaten_preset; /* one source gave a window and also a preset with another window */

	/* Parsed values, set by config_check(). */
	struct window_spec window_spec;
	struct trigger_spec trigger_spec; /* hangs are reported without a ring, too */
	uint64_t sample_ns, sample_steps; /* memory sample periods; 0: none */
	uint32_t kinds_mask;              /* one bit for each enum kind */
	bool device_memory, health; /* set only if they were named: "all" does not include them */
	enum config_graphs graphs_level;
	enum config_finalize finalizes;
	enum config_nccl nccl_events;

	/* Facts about the environment, set by config_read(). */
	struct rank rank;
	_Atomic uint64_t late_rank; /* set by config_learn_rank(); see config_rank() */
	char host[CONFIG_HOST];
	char run_id[RUN_ID_MAX]; /* "": unknown */
	bool is_worker;          /* this process was spawned by multiprocessing */
	bool forbidden;          /* TACHO_ENABLED=0: tacho_start() does nothing either */
	bool has_devices; /* CUDA_VISIBLE_DEVICES is set: `devices` has NVML's indices by CUDA's
			     ordinal */
	unsigned device_count;
	int devices[CONFIG_DEVICES]; /* -1: the device is given by its uuid */
	char device_uuids[CONFIG_DEVICES][48];
};

/* Returns whether the user wants events that only CUPTI records. */
bool config_wants_gpu(const struct config *c);

/* The options, which set members of struct config. */
extern const struct option config_options[];

/*
 * Call these around each source of settings, in order of rising precedence, so that a guide's keys
 * become options of ours:
 *
 *	config_source_begin(&c, &before);
 *	option_environment(sets of config_options and preset_options, ...);
 *	config_source_end(&c, &before, err);
 */
struct config_source {
	const char *texts[CONFIG_MADE];
	struct preset preset;
};
void config_source_begin(struct config *c, struct config_source *before);
enum status config_source_end(struct config *c, const struct config_source *before,
			      struct error *err);
/* Frees the texts that were made; options that point to them are then invalid. */
void config_source_release(struct config *c);

/* Parses the texts of the options; the error names the option. */
enum status config_check(struct config *c, struct error *err);
/*
 * Fills the config from an environment, whose texts are copied, so that the program may change it.
 * After an error the config is as without any variable, and not enabled.
 */
enum status config_read(struct config *c, char *const *envp, struct error *err);

/* Frees the copied texts.  Call it after config_read(), even if that failed. */
void config_release(struct config *c);

/* Returns the folder of the ring's file, borrowed from the config. */
const char *config_ring_dir(const struct config *c);
/* Returns how many bytes must be free in that folder for the ring, or 0 without a ring. */
uint64_t config_ring_space(const struct config *c);
/* Sets the rest of the struct: rank, host, devices. */
void config_look_around(struct config *c, char *const *envp);
/*
 * Looks for a rank if none is known yet, because some programs set it after the start, such as
 * children of torch.multiprocessing.spawn.  Call it on a thread of the program.  Returns whether
 * --ranks includes the rank.
 */
bool config_learn_rank(struct config *c, char *const *envp);
/* Returns the rank as it is known now.  Any thread may call it. */
struct rank config_rank(const struct config *c);

/*
 * Calls set("TACHO_WINDOW", "steps:10-20", arg) for each row, and set(name, NULL, arg) for other
 * names of the same things.
 */
void config_export(const struct config *c,
		   void (*set)(const char *name, const char *value, void *arg), void *arg);

/* Parses "50ms,steps=10" or "none". */
enum status config_parse_sample(const char *text, uint64_t *ns, uint64_t *steps, struct error *err);
/* Parses "range,step" or "all" to a mask of enum kind; "memory" is alloc and free. */
enum status config_parse_kinds(const char *text, uint32_t *mask, struct error *err);
/* Parses the value of CUDA_VISIBLE_DEVICES; NULL: it is not set. */
void config_parse_devices(struct config *c, const char *text);

/*
 * The program's command line for the log, without secrets.
 *
 * "***" replaces what looks like a secret, anywhere in a word: the value of a name that contains
 * key, token, pass, pwd, secret, credential or auth (the name of an option, variable, header, JSON
 * member or URL parameter), the password of user:password@, the text after Bearer or Basic, values
 * that begin like keys of well-known services, and the value of -p of programs where it is a
 * password.  In doubt a value is masked.  These functions are pure, except for those that read
 * /proc.
 */

struct buf;

/* Appends the masked command line.  `args` are NUL-terminated words in sequence, as in
 * /proc/self/cmdline. */
void command_mask(const char *args, size_t len, struct buf *out);
/* Appends the masked command line of this process, truncated after 8 KiB. */
void command_read(struct buf *out);
/* Returns /proc/PID/stat from its third field on, the letter of the state, or NULL if it cannot be
 * read. */
enum { COMMAND_STAT = 1024 };
const char *command_stat(uint32_t pid, char text[COMMAND_STAT]);

/* Returns whether this process was spawned by a multiprocessing library, as workers of data loaders
 * are. */
bool command_is_worker(void);
/* Returns the same for a command line in the form of command_mask(). */
bool command_names_worker(const char *args, size_t len);
