/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/tensorboard/steps.h"

#include "convert/sink.h"

#include <stdlib.h>

enum { LIST_BYTES = 64 << 20, GAP_SHARE = 100 /* of the median mark: 1 % */ };

void tb_steps_init(struct tb_steps *s)
{
	*s = (struct tb_steps){ .first_ns = UINT64_MAX };
	buf_init(&s->list, LIST_BYTES);
}

void tb_steps_release(struct tb_steps *s)
{
	buf_release(&s->list);
}

size_t tb_steps_count(const struct tb_steps *s)
{
	return s->list.len / sizeof(struct tb_step);
}

static struct tb_step *step_at(const struct tb_steps *s, size_t i)
{
	return (struct tb_step *)(void *)s->list.data + i;
}

const struct tb_step *tb_steps_at(const struct tb_steps *s, size_t i)
{
	return step_at(s, i);
}

static bool can_be_mark(const struct event *e)
{
	return e->kind == KIND_STEP ||
	       (e->kind == KIND_RANGE &&
		(e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX));
}

enum status tb_steps_put(struct tb_steps *s, const struct event *e, struct error *err)
{
	struct tb_step mark;
	bool is = s->stage ? step_is_mark(s->stage, e) : e->kind == KIND_STEP;

	if (e->begin_ns < s->first_ns)
		s->first_ns = e->begin_ns;
	if (e->end_ns > s->last_ns)
		s->last_ns = e->end_ns;
	if (!e->step || (e->step & STEP_GAP) || !can_be_mark(e))
		return ST_OK;
	if (e->step == s->last && !is)
		return ST_OK;
	if (e->step == s->last && s->is_guess) /* they began together */
		s->list.len -= sizeof(mark);
	s->last = e->step;
	s->is_guess = !is;
	mark = (struct tb_step){ .number = e->step - 1, .begin_ns = e->begin_ns,
				 .end_ns = e->end_ns };
	buf_put(&s->list, &mark, sizeof(mark));
	return buf_status(&s->list, err);
}

/* ---- groups ---- */

struct numbered {
	uint64_t number;
	size_t at;
};

static int by_number(const void *pa, const void *pb)
{
	const struct numbered *a = pa, *b = pb;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static enum status groups_find(struct tb_steps *s, struct error *err)
{
	size_t count = tb_steps_count(s), first = 0;
	struct numbered *sorted = malloc((count + 1) * sizeof(*sorted));
	uint64_t wide = 10;

	if (!sorted)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the numbers of steps");
	for (size_t i = 0; i < count; i++) {
		sorted[i] = (struct numbered){ step_at(s, i)->number, i };
		while (wide <= sorted[i].number)
			wide *= 10;
	}
	qsort(sorted, count, sizeof(*sorted), by_number);
	for (size_t i = 0; i < count; i++) {
		first = sorted[i].number == sorted[first].number ? first : i;
		step_at(s, sorted[i].at)->group = sorted[i].number + (i - first) * wide;
	}
	free(sorted);
	return ST_OK;
}

/* ---- ends ---- */

static int by_length(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

static enum status median(const struct tb_steps *s, uint64_t *out, struct error *err)
{
	size_t count = tb_steps_count(s);
	uint64_t *lengths = malloc(count * sizeof(*lengths));

	if (!lengths)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the lengths of steps");
	for (size_t i = 0; i < count; i++)
		lengths[i] = step_at(s, i)->end_ns - step_at(s, i)->begin_ns;
	qsort(lengths, count, sizeof(*lengths), by_length);
	*out = (lengths[(count - 1) / 2] + lengths[count / 2]) / 2;
	free(lengths);
	return ST_OK;
}

enum status tb_steps_finish(struct tb_steps *s, struct error *err)
{
	struct tb_step whole = { .begin_ns = s->first_ns, .end_ns = s->last_ns };
	size_t count = tb_steps_count(s);
	uint64_t length = 0;

	if (!count) {
		if (s->first_ns < s->last_ns)
			buf_put(&s->list, &whole, sizeof(whole));
		return buf_status(&s->list, err);
	}
	TRY(groups_find(s, err));
	TRY(median(s, &length, err));
	for (size_t i = 0; i + 1 < count; i++) {
		struct tb_step *step = step_at(s, i);
		uint64_t next_ns = step_at(s, i + 1)->begin_ns;

		if (next_ns < step->end_ns || next_ns - step->end_ns <= length / GAP_SHARE)
			step->end_ns = next_ns;
	}
	return ST_OK;
}

const struct tb_step *tb_steps_find(struct tb_steps *s, uint64_t at_ns)
{
	size_t count = tb_steps_count(s);

	if (s->at >= count || step_at(s, s->at)->begin_ns > at_ns)
		s->at = 0;
	while (s->at < count && step_at(s, s->at)->end_ns <= at_ns)
		s->at++;
	if (s->at == count || step_at(s, s->at)->begin_ns > at_ns)
		return NULL;
	return step_at(s, s->at);
}

uint64_t tb_steps_group(const struct tb_steps *s, uint64_t number, uint64_t at_ns)
{
	size_t low = 0, high = tb_steps_count(s), mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (step_at(s, mid)->begin_ns <= at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low && step_at(s, low - 1)->number == number ? step_at(s, low - 1)->group : number;
}
