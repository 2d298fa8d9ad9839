/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - tests whether one series of step times is slower than another (DEFINITIONS.md 8).
 *
 * Neighbouring steps resemble each other, so n of them prove less than n independent ones: they
 * count as n (1 - r) / (1 + r), r = max(0, autocorrelation at lag 1). The interval of the
 * difference of means is Welch's, at 95 %.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct diff_series { /* the series of one side */
	size_t count;
	double mean, deviation; /* NAN for fewer than one value; for fewer than two */
	double correlation;     /* r; 0 for fewer than three values */
	double effective;       /* number of independent steps with the same information */
};
struct diff_series diff_series(const double *values, size_t count);

enum diff_verdict {
	DIFF_SLOWER,        /* by at least the limit: exit code 3 */
	DIFF_LITTLE_SLOWER, /* significantly, but by less than the limit */
	DIFF_SAME,          /* the interval is narrow and includes 0 */
	DIFF_FASTER,
	DIFF_CANNOT_TELL,
};
struct diff_estimate {
	double difference; /* difference of means, b - a */
	double half;       /* half of the interval; INFINITY: too few steps */
	double limit;      /* --fail-over, as time */
	double needed;     /* estimated steps per side; 0: unknown */
	bool is_paired;    /* by the differences of steps that both sides have */
	enum diff_verdict verdict;
};
struct diff_estimate diff_estimate(const struct diff_series *a, const struct diff_series *b,
				   double fail_over);

/* If the means are inconclusive, decides by `pairs`, the differences of all steps that both sides
 * have, if their 99 % interval excludes 0. With equal data steps vary together, and their
 * differences do not. */
void diff_pair(struct diff_estimate *e, const struct diff_series *pairs);

/* Returns the t that |T| exceeds with probability `outside`, for some degrees of freedom. */
double diff_t(double freedom, double outside);
