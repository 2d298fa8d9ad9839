/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - this library as a client of CUPTI: load, start, flush, stop, and both callbacks.
 *
 *	start   subscribe, set attributes, register the callbacks, enable kinds
 *	stop    disable kinds, flush what is complete, ask what was dropped
 *	behind  the GPU has work of the window to do: flush what is complete, until nothing is left
 *	last    at the exit: wait a little, then flush by force, without times
 *
 * Two threads may call: the writer, and the program's own in cuInit(), where an open window must
 * begin before the first work.  A thread takes the turn before it calls CUPTI, and only the last
 * stop waits for it.  No lock is held over a call of CUPTI.  `report` collects what users should
 * know; probe.c puts it into the log.
 */
#pragma once

#include "collector/probe/cupti/internal.h"

struct config;

struct cupti_report {      /* what people should know; grows, under the turn or by the writer */
	char problem[200]; /* why nothing is recorded; "" */
	char other[CUPTI_PATH];   /* another copy of CUPTI that is loaded; "" */
	uint64_t starts, refused; /* windows that did, that did not */
	bool clock_is_strange;
	bool no_thread_ids; /* thread ids are values of pthread_self() */
	bool graph_level;
	bool detaches;       /* from CUDA, after the last window that has ended */
	uint64_t never_came; /* buffers */
	uint64_t foreign;    /* buffers that another tool had allocated */
	uint64_t taken_ns;   /* how long nothing was recorded until the kinds were enabled again */
	uint64_t behind_ns;  /* the longest that the GPU had still to do at a window's end */
	bool left_behind;    /* it had more to do than we waited for */
};
struct cupti_client {
	struct cupti_lib lib;
	struct cupti_kinds kinds; /* of the last start */
	struct cupti_report report;
	uint64_t on_ns; /* CLOCK_MONOTONIC, of the last start */
	bool is_loaded;
};
extern struct cupti_client cupti_client __attribute__((visibility("hidden")));

/*
 * Kinds are enabled afterwards, or the report states why not.  False: another thread has the turn,
 * so call again.
 */
bool cupti_client_start(const struct config *config);
/* What start would do first and takes its time: the library, buffers.  Nothing is on. */
void cupti_client_load(const struct config *config);
bool cupti_client_is_on(void);
/* Once in this process: there may be buffers, plans and a clock. */
bool cupti_client_was_on(void);
/* Changes whenever the report has changed. */
unsigned cupti_client_report_version(void);
/* Writer only: all buffers whose work is over come back. */
void cupti_client_flush(void);
/*
 * Writer only.  `deadline_ns` is CLOCK_MONOTONIC: what has not come back then is taken by force, as
 * the process ends.  0: nothing is waited for, nothing forced, and cupti_client_is_behind() asked.
 */
void cupti_client_stop(uint64_t deadline_ns);
/*
 * Writer only, after a stop.  True: work of the window is still in progress on a GPU; call again.
 * After BEHIND_MAX_NS what is left stays with CUPTI, and by its times it belongs to its window
 * whenever it comes.
 */
bool cupti_client_is_behind(void);
/*
 * Writer only, when the rows of a window are put and so its graphs are known: gives the
 * subscription back, and CUPTI too where the configuration says so.
 */
void cupti_client_detach(void);
/*
 * Writer only.  Registers our callbacks and enables our kinds again, which changes nothing unless
 * another tool has put its own in their place.
 */
void cupti_client_repair(void);
/* Writer only.  Whether calls of the driver are recorded, if asked for.  False: not now. */
bool cupti_client_record_driver(bool wanted);
/* The process ends: returns when no thread is in a call of ours to CUPTI, or after `limit_ns`. */
void cupti_client_await_quiet(uint64_t limit_ns);
/* So long there was nothing, until cupti_client_repair(). */
void cupti_client_note_taken(uint64_t ns);
/* Since the last call: records that CUPTI dropped, records that found no buffer. */
uint64_t cupti_client_take_dropped(void);
uint64_t cupti_client_take_refused(void);
/*
 * Sets the function that CUPTI's callback calls when free buffers run low; it must be async-signal-
 * safe.  NULL: none.
 */
void cupti_client_on_low_buffers(void (*wake)(void));
/* The next start records graphs as one event each, not their nodes. */
void cupti_client_graph_level(void);

/* The child of a fork: CUPTI is the parent's. */
void cupti_client_forked(void);
/* Nothing may be asked of CUPTI in this process. */
bool cupti_client_is_dead(void);
