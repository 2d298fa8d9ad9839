/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h - GPU time by the step and phase of the launch (DEFINITIONS.md 5), for the report
 * `phases`.  Sums over all steps always, rows per step only with --per-step.
 */
#pragma once

#include "analyze/engine/report.h"

struct gpu_cells {
	uint64_t ns[CELL_PHASES][CLASS_COUNT];
};
struct gap_cell { /* launched between two marks: whether that is a step's is decided at the end */
	uint32_t gpu, step, phase;
	size_t row; /* of the mark before, + 1; 0: the last with that number */
	uint64_t ns[CLASS_COUNT];
};
struct cells {                     /* --per-step only: the sweep has the sums */
	struct gpu_cells *outside; /* by the sweep's index: of what was launched in no step */
	size_t gpu_count;
	struct gap_cell *gaps;
	size_t gap_count, gap_cap;
	union value *row; /* of `row_key`, found last */
	struct gap_cell row_key;
	uint32_t first_step; /* number + 1 of the first step that came; 0: none came */
};
extern const struct table_type table_cells;

enum status cells_put(struct accumulator *f, struct cells *c, const struct segment *segments,
		      size_t count, struct error *err);
enum status cells_end(struct accumulator *f, struct cells *c, struct error *err);

/* Of id `phase`, those without a launch included. */
const char *cells_phase_name(const struct accumulator *f, unsigned phase);
/* Over the GPUs of a process. */
void cells_sum(const struct accumulator *f, uint32_t process, unsigned phase,
	       uint64_t ns[CLASS_COUNT]);
