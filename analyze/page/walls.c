/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/walls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *pa, const void *pb)
{
	const double *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

void walls_release(struct walls *w)
{
	free(w->in_order);
	free(w->sorted);
	free(w->rows);
}

enum status walls_take(const struct view *steps, struct walls *w, struct error *err)
{
	size_t i;

	*w = (struct walls){ .all = steps->count };
	w->in_order = calloc(steps->count + 1, sizeof(*w->in_order));
	w->sorted = calloc(steps->count + 1, sizeof(*w->sorted));
	w->rows = calloc(steps->count + 1, sizeof(*w->rows));
	if (!w->in_order || !w->sorted || !w->rows)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < steps->count; i++) {
		if (view_cell(steps, i, "counted").u64 != 1) {
			w->settling += !strcmp(view_text(steps, i, "flags"), "settling");
			continue;
		}
		w->rows[w->count] = i;
		w->in_order[w->count] = (double)view_cell(steps, i, "wall_ns").u64;
		w->sorted[w->count] = w->in_order[w->count];
		w->count++;
	}
	if (!w->count)
		return ST_OK;
	qsort(w->sorted, w->count, sizeof(*w->sorted), compare_doubles);
	w->median = (w->sorted[(w->count - 1) / 2] + w->sorted[w->count / 2]) / 2;
	return ST_OK;
}

double walls_quantile(const struct walls *w, double q)
{
	size_t rank = (size_t)ceil(q * (double)w->count);

	return w->sorted[rank ? rank - 1 : 0];
}

bool walls_are_flat(const struct walls *w)
{
	return w->sorted[w->count - 1] - w->sorted[0] < 0.02 * w->median;
}
