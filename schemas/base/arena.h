/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - an allocator whose memory is freed all at once.
 *
 * Memory is zeroed and does not move before arena_release().  An arena belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena {
	struct arena_chunk *chunks; /* the first chunk is the one being filled */
	size_t used;                /* bytes given out, alignment included */
	size_t ceiling;             /* upper limit of `used`, bytes */
	size_t next_bytes;          /* size of the next chunk */
};

/* Sets up an empty arena with at most `ceiling` bytes; allocates no memory. */
void arena_init(struct arena *a, size_t ceiling);
void arena_release(struct arena *a);

/*
 * Returns `size` zeroed bytes.  `align` is a power of two; 0 means the alignment that fits any
 * object.  Returns NULL if the ceiling is reached or there is no memory; arena_is_full()
 * distinguishes the two.  The arena stays usable.
 */
void *arena_take(struct arena *a, size_t size, size_t align);
/* Returns a copy of `len` bytes with a NUL behind them. */
char *arena_text(struct arena *a, const char *text, size_t len);

/* Returns whether `size` more bytes would go over the ceiling. */
static inline bool arena_is_full(const struct arena *a, size_t size)
{
	return size > a->ceiling - a->used;
}
