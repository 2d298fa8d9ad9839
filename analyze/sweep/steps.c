/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/sweep/steps.h"

#include "schemas/event.h"

#include <stdlib.h>

static enum status row_add(struct step_list *l, const struct step_row *row, struct error *err)
{
	size_t cap = l->cap ? l->cap * 2 : 64;
	struct step_row *wider;

	if (l->count == l->cap) {
		wider = realloc(l->rows, cap * sizeof(*wider));
		if (!wider)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for steps");
		l->rows = wider;
		l->cap = cap;
	}
	l->repeats |= l->count && row->number <= l->rows[l->count - 1].number;
	l->rows[l->count++] = *row;
	return ST_OK;
}

enum status steps_put(struct step_list *l, const struct step_mark *m, struct step_row **row,
		      struct error *err)
{
	struct step_row made = {
		.number = m->number, .begin_ns = m->begin_ns, .mark_end_ns = m->end_ns,
		.end_ns = m->end_ns,
		.is_cut = (m->flags & (EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED)) != 0,
	};

	TRY(row_add(l, &made, err));
	*row = &l->rows[l->count - 1];
	return ST_OK;
}

static int compare_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Both middle lengths of the marks, added. */
static enum status median_twice(const struct step_list *l, uint64_t *out, struct error *err)
{
	uint64_t *lengths = malloc(l->count * sizeof(*lengths));
	size_t i;

	if (!lengths)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for steps");
	for (i = 0; i < l->count; i++)
		lengths[i] = l->rows[i].mark_end_ns - l->rows[i].begin_ns;
	qsort(lengths, l->count, sizeof(*lengths), compare_u64);
	*out = lengths[(l->count - 1) / 2] + lengths[l->count / 2];
	free(lengths);
	return ST_OK;
}

/* A step that settles counts only where there is no better one, one that was cut only where there
 * is nothing else at all. */
static void count_rows(struct step_list *l)
{
	bool settled = false, whole = false;
	size_t i;

	for (i = 0; i < l->count; i++) {
		if (l->rows[i].is_cut || l->rows[i].is_out)
			continue;
		whole = true;
		settled |= !l->rows[i].is_settling;
	}
	for (i = 0; i < l->count; i++)
		l->rows[i].is_counted = !l->rows[i].is_out &&
					(!whole || !l->rows[i].is_cut) &&
					(!settled || !l->rows[i].is_settling);
}

enum status steps_resolve(struct step_list *l, struct error *err)
{
	uint64_t twice = 0, next_ns;
	size_t i;

	if (!l->count)
		return ST_OK;
	TRY(median_twice(l, &twice, err));
	for (i = 0; i + 1 < l->count; i++) {
		struct step_row *row = &l->rows[i];

		next_ns = row[1].begin_ns;
		row->joins = next_ns < row->mark_end_ns ||
			     (next_ns - row->mark_end_ns) <= twice / 200;
		row->end_ns = row->joins ? next_ns : row->mark_end_ns;
	}
	count_rows(l);
	return ST_OK;
}

void steps_clip(struct step_list *l, uint64_t from_ns, uint64_t to_ns)
{
	size_t i;

	for (i = 0; i < l->count; i++) {
		struct step_row *row = &l->rows[i];

		if (row->is_out)
			continue;
		row->begin_ns = row->begin_ns < from_ns ? from_ns : row->begin_ns;
		row->mark_end_ns = row->mark_end_ns > to_ns ? to_ns : row->mark_end_ns;
		row->end_ns = row->end_ns > to_ns ? to_ns : row->end_ns;
	}
}

enum status steps_infer(struct step_list *l, uint64_t begin_ns, uint64_t end_ns,
			struct error *err)
{
	struct step_row row = { .begin_ns = begin_ns, .mark_end_ns = end_ns, .end_ns = end_ns,
				.is_counted = true };
	size_t i = 0;

	while (i < l->count && l->rows[i].is_out)
		i++;
	if (i < l->count || end_ns <= begin_ns)
		return ST_OK;
	l->is_inferred = true;
	return row_add(l, &row, err);
}

void steps_release(struct step_list *l)
{
	free(l->rows);
	*l = (struct step_list){ 0 };
}

size_t steps_at(const struct step_list *l, uint64_t at_ns, size_t *at)
{
	if (!l->count || at_ns < l->rows[0].begin_ns)
		return l->count;
	if (*at >= l->count || at_ns < l->rows[*at].begin_ns)
		*at = 0;
	while (*at + 1 < l->count && l->rows[*at + 1].begin_ns <= at_ns)
		(*at)++;
	return *at;
}

size_t steps_begun(const struct step_list *l, uint64_t at_ns)
{
	size_t low = 0, high = l->count, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (l->rows[mid].begin_ns <= at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : l->count;
}

size_t steps_find(const struct step_list *l, uint64_t number)
{
	size_t low = 0, high = l->count, mid;

	while (high && l->repeats && l->rows[high - 1].number != number)
		high--;
	if (l->repeats)
		return high ? high - 1 : l->count;
	while (low < high) {
		mid = low + (high - low) / 2;
		if (l->rows[mid].number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->count && l->rows[low].number == number ? low : l->count;
}
