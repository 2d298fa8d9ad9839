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
 * A config file to options, and options to a config file.
 *
 * A file is one JSON object.  Keys are options, with dashes or underscores, or keys of a guide,
 * which may lie in an object "profiling" as they do there; members that begin with "//" are
 * remarks.  Part of tacho-record; the library reads variables only.
 */

struct buf;
struct config;

/* Texts stay for good: options borrow them.  Errors name the file, the byte and the key. */
enum status record_config_take(const char *path, const struct option_set *sets, struct error *err);

/* `c` as a file that record_config_take() reads back, each key with its explanation. */
enum status record_config_print(const struct config *c, struct buf *out, struct error *err);

/*
 * How libtacho.so comes into the command: the library's file, and the variables that
 * the command is started with.
 */

/* `asked`, or where it is NULL the one beside the tool, as built, or in lib/ beside its bin/. */
enum status preload_find(const char *asked, char out[PATH_MAX], struct error *err);

/* What the user has set for other tools: NVTX's is left as it is; NULL: nothing. */
struct preload_others {
	const char *cuda, *nvtx; /* CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH; borrowed */
};
/* Sets our own environment, which the command inherits: settings, library, and tacho.py's folder.
 */
enum status preload_set(const struct config *c, const char *library, struct preload_others *others,
			struct error *err);

/*
 * Runs a command as env does, as far as its parent can: exit status, signals, terminal
 * stops, standard streams, signal mask and dispositions.
 *
 *	sent to the process group   has reached the command by itself
 *	sent to us alone            is passed on to the command
 *
 * The siginfo of a signal does not say which of both it was.  So a second child, the canary, lies
 * in the group with every signal blocked, and is asked whether the signal has reached it as well.
 *
 * What cannot be equal: SIGSTOP to us alone, and the sender (si_pid) of a signal that is passed on.
 */

enum { RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 }; /* as the shell has it */

struct run {
	char *const *command;
	/* A signal came that was sent to us alone; true: it was for us and is not passed on. */
	bool (*is_for_us)(int number, pid_t child, void *arg);
	void *arg;

	pid_t child;   /* 0: it could not be started */
	int status;    /* of the child, as of waitpid() */
	int exit_code; /* where it could not be started */
};

/*
 * Called first of all: where one of the standard streams is closed, no file of ours takes its
 * number, and the command finds it closed.
 */
void run_hold_streams(void);
/* Runs run->command to its end.  Once in a process, which has one thread. */
enum status run_command(struct run *run, struct error *err);
/* Ends this process as the command ended; returns the exit status where that cannot be. */
int run_end_as(int status);

/*
 * The logs and rings that a run has left in a folder.
 */

struct found {
	char **names; /* sorted */
	size_t count, cap;
};

void found_init(struct found *f);
void found_release(struct found *f);
/* The logs of this host in the folder; none where there is no folder. */
void found_look(struct found *f, const char *folder, const char *host);
/*
 * Turns the rings of this host whose processes have ended into logs in `folder` if `save` is set,
 * and removes them.  `pid` ended with wait status `status`; pid 0: no process is known to have
 * ended.  Returns how many could not be saved, and are left.
 */
unsigned found_rings(const char *rings, const char *host, const char *folder, bool save, pid_t pid,
		     int status);
bool found_holds(const struct found *f, const char *name);

/*
 * The last lines of tacho-record: what was recorded and the command that shows it, or
 * why nothing was.
 */

struct found;

struct ending {
	const struct config *config;
	const char *name; /* by which we were called */
	const char *note; /* ends the first line */
	bool had_folder;  /* the folder for logs could be used at the start */
	unsigned rings_left;
	bool recorder_killed, lacks_space; /* which of them could not map an arena */
	struct seen seen; /* what the processes have counted that came to an exit() */
};
/* To stderr: of the logs those that are in `after` and not in `before`. */
void ending_print(const struct ending *e, const struct found *before, const struct found *after);

/* Appends why nothing will be written to a disk that is too small; false: it is large enough. */
bool ending_put_disk(const struct config *c, struct buf *out);

/*
 * Tells something to all recorded processes below the command.
 */

/*
 * Sends a word of the control socket (control.h) to each process that descends from `root` and is
 * recorded.  It is done in a process of its own, which waits until there is one that listens, so
 * the caller goes on at once.
 */
void jobs_tell(pid_t root, const char *what);

/* Tacho-record --doctor: what works on this machine, or in a command's processes. */

/* Loads `library` into this process for good. */
void record_doctor(const struct config *c, const char *library, char **command, struct buf *out);

/*
 * Options that are right each for itself and have no effect in this run.
 */

/* Appends a line for each, without what is in front of and behind it. */
void warn_of_options(const struct config *c, struct buf *out);
