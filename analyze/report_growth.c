/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report_growth.h"

#include <math.h>
#include <stdlib.h>

/* Lag-1 correlation of the residuals: neighbours say less than they seem to. */
static double correction(const double *y, size_t n, double at_0, double slope, double squares)
{
	double lagged = 0, r;
	size_t i;

	for (i = 1; i < n; i++)
		lagged += (y[i] - at_0 - slope * (double)i) *
			  (y[i - 1] - at_0 - slope * (double)(i - 1));
	r = squares > 0 ? lagged / squares : 0;
	r = r > 0 ? r < 0.95 ? r : 0.95 : 0;
	return sqrt((1 + r) / (1 - r));
}

struct growth growth_fit(const double *y, size_t n)
{
	double mean_x = ((double)n - 1) / 2, mean_y = 0, xx = 0, xy = 0, squares = 0, off;
	struct growth fit = { 0, 0 };
	size_t i;

	for (i = 0; i < n; i++)
		mean_y += y[i] / (double)n;
	for (i = 0; i < n; i++) {
		xx += ((double)i - mean_x) * ((double)i - mean_x);
		xy += ((double)i - mean_x) * (y[i] - mean_y);
	}
	fit.slope = xx > 0 ? xy / xx : 0;
	for (i = 0; i < n; i++) {
		off = y[i] - mean_y - fit.slope * ((double)i - mean_x);
		squares += off * off;
	}
	if (n > 2 && xx > 0)
		fit.error = sqrt(squares / (double)(n - 2) / xx) *
			    correction(y, n, mean_y - fit.slope * mean_x, fit.slope, squares);
	return fit;
}

static int compare_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

uint64_t growth_spikes(uint64_t *most, size_t n)
{
	uint64_t count = 0, median;
	size_t i;

	if (n < 3)
		return 0;
	qsort(most, n, sizeof(*most), compare_u64);
	median = most[(n - 1) / 2];
	for (i = n; i && (double)most[i - 1] > 1.2 * (double)median; i--)
		count++;
	return count;
}
