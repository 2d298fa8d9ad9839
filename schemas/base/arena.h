/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - many allocations, one free.
 *
 * Memory is zeroed and stays where it is until arena_release().  One arena belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena {
	struct arena_chunk *chunks; /* the one being filled first */
	size_t used;                /* bytes given out, alignment included */
	size_t ceiling;             /* `used` never goes beyond */
	size_t next_bytes;          /* of the next chunk */
};

/* Allocates nothing yet. */
void arena_init(struct arena *a, size_t ceiling);
void arena_release(struct arena *a);

/*
 * `align` is a power of two, or 0 for that of any object.  NULL over the ceiling or without
 * memory, the arena being as good as before; arena_is_full() says which of the two.
 */
void *arena_take(struct arena *a, size_t size, size_t align);
/* A copy of `len` bytes and a NUL. */
char *arena_text(struct arena *a, const char *text, size_t len);

/* Whether `size` more bytes would go over the ceiling. */
static inline bool arena_is_full(const struct arena *a, size_t size)
{
	return size > a->ceiling - a->used;
}
