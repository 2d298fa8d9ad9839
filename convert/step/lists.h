/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step/lists.h - stretches and marks on their way out of the stage `step`; inside of step.c.
 * Zeroed: empty; their items are freed by who has them.
 */
#ifndef CONVERT_STEP_LISTS_H
#define CONVERT_STEP_LISTS_H

#include "convert/step.h"

struct stretches {
	struct stretch *items;
	size_t count, cap;
};
struct marks {
	struct step_mark *items;
	size_t count, cap, given;
};

enum status stretches_add(struct stretches *l, const struct stretch *one, struct error *err);
/* Into the last where it goes on; of very many that nobody took the older half goes.
 * `shortest_ns`: of step_keep(), 0 without. */
enum status stretches_give(struct stretches *l, const struct stretch *one, uint64_t shortest_ns,
			   struct error *err);
enum status marks_add(struct marks *l, const struct step_mark *mark, struct error *err);

#endif
