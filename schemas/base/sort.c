/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/sort.h"

#include <stdlib.h>
#include <string.h>

#define ORDER(type, a, b)                                                                          \
	(*(const type *)(a) > *(const type *)(b)) - (*(const type *)(a) < *(const type *)(b))

static int compare_member(const void *a, const void *b, enum sort_type type)
{
	const char *one, *other;

	switch (type) {
	case SORT_U64:
		return ORDER(uint64_t, a, b);
	case SORT_U32:
		return ORDER(uint32_t, a, b);
	case SORT_I64:
		return ORDER(int64_t, a, b);
	case SORT_F64:
		return ORDER(double, a, b);
	case SORT_BOOL:
		return ORDER(bool, a, b);
	case SORT_TEXT:
		one = *(const char *const *)a;
		other = *(const char *const *)b;
		return strcmp(one ? one : "", other ? other : "");
	case SORT_NONE:
		break;
	}
	return 0;
}

int sort_compare(const void *a, const void *b, const struct sort_key *keys)
{
	int order = 0;

	for (; keys->type != SORT_NONE && !order; keys++) {
		order = compare_member((const char *)a + keys->at, (const char *)b + keys->at,
				       keys->type);
		order = keys->is_down ? (order < 0) - (order > 0) : order;
	}
	return order;
}

static int compare_rows(const void *a, const void *b, void *keys)
{
	return sort_compare(a, b, keys);
}

void sort_rows(void *items, size_t count, size_t size, const struct sort_key *keys)
{
	if (count)
		qsort_r(items, count, size, compare_rows, (void *)(uintptr_t)keys);
}
