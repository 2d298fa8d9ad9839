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

/* An instant has the first cause that applies; causes of a whole gap come first. */
#define CAUSE_LIST(X)                                                                              \
	X(LOST, "lost", "records are missing there")                                               \
	X(BEFORE_WINDOW, "before_window", "launched before anything that was recorded")            \
	X(UNKNOWN, "unknown", "the launch was not recorded, or the host's time was forgotten")     \
	X(UNRECORDED, "unrecorded", "launched work does not begin: work that is not in the file")  \
	X(GRAPH_INTERNAL, "graph_internal", "between two nodes of one graph launch")               \
	X(STREAM_WAIT, "stream_wait", "launched, and its stream waits for another")                \
	X(LAUNCH, "launch", "the call that launches what comes next is running")                   \
	X(DISPATCH, "dispatch", "launched, and not yet begun")                                     \
	X(PROFILER, "profiler", "the tracer took time, by its own account")                        \
	X(COMPILE, "compile", "code is compiled or loaded")                                        \
	X(SYNC, "sync", "the launching thread waits for the GPU")                                  \
	X(BLOCKING_COPY, "blocking_copy", "the launching thread is in a copy that blocks it")      \
	X(ALLOCATOR, "allocator", "the launching thread takes or gives back GPU memory")           \
	X(GC, "gc", "Python's garbage collector runs")                                             \
	X(DATA, "data", "the step thread gets its input")                                          \
	X(HOST, "host", "the step thread is in this phase and launches nothing in time")
enum cause {
#define X(name, word, meaning) CAUSE_##name,
	CAUSE_LIST(X)
#undef X
		CAUSE_COUNT,
};
const char *cause_word(enum cause cause);
const char *cause_meaning(enum cause cause);

struct idle_segment { /* a part of one gap, with one cause and one owner */
	uint64_t begin_ns, end_ns;
	uint64_t gap_begin_ns, gap_end_ns; /* of the whole gap */
	uint32_t gpu;
	uint32_t thread;        /* track of the owner; 0: no owner */
	uint32_t range, python; /* names: the innermost that cover most of it; 0: none */
	uint32_t path; /* ends with the inner one of both; of a launch: its own; 0: unknown */
	uint32_t call; /* name of the call or record behind the cause; 0: none */
	uint8_t cause;
	uint8_t phase;     /* of CAUSE_HOST and CAUSE_DATA; of what was launched: its own */
	uint8_t part;      /* enum part of the gap */
	bool is_forgotten; /* of CAUSE_UNKNOWN: the host events were dropped */
	bool after_sync;   /* the gap began inside a synchronising call of its thread */
};

struct causes;
struct cause_request {
	struct trace *trace;
	struct context *context;
	const struct sweep *sweep;
	bool owners;     /* ranges and Python frames are asked for */
	bool is_partial; /* a filter drops calls or GPU work by what they are */
	size_t keep;     /* most events kept for a thread; 0: the default */
};
enum status causes_open(struct causes **out, const struct cause_request *how, struct error *err);
/* Call it after sweep_put() of the same batch.  Segments are in time order per GPU, and are
 * borrowed until the next call. */
enum status causes_put(struct causes *c, const struct batch *in, const struct idle_segment **idle,
		       size_t *count, struct error *err);
/* Call it after sweep_end(); returns the remaining segments. */
enum status causes_end(struct causes *c, const struct idle_segment **idle, size_t *count,
		       struct error *err);
void causes_close(struct causes *c); /* accepts NULL */

/* What a runtime or driver call does to its thread, classified by its name. */
enum call_class {
	CALL_OTHER,
	CALL_KERNELS, /* puts kernels on a GPU */
	CALL_SYNC,
	CALL_COPY,
	CALL_BLOCKING_COPY,
	CALL_ALLOCATOR,
	CALL_SETUP, /* makes what a process needs once, or asks for a function */
	CALL_COMPILE
};
enum call_class cause_call_class(const char *name);
/* The same by name id; the answer is cached. */
enum call_class causes_call_class(struct causes *c, uint32_t name);
/* The class of a call event, whose name may be that of its work (enum api_class). */
enum call_class causes_class_of(struct causes *c, const struct event *call);
/* The cause of a CUPTI overhead record: CAUSE_PROFILER, CAUSE_COMPILE; CAUSE_COUNT: neither. */
enum cause cause_overhead(const char *name);
