/* SPDX-License-Identifier: Apache-2.0 */
/* STEPS, PHASES and KERNELS of several ranks: side by side for two, the spread for more. */
#include "analyze/text/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_COLUMNS = 5, COLUMN_FIRST = 42, COLUMN_WIDTH = 10 };

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
}

static int compare_doubles(const void *pa, const void *pb)
{
	const double *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Of `count` values, which are put in order. */
static double median_of(double *values, size_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), compare_doubles);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* ---- steps ------------------------------------------------------------------------------ */

struct rank_steps { /* counted steps of a rank */
	double *walls;
	uint64_t *numbers;
	size_t count, rank;
	double mean;
};

static void steps_free(struct rank_steps *all, size_t count)
{
	size_t i;

	for (i = 0; all && i < count; i++) {
		free(all[i].walls);
		free(all[i].numbers);
	}
	free(all);
}

static enum status rank_steps_take(struct page *p, size_t rank, struct rank_steps *s,
				   struct error *err)
{
	struct view v = page_of_rank(p, "steps", rank);
	size_t i;

	s->rank = rank;
	s->walls = calloc(v.count + 1, sizeof(*s->walls));
	s->numbers = calloc(v.count + 1, sizeof(*s->numbers));
	if (!s->walls || !s->numbers)
		return no_memory(err);
	for (i = 0; i < v.count; i++) {
		if (view_cell(&v, i, "counted").u64 != 1)
			continue;
		s->numbers[s->count] = view_cell(&v, i, "step").u64;
		s->walls[s->count] = (double)view_cell(&v, i, "wall_ns").u64;
		s->mean += s->walls[s->count++];
	}
	s->mean = s->count ? s->mean / (double)s->count : 0;
	return ST_OK;
}

static bool same_steps(const struct rank_steps *all, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (all[i].count > STEP_COLUMNS || all[i].count != all[0].count ||
		    (all[i].count && memcmp(all[i].numbers, all[0].numbers,
					    all[0].count * sizeof(uint64_t)) != 0))
			return false;
	return all[0].count > 0;
}

static int compare_mean(const void *pa, const void *pb)
{
	const struct rank_steps *a = pa, *b = pb;

	if (a->mean != b->mean)
		return a->mean < b->mean ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

static unsigned column_end(size_t column)
{
	return COLUMN_FIRST + COLUMN_WIDTH * (unsigned)column;
}

static void put_time(struct page *p, size_t column, double ns, const struct time_unit *unit)
{
	char text[NUMBER_TEXT];

	text_right(&p->text, column_end(column), TOKEN_TEXT, time_text(text, ns, unit));
}

/* A column for each step, and how far apart the ranks are in it. */
static void put_by_step(struct page *p, const struct rank_steps *all, size_t shown, size_t count,
			const struct time_unit *unit)
{
	char text[NUMBER_TEXT];
	size_t i, k;

	for (i = 0; i < shown; i++) {
		text_at(&p->text, 14, TOKEN_TEXT, rank_text(p, all[i].rank, text));
		for (k = 0; k < all[i].count; k++)
			put_time(p, k, all[i].walls[k], unit);
		put_time(p, k, all[i].mean, unit);
		text_end(&p->text);
	}
	text_at(&p->text, 14, TOKEN_DIM, "apart");
	for (k = 0; k < all[0].count; k++) {
		double low = INFINITY, high = 0;

		for (i = 0; i < count; i++) {
			low = all[i].walls[k] < low ? all[i].walls[k] : low;
			high = all[i].walls[k] > high ? all[i].walls[k] : high;
		}
		text_right(&p->text, column_end(k), TOKEN_DIM, time_text(text, high - low, unit));
	}
	text_end(&p->text);
}

static void put_spread(struct page *p, const struct rank_steps *all, size_t shown,
		       const struct time_unit *unit)
{
	char text[NUMBER_TEXT];
	size_t i;

	for (i = 0; i < shown; i++) {
		const struct rank_steps *s = &all[i];
		double median = median_of(s->walls, s->count);

		text_at(&p->text, 14, TOKEN_TEXT, rank_text(p, s->rank, text));
		put_time(p, 0, s->count ? s->walls[0] : 0, unit);
		put_time(p, 1, median, unit);
		put_time(p, 2, s->count ? s->walls[s->count - 1] : 0, unit);
		put_time(p, 3, s->mean, unit);
		text_end(&p->text);
	}
}

static void put_step_titles(struct page *p, const struct rank_steps *all, bool by_step,
			    const struct time_unit *unit)
{
	static const char *const spread[] = { "min", "median", "max" };
	size_t k, count = by_step ? all[0].count : 3;
	char text[NUMBER_TEXT];

	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "STEPS");
	text_atf(&p->text, 14, TOKEN_DIM, "wall %s", unit->name);
	for (k = 0; k < count; k++) {
		if (by_step)
			snprintf(text, sizeof(text), "%llu", (unsigned long long)all[0].numbers[k]);
		else
			snprintf(text, sizeof(text), "%s", spread[k]);
		text_right(&p->text, column_end(k), TOKEN_DIM, text);
	}
	text_right(&p->text, column_end(count), TOKEN_DIM, "mean");
	text_end(&p->text);
}

