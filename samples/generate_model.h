/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_model.h - a training job that never ran: its events, and what is true of it.
 *
 * One rank is a process with a step thread, an autograd thread and three streams (compute,
 * communication, copies).  A step loads data, copies a batch, runs forward, runs backward on the
 * autograd thread with all-reduces beside, and optimizes.  Kernels run in order on their stream, a
 * few microseconds after their launch at the earliest; durations have the jitter of real ones.
 * Same numbers in, same events out, on any machine.
 */
#ifndef SAMPLES_GENERATE_MODEL_H
#define SAMPLES_GENERATE_MODEL_H

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

/* When each all-reduce of the slow rank ended, and how long it took: the others wait for it. */
struct model_pace {
	struct model_met {
		uint64_t end_ns, length_ns;
	} * met;
	size_t count, cap;
};
void model_pace_release(struct model_pace *p);

/*
 * A slow rank is slow in all it does; the ranks then load data and start together, each all-reduce
 * begins when the kernels before it are done, and ends on all ranks at once.
 */
struct model_request {
	uint64_t seed;
	uint32_t rank, ranks;
	uint64_t events;         /* at least; a step is never cut */
	uint64_t ops;            /* operators of a forward pass, and of a backward pass */
	uint32_t slow_rank;      /* NO_RANK: none is */
	uint32_t slow_percent;   /* by so much */
	struct model_pace *pace; /* filled by the slow rank, which runs first; NULL: nobody waits */
	uint32_t ranks_per_host;
	int64_t skew_ns; /* of the clock of this rank's host; what it gains a second */
	int64_t drift_ns;
};

/* What is true by construction, in ns; sums over all steps. */
struct model_truth {
	uint64_t steps, events, kernels, copies;
	uint64_t span_ns, compute_ns, comm_ns, exposed_comm_ns, copy_ns, exposed_copy_ns;
	uint64_t wall_ns;                                        /* of the steps together */
	uint64_t data_ns, forward_ns, backward_ns, optimizer_ns; /* of the step thread */
	uint64_t wait_ns; /* of all-reduces, for the slow rank */
};

/* `site` is that of the trace.  Events come roughly in time order, as a collector writes them: a
 * range when it ends. */
typedef enum status (*model_put)(void *self, const struct event *e, uint32_t desc,
				 struct error *err);

/* Fills the tables of `trace` and puts all events. */
enum status model_run(const struct model_request *req, struct trace *trace, model_put put,
		      void *self, struct model_truth *truth, struct error *err);

#endif
