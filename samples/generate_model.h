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

#include "schemas/event.h"
#include "schemas/trace.h"

struct model_request {
	uint64_t seed;
	uint32_t rank, ranks;
	uint64_t events;    /* at least; a step is never cut */
	uint32_t slow_rank; /* computes a fifth slower; NO_RANK: none does */
};

/* What is true by construction, in ns; sums over all steps. */
struct model_truth {
	uint64_t steps, events, kernels, copies;
	uint64_t span_ns, compute_ns, comm_ns, exposed_comm_ns, copy_ns, exposed_copy_ns;
	uint64_t wall_ns; /* of the steps together */
	uint64_t data_ns, forward_ns, backward_ns, optimizer_ns; /* of the step thread */
};

/* `site` is that of the trace.  Events come roughly in time order, as a collector writes them: a
 * range when it ends. */
typedef enum status (*model_put)(void *self, const struct event *e, uint32_t site,
				 struct error *err);

/* Fills the tables of `trace` and puts all events. */
enum status model_run(const struct model_request *req, struct trace *trace, model_put put,
		      void *self, struct model_truth *truth, struct error *err);

#endif
