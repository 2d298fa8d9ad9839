/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roofline.h - how long operators would take at the peaks of their GPU (DEFINITIONS.md 8).
 *
 * The report `operators` follows calls and their GPU work, and passes what each operator did.
 */
#pragma once

#include "analyze/engine/report.h"
#include "analyze/model/peaks.h"

/* Columns that rows of operators and of the roofline share, in this order. */
#define COST_COLUMNS(X, prefix, where)                                                             \
	X(prefix##_FLOPS = where, "flops", NULL, U64, SUM,                                         \
	  "floating-point operations of the calls with GPU work; null: no model")                  \
	X(prefix##_BYTES, "bytes", NULL, U64, SUM,                                                 \
	  "bytes that these calls must read and write; null: no model, or an unknown type")        \
	X(prefix##_MODELLED, "modelled_calls", NULL, U64, SUM, "calls with a model")               \
	X(prefix##_COMPUTE, "compute_ps", NULL, U64, SUM,                                          \
	  "picoseconds that the operations take at the peak of their type; 0: unknown")            \
	X(prefix##_MEMORY, "memory_ps", NULL, U64, SUM,                                            \
	  "picoseconds that the bytes take at the memory peak; 0: unknown")                        \
	X(prefix##_INTENSITY, "flops_per_byte", NULL, F64, DERIVED, "flops / bytes")               \
	X(prefix##_TFLOPS, "tflops", "TFLOP/s", F64, DERIVED,                                      \
	  "flops / GPU time, in 10^12 per second")                                                 \
	X(prefix##_TBYTES, "tbytes", "TB/s", F64, DERIVED,                                         \
	  "bytes / GPU time, in 10^12 per second; above the peak: caches supplied some")           \
	X(prefix##_BOUND, "bound", "bound", TEXT, DERIVED,                                         \
	  "compute or memory: the one that takes longer at its peak; null: unknown")               \
	X(prefix##_OF_BOUND, "of_bound_pct", "% of bound", F64, DERIVED,                           \
	  "time at the bound's peak / GPU time", .of = "GPU")
struct op_cost { /* sums over calls */
	double flops, bytes, calls, compute_ps, memory_ps;
};
void cost_add(union value *flops_cell, const struct op_cost *sum);
/* For finish(): computes the DERIVED columns from the sums and the `gpu_ns` of the same calls. */
void cost_finish(union value *flops_cell, uint64_t gpu_ns);

/* Peaks of a process's GPU, from its data sheet or the user's file; name "" and no sheet:
 * unknown. */
struct roofline_gpu {
	const char *name;
	const struct peaks *sheet; /* NULL: unknown */
	double units, clock_share; /* SMs or CUs, 0: unknown; measured clock / clock of the sheet */
	uint64_t count, walls_ns;  /* GPUs of the process; length of its counted steps */
};
struct roofline_gpu roofline_gpu_of(const struct accumulator *f, uint32_t process, uint32_t device);
/* Sets count and walls_ns; call it once steps are resolved. */
void roofline_count(struct accumulator *f, uint32_t process, struct roofline_gpu *gpu);
struct op_cost cost_of_calls(const struct roofline_gpu *gpu, const struct model_cost *cost,
			     bool is_tf32, uint64_t calls);

/* Calls with one name, shapes and types that are the outermost with a model. */
struct roofline_row {
	uint32_t process;
	const char *name, *shapes, *types, *strides;
	const struct model_cost *cost; /* NULL: no model */
	bool is_tf32;
	uint64_t calls, gpu_ns; /* only calls with GPU work */
};
/* What was computed in a step and phase, in the form of event.step and event.phase. [0]: by the
 * model; [1]: plus what activation checkpointing runs again. */
struct roofline_cell {
	uint32_t process, step;
	uint8_t phase;
	double flops[2], peak_ps[2]; /* of matrix products; ps at the peak of their type */
	uint64_t gpu_ns;             /* all GPU work */
};
/* These add to the tables of the report, if it was requested. */
enum status roofline_put_row(struct accumulator *f, const struct roofline_gpu *gpu,
			     const struct roofline_row *row, struct error *err);
enum status roofline_put_cell(struct accumulator *f, const struct roofline_gpu *gpu,
			      const struct roofline_cell *cell, struct error *err);
enum status roofline_put_gpu(struct accumulator *f, uint32_t process,
			     const struct roofline_gpu *gpu, struct error *err);
