/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - turns completed buffers into rows of the log.
 *
 *	record --> its descriptor, times, ids --> writer_put_ready()
 *
 * State is static; writer thread only.
 */
#pragma once

#include "collector/probe/cupti/lib.h"
#include "collector/probe/cupti/pool.h"

struct writer;

/* Call this once for each library, after layouts, calls and clock are open.  Returns false without
 * memory. */
bool cupti_rows_open(const struct cupti_lib *loaded);
/* Counts CUDA events that still wait for their calls as lost, because those will not come any
 * more. */
void cupti_rows_end(struct writer *w);
/*
 * Reads the tables of a buffer.  Call this before the events of any buffer are put, because the
 * tables map contexts to devices.
 */
void cupti_rows_tables(const struct pool_buffer *b);
/*
 * Puts all other records.  Those that cannot become rows are counted as losses.  Those that lie
 * between `warmup_ns` and `begin_ns` (on the host's clock) belong to a warmup and not to the
 * window.
 */
void cupti_rows_put(struct writer *w, const struct pool_buffer *b, uint64_t warmup_ns,
		    uint64_t begin_ns);
/* Drops a buffer that belongs to no window. */
void cupti_rows_drop(const struct pool_buffer *b);
void cupti_rows_forget(void);
/*
 * Checks from now on whether records began in this span.  cupti_rows_missed() returns its length if
 * none did, but some began after it, and then resets the span.
 */
void cupti_rows_watch(uint64_t from_ns, uint64_t to_ns);
uint64_t cupti_rows_missed(void);

/* Counts since open. */
struct cupti_row_counts {
	uint64_t rows, made; /* made: descriptors in the cache */
	uint64_t nodes;      /* nodes of graphs */
	bool has_graphs;     /* there are nodes of graphs, or calls that create or launch graphs */
	uint64_t no_time, unknown, unwanted, noise, early;
	uint64_t driver, driver_only; /* calls of the driver; those outside of runtime calls */
	uint64_t kernels, orphans;    /* orphans: kernels whose call is unknown */
};
const struct cupti_row_counts *cupti_row_counts(void);
