/* SPDX-License-Identifier: Apache-2.0 */
/* Steps found by their number: it goes up from mark to mark, or comes again. */
#include "tests/unit/unit.h"

#include "convert/stage/step_list.h"

/* Against a look at all of them. */
static void check_find(const uint64_t *numbers, size_t count)
{
	struct step_list l = { .rows = NULL };
	struct step_row *row;
	uint64_t number;
	size_t i, last;

	for (i = 0; i < count; i++) {
		struct step_mark mark = { .begin_ns = 10 * i + 1,
					  .end_ns = 10 * i + 9,
					  .number = numbers[i] };

		CHECK_OK(steps_put(&l, &mark, &row, NULL), NULL);
	}
	CHECK_OK(steps_keep(&l, NULL), NULL);
	for (number = 0; number < 12; number++) {
		for (last = i = 0; i < count; i++)
			last = numbers[i] == number ? i + 1 : last;
		CHECK_U64(steps_find(&l, number), last ? last - 1 : count);
	}
	steps_release(&l);
}

void test_step_list_find(void)
{
	static const uint64_t ascend[] = { 1, 2, 3, 5, 8, 9 }, again[] = { 3, 4, 5, 3, 4, 7 },
			      twice[] = { 6, 6 }, one[] = { 7 };

	check_find(ascend, 6);
	check_find(again, 6);
	check_find(twice, 2);
	check_find(one, 1);
	check_find(NULL, 0);
}
