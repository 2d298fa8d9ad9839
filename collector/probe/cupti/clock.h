/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - converts CUPTI's times to the host's clock (session/clock.h), which never steps.
 *
 * CUPTI's clock is CLOCK_REALTIME, or CLOCK_MONOTONIC_RAW under WSL: it steps when that clock does,
 * and another tool of the process may have replaced it.  Several times a second the writer measures
 * its distance from CLOCK_MONOTONIC.  A time span with one distance is a clock epoch, whose times
 * are moved by that distance.  A step begins another epoch.  A clock with another rate has a new
 * distance at each measurement; an epoch that no second measurement confirms is not used, so these
 * times are refused.  A time that lies in two epochs (the clock was set back) belongs to the latest
 * one that had begun when its buffer was completed.
 *
 * State is static; writer thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Discards all epochs and measures.  `timestamp` is cuptiGetTimestamp(). */
void cupti_clock_open(int (*timestamp)(uint64_t *ns));
/* Measures the distance, at most every 50 ms unless `now` is set. */
void cupti_clock_note(bool now);
/* Returns the time of CUPTI's clock in ns, or 0. */
uint64_t cupti_clock_now(void);

/* A range of CUPTI's times, and the number to add to them. */
struct cupti_epoch {
	uint64_t first, last; /* CUPTI's times; last < first: none */
	int64_t add;
};
/*
 * Returns the time on the host's clock, or 0 if it lies in no epoch and cannot be used.  The time
 * had passed at `before_ns` on CLOCK_MONOTONIC.  *epoch is tried first and kept up to date.
 */
uint64_t cupti_clock_convert_slow(uint64_t cupti_ns, uint64_t before_ns, struct cupti_epoch *epoch);

static inline uint64_t cupti_clock_convert(uint64_t cupti_ns, uint64_t before_ns,
					   struct cupti_epoch *epoch)
{
	if (__builtin_expect(cupti_ns - epoch->first <= epoch->last - epoch->first, 1))
		return cupti_ns + (uint64_t)epoch->add;
	return cupti_clock_convert_slow(cupti_ns, before_ns, epoch);
}

/* Returns the largest distance from the documented clock since open, in ns. */
uint64_t cupti_clock_off_ns(void);
/* Return whether the last measurement was not that of a documented clock, and whether it confirmed
 * the one before. */
bool cupti_clock_is_strange(void);
bool cupti_clock_is_steady(void);

struct cupti_lib;
/*
 * Replaces a foreign clock with CLOCK_REALTIME.  PyTorch's profiler registers a clock that counts
 * ticks and that cannot be unregistered; it registers the clock again at the begin of each of its
 * sessions, so replacing it does no harm.  A clock whose rate is that of other clocks stays,
 * because the distance suffices.  Returns false if it was no documented clock.
 */
bool cupti_clock_set(const struct cupti_lib *lib);
