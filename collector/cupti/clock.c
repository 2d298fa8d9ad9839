/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti/clock.h"

#include "collector/tick.h"

#include <stddef.h>
#include <string.h>

#define MS UINT64_C(1000000)
enum { ERAS = 256, TRIES = 4 };
#define PERIOD_NS (50 * MS)
#define SAME_NS UINT64_C(2000)    /* closer is noise of the measurement */
#define EARLY_NS (3600000 * MS)   /* before the first note: work that was under way */
#define LATE_NS (5000 * MS)       /* beyond the last */

struct era {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC of its first and last note */
	uint64_t distance;       /* CUPTI's minus CLOCK_MONOTONIC, modulo 2^64 */
};
static struct {
	int (*timestamp)(uint64_t *ns);
	struct era eras[ERAS];
	uint64_t count; /* ever */
	uint64_t noted_ns, off_ns;
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

/* The narrowest of some brackets.  A clock that does not answer is what it is documented to be. */
static void read_clocks(struct reading *out)
{
	uint64_t before, cupti, real, after;
	int i;

	*out = (struct reading){ .width_ns = UINT64_MAX };
	for (i = 0; i < TRIES; i++) {
		before = tick_clock_ns(CLOCK_MONOTONIC);
		cupti = cupti_clock_now();
		real = tick_clock_ns(CLOCK_REALTIME);
		after = tick_clock_ns(CLOCK_MONOTONIC);
		if (!cupti)
			cupti = real;
		if (after - before >= out->width_ns)
			continue;
		out->width_ns = after - before;
		out->monotonic_ns = before + out->width_ns / 2;
		out->distance = cupti - out->monotonic_ns;
		out->off_ns = far(cupti, real);
	}
}

void cupti_clock_open(int (*timestamp)(uint64_t *ns))
{
	memset(&clock_state, 0, sizeof(clock_state));
	clock_state.timestamp = timestamp;
	cupti_clock_note(true);
}

void cupti_clock_note(bool now)
{
	uint64_t ns = tick_clock_ns(CLOCK_MONOTONIC);
	struct era *last = &clock_state.eras[(clock_state.count + ERAS - 1) % ERAS];
	struct reading r;

	if (!now && ns - clock_state.noted_ns < PERIOD_NS)
		return;
	clock_state.noted_ns = ns;
	read_clocks(&r);
	if (r.off_ns > clock_state.off_ns)
		clock_state.off_ns = r.off_ns;
	if (clock_state.count && far(r.distance, last->distance) <= SAME_NS + r.width_ns) {
		last->to_ns = r.monotonic_ns;
		return;
	}
	clock_state.eras[clock_state.count++ % ERAS] =
		(struct era){ r.monotonic_ns, r.monotonic_ns, r.distance };
}

/* Era number `i` with what lies between it and its neighbours, as CUPTI's times. */
static struct cupti_era as_told(uint64_t i)
{
	const struct era *e = &clock_state.eras[i % ERAS];
	bool first = i == 0, last = i + 1 == clock_state.count;
	uint64_t from_ns = first ? e->from_ns - EARLY_NS : clock_state.eras[(i - 1) % ERAS].to_ns;
	uint64_t to_ns = last ? e->to_ns + LATE_NS : clock_state.eras[(i + 1) % ERAS].from_ns;

	if (first && from_ns > e->from_ns) /* the machine is younger than that */
		from_ns = 0;
	return (struct cupti_era){ .first = from_ns + e->distance, .last = to_ns + e->distance,
				   .add = (int64_t)(tick_base_ns() - e->distance) };
}

/* The newest era as far as no other one has the same times. */
static void keep(struct cupti_era *era, struct cupti_era told, uint64_t least)
{
	uint64_t i;

	for (i = least; i + 1 < clock_state.count; i++)
		if (as_told(i).last >= told.first)
			told.first = as_told(i).last + 1;
	*era = told;
	if (told.first > told.last)
		*era = (struct cupti_era){ .first = UINT64_MAX, .last = UINT64_MAX };
}

uint64_t cupti_clock_tell_slowly(uint64_t cupti_ns, uint64_t before_ns, struct cupti_era *era)
{
	uint64_t least = clock_state.count > ERAS ? clock_state.count - ERAS + 1 : 0, i;

	for (i = clock_state.count; i-- > least;) {
		struct cupti_era told = as_told(i);

		if (cupti_ns - told.first > told.last - told.first)
			continue;
		if (i > least && cupti_ns + (uint64_t)told.add > before_ns + tick_base_ns())
			continue;
		if (i + 1 == clock_state.count)
			keep(era, told, least);
		return cupti_ns + (uint64_t)told.add;
	}
	return 0;
}

uint64_t cupti_clock_steps(void)
{
	return clock_state.count ? clock_state.count - 1 : 0;
}

uint64_t cupti_clock_off_ns(void)
{
	return clock_state.off_ns;
}
