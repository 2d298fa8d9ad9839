/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.h - why a GPU did nothing: each gap of the sweep split into segments with one cause and one
 * owner each (DEFINITIONS.md 6).  The idle segments of a gap tile it, so the causes of a GPU add up
 * to its lead, idle and tail, to the nanosecond.
 *
 * A gap is resolved when what the step thread did in it is final, which may be later than the
 * pull that ended it.  What hosts did is kept as long as a gap may still need it; past a ceiling
 * the oldest is forgotten, and time that had needed it is `unknown` and counted.
 */
#pragma once

#include "analyze/timeline/sweep.h"

/* In the order in which an instant is asked for them, after those that a whole gap has. */
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

struct idle_segment { /* one cause, one owner; of one gap */
	uint64_t begin_ns, end_ns;
	uint64_t gap_begin_ns, gap_end_ns; /* of the whole gap */
	uint32_t gpu;
	uint32_t thread;        /* track of the owner; 0: nobody's */
	uint32_t range, python; /* names: the innermost that cover most of it; 0: none */
	uint32_t path; /* ends with the inner one of both; of a launch: its own; 0: unknown */
	uint32_t call; /* name of the call or record behind the cause; 0: none */
	uint8_t cause;
	uint8_t phase;     /* of CAUSE_HOST and CAUSE_DATA; of what was launched: its own */
	uint8_t part;      /* enum part of the gap */
	bool is_forgotten; /* of CAUSE_UNKNOWN: the host's time is known no more */
	bool after_sync;   /* the gap began inside a synchronising call of its thread */
};

struct causes;
struct cause_request {
	struct trace *trace;
	struct context *context;
	const struct sweep *sweep;
	bool owners;     /* ranges and Python frames are asked for */
	bool is_partial; /* a filter drops calls or GPU work by what they are */
	size_t keep;     /* events of a thread that are kept at most, 0: the default */
};
enum status causes_open(struct causes **out, const struct cause_request *how, struct error *err);
/* After sweep_put() of the same pull.  Pieces are borrowed until the next call; per GPU in time
 * order. */
enum status causes_put(struct causes *c, const struct batch *in, const struct idle_segment **idle,
		       size_t *count, struct error *err);
/* After sweep_end(): the rest. */
enum status causes_end(struct causes *c, const struct idle_segment **idle, size_t *count,
		       struct error *err);
void causes_close(struct causes *c); /* accepts NULL */

/* What a call does to its thread, by its name. */
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
/* The same, asked once per name. */
enum call_class causes_call_class(struct causes *c, uint32_t name);
/* Of a call that may be named by its work (enum api_class). */
enum call_class causes_class_of(struct causes *c, const struct event *call);
/* Of an overhead record: CAUSE_PROFILER, CAUSE_COMPILE, or CAUSE_COUNT for neither. */
enum cause cause_overhead(const char *name);
