/* SPDX-License-Identifier: Apache-2.0 */
/* page/memory.h - amounts of memory, as every page shows them: what matters most first. */
#ifndef ANALYZE_PAGE_MEMORY_H
#define ANALYZE_PAGE_MEMORY_H

#include "analyze/text/page.h"

enum { MEMORY_WORDS = 512 };

struct memory_row {
	const union value *cells; /* of the table `memory` */
	size_t keys;              /* of its cells */
	const char *what, *peak_phase;
	uint64_t device, peak_bytes, peak_ns, reserved_bytes, total_bytes, spikes, leak;
	uint64_t at_peak_reserved_bytes;
	double slope;
	bool absolute;
};
struct memory_rows {
	struct memory_row *rows;
	size_t count;
};

/* Ended by memory_rows_release(), also after an error. */
enum status memory_rows_take(const struct page *p, struct memory_rows *all, struct error *err);
void memory_rows_release(struct memory_rows *all);
/* "Allocated on GPU 0, ...": what the level is of. */
const char *memory_subject(const struct memory_row *r);
/* Unused at the peak, growth, spikes. */
const char *memory_sentence(const struct memory_row *r, uint64_t steps, char out[MEMORY_WORDS]);
/* How many figures a curve has. */
double memory_points(const char *points);

#endif
