/* SPDX-License-Identifier: Apache-2.0 */
/* The sections STEPS, PHASES and KERNELS of several ranks, for a terminal: side by side for two,
 * the spread for more. KERNELS are those with different times for the same work (DEFINITIONS.md 7:
 * their counts per step are equal), and communication kernels. */
#include "analyze/format/page/internal.h"

#include "schemas/base/vec.h"

#include <math.h>

/* ---- steps ------------------------------------------------------------------------------ */

enum { STEP_COLUMNS = 5, COLUMN_FIRST = 42, COLUMN_WIDTH = 10 };

struct rank_steps { /* counted steps of a rank */
	struct step_times times;
	const uint64_t *numbers;
	size_t rank;
};

static struct rank_steps take_rank_steps(const struct page *p, size_t rank, struct blocks *b)
{
	struct view v = page_of_rank(p, "steps", rank);
	struct rank_steps s = { .rank = rank };
	uint64_t *numbers;

	step_times_take(p, rank, &v, &s.times, b);
	numbers = blocks_take(b, s.times.count, sizeof(*numbers));
	for (size_t i = 0; numbers && i < s.times.count; i++)
		numbers[i] = view_u64(&v, s.times.rows[i], "step");
	s.numbers = numbers;
	return s;
}

/* Returns whether all ranks have the same few steps. */
static bool has_same_steps(const struct rank_steps *all, size_t count)
{
	size_t steps = all[0].times.count;

	for (size_t i = 0; i < count; i++)
		if (steps > STEP_COLUMNS || all[i].times.count != steps ||
		    memcmp(all[i].numbers, all[0].numbers, steps * sizeof(uint64_t)) != 0)
			return false;
	return steps > 0;
}

/* Chooses of many ranks the fastest, the median and the three slowest. */
static size_t choose_ranks(struct rank_steps *all, size_t count)
{
	const size_t chosen[] = { (count - 1) / 2, count - 3, count - 2, count - 1 };

	if (count <= RANK_LINES)
		return count;
	SORT_BY(all, count, UP(struct rank_steps, times.mean), UP(struct rank_steps, rank));
	for (size_t i = 0; i < 4; i++) {
		struct rank_steps swap = all[1 + i];

		all[1 + i] = all[chosen[i]];
		all[chosen[i]] = swap;
	}
	return 5;
}

void build_steps_of_ranks(const struct page *p, struct blocks *b)
{
	static const char *const spread[] = { "min", "median", "max" };
	size_t count = p->ranks.count, shown, values = 3;
	struct rank_steps *all = blocks_take(b, count, sizeof(*all));
	struct block_column columns[STEP_COLUMNS + 2] = { { .at = 14 } };
	struct block_row *r;
	double most = 0;

	for (size_t i = 0; all && i < count; i++) {
		all[i] = take_rank_steps(p, i, b);
		most = fmax(all[i].times.mean, most);
	}
	if (b->is_full || !(most > 0))
		return;
	shown = choose_ranks(all, count);
	bool is_by_step = has_same_steps(all, count);
	values = is_by_step ? all[0].times.count : 3;
	struct time_unit unit = time_unit_of(most, 1);
	add_section(b, "Steps", blocks_text(b, "wall %s", unit.name));
	for (size_t k = 0; k <= values; k++)
		columns[1 + k] = (struct block_column){
			.title = k == values  ? "mean"
				 : is_by_step ? blocks_text(b, "%llu",
							    (unsigned long long)all[0].numbers[k])
					      : spread[k],
			.end = COLUMN_FIRST + COLUMN_WIDTH * (unsigned)k,
		};
	struct block_table *t = add_table(b, columns, values + 2);
	for (size_t i = 0; i < shown; i++) {
		const struct step_times *s = &all[i].times;

		r = add_row(b, t, TOKEN_TEXT, NULL);
		add_cell(r, rank_text(p, all[i].rank, b));
		for (size_t k = 0; is_by_step && k < values; k++)
			add_time(b, r, s->in_order[k], &unit);
		if (!is_by_step) {
			add_time(b, r, s->min, &unit);
			add_time(b, r, s->median, &unit);
			add_time(b, r, s->max, &unit);
		}
		add_time(b, r, all[i].times.mean, &unit);
	}
	if (!is_by_step)
		return;
	r = add_row(b, t, TOKEN_DIM, NULL);
	add_cell(r, "diff");
	for (size_t k = 0; k < values; k++) {
		double low = INFINITY, high = 0;

		for (size_t i = 0; i < count; i++) {
			low = fmin(low, all[i].times.in_order[k]);
			high = fmax(high, all[i].times.in_order[k]);
		}
		add_time(b, r, high - low, &unit);
	}
}

