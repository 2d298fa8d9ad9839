/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_model.h - simulates a training job: its events, and their expected figures.
 *
 * One rank is a process with a step thread, an autograd thread and three streams (compute,
 * communication, copies).  A step loads data, copies a batch, runs forward, runs backward on the
 * autograd thread with concurrent all-reduces, and optimizes.  Kernels run in order on their
 * stream, a few microseconds after their launch at the earliest; durations have the jitter of real
 * ones. The same request gives the same events on any machine.
 */
#ifndef SAMPLES_GENERATE_MODEL_H
#define SAMPLES_GENERATE_MODEL_H

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

/* When each all-reduce of the slow rank ended, and its length; the other ranks wait until then. */
struct model_pace {
	struct model_met {
		uint64_t end_ns, length_ns;
	} * met;
	size_t count, cap;
};
void model_pace_release(struct model_pace *p);

/*
 * A slow rank is slow in all its work.  The ranks load data and start together; each all-reduce
 * begins when the kernels before it have ended, and ends on all ranks at once.
 */
struct model_request {
	uint64_t seed;
	uint32_t rank, ranks;
	uint64_t events;         /* minimum; the last step is complete */
	uint64_t ops;            /* operators of a forward pass, and of a backward pass */
	uint32_t slow_rank;      /* NO_RANK: no rank is slow */
	uint32_t slow_percent;   /* how much longer its work takes */
	struct model_pace *pace; /* filled by the slow rank, which runs first; NULL: no waits */
	uint32_t ranks_per_host;
	int64_t skew_ns;  /* offset of the clock of this rank's host */
	int64_t drift_ns; /* ns that this clock gains per second */
};

/* The expected figures, which are true by construction; sums over all steps, in ns. */
struct model_truth {
	uint64_t steps, events, kernels, copies;
	uint64_t span_ns, compute_ns, comm_ns, exposed_comm_ns, copy_ns, exposed_copy_ns;
	uint64_t wall_ns;                                        /* of all steps */
	uint64_t data_ns, forward_ns, backward_ns, optimizer_ns; /* of the step thread */
	uint64_t wait_ns; /* time in which all-reduces wait for the slow rank */
};

/* Receives an event; `desc` is its descriptor in the trace.  Events arrive roughly in time order,
 * as a collector writes them: a range when it ends. */
typedef enum status (*model_put)(void *self, const struct event *e, uint32_t desc,
				 struct error *err);

/* Fills the tables of `trace` and passes all events to `put`. */
enum status model_run(const struct model_request *req, struct trace *trace, model_put put,
		      void *self, struct model_truth *truth, struct error *err);

#endif
