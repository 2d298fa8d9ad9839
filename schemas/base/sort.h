/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - sorts arrays of structs by some of their members.
 *
 *	SORT_BY(rows, count, DOWN(struct row, total_ns), UP(struct row, name));
 *
 * A key compares a member: a number, a boolean, or a text by its bytes (NULL as "").  Rows that are
 * equal in all keys may end in any order, so the last key has to differ in all rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sort_type { SORT_NONE, SORT_U64, SORT_U32, SORT_I64, SORT_F64, SORT_BOOL, SORT_TEXT };
struct sort_key {
	size_t at; /* offset of the member */
	enum sort_type type;
	bool is_down; /* descending order */
};
#define SORT_TYPE(member)                                                                          \
	_Generic((member),                                                                         \
		uint64_t: SORT_U64,                                                                \
		uint32_t: SORT_U32,                                                                \
		int64_t: SORT_I64,                                                                 \
		double: SORT_F64,                                                                  \
		bool: SORT_BOOL,                                                                   \
		const char *: SORT_TEXT)
#define SORT_KEY(owner, member, down)                                                              \
	{                                                                                          \
		offsetof(owner, member), SORT_TYPE(((owner){}).member), down                       \
	}
#define UP(owner, member)   SORT_KEY(owner, member, false)
#define DOWN(owner, member) SORT_KEY(owner, member, true)
#define SORT_KEYS(...)      ((const struct sort_key[]){ __VA_ARGS__, { .type = SORT_NONE } })

/* Returns a number below, equal to or above 0, as qsort() expects. */
int sort_compare(const void *a, const void *b, const struct sort_key *keys);
void sort_rows(void *items, size_t count, size_t size, const struct sort_key *keys);
#define SORT_BY(items, count, ...) sort_rows(items, count, sizeof(*(items)), SORT_KEYS(__VA_ARGS__))

/*
 * A binary search: `at` becomes the first place in [first, end) for which `is_before`, an
 * expression of `at`, is false, or `end`.  If it is false for one place, it is false for all later
 * ones.
 */
#define SEARCH(at, first, end, is_before)                                                          \
	for (size_t low_ = (first), high_ = (end);                                                 \
	     (at) = low_ + (high_ - low_) / 2, low_ < high_;)                                      \
		if (is_before)                                                                     \
			low_ = (at) + 1;                                                           \
		else                                                                               \
			high_ = (at)
