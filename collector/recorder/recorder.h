/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - processes outside of the recorded ones, which map their arenas and write their logs.
 *
 *	recorded process --introduction, arena--> recorder --fork--> a writer for each
 *	tacho-record     --"settle"------------->
 *	                 <--"settled"-------------
 *	tacho-record --ctl  ----------------------------------------> the writer
 *
 * Programs introduce themselves before main().  One that has made no event has no writer: the
 * recorder looks into the headers of all arenas every LOOK_MS, and answers what it is asked there.
 *
 * A writer maps the arena of its program and does the work of a writer thread: it drains the rings,
 * opens and closes windows by time and by command, samples memory, and saves the flight recorder's
 * ring.  Each is a process because the collector's state is static, and because a
 * damaged arena ends only that writer.  When its program dies - by SIGKILL, a fault, _exit(),
 * exec() - the rings still hold what was made until then, and the writer closes the log with it.
 *
 * Where a writer was killed, another child of the recorder writes what the rings hold at the
 * program's death.
 *
 * If hangs are reported, the recorder watches the steps of all programs.  It has a session of its
 * own, so that no signal to the job's process group reaches it.  It ends when tacho-record is gone
 * and no introduced process is left.
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
	int fd; /* to the recorder; -1: there is none */
};

/*
 * Starts the recorder, and sets the variable by which recorded processes find it.  It reports steps
 * that take `hang_ns` on our stderr; 0: it reports none.
 */
enum status recorder_start(struct recorder *r, uint64_t hang_ns, struct error *err);
/*
 * Waits until the logs of all dead processes are written, for 20 s at most.  Returns how many of
 * the recorder's processes were killed, or one of these words.
 */
#define RECORDER_KILLED   UINT32_MAX       /* the process that starts the others, too */
#define RECORDER_BUSY     (UINT32_MAX - 1) /* logs are still being written */
#define RECORDER_NO_SPACE (UINT32_MAX - 2) /* it could not map an arena */
unsigned recorder_settle(struct recorder *r);

/*
 * The recorder of one program, which has started it with the descriptors of arena/spawn.h; runs
 * until that program is gone, and returns an exit status.
 */
int recorder_serve_program(uint32_t pid);

/* Closes inherited descriptors, of which one may be somebody's pipe, but not these two. */
void recorder_close_others(int from, int first, int second);

/* ---- its parts ---- */

/* A recorded process that was introduced to the recorder. */
struct recorded {
	uint32_t pid;       /* as the recorder sees it */
	uint32_t inner_pid; /* as it sees itself */
	int arena, pidfd;   /* -1: none */
	pid_t writer;       /* 0: there is none, not yet or any more */
	bool has_begun;     /* it had a writer */
	bool is_dead;       /* or another program by now */
	bool is_done;       /* nothing is left to write */
	bool is_alone;      /* no tacho-record comes after it, and saves its ring */
	/* For hangs: its arena as the recorder reads it (NULL: not yet), and the step it is in. */
	const struct arena_header *watched;
	size_t watched_bytes;
	uint64_t step_begin; /* tick; 0: it is in none */
	uint64_t since_ns;   /* CLOCK_MONOTONIC, as the recorder has seen it first */
	bool is_told;
};
/* The probes that run outside of the program; ends with NULL. */
struct probe_type;
extern const struct probe_type *const recorder_probes[];
/*
 * In a process that has adopted an arena: takes over its tables and its clock, and reads the
 * settings from the program's environment; false: the arena is damaged.
 */
bool recorder_adopt(struct config *config);
/* Takes over what a live program has added since; false: the arena is damaged. */
bool recorder_adopt_late(void);
/* Adopts the arena of a process as a private copy, then does recorder_adopt(). */
bool recorder_read(int arena, struct config *config);
/* Whether a process has been in one step for `hang_ns`. */
bool recorder_hangs(struct recorded *r, uint64_t hang_ns, uint64_t now_ns);
void recorder_unwatch(struct recorded *r);
/*
 * Prints on stderr the step of each process, Python stacks of those that hang, and which rank waits
 * for which.  This is slow, so call it in a process of its own.
 */
void recorder_tell_hang(struct recorded *all, size_t count, uint64_t hang_ns, uint64_t now_ns);
/* Runs the writer of a program until the program is gone; false: its arena is damaged. */
bool recorder_live(const struct recorded *r);
/* In a process that runs recorder_live(): the program died, or its process runs another one now. */
bool recorder_program_is_gone(void);
/*
 * In a process of its own: writes a log of what a dead process left in its rings.  False: they
 * could not be read, or no log could be opened.  `died_now` is as in session_adopt().
 */
bool recorder_take_left(int arena, bool died_now);
