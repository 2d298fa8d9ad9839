/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h - GPU time by the step and phase of the launch (DEFINITIONS.md 5), for the report
 * `phases`. Sums over all steps are always made, rows per step only with --per-step.
 */
#pragma once

#include "analyze/engine/report.h"

struct gpu_cells {
	uint64_t ns[CELL_PHASES][CLASS_COUNT];
};
/* GPU time launched between two marks; whether it belongs to the step before is known only at
 * the end */
struct gap_cell {
	uint32_t gpu, step, phase;
	size_t row; /* row of the mark before, + 1; 0: the last mark with that number */
	uint64_t ns[CLASS_COUNT];
};
struct cells {                     /* only with --per-step; otherwise the sweep has the sums */
	struct gpu_cells *outside; /* by the sweep's index: time launched outside of steps */
	size_t gpu_count;
	struct gap_cell *gaps;
	size_t gap_count, gap_cap;
	union value *row; /* cached row for `row_key` */
	struct gap_cell row_key;
	uint32_t first_step; /* number + 1 of the first step; 0: none yet */
};
extern const struct table_type table_cells;

enum status cells_put(struct accumulator *f, struct cells *c, const struct segment *segments,
		      size_t count, struct error *err);
enum status cells_end(struct accumulator *f, struct cells *c, struct error *err);

/* Returns the name of a phase id, also for work without a launch. */
const char *cells_phase_name(const struct accumulator *f, unsigned phase);
/* Returns the sums over the GPUs of a process. */
void cells_sum(const struct accumulator *f, uint32_t process, unsigned phase,
	       uint64_t ns[CLASS_COUNT]);
