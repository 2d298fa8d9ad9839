/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KERNELS of several ranks: where they take different time for the same work (DEFINITIONS.md 7,
 * imbalance: kernels whose counts per step are equal), and what they communicate.
 */
#include "analyze/text/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_SHOWN = 4, COMM_SHOWN = 2 };

struct kernel { /* of one rank, then of all */
	const char *name, *class;
	size_t rank;
	double calls, ns; /* per step */
};
struct spread { /* of a name over the ranks, ns per step */
	const char *name;
	double calls, first, second, third, apart;
};
struct sums {
	struct spread *rows; /* compute, with equal counts */
	size_t count;
	struct spread *comm;
	size_t comm_count;
};

static int compare_names(const void *pa, const void *pb)
{
	const struct kernel *a = pa, *b = pb;
	int order = strcmp(a->name, b->name);

	return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static int compare_apart(const void *pa, const void *pb)
{
	const struct spread *a = pa, *b = pb;

	if (fabs(a->apart) != fabs(b->apart))
		return fabs(a->apart) > fabs(b->apart) ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_time(const void *pa, const void *pb)
{
	const struct kernel *a = pa, *b = pb;

	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* Two ranks: both and their difference.  More: least, middle, most, and most less mean. */
static struct spread spread_of(struct kernel *of, size_t count, size_t ranks)
{
	struct spread s = { .name = of[0].name };
	double sum = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		s.calls += of[i].calls / (double)count;
		sum += of[i].ns;
	}
	if (ranks == 2) {
		s.first = of[0].rank == 0 ? of[0].ns : 0;
		s.second = sum - s.first;
		s.apart = s.second - s.first;
		return s;
	}
	qsort(of, count, sizeof(*of), compare_time);
	s.first = of[0].ns;
	s.second = (of[(count - 1) / 2].ns + of[count / 2].ns) / 2;
	s.third = of[count - 1].ns;
	s.apart = s.third - sum / (double)count;
	return s;
}

static bool equal_calls(const struct kernel *of, size_t count, size_t ranks)
{
	size_t i;

	for (i = 1; i < count; i++)
		if (fabs(of[i].calls - of[0].calls) > 1e-9)
			return false;
	return count == ranks;
}

static size_t kernels_take(const struct page *p, struct kernel *all)
{
	size_t rank, i, count = 0;

	for (rank = 0; rank < p->ranks.count; rank++) {
		struct view v = page_of_rank(p, "kernels", rank);
		double steps = (double)view_cell(&p->ranks, rank, "complete_steps").u64;

		for (i = 0; i < v.count && steps > 0; i++)
			all[count++] = (struct kernel){
				.name = view_cell(&v, i, "name").text,
				.class = view_text(&v, i, "class"), .rank = rank,
				.calls = (double)view_cell(&v, i, "count").u64 / steps,
				.ns = (double)view_cell(&v, i, "total_ns").u64 / steps,
			};
	}
	return count;
}

static void sums_take(struct sums *s, struct kernel *all, size_t count, size_t ranks)
{
	size_t first, end;

	qsort(all, count, sizeof(*all), compare_names);
	for (first = 0; first < count; first = end) {
		bool comm = !strcmp(all[first].class, "comm");
		bool equal;

		for (end = first + 1; end < count && !strcmp(all[end].name, all[first].name); end++)
			;
		equal = equal_calls(all + first, end - first, ranks);
		if (comm)
			s->comm[s->comm_count++] = spread_of(all + first, end - first, ranks);
		else if (equal)
			s->rows[s->count++] = spread_of(all + first, end - first, ranks);
	}
	if (s->count)
		qsort(s->rows, s->count, sizeof(*s->rows), compare_apart);
	if (s->comm_count)
		qsort(s->comm, s->comm_count, sizeof(*s->comm), compare_apart);
}

static void put_apart(struct page *p, enum token token, double ns, const struct time_unit *unit)
{
	char text[NUMBER_TEXT], number[NUMBER_TEXT];

	number_text(number, fabs(ns) / unit->ns, unit->decimals);
	snprintf(text, sizeof(text), "%s%.40s", ns > 0 ? "+" : ns < 0 ? "-" : "", number);
	text_right(&p->text, 98, token, text);
}

static void put_spread(struct page *p, const struct spread *s, enum token token,
		       const struct time_unit *unit)
{
	char text[NUMBER_TEXT];
	bool two = p->ranks.count == 2;
	unsigned at = two ? 78 : 70;

	text_right(&p->text, two ? 68 : 62, token, number_text(text, s->calls, 0));
	text_right(&p->text, at, token, time_text(text, s->first, unit));
	text_right(&p->text, at + (two ? 10 : 9), token, time_text(text, s->second, unit));
	if (!two)
		text_right(&p->text, 88, token, time_text(text, s->third, unit));
	put_apart(p, token == TOKEN_DIM ? token : TOKEN_BOLD, s->apart, unit);
	text_end(&p->text);
}

static void put_row(struct page *p, const struct spread *s, unsigned column, unsigned width,
		    const struct time_unit *unit)
{
	char name[512];

	name_short(s->name, width, name, sizeof(name));
	text_cut(&p->text, column, width, TOKEN_TEXT, name);
	put_spread(p, s, TOKEN_TEXT, unit);
}

static void put_titles(struct page *p, size_t names, const struct time_unit *unit)
{
	char text[NUMBER_TEXT];
	bool two = p->ranks.count == 2;

	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "KERNELS");
	text_atf(&p->text, 14, TOKEN_DIM, "%s names with equal counts, %s per step",
		 count_text(text, names), unit->name);
	text_right(&p->text, two ? 68 : 62, TOKEN_DIM, "calls");
	text_right(&p->text, two ? 78 : 70, TOKEN_DIM, two ? rank_text(p, 0, text) : "min");
	text_right(&p->text, two ? 88 : 79, TOKEN_DIM, two ? rank_text(p, 1, text) : "median");
	if (!two)
		text_right(&p->text, 88, TOKEN_DIM, "max");
	text_right(&p->text, 98, TOKEN_DIM, two ? "apart" : "over mean");
	text_end(&p->text);
}

static void put_all(struct page *p, const struct sums *s)
{
	size_t shown = s->count <= ROWS_SHOWN + 1 ? s->count : ROWS_SHOWN, i;
	unsigned width = p->ranks.count == 2 ? 61 : 55;
	struct spread rest = { .name = "" };
	struct time_unit unit = { 1e6, 2, "ms" };
	char text[NUMBER_TEXT];

	put_titles(p, s->count, &unit);
	for (i = 0; i < shown; i++)
		put_row(p, &s->rows[i], 0, width, &unit);
	for (; i < s->count; i++) {
		rest.calls += s->rows[i].calls;
		rest.first += s->rows[i].first;
		rest.second += s->rows[i].second;
		rest.third += s->rows[i].third;
		rest.apart += s->rows[i].apart;
	}
	if (shown < s->count) {
		text_atf(&p->text, 0, TOKEN_DIM, "%s more", count_text(text, s->count - shown));
		put_spread(p, &rest, TOKEN_DIM, &unit);
	}
	for (i = 0; i < s->comm_count && i < COMM_SHOWN; i++) {
		if (!i)
			text_at(&p->text, 0, TOKEN_BOLD, "COMM");
		put_row(p, &s->comm[i], 14, width - 14, &unit);
	}
}

enum status page_kernels_many(struct page *p, struct error *err)
{
	struct view v = page_view(p, "kernels");
	struct kernel *all = calloc(v.count + 1, sizeof(*all));
	struct sums s = { .rows = calloc(v.count + 1, sizeof(*s.rows)),
			  .comm = calloc(v.count + 1, sizeof(*s.comm)) };
	enum status status = ST_OK;

	if (!all || !s.rows || !s.comm)
		status = fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	else if (v.count)
		sums_take(&s, all, kernels_take(p, all), p->ranks.count);
	if (status == ST_OK && v.count)
		put_all(p, &s);
	free(all);
	free(s.rows);
	free(s.comm);
	return status;
}
