/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tick.h - the host's clock: cheap ticks on the hot path, nanoseconds of the Unix epoch later.
 *
 *	any thread      t = tick_now();                  the CPU's counter where it can be trusted
 *	writer thread   tick_knot(); ... tick_to_ns(t)   a knot ties the counter to the clock
 *
 * Time is CLOCK_MONOTONIC plus a constant that is taken once per process, so it is smoothed by NTP
 * and never steps; anchors in the log say how REALTIME went.  Between two knots time runs in a
 * straight line, so it is as exact as a clock read (some ten ns) when a knot is put after the
 * ticks that are to be told, and it never runs backward.
 *
 * State is static: there is one clock in a process.  tick_knot() and tick_to_ns() belong to one
 * thread at a time.
 */
#ifndef COLLECTOR_TICK_H
#define COLLECTOR_TICK_H

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

/* `choice`: "monotonic"; NULL and all else: the counter if it is good.  Takes some 300 us. */
void tick_init(const char *choice);
/* In the child of a fork: the parent's knots are gone, its time goes on. */
void tick_forked(void);
/* "tsc", "cntvct" or "monotonic". */
const char *tick_name(void);

/* Costs some 100 ns.  Call it after the ticks to be told were taken. */
void tick_knot(void);
/* Ticks beyond the knots are told along the nearest line. */
uint64_t tick_to_ns(uint64_t tick);

/* What one tick_now() costs, in ns; measured by tick_init(). */
double tick_cost_ns(void);
/* Added to CLOCK_MONOTONIC it is the time of events. */
uint64_t tick_base_ns(void);
/* Ticks in a second by what is known so far; for durations, any thread after tick_init(). */
double tick_per_second(void);

#endif
