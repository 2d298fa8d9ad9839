/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/model/intern.h"

#include <string.h>

enum status intern_refuse(const struct arena *a, size_t bytes, struct error *err)
{
	if (arena_is_full(a, bytes))
		return fail(err, ST_CEILING, NOWHERE,
			    "names, arguments and tracks exceed their memory limit");
	return fail_memory(err);
}

uint32_t intern_append(struct intern *t, struct arena *a, const void *row, struct error *err)
{
	uint32_t place = t->count + SEGMENT_ROWS, segment;

	if (t->count >= UINT32_MAX - SEGMENT_ROWS - 1) {
		fail(err, ST_CEILING, NOWHERE, "a table has more rows than there are ids");
		return 0;
	}
	segment = 31 - (uint32_t)__builtin_clz(place) - SEGMENT_SHIFT;
	size_t bytes = ((size_t)SEGMENT_ROWS << segment) * t->row_bytes;
	if (!t->segments[segment])
		t->segments[segment] = arena_take(a, bytes, 0);
	if (!t->segments[segment]) {
		intern_refuse(a, bytes, err);
		return 0;
	}
	t->count++;
	memcpy(intern_row(t, t->count), row, t->row_bytes);
	return t->count;
}

uint32_t intern_add(struct intern *t, struct arena *a, uint64_t hash, const void *row,
		    struct error *err)
{
	size_t before = t->index.cap * sizeof(*t->index.slots), more, left;

	/* The index doubles when it is half full. */
	if ((t->index.count + 1) * 2 > t->index.cap && arena_is_full(a, 2 * before)) {
		intern_refuse(a, 2 * before, err);
		return 0;
	}
	uint32_t id = intern_append(t, a, row, err);
	if (!id)
		return 0;
	if (hash_add(&t->index, hash, id, err) != ST_OK) {
		t->count--;
		return 0;
	}
	more = t->index.cap * sizeof(*t->index.slots) - before;
	left = a->ceiling - a->used;
	a->ceiling -= more < left ? more : left;
	return id;
}

void intern_reindex(struct intern *t, row_hash hash)
{
	hash_clear(&t->index);
	for (uint32_t id = 1; id <= t->count; id++)
		hash_add(&t->index, hash(intern_row(t, id)), id,
			 NULL); /* cannot fail: the index is large enough */
}

void intern_release(struct intern *t)
{
	hash_release(&t->index);
}
