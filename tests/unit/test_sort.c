/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/sort.h"

struct item {
	const char *text;
	uint64_t big;
	int64_t difference;
	double value;
	uint32_t id;
	bool is_last;
};

/* The ids in their order, as digits. */
static uint64_t ids_of(const struct item *items, size_t count)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all = all * 10 + items[i].id;
	return all;
}

void test_sort_keys(void)
{
	struct item items[] = {
		{ "b", UINT64_MAX, -1, 0.5, 1, false },
		{ NULL, 0, INT64_MIN, -0.5, 2, true },
		{ "a", 7, 1, 0.25, 3, false },
		{ "b", 7, INT64_MAX, 1e9, 4, true },
	};

	SORT_BY(items, 4, DOWN(struct item, id));
	CHECK_U64(ids_of(items, 4), 4321);
	SORT_BY(items, 4, UP(struct item, text), UP(struct item, id));
	CHECK_U64(ids_of(items, 4), 2314);
	SORT_BY(items, 4, DOWN(struct item, big), UP(struct item, text));
	CHECK_U64(ids_of(items, 4), 1342);
	SORT_BY(items, 4, UP(struct item, difference));
	CHECK_U64(ids_of(items, 4), 2134);
	SORT_BY(items, 4, DOWN(struct item, value));
	CHECK_U64(ids_of(items, 4), 4132);
	SORT_BY(items, 4, UP(struct item, is_last), DOWN(struct item, text), UP(struct item, id));
	CHECK_U64(ids_of(items, 4), 1342);
	SORT_BY((struct item *)NULL, 0, UP(struct item, id));
	CHECK(sort_compare(&items[0], &items[3], SORT_KEYS(DOWN(struct item, text))) < 0);
	CHECK(!sort_compare(&items[0], &items[2], SORT_KEYS(UP(struct item, text))));
}
