/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/strip.h - pictures of steps: a row of cells, each what has most of its time, for the host
 * and for the process's first GPU.  For the report `steps`.
 *
 * Cells are STRIP_CELLS equal parts of a step.  Where a step ends is known when the next begins,
 * so time is first summed in finer bins of the mark and beyond.  The pictures of STRIP_OPEN steps
 * are being made at once, those of the first STRIP_ROWS are kept.
 *
 * A page with charts gets fine pictures too: STRIP_BINS parts, for the host a letter each, for the
 * GPU the shares of four classes, each a character from '0' (nothing) to '0' + STRIP_SHARE (all).
 */
#ifndef ANALYZE_REPORT_STRIP_H
#define ANALYZE_REPORT_STRIP_H

#include "analyze/report.h"

enum { STRIP_CELLS = 86, STRIP_OPEN = 16, STRIP_ROWS = 4096 };
enum { STRIP_BINS = 600, STRIP_SHARE = 62, STRIP_SHARES = 4 /* compute, comm, copy, lead or tail */ };

/* Letters of cells: the host's are the first of phases, '.' is other; the GPU's are these. */
#define STRIP_GPU_LETTERS "cmdil" /* compute, comm, copy, idle, lead or tail */

struct strip;
struct strip_row {
	char host[STRIP_CELLS + 1], gpu[STRIP_CELLS + 1]; /* "" where there is no picture */
	char *host_bins, *gpu_bins;                       /* STRIP_BINS and as many times four */
};
struct strips { /* of one process; zeroed: empty */
	struct strip *open[STRIP_OPEN]; /* by step row */
	struct strip_row *rows;          /* by step row */
	size_t count;
	bool has_gpu, bins;
	uint32_t first_gpu;
};

enum status strips_stretch(struct strips *s, const struct step_list *steps, size_t row,
			   const struct stretch *st, struct error *err);
/* The part [begin_ns, end_ns) of a segment that lies in this row. */
enum status strips_segment(struct strips *s, const struct step_list *steps, size_t row,
			   const struct segment *seg, uint64_t begin_ns, uint64_t end_ns,
			   struct error *err);
/* No more comes. */
enum status strips_end(struct strips *s, const struct step_list *steps, struct error *err);
void strips_release(struct strips *s);

#endif
