/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - processes outside of the recorded ones, which map the arenas of these and write
 * their logs.
 *
 *	recorded process --introduction, arena--> recorder --fork--> a writer for each
 *	tacho-record     --"settle"------------->
 *	                 <--"settled"-------------
 *	tacho-record --ctl  ----------------------------------------> the writer
 *
 * Programs introduce themselves before main().  A program without events has no writer: the
 * recorder reads the headers of all arenas every LOOK_MS, and answers questions there.
 *
 * A writer maps the arena of its program and does the work of a writer thread: it drains the rings,
 * opens and closes windows by time and by command, samples memory, and saves the flight recorder's
 * ring.  Each is a process because the collector's state is static, and because a damaged arena
 * ends only that writer.  When its program dies (by SIGKILL, a fault, _exit() or exec()), the rings
 * still hold the latest records, which the writer puts into the log before it closes it.
 *
 * If a writer was killed, another child of the recorder writes the contents of the rings when the
 * program has died.
 *
 * If hangs are reported, the recorder watches the steps of all programs.  It runs in a separate
 * session, so that no signal to the job's process group reaches it.  It ends when tacho-record has
 * ended and no introduced process is left.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena_header;
struct config;

struct recorder {
	int fd; /* socket to the recorder; -1: there is no recorder */
};

/*
 * Starts the recorder, and sets the variable by which recorded processes find it.  It reports steps
 * that take `hang_ns` on our stderr; 0: it reports none.
 */
enum status recorder_start(struct recorder *r, uint64_t hang_ns, struct error *err);
/* Makes the recorder end this child of ours with SIGKILL if we are killed; returns false if it
 * cannot. */
bool recorder_ends(const struct recorder *r, pid_t command);
/*
 * Waits until the logs of all dead processes are written, for 20 s at most.  Returns how many of
 * the recorder's processes were killed, or one of these values.
 */
#define RECORDER_KILLED   UINT32_MAX       /* the recorder itself was killed */
#define RECORDER_BUSY     (UINT32_MAX - 1) /* logs are still being written */
#define RECORDER_NO_SPACE (UINT32_MAX - 2) /* a writer could not map an arena */
unsigned recorder_settle(struct recorder *r);

/*
 * The main function of a recorder for one program, which has started it with the descriptors of
 * arena/spawn.h.  Runs until that program has ended, and returns an exit status.
 */
int recorder_serve_program(uint32_t pid);

/* Returns a descriptor for the process behind a socket, which has the number `pid`; -1: this kernel
 * has none. */
int recorder_pidfd(int peer, pid_t pid);
/* Closes inherited descriptors from `from` on, because one may be a pipe that others wait for, but
 * not the `count` ones in `keep`. */
void recorder_close_others(int from, const int *keep, size_t count);

/* ---- its parts ---- */

enum { RECORDER_SOCKETS = 2 };
/*
 * Makes the sockets at which programs introduce themselves; a descriptor is -1 if there is none.
 * `name` is set to the value of the variable for these programs.
 */
enum status recorder_listen(int listeners[RECORDER_SOCKETS], char *name, size_t cap,
			    struct error *err);
/* Removes the socket's file. */
void recorder_stop_listening(void);

struct hang_texts;
/* A recorded process that was introduced to the recorder. */
struct recorded {
	uint32_t pid;       /* its number in the recorder's PID namespace */
	uint32_t inner_pid; /* its number in its own PID namespace */
	int arena, pidfd;   /* descriptors; -1: none */
	pid_t writer;       /* 0: no writer runs */
	bool has_begun;     /* a writer was started */
	bool is_dead;       /* the process has ended or runs another program */
	bool is_done;       /* all records are written */
	bool is_alone;      /* there is no tacho-record that saves its ring afterwards */
	/* For hangs: the arena as the recorder maps it (NULL: not mapped yet), and the current
	 * step. */
	const struct arena_header *watched;
	size_t watched_bytes;
	uint64_t step_begin;     /* tick; 0: it is in no step */
	uint64_t since_ns;       /* CLOCK_MONOTONIC when the recorder first saw the step */
	bool is_told;            /* it hangs, and the next report or an earlier one says so */
	bool was_told;           /* by an earlier one */
	struct hang_texts *hang; /* memory that the writer shares; NULL: hangs are not reported */
	uint64_t beat_ns;        /* when the recorder last renewed its beat in the arena */
};
/* The probes that run outside of the program.  The list ends with NULL. */
struct probe_type;
extern const struct probe_type *const recorder_probes[];
/*
 * Uses the tables and the clock of an adopted arena, and reads the settings from the program's
 * environment.  Returns false if the arena is damaged.
 */
bool recorder_adopt(struct config *config);
/* Uses tables that a live program has added since then.  Returns false if the arena is damaged. */
bool recorder_adopt_late(void);
/* Adopts the arena of a process as a private copy, then does recorder_adopt(). */
bool recorder_read(int arena, struct config *config);
/*
 * Answers the threads of a process, and of its children without an arena, whether they have more
 * seccomp filters than the recorder, which has `filters`.  Returns whether there was a question.
 */
bool recorder_answer(const struct recorded *c, int filters);
/* Returns whether a process has been in one step for `hang_ns`. */
bool recorder_hangs(struct recorded *r, uint64_t hang_ns, uint64_t now_ns);
void recorder_unwatch(struct recorded *r);
/*
 * Prints to stderr the step of each process that no earlier report has said to hang, Python stacks
 * of those that hang, and which rank waits for which.  This is slow, so call it in a separate
 * process.
 */
void recorder_tell_hang(struct recorded *all, size_t count, uint64_t hang_ns, uint64_t now_ns);
/* Runs the writer of a program until the program has ended.  Returns false if the arena is
 * damaged. */
bool recorder_live(const struct recorded *r);
/* Returns, in a process that runs recorder_live(), whether the program has ended or its process
 * runs another one. */
bool recorder_program_is_gone(void);
/*
 * Writes a log of the records that a dead process left in its rings; call it in a separate process.
 * Returns false if they could not be read, or no log could be opened.  `died_now` is as in
 * session_adopt().
 */
bool recorder_take_left(int arena, bool died_now);
