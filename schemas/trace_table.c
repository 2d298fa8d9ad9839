/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/trace_table.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX_FIRST = 64 };

enum status table_refuse(const struct arena *a, size_t bytes, struct error *err)
{
	if (arena_is_full(a, bytes))
		return fail(err, ST_CEILING, NOWHERE,
			    "names, shapes and tracks need more memory than their ceiling");
	return fail(err, ST_MEMORY, NOWHERE, "no memory for names, shapes and tracks");
}

static void slot_put(struct slot *slots, uint32_t slot_count, struct slot entry)
{
	uint32_t i = entry.hash & (slot_count - 1);

	while (slots[i].id)
		i = (i + 1) & (slot_count - 1);
	slots[i] = entry;
}

static enum status table_grow_index(struct table *t, struct arena *a, struct error *err)
{
	uint32_t bigger = t->slot_count ? t->slot_count * 2 : INDEX_FIRST, i;
	size_t bytes = bigger * sizeof(struct slot);
	size_t old_bytes = t->slot_count * sizeof(struct slot);
	struct slot *slots;

	if (t->slot_count > UINT32_MAX / 2 || arena_is_full(a, bytes))
		return table_refuse(a, bytes, err);
	slots = calloc(bigger, sizeof(*slots));
	if (!slots)
		return table_refuse(a, bytes, err);
	for (i = 0; i < t->slot_count; i++)
		if (t->slots[i].id)
			slot_put(slots, bigger, t->slots[i]);
	free(t->slots);
	t->slots = slots;
	t->slot_count = bigger;
	a->ceiling -= bytes - old_bytes;
	return ST_OK;
}

/* Room for the row after the last, or NULL and *err. */
static void *table_room(struct table *t, struct arena *a, struct error *err)
{
	uint32_t place = t->count + SEGMENT_ROWS, segment;
	size_t bytes;

	if (t->count >= UINT32_MAX - SEGMENT_ROWS - 1) {
		fail(err, ST_CEILING, NOWHERE, "a table has more rows than there are ids");
		return NULL;
	}
	segment = 31 - (uint32_t)__builtin_clz(place) - SEGMENT_SHIFT;
	bytes = ((size_t)SEGMENT_ROWS << segment) * t->row_bytes;
	if (!t->segments[segment])
		t->segments[segment] = arena_take(a, bytes, 0);
	if (!t->segments[segment]) {
		table_refuse(a, bytes, err);
		return NULL;
	}
	place -= (uint32_t)SEGMENT_ROWS << segment;
	return (char *)t->segments[segment] + (size_t)place * t->row_bytes;
}

uint32_t table_append(struct table *t, struct arena *a, const void *row, struct error *err)
{
	void *room = table_room(t, a, err);

	if (!room)
		return 0;
	memcpy(room, row, t->row_bytes);
	return ++t->count;
}

uint32_t table_add(struct table *t, struct arena *a, uint64_t hash, const void *row,
		   struct error *err)
{
	uint32_t id;

	if (t->count >= t->slot_count / 4 * 3 && table_grow_index(t, a, err) != ST_OK)
		return 0;
	id = table_append(t, a, row, err);
	if (id)
		slot_put(t->slots, t->slot_count, (struct slot){ (uint32_t)hash, id });
	return id;
}

void table_reindex(struct table *t, row_hash hash)
{
	uint32_t id;

	memset(t->slots, 0, t->slot_count * sizeof(struct slot));
	for (id = 1; id <= t->count; id++) {
		uint32_t bits = (uint32_t)hash(table_row(t, id));

		slot_put(t->slots, t->slot_count, (struct slot){ bits, id });
	}
}

void table_release(struct table *t)
{
	free(t->slots);
}
