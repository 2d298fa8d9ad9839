/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth.h - does a level grow from step to step, more than its noise explains
 * (DEFINITIONS.md 8, leak)?
 */
#ifndef ANALYZE_REPORT_GROWTH_H
#define ANALYZE_REPORT_GROWTH_H

#include <stddef.h>
#include <stdint.h>

struct growth_step {
	uint64_t begin_ns, least, most; /* bytes */
};
struct growth {
	double slope, error; /* of the least, a step; 0 of fewer than three */
	uint64_t spikes;     /* steps whose most is over 1.2 times the (lower) median step's */
};
/* Least squares over the steps in order of time as if equally spaced; the error allows for the
 * lag-1 correlation r of the residuals: times sqrt((1 + r) / (1 - r)).  Orders the steps
 * otherwise. */
struct growth growth_fit(struct growth_step *steps, size_t n);

#endif
