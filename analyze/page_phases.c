/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page_phases.h"

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

enum status phase_rows_take(const struct page *p, struct phase_rows *all, struct error *err)
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
		r->is_other = r->order == ORDER_OTHER;
		r->count = 1;
		r->wall_ns = (double)view_cell(&phases, i, "wall_ns").u64 * per_step;
		r->inferred = view_cell(&phases, i, "inferred").u64 == 1;
		take_cells(&cells, r, per_step / (double)gpus);
		r->gpu_ns[PART_DURING] = (double)view_cell(&phases, i, "gpu_idle_during_ns").u64 *
					 per_step / (double)gpus;
		snprintf(r->label, sizeof(r->label), "%.40s%s",
			 !strcmp(r->name, "before_window") ? "before window" : r->name,
			 r->inferred ? " ~" : "");
		if (!(r->wall_ns + phase_row_gpu_ns(r) + r->gpu_ns[PART_DURING] > 0)) {
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
