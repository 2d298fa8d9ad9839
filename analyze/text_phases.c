/* SPDX-License-Identifier: Apache-2.0 */
/* PHASES of one rank: the host's time beside the GPU's, on one scale. */
#include "analyze/text_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_COMPUTE, PART_COMM, PART_COPY, PART_DURING, PARTS };

struct phase_row {
	const char *name;
	char label[64];
	double wall_ns, gpu_ns[PARTS]; /* per step, and the GPU's per GPU */
	bool inferred, is_annotation;
	int order;
	unsigned count; /* annotations that this row stands for */
};
struct phase_rows {
	struct phase_row *rows;
	size_t count;
	struct phase_row sum;
	bool has_gpu;
};

static const char *const order_of_phases[] = {
	"data", "forward", "backward", "optimizer", "communication", "checkpoint", "validation",
	"", /* all that has no place of its own */
	"other", "before_window", "unattributed",
};
enum { ORDER_OWN = 7, ORDER_OTHER = 8, ORDER_COUNT = 11 };

static int order_of(const char *name)
{
	int i;

	for (i = 0; i < ORDER_COUNT; i++)
		if (i != ORDER_OWN && !strcmp(order_of_phases[i], name))
			return i;
	return ORDER_OWN;
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct phase_row *a = pa, *b = pb;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if (a->wall_ns != b->wall_ns)
		return a->wall_ns > b->wall_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static double gpu_ns(const struct phase_row *r)
{
	return r->gpu_ns[PART_COMPUTE] + r->gpu_ns[PART_COMM] + r->gpu_ns[PART_COPY];
}

static void row_add(struct phase_row *into, const struct phase_row *from)
{
	size_t i;

	into->wall_ns += from->wall_ns;
	into->inferred |= from->inferred;
	into->count += from->count;
	for (i = 0; i < PARTS; i++)
		into->gpu_ns[i] += from->gpu_ns[i];
}

static void take_cells(const struct view *cells, struct phase_row *r, double share)
{
	size_t i;

	for (i = 0; i < cells->count; i++) {
		if (strcmp(view_cell(cells, i, "phase").text, r->name) != 0)
			continue;
		r->gpu_ns[PART_COMPUTE] += (double)view_cell(cells, i, "compute_ns").u64 * share;
		r->gpu_ns[PART_COMM] += (double)view_cell(cells, i, "exposed_comm_ns").u64 * share;
		r->gpu_ns[PART_COPY] += (double)view_cell(cells, i, "exposed_copy_ns").u64 * share;
	}
}

/* Annotations below 2 % of a step become one row. */
static void fold_annotations(struct phase_rows *all)
{
	size_t i, to = 0;
	struct phase_row *pool = NULL;

	for (i = 0; i < all->count; i++) {
		struct phase_row row = all->rows[i];

		if (row.order != ORDER_OWN || row.wall_ns * 50 >= all->sum.wall_ns) {
			all->rows[to++] = row;
			continue;
		}
		if (!pool)
			pool = &all->rows[to++];
		else
			row_add(&row, pool);
		*pool = row;
	}
	all->count = to;
	if (pool && pool->count > 1) /* of one the name is said */
		snprintf(pool->label, sizeof(pool->label), "%u more", pool->count);
}

static enum status rows_take(const struct page *p, struct phase_rows *all, struct error *err)
{
	struct view phases = page_of_rank(p, "phases", 0), cells = page_of_rank(p, "cells", 0);
	size_t gpus = p->gpus.count ? p->gpus.count : 1, i;
	double per_step = 1.0 / (double)p->steps;

	*all = (struct phase_rows){ .has_gpu = p->gpus.count > 0 };
	all->rows = calloc(phases.count + 1, sizeof(*all->rows));
	if (!all->rows)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < phases.count; i++) {
		struct phase_row *r = &all->rows[all->count];

		r->name = view_cell(&phases, i, "name").text;
		r->order = order_of(r->name);
		r->count = 1;
		r->wall_ns = (double)view_cell(&phases, i, "wall_ns").u64 * per_step;
		r->inferred = view_cell(&phases, i, "inferred").u64 == 1;
		take_cells(&cells, r, per_step / (double)gpus);
		r->gpu_ns[PART_DURING] = (double)view_cell(&phases, i, "gpu_idle_during_ns").u64 *
					 per_step / (double)gpus;
		snprintf(r->label, sizeof(r->label), "%.40s%s",
			 !strcmp(r->name, "before_window") ? "before window" : r->name,
			 r->inferred ? " ~" : "");
		if (!(r->wall_ns + gpu_ns(r) + r->gpu_ns[PART_DURING] > 0)) {
			*r = (struct phase_row){ 0 };
			continue;
		}
		row_add(&all->sum, r);
		all->count++;
	}
	if (all->count)
		qsort(all->rows, all->count, sizeof(*all->rows), compare_rows);
	fold_annotations(all);
	return ST_OK;
}

/* Where the columns stand: bars are as wide as there is room. */
struct layout {
	unsigned bar, host_bar, busy_end, idle_end, gpu_bar;
};

static struct layout layout_of(const struct page *p)
{
	unsigned bar = p->text.width >= LINE_WIDTH ? 22 : p->text.width >= 72 ? 8 : 0;
	unsigned shift = 22 - bar + (bar ? 0 : 2);

	return (struct layout){ bar, 34, 67 - shift, 76 - shift, 78 - shift };
}

