/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_FIRST = 64 * 1024, CHUNK_MOST = 4 * 1024 * 1024 };

struct arena_chunk {
	struct arena_chunk *older;
	size_t used, size; /* bytes of `data`: in use, in all */
	_Alignas(max_align_t) unsigned char data[];
};

void arena_init(struct arena *a, size_t ceiling)
{
	*a = (struct arena){ .ceiling = ceiling, .next_bytes = CHUNK_FIRST };
}

void arena_release(struct arena *a)
{
	struct arena_chunk *chunk = a->chunks, *older;

	for (; chunk; chunk = older) {
		older = chunk->older;
		free(chunk);
	}
	arena_init(a, a->ceiling);
}

static struct arena_chunk *chunk_new(size_t size)
{
	struct arena_chunk *chunk;

	if (size > SIZE_MAX - sizeof(*chunk))
		return NULL;
	chunk = calloc(1, sizeof(*chunk) + size);
	if (chunk)
		chunk->size = size;
	return chunk;
}

/*
 * Returns a chunk that has `need` bytes left.  A large need gets a separate chunk, which becomes
 * the second in the list, so that the rest of the first one stays usable.
 */
static struct arena_chunk *arena_grow(struct arena *a, size_t need)
{
	size_t left = a->ceiling - a->used;
	size_t size = a->next_bytes < left ? a->next_bytes : left;
	struct arena_chunk *chunk;

	if (need > size / 4 && a->chunks) {
		chunk = chunk_new(need);
		if (!chunk)
			return NULL;
		chunk->older = a->chunks->older;
		a->chunks->older = chunk;
		return chunk;
	}
	chunk = chunk_new(size > need ? size : need);
	if (!chunk)
		return NULL;
	chunk->older = a->chunks;
	a->chunks = chunk;
	if (a->next_bytes < CHUNK_MOST)
		a->next_bytes *= 2;
	return chunk;
}

static size_t chunk_padding(const struct arena_chunk *chunk, size_t align)
{
	return (size_t)(0 - (uintptr_t)(chunk->data + chunk->used)) & (align - 1);
}

void *arena_take(struct arena *a, size_t size, size_t align)
{
	struct arena_chunk *chunk = a->chunks;

	if (!align)
		align = _Alignof(max_align_t);
	size_t most = align > _Alignof(max_align_t) ? align - 1 : 0; /* padding in a new chunk */
	if (arena_is_full(a, size))
		return NULL;
	size_t padding = chunk ? chunk_padding(chunk, align) : 0;
	if (!chunk || padding > chunk->size - chunk->used ||
	    size > chunk->size - chunk->used - padding) {
		/* Check before allocating: a chunk that stays unused would be lost. */
		if (most > SIZE_MAX - size || arena_is_full(a, size + most))
			return NULL;
		chunk = arena_grow(a, size + most);
		if (!chunk)
			return NULL;
		padding = chunk_padding(chunk, align);
	}
	if (arena_is_full(a, padding + size))
		return NULL;
	void *place = chunk->data + chunk->used + padding;
	chunk->used += padding + size;
	a->used += padding + size;
	return place;
}

char *arena_text(struct arena *a, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_take(a, len + 1, 1) : NULL;

	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}
