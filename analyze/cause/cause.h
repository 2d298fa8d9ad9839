/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.h - why a GPU was idle: each idle gap of the sweep is split into segments, each with one
 * cause and one owner (DEFINITIONS.md 6).  The segments tile the gap, so the causes of a GPU add up
 * to its lead, idle and tail, to the nanosecond.
 *
 * A gap is resolved when the phases of the step thread in it are final, which may be after the
 * batch that ended the gap.  Host events are kept as long as a gap may still need them.  Above a
 * ceiling the oldest are dropped; time that needs a dropped one is `unknown` and counted.
 */
#pragma once

#include "analyze/timeline/sweep.h"

/* The first cause that applies to an instant is used; causes of a whole gap come first. */
#define CAUSE_LIST(X)                                                                              \
	X(LOST, "lost", "records of this time are missing")                                        \
	X(BEFORE_WINDOW, "before_window", "the next work was launched before the recording began") \
	X(UNKNOWN, "unknown",                                                                      \
	  "the next work has no recorded launch, or host events were dropped from memory")         \
	X(UNRECORDED, "unrecorded",                                                                \
	  "launched work does not begin, probably because work that is not in the file runs")      \
	X(GRAPH_INTERNAL, "graph_internal",                                                        \
	  "the GPU is between two nodes of one CUDA graph launch")                                 \
	X(STREAM_WAIT, "stream_wait",                                                              \
	  "the next work is launched, but its stream waits for another stream")                    \
	X(LAUNCH, "launch", "the call that launches the next work is still running")               \
	X(DISPATCH, "dispatch", "the next work is launched, but has not begun")                    \
	X(PROFILER, "profiler",                                                                    \
	  "the profiler itself takes time, according to its own overhead records")                 \
	X(COMPILE, "compile", "the host compiles or loads code")                                   \
	X(SYNC, "sync", "the launching thread waits for the GPU")                                  \
	X(BLOCKING_COPY, "blocking_copy", "the launching thread is blocked by a copy")             \
	X(ALLOCATOR, "allocator", "the launching thread allocates or frees GPU memory")            \
	X(GC, "gc", "Python's garbage collector runs")                                             \
	X(DATA, "data", "the step thread waits for or prepares the next input")                    \
	X(HOST, "host", "the step thread is in this phase and does not launch work early enough")
enum cause {
#define X(name, word, meaning) CAUSE_##name,
	CAUSE_LIST(X)
#undef X
		CAUSE_COUNT,
};
extern const struct cause_type {
	const char *word, *meaning;
} cause_types[CAUSE_COUNT];

struct idle_segment { /* a part of one gap, with one cause and one owner */
	uint64_t begin_ns, end_ns;
	uint64_t gap_begin_ns, gap_end_ns; /* bounds of the whole gap */
	uint32_t gpu;
	uint32_t thread;        /* track of the owner; 0: none */
	uint32_t range, python; /* innermost names that cover most of it; 0: none */
	uint32_t path; /* ends with the inner one; of launched work: its launch's; 0: unknown */
	uint32_t call; /* name of the call or record that explains the cause; 0: none */
	uint8_t cause;
	uint8_t phase;     /* for CAUSE_HOST and CAUSE_DATA; for launched work the work's phase */
	uint8_t part;      /* enum part of the gap */
	bool is_forgotten; /* with CAUSE_UNKNOWN: host events were dropped */
	bool after_sync;   /* the gap began inside a synchronizing call of its thread */
};

struct causes;
struct cause_request {
	struct trace *trace;
	struct context *context;
	const struct sweep *sweep;
	bool owners;     /* determine ranges and Python frames */
	bool is_partial; /* a filter drops calls or GPU work by kind */
	size_t keep;     /* limit of events kept for a thread; 0: the default */
};
enum status causes_open(struct causes **out, const struct cause_request *how, struct error *err);
/* Call it after sweep_put() of the same batch. Returns segments in time order per GPU, borrowed
 * until the next call. */
enum status causes_put(struct causes *c, const struct batch *in, const struct idle_segment **idle,
		       size_t *count, struct error *err);
/* Call it after sweep_end(); returns the remaining segments. */
enum status causes_end(struct causes *c, const struct idle_segment **idle, size_t *count,
		       struct error *err);
void causes_close(struct causes *c); /* accepts NULL */

/* What a runtime or driver call does to its thread, classified by its name. */
enum call_class {
	CALL_OTHER,
	CALL_KERNELS, /* launches kernels */
	CALL_SYNC,
	CALL_COPY,
	CALL_BLOCKING_COPY,
	CALL_ALLOCATOR,
	CALL_SETUP, /* initializes something once, or looks up a function */
	CALL_COMPILE
};
enum call_class cause_call_class(const char *name);
/* Like cause_call_class(), by name id and with a cache. */
enum call_class causes_call_class(struct causes *c, uint32_t name);
/* Returns the class of a call event. Its name may be that of its work (enum api_class). */
enum call_class causes_class_of(struct causes *c, const struct event *call);
/* Returns the cause for a CUPTI overhead record: CAUSE_PROFILER, CAUSE_COMPILE or, for neither,
 * CAUSE_COUNT. */
enum cause cause_overhead(const char *name);
