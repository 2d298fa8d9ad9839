/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - the one event that flows through the house.
 *
 * Sources make events, stages add to them, sinks and reports only look.  What the house computes
 * with is a member here; every other field of a record lives in one of two open places, so that
 * nothing known or unknown is lost and this struct never grows (records.def says which is where):
 *
 *	shape   what repeats: grid, registers, cbid, input dims ... one interned row (trace.h)
 *	vary    numbers that differ each time: gridId, External id ... one word per key of the shape
 *
 * Order, everywhere above a source: begin ascending, then end *descending* (the outer range
 * first), then input order.  It is total, so output does not depend on threads.
 *
 * To add a kind: a row in KIND_LIST, its fields in records.def, its paragraph in LOG.md.
 */
#ifndef SCHEMAS_EVENT_H
#define SCHEMAS_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name, number (on disk: append only), word (--kinds, files), home of its track, help. */
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
	X(ALLOC, 12, "alloc", POOL, "memory taken")                                                \
	X(FREE, 13, "free", POOL, "memory given back")                                             \
	X(COUNTER, 14, "counter", COUNTER, "a sampled value; its unit is the track's")

enum kind {
	KIND_UNKNOWN, /* of a newer writer: shape and vary are whole, sinks print kind_N */
#define X(name, number, word, home, help) KIND_##name = number,
	KIND_LIST(X)
#undef X
	KIND_END, /* one past the last known number */
};

/* Class of a RANGE, on disk: append only; the word is Kineto's category where it has one. */
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

enum api_class { API_RUNTIME = 0, API_DRIVER = 1 };

/* FLOW_*: the ends of an arrow that the format drew; `number` joins them. */
enum mark_class { MARK_INSTANT = 0, MARK_FLOW_BEGIN = 1, MARK_FLOW_END = 2 };

enum event_flag {
	EVENT_BEGAN_EARLIER = 1, /* was open when the window opened: begin_ns is the window's */
	EVENT_NEVER_ENDED = 2,   /* still open at the end: end_ns is the last time seen */
	EVENT_STANDS_FOR = 4,    /* level of detail: a sum of short ones, count in vary */
	EVENT_RESULT = 8,        /* api: `result` was recorded; else it is unknown */
};

/* event.step: number + 1 while a step's mark is open; after its end, until the next mark begins,
 * the same with STEP_GAP set (whether that gap joins the step is known only at the end,
 * analyze/DEFINITIONS.md 3); 0 before the first mark. */
#define STEP_GAP 0x80000000u

/* One cache line.  Ids are those of the run's struct trace. */
struct event {
	uint64_t begin_ns; /* since the Unix epoch, on the run's one clock */
	uint64_t end_ns;   /* >= begin_ns; equal: an instant */
	union {
		uint64_t correlation; /* GPU work, sync, api: joins them in one process; 0 none */
		uint64_t address;     /* alloc, free */
		uint64_t number;      /* step: its number; range: sequence number, mark: flow id; 0 none */
	};
	union {
		uint64_t bytes; /* memcpy, memset, alloc, free */
		int64_t result; /* api: what it returned, when EVENT_RESULT */
		double value;   /* counter, in the unit of its track */
	};
	const uint64_t *vary; /* borrowed like the batch; NULL when the shape has no such keys */
	uint32_t track, name, shape; /* 0: none */
	uint32_t step;  /* stage `step`: that of its launch, see STEP_GAP; 0 outside any */
	uint32_t owner; /* stage `step`: name of the launching thread's innermost range; 0 none */
	uint8_t kind, subkind;
	uint8_t phase; /* stage `step`: phase it was launched in, an id of step.h; 0 is "other" */
	uint8_t flags;
};
_Static_assert(sizeof(struct event) == 64, "an event is one cache line");

/* What one pull gives.  Borrowed until the next call on the source it came from. */
struct batch {
	struct event *events; /* a stage may write into them; a consumer must not */
	size_t count;
};

static inline bool event_before(const struct event *a, const struct event *b)
{
	return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->end_ns > b->end_ns;
}

/* Work that keeps a GPU busy: what the identity of the reports is about. */
static inline bool event_is_gpu_work(const struct event *e)
{
	return e->kind >= KIND_KERNEL && e->kind <= KIND_GRAPH;
}

#endif
