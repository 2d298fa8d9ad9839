/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frontier over all ranks (DEFINITIONS.md 7).
 *
 * A matched collective is a meeting.  Before it lies, on the rank that came last, the meeting that
 * this rank had before: so meetings make trees, and of each window the longest way is the job's
 * time.  Each rank's time is unpacked once to find lengths and once to take what lies on the way.
 */
#include "analyze/frontier/way.h"

#include <stdlib.h>
#include <string.h>

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for the frontier of the ranks");
}

/* ---- meetings --------------------------------------------------------------------------- */

static enum status take_visit(void *self, const struct met_of *one, struct error *err)
{
	struct way *w = self;
	uint32_t number = one->meet->number;
	struct meeting *m = items_reach(w->meetings, &w->meeting_cap, number, sizeof(*m), err);
	struct visit *v;

	if (!m)
		return ST_MEMORY;
	w->meetings = m;
	w->meeting_count = number >= w->meeting_count ? number + 1 : w->meeting_count;
	if (one->met->place >= FRONTIER_PLACES) {
		w->left_out++;
		return ST_OK;
	}
	v = items_reach(w->visits, &w->visit_cap, w->visit_count, sizeof(*v), err);
	if (!v)
		return ST_MEMORY;
	w->visits = v;
	v[w->visit_count++] = (struct visit){ one->ref->stretch, (uint32_t)one->met->place,
					      number };
	if (one->ref->member != one->meet->least)
		return ST_OK;
	m += number;
	m->is_seen = true;
	m->step = one->ref->row[EVENTS_STEP].u64;
	m->nth = one->ref->is_even ? one->ref->nth : 0;
	m->member = one->ref->member;
	m->stretch = one->ref->stretch;
	m->place = (uint32_t)one->met->place;
	m->culprit = meet_culprit(one->meet);
	return ST_OK;
}

static int compare_visits(const void *pa, const void *pb)
{
	const struct visit *a = pa, *b = pb;

	if (a->stretch != b->stretch)
		return a->stretch < b->stretch ? -1 : 1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return (a->meeting > b->meeting) - (a->meeting < b->meeting);
}

static enum status visits_take(struct way *w, struct error *err)
{
	struct meet_range range = { 0 };
	size_t i;
	bool more;

	TRY(meets_open(&w->meets, w->all, err));
	TRY(meets_next(&w->meets, &range, &more, err));
	while (more) {
		if (!range.why)
			TRY(meets_each(&w->meets, &range, take_visit, w, err));
		TRY(meets_next(&w->meets, &range, &more, err));
	}
	if (w->visit_count)
		qsort(w->visits, w->visit_count, sizeof(*w->visits), compare_visits);
	for (i = 0; i < w->meeting_count; i++) {
		w->meetings[i].before = NO_ID;
		w->meetings[i].group = (uint32_t)i;
	}
	return ST_OK;
}

/* ---- the time of a rank ----------------------------------------------------------------- */

/* Rows of both tables stand in the order of their ranks. */
static enum status spans_find(struct way *w, struct error *err)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	size_t count = table_count(t), first, end, at = 0, k;

	w->spans = calloc(w->meets.stretch_count + 1, sizeof(*w->spans));
	if (!w->spans)
		return no_memory(err);
	for (first = 0; first < count; first = end) {
		const union value *row = table_at(t, first);
		size_t bytes = (SPANS_FROM + 1) * sizeof(*row);

		for (end = first + 1; end < count && !memcmp(row, table_at(t, end), bytes); end++)
			;
		for (k = at; k < w->meets.stretch_count; k++)
			if (!memcmp(row, w->meets.stretches[k], bytes))
				break;
		if (k == w->meets.stretch_count)
			continue;
		w->spans[k] = (struct spans){ first, end };
		at = k + 1;
	}
	return ST_OK;
}

/* Their row comes first: its texts are empty. */
void way_windows(struct way *w, size_t stretch)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	const char *packed;

	w->places = 0;
	if (w->spans[stretch].first == w->spans[stretch].end)
		return;
	packed = table_at(t, w->spans[stretch].first)[SPANS_PACKED].text;
	while (packed && *packed && w->places < FRONTIER_PLACES)
		w->windows[w->places++] = packed_take(&packed);
}

void way_sums(struct way *w, size_t row, bool add)
{
	struct table *t = tables_find(w->all, "frontier_spans");
	const char *packed = table_at(t, row)[SPANS_PACKED].text;
	struct packed_list list = { 0, 0 };
	uint64_t sum = 0, ns;
	size_t i;

	if (!add)
		w->sums[0] = 0;
	for (i = 0; i < w->places; i++) {
		list_take(&packed, &list, &ns);
		sum += ns;
		w->sums[i + 1] = sum + (add ? w->sums[i + 1] : 0);
	}
}

static void totals_take(struct way *w, size_t stretch)
{
	size_t row;

	memset(w->sums, 0, (w->places + 1) * sizeof(w->sums[0]));
	for (row = w->spans[stretch].first + 1; row < w->spans[stretch].end; row++)
		way_sums(w, row, true);
}

uint64_t way_between(const struct way *w, const struct visit *before, const struct visit *v)
{
	return w->sums[v->place + 1] - w->sums[before->place + 1];
}

static uint32_t group_of(struct way *w, uint32_t meeting)
{
	while (w->meetings[meeting].group != meeting) {
		struct meeting *m = &w->meetings[meeting];

		m->group = w->meetings[m->group].group;
		meeting = m->group;
	}
	return meeting;
}

static void groups_join(struct way *w, uint32_t a, uint32_t b)
{
	a = group_of(w, a);
	b = group_of(w, b);
	if (a != b)
		w->meetings[a < b ? b : a].group = a < b ? a : b;
}

