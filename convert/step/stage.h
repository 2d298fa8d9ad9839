/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step/stage.h - all that the stage `step` knows; inside of step.c, which moves events on, and of
 * step/ask.c, which answers those above.
 */
#ifndef CONVERT_STEP_STAGE_H
#define CONVERT_STEP_STAGE_H

#include "convert/step/host.h"
#include "convert/step/lists.h"
#include "convert/step/queue.h"

struct step_stage {
	struct source source;
	struct source *below;
	struct host host;
	struct batch in; /* what is left of the last one from below */
	struct event_queue queue;
	size_t stamped;     /* events of the queue that have been entered and stamped */
	size_t given;       /* of them, those that a stage above knows: the oldest of the queue */
	bool has_ended;     /* the source below; `fault` says how */
	enum status fault;
	struct error error;

	struct stretches closed; /* phase PHASE_PENDING: not decided yet */
	struct stretches out;
	struct marks marks;
	uint64_t given_ns; /* all events that begin before have been given */
	uint64_t held_ns;  /* a stage above holds what begins later */
	uint32_t pass;
	bool has_reader;    /* somebody takes stretches or marks */
	bool was_looked_at; /* those in `out` and `marks`: the next ones may replace them */
	bool tells_near;
	uint64_t cut_at;    /* so many events will have been taken when stretches are cut again */
	uint64_t shortest_ns; /* of a stretch that stands alone; 0: any, and somebody looks */
};

static inline struct step_stage *step_of(const struct source *s)
{
	return (struct step_stage *)s;
}

#endif
