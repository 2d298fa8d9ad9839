/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operators.h - the sums of the report `operators`, which operators.c fills from events and rows.c
 * finds by their keys.
 */
#pragma once

#include "analyze/model/xla.h"
#include "analyze/report/roofline/roofline.h"
#include "analyze/report/operators/captures.h"
#include "schemas/base/map.h"

/* Properties of an operator's name. */
struct op_name {
	const char *category; /* constant; NULL: not cached, like `rule` */
	const struct model_rule *rule;
	uint64_t seen; /* number of the latest GPU work that was counted for it */
};
/* An operator with one set of shapes and types in one process: a row of the table. */
struct op_shape {
	uint32_t process, name, shapes, types; /* the key */
	/* number of the latest GPU work that was counted for it */
	uint64_t seen;
};
/* Sums over calls with one set of constant arguments, which may be several for one op_shape. */
struct op_row {
	uint32_t process, name, schema;
	/* annotation of a server's step if the model needs it, otherwise 0; the key ends here */
	uint32_t step;
	struct model_cost cost;
	bool has_model, is_tf32, is_asked; /* is_asked: find_stated() was called */
	uint32_t shape;                    /* index of its op_shape */
	uint64_t own_calls, own_gpu_ns;    /* of calls that are in no operator with a model */
	uint64_t calls, gpu_calls, gpu_self_ns;
	uint64_t computed;    /* calls except those that checkpointing stopped early */
	int64_t host_self_ns; /* without the time of inner calls; below 0 if calls overlap */
	/* By name, and by name and shapes. A call inside one with the same key is not added
	 * again. */
	uint64_t host_ns[2], gpu_ns[2];
};
struct op_call {
	uint64_t begin_ns, end_ns;
	uint32_t row;
	uint32_t above; /* number of the enclosing call in the thread; NONE */
	bool has_work;
	bool counts;   /* the outermost one with a model */
	bool is_again; /* activation checkpointing runs it again */
	bool is_open;  /* recomputed, and not known to compute anything yet */
};
struct op_thread {
	struct op_call *calls; /* in order; calls[0] has number `first` */
	size_t count, cap;
	uint32_t first, innermost; /* the latest call that may be open */
	/* for a stream: the XLA operation of its latest work, and that operation's first kernel */
	uint64_t operation;
	uint32_t first_kernel;
};
/* An XLA program of a process; program NULL: the file does not contain it. */
struct op_program {
	uint64_t id;
	uint32_t process;
	struct xla_program *program;
};
struct op_process {
	uint32_t device; /* device of its first GPU work; NO_ID: none yet */
	struct roofline_gpu gpu;
	double clock_mhz; /* sum of the samples of its SM clock */
	uint64_t clock_samples;
};
struct operators {
	struct op_process *processes; /* by process id */
	uint32_t process_count;
	struct roofline_cell *cells;
	size_t cell_count, cell_cap;
	struct hash_index by_cell;
	struct op_row *rows;
	size_t row_count, row_cap;
	struct hash_index by_key;
	struct op_shape *shapes;
	size_t shape_count, shape_cap;
	struct hash_index by_shape;
	struct op_thread *threads; /* by track */
	size_t thread_count;
	uint64_t works;        /* number of GPU works so far */
	struct op_name *names; /* by name; only set for operators */
	size_t name_cap;
	struct captures captures;
	struct op_program *programs;
	size_t program_count, program_cap;
};

/* Finds or adds the row for an operator's event. */
enum status operator_row(struct accumulator *f, uint32_t process, const struct event *e,
			 uint32_t *out, struct error *err);
enum status operator_cell(struct operators *s, uint32_t process, uint32_t step, uint8_t phase,
			  struct roofline_cell **out, struct error *err);
