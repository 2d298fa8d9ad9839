/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - how long the steps of a job would take if its ranks were alike (DEFINITIONS.md 8, replay
 * of ranks).
 *
 * A worker is a GPU of a rank.  Each step is simulated by itself, and all workers begin it at once.
 * An operation of a worker begins when all operations of the worker that had ended when it was
 * measured to begin have ended; host time between them is left out.  A collective begins for all
 * members when its last member begins.  Each then takes its transfer: from the latest measured
 * begin to the member's own end.
 *
 * A state says which operations keep their own time; all others take that of their peers: the mean
 * of computations, the median of transfers.
 *
 * job_release() frees all memory of the job.  Not thread-safe.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_NONE UINT32_MAX

struct job_op {
	uint64_t begin_ns, end_ns;
	uint64_t own_ns; /* of a computation: without gaps in it; of a transfer: job_prepare() */
	uint32_t worker; /* from 0 */
	uint32_t step;   /* from 0 */
	uint32_t peers;  /* which operations are alike, from 0 */
	uint32_t class;  /* the name that figures are given by, from 0 */
	uint32_t collective; /* of the members that communicate, from 0; JOB_NONE: a computation */
};
struct job_worker {
	uint32_t host;      /* from 0 */
	uint32_t dp, stage; /* JOB_NONE: unknown */
	bool is_marked;     /* one of those that JOB_BY_MARK means */
};

/* Operations keep their own time if their property `by` equals `value`; with `is_not`, differs. */
enum job_by {
	JOB_BY_NOTHING,
	JOB_BY_CLASS,
	JOB_BY_WORKER,
	JOB_BY_HOST,
	JOB_BY_DP,
	JOB_BY_STAGE,
	JOB_BY_MARK
};
struct job_state {
	enum job_by by;
	uint32_t value;
	bool is_not;
};
#define JOB_REAL  ((struct job_state){ JOB_BY_NOTHING, 0, false })
#define JOB_IDEAL ((struct job_state){ JOB_BY_NOTHING, 0, true })

struct job { /* zeroed; the caller fills ops, workers and the counts */
	struct job_op *ops;
	size_t op_count, op_cap;
	struct job_worker *workers;
	uint32_t worker_count, step_count, class_count, peer_count, collective_count;
	/* Of job_prepare(). */
	double *ideal_ns;         /* by peers */
	uint32_t *members;        /* of each collective */
	uint32_t *points;         /* 2 for each operation: its number * 2, + 1 where it ends */
	size_t *step_ops;         /* where the operations of each step begin, and one more */
	size_t *step_collectives; /* the same of collectives, which job_prepare() numbers by step */
	uint64_t incomplete_count; /* operations whose collective could not be completed in the
				      order */
};

/* Sorts the operations by step, worker and begin, and computes their own and ideal times. */
enum status job_prepare(struct job *j, struct error *err);
/* The length of each step in each state: out[step * count + state], in ns. */
enum status job_run(struct job *j, const struct job_state *states, size_t count, double *out,
		    struct error *err);
void job_release(struct job *j);
