/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of schemas/base against plain arrays, with random keys. */
#include "tests/unit/unit.h"

#include "schemas/base/heap.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { KEYS = 300, ROUNDS = 20000 };

static uint64_t draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *state >> 33;
}

void test_vec_grows(void)
{
	struct error err = { 0 };
	uint32_t *items = NULL;
	size_t cap = 0;

	for (uint32_t i = 0; i < 5000; i++) {
		if (!CHECK_OK(vec_reserve(&items, &cap, i + 1, &err), &err))
			break;
		CHECK(items[i] == 0);
		items[i] = i;
	}
	for (uint32_t i = 0; i < 5000; i++)
		CHECK(items[i] == i);
	CHECK_U64(vec_grow(&items, &cap, SIZE_MAX / 2, sizeof(*items), &err), ST_MEMORY);
	CHECK(items[4999] == 4999);
	free(items);
}

/* Keys are put, changed and removed at random; a plain array says what the map must hold. */
void test_map_random(void)
{
	uint64_t state = 7, held[KEYS] = { 0 };
	bool is_held[KEYS] = { false }, is_new;
	size_t count = 0;
	struct map m = { 0 };

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t key = draw(&state) % KEYS, value = draw(&state);
		uint64_t wide = key * UINT64_C(0x100000001); /* also keys above 32 bits */

		if (draw(&state) % 3) {
			uint64_t *at = map_put(&m, wide, &is_new);

			if (!CHECK(at != NULL) || !CHECK(is_new == !is_held[key]))
				break;
			*at = held[key] = value;
			count += is_new;
			is_held[key] = true;
		} else {
			map_remove(&m, wide);
			count -= is_held[key];
			is_held[key] = false;
		}
		if (!CHECK_U64(m.count, count))
			break;
		for (size_t k = 0; i % 500 == 0 && k < KEYS; k++) {
			uint64_t *at = map_find(&m, k * UINT64_C(0x100000001));

			CHECK((at != NULL) == is_held[k]);
			CHECK(!at || *at == held[k]);
		}
	}
	map_clear(&m);
	CHECK(!map_find(&m, 1) && m.count == 0);
	map_release(&m);
}

/* Items of equal hashes are all found, and no item of another key is. */
void test_hash_index(void)
{
	struct hash_index x = { 0 };
	struct error err = { 0 };
	size_t at;
	uint32_t item;

	at = hash_first(&x, 5);
	CHECK(hash_item(&x, &at, 5) == HASH_NONE);
	for (uint32_t i = 0; i < 3000; i++)
		CHECK_OK(hash_add(&x, hash_word(0, i / 3), i, &err), &err);
	for (uint32_t key = 0; key < 1100; key++) {
		uint64_t hash = hash_word(0, key);
		unsigned found = 0;

		for (at = hash_first(&x, hash); (item = hash_item(&x, &at, hash)) != HASH_NONE;
		     at = hash_next(&x, at))
			found += item / 3 == key;
		CHECK_U64(found, key < 1000 ? 3 : 0);
	}
	hash_release(&x);
}

static bool is_less(const void *self, uint32_t a, uint32_t b)
{
	const uint64_t *values = self;

	return values[a] != values[b] ? values[a] < values[b] : a < b;
}

void test_heap_sorts(void)
{
	uint64_t state = 3, values[500], sorted[500];
	struct heap h = { .self = values };
	struct error err = { 0 };

	for (uint32_t i = 0; i < 500; i++) {
		sorted[i] = values[i] = draw(&state) % 100;
		CHECK_OK(heap_push(&h, i, is_less, &err), &err);
	}
	qsort(sorted, 500, sizeof(*sorted), compare_u64);
	for (uint32_t i = 0, before = 0; i < 500; i++) {
		uint32_t top = heap_pop(&h, is_less);

		CHECK_U64(values[top], sorted[i]);
		CHECK(i == 0 || is_less(values, before, top));
		before = top;
	}
	CHECK_U64(h.count, 0);
	free(h.items);
}

void test_median(void)
{
	uint64_t odd[] = { 9, 1, 5 }, even[] = { 8, 2, 4, 6 };
	double real[] = { 0.5, -1.5 };

	CHECK_F64(median_u64(odd, 3), 5, 0);
	CHECK_F64(median_u64(even, 4), 5, 0);
	CHECK_F64(median_u64(NULL, 0), 0, 0);
	CHECK_F64(median_double(real, 2), -0.5, 0);
}
