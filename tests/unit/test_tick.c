/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/clock.h"
#include "tests/unit/unit.h"

#include <unistd.h>

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void check_follows(const char *choice)
{
	uint64_t best = UINT64_MAX, tick, before, after, told;
	int i;

	tick_init(choice);
	usleep(20000);
	for (i = 0; i < 50; i++) {
		before = tick_clock_ns(CLOCK_MONOTONIC);
		tick = tick_now();
		after = tick_clock_ns(CLOCK_MONOTONIC);
		usleep(200);
		tick_calibrate();
		told = tick_to_ns(tick) - tick_base_ns();
		if (after - before < 2000 && distance(told, before) < best)
			best = distance(told, before);
	}
	/* a pre-empted reading may be off, the best one is not */
	CHECK(best < 2000);
	CHECK(distance(tick_base_ns() + tick_clock_ns(CLOCK_MONOTONIC),
		       tick_clock_ns(CLOCK_REALTIME)) < 50000000);
	CHECK(tick_cost_ns() > 0);
}

void test_tick_follows_the_clock(void)
{
	check_follows("auto");
	check_follows("monotonic");
	CHECK_STR(tick_name(), "monotonic");
	CHECK(tick_source == TICK_MONOTONIC);
}

/* Also over more knots than are kept, and for ticks of long ago. */
void test_tick_never_runs_backward(void)
{
	enum { TICKS = 20000 };
	static uint64_t ticks[TICKS];
	uint64_t last = 0, ns;
	int i;

	tick_init("auto");
	for (i = 0; i < TICKS; i++) {
		ticks[i] = tick_now();
		tick_calibrate();
	}
	for (i = 0; i < TICKS; i++) {
		ns = tick_to_ns(ticks[i]);
		if (!CHECK(ns >= last))
			return;
		last = ns;
	}
	CHECK(tick_to_ns(ticks[0] - 1000000) < tick_to_ns(ticks[0]));
	CHECK(tick_to_ns(ticks[TICKS - 1] + 1000000000) > last);
	tick_forked();
	ns = tick_to_ns(tick_now());
	CHECK(distance(ns, tick_base_ns() + tick_clock_ns(CLOCK_MONOTONIC)) < 10000000);
}
