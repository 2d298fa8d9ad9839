/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparkline.h - pictures of steps: a row of cells for the host and for the process's first GPU.
 * Each cell shows the class with most time. Used by the report `steps`.
 *
 * Cells are SPARKLINE_CELLS equal parts of a step. The end of a step is known when the next one
 * begins, so time is first summed in finer bins of the mark and of some time after it. The pictures
 * of SPARKLINES_OPEN steps are made at once, and those of the first SPARKLINES_KEPT are kept.
 *
 * A page with charts gets fine pictures too, with SPARKLINE_BINS parts: a letter for the host, and
 * for the GPU the shares of four classes, each a character from '0' (nothing) to '0' +
 * SPARKLINE_SHARE (all).
 */
#pragma once

#include "analyze/engine/report.h"

enum { SPARKLINE_CELLS = 86, SPARKLINES_OPEN = 16, SPARKLINES_KEPT = 4096 };
enum {
	SPARKLINE_BINS = 600,
	SPARKLINE_SHARE = 62,
	SPARKLINE_SHARES = 4 /* compute, comm, copy, lead or tail */
};

/* Letters of cells. The host's are first letters of phases, with '.' for other; the GPU's are
 * these. */
#define SPARKLINE_GPU_LETTERS "cmdil" /* compute, comm, copy, idle, lead or tail */

struct sparkline;
struct sparkline_row {
	char host[SPARKLINE_CELLS + 1], gpu[SPARKLINE_CELLS + 1]; /* "": no picture */
	char *host_bins, *gpu_bins; /* SPARKLINE_BINS characters; four times as many */
};
struct sparklines {                              /* of one process; all zero: empty */
	struct sparkline *open[SPARKLINES_OPEN]; /* by step row */
	struct sparkline_row *rows;              /* by step row */
	size_t count;
	bool has_gpu, bins;
	uint32_t first_gpu;
};

enum status sparklines_interval(struct sparklines *s, const struct step_list *steps, size_t row,
				const struct phase_interval *st, struct error *err);
/* Adds the part [begin_ns, end_ns) of a segment, which lies in this row. */
enum status sparklines_segment(struct sparklines *s, const struct step_list *steps, size_t row,
			       const struct segment *seg, uint64_t begin_ns, uint64_t end_ns,
			       struct error *err);
/* Call it after the last segment: finishes all pictures. */
enum status sparklines_end(struct sparklines *s, const struct step_list *steps, struct error *err);
void sparklines_release(struct sparklines *s);
