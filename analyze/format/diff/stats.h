/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - is one series of step times slower than another (DEFINITIONS.md 8)?
 *
 * Steps follow each other and resemble their neighbours, so n of them say less than n independent
 * ones: they count as n (1 - r) / (1 + r), r = max(0, autocorrelation at lag 1).  The interval of
 * the difference of means is Welch's, at 95 %.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct diff_series { /* of one side */
	size_t count;
	double mean, deviation; /* NAN below one, below two */
	double correlation;     /* r; 0 below three */
	double effective;       /* steps that they are worth */
};
struct diff_series diff_series(const double *values, size_t count);

enum diff_verdict {
	DIFF_SLOWER,        /* by the limit or more: exit 3 */
	DIFF_LITTLE_SLOWER, /* less than the limit, but not nothing */
	DIFF_SAME,          /* nothing, and the interval is narrow enough to say so */
	DIFF_FASTER,
	DIFF_CANNOT_TELL,
};
struct diff_estimate {
	double difference; /* of means, b - a */
	double half;       /* of the interval; INFINITY: too few steps */
	double limit;      /* fail-over, as time */
	double needed;     /* steps a side, about; 0: cannot be said */
	bool is_paired;    /* by the differences of steps that both sides have */
	enum diff_verdict verdict;
};
struct diff_estimate diff_estimate(const struct diff_series *a, const struct diff_series *b,
				   double fail_over);

/*
 * Where the means cannot tell: by `pairs`, the differences of all steps, which both sides have, if
 * their interval of 99 % excludes 0.  Of equal data steps vary together, and their differences do
 * not.
 */
void diff_pair(struct diff_estimate *e, const struct diff_series *pairs);

/* The t that |T| passes with probability `outside`, at so many degrees of freedom. */
double diff_t(double freedom, double outside);
