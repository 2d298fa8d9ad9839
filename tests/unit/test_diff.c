/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/diff/stats.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdint.h>

enum { STEPS = 200, SEEDS = 100 };

static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
	double u = uniform(state), v = uniform(state);

	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Step times around `mean` with a coefficient of variation and a correlation of neighbours. */
static struct diff_series series_make(uint64_t seed, size_t count, double mean, double variation,
				      double correlation)
{
	double walls[4096], z;
	uint64_t state = seed * 7919 + 1;
	size_t i;

	z = normal(&state);
	for (i = 0; i < count; i++) {
		walls[i] = mean * (1 + variation * z);
		z = correlation * z + sqrt(1 - correlation * correlation) * normal(&state);
	}
	return diff_series(walls, count);
}

static struct diff_estimate two_make(uint64_t seed, double slower, double fail_over)
{
	struct diff_series a = series_make(2 * seed, STEPS, 5e7, 0.03, 0.3);
	struct diff_series b = series_make(2 * seed + 1, STEPS, 5e7 * (1 + slower), 0.03, 0.3);

	return diff_estimate(&a, &b, fail_over);
}

/* DEFINITIONS.md 8: 200 steps, CV 3 %, r 0.3. */
void test_diff_planted(void)
{
	uint64_t seed, found = 0;

	for (seed = 0; seed < SEEDS; seed++)
		found += two_make(seed, 0.02, 0.01).verdict == DIFF_SLOWER;
	CHECK(found >= 95);
}

void test_diff_alarms(void)
{
	uint64_t seed, alarms = 0, changes = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		struct diff_estimate e = two_make(seed, 0, 0.01);

		alarms += e.verdict == DIFF_SLOWER;
		changes += fabs(e.difference) > e.half;
	}
	CHECK_U64(alarms, 0);
	/* the interval is one of 95 %, and autocorrelation is what makes it so */
	CHECK(changes >= 1 && changes <= 11);
}

/* Many seeds: the interval covers what it says. */
void test_diff_coverage(void)
{
	uint64_t seed, misses = 0, alarms = 0;

	for (seed = 1000; seed < 5000; seed++) {
		struct diff_estimate e = two_make(seed, 0, 0.01);

		misses += fabs(e.difference) > e.half;
		alarms += e.verdict == DIFF_SLOWER;
	}
	CHECK(misses > 120 && misses < 300); /* 5 % of 4,000 are 200 */
	CHECK(alarms < 60);                  /* 1.5 %; a threshold is no part of the interval */
}

/* Series of few steps, whose steps are alike on both sides to the share `alike` of their variation.
 */
static struct diff_estimate pairs_make(uint64_t seed, size_t count, double slower, double alike)
{
	double a[64], b[64], differences[64];
	uint64_t state = seed * 104729 + 17;

	for (size_t i = 0; i < count; i++) {
		double z = normal(&state), own = normal(&state);

		a[i] = 1e6 * (1 + 0.05 * z);
		b[i] = 1e6 * (1 + slower + 0.05 * (alike * z + sqrt(1 - alike * alike) * own));
		differences[i] = b[i] - a[i];
	}
	struct diff_series sa = diff_series(a, count), sb = diff_series(b, count);
	struct diff_series pairs = diff_series(differences, count);
	struct diff_estimate e = diff_estimate(&sa, &sb, 0.02);
	diff_pair(&e, &pairs);
	return e;
}

/* Three steps, of which each takes 4.3 % longer: noise that both sides share hides nothing. */
void test_diff_pairs(void)
{
	uint64_t found = 0, alarms[2] = { 0, 0 }, paired = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++)
		found += pairs_make(seed, 3, 0.043, 0.9999).verdict == DIFF_SLOWER;
	CHECK(found >= 95);
	for (uint64_t seed = 0; seed < 4000; seed++) {
		struct diff_estimate e = pairs_make(seed, 3, 0, 0);

		alarms[0] += e.verdict == DIFF_SLOWER;
		alarms[1] += e.verdict == DIFF_FASTER;
		paired += e.is_paired;
	}
	/* steps that share nothing: one in a hundred more than the means alone, on both sides */
	CHECK(paired <= 60);
	CHECK(alarms[0] < 200 && alarms[1] < 200);
}

