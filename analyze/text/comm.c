/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of `comm` and `ranks`, and what the one page says of waiting. */
#include "analyze/page/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMM_LINES = 24, STRAGGLER_LINES = 8 };

static char *rank_number(char out[NUMBER_TEXT], uint64_t rank)
{
	if (rank == NO_U64)
		out[0] = '\0';
	else
		snprintf(out, NUMBER_TEXT, "%llu", (unsigned long long)rank);
	return out;
}

/* ---- collectives ------------------------------------------------------------------------ */

static const unsigned comm_end[] = { 34, 43, 53, 62, 71, 80, 90, 100 };

/* With waiting inside, bandwidth is at least that. */
static void put_rate(struct page *p, size_t column, double value, bool is_matched)
{
	char text[NUMBER_TEXT], number[NUMBER_TEXT];

	if (!(value > 0))
		return;
	snprintf(text, sizeof(text), "%s%.40s", is_matched ? "" : "> ",
		 number_text(number, value, 1));
	text_right(&p->text, comm_end[column], TOKEN_TEXT, text);
}

static void put_comm(struct page *p, const struct comm_row *r, const struct time_unit *unit)
{
	double per = 1.0 / (double)p->steps;
	char text[NUMBER_TEXT], name[64];

	snprintf(name, sizeof(name), "%.16s %.16s", r->operation, r->type);
	text_cut(&p->text, 0, 23, TOKEN_TEXT, name);
	text_right(&p->text, comm_end[0], TOKEN_TEXT, comm_size_text(text, r->bytes));
	text_right(&p->text, comm_end[1], TOKEN_TEXT,
		   number_text(text, (double)r->calls * per, 0));
	text_right(&p->text, comm_end[2], TOKEN_TEXT,
		   time_text(text, (double)r->total_ns * per, unit));
	text_right(&p->text, comm_end[3], TOKEN_TEXT,
		   time_text(text, (double)r->exposed_ns * per, unit));
	text_right(&p->text, comm_end[4], TOKEN_TEXT,
		   time_text(text, (double)(r->total_ns - r->exposed_ns) * per, unit));
	text_right(&p->text, comm_end[5], TOKEN_TEXT,
		   r->matched ? time_text(text, r->wait_ns * per, unit) : "?");
	put_rate(p, 6, r->algorithm, r->matched > 0);
	put_rate(p, 7, r->bus, r->matched > 0);
	text_end(&p->text);
}

static void put_comm_titles(struct page *p, const struct time_unit *unit)
{
	static const char *const titles[] = { "size", "calls", NULL, "exposed", "hidden", "waiting",
					      "alg GB/s", "bus GB/s" };
	size_t i;

	text_at(&p->text, 0, TOKEN_BOLD, "COMM");
	text_atf(&p->text, 5, TOKEN_DIM, "%s per step", unit->name);
	for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		text_right(&p->text, comm_end[i], TOKEN_DIM, titles[i] ? titles[i] : "total");
	text_end(&p->text);
}

/* Rows of one communicator stand together, below its name. */
static void put_group(struct page *p, const struct comm_rows *all, size_t first, bool *done,
		      const struct time_unit *unit, size_t *lines)
{
	const char *group = all->rows[first].group;
	char ranks[NUMBER_TEXT];
	size_t i;

	text_cut(&p->text, 0, 60, TOKEN_DIM, *group ? group : "communicator not in the files");
	if (all->rows[first].ranks)
		text_atf(&p->text, 62, TOKEN_DIM, "%s ranks",
			 count_text(ranks, all->rows[first].ranks));
	text_end(&p->text);
	for (i = first; i < all->count; i++) {
		if (done[i] || strcmp(all->rows[i].group, group) != 0)
			continue;
		done[i] = true;
		if ((*lines)++ < COMM_LINES)
			put_comm(p, &all->rows[i], unit);
	}
}

enum status page_comm(struct page *p, struct error *err)
{
	struct comm_rows all = { NULL, 0 };
	struct time_unit unit;
	enum status status = comm_rows_take(p, &all, err);
	bool *done = calloc(all.count + 1, sizeof(*done));
	size_t i, lines = 0;

