/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the host's clock: cheap ticks on the hot path, converted to ns of the Unix epoch later.
 *
 *	any thread      t = tick_now();                  the CPU's counter where it can be trusted
 *	writer thread   tick_calibrate(); ... tick_to_ns(t)
 *
 * Time is CLOCK_MONOTONIC plus a constant taken once for the process, so NTP slews it and it never
 * steps; anchors in the log relate it to CLOCK_REALTIME. A calibration point ties the counter to
 * the clock.  Between two points time is linear in ticks, so a conversion is as exact as reading
 * the clock (some ten ns) when a point was taken after the ticks, and it never runs backward.
 *
 * State is static, because a process has one clock.  tick_calibrate() and tick_to_ns() are for one
 * thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum tick_source { TICK_MONOTONIC, TICK_COUNTER };
extern int tick_source __attribute__((visibility("hidden"))); /* constant after tick_init() */

static inline uint64_t tick_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t tick_counter(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return 0;
#endif
}

static inline uint64_t tick_now(void)
{
	if (__builtin_expect(tick_source == TICK_COUNTER, 1))
		return tick_counter();
	return tick_clock_ns(CLOCK_MONOTONIC);
}

/*
 * Initializes the clock.  `choice` is "monotonic", or anything else for the counter if it is
 * usable.  Takes some 300 us.
 */
void tick_init(const char *choice);
/* Drops the parent's calibration points in the child of a fork; time continues. */
void tick_forked(void);
/* Continues the clock of another process from its latest calibration point. */
void tick_adopt(enum tick_source source, uint64_t base, uint64_t tick, uint64_t ns);
/* Returns the latest calibration point, or false if there is none. */
bool tick_latest(uint64_t *tick, uint64_t *ns);
/* Returns "tsc", "cntvct" or "monotonic". */
const char *tick_name(void);

/*
 * Adds a calibration point, which takes some 100 ns.  Call it after taking the ticks that will be
 * converted.
 */
void tick_calibrate(void);
/* Converts ticks to ns since the Unix epoch.  Ticks outside of the calibration points are
 * extrapolated from the nearest ones. */
uint64_t tick_to_ns(uint64_t tick);

/* Returns the cost of one tick_now() in ns, which tick_init() has measured. */
double tick_cost_ns(void);
/* Returns the constant that is added to CLOCK_MONOTONIC for the times of events. */
uint64_t tick_base_ns(void);
/* Returns ticks per second, by the calibration so far.  Any thread may call it after tick_init().
 */
double tick_per_second(void);