void test_diff_quantiles(void)
{
	CHECK_F64(diff_t(1, 0.05), 12.7062, 0.0001);
	CHECK_F64(diff_t(2, 0.05), 4.3027, 0.0001);
	CHECK_F64(diff_t(2, 0.01), 9.9248, 0.0001);
	CHECK_F64(diff_t(5, 0.05), 2.5706, 0.0001);
	CHECK_F64(diff_t(10.5, 0.05), 2.2138, 0.001);
	CHECK_F64(diff_t(30, 0.05), 2.0423, 0.0001);
	CHECK_F64(diff_t(1e6, 0.05), 1.95997, 0.0001);
}

void test_diff_correlation(void)
{
	double saw[40], ramp[40];
	struct diff_series s = series_make(3, 4000, 1e6, 0.05, 0.6);
	size_t i;

	CHECK_F64(s.correlation, 0.6, 0.05);
	CHECK_F64(s.effective, 1000, 150);
	for (i = 0; i < 40; i++) {
		saw[i] = i % 2 ? 110 : 90;
		ramp[i] = (double)i;
	}
	CHECK_F64(diff_series(saw, 40).correlation, 0, 0); /* below 0 is 0 */
	CHECK_F64(diff_series(saw, 40).effective, 40, 0);
	CHECK(diff_series(ramp, 40).effective < 4);
}

/* Welch by hand: means 10 and 12, variances 5/3 and 20/3, 4 values each, falling then rising. */
void test_diff_welch(void)
{
	const double a[] = { 11, 8.5, 11.5, 9 }, b[] = { 14, 9, 15, 10 };
	struct diff_series sa = diff_series(a, 4), sb = diff_series(b, 4);
	struct diff_estimate e = diff_estimate(&sa, &sb, 0.5);
	double va = sa.deviation * sa.deviation / 4, vb = sb.deviation * sb.deviation / 4;
	double freedom = (va + vb) * (va + vb) / (va * va / 3 + vb * vb / 3);

	CHECK_F64(sa.correlation + sb.correlation, 0, 0);
	CHECK_F64(e.difference, 2, 1e-9);
	CHECK_F64(e.half, diff_t(freedom, 0.05) * sqrt(va + vb), 1e-9);
	CHECK(freedom > 3 && freedom < 6);
}

void test_diff_verdicts(void)
{
	const double steady[] = { 100, 100, 100, 100 }, more[] = { 105, 105, 105, 105 };
	const double wild[] = { 60, 140, 70, 130, 65, 135 }, one[] = { 100 };
	struct diff_series s = diff_series(steady, 4), m = diff_series(more, 4);
	struct diff_series w = diff_series(wild, 6), o = diff_series(one, 1);
	struct diff_series none = diff_series(one, 0);
	struct diff_estimate e;

	CHECK(diff_estimate(&s, &s, 0.02).verdict == DIFF_SAME);
	CHECK(diff_estimate(&s, &m, 0.02).verdict == DIFF_SLOWER);
	CHECK(diff_estimate(&s, &m, 0.05).verdict == DIFF_SLOWER); /* at it is over it */
	CHECK(diff_estimate(&s, &m, 0.051).verdict == DIFF_LITTLE_SLOWER);
	CHECK(diff_estimate(&m, &s, 0.02).verdict == DIFF_FASTER);
	CHECK(diff_estimate(&s, &o, 0.02).verdict == DIFF_CANNOT_TELL);
	CHECK(diff_estimate(&none, &s, 0.02).verdict == DIFF_CANNOT_TELL);
	e = diff_estimate(&s, &w, 0.02);
	CHECK(e.verdict == DIFF_CANNOT_TELL);
	CHECK(e.needed > 100);
	CHECK(diff_estimate(&s, &w, 0).verdict == DIFF_CANNOT_TELL);
	CHECK_F64(diff_estimate(&s, &w, 0).needed, 0, 0);
}

/* As many steps as were asked for are enough, about. */
void test_diff_needed(void)
{
	struct diff_series a = series_make(1, 30, 1e6, 0.08, 0.3);
	struct diff_series b = series_make(2, 30, 1e6, 0.08, 0.3);
	struct diff_estimate e = diff_estimate(&a, &b, 0.01);
	size_t count = (size_t)e.needed;

	if (!CHECK(e.verdict == DIFF_CANNOT_TELL && count > 100 && count < 2000))
		return;
	a = series_make(3, 2 * count, 1e6, 0.08, 0.3);
	b = series_make(4, 2 * count, 1e6, 0.08, 0.3);
	CHECK(diff_estimate(&a, &b, 0.01).verdict != DIFF_CANNOT_TELL);
}
