/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes the job's time to ranks and kinds: the tables of the frontier. */
#include "analyze/report/frontier/path.h"

#include "schemas/base/vec.h"

#include <math.h>

enum { PART_STEPS = 1 << 10 /* limit of steps with details */, KINDS_MOST = 1 << 10 };

static bool is_counted(const struct frontier_path *w, const struct arrival *v, size_t first)
{
	const struct sync_point *m = &w->sync_points[v->sync_point];

	return v > &w->arrivals[first] && m->is_counted && m->before == v[-1].sync_point &&
	       path_follows(w, v - 1, v);
}

/* Returns the index of a kind; beyond the limit that of the last one. */
static size_t kind_find(struct frontier_path *w, const char *phase, const char *kind)
{
	size_t i;

	for (i = 0; i < w->kind_count; i++)
		if (w->kinds[i].phase == phase && w->kinds[i].kind == kind)
			return i;
	if (w->kind_count == KINDS_MOST)
		return KINDS_MOST - 1;
	w->kinds[w->kind_count++] = (struct kind_of){ phase, kind };
	return i;
}

static struct share *share_of(const struct frontier_path *w, const struct sync_point *m,
			      size_t kind)
{
	size_t of = m->culprit == NO_ID ? w->matches.member_count : m->culprit;

	return &w->shares[(w->columns[of] - 1) * (size_t)KINDS_MOST + kind];
}

static void culprit_keys(const struct frontier_path *w, const struct sync_point *m,
			 union value *keys)
{
	keys[0].u64 = keys[2].u64 = NO_U64;
	keys[1].text = NULL;
	if (m->culprit != NO_ID)
		memcpy(keys, w->matches.members[m->culprit], RANK_KEYS * sizeof(*keys));
}

static enum status put_part(struct frontier_path *w, const struct sync_point *m,
			    const struct kind_of *kind, uint64_t ns, struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_pieces");
	union value keys[FRONTIER_PART_NS], *row;

	if (w->steps > PART_STEPS)
		return ST_OK;
	keys[0].u64 = m->step;
	culprit_keys(w, m, &keys[FRONTIER_PART_RANK]);
	keys[FRONTIER_PART_PHASE].text = kind->phase;
	keys[FRONTIER_PART_KIND].text = kind->kind;
	TRY(table_row(t, keys, &row, err));
	row[FRONTIER_PART_NS].u64 =
		(row[FRONTIER_PART_NS].u64 == NO_U64 ? 0 : row[FRONTIER_PART_NS].u64) + ns;
	return ST_OK;
}

static enum status share_row(struct frontier_path *w, size_t row, size_t first, size_t end,
			     struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	const union value *of = table_at(t, row);
	size_t kind = kind_find(w, of[SPANS_PHASE].text, of[SPANS_KIND].text);

	path_sums(w, row, false);
	for (size_t i = first; i < end; i++) {
		const struct arrival *v = &w->arrivals[i];
		const struct sync_point *m = &w->sync_points[v->sync_point];

		if (!is_counted(w, v, first))
			continue;
		uint64_t ns = path_between(w, v - 1, v);
		if (!ns)
			continue;
		share_of(w, m, kind)->mean_ns += (double)ns / m->same;
		if (m->interval != v->interval)
			continue;
		share_of(w, m, kind)->ns += ns;
		TRY(put_part(w, m, &w->kinds[kind], ns, err));
	}
	return ST_OK;
}

/* ---- tables ----------------------------------------------------------------------------- */

static enum status put_shares(struct frontier_path *w, const struct sync_point *m,
			      uint64_t whole_ns, struct error *err)
{
	struct table *t = tables_find(w->all, "frontier");
	union value keys[FRONTIER_KEYS], *row;

	culprit_keys(w, m, keys);
	for (size_t i = 0; i < w->kind_count; i++) {
		const struct share *s = share_of(w, m, i);

		if (!s->ns)
			continue;
		keys[FRONTIER_PHASE].text = w->kinds[i].phase;
		keys[FRONTIER_KIND].text = w->kinds[i].kind;
		TRY(table_row(t, keys, &row, err));
		row[FRONTIER_NS].u64 = s->ns;
		row[FRONTIER_PER_STEP].u64 = s->ns / w->steps;
		row[FRONTIER_SHARE].f64 = percent_of(s->ns, whole_ns);
		row[FRONTIER_MEAN].u64 = (uint64_t)llround(s->mean_ns / (double)w->steps);
	}
	return ST_OK;
}

enum status path_put(struct frontier_path *w, struct error *err)
{
	struct table *steps = tables_find(w->all, "frontier_steps");
	uint64_t ns = 0, named_ns = 0, sync_points = 0;
	size_t members = w->matches.member_count, first, end = 0;
	union value key, *row;

	while (path_next_interval(w, &first, &end))
		for (size_t i = first; i < end; i++)
			w->sync_points[w->arrivals[i].sync_point].same +=
				is_counted(w, &w->arrivals[i], first);
	TRY(vec_new(&w->columns, members + 1, err));
	TRY(vec_new(&w->kinds, KINDS_MOST, err));
	for (size_t i = 0; i < w->sync_point_count; i++) {
		const struct sync_point *m = &w->sync_points[i];
		uint32_t *column = &w->columns[m->culprit == NO_ID ? members : m->culprit];

		if (!m->is_counted)
			continue;
		if (!*column)
			*column = (uint32_t)++w->column_count;
		ns += m->ns;
		named_ns += m->culprit == NO_ID ? 0 : m->ns;
		sync_points++;
		w->steps += !same_step(m, &w->sync_points[m->before]);
		key.u64 = m->step;
		TRY(table_row(steps, &key, &row, err));
		if (row[FRONTIER_STEP_NS].u64 == NO_U64)
			row[FRONTIER_STEP_NS].u64 = row[FRONTIER_STEP_SYNC_POINTS].u64 = 0;
		row[FRONTIER_STEP_NS].u64 += m->ns;
		row[FRONTIER_STEP_SYNC_POINTS].u64++;
	}
	w->steps = w->steps ? w->steps : 1; /* a part of one step */
	TRY(vec_new(&w->shares, (w->column_count + 1) * KINDS_MOST, err));
	if (!sync_points)
		return ST_OK;
	for (end = 0; path_next_interval(w, &first, &end);) {
		const struct spans *spans = &w->spans[w->arrivals[first].interval];

		for (size_t i = spans->first + 1; i < spans->end; i++)
			TRY(share_row(w, i, first, end, err));
	}
	key.u64 = w->steps;
	TRY(table_row(tables_find(w->all, "frontier_total"), &key, &row, err));
	row[FRONTIER_TOTAL_SYNC_POINTS].u64 = sync_points;
	row[FRONTIER_TOTAL_NS].u64 = ns;
	row[FRONTIER_TOTAL_PER_STEP].u64 = ns / w->steps;
	row[FRONTIER_TOTAL_NAMED].u64 = named_ns;
	row[FRONTIER_TOTAL_LEFT_OUT].u64 = w->left_out;
	for (size_t i = 0; i < w->sync_point_count; i++)
		if (w->sync_points[i].is_counted)
			TRY(put_shares(w, &w->sync_points[i], ns, err));
	return ST_OK;
}
