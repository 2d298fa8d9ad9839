/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - what the user asked for: one table for tacho-record, config files and TACHO_
 * variables.
 *
 * The library reads variables only, once, in config_read(); tacho-record fills the same struct
 * from file and command line and turns it into variables with config_export().  Constant after
 * start, any thread may read it.
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
 * What tells one launch of a job from another: the same text in all ranks of a launch.
 *
 * It is made of what the scheduler or launcher calls the job, of the time at which the outermost
 * tacho-record began, and of the number of the restart.  The time is the same in all ranks only
 * where they are all below one tacho-record, so it is left out in ranks of several nodes.  No text
 * is better than one that would take the ranks of a launch apart.
 */

enum { RUN_ID_MAX = 160 };

/* Set by the outermost tacho-record, unless it is started once for each rank. */
#define RUN_STARTED_VARIABLE "TACHO_STARTED"

/* "" where nothing is known.  TACHO_RUN_ID, the user's own, goes before all. */
void run_id_find(char *const *envp, char out[RUN_ID_MAX]);

/*
 * Which process of a job this is, from what launchers set.  Pure: the environment is
 * handed in.
 *
 * To add a launcher: a row of the table in rank.c.
 */

#define RANK_UNKNOWN UINT32_MAX
struct rank {
	uint32_t rank;        /* RANK_UNKNOWN */
	uint32_t world_size;  /* 0: unknown */
	const char *launcher; /* constant text; "" */
};

/* The first row of the table whose variable holds a number. */
struct rank rank_find(char *const *envp);

/*
 * "all"; "main" is rank 0, or a process that has no rank; "0,4-7" are ranks.  A process without a
 * rank counts as rank 0.
 */
enum status rank_is_wanted(const char *ranks, uint32_t rank, bool *wanted, struct error *err);

/* The value of a variable, or NULL. */
const char *rank_variable(char *const *envp, const char *name);

enum { CONFIG_DEVICES = 64, CONFIG_HOST = 64, CONFIG_MADE = 5 };

enum config_graphs { GRAPHS_NODE, GRAPHS_GRAPH, GRAPHS_AUTO };
enum config_nccl { NCCL_NO, NCCL_CALLS, NCCL_ALL };
enum config_finalize { FINALIZE_NO, FINALIZE_YES, FINALIZE_AUTO };

struct config {
	/* As written: rows of config_options. */
	const char *out, *window, *ranks, *sample, *kinds, *clock, *graphs, *cupti_lib, *finalize,
		*nccl;
	const char *ring_dir, *save_on;
	uint64_t max_disk, min_free, memory, buffer, cupti_buffer, ring;
	bool enabled, totals, nvtx, workers, trace_python;
	bool automatic; /* read by the Python package */

	/* The guides' keys, and the texts that were made of them. */
	struct preset preset;
	char *made[CONFIG_MADE];
	bool beaten_preset; /* a window and a preset with another one were given side by side */

	/* As understood, by config_check(). */
	struct window_spec window_spec;
	struct trigger_spec trigger_spec; /* of a ring, but that hangs are told without one */
	uint64_t sample_ns, sample_steps; /* 0: not by time, not by step */
	uint32_t kinds_mask;              /* bit of enum kind */
	bool device_memory, health;       /* they were named: "all" does not bring them */
	enum config_graphs graphs_level;
	enum config_finalize finalizes;
	enum config_nccl nccl_events;

	/* What is around us, by config_read(). */
	struct rank rank;
	_Atomic uint64_t late_rank; /* set by config_learn_rank(); see config_rank() */
	char host[CONFIG_HOST];
	char run_id[RUN_ID_MAX]; /* "": nothing is known */
	bool is_worker;          /* spawned by multiprocessing */
	bool forbidden;          /* TACHO_ENABLED=0: tacho_start() does nothing either */
	bool has_devices;        /* CUDA_VISIBLE_DEVICES is set: CUDA's ordinal to NVML's index */
	unsigned device_count;
	int devices[CONFIG_DEVICES]; /* -1: named by its uuid */
	char device_uuids[CONFIG_DEVICES][48];
};

/* Whether the user wants events that only CUPTI records. */
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
 * From an environment; its texts are copied, so that the program may change it.  When an error is
 * returned the config is as without any variable, and not enabled.
 */
enum status config_read(struct config *c, char *const *envp, struct error *err);

/* Frees the copied texts; call it after config_read(), whatever that returned. */
void config_release(struct config *c);

/* The folder of the ring's file; borrowed from the config. */
const char *config_ring_dir(const struct config *c);
/* The bytes that are to be free there for a ring; 0: there is none. */
uint64_t config_ring_space(const struct config *c);
/* Sets the rest of the struct: rank, host, devices. */
void config_look_around(struct config *c, char *const *envp);
/*
 * A rank that is set after the start, as by the children of torch.multiprocessing.spawn: looks for
 * one where none is known yet, on a thread of the program.  Returns whether --ranks wants it.
 */
bool config_learn_rank(struct config *c, char *const *envp);
/* The rank as it is known now.  Any thread may call it. */
struct rank config_rank(const struct config *c);

/*
 * Calls set("TACHO_WINDOW", "steps:10-20", arg) for each row, and set(name, NULL, arg) for other
 * names of the same things.
 */
void config_export(const struct config *c,
		   void (*set)(const char *name, const char *value, void *arg), void *arg);

/* "50ms,steps=10", "none" */
enum status config_parse_sample(const char *text, uint64_t *ns, uint64_t *steps, struct error *err);
/* "range,step" to a mask of enum kind; "all"; "memory" is alloc and free */
enum status config_parse_kinds(const char *text, uint32_t *mask, struct error *err);
/* CUDA_VISIBLE_DEVICES; NULL: unset. */
void config_parse_devices(struct config *c, const char *text);

/*
 * The program's command line as a log may hold it, without secrets.
 *
 * "***" takes the place of what looks like a secret, anywhere in a word: the value of a name that
 * contains key, token, pass, pwd, secret, credential or auth (an option's, a variable's, a
 * header's, a member's of JSON, a parameter's of a URL), the password of user:password@, what
 * follows Bearer or Basic, what begins as keys of well-known services do, and -p of programs whose
 * password it is. More is masked than is secret, rather than less.  Pure, except for
 * command_read().
 */

struct buf;

/* `args`: NUL-terminated words one after the other, as in /proc/self/cmdline. */
void command_mask(const char *args, size_t len, struct buf *out);
/* This process's own command line, truncated after 8 KiB. */
void command_read(struct buf *out);
/* /proc/PID/stat from its third field on, the letter of the state; NULL: there is none. */
enum { COMMAND_STAT = 1024 };
const char *command_stat(uint32_t pid, char text[COMMAND_STAT]);

/* This process was spawned by a multiprocessing library, as workers of data loaders are. */
bool command_is_worker(void);
/* The same of a command line, words as above. */
bool command_names_worker(const char *args, size_t len);
