/* SPDX-License-Identifier: Apache-2.0 */
/* page/ranks.h - rows of COMM and WAITING, as every page shows them. */
#ifndef ANALYZE_PAGE_RANKS_H
#define ANALYZE_PAGE_RANKS_H

#include "analyze/text/page.h"

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
	double most_ns;                /* that one waits */
	size_t latest;                 /* row of who was last and latest; count: nobody */
	const char *why;               /* what is not matched is not because of this; NULL */
};
/* Ended by free() of rows, also after an error. */
enum status wait_rows_take(const struct page *p, struct wait_rows *all, struct error *err);

enum { FRONTIER_LINES = 8 };
struct frontier_row { /* whose time the job's time was, and what it was */
	char who[NUMBER_TEXT]; /* "rank 3", "together" */
	const char *phase, *kind;
	double ns, mean_ns; /* per step */
	int tenths;         /* of a percent of the job's step */
	enum token token;
};
struct frontier_rows {
	struct frontier_row rows[FRONTIER_LINES + 1]; /* the last is the rest, its kind empty */
	size_t count, more;  /* rows of them; how many the rest is of */
	double step_ns;      /* of the job */
	uint64_t steps, left_out;
	double named;        /* share of it with a rank that is named */
};
/* count 0: nothing was matched. */
void frontier_rows_take(const struct page *p, struct frontier_rows *all);
/* "6.74 ms a step of the job, ..." */
enum { FRONTIER_TEXT = 240 };
const char *frontier_text(const struct frontier_rows *all, char out[FRONTIER_TEXT]);
/* "+0.33": what a rank takes more than the mean. */
char *frontier_over_text(char out[NUMBER_TEXT], double over_ns, const struct time_unit *unit);

/* "rank 3 came last in 24 of 24 collectives, 2.2 ms per step after the next"; false: nobody did. */
enum { LATE_TEXT = 200 };
bool late_text(const struct page *p, const struct wait_rows *all, char out[LATE_TEXT]);
/* "24 of 24 matched between ranks"; false: nothing communicates. */
bool matched_text(const struct wait_rows *all, char out[LATE_TEXT]);

#endif
