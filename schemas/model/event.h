/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - the event, on which every part of the program works.
 *
 * Sources make events, stages add to them, sinks and reports only read them.  A field that some
 * computation uses is a member of struct event.  Every other field is an argument, so that nothing
 * is lost and the struct does not grow.  Arguments are of two sorts (PLACE in records.def is CONST
 * or ARG):
 *
 *	const args       are the same in many events: grid, registers, cbid, input dims.  They are
 *	                 interned with their values in an argument schema (trace.h).
 *	argument values  are numbers that differ in each event: gridId, External id.  The argument
 *	                 schema has their keys, event.args has one word for each.
 *
 * All sources deliver events by begin ascending, then end *descending* (so an outer range comes
 * before what it contains), then by their order in the input.  The order is total, so outputs do
 * not depend on the number of threads.
 *
 * To add a kind, add a row to KIND_LIST, its fields to records.def, its paragraph to LOG.md, and
 * its place in each format; test_sink_kinds reports missing places.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each row has a name, a number (on disk: append only), a word (--kinds, files), a track type and
 * help. */
/* clang-format off */
#define KIND_LIST(X)                                                                               \
	X(KERNEL, 1, "kernel", STREAM, "a kernel on a GPU")                                        \
	X(MEMCPY, 2, "memcpy", STREAM, "a copy; subkind is CUPTI's copyKind, 0 unknown")           \
	X(MEMSET, 3, "memset", STREAM, "a fill of device memory")                                  \
	X(GRAPH, 4, "graph", STREAM, "a whole graph launch (graph-level tracing)")                 \
	X(SYNC, 5, "sync", STREAM, "a wait; its thread is that of its api event")                  \
	X(API, 6, "api", THREAD, "a runtime or driver call; subkind is enum api_class")            \
	X(RANGE, 7, "range", THREAD, "a named interval; subkind is enum range_class")              \
	X(JIT, 8, "jit", THREAD, "a compilation")                                                  \
	X(OVERHEAD, 9, "overhead", THREAD, "time the tracer took, by its own account")             \
	X(STEP, 10, "step", THREAD, "one training step")                                           \
	X(MARK, 11, "mark", THREAD, "an instant with a name; subkind is enum mark_class")          \
	X(ALLOC, 12, "alloc", ALLOCATOR, "memory taken")                                                \
	X(FREE, 13, "free", ALLOCATOR, "memory given back")                                             \
	X(COUNTER, 14, "counter", COUNTER, "a sampled value; its unit is the track's")
/* clang-format on */

enum kind {
	KIND_UNKNOWN, /* a kind of a newer writer: its arguments are kept, and sinks print kind_N */
#define X(name, number, word, type, help) KIND_##name = number,
	KIND_LIST(X)
#undef X
		KIND_END, /* one past the last number */
};

/* The class of a RANGE is on disk: append only.  Its word is Kineto's category, if there is one. */
#define RANGE_CLASS_LIST(X)                                                                        \
	X(OTHER, 0, "range", "of a category that is unknown here; attribute .cat has its word")    \
	X(OP, 1, "cpu_op", "an operator of a framework")                                           \
	X(ANNOTATION, 2, "user_annotation", "named by the user or by the framework's loop")        \
	X(PYTHON, 3, "python_function", "a Python function; never decides a phase")                \
	X(GPU_ANNOTATION, 4, "gpu_user_annotation", "an annotation's projection; on a stream")     \
	X(PHASE, 5, "phase", "pushed through tacho.h: its name is a phase")                        \
	X(NVTX, 6, "nvtx", "an NVTX range")                                                        \
	X(PROFILER, 7, "Trace", "the span of a profiler session; counts for nothing")              \
	X(GC, 8, "gc", "a collection of Python's garbage collector")

enum range_class {
#define X(name, number, word, help) RANGE_##name = number,
	RANGE_CLASS_LIST(X)
#undef X
};