/* ---- phases ----------------------------------------------------------------------------- */

enum { PHASES_MAX = 64 /* limit of phases */ };

struct rank_phase {
	const char *name, *label;
	double *ns; /* by rank, per step */
	double sum;
	bool is_rest;
	unsigned names;
};
struct rank_phases {
	struct rank_phase *rows;
	size_t count;
	double *walls; /* lengths of steps, by rank */
};

static const struct sort_key by_sum[] = { UP(struct rank_phase, is_rest),
					  DOWN(struct rank_phase, sum),
					  UP(struct rank_phase, name),
					  { .type = SORT_NONE } };

static void take_rank_phases(const struct page *p, struct rank_phases *all, struct blocks *b)
{
	size_t ranks = p->ranks.count, k;

	*all = (struct rank_phases){ .walls = blocks_take(b, ranks, sizeof(double)) };
	all->rows = blocks_take(b, page_view(p, "phases").count, sizeof(*all->rows));
	for (size_t rank = 0; rank < ranks && !b->is_full; rank++) {
		struct view v = page_of_rank(p, "phases", rank);
		double steps = view_number(&p->ranks, rank, "complete_steps");

		for (size_t i = 0; i < v.count && steps > 0; i++) {
			double ns = view_number(&v, i, "wall_ns") / steps;
			const char *name = view_cell(&v, i, "name").text;

			if (!(ns > 0))
				continue;
			for (k = 0; k < all->count && strcmp(all->rows[k].name, name) != 0; k++)
				;
			if (k == all->count)
				all->rows[all->count++] = (struct rank_phase){
					.name = name,
					.label = name,
					.ns = blocks_take(b, ranks, sizeof(double)),
					.is_rest = !strcmp(name, "other"),
					.names = 1,
				};
			if (b->is_full)
				return;
			all->rows[k].ns[rank] += ns;
			all->rows[k].sum += ns;
			all->walls[rank] += ns;
		}
	}
}

/* Joins annotations below 2 % of a step, and sorts by descending time with the rest last. */
static void settle_rank_phases(struct rank_phases *all, size_t ranks, struct blocks *b)
{
	struct rank_phase *small = NULL;
	double whole = 0;
	size_t to = 0;

	sort_rows(all->rows, all->count, sizeof(*all->rows), by_sum);
	for (size_t i = 0; i < ranks; i++)
		whole += all->walls[i];
	for (size_t i = 0; i < all->count; i++) {
		struct rank_phase row = all->rows[i];
		bool is_small = page_phase_order(row.name) == PHASE_OF_USER && row.sum * 50 < whole;

		if (!is_small || !small) {
			small = is_small ? &all->rows[to] : small;
			all->rows[to++] = row;
			continue;
		}
		for (size_t k = 0; k < ranks; k++)
			small->ns[k] += row.ns[k];
		small->sum += row.sum;
		small->names++;
	}
	all->count = to;
	if (small && small->names > 1)
		small->label = blocks_text(b, "%u more annotations", small->names);
	sort_rows(all->rows, to, sizeof(*all->rows), by_sum);
}

static void add_two_ranks(const struct page *p, const struct rank_phases *all,
			  const struct time_unit *unit, struct blocks *b)
{
	const struct block_column columns[] = {
		{ .width = 34 },
		{ .title = rank_text(p, 0, b), .end = 42 },
		{ .title = "% of step", .end = 53 },
		{ .at = 55, .width = 10, .is_bar = true },
		{ .title = rank_text(p, 1, b), .end = 76 },
		{ .title = "% of step", .end = 87 },
		{ .at = 89, .width = 10, .is_bar = true },
	};
	size_t count = all->count < PHASES_MAX ? all->count : PHASES_MAX;
	struct block_table *t = ADD_TABLE(b, columns);
	double parts[PHASES_MAX], most = 0;
	int tenths[2][PHASES_MAX];

	for (size_t rank = 0; rank < 2; rank++) {
		for (size_t i = 0; i < count; i++) {
			parts[i] = all->rows[i].ns[rank];
			most = parts[i] > most ? parts[i] : most;
		}
		percents(parts, count, all->walls[rank], count - 1, tenths[rank]);
	}
	for (size_t i = 0; i < count; i++) {
		const struct rank_phase *phase = &all->rows[i];
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, phase->label);
		for (size_t rank = 0; rank < 2; rank++) {
			add_time(b, r, phase->ns[rank], unit);
			add_percent(b, r, tenths[rank][i]);
			add_bar(r, token_of_phase(phase->name),
				most > 0 ? phase->ns[rank] / most : 0);
		}
	}
}

