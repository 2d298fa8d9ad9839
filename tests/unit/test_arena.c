/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/arena.h"

#include <string.h>

static bool is_zero(const uint8_t *p, size_t len)
{
	while (len--)
		if (*p++)
			return false;
	return true;
}

/* Many sizes and alignments: each zeroed, aligned, and whole when all are written. */
void test_arena_take(void)
{
	enum { COUNT = 3000 };
	static uint8_t *places[COUNT];
	struct arena a;
	size_t i, size, sum = 0;
	bool good = true;

	arena_init(&a, 64 << 20);
	for (i = 0; i < COUNT; i++) {
		size_t align = (size_t)1 << i % 8;

		size = i * 37 % 1000 + (i % 500 == 0 ? 100000 : 0);
		places[i] = arena_take(&a, size, align);
		good = good && places[i] && (uintptr_t)places[i] % align == 0 &&
		       is_zero(places[i], size);
		if (!good)
			break;
		memset(places[i], (int)(i % 255 + 1), size);
		sum += size;
	}
	if (!CHECK(good)) {
		arena_release(&a);
		return;
	}
	for (i = 0; i < COUNT; i++) {
		size = i * 37 % 1000 + (i % 500 == 0 ? 100000 : 0);
		good = good && (!size || (places[i][0] == i % 255 + 1 &&
					  places[i][size - 1] == i % 255 + 1));
	}
	CHECK(good);
	CHECK(a.used >= sum && a.used < sum + COUNT * 128);
	arena_release(&a);
	CHECK_U64(a.used, 0);
	CHECK(arena_take(&a, 1, 1) != NULL); /* released is as good as new */
	arena_release(&a);
}

void test_arena_text(void)
{
	struct arena a;
	char *x, *y, *empty;

	arena_init(&a, 1000);
	x = arena_text(&a, "first", 5);
	y = arena_text(&a, "second of two", 6);
	empty = arena_text(&a, NULL, 0);
	CHECK_STR(x, "first");
	CHECK_STR(y, "second");
	CHECK_STR(empty, "");
	CHECK_U64(a.used, 6 + 7 + 1); /* texts stand side by side */
	CHECK(arena_text(&a, "x", SIZE_MAX) == NULL);
	arena_release(&a);
}

void test_arena_ceiling(void)
{
	struct arena a;

	arena_init(&a, 100);
	CHECK(arena_take(&a, 101, 1) == NULL);
	CHECK_U64(a.used, 0);
	CHECK(arena_take(&a, SIZE_MAX, 16) == NULL);
	CHECK(arena_take(&a, 60, 1) != NULL);
	CHECK(arena_take(&a, 41, 1) == NULL);
	CHECK(arena_is_full(&a, 41) && !arena_is_full(&a, 40));
	CHECK(arena_take(&a, 40, 1) != NULL); /* a refusal leaves it usable, to the last byte */
	CHECK_U64(a.used, 100);
	CHECK(arena_take(&a, 1, 1) == NULL);
	CHECK(arena_text(&a, "", 0) == NULL);
	arena_release(&a);
	arena_init(&a, 0);
	CHECK(arena_take(&a, 1, 1) == NULL);
	arena_release(&a);
}

/* Also with needs that do not divide chunks: the ceiling is reached exactly, over many chunks. */
void test_arena_ceiling_reached(void)
{
	enum { CEILING = 300000, PIECE = 1000 };
	struct arena a;
	size_t count = 0, tries;

	arena_init(&a, CEILING);
	while (arena_take(&a, PIECE, 1))
		count++;
	CHECK_U64(count, CEILING / PIECE);
	for (tries = 0; tries < 1000; tries++)
		if (arena_take(&a, 64, 64))
			break;
	CHECK_U64(tries, 1000);
	CHECK_U64(a.used, CEILING);
	arena_release(&a);
}

/* Over-aligned: the padding counts, and a refused try does not take memory each time. */
void test_arena_alignment(void)
{
	struct arena a;
	size_t i;

	arena_init(&a, 5000);
	CHECK(arena_take(&a, 1, 1) != NULL);
	/* where a chunk begins is malloc's choice: 15 bytes of padding are the least behind one
	 * byte */
	for (i = 0; i < 100; i++)
		CHECK(arena_take(&a, 4990, 4096) == NULL);
	CHECK((uintptr_t)arena_take(&a, 8, 0) % _Alignof(max_align_t) == 0);
	arena_release(&a);
	arena_init(&a, 100000);
	for (i = 0; i < 10; i++) {
		void *p = arena_take(&a, 5, 4096);

		CHECK(p && (uintptr_t)p % 4096 == 0);
	}
	arena_release(&a);
}

void test_arena_no_memory(void)
{
	struct arena a;
	char *kept;

	arena_init(&a, SIZE_MAX);
	kept = arena_text(&a, "kept", 4);
	CHECK(arena_take(&a, SIZE_MAX / 2 + 1, 16) == NULL);
	CHECK(arena_take(&a, SIZE_MAX - 5, 64) == NULL);
	CHECK(!arena_is_full(&a, SIZE_MAX / 2 + 1));
	CHECK_STR(kept, "kept");
	CHECK(arena_take(&a, 16, 16) != NULL);
	arena_release(&a);
}
