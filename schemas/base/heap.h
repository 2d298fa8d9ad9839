/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - a binary heap of item numbers with the least on top, for merging ordered streams.
 *
 * `is_before(self, a, b)` is a total order of the owner's items; equal ones must differ by
 * something (the number of the stream), or the output would depend on the order of insertion.  It
 * is an argument of each function, and the same at each call, so that it is inlined.
 */
#pragma once

#include "schemas/base/vec.h"

#include <stdbool.h>

struct heap {
	uint32_t *items;
	size_t count, cap;
	const void *self; /* first argument of `is_before` */
};
typedef bool (*heap_order)(const void *self, uint32_t a, uint32_t b);

/* Restores the order after the item at `at`, usually the top one, has become greater. */
static inline void heap_sink(struct heap *h, size_t at, heap_order is_before)
{
	uint32_t item = h->items[at];
	size_t child;

	for (; (child = 2 * at + 1) < h->count; at = child) {
		if (child + 1 < h->count &&
		    is_before(h->self, h->items[child + 1], h->items[child]))
			child++;
		if (!is_before(h->self, h->items[child], item))
			break;
		h->items[at] = h->items[child];
	}
	h->items[at] = item;
}
static inline enum status heap_push(struct heap *h, uint32_t item, heap_order is_before,
				    struct error *err)
{
	size_t at = h->count, above;

	TRY(vec_reserve(&h->items, &h->cap, h->count + 1, err));
	h->count++;
	for (; at && is_before(h->self, item, h->items[above = (at - 1) / 2]); at = above)
		h->items[at] = h->items[above];
	h->items[at] = item;
	return ST_OK;
}
/* Removes and returns the top item; there must be one. */
static inline uint32_t heap_pop(struct heap *h, heap_order is_before)
{
	uint32_t top = h->items[0];

	h->items[0] = h->items[--h->count];
	if (h->count)
		heap_sink(h, 0, is_before);
	return top;
}
