/* SPDX-License-Identifier: Apache-2.0 */
/* shared.h - what reports offer to other reports, to findings and to --diff. */
#pragma once

#include "analyze/engine/report.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A report for views and scalars alone: ranges of the host by their own names, inside or outside
 * of steps.
 *
 * Lightning's profiler and accumulated timers have such rows.  Phases (DEFINITIONS.md 4) differ:
 * they are of complete steps, and their names are mapped.  No format prints the table `actions`.
 */

#define ACTION_COLUMNS(X)                                                                          \
	X(ACTION_NAME = RANK_KEYS, "name", NULL, TEXT, KEY, "as the program has it")               \
	X(ACTION_COUNT, "count", NULL, U64, SUM, "ranges that began, also in each other")          \
	X(ACTION_TOTAL, "total_ns", NULL, U64, SUM, "their length, what is in them included")      \
	X(ACTION_FIRST, "first_end_ns", NULL, U64, MIN, "when the first of them ended")
enum { ACTION_COLUMNS(COLUMN_PLACE) };
extern const struct report_type report_actions;

/*
 * Who owns each nanosecond of a window (DEFINITIONS.md 2): what --diff compares.
 * Its rows add up to window_ns of each GPU, exactly.  Not printed by itself.
 */

#define ATTRIBUTION_COLUMNS(X)                                                                     \
	X(ATTRIBUTION_DEVICE = RANK_KEYS, "device", NULL, U64, KEY,                                \
	  "the device's number in its process")                                                    \
	X(ATTRIBUTION_CLASS, "class", NULL, TEXT, KEY,                                             \
	  "compute, exposed_comm, exposed_copy, idle, lead or tail")                               \
	X(ATTRIBUTION_PHASE, "phase", NULL, TEXT, KEY,                                             \
	  "of the owner's launch; empty where nothing runs")                                       \
	X(ATTRIBUTION_NAME, "name", NULL, TEXT, KEY,                                               \
	  "of the owner; where nothing runs, the cause")                                           \
	X(ATTRIBUTION_NS, "ns", NULL, U64, SUM, "that it owns")
enum { ATTRIBUTION_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_owned;
extern const struct report_type report_attribution;

/* The name of a copy. */

enum { COPY_TEXT = 200 };
/* "HtoD Pageable Device": direction and kinds of memory, as far as they are known; "memset". */
void copy_text(const struct accumulator *f, const struct event *e, char out[COPY_TEXT]);

/*
 * Whether a level grows from step to step by more than its noise explains
 * (DEFINITIONS.md 8, leak).
 */

struct growth_step {
	uint64_t begin_ns, least, most; /* bytes */
};
struct growth {
	double slope, error; /* of the least, a step; 0 of fewer than three */
	uint64_t spikes;     /* steps whose most is over 1.2 times the (lower) median step's */
};
/* Least squares over the steps in order of time as if equally spaced; the error allows for the
 * lag-1 correlation r of the residuals: times sqrt((1 + r) / (1 - r)).  Orders the steps
 * otherwise. */
struct growth growth_fit(struct growth_step *steps, size_t n);

/*
 * A report for rules alone: how long the threads of a rank communicate, and how long
 * Python's garbage collector runs (DEFINITIONS.md 7).
 *
 * No format prints its table `host_time`.
 */

/* Instants in counted steps at which it happens on any thread of the rank. */
#define HOST_COLUMNS(X)                                                                            \
	X(HOST_COMM = RANK_KEYS, "comm_ns", NULL, U64, SUM, "a collective of the host is open")    \
	X(HOST_COMM_COUNT, "comm_count", NULL, U64, SUM, "such collectives, in steps or not")      \
	X(HOST_EXPOSED, "exposed_ns", NULL, U64, SUM, "that, and no other operator is open")       \
	X(HOST_GC, "gc_ns", NULL, U64, SUM, "the collector runs")
enum { HOST_COLUMNS(COLUMN_PLACE) };
extern const struct report_type report_host;

/* The figures of `ranks` and `comm` that rules use. */

/*
 * Of matched collectives, ns of the windows; of a step: / steps of a rank.  A rank that came last
 * is named where the next one came earlier by more than noise.
 */
struct waiting {
	size_t ranks;                /* that communicate */
	uint64_t matched;            /* of a rank */
	double wait_ns;              /* of all ranks, for whomever */
	double mean_exposed_wait_ns; /* over the ranks, for whomever */
	double most_excess_ns; /* exposed_excess_ns of the rank that has most: what the job would
				* gain, at most, were all as early as that one */
	/* The rank whose coming with the next one would save most; NULL: nobody is named. */
	const union value *culprit; /* its row of `waits` */
	double saving_ns;           /* what the job would gain by that, at most */
	double late_ns, made_wait_ns;
	uint64_t times_last;
};
struct waiting waiting_of(struct tables *all);
