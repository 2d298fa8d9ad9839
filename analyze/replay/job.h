/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - how long the steps of a job would take if its ranks were alike (DEFINITIONS.md 8, replay
 * of ranks).
 *
 * A worker is a GPU of a rank. Each step is simulated separately, and all workers begin it at once.
 * An operation begins when all operations of its worker that ended before its measured begin have
 * ended; host time between them is left out. A collective begins for all members when its last
 * member begins. Each member then takes its transfer time: from the latest measured begin to the
 * member's own end.
 *
 * A state defines which operations keep their own time; all others take that of their peers: the
 * mean of computations, the median of transfers.
 *
 * job_release() frees all memory of the job. Not thread-safe.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_NONE UINT32_MAX

struct job_op {
	uint64_t begin_ns, end_ns;
	/* a computation's time without gaps; a transfer's is set by job_prepare() */
	uint64_t own_ns;
	uint32_t worker; /* index */
	uint32_t step;   /* index */
	uint32_t peers;  /* index of the group of operations that are alike */
	uint32_t class;  /* index of the class, for which figures are reported */
	/* index shared by the members of a collective; JOB_NONE: a computation */
	uint32_t collective;
};
struct job_worker {
	uint32_t host;      /* index of the host */
	uint32_t dp, stage; /* JOB_NONE: unknown */
	bool is_marked;     /* selected by JOB_BY_MARK */
};

/* Operations keep their own time if their property `by` equals `value`, or with `is_not` if it
 * differs. */
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

struct job { /* zeroed at first; the caller fills ops, workers and the counts */
	struct job_op *ops;
	size_t op_count, op_cap;
	struct job_worker *workers;
	uint32_t worker_count, step_count, class_count, peer_count, collective_count;
	/* job_prepare() fills the following. */
	double *ideal_ns;  /* mean or median, by group of peers */
	uint32_t *members; /* number of members of each collective */
	uint32_t *points;  /* two for each operation: its index * 2, + 1 for its end */
	size_t *step_ops;  /* first operation of each step, and the total */
	/* first collective of each step, and the total; collectives are numbered by step */
	size_t *step_collectives;
	/* operations that did not wait for all members of their collective */
	uint64_t incomplete_count;
};

/* Sorts the operations by step, worker and begin, and computes own and ideal times. */
enum status job_prepare(struct job *j, struct error *err);
/* Computes the length of each step in each state, in ns: out[step * count + state]. */
enum status job_run(struct job *j, const struct job_state *states, size_t count, double *out,
		    struct error *err);
void job_release(struct job *j);
