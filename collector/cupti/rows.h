/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/rows.h - completed buffers to rows of the log.
 *
 *	record --as those before (cupti/run.h)--> columns of the open block
 *	      \--else--> its row (cupti/seen.h), times, ids, numbers --> writer_put_ready()
 *
 * State is static; the writer's thread only.
 */
#ifndef COLLECTOR_CUPTI_ROWS_H
#define COLLECTOR_CUPTI_ROWS_H

#include "collector/cupti/lib.h"
#include "collector/cupti/pool.h"

struct writer;

/* Once per library; plans, calls and clock are open. */
void cupti_rows_open(const struct cupti_lib *loaded);
/* What waits for records that will not come any more is lost. */
void cupti_rows_end(struct writer *w);
/* Tables of a buffer, before the events of any: they say which device a wait was on. */
void cupti_rows_tables(const struct pool_buffer *b);
/*
 * All else.  Records that cannot become rows are counted as losses; those that lie between
 * `warm_ns` and `begin_ns` (on the host's clock) are of a warm-up, and of no window.
 */
void cupti_rows_put(struct writer *w, const struct pool_buffer *b, uint64_t warm_ns,
		    uint64_t begin_ns);
/* Of a buffer that belongs to no window. */
void cupti_rows_drop(const struct pool_buffer *b);
void cupti_rows_forget(void);

/* Since open. */
struct cupti_row_counts {
	uint64_t rows, guessed, searched, made; /* of rows: how they were found */
	uint64_t nodes; /* of graphs */
	uint64_t no_time, unknown, unwanted, noise, early;
};
const struct cupti_row_counts *cupti_row_counts(void);

#endif
