/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHASES: the host's time beside the GPU's on one scale, mean per step over the ranks, in the order
 * of a step, small annotations together.
 */
#include "analyze/format/page/internal.h"

#include <stdio.h>
#include <string.h>

static const char *const order_of_phases[] = {
	"data",          "forward",       "backward",     "optimizer",
	"communication", "checkpoint",    "validation",   "", /* all that has no place of its own */
	"other",         "before_window", "unattributed",
};
enum { ORDER_OWN = 7, ORDER_OTHER = 8, ORDER_COUNT = 11 };

/* GPU time launched in a phase by class, and time in which the GPUs did nothing meanwhile. */
enum { COMPUTE, COMM, COPY, DURING, PARTS };

struct phase_row {
	const char *name, *label;
	double wall_ns, gpu_ns[PARTS]; /* per step, and the GPU's per GPU */
	bool is_inferred;
	int order;
	unsigned count; /* annotations that this row stands for */
};
struct phases {
	struct phase_row *rows;
	size_t count;
	struct phase_row sum;
};

static int order_of(const char *name)
{
	for (int i = 0; i < ORDER_COUNT; i++)
		if (i != ORDER_OWN && !strcmp(order_of_phases[i], name))
			return i;
	return ORDER_OWN;
}

static int compare_phases(const void *pa, const void *pb)
{
	const struct phase_row *a = pa, *b = pb;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if (a->wall_ns != b->wall_ns)
		return a->wall_ns > b->wall_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static double busy_ns(const struct phase_row *r)
{
	return r->gpu_ns[COMPUTE] + r->gpu_ns[COMM] + r->gpu_ns[COPY];
}

static void add_phase(struct phase_row *into, const struct phase_row *from)
{
	into->wall_ns += from->wall_ns;
	into->is_inferred |= from->is_inferred;
	into->count += from->count;
	for (size_t i = 0; i < PARTS; i++)
		into->gpu_ns[i] += from->gpu_ns[i];
}

/* The row of a phase; ranks share it.  NULL: there is none and `may_add` is not set. */
static struct phase_row *find_phase(struct phases *all, const char *name, bool may_add)
{
	struct phase_row *r = all->rows;

	while (r < all->rows + all->count && strcmp(r->name, name) != 0)
		r++;
	if (r < all->rows + all->count)
		return r;
	if (!may_add)
		return NULL;
	all->count++;
	*r = (struct phase_row){ .name = name, .order = order_of(name), .count = 1 };
	return r;
}

/* Rows of nothing leave, annotations below 2 % of a step become one row. */
static void settle_phases(struct phases *all, struct blocks *b)
{
	struct phase_row *small = NULL;
	size_t to = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct phase_row *r = &all->rows[i];

		if (!(r->wall_ns + busy_ns(r) + r->gpu_ns[DURING] > 0))
			continue;
		r->label = blocks_text(
			b, "%.40s%s", !strcmp(r->name, "before_window") ? "before window" : r->name,
			r->is_inferred ? " ~" : "");
		add_phase(&all->sum, r);
		all->rows[to++] = *r;
	}
	qsort(all->rows, to, sizeof(*all->rows), compare_phases);
	all->count = to;
	to = 0;
	for (size_t i = 0; i < all->count; i++) {
		struct phase_row row = all->rows[i];

		if (row.order != ORDER_OWN || row.wall_ns * 50 >= all->sum.wall_ns) {
			all->rows[to++] = row;
			continue;
		}
		if (!small)
			small = &all->rows[to++];
		else
			add_phase(&row, small);
		*small = row;
	}
	all->count = to;
	if (small && small->count > 1) /* a single one keeps its name */
		small->label = blocks_text(b, "%u more", small->count);
}

