/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of tacho-record. */
#pragma once

#include "collector/session/seen.h"
#include "schemas/base/option.h"
#include "schemas/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Reads options from a config file and writes them to one.
 *
 * A file is one JSON object.  Keys are options, with dashes or underscores, or keys of a guide,
 * which may be in an object "profiling" as in those guides; members that begin with "//" are
 * comments.  Only tacho-record reads files; the library reads only variables.
 */

struct buf;
struct config;

/* Sets options from a file.  Their texts are never freed, because options borrow them.  Errors name
 * the file, the byte and the key. */
enum status record_config_take(const char *path, const struct option_set *sets, struct error *err);

/* Appends `c` as a file that record_config_take() can read, with an explanation of each key. */
enum status record_config_print(const struct config *c, struct buf *out, struct error *err);

/*
 * Brings libtacho.so into the command: finds the library's file, and sets the variables with which
 * the command is started.
 */

/* Finds the library: `asked`, or if it is NULL the one in the folder of the tool, as built, or in
 * ../lib. */
enum status preload_find(const char *asked, char out[PATH_MAX], struct error *err);

/* Libraries of other tools that the user has set; NULL: none.  That for NVTX remains in effect. */
struct preload_others {
	const char *cuda, *nvtx; /* CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH; borrowed */
};
/* Sets our own environment, which the command inherits: settings, library, and the folder of the
 * Python package. */
enum status preload_set(const struct config *c, const char *library, struct preload_others *others,
			struct error *err);

/*
 * Runs a command as env does, as far as a parent process can: exit status, signals, terminal stops,
 * standard streams, signal mask and dispositions.
 *
 *	sent to the process group   has reached the command by itself
 *	sent to us alone            is passed on to the command
 *
 * The siginfo of a signal does not distinguish the two cases.  So a second child, the canary, is in
 * the group with every signal blocked, and reports whether the signal has reached it, too.
 *
 * Two cases differ from env: SIGSTOP to us alone, and the sender (si_pid) of a signal that is
 * passed on.
 */

enum { RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 }; /* exit codes of the shell */

struct recorder;
struct run {
	char *const *command;
	const struct recorder *recorder; /* ends the command if we are killed; NULL: none */
	/* Called for a signal that was sent to us alone.  Returns true if it was a request to us,
	 * which is not passed on. */
	bool (*is_for_us)(int number, pid_t child, void *arg);
	void *arg;

	pid_t child;   /* 0: the command could not be started */
	int status;    /* status of the child from waitpid() */
	int exit_code; /* exit code if the command could not be started */
};

/*
 * Call this first: if a standard stream is closed, no file of ours gets its number, and the command
 * finds it closed.
 */
void run_hold_streams(void);
/* Runs run->command to its end.  Call this once in a process, which must have one thread. */
enum status run_command(struct run *run, struct error *err);
/* Ends this process as the command ended; returns the exit status if that is not possible. */
int run_end_as(int status);

/* Finds the logs and rings that a run has left in a folder. */

struct found {
	char **names; /* sorted */
	size_t count, cap;
};

void found_init(struct found *f);
void found_release(struct found *f);
/* Finds the logs of this host in the folder; none if there is no folder. */
void found_look(struct found *f, const char *folder, const char *host);
/*
 * Turns the rings of this host whose processes have ended into logs in `folder` if `save` is set,
 * and removes them.  Process `pid` has ended with wait status `status`; pid 0: no process is known
 * to have ended.  Returns how many rings could not be saved and remain.
 */
unsigned found_rings(const char *rings, const char *host, const char *folder, bool save, pid_t pid,
		     int status);
bool found_holds(const struct found *f, const char *name);

/*
 * Prints the last lines of tacho-record: a summary of what was recorded and the command that shows
 * it, or the reason why nothing was recorded.
 */

struct found;

struct ending {
	const struct config *config;
	const char *name; /* argv[0] */
	char *const *command;
	const char *note; /* text at the end of the first line */
	bool had_folder;  /* the folder for logs could be used at the start */
	unsigned rings_left;
	bool recorder_killed, lacks_space; /* the recorder was killed, or could not map an arena */
	struct seen seen;                  /* counts of the processes that reached exit() */
};
/* Prints to stderr.  The logs of the run are those in `after` that are not in `before`. */
void ending_print(const struct ending *e, const struct found *before, const struct found *after);

/* If the disk is too small, appends that and returns true. */
bool ending_put_disk(const struct config *c, struct buf *out);

/* Sends a request to all recorded processes below the command. */

/*
 * Sends a request of control.h to each recorded process that descends from `root`.  A separate
 * process does this, and waits until there is a process that listens, so the caller continues at
 * once.
 */
void jobs_tell(pid_t root, const char *what);

/* tacho-record --doctor reports what works on this machine, or in the processes of a command. */

/* Appends the report.  Loads `library` into this process and never unloads it. */
void record_doctor(const struct config *c, const char *library, char **command, struct buf *out);

/* Warns of options that are valid but have no effect in this run. */

/* Appends a line for each warning. */
void warn_of_options(const struct config *c, struct buf *out);
