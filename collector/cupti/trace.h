/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/trace.h - we as a client of CUPTI: load, start, flush, stop; its two callbacks.
 *
 *	start   take the subscriber's slot, set attributes, register the callbacks, enable kinds
 *	stop    disable, flush what is complete, wait, flush by force, ask what was dropped
 *
 * Two threads may come: the writer, and the program's own in cuInit(), where a window that is open
 * must begin before the first work.  Who has the *turn* calls CUPTI; nobody waits for it but stop.
 * No lock is held over a call of CUPTI.  What must be told is noted here, told by watch_cupti.c.
 */
#ifndef COLLECTOR_CUPTI_TRACE_H
#define COLLECTOR_CUPTI_TRACE_H

#include "collector/cupti/kinds.h"

struct config;

struct cupti_told { /* what people should know; grows, under the turn or by the writer */
	char problem[200];      /* why nothing is recorded; "" */
	char off[200];          /* why part of a window may be missing: others at work; "" */
	uint64_t starts, refused; /* windows that did, that did not */
	bool clock_is_strange;
	bool no_thread_ids;     /* threads are told by pthread_self() */
	bool graph_level;
	unsigned gone;          /* kinds that others switched off */
	uint64_t never_came;    /* buffers */
	uint64_t foreign;       /* buffers that were not ours */
	uint64_t silent_s;      /* seconds with steps and without records, after there were some */
};
struct cupti_trace {
	struct cupti_lib lib;
	struct cupti_kinds kinds; /* of the last start */
	struct cupti_told told;
	uint64_t on_ns; /* CLOCK_MONOTONIC, of the last start */
	bool is_loaded;
};
extern struct cupti_trace cupti_trace __attribute__((visibility("hidden")));

/*
 * Kinds are on afterwards, or it is told why not.  False: somebody else has the turn, so ask again.
 */
bool cupti_trace_start(const struct config *config);
/* What start would do first and takes its time: the library, buffers.  Nothing is on. */
void cupti_trace_load(const struct config *config);
bool cupti_trace_is_on(void);
/* Once in this process: there may be buffers, plans and a clock. */
bool cupti_trace_was_on(void);
/* Changes when `told` has changed. */
unsigned cupti_trace_news(void);
/* Writer only: all buffers whose work is over come back. */
void cupti_trace_flush(void);
/* Writer only.  `deadline_ns` and the times inside are CLOCK_MONOTONIC. */
void cupti_trace_stop(uint64_t deadline_ns);
/* Since the last call: records that CUPTI dropped, records that found no buffer. */
uint64_t cupti_trace_take_dropped(void);
uint64_t cupti_trace_take_refused(void);
/* Theirs rings it when buffers run low; async-signal-safe, no lock.  NULL: nobody listens. */
void cupti_trace_bell(void (*bell)(void));
/* The next start takes graphs as a whole. */
void cupti_trace_graph_level(void);

/* The child of a fork: CUPTI is the parent's. */
void cupti_trace_forked(void);
/* Nothing may be asked of CUPTI in this process. */
bool cupti_trace_is_dead(void);

#endif
