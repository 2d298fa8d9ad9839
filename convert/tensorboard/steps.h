/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensorboard/steps.h - the steps of one process, learnt while events pass, as intervals by the
 * clock: analyze/DEFINITIONS.md 3.
 *
 * Where marks are cut out of the output, the first annotation of a step stands for its mark.
 * Numbers may come again, but XProf takes what has one group_id as one step: the group of the
 * second step 7 is 17, 107, 1007 ..., by the least power of ten that no number reaches.
 */
#ifndef CONVERT_TENSORBOARD_STEPS_H
#define CONVERT_TENSORBOARD_STEPS_H

#include "convert/source.h"
#include "schemas/buf.h"
#include "schemas/event.h"

struct tb_step {
	uint64_t number, group, begin_ns, end_ns;
};
struct tb_steps {
	struct buf list; /* struct tb_step: marks until tb_steps_finish(), then steps */
	uint32_t last;   /* event.step of the mark at hand */
	bool is_guess;   /* that is no mark, but the first annotation of its step */
	uint64_t first_ns, last_ns; /* of all events */
	size_t at;       /* where the last search ended */
	const struct source *stage; /* `step`, borrowed: knows a mark; NULL: records of steps are */
};

void tb_steps_init(struct tb_steps *s);
void tb_steps_release(struct tb_steps *s);

/* Of host threads and GPUs, in time order, after the stage `step`. */
enum status tb_steps_put(struct tb_steps *s, const struct event *e, struct error *err);
/* Ends of steps; a process without marks has one step, number 0. */
enum status tb_steps_finish(struct tb_steps *s, struct error *err);

size_t tb_steps_count(const struct tb_steps *s);
const struct tb_step *tb_steps_at(const struct tb_steps *s, size_t i);
/* The step that is open at this time, or NULL; cheap when times ascend. */
const struct tb_step *tb_steps_find(struct tb_steps *s, uint64_t at_ns);
/* The group of the step of this number that began last by then. */
uint64_t tb_steps_group(const struct tb_steps *s, uint64_t number, uint64_t at_ns);

#endif
