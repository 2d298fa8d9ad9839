/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/tick.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int tick_source = TICK_MONOTONIC;

/* Four of the last seven minutes at ten knots a second; older ones are thinned out. */
enum { KNOTS = 8192, PAIRS = 5, COST_CALLS = 64 };

struct knot {
	uint64_t tick, ns;
	double slope; /* ns per tick to the next knot */
};
static struct knot knots[KNOTS];
static size_t knot_count, knot_hint;
static uint64_t base_ns;
static double cost_ns;
static _Atomic double rate; /* ticks per second */

#if defined(__x86_64__)
/* The kernel takes the counter for its own clock only where it found it the same on all cores. */
static bool kernel_trusts_counter(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	static const char *const good[] = { "tsc\n", "kvm-clock\n",
					    "hyperv_clocksource_tsc_page\n" };
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t i;

	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!strcmp(text, good[i]))
			return true;
	return false;
}

static bool counter_is_good(void)
{
	enum { POWER_MANAGEMENT = 0x80000007, INVARIANT_TSC = 1 << 8 };
	unsigned a, b, c, d;

	if (!__get_cpuid(POWER_MANAGEMENT, &a, &b, &c, &d) || !(d & INVARIANT_TSC))
		return false;
	return kernel_trusts_counter();
}
static const char counter_name[] = "tsc";
#elif defined(__aarch64__)
static bool counter_is_good(void)
{
	return true; /* the architecture says so */
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

/* Both clocks at one instant: the closest of some pairs. */
static struct knot knot_measure(void)
{
	struct knot best = { 0 };
	uint64_t narrowest = UINT64_MAX, before, ns, after;
	int i;

	if (tick_source == TICK_MONOTONIC) {
		best.tick = tick_clock_ns(CLOCK_MONOTONIC);
		best.ns = base_ns + best.tick;
		return best;
	}
	for (i = 0; i < PAIRS; i++) {
		before = tick_counter();
		ns = tick_clock_ns(CLOCK_MONOTONIC);
		after = tick_counter();
		if (after - before < narrowest) {
			narrowest = after - before;
			best.tick = before + (after - before) / 2;
			best.ns = base_ns + ns;
		}
	}
	return best;
}

static void measure_cost(void)
{
	uint64_t begin = tick_clock_ns(CLOCK_MONOTONIC), end;
	int i;

	for (i = 0; i < COST_CALLS; i++) {
		uint64_t now = tick_now();

		__asm__ volatile("" : : "r"(now));
	}
	end = tick_clock_ns(CLOCK_MONOTONIC);
	cost_ns = (double)(end - begin) / COST_CALLS;
}

/* The first guess of the rate, good to some 100 ppm: only live totals need it this early. */
static void measure_rate(void)
{
	enum { SPIN_NS = 200000 };
	struct knot a = knot_measure(), b;

	if (tick_source == TICK_MONOTONIC) {
		atomic_store_explicit(&rate, 1e9, memory_order_relaxed);
		return;
	}
	do {
		b = knot_measure();
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
	knot_count = knot_hint = 0;
	measure_rate();
	measure_cost();
	tick_knot();
}

/* Every second one of the older half goes. */
static void thin_out(void)
{
	size_t i, kept = 0;

	for (i = 0; i < KNOTS / 2; i += 2)
		knots[kept++] = knots[i];
	memmove(knots + kept, knots + KNOTS / 2, (KNOTS - KNOTS / 2) * sizeof(knots[0]));
	knot_count = kept + KNOTS - KNOTS / 2;
	for (i = 0; i < kept; i++)
		knots[i].slope = (double)(knots[i + 1].ns - knots[i].ns) /
				 (double)(knots[i + 1].tick - knots[i].tick);
	knot_hint = knot_count - 1;
}

void tick_knot(void)
{
	struct knot now = knot_measure(), *last;

	if (knot_count == KNOTS)
		thin_out();
	now.slope = 1e9 / atomic_load_explicit(&rate, memory_order_relaxed);
	if (knot_count) {
		last = &knots[knot_count - 1];
		if (now.tick <= last->tick || now.ns <= last->ns)
			return;
		last->slope = (double)(now.ns - last->ns) / (double)(now.tick - last->tick);
		now.slope = (double)(now.ns - knots[0].ns) / (double)(now.tick - knots[0].tick);
		atomic_store_explicit(&rate, 1e9 / now.slope, memory_order_relaxed);
	}
	knots[knot_count++] = now;
}

void tick_forked(void)
{
	knot_count = knot_hint = 0;
	tick_knot();
}

static const struct knot *find_knot(uint64_t tick)
{
	size_t low = 0, high = knot_count;

	if (knot_hint + 1 < knot_count && knots[knot_hint].tick <= tick &&
	    tick < knots[knot_hint + 1].tick)
		return &knots[knot_hint];
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (knots[middle].tick <= tick)
			low = middle;
		else
			high = middle;
	}
	knot_hint = low;
	return &knots[low];
}

uint64_t tick_to_ns(uint64_t tick)
{
	const struct knot *k;

	if (tick_source == TICK_MONOTONIC)
		return base_ns + tick;
	if (!knot_count)
		tick_knot();
	k = find_knot(tick);
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
