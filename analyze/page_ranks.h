/* SPDX-License-Identifier: Apache-2.0 */
/* page_ranks.h - rows of COMM and WAITING, as every page shows them. */
#ifndef ANALYZE_PAGE_RANKS_H
#define ANALYZE_PAGE_RANKS_H

#include "analyze/text_page.h"

struct comm_row { /* of all ranks together */
	const char *group, *operation, *type;
	uint64_t bytes; /* NO_U64: unknown, or of many sizes */
	uint64_t ranks, calls, matched, total_ns, exposed_ns;
	double wait_ns, algorithm, bus; /* GB/s, of the rows that know it; 0: none does */
};
struct comm_rows { /* the most time first */
	struct comm_row *rows;
	size_t count;
};
/* Ended by free() of rows, also after an error. */
enum status comm_rows_take(const struct page *p, struct comm_rows *all, struct error *err);
/* "30.0 MiB", "?" */
char *comm_size_text(char out[NUMBER_TEXT], uint64_t bytes);

struct wait_row {
	size_t rank; /* row of `ranks` */
	uint64_t collectives, matched, last;
	double wait_ns, exposed_ns, late_ns, made_ns; /* per step of that rank */
	uint64_t for_rank; /* NO_U64: nobody */
};
struct wait_rows {
	struct wait_row *rows; /* those to be shown: by rank, of many the three latest first */
	size_t count, shown;
	uint64_t collectives, matched; /* the most of a rank */
	size_t latest;                 /* row of who was last and latest; count: nobody */
	const char *why;               /* what is not matched is not because of this; NULL */
};
/* Ended by free() of rows, also after an error. */
enum status wait_rows_take(const struct page *p, struct wait_rows *all, struct error *err);

/* "rank 3 came last in 24 of 24 collectives, 2.2 ms per step after the next"; false: nobody did. */
enum { LATE_TEXT = 200 };
bool late_text(const struct page *p, const struct wait_rows *all, char out[LATE_TEXT]);
/* "24 of 24 matched between ranks"; false: nothing communicates. */
bool matched_text(const struct wait_rows *all, char out[LATE_TEXT]);

#endif