static void take_phases(const struct page *p, struct phases *all, struct blocks *b)
{
	struct view phases = page_view(p, "phases"), cells = page_view(p, "cells");
	double gpus = p->gpus.count ? (double)p->gpus.count / (double)p->ranks.count : 1;
	double share = 1.0 / (double)p->steps;

	*all = (struct phases){ .rows = blocks_take(b, phases.count + 1, sizeof(*all->rows)) };
	if (!all->rows)
		return;
	for (size_t i = 0; i < phases.count; i++) {
		struct phase_row *r = find_phase(all, view_cell(&phases, i, "name").text, true);

		r->wall_ns += (double)view_cell(&phases, i, "wall_ns").u64 * share;
		r->is_inferred |= view_cell(&phases, i, "inferred").u64 == 1;
		r->gpu_ns[DURING] +=
			(double)view_cell(&phases, i, "gpu_idle_during_ns").u64 * share / gpus;
	}
	share = share / gpus;
	for (size_t i = 0; i < cells.count; i++) {
		struct phase_row *r = find_phase(all, view_cell(&cells, i, "phase").text, false);

		if (!r)
			continue;
		r->gpu_ns[COMPUTE] += (double)view_cell(&cells, i, "compute_ns").u64 * share;
		r->gpu_ns[COMM] += (double)view_cell(&cells, i, "exposed_comm_ns").u64 * share;
		r->gpu_ns[COPY] += (double)view_cell(&cells, i, "exposed_copy_ns").u64 * share;
	}
	settle_phases(all, b);
}

static const struct stack *stack_of(const struct page *p, const struct phase_row *r, double most_ns,
				    struct blocks *b)
{
	static const enum token tokens[PARTS] = { TOKEN_COMPUTE, TOKEN_COMM, TOKEN_DATA,
						  TOKEN_IDLE };
	struct stack_part *parts = blocks_take(b, PARTS, sizeof(*parts));
	struct stack *stack = blocks_take(b, 1, sizeof(*stack));

	if (!parts || !stack)
		return NULL;
	for (size_t i = 0; i < PARTS; i++)
		parts[i] = (struct stack_part){ .token = p->is_sampled && i == DURING ? TOKEN_UNSEEN
										      : tokens[i],
						.ns = r->gpu_ns[i] };
	*stack = (struct stack){ parts, PARTS, most_ns };
	return stack;
}

/* The sum of all rows, and what its GPU time makes. */
static void add_sum(const struct page *p, const struct phase_row *sum, struct block_table *t,
		    const struct time_unit *unit, bool has_place, struct blocks *b)
{
	struct block_row *r = add_row(b, t, TOKEN_DIM, "sum");
	const char *window;
	char text[NUMBER_TEXT];

	add_cell(r, is_text(p) ? NULL : "sum")->has_class = true;
	add_time(b, r, sum->wall_ns, unit);
	add_cell(r, "100.0")->has_class = true;
	add_cell(r, ""); /* no bar */
	add_time(b, r, busy_ns(sum), unit);
	add_time(b, r, sum->gpu_ns[DURING], unit);
	time_text(text, busy_ns(sum) + sum->gpu_ns[DURING], unit);
	window = is_text(p)
			 ? blocks_text(b, "%s = window / %llu", text, (unsigned long long)p->steps)
			 : blocks_text(b, "= %s %s, the window / %llu", text, unit->name,
				       (unsigned long long)p->steps);
	if (has_place)
		add_cell(r, window);
}

enum status build_phases(const struct page *p, struct blocks *b, struct error *err)
{
	/* in a terminal bars are as wide as the line allows */
	unsigned bar = p->width >= LINE_WIDTH ? 22 : p->width >= 72 ? 8 : 0;
	unsigned shift = 22 - bar + (bar ? 0 : 2);
	bool has_gpu = p->gpus.count > 0, has_wide_bar = bar >= 20;
	struct phases all;
	double *walls, most_ns = 0;
	int *tenths;
	size_t rest = 0;
	struct time_unit unit;
	struct block_table *t;

