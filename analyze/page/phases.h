/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page/phases.h - the rows of PHASES, as every page shows them: mean per step over the ranks, in the
 * order of a step, small annotations together.
 */
#ifndef ANALYZE_PAGE_PHASES_H
#define ANALYZE_PAGE_PHASES_H

#include "analyze/text/page.h"

/* GPU time launched in a phase, and time that the GPUs did nothing meanwhile */
enum phase_part { PART_COMPUTE, PART_COMM, PART_COPY, PART_DURING, PARTS };

struct phase_row {
	const char *name;
	char label[64];
	double wall_ns, gpu_ns[PARTS]; /* per step, and the GPU's per GPU */
	bool inferred, is_annotation;
	bool is_other; /* the rest by definition */
	int order;
	unsigned count; /* annotations that this row stands for */
};
struct phase_rows {
	struct phase_row *rows;
	size_t count;
	struct phase_row sum;
	bool has_gpu;
};

/* Ended by phase_rows_release(), also after an error. */
enum status phase_rows_take(const struct page *p, struct phase_rows *all, struct error *err);
void phase_rows_release(struct phase_rows *all);
double phase_row_gpu_ns(const struct phase_row *r);
/* The longest host or GPU bar: the scale of the block. */
double phase_rows_most_ns(const struct phase_rows *all);
/* Tenths of a percent of each row's host time; room for all->count. */
enum status phase_rows_percents(const struct phase_rows *all, int **tenths, struct error *err);

#endif
