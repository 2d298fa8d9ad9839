/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/map.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64 };

/* Tables are at most half full, so that a search ends after a few slots. */
static bool is_full(size_t cap, size_t count)
{
	return (count + 1) * 2 > cap;
}

/* Returns the first slot for a key, from the high bits of its hash.  When a table is widened, each
 * slot is then copied to one of two neighbours; any other order would miss the cache at each
 * copy. */
static size_t map_first(const struct map *m, uint64_t key)
{
	return (size_t)(hash_word(0, key) >> __builtin_clzll(m->cap - 1));
}

static size_t map_slot_of(const struct map *m, uint64_t key)
{
	size_t at = key ? map_first(m, key) : m->cap;

	while (key && m->slots[at].key && m->slots[at].key != key)
		at = (at + 1) & (m->cap - 1);
	return at;
}

uint64_t *map_find(const struct map *m, uint64_t key)
{
	struct map_slot *slot = m->cap ? &m->slots[map_slot_of(m, key)] : NULL;

	return slot && slot->key ? &slot->value : NULL;
}

static bool map_widen(struct map *m)
{
	struct map wider = { .cap = m->cap ? m->cap * 2 : FIRST_SLOTS, .count = m->count };

	wider.slots = calloc(wider.cap + 1, sizeof(*wider.slots));
	if (!wider.slots)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].key)
			wider.slots[map_slot_of(&wider, m->slots[i].key)] = m->slots[i];
	if (m->cap)
		wider.slots[wider.cap] = m->slots[m->cap];
	free(m->slots);
	*m = wider;
	return true;
}

uint64_t *map_put(struct map *m, uint64_t key, bool *is_new)
{
	uint64_t *value = map_find(m, key);

	if (is_new)
		*is_new = !value;
	if (value)
		return value;
	if (is_full(m->cap, m->count) && !map_widen(m))
		return NULL;
	struct map_slot *slot = &m->slots[map_slot_of(m, key)];
	*slot = (struct map_slot){ .key = key ? key : 1 };
	m->count++;
	return &slot->value;
}

void map_remove(struct map *m, uint64_t key)
{
	size_t wanted;

	if (!map_find(m, key))
		return;
	size_t vacant = map_slot_of(m, key);
	m->count--;
	/* Move later slots into the vacant one, unless they would then precede the slot of their
	 * hash. */
	for (size_t at = (vacant + 1) & (m->cap - 1); key && m->slots[at].key;
	     at = (at + 1) & (m->cap - 1)) {
		wanted = map_first(m, m->slots[at].key);
		if (((at - wanted) & (m->cap - 1)) >= ((at - vacant) & (m->cap - 1))) {
			m->slots[vacant] = m->slots[at];
			vacant = at;
		}
	}
	m->slots[vacant] = (struct map_slot){ .key = 0 };
}

void map_clear(struct map *m)
{
	if (m->slots)
		memset(m->slots, 0, (m->cap + 1) * sizeof(*m->slots));
	m->count = 0;
}

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map){ .count = 0 };
}

static void hash_insert(struct hash_index *x, size_t at, struct hash_slot slot)
{
	while (x->slots[at].item)
		at = hash_next(x, at);
	x->slots[at] = slot;
}

uint32_t hash_find(const struct hash_index *x, uint64_t hash, const void *items, size_t size,
		   const void *key, size_t key_size)
{
	uint32_t item;

	for (size_t at = hash_first(x, hash); (item = hash_item(x, &at, hash)) != HASH_NONE;
	     at = hash_next(x, at))
		if (!memcmp((const char *)items + item * size, key, key_size))
			break;
	return item;
}

enum status hash_add(struct hash_index *x, uint64_t hash, uint32_t item, struct error *err)
{
	struct hash_index wider = { .cap = x->cap ? x->cap * 2 : FIRST_SLOTS, .count = x->count };

	if (is_full(x->cap, x->count)) {
		wider.slots = calloc(wider.cap, sizeof(*wider.slots));
		if (!wider.slots)
			return fail_memory(err);
		for (size_t i = 0; i < x->cap; i++)
			if (x->slots[i].item)
				hash_insert(&wider, x->slots[i].hash & (wider.cap - 1),
					    x->slots[i]);
		free(x->slots);
		*x = wider;
	}
	hash_insert(x, (uint32_t)(hash >> 32) & (x->cap - 1),
		    (struct hash_slot){ (uint32_t)(hash >> 32), item + 1 });
	x->count++;
	return ST_OK;
}

void hash_clear(struct hash_index *x)
{
	if (x->slots)
		memset(x->slots, 0, x->cap * sizeof(*x->slots));
	x->count = 0;
}

void hash_release(struct hash_index *x)
{
	free(x->slots);
	*x = (struct hash_index){ .count = 0 };
}
