/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the frontier over all ranks (DEFINITIONS.md 7).
 *
 * A matched collective is a sync point. Its predecessor is the previous one of the rank that came
 * last. So sync points form trees, and the longest path of each window is the job's time. Each
 * rank's time is unpacked twice: to find lengths, and to add up what lies on the path.
 */
#include "analyze/report/frontier/path.h"

#include "schemas/base/vec.h"
#include "schemas/base/sort.h"

#include <stdlib.h>

/* ---- sync points ------------------------------------------------------------------------ */

static enum status take_arrival(void *self, const struct matched_call *one, struct error *err)
{
	struct frontier_path *w = self;
	uint32_t number = one->match->number;

	TRY(vec_reserve(&w->sync_points, &w->sync_point_cap, number + (size_t)1, err));
	w->sync_point_count = number >= w->sync_point_count ? number + 1 : w->sync_point_count;
	if (one->call->place >= FRONTIER_PLACES) {
		w->left_out++;
		return ST_OK;
	}
	TRY(vec_reserve(&w->arrivals, &w->arrival_cap, w->arrival_count + 1, err));
	w->arrivals[w->arrival_count++] =
		(struct arrival){ one->ref->interval, (uint32_t)one->call->place, number };
	if (one->ref->member != one->match->least)
		return ST_OK;
	struct sync_point *m = &w->sync_points[number];
	m->is_seen = true;
	m->step = one->ref->row[EVENTS_STEP].u64;
	m->nth = one->ref->is_even ? one->ref->nth : 0;
	m->member = one->ref->member;
	m->interval = one->ref->interval;
	m->place = (uint32_t)one->call->place;
	m->culprit = match_culprit(one->match);
	return ST_OK;
}

/* ---- the time of a rank ----------------------------------------------------------------- */

/* Finds the rows of each interval. Both tables are sorted by rank. */
static enum status spans_find(struct frontier_path *w, struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	size_t count = table_count(t), end, at = 0, k;

	TRY(vec_new(&w->spans, w->matches.interval_count, err));
	for (size_t first = 0; first < count; first = end) {
		const union value *row = table_at(t, first);

		end = table_group_end(t, first, SPANS_FROM + 1);
		for (k = at; k < w->matches.interval_count; k++)
			if (!memcmp(row, w->matches.intervals[k], (SPANS_FROM + 1) * sizeof(*row)))
				break;
		if (k == w->matches.interval_count)
			continue;
		w->spans[k] = (struct spans){ first, end };
		at = k + 1;
	}
	return ST_OK;
}

void path_sums(struct frontier_path *w, size_t row, bool add)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	const char *packed = table_at(t, row)[SPANS_PACKED].text;
	struct packed_list list = { 0, 0 };
	uint64_t sum = 0, ns;

	if (!add)
		w->sums[0] = 0;
	for (size_t i = 0; i < w->places; i++) {
		list_take(&packed, &list, &ns);
		sum += ns;
		w->sums[i + 1] = sum + (add ? w->sums[i + 1] : 0);
	}
}

uint64_t path_between(const struct frontier_path *w, const struct arrival *before,
		      const struct arrival *v)
{
	return w->sums[v->place + 1] - w->sums[before->place + 1];
}

static uint32_t group_of(struct frontier_path *w, uint32_t sync_point)
{
	while (w->sync_points[sync_point].group != sync_point) {
		struct sync_point *m = &w->sync_points[sync_point];

		m->group = w->sync_points[m->group].group;
		sync_point = m->group;
	}
	return sync_point;
}

bool path_next_interval(struct frontier_path *w, size_t *first, size_t *end)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	size_t at = *first = *end;

	if (at == w->arrival_count)
		return false;
	while (*end < w->arrival_count && w->arrivals[*end].interval == w->arrivals[at].interval)
		++*end;
	/* The row of windows comes first, because its texts are empty. */
	const struct spans *spans = &w->spans[w->arrivals[at].interval];
	w->places = 0;
	if (spans->first == spans->end)
		return true;
	const char *packed = table_at(t, spans->first)[SPANS_PACKED].text;
	while (packed && *packed && w->places < FRONTIER_PLACES)
		w->windows[w->places++] = packed_take(&packed);
	return true;
}

bool path_follows(const struct frontier_path *w, const struct arrival *before,
		  const struct arrival *v)
{
	return v->place < w->places && before->place < v->place &&
	       w->windows[before->place] == w->windows[v->place] &&
	       w->sync_points[before->sync_point].is_seen && w->sync_points[v->sync_point].is_seen;
}

/* ---- the longest path ------------------------------------------------------------------- */

/* Computes the lengths from the root on. If ranks disagree on the order, the path ends where it
 * would be a cycle. */
static void total_find(struct frontier_path *w, uint32_t number, uint32_t *stack)
{
	size_t depth = 0;
	struct sync_point *m;

	while (!w->sync_points[number].is_done) {
		m = &w->sync_points[number];
		m->is_open = true;
		stack[depth++] = number;
		if (m->before != NO_ID && w->sync_points[m->before].is_open)
			m->before = NO_ID;
		if (m->before == NO_ID)
			break;
		number = m->before;
	}
	while (depth) {
		m = &w->sync_points[stack[--depth]];
		m->ns = m->before == NO_ID ? 0 : m->ns;
		m->root = m->before == NO_ID ? stack[depth] : w->sync_points[m->before].root;
		m->total_ns = m->ns;
		if (m->before != NO_ID)
			m->total_ns += w->sync_points[m->before].total_ns;
		m->is_open = false;
		m->is_done = true;
	}
}

