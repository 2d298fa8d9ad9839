/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - completed buffers to rows of the log.
 *
 *	record --> its descriptor, times, ids --> writer_put_ready()
 *
 * State is static; writer thread only.
 */
#pragma once

#include "collector/probe/cupti/lib.h"
#include "collector/probe/cupti/pool.h"

struct writer;

/* Once per library; plans, calls and clock are open. */
bool cupti_rows_open(const struct cupti_lib *loaded);
/* What waits for records that will not come any more is lost. */
void cupti_rows_end(struct writer *w);
/*
 * Takes the tables of a buffer.  This comes before the events of any buffer, because they say to
 * which device a context belongs.
 */
void cupti_rows_tables(const struct pool_buffer *b);
/*
 * Puts all other records.  Those that cannot become rows are counted as losses.  Those that lie
 * between `warmup_ns` and `begin_ns` (on the host's clock) belong to a warmup and not to the
 * window.
 */
void cupti_rows_put(struct writer *w, const struct pool_buffer *b, uint64_t warmup_ns,
		    uint64_t begin_ns);
/* Of a buffer that belongs to no window. */
void cupti_rows_drop(const struct pool_buffer *b);
void cupti_rows_forget(void);
/*
 * Looks from now on for records that began in this span.  cupti_rows_missed() is its length if
 * there were none but some after it, and 0 the next time.
 */
void cupti_rows_watch(uint64_t from_ns, uint64_t to_ns);
uint64_t cupti_rows_missed(void);

/* Since open. */
struct cupti_row_counts {
	uint64_t rows, made; /* made: descriptors */
	uint64_t nodes;      /* of graphs */
	bool has_graphs;     /* there are nodes of graphs, or calls that make or launch graphs */
	uint64_t no_time, unknown, unwanted, noise, early;
	uint64_t driver,
		driver_only;       /* the driver's calls; those that no call of the runtime made */
	uint64_t kernels, orphans; /* orphans: whose call is not known */
};
const struct cupti_row_counts *cupti_row_counts(void);
