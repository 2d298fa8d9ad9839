/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/lane.h"
#include "collector/step_cost.h"
#include "tests/unit/tests.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static struct lane *steps_of(uint64_t count, uint64_t at, uint64_t took, struct lane *l)
{
	uint64_t i;

	if (!l) {
		l = aligned_alloc(_Alignof(struct lane), sizeof(*l));
		if (l)
			memset(l, 0, sizeof(*l));
	}
	if (l)
		LANE_SET(l->slow_ticks, UINT64_MAX);
	for (i = 0; l && i <= count; i++) {
		if (i || !LANE_GET(l->step_open))
			lane_step(l, l->next_step, at + i * took);
	}
	return l;
}

/* 10 settle, 30 of 100 ticks, a window with 20 of 110, then 15 of 100. */
void test_step_cost_window(void)
{
	struct step_cost s = { 0 };
	struct lane *l = steps_of(40, 1000, 100, NULL);

	CHECK(l != NULL);
	step_cost_begin(&s, l, 5000);
	CHECK_U64(s.around.count, 30);
	CHECK_U64(step_cost_median(&s.around), 100);
	steps_of(20, 5000, 110, l);
	step_cost_look(&s, l);
	steps_of(15, 7200, 100, l);
	step_cost_end(&s, l, 7200);
	CHECK_U64(s.inside.count, 20);
	CHECK_U64(step_cost_median(&s.inside), 110);
	CHECK_U64(s.around.count, 45);
	steps_of(5, 8700, 100, l);
	step_cost_look(&s, l);
	CHECK_U64(s.around.count, 50);
	free(l);
}

/* Steps of a warm-up are on neither side; a window that was called off leaves calm ones. */
void test_step_cost_warm(void)
{
	struct step_cost s = { 0 };
	struct lane *l = steps_of(20, 1000, 100, NULL);

	step_cost_warm(&s, l, 3000);
	steps_of(5, 3000, 500, l);
	step_cost_begin(&s, l, 5500);
	steps_of(5, 5500, 200, l);
	step_cost_end(&s, l, 6500);
	CHECK_U64(s.around.count, 10);
	CHECK_U64(step_cost_median(&s.around), 100);
	CHECK_U64(s.inside.count, 5);
	CHECK_U64(step_cost_median(&s.inside), 200);
	free(l);
}

/* Nobody steps; more steps than a lane keeps; more than are kept here. */
void test_step_cost_edges(void)
{
	struct step_cost s = { 0 };
	struct lane *l;
	unsigned i;

	step_cost_begin(&s, NULL, 10);
	step_cost_end(&s, NULL, 20);
	CHECK_U64(step_cost_median(&s.inside), 0);
	l = steps_of(1000, 1000, 10, NULL);
	step_cost_look(&s, l);
	CHECK_U64(s.around.count, LANE_STEPS);
	for (i = 0; i < 10; i++) {
		steps_of(60, 11000 + i * 600, 10, l);
		step_cost_look(&s, l);
	}
	CHECK_U64(s.around.count, LANE_STEPS + 600);
	CHECK_U64(step_cost_median(&s.around), 10);
	lane_step_end(l, 100000); /* between two steps: nobody knows when it ended */
	step_cost_look(&s, l);
	CHECK_U64(s.around.count, LANE_STEPS + 600);
	free(l);
}
