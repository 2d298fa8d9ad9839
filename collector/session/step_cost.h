/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_cost.h - measures how long steps take inside and around windows: the cost of recording.
 *
 * The thread with most steps is measured.  The first steps of a run and those of a warmup are left
 * out.  Only the writer thread uses it.
 */
#pragma once

#include <stdint.h>

enum { STEP_COST_KEPT = 256, STEP_COST_SETTLING = 10 };

struct thread_state;
struct steps_kept { /* durations of the latest steps, in ticks */
	uint64_t took[STEP_COST_KEPT], count;
};
struct step_cost {
	struct thread_state *stepper; /* thread states are never freed */
	uint64_t taken;               /* number of its steps that were processed */
	uint64_t warmup, begin, end;  /* ticks; 0: none; end: end of the latest window */
	struct steps_kept around, inside;
};

/* Processes the steps that ended since the last call.  `threads` is the first thread state; `at` is
 * a tick. */
void step_cost_look(struct step_cost *s, struct thread_state *threads);
void step_cost_warmup(struct step_cost *s, struct thread_state *threads, uint64_t at);
void step_cost_begin(struct step_cost *s, struct thread_state *threads, uint64_t at);
void step_cost_end(struct step_cost *s, struct thread_state *threads, uint64_t at);
/* Returns the median in ticks, or 0 if there are no steps. */
uint64_t step_cost_median(const struct steps_kept *k);
