/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - data of frontier_finish(): sync points, the path through them, and the times of one rank
 * at a time. Borrows from the tables; one thread.
 */
#pragma once

#include "analyze/report/frontier/frontier.h"

struct sync_point {
	/* ns: since the previous sync point; total_ns: of the whole path to it */
	uint64_t step, ns, total_ns;
	uint32_t member, interval, place, culprit; /* member, interval and place of the last rank */
	/* number of earlier steps with its number, if all inputs have equally many; otherwise 0 */
	uint32_t nth;
	uint32_t before;      /* previous sync point on the path; NO_ID: none */
	uint32_t root, group; /* group: of sync points that are connected by ranks */
	uint32_t same;        /* number of ranks for which `before` was the previous one */
	bool is_seen, is_open, is_done, is_on_path, is_counted;
};
struct arrival { /* place of a rank's interval at a sync point */
	uint32_t interval, place, sync_point;
};
struct kind_of {
	const char *phase, *kind; /* owned by the tables, so equal texts have equal addresses */
};
struct share { /* time of a culprit and kind */
	uint64_t ns;
	double mean_ns;
};
struct spans { /* range of rows of an interval */
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
	uint32_t *columns;   /* by member, and for no member: index in `shares`, + 1 */
	size_t column_count;
	struct kind_of *kinds;
	size_t kind_count;
	struct share *shares;               /* [column][kind] */
	uint64_t sums[FRONTIER_PLACES + 1]; /* sums over the places before */
	uint64_t windows[FRONTIER_PLACES];
	size_t places; /* number of places in the current interval */
	uint64_t left_out, steps;
};

static inline bool same_step(const struct sync_point *a, const struct sync_point *b)
{
	return a->step == b->step && a->nth == b->nth;
}

/* Advances to the arrivals [*first, *end) of the next interval; *end is 0 before the first. Loads
 * the windows of that interval and its number of places, which the functions below need. False:
 * there are no more. */
bool path_next_interval(struct frontier_path *w, size_t *first, size_t *end);
/* Computes the sums of one row of time, or adds them to the previous ones. */
void path_sums(struct frontier_path *w, size_t row, bool add);
/* Returns by the sums the time from the end of the sync point before to the end of this one. */
uint64_t path_between(const struct frontier_path *w, const struct arrival *before,
		      const struct arrival *v);
/* Returns whether `before` is in the same window and the times of both were kept. */
bool path_follows(const struct frontier_path *w, const struct arrival *before,
		  const struct arrival *v);
/* Fills the tables from the counted sync points. */
enum status path_put(struct frontier_path *w, struct error *err);
