/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what cause.c (what threads do, gaps that wait) and gap.c (one gap) share.
 * Nobody else includes it.
 */
#pragma once

#include "analyze/cause/cause.h"
#include "analyze/cause/threads.h"

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

enum { OF_SYNC, OF_BLOCKING_COPY, OF_ALLOCATOR, OF_THREAD };

struct cause_thread {            /* by track */
	uint64_t asked_until_ns; /* the end of its latest call in `asked` */
	struct spans spans[OF_THREAD];
	struct spans cover; /* something is open; of threads other than the step thread */
	struct ranges named, python;
	struct frames frames;
};

enum { OF_PROFILER, OF_COMPILE, OF_GC, OF_LOST, OF_PROCESS };
struct cause_process {        /* by process id */
	uint32_t step_thread; /* track; 0: none */
	size_t expected;      /* GPUs that the tables promise */
	uint64_t works_ns;    /* begin of its first GPU work; UINT64_MAX: none yet */
	bool has_called;      /* what the driver has to run for */
	struct keep keep;
	struct spans spans[OF_PROCESS];
	struct asked asked;
	struct phase_interval *intervals; /* of the step thread, in time order */
	size_t interval_count, interval_cap;
	size_t interval_near;  /* the one that was found last */
	uint64_t front_ns;     /* what the step thread did is final up to here */
	struct idle_gap *gaps; /* a queue: not resolved yet */
	size_t gap_head, gap_count, gap_cap;
};

struct causes {
	struct cause_request how;
	const struct batch *batch; /* during causes_put() */
	struct cause_thread *threads;
	struct cause_process *processes;
	/* 0 not asked, else 1 + answer; the last by shape, the others by name */
	uint8_t *call_class, *is_pageable, *is_pageable_schema;
	uint8_t *is_python; /* by name: 1 of a function, 2 of another range (too), 4: it compiles */
	uint32_t *process_of_track;
	uint32_t track_count, process_count, name_count, schema_count;
	size_t lost_count; /* of the trace's intervals with lost records, those that were taken */
	uint64_t lost_end_ns;      /* of the last of them, which may grow */
	struct idle_segment *idle; /* of this call */
	size_t idle_count, idle_cap;
};

/* A call so long is the first use of something: code is loaded, a stream or a library made.  A loop
 * that was recorded in steps runs already, and what takes a little longer there is something else;
 * and taking memory alone takes less. */
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

/* Splits `gap` into idle segments; all that it needs of the process is final, or never will be. */
enum status cause_walk(struct causes *c, struct cause_process *p, const struct idle_gap *gap,
		       struct error *err);