static void put_gpu_bar(struct page *p, const struct layout *l, const struct phase_row *r,
			double most_ns)
{
	static const char letters[PARTS] = { 'c', 'm', 'd', 'i' };
	double whole = gpu_ns(r) + r->gpu_ns[PART_DURING];
	unsigned columns[PARTS], column = l->gpu_bar;
	size_t i;

	if (!(most_ns > 0))
		return;
	share_out(r->gpu_ns, PARTS, (unsigned)lround(whole / most_ns * l->bar), columns);
	for (i = 0; i < PARTS; i++) {
		char letter = p->is_sampled && i == PART_DURING ? 'u' : letters[i];

		column = text_fill(&p->text, column, columns[i], token_of(letter),
				   glyph_of(letter));
	}
}

static void put_row(struct page *p, const struct layout *l, const struct phase_rows *all, size_t i,
		    double most_ns, int tenths, const struct time_unit *unit)
{
	const struct phase_row *r = &all->rows[i];
	char text[NUMBER_TEXT];

	text_cut(&p->text, 0, 15, TOKEN_TEXT, r->label);
	text_right(&p->text, 21, TOKEN_TEXT, time_text(text, r->wall_ns, unit));
	text_right(&p->text, 32, TOKEN_TEXT, percent_text(text, tenths));
	if (l->bar && most_ns > 0)
		text_bar(&p->text, l->host_bar, token_of_phase(r->name),
			 r->wall_ns / most_ns * l->bar);
	if (all->has_gpu) {
		text_right(&p->text, l->busy_end, TOKEN_TEXT, time_text(text, gpu_ns(r), unit));
		text_right(&p->text, l->idle_end, TOKEN_TEXT,
			   time_text(text, r->gpu_ns[PART_DURING], unit));
		put_gpu_bar(p, l, r, most_ns);
	}
	text_end(&p->text);
}

static void put_titles(struct page *p, const struct layout *l, bool has_gpu,
		       const struct time_unit *unit)
{
	char text[64];
	unsigned column;

	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "PHASES");
	snprintf(text, sizeof(text), "host %s", unit->name);
	text_right(&p->text, 21, TOKEN_DIM, text);
	text_at(&p->text, 23, TOKEN_DIM, p->has_steps ? "% of step" : "% of window");
	if (has_gpu) {
		text_right(&p->text, l->busy_end, TOKEN_DIM, "GPU busy");
		text_right(&p->text, l->idle_end, TOKEN_DIM, p->is_sampled ? "unseen" : "idle");
	}
	if (has_gpu && l->bar >= 20) {
		column = text_at(&p->text, l->gpu_bar, TOKEN_DIM, "\xe2\x96\x88 from it ");
		text_at(&p->text, column, TOKEN_DIM,
			p->is_sampled ? "\xe2\x95\xb1 unseen" : "\xe2\x96\x91 meanwhile");
	}
	text_end(&p->text);
}

static void put_sum(struct page *p, const struct layout *l, const struct phase_rows *all,
		    const struct time_unit *unit)
{
	const struct phase_row *sum = &all->sum;
	char text[NUMBER_TEXT];

	text_right(&p->text, 21, TOKEN_DIM, time_text(text, sum->wall_ns, unit));
	text_right(&p->text, 32, TOKEN_DIM, "100.0");
	if (all->has_gpu) {
		text_right(&p->text, l->busy_end, TOKEN_DIM, time_text(text, gpu_ns(sum), unit));
		text_right(&p->text, l->idle_end, TOKEN_DIM,
			   time_text(text, sum->gpu_ns[PART_DURING], unit));
		if (l->bar >= 20)
			text_atf(&p->text, l->gpu_bar, TOKEN_DIM, "%s = window / %llu",
				 time_text(text, gpu_ns(sum) + sum->gpu_ns[PART_DURING], unit),
				 (unsigned long long)p->steps);
	}
	text_end(&p->text);
}

static void put_rows(struct page *p, const struct phase_rows *all, const double *walls,
		     int *tenths)
{
	struct layout l = layout_of(p);
	struct time_unit unit = time_unit_of(all->sum.wall_ns, 1);
	size_t i, rest = all->count;
	double most_ns = 0, whole;

	for (i = 0; i < all->count; i++) {
		const struct phase_row *r = &all->rows[i];

		whole = gpu_ns(r) + r->gpu_ns[PART_DURING];
		most_ns = r->wall_ns > most_ns ? r->wall_ns : most_ns;
		most_ns = all->has_gpu && whole > most_ns ? whole : most_ns;
		rest = r->order == ORDER_OTHER ? i : rest;
	}
	percents(walls, all->count, all->sum.wall_ns, rest < all->count ? rest : 0, tenths);
	put_titles(p, &l, all->has_gpu, &unit);
	for (i = 0; i < all->count; i++)
		put_row(p, &l, all, i, most_ns, tenths[i], &unit);
	put_sum(p, &l, all, &unit);
}

enum status page_phases_one(struct page *p, struct error *err)
{
	struct phase_rows all;
	double *walls;
	int *tenths;
	size_t i;
	enum status status = ST_OK;

	TRY(rows_take(p, &all, err));
	walls = calloc(all.count + 1, sizeof(*walls));
	tenths = calloc(all.count + 1, sizeof(*tenths));
	if (!walls || !tenths) {
		status = fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
		goto out;
	}
	for (i = 0; i < all.count; i++)
		walls[i] = all.rows[i].wall_ns;
	if (all.count)
		put_rows(p, &all, walls, tenths);
out:
	free(walls);
	free(tenths);
	free(all.rows);
	return status;
}
