/* SPDX-License-Identifier: Apache-2.0 */
/* Whose time the job's time was, and what it was: the tables of the frontier. */
#include "analyze/frontier/way.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_STEPS = 1 << 10 /* of more the pieces are not told apart */, KINDS_MOST = 1 << 10 };

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for the frontier of the ranks");
}

static bool is_counted(const struct way *w, const struct visit *v, size_t first)
{
	const struct meeting *m = &w->meetings[v->meeting];

	return v > &w->visits[first] && m->is_counted && m->before == v[-1].meeting &&
	       way_follows(w, v - 1, v);
}

static void same_count(struct way *w)
{
	size_t first, end, i;

	for (first = 0; first < w->visit_count; first = end) {
		end = way_stretch_end(w, first);
		way_windows(w, w->visits[first].stretch);
		for (i = first; i < end; i++) {
			const struct visit *v = &w->visits[i];

			w->meetings[v->meeting].same += is_counted(w, v, first);
		}
	}
}

static enum status columns_find(struct way *w, struct error *err)
{
	size_t i, members = w->meets.member_count;

	w->columns = calloc(members + 1, sizeof(*w->columns));
	w->kinds = calloc(KINDS_MOST, sizeof(*w->kinds));
	if (!w->columns || !w->kinds)
		return no_memory(err);
	for (i = 0; i < w->meeting_count; i++) {
		const struct meeting *m = &w->meetings[i];
		uint32_t *column = &w->columns[m->culprit == NO_ID ? members : m->culprit];

		if (m->is_counted && !*column)
			*column = (uint32_t)++w->column_count;
	}
	w->shares = calloc((w->column_count + 1) * KINDS_MOST, sizeof(*w->shares));
	return w->shares ? ST_OK : no_memory(err);
}

/* Past the ceiling all are the last. */
static size_t kind_find(struct way *w, const char *phase, const char *kind)
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

static struct share *share_of(const struct way *w, const struct meeting *m, size_t kind)
{
	size_t of = m->culprit == NO_ID ? w->meets.member_count : m->culprit;

	return &w->shares[(w->columns[of] - 1) * (size_t)KINDS_MOST + kind];
}

static void culprit_keys(const struct way *w, const struct meeting *m, union value *keys)
{
	keys[0].u64 = keys[2].u64 = NO_U64;
	keys[1].text = NULL;
	if (m->culprit != NO_ID)
		memcpy(keys, w->meets.members[m->culprit], RANK_KEYS * sizeof(*keys));
}

static enum status put_piece(struct way *w, const struct meeting *m, const struct kind_of *kind,
			     uint64_t ns, struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_pieces");
	union value keys[FRONTIER_PIECE_NS], *row;

	if (w->steps > PIECE_STEPS)
		return ST_OK;
	keys[0].u64 = m->step;
	culprit_keys(w, m, &keys[FRONTIER_PIECE_RANK]);
	keys[FRONTIER_PIECE_PHASE].text = kind->phase;
	keys[FRONTIER_PIECE_KIND].text = kind->kind;
	TRY(table_row(t, keys, &row, err));
	row[FRONTIER_PIECE_NS].u64 = (row[FRONTIER_PIECE_NS].u64 == NO_U64
				      ? 0 : row[FRONTIER_PIECE_NS].u64) + ns;
	return ST_OK;
}

static enum status share_row(struct way *w, size_t row, size_t first, size_t end,
			     struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	const union value *of = table_at(t, row);
	size_t kind = kind_find(w, of[SPANS_PHASE].text, of[SPANS_KIND].text), i;

	way_sums(w, row, false);
	for (i = first; i < end; i++) {
		const struct visit *v = &w->visits[i];
		const struct meeting *m = &w->meetings[v->meeting];
		uint64_t ns;

		if (!is_counted(w, v, first))
			continue;
		ns = way_between(w, v - 1, v);
		if (!ns)
			continue;
		share_of(w, m, kind)->mean_ns += (double)ns / m->same;
		if (m->stretch != v->stretch)
			continue;
		share_of(w, m, kind)->ns += ns;
		TRY(put_piece(w, m, &w->kinds[kind], ns, err));
	}
	return ST_OK;
}

static enum status shares_take(struct way *w, struct error *err)
{
	size_t first, end, row;

	for (first = 0; first < w->visit_count; first = end) {
		const struct spans *spans = &w->spans[w->visits[first].stretch];

		end = way_stretch_end(w, first);
		way_windows(w, w->visits[first].stretch);
		for (row = spans->first + 1; row < spans->end; row++)
			TRY(share_row(w, row, first, end, err));
	}
	return ST_OK;
}

/* ---- tables ----------------------------------------------------------------------------- */

static enum status put_steps(struct way *w, uint64_t *ns, uint64_t *named_ns, uint64_t *meetings,
			     struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_steps");
	union value key, *row;
	size_t i;

	for (i = 0; i < w->meeting_count; i++) {
		const struct meeting *m = &w->meetings[i];

		if (!m->is_counted)
			continue;
		*ns += m->ns;
		*named_ns += m->culprit == NO_ID ? 0 : m->ns;
		++*meetings;
		w->steps += !same_step(m, &w->meetings[m->before]);
		key.u64 = m->step;
		TRY(table_row(t, &key, &row, err));
		if (row[FRONTIER_STEP_NS].u64 == NO_U64)
			row[FRONTIER_STEP_NS].u64 = row[FRONTIER_STEP_MEETINGS].u64 = 0;
		row[FRONTIER_STEP_NS].u64 += m->ns;
		row[FRONTIER_STEP_MEETINGS].u64++;
	}
	w->steps = w->steps ? w->steps : 1; /* a part of one */
	return ST_OK;
}

static enum status put_shares(struct way *w, const struct meeting *m, uint64_t whole_ns,
			      struct error *err)
{
	struct table *t = tables_find(w->all, "frontier");
	union value keys[FRONTIER_KEYS], *row;
	size_t i;

	culprit_keys(w, m, keys);
	for (i = 0; i < w->kind_count; i++) {
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

enum status way_put(struct way *w, struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_total");
	uint64_t ns = 0, named_ns = 0, meetings = 0;
	union value key, *row;
	size_t i;

	same_count(w);
	TRY(columns_find(w, err));
	TRY(put_steps(w, &ns, &named_ns, &meetings, err));
	if (!meetings)
		return ST_OK;
	TRY(shares_take(w, err));
	key.u64 = w->steps;
	TRY(table_row(t, &key, &row, err));
	row[FRONTIER_TOTAL_MEETINGS].u64 = meetings;
	row[FRONTIER_TOTAL_NS].u64 = ns;
	row[FRONTIER_TOTAL_PER_STEP].u64 = ns / w->steps;
	row[FRONTIER_TOTAL_NAMED].u64 = named_ns;
	row[FRONTIER_TOTAL_LEFT_OUT].u64 = w->left_out;
	for (i = 0; i < w->meeting_count; i++)
		if (w->meetings[i].is_counted)
			TRY(put_shares(w, &w->meetings[i], ns, err));
	return ST_OK;
}
