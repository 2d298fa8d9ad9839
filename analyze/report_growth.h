/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_growth.h - does a level grow from step to step, more than its noise explains
 * (DEFINITIONS.md 8, leak)?
 */
#ifndef ANALYZE_REPORT_GROWTH_H
#define ANALYZE_REPORT_GROWTH_H

#include <stddef.h>
#include <stdint.h>

struct growth {
	double slope, error; /* a step; 0 of fewer than three */
};
/* Least squares over equally spaced values; the error allows for the lag-1 correlation r of the
 * residuals: times sqrt((1 + r) / (1 - r)). */
struct growth growth_fit(const double *y, size_t n);
/* How many are over 1.2 times the (lower) median; puts them in order. */
uint64_t growth_spikes(uint64_t *most, size_t n);

#endif
