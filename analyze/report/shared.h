/* SPDX-License-Identifier: Apache-2.0 */
/* shared.h - interfaces of reports to other reports, findings and --diff. */
#pragma once

#include "analyze/engine/report.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A report for TensorBoard's views: host ranges by their own names, inside or outside of steps.
 *
 * Lightning's profiler and accumulated timers have such rows. Phases (DEFINITIONS.md 4) differ:
 * they cover complete steps, and their names are mapped. No format prints the table `actions`.
 */

#define ACTION_COLUMNS(X)                                                                          \
	X(ACTION_NAME = RANK_KEYS, "name", NULL, TEXT, KEY, "name of the range in the program")    \
	X(ACTION_COUNT, "count", NULL, U64, SUM, "ranges that began, nested ones too")             \
	X(ACTION_TOTAL, "total_ns", NULL, U64, SUM, "total duration, including children")          \
	X(ACTION_FIRST, "first_end_ns", NULL, U64, MIN, "end of the first range, Unix epoch")
enum { ACTION_COLUMNS(COLUMN_PLACE) };
extern const struct report_type report_actions;

/* The owner of each nanosecond of a window (DEFINITIONS.md 2), which --diff compares. The rows of a
 * GPU add up to its window_ns exactly. It is not printed as a report. */

#define ATTRIBUTION_COLUMNS(X)                                                                     \
	X(ATTRIBUTION_DEVICE = RANK_KEYS, "device", NULL, U64, KEY,                                \
	  "the device's number in its process")                                                    \
	X(ATTRIBUTION_CLASS, "class", NULL, TEXT, KEY,                                             \
	  "compute, exposed_comm, exposed_copy, idle, lead or tail")                               \
	X(ATTRIBUTION_PHASE, "phase", NULL, TEXT, KEY,                                             \
	  "phase of the owner's launch; empty where nothing runs")                                 \
	X(ATTRIBUTION_NAME, "name", NULL, TEXT, KEY,                                               \
	  "name of the owner; where nothing runs, the cause")                                      \
	X(ATTRIBUTION_NS, "ns", NULL, U64, SUM, "time that the owner has")
enum { ATTRIBUTION_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_owned;
extern const struct report_type report_attribution;

enum { COPY_TEXT = 200 };
/* Writes a copy's direction and kinds of memory, as far as they are known: "HtoD Pageable Device";
 * or "memset". */
void copy_text(const struct accumulator *f, const struct event *e, char out[COPY_TEXT]);

/* Tests whether a level grows from step to step by more than its noise (DEFINITIONS.md 8, leak). */

struct growth_step {
	uint64_t begin_ns, least, most; /* bytes */
};
struct growth {
	double slope, error; /* bytes per step of `least`; 0 for fewer than three steps */
	uint64_t spikes;     /* steps whose `most` is over 1.2 times the (lower) median */
};
/* Fits a line by least squares to the steps in time order, as if equally spaced. The error includes
 * the lag-1 correlation r of the residuals by the factor sqrt((1 + r) / (1 - r)). Reorders the
 * steps. */
struct growth growth_fit(struct growth_step *steps, size_t n);

/* A report for rules: how long the threads of a rank communicate, and how long Python's garbage
 * collector runs (DEFINITIONS.md 7). No format prints its table `host_time`. */

/* Time in counted steps in which the condition holds on any thread of the rank. */
#define HOST_COLUMNS(X)                                                                            \
	X(HOST_COMM = RANK_KEYS, "comm_ns", NULL, U64, SUM, "time of a collective on the host")    \
	X(HOST_COMM_COUNT, "comm_count", NULL, U64, SUM, "such collectives, in steps or not")      \
	X(HOST_EXPOSED, "exposed_ns", NULL, U64, SUM, "comm_ns without other open operators")      \
	X(HOST_GC, "gc_ns", NULL, U64, SUM, "time of Python's garbage collector")
enum { HOST_COLUMNS(COLUMN_PLACE) };
extern const struct report_type report_host;

/* Waiting in matched collectives, over the windows in ns; divide by the steps of a rank for a step.
 * The last rank is named only if the next one came earlier by more than noise. */
struct waiting {
	size_t ranks;                /* ranks that communicate */
	uint64_t matched;            /* matched collectives of a rank */
	double wait_ns;              /* sum over all ranks */
	double mean_exposed_wait_ns; /* mean over the ranks */
	/* greatest exposed_excess_ns of a rank: upper bound of the gain if all ranks were as
	 * early */
	double most_excess_ns;
	/* The rank for which arriving with the next one would save most; NULL: none. */
	const union value *culprit; /* row of `waits` */
	double saving_ns;           /* upper bound of the job's gain by that */
	double late_ns, made_wait_ns;
	uint64_t times_last;
};
struct waiting waiting_of(struct tables *all);
