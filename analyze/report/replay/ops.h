/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - the GPU work of a rank as operations that can be replayed with those of other ranks.
 *
 * A row of `replay_ops` has the operations of one name (and communicator, and size) of a GPU of a
 * rank as a text of numbers (comm.h), which merges and is stored like any other figure. Up to
 * OPS_APART computations between two begins of communication are separate; more become one
 * operation, so that a rank has a few operations for each collective and not one for each kernel.
 * The size for a rank has a ceiling; the step in which it is reached is left out.
 *
 * One accumulator, one thread.
 */
#pragma once

#include "analyze/engine/report.h"
#include "schemas/base/buf.h"

enum {
	OPS_DEVICE = RANK_KEYS,
	OPS_DP,
	OPS_STAGE,
	OPS_NAME,
	OPS_GROUP,     /* "": a computation, or an unknown communicator */
	OPS_OPERATION, /* "": a computation */
	OPS_BY_SEQ,
	OPS_BYTES, /* 0: several computations that became one operation */
	OPS_FIRST,
	OPS_KEYS,
	OPS_PACKED = OPS_KEYS,
	OPS_LEFT_OUT,
};
extern const struct table_type table_replay_ops;

/* The number of each step, which operations name by its place in the input. */
enum {
	OPS_STEP_DEVICE = RANK_KEYS,
	OPS_STEP_FIRST, /* the same as OPS_FIRST */
	OPS_STEP_PLACE,
	OPS_STEP_KEYS,
	OPS_STEP_NUMBER = OPS_STEP_KEYS,
	OPS_STEP_NTH,
};
extern const struct table_type table_replay_steps;

struct rank_op {       /* an operation as it is packed */
	uint64_t step; /* 2 * place among the steps, or 2 * number + 1 */
	uint64_t begin_ns, span_ns;
	uint64_t own_ns; /* its span, without gaps between the kernels of one operation */
	uint64_t index;  /* Seq, or the place among those of the step */
};
void op_pack(struct buf *out, const struct rank_op *o, struct rank_op *last);
/* Reads the next operation; false: there are no more. *last is the previous one, zeroed at
 * first. */
bool op_unpack(const char **packed, struct rank_op *o, struct rank_op *last);

struct ops;
enum status ops_begin(struct ops **out, struct accumulator *f, struct error *err);
enum status ops_put(struct ops *o, struct accumulator *f, const struct sorted_batch *w,
		    struct error *err);
enum status ops_end(struct ops *o, struct accumulator *f, struct error *err);
void ops_free(struct ops *o); /* accepts NULL */

/* Edits for job_replay(), which fills the tables of tables.h over all ranks. baseline_ns and
 * step_ns are the median step of the replay without and with the edits. */
struct rank_edits {
	const char *edits;             /* as in --what-if */
	uint64_t baseline_ns, step_ns; /* 0: no step was replayed */
};
enum status job_replay(struct tables *all, struct rank_edits *sets, size_t count,
		       struct error *err);
