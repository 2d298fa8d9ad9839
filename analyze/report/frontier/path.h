/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - what frontier_finish() works on: sync points, the path through them, and the
 * time of one rank at a time.  Borrows from the tables; one thread.
 */
#pragma once

#include "analyze/report/frontier/frontier.h"

struct sync_point {
	uint64_t step, ns, total_ns; /* ns: from the one before; total: of the whole path to it */
	uint32_t member, interval, place, culprit; /* of the rank that came last; its interval */
	uint32_t nth; /* of the steps of its number, where all inputs have that as often; else 0 */
	uint32_t before;      /* NO_ID: its path begins here */
	uint32_t root, group; /* group: of those that ranks went through one after the other */
	uint32_t same;        /* ranks for which `before` was the one before */
	bool is_seen, is_open, is_done, is_on_path, is_counted;
};
struct arrival { /* of an interval, at its place */
	uint32_t interval, place, sync_point;
};
struct kind_of {
	const char *phase, *kind; /* texts of the tables: equal ones are one */
};
struct share { /* of a culprit and kind */
	uint64_t ns;
	double mean_ns;
};
struct spans { /* rows of an interval */
	size_t first, end;
};
struct frontier_path {
	struct tables *all;
	struct coll_matches matches;
	struct sync_point *sync_points;
	size_t sync_point_count, sync_point_cap;
	struct arrival *arrivals;
	size_t arrival_count, arrival_cap;
	struct spans *spans; /* by interval */
	uint32_t *columns;   /* by member, and of nobody: place in shares + 1 */
	size_t column_count;
	struct kind_of *kinds;
	size_t kind_count;
	struct share *shares;               /* [column][kind] */
	uint64_t sums[FRONTIER_PLACES + 1]; /* of the places before */
	uint64_t windows[FRONTIER_PLACES];
	size_t places; /* of the interval looked at */
	uint64_t left_out, steps;
};

static inline bool same_step(const struct sync_point *a, const struct sync_point *b)
{
	return a->step == b->step && a->nth == b->nth;
}

/*
 * The arrivals [*first, *end) of the next interval, *end 0 before the first: loads the windows of
 * that interval and how many places it has, which all below need.  False: there are no more.
 */
bool path_next_interval(struct frontier_path *w, size_t *first, size_t *end);
/* The sums of one row of time, or added to those before. */
void path_sums(struct frontier_path *w, size_t row, bool add);
/* By the sums: from the end of the sync point before to the end of this one. */
uint64_t path_between(const struct frontier_path *w, const struct arrival *before,
		      const struct arrival *v);
/* Whether `before` is in the same window and the time of both is there. */
bool path_follows(const struct frontier_path *w, const struct arrival *before,
		  const struct arrival *v);
/* Fills the tables from the sync points that are counted. */
enum status path_put(struct frontier_path *w, struct error *err);
