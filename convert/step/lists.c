/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/step/lists.h"

#include <stdlib.h>
#include <string.h>

enum {
	STRETCHES_MAX = 65536, /* that nobody took: only a run without reports has so many */
	KEPT_MAX = 1 << 20,
};

enum status stretches_add(struct stretches *l, const struct stretch *one, struct error *err)
{
	size_t cap = l->cap ? l->cap * 2 : 256;
	struct stretch *items = l->items;

	if (l->count == l->cap) {
		items = realloc(items, cap * sizeof(*items));
		if (!items)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for phases");
		l->items = items;
		l->cap = cap;
	}
	l->items[l->count++] = *one;
	return ST_OK;
}

static void stretches_drop(struct stretches *l, size_t count)
{
	l->count -= count;
	memmove(l->items, l->items + count, l->count * sizeof(*l->items));
}

static bool stretch_joins(const struct stretch *a, const struct stretch *b, uint64_t shortest_ns)
{
	return a->end_ns == b->begin_ns && a->process == b->process && a->step == b->step &&
	       !b->begins_step &&
	       ((a->phase == b->phase && a->inferred == b->inferred) ||
		b->end_ns - b->begin_ns < shortest_ns);
}

enum status stretches_give(struct stretches *l, const struct stretch *one, uint64_t shortest_ns,
			   struct error *err)
{
	struct stretch *last = l->count ? &l->items[l->count - 1] : NULL;

	if (last && stretch_joins(last, one, shortest_ns)) {
		last->end_ns = one->end_ns;
		return ST_OK;
	}
	if (l->count == (shortest_ns ? KEPT_MAX : STRETCHES_MAX))
		stretches_drop(l, l->count / 2);
	return stretches_add(l, one, err);
}

enum status marks_add(struct marks *l, const struct step_mark *mark, struct error *err)
{
	size_t cap = l->cap ? l->cap * 2 : 16;
	struct step_mark *items = l->items;

	if (l->count == l->cap) {
		items = realloc(items, cap * sizeof(*items));
		if (!items)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for steps");
		l->items = items;
		l->cap = cap;
	}
	l->items[l->count++] = *mark;
	return ST_OK;
}
