/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/step_list.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { GAP_SHARE = 100 }; /* a gap of up to 1/100 of the median mark joins its step */

static enum status row_add(struct step_list *l, const struct step_row *row, struct error *err)
{
	TRY(vec_reserve(&l->rows, &l->cap, l->count + 1, err));
	l->repeats |= l->count && row->number <= l->rows[l->count - 1].number;
	l->rows[l->count++] = *row;
	return ST_OK;
}

enum status steps_put(struct step_list *l, const struct step_mark *m, struct step_row **row,
		      struct error *err)
{
	struct step_row made = {
		.number = m->number,
		.begin_ns = m->begin_ns,
		.mark_end_ns = m->end_ns,
		.end_ns = m->end_ns,
		.is_cut = (m->flags & (EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED)) != 0,
	};

	TRY(row_add(l, &made, err));
	if (row)
		*row = &l->rows[l->count - 1];
	return ST_OK;
}

enum status steps_resolve(struct step_list *l, struct error *err)
{
	uint64_t *lengths;

	if (!l->count)
		return ST_OK;
	lengths = malloc(l->count * sizeof(*lengths));
	if (!lengths)
		return fail_memory(err);
	for (size_t i = 0; i < l->count; i++)
		lengths[i] = l->rows[i].mark_end_ns - l->rows[i].begin_ns;
	uint64_t gap_max_ns = (uint64_t)median_u64(lengths, l->count) / GAP_SHARE;
	free(lengths);
	for (size_t i = 0; i + 1 < l->count; i++) {
		struct step_row *row = &l->rows[i];
		uint64_t next_ns = row[1].begin_ns;

		row->joins = next_ns < row->mark_end_ns || next_ns - row->mark_end_ns <= gap_max_ns;
		row->end_ns = row->joins ? next_ns : row->mark_end_ns;
	}
	/* Settling steps count only if there are no others, steps with a cut mark only if there is
	 * no whole one. */
	bool settled = false, whole = false;

	for (size_t i = 0; i < l->count; i++) {
		if (l->rows[i].is_cut || l->rows[i].is_out)
			continue;
		whole = true;
		settled |= !l->rows[i].is_settling;
	}
	for (size_t i = 0; i < l->count; i++)
		l->rows[i].is_counted = !l->rows[i].is_out && (!whole || !l->rows[i].is_cut) &&
					(!settled || !l->rows[i].is_settling);
	return ST_OK;
}

void steps_clip(struct step_list *l, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < l->count; i++) {
		struct step_row *row = &l->rows[i];

		if (row->is_out)
			continue;
		row->begin_ns = row->begin_ns < from_ns ? from_ns : row->begin_ns;
		row->mark_end_ns = row->mark_end_ns > to_ns ? to_ns : row->mark_end_ns;
		row->end_ns = row->end_ns > to_ns ? to_ns : row->end_ns;
	}
}

enum status steps_infer(struct step_list *l, uint64_t begin_ns, uint64_t end_ns, struct error *err)
{
	struct step_row row = {
		.begin_ns = begin_ns, .mark_end_ns = end_ns, .end_ns = end_ns, .is_counted = true
	};
	size_t i = 0;

	while (i < l->count && l->rows[i].is_out)
		i++;
	if (i < l->count || end_ns <= begin_ns)
		return ST_OK;
	l->is_inferred = true;
	return row_add(l, &row, err);
}

struct long_step {
	uint64_t wall_ns;
	size_t row;
};

/* Keeps the longest of the counted steps, and the last of all. */
static enum status keep_extra(struct step_list *l, struct error *err)
{
	struct long_step *steps;
	size_t count = 0, last = 0;

	TRY(vec_new(&steps, l->count, err));
	for (size_t i = 0; i < l->count; i++) {
		last = l->rows[i].is_out ? last : i;
		if (l->rows[i].is_counted)
			steps[count++] =
				(struct long_step){ l->rows[i].end_ns - l->rows[i].begin_ns, i };
	}
	SORT_BY(steps, count, DOWN(struct long_step, wall_ns), UP(struct long_step, row));
	for (size_t i = 0; i <= count && i <= STEPS_LONGEST; i++) {
		size_t row = i < count && i < STEPS_LONGEST ? steps[i].row : last;

		l->rows[row].is_extra |= !l->rows[row].is_kept;
		l->rows[row].is_kept = true;
	}
	free(steps);
	return ST_OK;
}

enum status steps_keep(struct step_list *l, struct error *err)
{
	size_t asked = 0, at = 0;

	for (size_t i = 0; i < l->count; i++)
		asked += !l->rows[i].is_out;
	for (l->stride = 1; asked / l->stride > STEPS_KEPT;)
		l->stride *= 2;
	for (size_t i = 0; i < l->count; i++)
		if (!l->rows[i].is_out)
			l->rows[i].is_kept = at++ % l->stride == 0;
	if (l->repeats && !l->by_number) {
		TRY(vec_new(&l->by_number, l->count, err));
		for (size_t i = 0; i < l->count; i++)
			l->by_number[i] = (struct step_number){ l->rows[i].number, i };
		SORT_BY(l->by_number, l->count, UP(struct step_number, number),
			UP(struct step_number, row));
	}
	return l->stride > 1 ? keep_extra(l, err) : ST_OK;
}

struct mark_length {
	uint64_t ns;
	size_t row;
};

enum status steps_drop(const struct step_list *l, struct steps_dropped *d, struct error *err)
{
	enum { LONGEST = 32, MIDDLE = 64, LATEST = 16 };
	size_t count = l->count > LATEST ? l->count - LATEST : 0, middle = count / 2;
	struct mark_length *marks = calloc(count + 1, sizeof(*marks));
	bool *rows = calloc(count + 1, sizeof(*rows));

	if (!marks || !rows) {
		free(marks);
		free(rows);
		return fail_memory(err);
	}
	for (size_t i = 0; i < count; i++)
		marks[i] = (struct mark_length){ l->rows[i].mark_end_ns - l->rows[i].begin_ns, i };
	SORT_BY(marks, count, UP(struct mark_length, ns), UP(struct mark_length, row));
	for (size_t i = 0; i < count; i++) {
		size_t off = i < middle ? middle - i : i - middle, row = marks[i].row;

		rows[row] = steps_is_dropped(d, row) || (off > MIDDLE / 2 && i + LONGEST < count);
	}
	free(marks);
	free(d->rows);
	*d = (struct steps_dropped){ rows, count };
	return ST_OK;
}

void steps_release(struct step_list *l)
{
	free(l->rows);
	free(l->by_number);
	*l = (struct step_list){ 0 };
}

size_t steps_at(const struct step_list *l, uint64_t at_ns, size_t *at)
{
	if (!l->count || at_ns < l->rows[0].begin_ns)
		return l->count;
	if (*at >= l->count || at_ns < l->rows[*at].begin_ns)
		*at = steps_begun(l, at_ns);
	while (*at + 1 < l->count && l->rows[*at + 1].begin_ns <= at_ns)
		(*at)++;
	return *at;
}

size_t steps_begun(const struct step_list *l, uint64_t at_ns)
{
	size_t begun;

	SEARCH(begun, 0, l->count, l->rows[begun].begin_ns <= at_ns);
	return begun ? begun - 1 : l->count;
}

size_t steps_find(const struct step_list *l, uint64_t number)
{
	size_t at;

	SEARCH(at, 0, l->count,
	       (l->by_number ? l->by_number[at].number : l->rows[at].number) <= number);
	if (at && l->by_number)
		at = l->by_number[at - 1].row + 1;
	return at && l->rows[at - 1].number == number ? at - 1 : l->count;
}
