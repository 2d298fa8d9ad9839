/* SPDX-License-Identifier: Apache-2.0 */
/* What every section asks the tables of a page. */
#include "analyze/format/page/internal.h"

#include <stdio.h>

struct view page_view(const struct page *p, const char *table)
{
	return view_find(p->views, p->how->tables, table);
}

struct view page_of_rank(const struct page *p, const char *table, size_t rank)
{
	struct view all = page_view(p, table);

	return rank < p->ranks.count ? view_below(&all, p->ranks.rows[rank], RANK_KEYS) : all;
}

uint64_t page_sum(const struct view *v, const char *column)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->count; i++)
		sum += view_cell(v, i, column).u64;
	return sum;
}

char *rank_text(const struct page *p, size_t rank, char out[NUMBER_TEXT])
{
	uint64_t number = view_cell(&p->ranks, rank, "rank").u64;

	if (number == NO_U64)
		snprintf(out, NUMBER_TEXT, "pid %llu",
			 (unsigned long long)view_cell(&p->ranks, rank, "pid").u64);
	else
		snprintf(out, NUMBER_TEXT, "rank %llu", (unsigned long long)number);
	return out;
}