/* Of many ranks: the quickest, the one in the middle, and the three slowest. */
static size_t choose(struct rank_steps *all, size_t count)
{
	static const size_t from_end[] = { 3, 2, 1 };
	struct rank_steps swap;
	size_t i, at;

	if (count <= RANK_LINES)
		return count;
	qsort(all, count, sizeof(*all), compare_mean);
	for (i = 0; i < 4; i++) {
		at = i ? count - from_end[i - 1] : (count - 1) / 2;
		swap = all[1 + i];
		all[1 + i] = all[at];
		all[at] = swap;
	}
	return 5;
}

enum status page_steps_many(struct page *p, struct error *err)
{
	size_t count = p->ranks.count, i, shown;
	struct rank_steps *all = calloc(count + 1, sizeof(*all));
	struct time_unit unit;
	enum status status = all ? ST_OK : no_memory(err);
	double most = 0;
	bool by_step;

	for (i = 0; status == ST_OK && i < count; i++) {
		status = rank_steps_take(p, i, &all[i], err);
		most = all[i].mean > most ? all[i].mean : most;
	}
	if (status == ST_OK && count) {
		shown = choose(all, count);
		by_step = same_steps(all, count);
		unit = time_unit_of(most, 1);
		put_step_titles(p, all, by_step, &unit);
		if (by_step)
			put_by_step(p, all, shown, count, &unit);
		else
			put_spread(p, all, shown, &unit);
	}
	steps_free(all, count);
	return status;
}

/* ---- phases ----------------------------------------------------------------------------- */

struct rank_phase {
	const char *name;
	char label[48];
	double *ns; /* by rank, per step */
	double sum;
	bool is_rest;
	unsigned names;
};
struct phases {
	struct rank_phase *rows;
	size_t count;
	double *walls; /* of steps, by rank */
	double *scratch;
};

static bool is_annotation(const char *name)
{
	static const char *const known[] = { "data", "forward", "backward", "optimizer",
					     "communication", "checkpoint", "validation", "other",
					     "before_window", "unattributed" };
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i], name))
			return false;
	return true;
}

static void phases_free(struct phases *all)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		free(all->rows[i].ns);
	free(all->rows);
	free(all->walls);
	free(all->scratch);
}

static enum status phase_find(struct phases *all, const char *name, size_t ranks,
			      struct rank_phase **out, struct error *err)
{
	size_t i;
	struct rank_phase *wider;

	for (i = 0; i < all->count; i++) {
		*out = &all->rows[i];
		if (!strcmp((*out)->name, name))
			return ST_OK;
	}
	wider = realloc(all->rows, (all->count + 1) * sizeof(*wider));
	if (!wider)
		return no_memory(err);
	all->rows = wider;
	*out = &wider[all->count];
	**out = (struct rank_phase){ .name = name, .is_rest = !strcmp(name, "other"), .names = 1 };
	(*out)->ns = calloc(ranks, sizeof(double));
	if (!(*out)->ns)
		return no_memory(err);
	snprintf((*out)->label, sizeof((*out)->label), "%.40s", name);
	all->count++;
	return ST_OK;
}

static enum status phases_take(struct page *p, struct phases *all, struct error *err)
{
	size_t ranks = p->ranks.count, rank, i;
	struct rank_phase *phase = NULL;

	all->walls = calloc(ranks + 1, sizeof(double));
	all->scratch = calloc(ranks + 1, sizeof(double));
	if (!all->walls || !all->scratch)
		return no_memory(err);
	for (rank = 0; rank < ranks; rank++) {
		struct view v = page_of_rank(p, "phases", rank);
		double steps = (double)view_cell(&p->ranks, rank, "complete_steps").u64;

		for (i = 0; i < v.count && steps > 0; i++) {
			double ns = (double)view_cell(&v, i, "wall_ns").u64 / steps;

			if (!(ns > 0))
				continue;
			TRY(phase_find(all, view_cell(&v, i, "name").text, ranks, &phase, err));
			phase->ns[rank] += ns;
			phase->sum += ns;
			all->walls[rank] += ns;
		}
	}
	return ST_OK;
}

