/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/diff/stats.h"

#include <math.h>

struct diff_series diff_series(const double *values, size_t count)
{
	struct diff_series s = { .count = count, .mean = NAN, .deviation = NAN };
	double sum = 0, squares = 0, pairs = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	if (count)
		s.mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - s.mean) * (values[i] - s.mean);
	for (size_t i = 1; i < count; i++)
		pairs += (values[i - 1] - s.mean) * (values[i] - s.mean);
	if (count > 1)
		s.deviation = sqrt(squares / (double)(count - 1));
	if (count > 2 && squares > 0 && pairs > 0)
		s.correlation = pairs / squares;
	s.effective = (double)count * (1 - s.correlation) / (1 + s.correlation);
	return s;
}

/* Returns the continued fraction of the incomplete beta function (Lentz's method). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), value, step;

	d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
	value = d;
	for (int m = 1; m < 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
		value *= c * d;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
		step = c * d;
		value *= step;
		if (fabs(step - 1) < 1e-12)
			break;
	}
	return value;
}

static double beta_regular(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x >= 1;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double diff_t(double freedom, double outside)
{
	double low = 0, high = 1, t;

	/* P(|T| > t) = I(f / (f + t^2); f / 2, 1 / 2) */
	while (beta_regular(freedom / 2, 0.5, freedom / (freedom + high * high)) > outside &&
	       high < 1e9)
		high *= 2;
	for (int i = 0; i < 100; i++) {
		t = (low + high) / 2;
		if (beta_regular(freedom / 2, 0.5, freedom / (freedom + t * t)) > outside)
			low = t;
		else
			high = t;
	}
	return (low + high) / 2;
}

/* Returns half of Welch's interval; INFINITY if a side has fewer than two effective steps. */
static double half_of(const struct diff_series *a, const struct diff_series *b)
{
	if (a->count < 2 || b->count < 2 || a->effective < 2 || b->effective < 2)
		return INFINITY;
	double va = a->deviation * a->deviation / a->effective;
	double vb = b->deviation * b->deviation / b->effective;
	if (!(va + vb > 0))
		return 0;
	double freedom = (va + vb) * (va + vb) /
			 (va * va / (a->effective - 1) + vb * vb / (b->effective - 1));
	return diff_t(freedom, 0.05) * sqrt(va + vb);
}

/* Returns the steps per side for an interval of +-limit, whose width falls with the root of their
 * number. */
static double needed_of(const struct diff_series *a, const struct diff_series *b, double half,
			double limit)
{
	double count = (double)(a->count > b->count ? a->count : b->count), ratio = half / limit;

	if (!isfinite(half) || !(limit > 0))
		return 0;
	return ceil(count * ratio * ratio);
}

static enum diff_verdict beyond_0(const struct diff_estimate *e)
{
	if (e->difference < 0)
		return DIFF_FASTER;
	return e->difference >= e->limit ? DIFF_SLOWER : DIFF_LITTLE_SLOWER;
}

struct diff_estimate diff_estimate(const struct diff_series *a, const struct diff_series *b,
				   double fail_over)
{
	struct diff_estimate e = { .difference = b->mean - a->mean,
				   .half = half_of(a, b),
				   .limit = a->mean * fail_over };
	bool excludes_0 = fabs(e.difference) > e.half;

	if (!isfinite(e.half) || (!excludes_0 && e.half > e.limit)) {
		e.verdict = DIFF_CANNOT_TELL;
		e.needed = needed_of(a, b, e.half, e.limit);
	} else if (!excludes_0) {
		e.verdict = DIFF_SAME;
	} else {
		e.verdict = beyond_0(&e);
	}
	return e;
}

enum { PAIRS_LEAST = 3 };

void diff_pair(struct diff_estimate *e, const struct diff_series *pairs)
{
	if (e->verdict != DIFF_CANNOT_TELL || pairs->count < PAIRS_LEAST || pairs->effective < 2)
		return;
	double half =
		diff_t(pairs->effective - 1, 0.01) * pairs->deviation / sqrt(pairs->effective);
	if (fabs(e->difference) <= half)
		return;
	e->is_paired = true;
	e->half = half;
	e->needed = 0;
	e->verdict = beyond_0(e);
}
