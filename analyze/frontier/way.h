/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier/way.h - what frontier_finish() works on: meetings, the way through them, and the
 * time of one rank at a time.  Borrows from the tables; one thread.
 */
#ifndef ANALYZE_REPORT_FRONTIER_WAY_H
#define ANALYZE_REPORT_FRONTIER_WAY_H

#include "analyze/report_frontier.h"

struct meeting {
	uint64_t step, ns, total_ns; /* ns: from the one before; total: of the whole way to it */
	uint32_t member, stretch, place, culprit; /* of the rank that came last; its stretch */
	uint32_t nth;    /* of the steps of its number, where all inputs have that as often; else 0 */
	uint32_t before; /* NO_ID: its way begins here */
	uint32_t root, group; /* group: of those that ranks went through one after the other */
	uint32_t same; /* ranks for which `before` was the one before */
	bool is_seen, is_open, is_done, is_on_way, is_counted;
};
struct visit { /* of a stretch, at its place */
	uint32_t stretch, place, meeting;
};
struct kind_of {
	const char *phase, *kind; /* texts of the tables: equal ones are one */
};
struct share { /* of a culprit and kind */
	uint64_t ns;
	double mean_ns;
};
struct spans { /* rows of a stretch */
	size_t first, end;
};
struct way {
	struct tables *all;
	struct meets meets;
	struct meeting *meetings;
	size_t meeting_count, meeting_cap;
	struct visit *visits;
	size_t visit_count, visit_cap;
	struct spans *spans; /* by stretch */
	uint32_t *columns;   /* by member, and of nobody: place in shares + 1 */
	size_t column_count;
	struct kind_of *kinds;
	size_t kind_count;
	struct share *shares; /* [column][kind] */
	uint64_t sums[FRONTIER_PLACES + 1]; /* of the places before */
	uint64_t windows[FRONTIER_PLACES];
	size_t places; /* of the stretch looked at */
	uint64_t left_out, steps;
};

static inline bool same_step(const struct meeting *a, const struct meeting *b)
{
	return a->step == b->step && a->nth == b->nth;
}

/* Of all stretches: past the last visit of the one that begins at visit `first`. */
size_t way_stretch_end(const struct way *w, size_t first);
/* The windows of a stretch, and how many places it has: what all below asks of it. */
void way_windows(struct way *w, size_t stretch);
/* The sums of one row of time, or added to those before. */
void way_sums(struct way *w, size_t row, bool add);
/* By the sums: from the end of the meeting before to the end of this one. */
uint64_t way_between(const struct way *w, const struct visit *before, const struct visit *v);
/* The meeting that the rank had before, in the same window, and of both the time is there. */
bool way_follows(const struct way *w, const struct visit *before, const struct visit *v);
/* Fills the tables from the meetings that are counted. */
enum status way_put(struct way *w, struct error *err);

#endif
