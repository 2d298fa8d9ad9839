/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - a process outside of the recorded ones, which holds their arenas.
 *
 *	recorded process --introduction, arena--> recorder --fork--> one child for each that died
 *	tacho-record     --"settle"------------->
 *	                 <--"settled"-------------
 *
 * When a process dies without having closed its log - by SIGKILL, a fault, _exit(), exec() - what
 * its rings hold, and what was open on its threads, becomes a log.  It is made by a child of the
 * recorder, because the collector's state is static, and a damaged arena ends only that child.
 *
 * While they live the recorder looks at their steps where hangs are to be told.
 *
 * The recorder is in a session of its own, so that no signal to the job's group reaches it.  It
 * ends when tacho-record is gone and no introduced process is left.
 */
#ifndef COLLECTOR_RECORDER_RECORDER_H
#define COLLECTOR_RECORDER_RECORDER_H

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
/* Waits until it has made the logs of all that have died, for a moment at most. */
void recorder_settle(struct recorder *r);

/* ---- its parts ---- */

/* A process as the recorder got to know it. */
struct recorded {
	uint32_t pid;       /* as the recorder sees it */
	uint32_t inner_pid; /* as it sees itself */
	int arena, pidfd;   /* -1: none */
	/* For hangs: its arena as the recorder reads it (NULL: not yet), and the step it is in. */
	const struct arena_header *watched;
	size_t watched_bytes;
	uint64_t step_begin; /* tick; 0: it is in none */
	uint64_t since_ns;   /* CLOCK_MONOTONIC, as the recorder has seen it first */
	bool is_told;
};
/* Makes its arena this process's, and reads its settings; false: it is damaged. */
bool recorder_read(const struct recorded *r, struct config *config);
/* It is in one step for so long. */
bool recorder_hangs(struct recorded *r, uint64_t hang_ns, uint64_t now_ns);
void recorder_unwatch(struct recorded *r);
/*
 * Prints on stderr where each process stands, with Python stacks of those that hang, and which rank
 * waits for which.  Takes its time, so it is for a process of its own.
 */
void recorder_tell_hang(struct recorded *all, size_t count, uint64_t hang_ns, uint64_t now_ns);
/* Makes a log of what the dead process has left; false: nothing could be read. */
bool recorder_take_left(const struct recorded *dead);

#endif
