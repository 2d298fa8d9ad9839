/* SPDX-License-Identifier: Apache-2.0 */
/* page/walls.h - wall times of the counted steps of one rank, as every page shows them. */
#ifndef ANALYZE_PAGE_WALLS_H
#define ANALYZE_PAGE_WALLS_H

#include "analyze/text/page.h"

enum { P90_FROM = 20, P99_FROM = 200 }; /* steps from which on a quantile is printed */

struct walls { /* ns */
	double *in_order, *sorted;
	size_t *rows; /* of in_order, in the view of steps */
	size_t count, all, settling;
	double median;
};

/* Ended by walls_release(), also after an error. */
enum status walls_take(const struct view *steps, struct walls *w, struct error *err);
void walls_release(struct walls *w);
/* The least value that a share `q` of all does not pass. */
double walls_quantile(const struct walls *w, double q);
/* Whether the spread is too small for a picture. */
bool walls_are_flat(const struct walls *w);

#endif
