/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/tensorboard/steps.h"

#include <stdlib.h>

void tb_steps_release(struct tb_steps *s)
{
	steps_release(&s->list);
	free(s->groups);
	s->groups = NULL;
}

enum status tb_steps_put(struct tb_steps *s, const struct event *e, struct error *err)
{
	struct step_mark mark = { e->begin_ns, e->end_ns, e->step - 1, 0, 0 };
	bool is_mark = s->context ? context_is_mark(s->context, e) : e->kind == KIND_STEP;
	bool can_be_mark = e->kind == KIND_STEP ||
			   (e->kind == KIND_RANGE &&
			    (e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX));

	if (e->begin_ns < s->first_ns || !s->any_event)
		s->first_ns = e->begin_ns;
	if (e->end_ns > s->last_ns)
		s->last_ns = e->end_ns;
	s->any_event = true;
	if (!e->step || (e->step & STEP_GAP) || !can_be_mark)
		return ST_OK;
	if (e->step == s->last && !is_mark)
		return ST_OK;
	if (e->step == s->last && s->is_stand_in) /* they began together */
		s->list.count--;
	s->last = e->step;
	s->is_stand_in = !is_mark;
	return steps_put(&s->list, &mark, NULL, err);
}

/* By number, then by time; the list itself is sorted by time. */
static int compare_rows(const void *pa, const void *pb)
{
	const struct step_row *a = *(struct step_row *const *)pa,
			      *b = *(struct step_row *const *)pb;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a < b ? -1 : a > b;
}

static enum status find_groups(struct tb_steps *s, struct error *err)
{
	const struct step_list *l = &s->list;
	struct step_row **sorted = malloc(l->count * sizeof(struct step_row *));
	uint64_t reach = 10; /* a power of ten above each number */

	s->groups = malloc(l->count * sizeof(*s->groups));
	if (!sorted || !s->groups) {
		free(sorted);
		return fail_memory(err);
	}
	for (size_t i = 0; i < l->count; i++) {
		sorted[i] = &l->rows[i];
		while (reach <= sorted[i]->number)
			reach *= 10;
	}
	qsort(sorted, l->count, sizeof(struct step_row *), compare_rows);
	for (size_t i = 0, first = 0; i < l->count; i++) {
		first = sorted[i]->number == sorted[first]->number ? first : i;
		s->groups[sorted[i] - l->rows] = sorted[i]->number + (i - first) * reach;
	}
	free(sorted);
	return ST_OK;
}

enum status tb_steps_finish(struct tb_steps *s, struct error *err)
{
	TRY(steps_resolve(&s->list, err));
	TRY(steps_infer(&s->list, s->first_ns, s->last_ns, err));
	return s->list.count ? find_groups(s, err) : ST_OK;
}

size_t tb_steps_find(struct tb_steps *s, uint64_t at_ns)
{
	const struct step_list *l = &s->list;
	size_t row = steps_at(l, at_ns, &s->at);

	return row < l->count && at_ns < l->rows[row].end_ns ? row : l->count;
}

uint64_t tb_steps_group(const struct tb_steps *s, uint64_t number, uint64_t at_ns)
{
	size_t row = steps_begun(&s->list, at_ns);

	return row < s->list.count && s->list.rows[row].number == number ? s->groups[row] : number;
}
