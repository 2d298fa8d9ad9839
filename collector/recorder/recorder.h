/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - processes outside of the recorded ones, which hold their arenas and write their
 *logs.
 *
 *	recorded process --introduction, arena--> recorder --fork--> a writer for each
 *	tacho-record     --"settle"------------->
 *	                 <--"settled"-------------
 *	tacho-record --ctl  ----------------------------------------> the writer
 *
 * A writer maps the arena of its program, and does there what a thread of the program would: it
 * takes the rings, opens and closes windows by time and by command, samples memory, and saves the
 * flight recorder's ring.  Each is a process because the collector's state is static, and because a
 * damaged arena ends only that writer.  When its program dies - by SIGKILL, a fault, _exit(),
 * exec() - the rings still hold what was made until then, and the writer closes the log with it.
 *
 * Where a writer was killed, another child of the recorder writes what the rings hold at the
 * program's death.
 *
 * The recorder looks at the steps of all programs where hangs are reported.  It is in a session of
 *its own, so that no signal to the job's group reaches it.  It ends when tacho-record is gone and
 *no introduced process is left.
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
 * Starts it, and sets the variable by which recorded processes find it.  It tells on our stderr of
 * steps that take `hang_ns`; 0: of none.
 */
enum status recorder_start(struct recorder *r, uint64_t hang_ns, struct error *err);
/*
 * Waits until it has made the logs of all that have died, for a moment at most.  Returns how many
 * of its processes were killed; all of them: UINT_MAX.
 */
unsigned recorder_settle(struct recorder *r);

/*
 * The recorder of one program, which has started it with the descriptors of arena/spawn.h; runs
 * until that program is gone, and returns an exit status.
 */
int recorder_serve_program(uint32_t pid);

/* ---- its parts ---- */

/* A process as the recorder got to know it. */
struct recorded {
	uint32_t pid;       /* as the recorder sees it */
	uint32_t inner_pid; /* as it sees itself */
	int arena, pidfd;   /* -1: none */
	pid_t writer;       /* 0: there is none any more */
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
/* What probes run outside of the program. */
struct probe_type;
extern const struct probe_type *const recorder_probes[];
/*
 * In a process that has adopted an arena: takes the tables and the clock in it, and the settings
 * that its program had, by its environment; false: it is damaged.
 */
bool recorder_adopt(struct config *config);
/* What a program that lives has made since; false: it is damaged. */
bool recorder_adopt_late(void);
/* Adopts that of a dead process before. */
bool recorder_read(const struct recorded *r, struct config *config);
/* It is in one step for so long. */
bool recorder_hangs(struct recorded *r, uint64_t hang_ns, uint64_t now_ns);
void recorder_unwatch(struct recorded *r);
/*
 * Prints on stderr where each process stands, with Python stacks of those that hang, and which rank
 * waits for which.  Takes its time, so it is for a process of its own.
 */
void recorder_tell_hang(struct recorded *all, size_t count, uint64_t hang_ns, uint64_t now_ns);
/* The writer of a program, until that is gone; false: its arena is damaged. */
bool recorder_live(const struct recorded *r);
/* Where recorder_live() runs: the program is dead, or another one by now. */
bool recorder_program_is_gone(void);
/* Makes a log of what the dead process has left; false: nothing could be read. */
bool recorder_take_left(const struct recorded *dead);
