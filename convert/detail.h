/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detail.h - the level of detail: what an output under --max-size leaves out.
 *
 * A level has a floor: an event at least that long is kept as it is.  Shorter neighbours of one
 * track, with gaps under the floor between them, become one event of each kind that stands for
 * them, EVENT_STANDS_FOR, with their number and the sum of their durations as arguments: sums by
 * track and kind are the same before and after.  Steps, phases and profiler spans are always kept,
 * counters and pools keep the least and the most of each cell of time.  Between a level and the
 * next a part of the time has the one and the rest the other, in short stretches side by side:
 * traces whose events are all alike would else be whole at one level and nothing at the next.
 *
 * Names and shapes of such events are new, and tables come first (trace.h): the stage reads all
 * below it when it is opened and holds what is left in a spool.  It stands above all other stages.
 */
#ifndef CONVERT_DETAIL_H
#define CONVERT_DETAIL_H

#include "convert/source.h"

enum {
	DETAIL_LEVELS = 252, /* 0: everything is kept */
	DETAIL_FINE = 64,    /* parts of time between a level and the next */
	DETAIL_MOST = (DETAIL_LEVELS - 1) * DETAIL_FINE,
};

/* Arguments of an event that stands for others. */
#define DETAIL_COUNT_KEY "stands_for"
#define DETAIL_SUM_KEY "sum_ns"
#define DETAIL_LONGEST_KEY "longest_ns"
/* Attribute of a process, a text: what became of its events. */
#define DETAIL_NOTE_KEY "tacho.max_size"

uint64_t detail_floor_ns(unsigned level);
enum { DETAIL_TEXT = 32 };
const char *detail_put_time(uint64_t ns, char out[DETAIL_TEXT]); /* "98.3 us" */

/* How many events each level would leave, of one pass over all of them. */
struct detail_count;
enum status detail_count_new(struct detail_count **out, const struct trace *trace,
			     struct error *err);
void detail_count_free(struct detail_count *c); /* accepts NULL */
enum status detail_count_put(struct detail_count *c, const struct event *events, size_t count,
			     struct error *err);
struct detail_left {
	uint64_t kept, made; /* as they were; to stand for others */
};
/* Of a process; 0: of all.  `fine`: a level in parts of DETAIL_FINE. */
struct detail_left detail_count_at(const struct detail_count *c, uint32_t process, unsigned fine);
struct detail_cost {
	double kept, made; /* bytes of an event */
};
double detail_cost(const struct detail_left *left, struct detail_cost cost);
/* The least fine level above `fine` that costs at most `most`; DETAIL_MOST when none does. */
unsigned detail_count_pick(const struct detail_count *c, uint32_t process, unsigned fine,
			   struct detail_cost cost, double most);

struct detail_request {
	/* By process, in parts of DETAIL_FINE, [0] for those beyond; over DETAIL_MOST: leave out the
	 * process, uncounted.  Borrowed until close. */
	const uint16_t *levels;
	uint32_t level_count;
	size_t name_bytes; /* that names with numbers may take */
	struct source *step; /* the stage below that has stretches; NULL: none */
	const struct budget *budget;
};
struct detail_totals {
	uint64_t in, kept, merged, into;
	uint64_t arrows; /* whose other end was merged */
	uint64_t dropped; /* ends of such that were events of their own */
	uint64_t floor_ns, highest_ns; /* the least and the highest floor of them */
};
/* Owns `below` from here on, even on failure.  A fault below comes again after what was read. */
enum status detail_open(struct source **out, struct source *below, struct trace *trace,
			const struct detail_request *how, struct error *err);
/* Of one process; 0: of all. */
struct detail_totals detail_totals(const struct source *s, uint32_t process);

#endif