static void add_many_ranks(const struct page *p, const struct rank_phases *all,
			   const struct time_unit *unit, struct blocks *b)
{
	static const struct block_column columns[] = {
		{ .width = 34 },
		{ .title = "min", .end = 42 },
		{ .title = "median", .end = 53 },
		{ .title = "max", .end = 64 },
		{ .title = "median of the ranks", .at = 67, .width = 22, .is_bar = true },
	};
	struct block_table *t = ADD_TABLE(b, columns);
	size_t ranks = p->ranks.count;
	double most = 0, median;

	for (size_t i = 0; i < all->count; i++) {
		median = median_double(all->rows[i].ns, ranks);
		most = median > most ? median : most;
	}
	for (size_t i = 0; i < all->count; i++) {
		const struct rank_phase *phase = &all->rows[i];
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		median = median_double(phase->ns, ranks);
		add_cell(r, phase->label);
		add_time(b, r, phase->ns[0], unit);
		add_time(b, r, median, unit);
		add_time(b, r, phase->ns[ranks - 1], unit);
		add_bar(r, token_of_phase(phase->name), most > 0 ? median / most : 0);
	}
}

void build_phases_of_ranks(const struct page *p, struct blocks *b)
{
	struct rank_phases all;
	double most = 0;

	take_rank_phases(p, &all, b);
	if (b->is_full || !all.count)
		return;
	settle_rank_phases(&all, p->ranks.count, b);
	for (size_t i = 0; i < p->ranks.count; i++)
		most = all.walls[i] > most ? all.walls[i] : most;
	struct time_unit unit = time_unit_of(most, 1);
	add_section(b, "Phases", blocks_text(b, "host, %s per step", unit.name));
	(p->ranks.count == 2 ? add_two_ranks : add_many_ranks)(p, &all, &unit, b);
}

/* ---- kernels ---------------------------------------------------------------------------- */

enum { KERNELS_SHOWN = 4, COMM_SHOWN = 2 };

struct rank_kernel {
	const char *name, *class;
	size_t rank;
	double calls, ns; /* per step */
};
/* A kernel over the ranks, ns per step. For two ranks: both and their difference. For more: the
 * least, the median, the greatest, and the greatest less the mean. */
struct spread {
	const char *name;
	double calls, values[3], apart, size; /* size: absolute value of `apart` */
};

static struct spread spread_of(const struct rank_kernel *of, size_t count, size_t ranks, double *ns)
{
	struct spread s = { .name = of[0].name };
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		s.calls += of[i].calls / (double)count;
		ns[i] = of[i].ns;
		sum += of[i].ns;
	}
	if (ranks == 2) {
		s.values[0] = of[0].rank == 0 ? of[0].ns : 0;
		s.values[1] = sum - s.values[0];
		s.apart = s.values[1] - s.values[0];
		s.size = fabs(s.apart);
		return s;
	}
	s.values[1] = median_double(ns, count); /* sorts `ns` */
	s.values[0] = ns[0];
	s.values[2] = ns[count - 1];
	s.apart = s.values[2] - sum / (double)count;
	s.size = fabs(s.apart);
	return s;
}

static size_t take_rank_kernels(const struct page *p, struct rank_kernel *all)
{
	size_t count = 0;

	for (size_t rank = 0; rank < p->ranks.count; rank++) {
		struct view v = page_of_rank(p, "kernels", rank);
		double steps = view_number(&p->ranks, rank, "window_steps");

		for (size_t i = 0; i < v.count && steps > 0; i++)
			all[count++] = (struct rank_kernel){
				.name = view_cell(&v, i, "name").text,
				.class = view_text(&v, i, "class"),
				.rank = rank,
				.calls = view_number(&v, i, "count") / steps,
				.ns = view_number(&v, i, "total_ns") / steps,
			};
	}
	SORT_BY(all, count, UP(struct rank_kernel, name), UP(struct rank_kernel, rank));
	return count;
}

