/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/comm/repeat.h"

#include "schemas/base/sort.h"

#include <stdlib.h>

struct numbered {
	uint64_t number;
	size_t row;
};

static bool ascends(const struct step_list *steps)
{
	for (size_t i = 1; i < steps->count; i++)
		if (steps->rows[i].number <= steps->rows[i - 1].number)
			return false;
	return true;
}

enum status step_repeats_find(const struct step_list *steps, struct step_repeat **out,
			      struct error *err)
{
	struct numbered *sorted;

	*out = NULL;
	if (ascends(steps))
		return ST_OK;
	sorted = malloc(steps->count * sizeof(*sorted));
	*out = malloc(steps->count * sizeof(**out));
	if (!sorted || !*out) {
		free(sorted);
		return fail_memory(err);
	}
	for (size_t i = 0; i < steps->count; i++)
		sorted[i] = (struct numbered){ steps->rows[i].number, i };
	SORT_BY(sorted, steps->count, UP(struct numbered, number), UP(struct numbered, row));
	size_t end;
	for (size_t first = 0; first < steps->count; first = end) {
		for (end = first; end < steps->count && sorted[end].number == sorted[first].number;
		     end++)
			(*out)[sorted[end].row].nth = (uint32_t)(end - first);
		for (size_t i = first; i < end; i++)
			(*out)[sorted[i].row].times = (uint32_t)(end - first);
	}
	free(sorted);
	return ST_OK;
}

struct step_repeat step_repeat_at(const struct step_repeat *all, uint32_t row)
{
	if (!row)
		return (struct step_repeat){ 0 };
	return all ? all[row - 1] : (struct step_repeat){ .nth = 0, .times = 1 };
}
