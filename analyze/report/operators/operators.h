/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operators.h - the sums of the report `operators`, which operators.c fills from events and
 * rows.c finds by their keys.
 */
#pragma once

#include "analyze/model/xla.h"
#include "analyze/report/roofline/roofline.h"
#include "analyze/report/operators/captures.h"
#include "schemas/base/map.h"

/* What a name tells of an operator. */
struct op_name {
	const char *category; /* constant; NULL: not looked up yet, and so is `rule` */
	const struct model_rule *rule;
	uint64_t seen; /* the latest GPU work that was counted for it */
};
/* One operator with one set of shapes and types, of one process: a row of the table. */
struct op_shape {
	uint32_t process, name, shapes, types; /* the key */
	uint64_t seen;                         /* the latest GPU work that was counted for it */
};
/* Sums of one of these with one set of all constant arguments. */
struct op_row {
	uint32_t process, name, schema;
	uint32_t step; /* the annotation of a server's step, where the model asks for it; 0; the
			* last of the key */
	struct model_cost cost;
	bool has_model, is_tf32, is_asked; /* is_asked: its program was */
	uint32_t shape;                    /* its op_shape */
	uint64_t own_calls, own_gpu_ns;    /* where no operator with a model is around it */
	uint64_t calls, gpu_calls, gpu_self_ns;
	uint64_t computed;    /* calls that are not known to have been given up */
	int64_t host_self_ns; /* less what lies inside; of calls that overlap below 0 */
	/* By name and by name and shapes: what lies in a call of the same counts once. */
	uint64_t host_ns[2], gpu_ns[2];
};
struct op_call {
	uint64_t begin_ns, end_ns;
	uint32_t row;
	uint32_t above; /* the call it lies in, by number in the thread; NONE */
	bool has_work;
	bool counts;   /* the outermost that has a model */
	bool is_again; /* computed again by activation checkpointing ... */
	bool is_open;  /* ... and not known to compute anything */
};
struct op_thread {
	struct op_call *calls; /* in order; the first is number `first` */
	size_t count, cap;
	uint32_t first, innermost; /* the latest call that may still be open */
	/* of a stream: the operation of XLA that its latest work is of, and its first kernel */
	uint64_t operation;
	uint32_t first_kernel;
};
/* A program of XLA that the file of a process holds; NULL: it does not. */
struct op_program {
	uint64_t id;
	uint32_t process;
	struct xla_program *program;
};
struct op_process {
	uint32_t device; /* of its first GPU work; NO_ID: none so far */
	struct roofline_gpu gpu;
	double clock_mhz; /* of samples of its multiprocessors' clock, summed up */
	uint64_t clock_samples;
};
struct operators {
	struct op_process *processes; /* by id */
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
	uint64_t works;        /* so far */
	struct op_name *names; /* by name, of operators only */
	size_t name_cap;
	struct captures captures;
	struct op_program *programs;
	size_t program_count, program_cap;
};

/* The row of an operator's event, new if it is the first of its kind. */
enum status operator_row(struct accumulator *f, uint32_t process, const struct event *e,
			 uint32_t *out, struct error *err);
enum status operator_cell(struct operators *s, uint32_t process, uint32_t step, uint8_t phase,
			  struct roofline_cell **out, struct error *err);
