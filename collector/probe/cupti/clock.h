/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - CUPTI's times on the host's clock (session/clock.h), which never steps.
 *
 * CUPTI's clock is CLOCK_REALTIME, under WSL CLOCK_MONOTONIC_RAW: it steps when that does, and
 * another tool of the process may have replaced it.  Several times a second the writer measures its
 * distance from CLOCK_MONOTONIC. As long as that distance does not change, it is one clock epoch,
 * and times are moved by that distance. A step begins another epoch.  A clock of another rate has a
 * new distance each time it is read: an epoch that no second measurement confirms holds for no
 * time, so these are refused.  A time that lies in two epochs (the clock was set back) belongs to
 * the latest one that had begun when its buffer was completed.
 *
 * State is static; writer thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* `timestamp`: cuptiGetTimestamp().  Forgets all before. */
void cupti_clock_open(int (*timestamp)(uint64_t *ns));
/* Measures, at most every 50 ms unless `now`. */
void cupti_clock_note(bool now);
/* CUPTI's clock; 0: none. */
uint64_t cupti_clock_now(void);

/* What to add to a time of CUPTI's, and for which times that holds. */
struct cupti_epoch {
	uint64_t first, last; /* CUPTI's; none when last < first */
	int64_t add;
};
/*
 * The time on the host's clock; 0: it lies in no epoch, so it cannot be used.  The time had passed
 * at `before_ns` on CLOCK_MONOTONIC.  *epoch is tried first and kept up to date.
 */
uint64_t cupti_clock_convert_slow(uint64_t cupti_ns, uint64_t before_ns, struct cupti_epoch *epoch);

static inline uint64_t cupti_clock_convert(uint64_t cupti_ns, uint64_t before_ns,
					   struct cupti_epoch *epoch)
{
	if (__builtin_expect(cupti_ns - epoch->first <= epoch->last - epoch->first, 1))
		return cupti_ns + (uint64_t)epoch->add;
	return cupti_clock_convert_slow(cupti_ns, before_ns, epoch);
}

/* Its largest distance from CLOCK_REALTIME since open, in ns; 0 while it is a documented clock. */
uint64_t cupti_clock_off_ns(void);
/* Whether the last measurement was of no documented clock; whether it confirmed the one before. */
bool cupti_clock_is_strange(void);
bool cupti_clock_is_steady(void);

struct cupti_lib;
/*
 * PyTorch's profiler gives CUPTI a clock of its own, which counts ticks, and nobody can take it
 * away: it is replaced by CLOCK_REALTIME.  The profiler sets it again at the begin of each of its
 * sessions, so that does no harm.  Where the rate is that of other clocks, the distance is all that
 * is needed, and the clock stays.  False: it was no documented clock.
 */
bool cupti_clock_set(const struct cupti_lib *lib);
