/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - shared by cause.c (what threads do, gaps that wait) and gap.c (one gap). No other
 * file includes it.
 */
#pragma once

#include "analyze/cause/cause.h"
#include "analyze/cause/threads.h"

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

enum { OF_SYNC, OF_BLOCKING_COPY, OF_ALLOCATOR, OF_THREAD };

struct cause_thread {            /* indexed by track */
	uint64_t calls_until_ns; /* end of its latest call in `kernel_calls` */
	struct spans spans[OF_THREAD];
	struct spans cover; /* time with anything open; not kept for the step thread */
	struct ranges named, python;
	struct frames frames;
};

enum { OF_PROFILER, OF_COMPILE, OF_GC, OF_LOST, OF_PROCESS };
struct cause_process {        /* indexed by process id */
	uint32_t step_thread; /* its track; 0: none */
	size_t expected;      /* number of its GPUs with work, from the trace's tables */
	uint64_t works_ns;    /* begin of the first GPU work; UINT64_MAX: none yet */
	bool has_called;      /* has made a call that initializes the driver */
	struct keep keep;
	struct spans spans[OF_PROCESS];
	struct kernel_calls kernel_calls;
	struct phase_interval *intervals; /* of the step thread, in time order */
	size_t interval_count, interval_cap;
	size_t interval_near;  /* result of the last search */
	uint64_t front_ns;     /* the phases of the step thread are final up to here */
	struct idle_gap *gaps; /* a queue of gaps that are not resolved yet */
	size_t gap_head, gap_count, gap_cap;
};

struct causes {
	struct cause_request how;
	const struct batch *batch; /* set only during causes_put() */
	struct cause_thread *threads;
	struct cause_process *processes;
	/* caches by name, and by schema: 0: not cached, else 1 + result */
	uint8_t *call_class, *is_pageable, *is_pageable_schema;
	uint8_t *is_python; /* by name, bits: 1: Python function, 2: other range, 4: compiles */
	uint32_t *process_of_track;
	uint32_t track_count, process_count, name_count, schema_count;
	size_t lost_count;         /* number of the trace's lost spans that were added */
	uint64_t lost_end_ns;      /* end of the last of them, which may grow */
	struct idle_segment *idle; /* emitted by this call */
	size_t idle_count, idle_cap;
};

/* A longer call is the first use of something: it loads code or makes a stream or library. In
 * recorded steps such uses are over, so the limit is higher; allocations that take less are
 * ordinary. */
enum {
	FIRST_USE_NS = 1000000,
	FIRST_USE_IN_STEP_NS = 10000000,
	FIRST_ALLOCATION_NS = 50000000,
};
static inline bool is_long_for_use(uint64_t ns, bool is_in_step)
{
	return ns > (is_in_step ? FIRST_USE_IN_STEP_NS : FIRST_USE_NS);
}

static inline struct cause_thread *cause_thread(const struct causes *c, uint32_t track)
{
	return &c->threads[track <= c->track_count ? track : 0];
}

/* Splits `gap` into idle segments. All that it needs about the process is final, or will not
 * come. */
enum status cause_split(struct causes *c, struct cause_process *p, const struct idle_gap *gap,
			struct error *err);