/* Chooses the longest path of each group. Groups that run side by side, without a common rank, are
 * not added up: only those in which the last rank of the longest path takes part are used. */
static enum status paths_choose(struct frontier_path *w, struct error *err)
{
	uint32_t *best = malloc((w->sync_point_count + 1) * sizeof(*best));
	uint32_t longest = NO_ID;

	if (!best)
		return fail_memory(err);
	memset(best, 0xff, (w->sync_point_count + 1) * sizeof(*best));
	for (size_t i = 0; i < w->sync_point_count; i++) {
		const struct sync_point *m = &w->sync_points[i];

		if (!m->is_seen)
			continue;
		uint32_t group = group_of(w, (uint32_t)i);
		if (best[group] == NO_ID || m->total_ns > w->sync_points[best[group]].total_ns)
			best[group] = (uint32_t)i;
		if (longest == NO_ID || m->total_ns > w->sync_points[longest].total_ns)
			longest = (uint32_t)i;
	}
	for (size_t i = 0; i < w->arrival_count; i++) {
		const struct arrival *v = &w->arrivals[i];
		const union value *keys = w->matches.intervals[v->interval];

		if (w->sync_points[v->sync_point].is_seen &&
		    !memcmp(keys, w->matches.members[w->sync_points[longest].member],
			    (EVENTS_DEVICE + 1) * sizeof(*keys))) {
			uint32_t number = best[group_of(w, v->sync_point)];
			while (number != NO_ID && !w->sync_points[number].is_on_path) {
				w->sync_points[number].is_on_path = true;
				number = w->sync_points[number].before;
			}
		}
	}
	free(best);
	return ST_OK;
}

/* Marks the steps that are completely on the path: a window's time before its first sync point is
 * unknown. */
static void counted_mark(struct frontier_path *w)
{
	bool some = false;

	for (size_t pass = 0; pass < 2 && !some; pass++)
		for (size_t i = 0; i < w->sync_point_count; i++) {
			struct sync_point *m = &w->sync_points[i];
			bool is_later =
				m->step != NO_U64 && !same_step(m, &w->sync_points[m->root]);

			m->is_counted = m->is_on_path && m->before != NO_ID && (pass || is_later);
			some |= m->is_counted;
		}
}

static enum status path_run(struct frontier_path *w, struct error *err)
{
	struct match_range range = { 0 };
	size_t first, end = 0;
	bool more;

	TRY(matches_open(&w->matches, w->all, err));
	TRY(matches_next(&w->matches, &range, &more, err));
	while (more) {
		if (!range.why)
			TRY(matches_each(&w->matches, &range, take_arrival, w, err));
		TRY(matches_next(&w->matches, &range, &more, err));
	}
	SORT_BY(w->arrivals, w->arrival_count, UP(struct arrival, interval),
		UP(struct arrival, place), UP(struct arrival, sync_point));
	for (size_t i = 0; i < w->sync_point_count; i++) {
		w->sync_points[i].before = NO_ID;
		w->sync_points[i].group = (uint32_t)i;
	}
	if (!w->arrival_count)
		return ST_OK;
	TRY(spans_find(w, err));
	while (path_next_interval(w, &first, &end)) {
		memset(w->sums, 0, (w->places + 1) * sizeof(w->sums[0]));
		for (size_t row = w->spans[w->arrivals[first].interval].first + 1;
		     row < w->spans[w->arrivals[first].interval].end; row++)
			path_sums(w, row, true);
		for (size_t i = first; i < end; i++) {
			const struct arrival *v = &w->arrivals[i];
			struct sync_point *m = &w->sync_points[v->sync_point];

			w->left_out += v->place >= w->places;
			if (i == first || !path_follows(w, v - 1, v))
				continue;
			uint32_t a = v[-1].sync_point;
			uint32_t b = v->sync_point;
			a = group_of(w, a);
			b = group_of(w, b);
			if (a != b)
				w->sync_points[a < b ? b : a].group = a < b ? a : b;
			if (m->interval != v->interval || m->place != v->place)
				continue;
			m->before = v[-1].sync_point;
			m->ns = path_between(w, v - 1, v);
		}
	}
	uint32_t *stack;
	TRY(vec_new(&stack, w->sync_point_count, err));
	for (size_t i = 0; i < w->sync_point_count; i++)
		if (w->sync_points[i].is_seen)
			total_find(w, (uint32_t)i, stack);
	free(stack);
	TRY(paths_choose(w, err));
	counted_mark(w);
	return path_put(w, err);
}

enum status frontier_finish(struct tables *all, struct error *err)
{
	struct frontier_path *w;

	TRY(vec_new(&w, 1, err));
	w->all = all;
	enum status status = path_run(w, err);
	matches_release(&w->matches);
	free(w->sync_points);
	free(w->arrivals);
	free(w->spans);
	free(w->columns);
	free(w->kinds);
	free(w->shares);
	free(w);
	return status;
}
