/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - the GPU work of a rank as operations that can be replayed with those of other ranks.
 *
 * A row of `replay_ops` is the operations of one name (and communicator, and size) of a GPU of a
 * rank: a text of numbers (comm.h), that merges and travels like any other figure.  Up to OPS_APART
 * computations between two begins of communication are kept apart; more become one operation, so
 * that a rank has some operations for each collective and not one for each kernel.  What is kept of
 * a rank has a ceiling; the step in which it is reached is left out.
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
	OPS_GROUP,     /* "": a computation, or a communicator that is not known */
	OPS_OPERATION, /* "": a computation */
	OPS_BY_SEQ,
	OPS_BYTES, /* of a computation 0: several that became one operation */
	OPS_FIRST,
	OPS_KEYS,
	OPS_PACKED = OPS_KEYS,
	OPS_LEFT_OUT,
};
extern const struct table_type table_replay_ops;

/* The number of each step that an operation names by its place in the input. */
enum {
	OPS_STEP_DEVICE = RANK_KEYS,
	OPS_STEP_FIRST, /* as OPS_FIRST */
	OPS_STEP_PLACE,
	OPS_STEP_KEYS,
	OPS_STEP_NUMBER = OPS_STEP_KEYS,
	OPS_STEP_NTH,
};
extern const struct table_type table_replay_steps;

struct rank_op {       /* as it is packed */
	uint64_t step; /* twice its place among the steps, or twice its number and 1 */
	uint64_t begin_ns, span_ns;
	uint64_t own_ns; /* of its span, without gaps between the kernels of one operation */
	uint64_t index;  /* Seq, or its place among those of the step */
};
void op_pack(struct buf *out, const struct rank_op *o, struct rank_op *last);
/* false: there is no more.  *last, zeroed before the first, is the one before. */
bool op_unpack(const char **packed, struct rank_op *o, struct rank_op *last);

struct ops;
enum status ops_begin(struct ops **out, struct accumulator *f, struct error *err);
enum status ops_put(struct ops *o, struct accumulator *f, const struct sorted_batch *w,
		    struct error *err);
enum status ops_end(struct ops *o, struct accumulator *f, struct error *err);
void ops_free(struct ops *o); /* accepts NULL */

/* Over all ranks: fills the tables of tables.h, what the job would take. */
/* Edits of ranks, and what the median step of that replay takes without and with them. */
struct rank_edits {
	const char *edits;             /* as in --what-if */
	uint64_t baseline_ns, step_ns; /* 0: no step is replayed */
};
enum status job_replay(struct tables *all, struct rank_edits *sets, size_t count,
		       struct error *err);