/* These are on disk: append only.  The last two are calls that a profiler names by their work: by
 * the kernel that they launch, or as a copy whose name does not say that it is asynchronous. */
enum api_class { API_RUNTIME = 0, API_DRIVER = 1, API_OF_KERNEL = 2, API_OF_ASYNC_COPY = 3 };

/* FLOW_* are the two ends of an arrow of the input; they have the same `number`. */
enum mark_class { MARK_INSTANT = 0, MARK_FLOW_BEGIN = 1, MARK_FLOW_END = 2 };

enum event_flag {
	EVENT_BEGAN_EARLIER = 1, /* was open when the window began; begin_ns is the window's */
	EVENT_NEVER_ENDED = 2,   /* still open at the end: end_ns is the last time in the input */
	EVENT_STANDS_FOR = 4,    /* several short events merged; an argument has their count */
	EVENT_RESULT = 8,        /* api: `result` was recorded; else it is unknown */
};

/*
 * event.step is the number + 1 of the step whose mark is open.  Between the end of the mark and the
 * begin of the next one, STEP_GAP is set too: whether that gap belongs to the step is known only at
 * the end of the input (analyze/DEFINITIONS.md 3).  It is 0 before the first mark.
 */
#define STEP_GAP 0x80000000u

/* An event is one cache line.  Its ids are those of the run's struct trace. */
struct event {
	uint64_t begin_ns; /* since the Unix epoch, on the run's one clock */
	uint64_t end_ns;   /* >= begin_ns; equal: an instant */
	union {
		uint64_t correlation; /* GPU work, sync, api: equal in one process if related; 0
					 none */
		uint64_t address;     /* alloc, free */
		uint64_t number; /* step: its number; range: sequence number, mark: flow id; 0 none
				  */
	};
	union {
		uint64_t bytes; /* memcpy, memset, alloc, free */
		int64_t result; /* api: what it returned, when EVENT_RESULT */
		double value;   /* counter, in the unit of its track */
	};
	const uint64_t
		*args; /* argument values, borrowed like the batch; NULL if the schema has none */
	uint32_t track, name, schema; /* 0: none */
	uint32_t step; /* set by stage `step`: step of its launch (see STEP_GAP); 0: none */
	uint32_t path; /* set by stage `context`: node of the ranges that were open on the
			  (launching) thread, see struct path_node; 0: none */
	uint8_t kind, subkind;
	uint8_t phase; /* set by stage `step`: phase of its launch; 0 is "other" */
	uint8_t flags;
};
_Static_assert(sizeof(struct event) == 64, "an event is one cache line");

struct launch; /* these three are defined in convert/stage/context/context.h */
struct phase_interval;
struct step_mark;

/*
 * The result of one pull: events and all that belongs to them.  It is borrowed until the next call
 * on its source.  A stage may change the events and the launches; a consumer must not.  Sources of
 * formats set only the events.
 */
struct batch {
	struct event *events;
	size_t count;
	const struct launch **launches; /* one for each event, NULL if it is unknown; the array is
					   NULL if no stage finds launches */
	/* The intervals that became final with these events, for each process in time order. */
	const struct phase_interval *intervals;
	size_t interval_count;
	const struct step_mark *marks;
	size_t mark_count;
	/* The time span that the user asked for; both 0: all.  Events are clipped to it; intervals
	 * and marks are not, because the length of a step is that of its whole mark. */
	uint64_t from_ns, to_ns;
};

/* Returns the call that launched an event of the batch, or NULL if it is unknown. */
static inline const struct launch *batch_launch(const struct batch *b, const struct event *e)
{
	return b->launches ? b->launches[e - b->events] : NULL;
}

static inline bool event_before(const struct event *a, const struct event *b)
{
	return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->end_ns > b->end_ns;
}

/* Returns whether the event counts as busy time of a GPU. */
static inline bool event_is_gpu_work(const struct event *e)
{
	return e->kind >= KIND_KERNEL && e->kind <= KIND_GRAPH;
}
