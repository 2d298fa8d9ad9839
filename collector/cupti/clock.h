/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/clock.h - CUPTI's times on the host's clock (tick.h), which never steps.
 *
 * CUPTI's clock is CLOCK_REALTIME: it follows every step of it, and another tool of the process may
 * have replaced it.  A few times a second the writer notes how far it is from CLOCK_MONOTONIC; while
 * that distance stays the same it is one *era*, and a time is moved by exactly that distance.  A
 * step begins another era.  A time that lies in two (the clock was set back) is taken for the
 * latest that had passed when its buffer came.
 *
 * State is static; the writer's thread only.
 */
#ifndef COLLECTOR_CUPTI_CLOCK_H
#define COLLECTOR_CUPTI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* `timestamp`: cuptiGetTimestamp().  Forgets all before. */
void cupti_clock_open(int (*timestamp)(uint64_t *ns));
/* Measures, at most every 50 ms unless `now`. */
void cupti_clock_note(bool now);
/* CUPTI's clock; 0: none. */
uint64_t cupti_clock_now(void);

/* What to add to a time of CUPTI's, and for which times that holds. */
struct cupti_era {
	uint64_t first, last; /* CUPTI's; none when last < first */
	int64_t add;
};
/*
 * The time on the host's clock; 0: it lies in no era, so it cannot be used.  `before_ns`, on
 * CLOCK_MONOTONIC: it had passed by then.  *era is looked at first and kept up to date.
 */
uint64_t cupti_clock_tell_slowly(uint64_t cupti_ns, uint64_t before_ns, struct cupti_era *era);

static inline uint64_t cupti_clock_tell(uint64_t cupti_ns, uint64_t before_ns,
					struct cupti_era *era)
{
	if (__builtin_expect(cupti_ns - era->first <= era->last - era->first, 1))
		return cupti_ns + (uint64_t)era->add;
	return cupti_clock_tell_slowly(cupti_ns, before_ns, era);
}

/* Steps seen since open, and the largest distance from CLOCK_REALTIME, in ns. */
uint64_t cupti_clock_steps(void);
uint64_t cupti_clock_off_ns(void);

#endif
