/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/tensorboard/internal.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum status tb_steps_put(struct tb_steps *s, const struct event *e, struct error *err)
{
	struct step_mark mark = { .begin_ns = e->begin_ns,
				  .end_ns = e->end_ns,
				  .number = e->step - 1 };
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
	if (e->step == s->last && s->is_stand_in) /* both began together */
		s->list.count--;
	s->last = e->step;
	s->is_stand_in = !is_mark;
	return steps_put(&s->list, &mark, NULL, err);
}

enum status tb_steps_finish(struct tb_steps *s, struct error *err)
{
	const struct step_list *l = &s->list;
	struct map seen = { .count = 0 }; /* number of steps so far, by step number */
	uint64_t reach = 10, *count;      /* the least power of ten above all numbers */
	enum status status = ST_OK;

	TRY(steps_resolve(&s->list, err));
	TRY(vec_new(&s->groups, l->count + 1, err));
	for (size_t i = 0; i < l->count; i++)
		while (reach <= l->rows[i].number)
			reach *= 10;
	for (size_t i = 0; i < l->count && status == ST_OK; i++) {
		count = map_put(&seen, l->rows[i].number, NULL);
		if (count)
			s->groups[i] = l->rows[i].number + (*count)++ * reach;
		else
			status = fail_memory(err);
	}
	map_release(&seen);
	return status;
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