static int compare_phases(const void *pa, const void *pb)
{
	const struct rank_phase *a = pa, *b = pb;

	if (a->is_rest != b->is_rest)
		return a->is_rest ? 1 : -1;
	if (a->sum != b->sum)
		return a->sum > b->sum ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Annotations below 2 % of a step are one row. */
static void fold_annotations(struct phases *all, size_t ranks)
{
	double whole = 0;
	size_t i, k, to = 0, pool = SIZE_MAX;

	for (i = 0; i < ranks; i++)
		whole += all->walls[i];
	for (i = 0; i < all->count; i++) {
		struct rank_phase row = all->rows[i];

		if (!is_annotation(row.name) || row.sum * 50 >= whole) {
			all->rows[to++] = row;
			continue;
		}
		if (pool == SIZE_MAX) {
			pool = to;
			all->rows[to++] = row;
			continue;
		}
		for (k = 0; k < ranks; k++)
			all->rows[pool].ns[k] += row.ns[k];
		all->rows[pool].sum += row.sum;
		all->rows[pool].names++;
		free(row.ns);
	}
	all->count = to;
	if (pool != SIZE_MAX && all->rows[pool].names > 1)
		snprintf(all->rows[pool].label, sizeof(all->rows[pool].label),
			 "%u more annotations", all->rows[pool].names);
}

static void put_two(struct page *p, const struct phases *all, const struct time_unit *unit)
{
	static const unsigned ms_end[] = { 42, 76 }, share_end[] = { 53, 87 };
	static const unsigned bar_at[] = { 55, 89 };
	double parts[64], most = 0;
	int tenths[2][64];
	char text[NUMBER_TEXT];
	size_t i, rank, count = all->count < 64 ? all->count : 64;

	for (rank = 0; rank < 2; rank++) {
		for (i = 0; i < count; i++) {
			parts[i] = all->rows[i].ns[rank];
			most = parts[i] > most ? parts[i] : most;
		}
		percents(parts, count, all->walls[rank], count - 1, tenths[rank]);
	}
	for (i = 0; i < count; i++) {
		text_cut(&p->text, 0, 34, TOKEN_TEXT, all->rows[i].label);
		for (rank = 0; rank < 2; rank++) {
			double ns = all->rows[i].ns[rank];

			text_right(&p->text, ms_end[rank], TOKEN_TEXT, time_text(text, ns, unit));
			text_right(&p->text, share_end[rank], TOKEN_TEXT,
				   percent_text(text, tenths[rank][i]));
			if (most > 0)
				text_bar(&p->text, bar_at[rank],
					 token_of_phase(all->rows[i].name), ns / most * 10);
		}
		text_end(&p->text);
	}
}

static void put_many(struct page *p, const struct phases *all, const struct time_unit *unit)
{
	size_t i, ranks = p->ranks.count;
	double most = 0, median;
	char text[NUMBER_TEXT];

	for (i = 0; i < all->count; i++) {
		memcpy(all->scratch, all->rows[i].ns, ranks * sizeof(double));
		median = median_of(all->scratch, ranks);
		most = median > most ? median : most;
	}
	for (i = 0; i < all->count; i++) {
		memcpy(all->scratch, all->rows[i].ns, ranks * sizeof(double));
		median = median_of(all->scratch, ranks);
		text_cut(&p->text, 0, 34, TOKEN_TEXT, all->rows[i].label);
		text_right(&p->text, 42, TOKEN_TEXT, time_text(text, all->scratch[0], unit));
		text_right(&p->text, 53, TOKEN_TEXT, time_text(text, median, unit));
		text_right(&p->text, 64, TOKEN_TEXT,
			   time_text(text, all->scratch[ranks - 1], unit));
		if (most > 0)
			text_bar(&p->text, 67, token_of_phase(all->rows[i].name),
				 median / most * 22);
		text_end(&p->text);
	}
}

static void put_phase_titles(struct page *p, const struct time_unit *unit)
{
	static const unsigned ms_end[] = { 42, 76 }, share_end[] = { 53, 87 };
	static const char *const spread[] = { "min", "median", "max" };
	char text[NUMBER_TEXT];
	size_t i;

	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "PHASES");
	text_atf(&p->text, 14, TOKEN_DIM, "host, %s per step", unit->name);
	for (i = 0; p->ranks.count == 2 && i < 2; i++) {
		text_right(&p->text, ms_end[i], TOKEN_DIM, rank_text(p, i, text));
		text_right(&p->text, share_end[i], TOKEN_DIM, "% of step");
	}
	for (i = 0; p->ranks.count > 2 && i < 3; i++)
		text_right(&p->text, 42 + 11 * (unsigned)i, TOKEN_DIM, spread[i]);
	if (p->ranks.count > 2)
		text_at(&p->text, 67, TOKEN_DIM, "median of the ranks");
	text_end(&p->text);
}

enum status page_phases_many(struct page *p, struct error *err)
{
	struct phases all = { NULL, 0, NULL, NULL };
	enum status status = phases_take(p, &all, err);
	struct time_unit unit;
	double most = 0;
	size_t i;

	if (status == ST_OK && all.count) {
		qsort(all.rows, all.count, sizeof(*all.rows), compare_phases);
		fold_annotations(&all, p->ranks.count);
		qsort(all.rows, all.count, sizeof(*all.rows), compare_phases);
		for (i = 0; i < p->ranks.count; i++)
			most = all.walls[i] > most ? all.walls[i] : most;
		unit = time_unit_of(most, 1);
		put_phase_titles(p, &unit);
		if (p->ranks.count == 2)
			put_two(p, &all, &unit);
		else
			put_many(p, &all, &unit);
	}
	phases_free(&all);
	return status;
}
