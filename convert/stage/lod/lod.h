/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lod.h - the level of detail, which merges short events under --max-size.
 *
 * Each process has one threshold, a minimum duration.  An event of at least that duration is kept.
 * Shorter neighbours of one track, with gaps below the threshold between them, are merged into one
 * event of each kind with the flag EVENT_STANDS_FOR and with their number and the sum of their
 * durations as arguments, so sums by track and kind do not change.  Steps, phases and profiler
 * spans are always kept.  Counters keep the least and the greatest value of each interval of 16
 * thresholds, allocators their last value and their peak.
 *
 * The threshold varies over time by up to an eighth.  Otherwise a trace whose events all have one
 * duration would be kept whole at one threshold and merged completely at the next.
 *
 * Names and schemas of merged events are new, and tables have to be complete first (trace.h), so
 * the stage reads its whole input when it is opened and keeps the result in a spool.  It is the
 * last stage.
 */
#pragma once

#include "convert/source/source.h"

/* The highest threshold, at which only events that are always kept are not merged. */
#define LOD_MOST_NS (UINT64_MAX / 32)
/* This value instead of a threshold leaves out all events of a process without counting them. */
#define LOD_LEAVE_OUT UINT64_MAX

/* Names of the arguments of an event that stands for others. */
#define LOD_COUNT_KEY   "stands_for"
#define LOD_SUM_KEY     "sum_ns"
#define LOD_LONGEST_KEY "longest_ns"
/* Name of a text attribute of a process, which describes what became of its events. */
#define LOD_NOTE_KEY "tacho.max_size"

/* Returns the duration to compare with the threshold; UINT64_MAX: the event is always kept. */
uint64_t lod_length_ns(const struct event *e);
/* Returns the threshold at an instant: events of at least this duration are kept. */
uint64_t lod_threshold_ns(uint64_t min_ns, uint64_t at_ns);
uint64_t lod_all_from_ns(uint64_t min_ns);

enum { LOD_TEXT = 32 };
const char *lod_put_time(uint64_t ns, char out[LOD_TEXT]); /* "98.3 us" */

struct lod_request {
	const uint64_t *min_ns; /* threshold by process; 0: keep all; borrowed until close */
	uint32_t count;         /* length of min_ns; other processes use min_ns[0] */
	const struct budget *budget;
};
struct lod_totals {
	uint64_t in, kept, merged, into;
	uint64_t arrows;  /* arrows whose other end was merged */
	uint64_t dropped; /* events that were only an end of such an arrow */
	uint64_t from_ns,
		to_ns; /* events this long are all kept: least and greatest of the processes */
};
/* Opens the stage, which owns `below`, even on failure.  An error of `below` is returned after
 * everything that was read before it. */
enum status lod_open(struct source **out, struct source *below, struct trace *trace,
		     const struct lod_request *how, struct error *err);
/* Returns the totals of one process, or of all processes for 0. */
struct lod_totals lod_totals(const struct source *s, uint32_t process);
