/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that all sections make to the tables of a page. */
#include "analyze/format/page/internal.h"

struct view page_view(const struct page *p, const char *table)
{
	return view_find(p->views, p->how->tables, table);
}

bool page_has_table(const struct page *p, const char *table)
{
	return page_view(p, table).type != NULL;
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
		sum += view_u64(v, i, column);
	return sum;
}

const char *rank_text(const struct page *p, size_t rank, struct blocks *b)
{
	unsigned long long number = view_u64(&p->ranks, rank, "rank");

	return number != NO_U64 ? blocks_text(b, "rank %llu", number)
				: blocks_text(b, "pid %llu",
					      (unsigned long long)view_u64(&p->ranks, rank, "pid"));
}

const char *show_id(struct blocks *b, const struct view *v, size_t row, const char *column)
{
	unsigned long long id = view_u64(v, row, column);

	return id == NO_U64 ? "" : blocks_text(b, "%llu", id);
}