size_t way_stretch_end(const struct way *w, size_t first)
{
	size_t end = first;

	while (end < w->visit_count && w->visits[end].stretch == w->visits[first].stretch)
		end++;
	return end;
}

bool way_follows(const struct way *w, const struct visit *before, const struct visit *v)
{
	return v->place < w->places && before->place < v->place &&
	       w->windows[before->place] == w->windows[v->place] &&
	       w->meetings[before->meeting].is_seen && w->meetings[v->meeting].is_seen;
}

static void link_stretch(struct way *w, size_t first, size_t end)
{
	size_t i;

	way_windows(w, w->visits[first].stretch);
	totals_take(w, w->visits[first].stretch);
	for (i = first; i < end; i++) {
		const struct visit *v = &w->visits[i];
		struct meeting *m = &w->meetings[v->meeting];

		w->left_out += v->place >= w->places;
		if (i == first || !way_follows(w, v - 1, v))
			continue;
		groups_join(w, v[-1].meeting, v->meeting);
		if (m->stretch != v->stretch || m->place != v->place)
			continue;
		m->before = v[-1].meeting;
		m->ns = way_between(w, v - 1, v);
	}
}

/* ---- the longest way -------------------------------------------------------------------- */

/* From its root on; where ranks disagree on an order, a way ends that would come back to itself. */
static void total_find(struct way *w, uint32_t number, uint32_t *stack)
{
	size_t depth = 0;
	struct meeting *m;

	while (!w->meetings[number].is_done) {
		m = &w->meetings[number];
		m->is_open = true;
		stack[depth++] = number;
		if (m->before != NO_ID && w->meetings[m->before].is_open)
			m->before = NO_ID;
		if (m->before == NO_ID)
			break;
		number = m->before;
	}
	while (depth) {
		m = &w->meetings[stack[--depth]];
		m->ns = m->before == NO_ID ? 0 : m->ns;
		m->root = m->before == NO_ID ? stack[depth] : w->meetings[m->before].root;
		m->total_ns = m->ns;
		if (m->before != NO_ID)
			m->total_ns += w->meetings[m->before].total_ns;
		m->is_open = false;
		m->is_done = true;
	}
}

static enum status totals_find(struct way *w, struct error *err)
{
	uint32_t *stack = calloc(w->meeting_count + 1, sizeof(*stack));
	size_t i;

	if (!stack)
		return no_memory(err);
	for (i = 0; i < w->meeting_count; i++)
		if (w->meetings[i].is_seen)
			total_find(w, (uint32_t)i, stack);
	free(stack);
	return ST_OK;
}

static void way_mark(struct way *w, uint32_t number)
{
	while (number != NO_ID && !w->meetings[number].is_on_way) {
		w->meetings[number].is_on_way = true;
		number = w->meetings[number].before;
	}
}

/*
 * The longest of each group.  Groups that run beside each other, with no rank in common, are not
 * added up: of those only what the rank at the end of the longest way of all takes part in.
 */
static enum status ways_choose(struct way *w, struct error *err)
{
	uint32_t *best = malloc((w->meeting_count + 1) * sizeof(*best));
	uint32_t longest = NO_ID, group;
	size_t i;

	if (!best)
		return no_memory(err);
	memset(best, 0xff, (w->meeting_count + 1) * sizeof(*best));
	for (i = 0; i < w->meeting_count; i++) {
		const struct meeting *m = &w->meetings[i];

		if (!m->is_seen)
			continue;
		group = group_of(w, (uint32_t)i);
		if (best[group] == NO_ID || m->total_ns > w->meetings[best[group]].total_ns)
			best[group] = (uint32_t)i;
		if (longest == NO_ID || m->total_ns > w->meetings[longest].total_ns)
			longest = (uint32_t)i;
	}
	for (i = 0; i < w->visit_count; i++) {
		const struct visit *v = &w->visits[i];
		const union value *keys = w->meets.stretches[v->stretch];

		if (w->meetings[v->meeting].is_seen &&
		    !memcmp(keys, w->meets.members[w->meetings[longest].member],
			    (EVENTS_DEVICE + 1) * sizeof(*keys)))
			way_mark(w, best[group_of(w, v->meeting)]);
	}
	free(best);
	return ST_OK;
}

/* Steps that the way has whole: what lies before a window's first meeting is not known. */
static void counted_mark(struct way *w)
{
	bool some = false;
	size_t i, pass;

	for (pass = 0; pass < 2 && !some; pass++)
		for (i = 0; i < w->meeting_count; i++) {
			struct meeting *m = &w->meetings[i];
			bool is_later = m->step != NO_U64 && !same_step(m, &w->meetings[m->root]);

			m->is_counted = m->is_on_way && m->before != NO_ID && (pass || is_later);
			some |= m->is_counted;
		}
}

static enum status way_run(struct way *w, struct error *err)
{
	size_t first, end;

	TRY(visits_take(w, err));
	if (!w->visit_count)
		return ST_OK;
	TRY(spans_find(w, err));
	for (first = 0; first < w->visit_count; first = end) {
		end = way_stretch_end(w, first);
		link_stretch(w, first, end);
	}
	TRY(totals_find(w, err));
	TRY(ways_choose(w, err));
	counted_mark(w);
	return way_put(w, err);
}

enum status frontier_finish(struct tables *all, struct error *err)
{
	struct way *w = calloc(1, sizeof(*w));
	enum status status;

	if (!w)
		return no_memory(err);
	w->all = all;
	status = way_run(w, err);
	meets_release(&w->meets);
	free(w->meetings);
	free(w->visits);
	free(w->spans);
	free(w->columns);
	free(w->kinds);
	free(w->shares);
	free(w);
	return status;
}
