/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/thread_state.h"
#include "collector/session/step_cost.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static struct thread_state *steps_of(uint64_t count, uint64_t at, uint64_t took,
				     struct thread_state *thread)
{
	uint64_t i;

	if (!thread) {
		thread = aligned_alloc(_Alignof(struct thread_state), sizeof(*thread));
		if (thread)
			memset(thread, 0, sizeof(*thread));
	}
	if (thread)
		SET_RELAXED(thread->slow_ticks, UINT64_MAX);
	for (i = 0; thread && i <= count; i++) {
		if (i || !GET_RELAXED(thread->step_open))
			thread_step_begin(thread, thread->next_step, at + i * took);
	}
	return thread;
}

/* 10 settle, 30 of 100 ticks, a window with 20 of 110, then 15 of 100. */
void test_step_cost_window(void)
{
	struct step_cost s = { 0 };
	struct thread_state *thread = steps_of(40, 1000, 100, NULL);

	CHECK(thread != NULL);
	step_cost_begin(&s, thread, 5000);
	CHECK_U64(s.around.count, 30);
	CHECK_U64(step_cost_median(&s.around), 100);
	steps_of(20, 5000, 110, thread);
	step_cost_look(&s, thread);
	steps_of(15, 7200, 100, thread);
	step_cost_end(&s, thread, 7200);
	CHECK_U64(s.inside.count, 20);
	CHECK_U64(step_cost_median(&s.inside), 110);
	CHECK_U64(s.around.count, 45);
	steps_of(5, 8700, 100, thread);
	step_cost_look(&s, thread);
	CHECK_U64(s.around.count, 50);
	free(thread);
}

/* Steps of a warm-up are on neither side; a window that was called off leaves calm ones. */
void test_step_cost_warm(void)
{
	struct step_cost s = { 0 };
	struct thread_state *thread = steps_of(20, 1000, 100, NULL);

	step_cost_warmup(&s, thread, 3000);
	steps_of(5, 3000, 500, thread);
	step_cost_begin(&s, thread, 5500);
	steps_of(5, 5500, 200, thread);
	step_cost_end(&s, thread, 6500);
	CHECK_U64(s.around.count, 10);
	CHECK_U64(step_cost_median(&s.around), 100);
	CHECK_U64(s.inside.count, 5);
	CHECK_U64(step_cost_median(&s.inside), 200);
	free(thread);
}

/* Nobody steps; more steps than a lane keeps; more than are kept here. */
void test_step_cost_edges(void)
{
	struct step_cost s = { 0 };
	struct thread_state *thread;
	unsigned i;

	step_cost_begin(&s, NULL, 10);
	step_cost_end(&s, NULL, 20);
	CHECK_U64(step_cost_median(&s.inside), 0);
	thread = steps_of(1000, 1000, 10, NULL);
	step_cost_look(&s, thread);
	CHECK_U64(s.around.count, THREAD_STEPS);
	for (i = 0; i < 10; i++) {
		steps_of(60, 11000 + i * 600, 10, thread);
		step_cost_look(&s, thread);
	}
	CHECK_U64(s.around.count, THREAD_STEPS + 600);
	CHECK_U64(step_cost_median(&s.around), 10);
	thread_step_end(thread, 100000); /* between two steps: nobody knows when it ended */
	step_cost_look(&s, thread);
	CHECK_U64(s.around.count, THREAD_STEPS + 600);
	free(thread);
}
