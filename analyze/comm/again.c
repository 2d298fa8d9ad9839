/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/comm/again.h"

#include <stdlib.h>

struct numbered {
	uint64_t number;
	size_t row;
};

static int compare_numbers(const void *pa, const void *pb)
{
	const struct numbered *a = pa, *b = pb;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

static bool ascends(const struct step_list *steps)
{
	size_t i;

	for (i = 1; i < steps->count; i++)
		if (steps->rows[i].number <= steps->rows[i - 1].number)
			return false;
	return true;
}

static void count_same(const struct numbered *sorted, size_t count, struct again *all)
{
	size_t first, end, i;

	for (first = 0; first < count; first = end) {
		for (end = first; end < count && sorted[end].number == sorted[first].number; end++)
			all[sorted[end].row].nth = (uint32_t)(end - first);
		for (i = first; i < end; i++)
			all[sorted[i].row].times = (uint32_t)(end - first);
	}
}

enum status again_find(const struct step_list *steps, struct again **out, struct error *err)
{
	struct numbered *sorted;
	size_t i;

	*out = NULL;
	if (ascends(steps))
		return ST_OK;
	sorted = malloc(steps->count * sizeof(*sorted));
	*out = malloc(steps->count * sizeof(**out));
	if (!sorted || !*out) {
		free(sorted);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the numbers of steps");
	}
	for (i = 0; i < steps->count; i++)
		sorted[i] = (struct numbered){ steps->rows[i].number, i };
	qsort(sorted, steps->count, sizeof(*sorted), compare_numbers);
	count_same(sorted, steps->count, *out);
	free(sorted);
	return ST_OK;
}

struct again again_at(const struct again *all, uint32_t row)
{
	if (!row)
		return (struct again){ 0 };
	return all ? all[row - 1] : (struct again){ .nth = 0, .times = 1 };
}
