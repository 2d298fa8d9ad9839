/* SPDX-License-Identifier: Apache-2.0 */
/* page/work.h - rows of KERNELS and COPIES, as every page shows them. */
#ifndef ANALYZE_PAGE_WORK_H
#define ANALYZE_PAGE_WORK_H

#include "analyze/text/page.h"

struct kernel_row { /* of all ranks together */
	const char *name, *class;
	uint64_t calls, total_ns, max_ns;
	uint64_t median_ns; /* NO_U64: of several ranks; medians do not add up */
};
struct kernel_rows { /* the most time first */
	struct kernel_row *rows;
	size_t count;
};
struct kernel_sums {
	uint64_t calls, total_ns;
};
/* Ended by kernel_rows_release(), also after an error. */
enum status kernel_rows_take(const struct page *p, struct kernel_rows *all, struct error *err);
void kernel_rows_release(struct kernel_rows *all);
/* Of the rows from `from` on. */
struct kernel_sums kernel_sums_of(const struct kernel_rows *all, size_t from);

enum { KERNEL_NAME = 4 * 64 };
/* The short name of row `i`; the second that reads alike ends in #2. */
void kernel_name(const struct kernel_row *rows, size_t i, unsigned width, char out[KERNEL_NAME]);

struct copy_row {
	const char *direction, *from, *to;
	uint64_t count, bytes, total_ns, exposed_ns;
};
/* Directions of all ranks together, at most `cap`; a page shows their mean. */
size_t copy_rows_take(const struct view *v, struct copy_row *rows, size_t cap);
/* "HtoD pageable", "DtoD on the GPU", "memset"; returns `out`. */
enum { COPY_LABEL = 64 };
const char *copy_row_label(const struct copy_row *r, char out[COPY_LABEL]);

#endif
