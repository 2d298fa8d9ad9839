/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - rows that never move, found by id or by content; only the trace and the log's tables
 * use it.
 *
 * Ids count from 1.  Rows are in segments of doubling size in the owner's arena; a hash_index
 * (schemas/base/map.h) finds them by content.  The index is outside the arena, which could not free
 * the old index when it grows, but its bytes count against the arena's ceiling.  A new table is
 * zeroed except for row_bytes.
 */
#pragma once

#include "schemas/base/arena.h"
#include "schemas/base/map.h"
#include "schemas/base/status.h"

enum { SEGMENT_SHIFT = 4, SEGMENT_ROWS = 1 << SEGMENT_SHIFT, SEGMENTS = 32 - SEGMENT_SHIFT };

struct intern {
	void *segments[SEGMENTS]; /* segment k has SEGMENT_ROWS << k rows */
	uint32_t count, row_bytes;
	struct hash_index index;
};

typedef bool (*row_same)(const void *row, const void *wanted);
typedef uint64_t (*row_hash)(const void *row);

/* Returns NULL if there is no such row. */
static inline void *intern_row(const struct intern *t, uint32_t id)
{
	uint32_t place, segment;

	if (!id || id > t->count)
		return NULL;
	place = id - 1 + SEGMENT_ROWS;
	segment = 31 - (uint32_t)__builtin_clz(place) - SEGMENT_SHIFT;
	place -= (uint32_t)SEGMENT_ROWS << segment;
	return (char *)t->segments[segment] + (size_t)place * t->row_bytes;
}

/* Returns the id of the row for which `same` is true, or 0. */
static inline uint32_t intern_find(const struct intern *t, uint64_t hash, row_same same,
				   const void *wanted)
{
	size_t at = hash_first(&t->index, hash);
	uint32_t id;

	for (; (id = hash_item(&t->index, &at, hash)) != HASH_NONE; at = hash_next(&t->index, at))
		if (same(intern_row(t, id), wanted))
			return id;
	return 0;
}

/* Adds a copy of *row that intern_find() finds by `hash`.  Returns its id, or 0 and *err. */
uint32_t intern_add(struct intern *t, struct arena *a, uint64_t hash, const void *row,
		    struct error *err);
/* Adds a copy of *row that is found only by its id. */
uint32_t intern_append(struct intern *t, struct arena *a, const void *row, struct error *err);
/* Rebuilds the index after the content that identifies some row has changed. */
void intern_reindex(struct intern *t, row_hash hash);
void intern_release(struct intern *t); /* frees the index; the arena owns the rows */

/* Sets *err to the reason why an arena refused `bytes`: ST_CEILING or ST_MEMORY. */
enum status intern_refuse(const struct arena *a, size_t bytes, struct error *err);
