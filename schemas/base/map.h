/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - hash tables with open addressing.
 *
 * `struct map` maps 64-bit keys to 64-bit values.  `struct hash_index` finds items of an array that
 * its owner keeps, by any key: the owner hashes and compares, the index stores 32 bits of each hash
 * and the item's number.  A zeroed struct is an empty table.  Both belong to one thread.  The order
 * of slots depends on the hash (hash.h), so outputs must not depend on it.
 */
#pragma once

#include "schemas/base/hash.h"
#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key, value; /* key 0: the slot is free */
};
struct map {
	struct map_slot *slots; /* cap + 1 slots; the last one is for key 0 and stores key 1 */
	size_t cap, count;      /* cap: number of the other slots, a power of two or 0 */
};

/* Returns the value of a key, which may be changed until the next map_put(), or NULL. */
uint64_t *map_find(const struct map *m, uint64_t key);
/* Finds or adds a key and returns its value, which is 0 at first, or NULL without memory.  *is_new
 * (may be NULL) is set to whether it was added. */
uint64_t *map_put(struct map *m, uint64_t key, bool *is_new);
/* Removes a key if it is there. */
void map_remove(struct map *m, uint64_t key);
void map_clear(struct map *m); /* keeps the memory */
void map_release(struct map *m);

struct hash_slot {
	uint32_t hash, item; /* item: number of the item + 1; 0: the slot is free */
};
struct hash_index {
	struct hash_slot *slots;
	size_t cap, count;
};

/*
 * This loop visits the items whose hash may be the wanted one:
 *
 *	for (at = hash_first(x, hash); (item = hash_item(x, &at, hash)) != HASH_NONE;
 *	     at = hash_next(x, at))
 *		if (rows[item].key == key)
 *			return item;
 */
#define HASH_NONE UINT32_MAX
static inline size_t hash_first(const struct hash_index *x, uint64_t hash)
{
	return x->cap ? (size_t)(hash >> 32) & (x->cap - 1) : 0;
}
static inline size_t hash_next(const struct hash_index *x, size_t at)
{
	return (at + 1) & (x->cap - 1);
}
/* Returns the first item from slot `*at` on that has this hash and sets `*at` to its slot, or
 * returns HASH_NONE. */
static inline uint32_t hash_item(const struct hash_index *x, size_t *at, uint64_t hash)
{
	if (!x->cap)
		return HASH_NONE;
	while (x->slots[*at].item && x->slots[*at].hash != (uint32_t)(hash >> 32))
		*at = hash_next(x, *at);
	return x->slots[*at].item - 1; /* a free slot gives HASH_NONE */
}
/* Returns the item, in an array of items of `size` bytes, that begins with the bytes of `key`, or
 * HASH_NONE.  There is no padding between the members of a key. */
uint32_t hash_find(const struct hash_index *x, uint64_t hash, const void *items, size_t size,
		   const void *key, size_t key_size);
/* Adds an item that is not in the index.  ST_MEMORY leaves the index unchanged. */
enum status hash_add(struct hash_index *x, uint64_t hash, uint32_t item, struct error *err);
void hash_clear(struct hash_index *x); /* keeps the memory */
void hash_release(struct hash_index *x);
