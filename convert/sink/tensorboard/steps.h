/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - the steps of one process as intervals by the clock (analyze/DEFINITIONS.md 3), found
 * while events pass.
 *
 * Where the output holds no marks, the first annotation of a step stands in for its mark.  Numbers
 * may repeat, but XProf takes all events of one group_id as one step: the group of the second step
 * 7 is 17, 107, 1007 ..., by the least power of ten that no number reaches.
 */
#ifndef CONVERT_SINK_TENSORBOARD_STEPS_H
#define CONVERT_SINK_TENSORBOARD_STEPS_H

#include "convert/stage/step_list.h"

/* Zeroed at first, but for `context`. */
struct tb_steps {
	struct step_list list;
	uint64_t *groups; /* by row of the list, after tb_steps_finish() */
	uint32_t last;    /* event.step of the last mark */
	bool is_stand_in; /* that is the first annotation of its step */
	bool any_event;
	uint64_t first_ns, last_ns;    /* of all events */
	size_t at;                     /* where the last search ended */
	const struct context *context; /* borrowed; recognises marks; NULL: marks
					* are the records of steps */
};

void tb_steps_release(struct tb_steps *s);

/* Events of host threads and GPUs, in time order, after the stage `context`. */
enum status tb_steps_put(struct tb_steps *s, const struct event *e, struct error *err);
/* Sets the ends of steps; a process without marks has one step, number 0. */
enum status tb_steps_finish(struct tb_steps *s, struct error *err);

/* The row of the step at this time, or list.count; cheap when times ascend. */
size_t tb_steps_find(struct tb_steps *s, uint64_t at_ns);
/* The group of the step of this number that began last by then. */
uint64_t tb_steps_group(const struct tb_steps *s, uint64_t number, uint64_t at_ns);

#endif