	take_phases(p, &all, b);
	walls = blocks_take(b, all.count, sizeof(*walls));
	tenths = blocks_take(b, all.count, sizeof(*tenths));
	if (!walls || !tenths || !all.count)
		return ST_OK;
	for (size_t i = 0; i < all.count; i++) {
		const struct phase_row *r = &all.rows[i];
		double gpu_ns = busy_ns(r) + r->gpu_ns[DURING];

		most_ns = r->wall_ns > most_ns ? r->wall_ns : most_ns;
		most_ns = has_gpu && gpu_ns > most_ns ? gpu_ns : most_ns;
		walls[i] = r->wall_ns;
		rest = r->order == ORDER_OTHER ? i : rest;
	}
	percents(walls, all.count, all.sum.wall_ns, rest, tenths);
	unit = p->medium == MEDIUM_MD ? (struct time_unit){ 1e6, 1, "ms" }
				      : time_unit_of(all.sum.wall_ns, 1);
	add_section(
		b, "Phases",
		is_text(p)
			? NULL
			: blocks_text(b,
				      "Host and GPU side by side, mean per %s%s. ~ marks a phase "
				      "that is inferred, not annotated.",
				      step_word(p),
				      p->ranks.count > 1 ? ", mean of the ranks" : ""));
	const char *host = blocks_text(b, "host %s", unit.name),
		   *share = blocks_text(b, "%% of %s", step_word(p));
	const char *busy = blocks_text(b, "GPU busy\nfor it, %s", unit.name);
	const char *idle = blocks_text(b, "%s\nmeanwhile, %s",
				       p->is_sampled ? "nothing seen" : "GPU idle", unit.name);
	const struct block_column columns[] = {
		{ .text = "",
		  .html = "",
		  .md = "phase",
		  .width = 15,
		  .class = "label",
		  .is_left = true },
		{ .text = host, .html = host, .md = host, .end = 21, .class = "" },
		{ .text = share,
		  .html = share,
		  .md = share,
		  .end = 32,
		  .title_at = 23,
		  .class = "" },
		{ .text = "", .html = "", .at = 34, .width = bar, .class = "one", .is_bar = true },
		{ .text = has_gpu ? "GPU busy" : NULL,
		  .html = has_gpu ? busy : NULL,
		  .md = "GPU busy for it, ms",
		  .end = 67 - shift,
		  .class = "" },
		{ .text = !has_gpu        ? NULL
			  : p->is_sampled ? "unseen"
					  : "idle",
		  .html = has_gpu ? idle : NULL,
		  .md = "GPU idle meanwhile, ms",
		  .end = 76 - shift,
		  .class = "" },
		{ .text = !has_gpu        ? NULL
			  : !has_wide_bar ? ""
			  : p->is_sampled ? "\xe2\x96\x88 from it \xe2\x95\xb1 unseen"
					  : "\xe2\x96\x88 from it \xe2\x96\x91 meanwhile",
		  .html = has_gpu ? "" : NULL,
		  .at = 78 - shift,
		  .width = bar,
		  .class = "two",
		  .is_bar = true },
	};
	t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < all.count; i++) {
		const struct phase_row *r = &all.rows[i];
		struct block_row *row = add_row(b, t, TOKEN_TEXT, NULL);
		struct block_cell *label = add_cell(row, r->label);

		label->mark = is_text(p) ? TOKEN_TEXT : token_of_phase(r->name);
		add_time(b, row, r->wall_ns, &unit);
		add_percent(b, row, tenths[i]);
		add_bar(row, token_of_phase(r->name), most_ns > 0 ? r->wall_ns / most_ns : 0);
		add_time(b, row, busy_ns(r), &unit);
		add_time(b, row, r->gpu_ns[DURING], &unit);
		add_cell(row, NULL)->stack = most_ns > 0 ? stack_of(p, r, most_ns, b) : NULL;
	}
	if (p->medium != MEDIUM_MD)
		add_sum(p, &all.sum, t, &unit, !is_text(p) || has_wide_bar, b);
	return ST_OK;
}
