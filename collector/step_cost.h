/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_cost.h - how long a step takes while a window is open, and how long around it.
 *
 * The thread that did most steps is looked at, so these are its last steps of each sort; the first
 * steps of a run are left out, and so are those of a warm-up.  Writer's thread only.
 */
#ifndef COLLECTOR_STEP_COST_H
#define COLLECTOR_STEP_COST_H

#include <stddef.h>
#include <stdint.h>

enum { STEP_COST_KEPT = 256, STEP_COST_SETTLING = 10 };

struct lane;
struct steps_kept { /* the last of them, in ticks */
	uint64_t took[STEP_COST_KEPT], count;
};
struct step_cost {
	struct lane *stepper; /* lanes are never freed */
	uint64_t seen;        /* of its steps */
	uint64_t warm, begin, end; /* ticks, 0: not so; end: of the last window */
	struct steps_kept around, inside;
};

/* What ended since is taken; `lanes`: the first of all, `at`: when it was, in ticks. */
void step_cost_look(struct step_cost *s, struct lane *lanes);
void step_cost_warm(struct step_cost *s, struct lane *lanes, uint64_t at);
void step_cost_begin(struct step_cost *s, struct lane *lanes, uint64_t at);
void step_cost_end(struct step_cost *s, struct lane *lanes, uint64_t at);
/* The median in ticks of those that are kept; 0: there are none. */
uint64_t step_cost_median(const struct steps_kept *k);

#endif
