/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lod.h - the level of detail: what an output under --max-size leaves out.
 *
 * Each process has one threshold, a minimum duration.  An event at least that long is kept as it
 * is.  Shorter neighbours of one track, with gaps under the threshold between them, are merged into
 * one event of each kind that stands for them, EVENT_STANDS_FOR, with their number and the sum of
 * their durations as arguments: sums by track and kind are the same before and after.  Steps,
 * phases and profiler spans are always kept.  Counters keep the least and the most value of each
 * interval of 16 thresholds, allocators what they were left with and their peak.
 *
 * From one part of the time to another the threshold differs by up to an eighth.  Otherwise a trace
 * whose events all have one length would be kept whole at one threshold and vanish at the next.
 *
 * Names and schemas of merged events are new, and tables come first (trace.h): the stage reads all
 * below it when it is opened and holds what is left in a spool.  It stands above all other stages.
 */
#pragma once

#include "convert/source/source.h"

/* The highest threshold: all but what is always kept is merged. */
#define LOD_MOST_NS (UINT64_MAX / 32)
/* In place of a threshold: events of the process are left out, and not counted. */
#define LOD_LEAVE_OUT UINT64_MAX

/* Arguments of an event that stands for others. */
#define LOD_COUNT_KEY   "stands_for"
#define LOD_SUM_KEY     "sum_ns"
#define LOD_LONGEST_KEY "longest_ns"
/* Attribute of a process, a text: what became of its events. */
#define LOD_NOTE_KEY "tacho.max_size"

/* The duration that is compared with the threshold; UINT64_MAX: the event is always kept. */
uint64_t lod_length_ns(const struct event *e);
/* The threshold at an instant, and the duration from which on all events are kept. */
uint64_t lod_threshold_ns(uint64_t min_ns, uint64_t at_ns);
uint64_t lod_all_from_ns(uint64_t min_ns);

enum { LOD_TEXT = 32 };
const char *lod_put_time(uint64_t ns, char out[LOD_TEXT]); /* "98.3 us" */

struct lod_request {
	const uint64_t *min_ns; /* threshold by process; 0: all is kept; borrowed until close */
	uint32_t count;         /* of min_ns; processes beyond have min_ns[0] */
	const struct budget *budget;
};
struct lod_totals {
	uint64_t in, kept, merged, into;
	uint64_t arrows;         /* whose other end was merged */
	uint64_t dropped;        /* ends of such arrows that were events of their own */
	uint64_t from_ns, to_ns; /* all events are kept from here on; least and most of files */
};
/* Owns `below` from here on, even on failure.  A fault below is returned after what was read. */
enum status lod_open(struct source **out, struct source *below, struct trace *trace,
		     const struct lod_request *how, struct error *err);
/* The totals of one process; 0: of all. */
struct lod_totals lod_totals(const struct source *s, uint32_t process);