	if (status == ST_OK && !done)
		status = fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	if (status == ST_OK && !all.count) {
		text_at(&p->text, 0, TOKEN_BOLD, "COMM");
		text_at(&p->text, 14, TOKEN_TEXT, "no communication kernel in these files");
		text_end(&p->text);
	}
	if (status == ST_OK && all.count) {
		unit = time_unit_of((double)all.rows[0].total_ns / (double)p->steps, 2);
		put_comm_titles(p, &unit);
		for (i = 0; i < all.count && lines < COMM_LINES; i++)
			if (!done[i])
				put_group(p, &all, i, done, &unit, &lines);
		if (all.count > COMM_LINES) {
			text_atf(&p->text, 0, TOKEN_DIM, "%zu more: --format json or csv",
				 all.count - COMM_LINES);
			text_end(&p->text);
		}
	}
	free(done);
	free(all.rows);
	if (status == ST_OK && p->ranks.count > 1)
		status = page_waiting(p, err);
	return status;
}

/* ---- waiting ---------------------------------------------------------------------------- */

static const unsigned wait_end[] = { 36, 47, 58, 69, 80, 92 };

static void put_wait(struct page *p, const char *name, const double figures[4], uint64_t last,
		     const char *for_rank, const struct time_unit *unit)
{
	char text[NUMBER_TEXT];
	size_t i;

	text_at(&p->text, 14, TOKEN_TEXT, name);
	for (i = 0; i < 2; i++)
		text_right(&p->text, wait_end[i], TOKEN_TEXT, time_text(text, figures[i], unit));
	if (last != NO_U64)
		text_right(&p->text, wait_end[2], TOKEN_TEXT, count_text(text, last));
	for (i = 2; i < 4; i++)
		text_right(&p->text, wait_end[i + 1], TOKEN_TEXT,
			   time_text(text, figures[i], unit));
	text_right(&p->text, wait_end[5], TOKEN_TEXT, for_rank);
	text_end(&p->text);
}

static int compare_doubles(const void *pa, const void *pb)
{
	const double *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

static double figure(const struct wait_row *r, size_t which)
{
	const double all[] = { r->wait_ns, r->exposed_ns, r->late_ns, r->made_ns };

	return all[which];
}

/* Of many ranks: least, middle and most of each figure. */
static enum status put_wait_spread(struct page *p, const struct wait_rows *all,
				   const struct time_unit *unit, struct error *err)
{
	static const char *const names[] = { "min", "median", "max" };
	double *values = calloc(all->count, sizeof(*values)), figures[3][4];
	size_t i, k;

	if (!values)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (k = 0; k < 4; k++) {
		for (i = 0; i < all->count; i++)
			values[i] = figure(&all->rows[i], k);
		qsort(values, all->count, sizeof(*values), compare_doubles);
		figures[0][k] = values[0];
		figures[1][k] = (values[(all->count - 1) / 2] + values[all->count / 2]) / 2;
		figures[2][k] = values[all->count - 1];
	}
	for (i = 0; i < 3; i++)
		put_wait(p, names[i], figures[i], NO_U64, "", unit);
	free(values);
	return ST_OK;
}

static void put_wait_titles(struct page *p, const struct time_unit *unit)
{
	static const char *const titles[] = { "waits", "exposed", "last", "late", "makes wait",
					      "waits for" };
	size_t i;

	text_atf(&p->text, 14, TOKEN_DIM, "%s per step", unit->name);
	for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		text_right(&p->text, wait_end[i], TOKEN_DIM, titles[i]);
	text_end(&p->text);
}

static enum status put_waits(struct page *p, const struct wait_rows *all, struct error *err)
{
	char name[NUMBER_TEXT], who[NUMBER_TEXT];
	struct time_unit unit = time_unit_of(all->most_ns, 2);
	size_t i;

	put_wait_titles(p, &unit);
	if (all->count > all->shown)
		TRY(put_wait_spread(p, all, &unit, err));
	for (i = 0; i < all->shown; i++) {
		const struct wait_row *r = &all->rows[i];
		const double figures[] = { r->wait_ns, r->exposed_ns, r->late_ns, r->made_ns };

		put_wait(p, rank_text(p, r->rank, name), figures, r->last,
			 rank_number(who, r->for_rank), &unit);
	}
	return ST_OK;
}

/* In which phases, and in which steps most. */
static void put_stragglers(struct page *p)
{
	struct view v = page_view(p, "stragglers");
	size_t i;
	char text[NUMBER_TEXT], rank[NUMBER_TEXT];
	struct time_unit unit = { 1e6, 2, "ms" };

	if (!v.count)
		return;
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "CAME LAST");
	text_at(&p->text, 14, TOKEN_DIM, "in step");
	text_at(&p->text, 26, TOKEN_DIM, "phase");
	text_right(&p->text, wait_end[1], TOKEN_DIM, "rank");
	text_right(&p->text, wait_end[2], TOKEN_DIM, "times");
	text_right(&p->text, wait_end[3], TOKEN_DIM, "late ms");
	text_right(&p->text, wait_end[4], TOKEN_DIM, "makes wait");
	text_end(&p->text);
	for (i = 0; i < v.count && i < STRAGGLER_LINES; i++) {
		text_at(&p->text, 14, TOKEN_TEXT, rank_number(rank, view_cell(&v, i, "step").u64));
		text_cut(&p->text, 26, 14, TOKEN_TEXT, view_cell(&v, i, "phase").text);
		text_right(&p->text, wait_end[1], TOKEN_TEXT,
			   rank_number(rank, view_cell(&v, i, "rank").u64));
		text_right(&p->text, wait_end[2], TOKEN_TEXT,
			   count_text(text, view_cell(&v, i, "times_last").u64));
		text_right(&p->text, wait_end[3], TOKEN_TEXT,
			   time_text(text, (double)view_cell(&v, i, "late_ns").u64, &unit));
		text_right(&p->text, wait_end[4], TOKEN_TEXT,
			   time_text(text, (double)view_cell(&v, i, "made_wait_ns").u64, &unit));
		text_end(&p->text);
	}
	if (v.count > STRAGGLER_LINES) {
		text_atf(&p->text, 14, TOKEN_DIM, "%s more",
			 count_text(text, v.count - STRAGGLER_LINES));
		text_end(&p->text);
	}
}

