/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/step/lists.h"

#include <stdlib.h>
#include <string.h>

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

void stretches_drop(struct stretches *l, size_t count)
{
	l->count -= count;
	memmove(l->items, l->items + count, l->count * sizeof(*l->items));
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
