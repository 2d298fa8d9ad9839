/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_table.h - rows that never move, found by id or by what identifies them; inside of trace.c.
 *
 * Rows stand in segments of doubling size; an index of open addressing finds them by content.
 * Rows are of the arena.  Indexes live outside it, because an arena cannot give back the smaller
 * one; their bytes are taken off its ceiling.  Zero a table and set row_bytes to begin.
 */
#ifndef SCHEMAS_TRACE_TABLE_H
#define SCHEMAS_TRACE_TABLE_H

#include "schemas/arena.h"
#include "schemas/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { SEGMENT_SHIFT = 4, SEGMENT_ROWS = 1 << SEGMENT_SHIFT, SEGMENTS = 32 - SEGMENT_SHIFT };

struct slot {
	uint32_t hash, id; /* id 0: free */
};

struct table {
	void *segments[SEGMENTS]; /* segment k has SEGMENT_ROWS << k rows */
	uint32_t count, row_bytes;
	struct slot *slots; /* at most three quarters are taken */
	uint32_t slot_count;
};

typedef bool (*row_same)(const void *row, const void *wanted);
typedef uint64_t (*row_hash)(const void *row);

/* NULL when there is no such row. */
static inline void *table_row(const struct table *t, uint32_t id)
{
	uint32_t place, segment;

	if (!id || id > t->count)
		return NULL;
	place = id - 1 + SEGMENT_ROWS;
	segment = 31 - (uint32_t)__builtin_clz(place) - SEGMENT_SHIFT;
	place -= (uint32_t)SEGMENT_ROWS << segment;
	return (char *)t->segments[segment] + (size_t)place * t->row_bytes;
}

/* The id of the row that is the `same` as wanted, or 0. */
static inline uint32_t table_find(const struct table *t, uint64_t hash, row_same same,
				  const void *wanted)
{
	uint32_t mask = t->slot_count - 1, i = (uint32_t)hash & mask;

	if (!t->slot_count)
		return 0;
	for (; t->slots[i].id; i = (i + 1) & mask) {
		if (t->slots[i].hash == (uint32_t)hash &&
		    same(table_row(t, t->slots[i].id), wanted))
			return t->slots[i].id;
	}
	return 0;
}

/* A copy of *row at the end; in the index too, or not.  The new id, or 0 and *err. */
uint32_t table_add(struct table *t, struct arena *a, uint64_t hash, const void *row,
		   struct error *err);
uint32_t table_append(struct table *t, struct arena *a, const void *row, struct error *err);
/* After what identifies rows of the index has changed. */
void table_reindex(struct table *t, row_hash hash);
void table_release(struct table *t); /* the index; the arena has the rows */

/* Why an arena refused `bytes`: ST_CEILING or ST_MEMORY. */
enum status table_refuse(const struct arena *a, size_t bytes, struct error *err);

#endif
