/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/clock.h"

#include "collector/probe/cupti/lib.h"
#include "collector/session/clock.h"

#include <stddef.h>
#include <string.h>

#define MS UINT64_C(1000000)
enum { EPOCHS = 256, TRIES = 4 };
#define PERIOD_NS (50 * MS)
#define REAL_NS   (10 * MS)
#define SAME_NS   UINT64_C(2000)   /* smaller differences are noise of the measurement */
#define DRIFT_NS  UINT64_C(100000) /* drift from CLOCK_MONOTONIC between two measurements */
#define EARLY_NS  (3600000 * MS)   /* before the first measurement, for work that was running */
#define LATE_NS   (5000 * MS)      /* after the last measurement */

struct epoch {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC of its first and last measurement */
	uint64_t distance;       /* CUPTI's minus CLOCK_MONOTONIC, modulo 2^64 */
	bool is_known;           /* it is a documented clock, whose rate is known */
};
static struct {
	int (*timestamp)(uint64_t *ns);
	struct epoch epochs[EPOCHS];
	uint64_t count; /* number of epochs so far; the last EPOCHS are kept */
	uint64_t noted_ns, off_ns, last_off_ns;
	bool is_raw; /* CUPTI's clock is CLOCK_MONOTONIC_RAW, by the first measurement */
} clock_state;

static uint64_t far(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

uint64_t cupti_clock_now(void)
{
	uint64_t ns = 0;

	if (!clock_state.timestamp || clock_state.timestamp(&ns) != 0)
		return 0;
	return ns;
}

struct reading {
	uint64_t monotonic_ns, distance, off_ns, width_ns;
};

void cupti_clock_open(int (*timestamp)(uint64_t *ns))
{
	memset(&clock_state, 0, sizeof(clock_state));
	clock_state.timestamp = timestamp;
	cupti_clock_note(true);
}

void cupti_clock_note(bool now)
{
	uint64_t ns = tick_clock_ns(CLOCK_MONOTONIC);
	struct epoch *last = &clock_state.epochs[(clock_state.count + EPOCHS - 1) % EPOCHS];

	if (!now && ns - clock_state.noted_ns < PERIOD_NS)
		return;
	clock_state.noted_ns = ns;
	/*
	 * Use the narrowest of TRIES brackets.  A clock that gives no time is CLOCK_REALTIME, as
	 * documented, or CLOCK_MONOTONIC_RAW, as documented for WSL.
	 */
	struct reading r = { .width_ns = UINT64_MAX };

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = tick_clock_ns(CLOCK_MONOTONIC);
		uint64_t cupti = cupti_clock_now();
		uint64_t real = tick_clock_ns(CLOCK_REALTIME);
		uint64_t raw = tick_clock_ns(CLOCK_MONOTONIC_RAW);
		uint64_t after = tick_clock_ns(CLOCK_MONOTONIC);
		if (!cupti)
			cupti = real;
		if (after - before >= r.width_ns)
			continue;
		r.width_ns = after - before;
		r.monotonic_ns = before + r.width_ns / 2;
		r.distance = cupti - r.monotonic_ns;
		if (!clock_state.count)
			clock_state.is_raw = far(cupti, raw) < REAL_NS;
		r.off_ns = far(cupti, clock_state.is_raw ? raw : real);
	}
	clock_state.last_off_ns = r.off_ns;
	if (r.off_ns > clock_state.off_ns)
		clock_state.off_ns = r.off_ns;
	if (clock_state.count && far(r.distance, last->distance) <= SAME_NS + r.width_ns) {
		last->to_ns = r.monotonic_ns;
		return;
	}
	clock_state.epochs[clock_state.count++ % EPOCHS] =
		(struct epoch){ r.monotonic_ns, r.monotonic_ns, r.distance, r.off_ns < REAL_NS };
}

/* Returns the range of epoch number `i` in CUPTI's times, extended by the gaps to its
 * neighbours. */
static struct cupti_epoch epoch_range(uint64_t i)
{
	const struct epoch *e = &clock_state.epochs[i % EPOCHS];
	bool first = i == 0, last = i + 1 == clock_state.count;
	uint64_t from_ns =
		first ? e->from_ns - EARLY_NS : clock_state.epochs[(i - 1) % EPOCHS].to_ns;
	uint64_t to_ns = last ? e->to_ns + LATE_NS : clock_state.epochs[(i + 1) % EPOCHS].from_ns;

	if (first && from_ns > e->from_ns) /* the machine was started later than that */
		from_ns = 0;
	return (struct cupti_epoch){ .first = from_ns + e->distance,
				     .last = to_ns + e->distance,
				     .add = (int64_t)(tick_base_ns() - e->distance) };
}

/* Stores the newest epoch in *epoch, without times that an older epoch has, too. */
static void keep(struct cupti_epoch *epoch, struct cupti_epoch range, uint64_t least)
{
	for (uint64_t i = least; i + 1 < clock_state.count; i++)
		if (epoch_range(i).last >= range.first)
			range.first = epoch_range(i).last + 1;
	*epoch = range;
	if (range.first > range.last)
		*epoch = (struct cupti_epoch){ .first = UINT64_MAX, .last = UINT64_MAX };
}

/* Returns whether the rate of an epoch is known.  A foreign clock that was measured once may have
 * another rate. */
static bool is_confirmed(uint64_t i)
{
	const struct epoch *e = &clock_state.epochs[i % EPOCHS];

	return e->to_ns > e->from_ns || e->is_known;
}

uint64_t cupti_clock_convert_slow(uint64_t cupti_ns, uint64_t before_ns, struct cupti_epoch *epoch)
{
	uint64_t least = clock_state.count > EPOCHS ? clock_state.count - EPOCHS + 1 : 0;

	for (uint64_t i = clock_state.count; i-- > least;) {
		struct cupti_epoch range = epoch_range(i);

		if (cupti_ns - range.first > range.last - range.first || !is_confirmed(i))
			continue;
		if (i > least &&
		    cupti_ns + (uint64_t)range.add > before_ns + DRIFT_NS + tick_base_ns())
			continue;
		if (i + 1 == clock_state.count)
			keep(epoch, range, least);
		return cupti_ns + (uint64_t)range.add;
	}
	return 0;
}

uint64_t cupti_clock_off_ns(void)
{
	return clock_state.off_ns;
}

bool cupti_clock_is_strange(void)
{
	return clock_state.last_off_ns > REAL_NS;
}

bool cupti_clock_is_steady(void)
{
	return clock_state.count && is_confirmed(clock_state.count - 1);
}

static uint64_t realtime(void)
{
	return tick_clock_ns(CLOCK_REALTIME);
}

bool cupti_clock_set(const struct cupti_lib *lib)
{
	struct timespec while_it_drifts = { .tv_nsec = 1000000 };

	cupti_clock_note(true);
	if (!cupti_clock_is_strange())
		return true;
	nanosleep(&while_it_drifts, NULL);
	cupti_clock_note(true);
	if (!cupti_clock_is_steady() && lib->register_timestamp &&
	    lib->register_timestamp(realtime) == CUPTI_OK)
		cupti_clock_note(true);
	return false;
}
