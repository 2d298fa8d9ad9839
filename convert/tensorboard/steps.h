/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensorboard/steps.h - the steps of one process, learnt while events pass, as intervals by the
 * clock: analyze/DEFINITIONS.md 3.
 */
#ifndef CONVERT_TENSORBOARD_STEPS_H
#define CONVERT_TENSORBOARD_STEPS_H

#include "schemas/buf.h"
#include "schemas/event.h"

struct tb_step {
	uint64_t number, begin_ns, end_ns;
};
struct tb_steps {
	struct buf list; /* struct tb_step: marks until tb_steps_finish(), then steps */
	uint32_t last;   /* event.step of the mark at hand */
	uint64_t first_ns, last_ns; /* of all events */
	size_t at;       /* where the last search ended */
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

#endif
