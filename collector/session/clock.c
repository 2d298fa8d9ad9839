/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int tick_source = TICK_MONOTONIC;

/*
 * Enough for the latest 7 to 14 minutes at ten calibration points a second; older ones are thinned
 * out.
 */
enum { POINTS = 8192, PAIRS = 5, COST_CALLS = 64 };

struct calibration_point {
	uint64_t tick, ns;
	double slope; /* ns per tick up to the next point */
};
static struct calibration_point points[POINTS];
static size_t point_count, point_hint;
static uint64_t base_ns;
static double cost_ns;
static _Atomic double rate; /* ticks per second */

#if defined(__x86_64__)

static bool counter_is_good(void)
{
	enum { POWER_MANAGEMENT = 0x80000007, INVARIANT_TSC = 1 << 8 };
	unsigned a, b, c, d;

	if (!__get_cpuid(POWER_MANAGEMENT, &a, &b, &c, &d) || !(d & INVARIANT_TSC))
		return false;
	/*
	 * The kernel uses the counter for its own clock only if it is synchronous on all cores.
	 */
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	static const char *const good[] = { "tsc\n", "kvm-clock\n",
					    "hyperv_clocksource_tsc_page\n" };
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!strcmp(text, good[i]))
			return true;
	return false;
}
static const char counter_name[] = "tsc";
#elif defined(__aarch64__)
static bool counter_is_good(void)
{
	return true; /* guaranteed by the architecture */
}
static const char counter_name[] = "cntvct";
#else
static bool counter_is_good(void)
{
	return false;
}
static const char counter_name[] = "monotonic";
#endif

const char *tick_name(void)
{
	return tick_source == TICK_COUNTER ? counter_name : "monotonic";
}

/* Reads both clocks at one instant, and returns the closest of several pairs. */
static struct calibration_point measure_point(void)
{
	struct calibration_point best = { 0 };
	uint64_t narrowest = UINT64_MAX;

	if (tick_source == TICK_MONOTONIC) {
		best.tick = tick_clock_ns(CLOCK_MONOTONIC);
		best.ns = base_ns + best.tick;
		return best;
	}
	for (int i = 0; i < PAIRS; i++) {
		uint64_t before = tick_counter();
		uint64_t ns = tick_clock_ns(CLOCK_MONOTONIC);
		uint64_t after = tick_counter();
		if (after - before < narrowest) {
			narrowest = after - before;
			best.tick = before + (after - before) / 2;
			best.ns = base_ns + ns;
		}
	}
	return best;
}

/* Makes a first estimate of the rate, accurate to some 100 ppm.  Only live totals need it this
 * early. */
static void measure_rate(void)
{
	enum { SPIN_NS = 200000 };
	struct calibration_point a = measure_point(), b;

	if (tick_source == TICK_MONOTONIC) {
		atomic_store_explicit(&rate, 1e9, memory_order_relaxed);
		return;
	}
	do {
		b = measure_point();
	} while (b.ns - a.ns < SPIN_NS);
	atomic_store_explicit(&rate, (double)(b.tick - a.tick) / (double)(b.ns - a.ns) * 1e9,
			      memory_order_relaxed);
}

void tick_init(const char *choice)
{
	uint64_t monotonic = tick_clock_ns(CLOCK_MONOTONIC);

	base_ns = tick_clock_ns(CLOCK_REALTIME) - monotonic;
	tick_source = TICK_MONOTONIC;
	if (!choice || strcmp(choice, "monotonic") != 0)
		tick_source = counter_is_good() ? TICK_COUNTER : TICK_MONOTONIC;
	point_count = point_hint = 0;
	measure_rate();
	uint64_t begin = tick_clock_ns(CLOCK_MONOTONIC), end;

	for (int i = 0; i < COST_CALLS; i++) {
		uint64_t now = tick_now();

		__asm__ volatile("" : : "r"(now));
	}
	end = tick_clock_ns(CLOCK_MONOTONIC);
	cost_ns = (double)(end - begin) / COST_CALLS;
	tick_calibrate();
}

void tick_calibrate(void)
{
	struct calibration_point now = measure_point(), *last;

	if (point_count == POINTS) {
		/* Drop every second point of the older half. */
		size_t kept = 0;

		for (size_t i = 0; i < POINTS / 2; i += 2)
			points[kept++] = points[i];
		memmove(points + kept, points + POINTS / 2,
			(POINTS - POINTS / 2) * sizeof(points[0]));
		point_count = kept + POINTS - POINTS / 2;
		for (size_t i = 0; i < kept; i++)
			points[i].slope = (double)(points[i + 1].ns - points[i].ns) /
					  (double)(points[i + 1].tick - points[i].tick);
		point_hint = point_count - 1;
	}
	now.slope = 1e9 / atomic_load_explicit(&rate, memory_order_relaxed);
	if (point_count) {
		last = &points[point_count - 1];
		if (now.tick <= last->tick || now.ns <= last->ns)
			return;
		last->slope = (double)(now.ns - last->ns) / (double)(now.tick - last->tick);
		now.slope = (double)(now.ns - points[0].ns) / (double)(now.tick - points[0].tick);
		atomic_store_explicit(&rate, 1e9 / now.slope, memory_order_relaxed);
	}
	points[point_count++] = now;
}

void tick_adopt(enum tick_source source, uint64_t base, uint64_t tick, uint64_t ns)
{
	tick_source = (int)source;
	base_ns = base;
	measure_rate();
	point_hint = 0;
	point_count = tick != 0;
	points[0] = (struct calibration_point){ .tick = tick, .ns = ns };
	tick_calibrate();
}

bool tick_latest(uint64_t *tick, uint64_t *ns)
{
	if (!point_count)
		return false;
	*tick = points[point_count - 1].tick;
	*ns = points[point_count - 1].ns;
	return true;
}

void tick_forked(void)
{
	point_count = point_hint = 0;
	tick_calibrate();
}

static const struct calibration_point *find_point(uint64_t tick)
{
	size_t low = 0, high = point_count;

	if (point_hint + 1 < point_count && points[point_hint].tick <= tick &&
	    tick < points[point_hint + 1].tick)
		return &points[point_hint];
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (points[middle].tick <= tick)
			low = middle;
		else
			high = middle;
	}
	point_hint = low;
	return &points[low];
}

uint64_t tick_to_ns(uint64_t tick)
{
	if (tick_source == TICK_MONOTONIC)
		return base_ns + tick;
	if (!point_count)
		tick_calibrate();
	const struct calibration_point *k = find_point(tick);
	return k->ns + (uint64_t)(int64_t)((double)(int64_t)(tick - k->tick) * k->slope);
}

double tick_cost_ns(void)
{
	return cost_ns;
}

uint64_t tick_base_ns(void)
{
	return base_ns;
}

double tick_per_second(void)
{
	return atomic_load_explicit(&rate, memory_order_relaxed);
}
