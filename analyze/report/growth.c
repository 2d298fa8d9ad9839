/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/shared.h"

#include "schemas/base/sort.h"

#include <math.h>

/* Returns the residual of a step from the line, which is at_0 at the first step. */
static double off(const struct growth_step *steps, size_t i, double at_0, double slope)
{
	return (double)steps[i].least - at_0 - slope * (double)i;
}

/* Returns the factor for the error by the lag-1 correlation of the residuals: neighbours are not
 * independent. */
static double correction(const struct growth_step *steps, size_t n, double at_0, double slope,
			 double squares)
{
	double lagged = 0;

	for (size_t i = 1; i < n; i++)
		lagged += off(steps, i, at_0, slope) * off(steps, i - 1, at_0, slope);
	double r = squares > 0 ? lagged / squares : 0;
	r = r > 0 ? r < 0.95 ? r : 0.95 : 0;
	return sqrt((1 + r) / (1 - r));
}

static uint64_t spikes(struct growth_step *steps, size_t n)
{
	uint64_t count = 0;

	if (n < 3)
		return 0;
	SORT_BY(steps, n, UP(struct growth_step, most));
	uint64_t median = steps[(n - 1) / 2].most;
	for (size_t i = n; i && (double)steps[i - 1].most > 1.2 * (double)median; i--)
		count++;
	return count;
}

struct growth growth_fit(struct growth_step *steps, size_t n)
{
	double mean_x = ((double)n - 1) / 2, mean_y = 0, xx = 0, xy = 0, squares = 0;
	struct growth fit = { 0, 0, 0 };

	SORT_BY(steps, n, UP(struct growth_step, begin_ns));
	for (size_t i = 0; i < n; i++)
		mean_y += (double)steps[i].least / (double)n;
	for (size_t i = 0; i < n; i++) {
		xx += ((double)i - mean_x) * ((double)i - mean_x);
		xy += ((double)i - mean_x) * ((double)steps[i].least - mean_y);
	}
	fit.slope = xx > 0 ? xy / xx : 0;
	for (size_t i = 0; i < n; i++) {
		double rest = (double)steps[i].least - mean_y - fit.slope * ((double)i - mean_x);
		squares += rest * rest;
	}
	if (n > 2 && xx > 0)
		fit.error = sqrt(squares / (double)(n - 2) / xx) *
			    correction(steps, n, mean_y - fit.slope * mean_x, fit.slope, squares);
	fit.spikes = spikes(steps, n);
	return fit;
}
