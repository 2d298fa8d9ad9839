/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/step_cost.h"

#include "collector/session/thread_state.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

/* Consecutive steps of a thread, the last of which ended at `end`. */
struct latest {
	uint64_t took[THREAD_STEPS], first, count, end;
};

/* Reads the steps after the first `taken` ones.  Returns false if the thread changed them
 * meanwhile, or is in no step, so that the end of the last one is unknown. */
static bool read_steps(const struct thread_state *thread, uint64_t taken, struct latest *out)
{
	uint64_t done = atomic_load_explicit(&thread->steps_done, memory_order_acquire), i;

	out->first = done > taken + THREAD_STEPS ? done - THREAD_STEPS : taken;
	out->count = done - out->first;
	if (!GET_RELAXED(thread->step_open))
		return false;
	out->end = GET_RELAXED(thread->step_begin);
	for (i = 0; i < out->count; i++)
		out->took[i] = atomic_load_explicit(
			&thread->steps_took[(out->first + i) % THREAD_STEPS],
			memory_order_acquire); /* acquire: read before the count is read again */
	return GET_RELAXED(thread->steps_done) == done && GET_RELAXED(thread->step_open);
}

static void keep(struct steps_kept *k, uint64_t took)
{
	k->took[k->count++ % STEP_COST_KEPT] = took;
}

static void take_step(struct step_cost *s, uint64_t begin, uint64_t end)
{
	uint64_t calm_until = s->warmup ? s->warmup : s->begin;

	if (s->begin && begin >= s->begin && (!s->end || end <= s->end))
		keep(&s->inside, end - begin);
	else if ((calm_until && end <= calm_until) || (begin >= s->end && (s->end || !calm_until)))
		keep(&s->around, end - begin);
}

void step_cost_look(struct step_cost *s, struct thread_state *threads)
{
	enum { TRIES = 4 };
	struct thread_state *best = NULL;

	for (struct thread_state *thread = threads; thread; thread = thread_next(thread))
		if (GET_RELAXED(thread->steps_done) > (best ? GET_RELAXED(best->steps_done) : 0))
			best = thread;
	struct thread_state *thread = best;
	struct latest latest = { 0 };
	int tries = 0;

	if (thread != s->stepper)
		s->taken = 0;
	s->stepper = thread;
	while (thread && !read_steps(thread, s->taken, &latest) && ++tries < TRIES)
		;
	if (!thread || tries == TRIES)
		return;
	uint64_t begin = latest.end;
	for (uint64_t i = latest.count; i-- > 0; latest.end = begin) {
		begin -= latest.took[i];
		if (latest.first + i >= STEP_COST_SETTLING)
			take_step(s, begin, latest.end);
	}
	s->taken = latest.first + latest.count;
}

void step_cost_warmup(struct step_cost *s, struct thread_state *threads, uint64_t at)
{
	s->warmup = at;
	s->end = 0;
	step_cost_look(s, threads);
}

void step_cost_begin(struct step_cost *s, struct thread_state *threads, uint64_t at)
{
	s->begin = at;
	s->end = 0;
	step_cost_look(s, threads);
}

void step_cost_end(struct step_cost *s, struct thread_state *threads, uint64_t at)
{
	s->end = at;
	step_cost_look(s, threads);
	s->begin = s->warmup = 0;
}

uint64_t step_cost_median(const struct steps_kept *k)
{
	size_t count = k->count < STEP_COST_KEPT ? (size_t)k->count : STEP_COST_KEPT;
	uint64_t sorted[STEP_COST_KEPT];

	if (!count)
		return 0;
	memcpy(sorted, k->took, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare_u64);
	return sorted[count / 2];
}