static bool has_equal_calls(const struct rank_kernel *of, size_t count, size_t ranks)
{
	for (size_t i = 1; i < count; i++)
		if (fabs(of[i].calls - of[0].calls) > 1e-9)
			return false;
	return count == ranks;
}

static void add_spread(const struct spread *s, const char *name, struct block_row *r,
		       struct blocks *b)
{
	const struct time_unit unit = { 1e6, 2, "ms" };

	add_cell(r, name);
	add_number(b, r, s->calls, 0);
	for (size_t i = 0; i < 3; i++)
		add_time(b, r, s->values[i], &unit);
	add_cell(r, show_signed(b, s->apart, &unit))->token =
		r->token == TOKEN_DIM ? TOKEN_DIM : TOKEN_BOLD;
}

/* Adds the spreads of compute kernels with equal counts, and of communication kernels. */
static void add_spreads(const struct page *p, struct blocks *b, struct spread *rows, size_t count,
			struct spread *comm, size_t comm_count)
{
	bool two = p->ranks.count == 2;
	unsigned width = two ? 61 : 55, shown_width = name_width(p, width);
	size_t shown = count <= KERNELS_SHOWN + 1 ? count : KERNELS_SHOWN;
	struct block_column columns[] = {
		{ .width = width },
		{ .title = "calls", .end = two ? 68 : 62 },
		{ .title = two ? rank_text(p, 0, b) : "min", .end = two ? 78 : 70 },
		{ .title = two ? rank_text(p, 1, b) : "median", .end = two ? 88 : 79 },
		{ .title = "max", .hidden = two ? IN(MEDIUM_TEXT) : 0, .end = 88 },
		{ .title = two ? "diff" : "over mean", .end = 98 },
		{ .at = 0 },
	};
	struct spread rest = { .name = "" };
	struct block_row *r;

	add_section(
		b, "Kernels",
		blocks_text(b, "%s names with equal counts, ms per step", show_count(b, count)));
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < shown; i++)
		add_spread(&rows[i], show_nth_name(b, &rows->name, sizeof(*rows), i, shown_width),
			   add_row(b, t, TOKEN_TEXT, NULL), b);
	for (size_t i = shown; i < count; i++) {
		rest.calls += rows[i].calls;
		rest.apart += rows[i].apart;
		for (size_t k = 0; k < 3; k++)
			rest.values[k] += rows[i].values[k];
	}
	if (shown < count)
		add_spread(&rest, blocks_text(b, "%s more", show_count(b, count - shown)),
			   add_row(b, t, TOKEN_DIM, NULL), b);
	columns[0].at = 14;
	columns[0].width = width - 14;
	const struct block_table *above = t;
	t = ADD_TABLE(b, columns);
	t->has_no_titles = true;
	t->below = above;
	for (size_t i = 0; i < comm_count && i < COMM_SHOWN; i++) {
		r = add_row(b, t, TOKEN_TEXT, NULL);
		add_spread(&comm[i],
			   show_nth_name(b, &comm->name, sizeof(*comm), i, shown_width - 14), r, b);
		add_cell(r, i ? NULL : "COMM")->token = TOKEN_BOLD;
	}
}

void build_kernels_of_ranks(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "kernels");
	struct rank_kernel *all = blocks_take(b, v.count, sizeof(*all));
	struct spread *rows = blocks_take(b, v.count, sizeof(*rows));
	struct spread *comm = blocks_take(b, v.count, sizeof(*comm));
	double *ns = blocks_take(b, v.count, sizeof(*ns));
	size_t count, row_count = 0, comm_count = 0, end;

	if (!p->gpus.count)
		build_kernels(p, b);
	if (b->is_full || !v.count)
		return;
	count = take_rank_kernels(p, all);
	for (size_t first = 0; first < count; first = end) {
		const struct rank_kernel *of = &all[first];
		bool is_comm = !strcmp(of->class, "comm");

		for (end = first + 1; end < count && !strcmp(all[end].name, all[first].name); end++)
			;
		if (is_comm)
			comm[comm_count++] = spread_of(of, end - first, p->ranks.count, ns);
		else if (has_equal_calls(of, end - first, p->ranks.count))
			rows[row_count++] = spread_of(of, end - first, p->ranks.count, ns);
	}
	SORT_BY(rows, row_count, DOWN(struct spread, size), UP(struct spread, name));
	SORT_BY(comm, comm_count, DOWN(struct spread, size), UP(struct spread, name));
	add_spreads(p, b, rows, row_count, comm, comm_count);
}
