/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

double phase_row_gpu_ns(const struct phase_row *r)
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

/* Cells of all ranks by phase. */
static void take_cells(const struct view *cells, struct phase_rows *all, double share)
{
	struct phase_row *r = NULL;
	size_t i, k;

	for (i = 0; i < cells->count; i++) {
		const char *name = view_cell(cells, i, "phase").text;

		for (k = 0; k < all->count && (!r || strcmp(r->name, name)); k++)
			if (!strcmp(all->rows[k].name, name))
				r = &all->rows[k];
		if (!r || strcmp(r->name, name) != 0)
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

/* The row of a phase; ranks share it. */
static struct phase_row *row_find(struct phase_rows *all, const char *name)
{
	struct phase_row *r;

	for (r = all->rows; r < all->rows + all->count; r++)
		if (!strcmp(r->name, name))
			return r;
	*r = (struct phase_row){ .name = name, .order = order_of(name), .count = 1 };
	r->is_other = r->order == ORDER_OTHER;
	all->count++;
	return r;
}

/* Rows of nothing leave, the others get their label and the sum. */
static void settle_rows(struct phase_rows *all)
{
	size_t i, to = 0;

	for (i = 0; i < all->count; i++) {
		struct phase_row *r = &all->rows[i];

		if (!(r->wall_ns + phase_row_gpu_ns(r) + r->gpu_ns[PART_DURING] > 0))
			continue;
		snprintf(r->label, sizeof(r->label), "%.40s%s",
			 !strcmp(r->name, "before_window") ? "before window" : r->name,
			 r->inferred ? " ~" : "");
		row_add(&all->sum, r);
		all->rows[to++] = *r;
	}
	all->count = to;
}

enum status phase_rows_take(const struct page *p, struct phase_rows *all, struct error *err)
{
	struct view phases = page_view(p, "phases"), cells = page_view(p, "cells");
	double gpus = p->gpus.count ? (double)p->gpus.count / (double)p->ranks.count : 1;
	double per_step = 1.0 / (double)p->steps;
	size_t i;

	*all = (struct phase_rows){ .has_gpu = p->gpus.count > 0 };
	all->rows = calloc(phases.count + 1, sizeof(*all->rows));
	if (!all->rows)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < phases.count; i++) {
		struct phase_row *r = row_find(all, view_cell(&phases, i, "name").text);

		r->wall_ns += (double)view_cell(&phases, i, "wall_ns").u64 * per_step;
		r->inferred |= view_cell(&phases, i, "inferred").u64 == 1;
		r->gpu_ns[PART_DURING] += (double)view_cell(&phases, i, "gpu_idle_during_ns").u64 *
					  per_step / gpus;
	}
	take_cells(&cells, all, per_step / gpus);
	settle_rows(all);
	if (all->count)
		qsort(all->rows, all->count, sizeof(*all->rows), compare_rows);
	fold_annotations(all);
	return ST_OK;
}

void phase_rows_release(struct phase_rows *all)
{
	free(all->rows);
}

double phase_rows_most_ns(const struct phase_rows *all)
{
	double most_ns = 0, whole_ns;
	size_t i;

	for (i = 0; i < all->count; i++) {
		const struct phase_row *r = &all->rows[i];

		whole_ns = phase_row_gpu_ns(r) + r->gpu_ns[PART_DURING];
		most_ns = r->wall_ns > most_ns ? r->wall_ns : most_ns;
		most_ns = all->has_gpu && whole_ns > most_ns ? whole_ns : most_ns;
	}
	return most_ns;
}

enum status phase_rows_percents(const struct phase_rows *all, int **tenths, struct error *err)
{
	double *walls = calloc(all->count + 1, sizeof(*walls));
	size_t i, rest = 0;

	*tenths = calloc(all->count + 1, sizeof(**tenths));
	if (!walls || !*tenths) {
		free(walls);
		free(*tenths);
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	}
	for (i = 0; i < all->count; i++) {
		walls[i] = all->rows[i].wall_ns;
		rest = all->rows[i].is_other ? i : rest;
	}
	percents(walls, all->count, all->sum.wall_ns, rest, *tenths);
	free(walls);
	return ST_OK;
}
