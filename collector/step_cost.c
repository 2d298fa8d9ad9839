/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/step_cost.h"

#include "collector/lane.h"

#include <stdlib.h>
#include <string.h>

/* Steps of a lane that follow each other, the last of which ended at `end`. */
struct latest {
	uint64_t took[LANE_STEPS], first, count, end;
};

static struct lane *find_stepper(struct lane *lanes)
{
	struct lane *l, *best = NULL;

	for (l = lanes; l; l = l->next)
		if (LANE_GET(l->steps_done) > (best ? LANE_GET(best->steps_done) : 0))
			best = l;
	return best;
}

/* False: its owner went on meanwhile, or it is in no step, so nobody knows when the last one ended. */
static bool read_lane(const struct lane *l, uint64_t seen, struct latest *out)
{
	uint64_t done = atomic_load_explicit(&l->steps_done, memory_order_acquire), i;

	out->first = done > seen + LANE_STEPS ? done - LANE_STEPS : seen;
	out->count = done - out->first;
	if (!LANE_GET(l->step_open))
		return false;
	out->end = LANE_GET(l->step_begin);
	for (i = 0; i < out->count; i++)
		out->took[i] = atomic_load_explicit(&l->steps_took[(out->first + i) % LANE_STEPS],
						    memory_order_acquire); /* before the count */
	return LANE_GET(l->steps_done) == done && LANE_GET(l->step_open);
}

static void keep(struct steps_kept *k, uint64_t took)
{
	k->took[k->count++ % STEP_COST_KEPT] = took;
}

static void take_step(struct step_cost *s, uint64_t begin, uint64_t end)
{
	uint64_t calm_until = s->warm ? s->warm : s->begin;

	if (s->begin && begin >= s->begin && (!s->end || end <= s->end))
		keep(&s->inside, end - begin);
	else if ((calm_until && end <= calm_until) ||
		 (begin >= s->end && (s->end || !calm_until)))
		keep(&s->around, end - begin);
}

void step_cost_look(struct step_cost *s, struct lane *lanes)
{
	enum { TRIES = 4 };
	struct lane *l = find_stepper(lanes);
	struct latest latest = { 0 };
	uint64_t begin, i;
	int tries = 0;

	if (l != s->stepper)
		s->seen = 0;
	s->stepper = l;
	while (l && !read_lane(l, s->seen, &latest) && ++tries < TRIES)
		;
	if (!l || tries == TRIES)
		return;
	begin = latest.end;
	for (i = latest.count; i-- > 0; latest.end = begin) {
		begin -= latest.took[i];
		if (latest.first + i >= STEP_COST_SETTLING)
			take_step(s, begin, latest.end);
	}
	s->seen = latest.first + latest.count;
}

void step_cost_warm(struct step_cost *s, struct lane *lanes, uint64_t at)
{
	s->warm = at;
	s->end = 0;
	step_cost_look(s, lanes);
}

void step_cost_begin(struct step_cost *s, struct lane *lanes, uint64_t at)
{
	s->begin = at;
	s->end = 0;
	step_cost_look(s, lanes);
}

void step_cost_end(struct step_cost *s, struct lane *lanes, uint64_t at)
{
	s->end = at;
	step_cost_look(s, lanes);
	s->begin = s->warm = 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t step_cost_median(const struct steps_kept *k)
{
	size_t count = k->count < STEP_COST_KEPT ? (size_t)k->count : STEP_COST_KEPT;
	uint64_t sorted[STEP_COST_KEPT];

	if (!count)
		return 0;
	memcpy(sorted, k->took, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare);
	return sorted[count / 2];
}
