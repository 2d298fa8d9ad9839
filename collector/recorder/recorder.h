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
 * The recorder is in a session of its own, so that no signal to the job's group reaches it.  It
 * ends when tacho-record is gone and no introduced process is left.
 */
#ifndef COLLECTOR_RECORDER_RECORDER_H
#define COLLECTOR_RECORDER_RECORDER_H

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct recorder {
	int fd; /* to the recorder; -1: there is none */
};

/* Starts it, and sets the variable by which recorded processes find it. */
enum status recorder_start(struct recorder *r, struct error *err);
/* Waits until it has made the logs of all that have died, for a moment at most. */
void recorder_settle(struct recorder *r);

/* ---- its parts ---- */

/* A process as the recorder got to know it. */
struct recorded {
	uint32_t pid;       /* as the recorder sees it */
	uint32_t inner_pid; /* as it sees itself */
	int arena, pidfd;   /* -1: none */
};
/* Makes a log of what the dead process has left; false: nothing could be read. */
bool recorder_take_left(const struct recorded *dead);

#endif