enum status page_waiting(struct page *p, struct error *err)
{
	struct wait_rows all = { .rows = NULL };
	enum status status = wait_rows_take(p, &all, err);
	char words[LATE_TEXT];

	if (status == ST_OK && matched_text(&all, words)) {
		text_end(&p->text);
		text_at(&p->text, 0, TOKEN_BOLD, "WAITING");
		text_clip(&p->text, 14, 86, TOKEN_TEXT, words);
		text_end(&p->text);
		if (late_text(p, &all, words)) {
			text_clip(&p->text, 14, 86, TOKEN_BOLD, words);
			text_end(&p->text);
		}
		if (all.matched)
			status = put_waits(p, &all, err);
	}
	free(all.rows);
	return status;
}

enum status page_waiting_brief(struct page *p, struct error *err)
{
	struct wait_rows all = { .rows = NULL };
	enum status status = wait_rows_take(p, &all, err);
	char words[LATE_TEXT];

	if (status == ST_OK && late_text(p, &all, words)) {
		text_clip(&p->text, 14, 86, TOKEN_BOLD, words);
		text_end(&p->text);
	}
	if (status == ST_OK && matched_text(&all, words)) {
		text_clip(&p->text, 14, 86, TOKEN_DIM, words);
		text_end(&p->text);
	}
	free(all.rows);
	return status;
}

enum status page_ranks(struct page *p, struct error *err)
{
	if (p->ranks.count < 2) {
		text_at(&p->text, 0, TOKEN_BOLD, "RANKS");
		text_at(&p->text, 14, TOKEN_TEXT, "only one rank is given: nothing to compare");
		text_end(&p->text);
		return ST_OK;
	}
	text_at(&p->text, 0, TOKEN_BOLD, "RANKS");
	text_atf(&p->text, 14, TOKEN_TEXT, "%zu given", p->ranks.count);
	text_end(&p->text);
	TRY(page_waiting(p, err));
	put_stragglers(p);
	page_frontier(p);
	TRY(page_steps_many(p, err));
	TRY(page_phases_many(p, err));
	return page_kernels_many(p, err);
}
