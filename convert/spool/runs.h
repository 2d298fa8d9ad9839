/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool/runs.h - the way out of a spool that went to disk: sorted runs, merged; inside of it.
 */
#ifndef CONVERT_SPOOL_RUNS_H
#define CONVERT_SPOOL_RUNS_H

#include "convert/merge.h"
#include "convert/spool/row.h"

struct segment { /* a sorted run in the scratch file, of one group */
	uint64_t at, size;    /* bytes */
	uint64_t first_ns;    /* begin of its first event */
	uint32_t group;
	uint32_t most_words;  /* of one row */
};

struct spool_runs;

/* How many runs can be merged at once in so much memory; at least 2. */
size_t runs_fan(size_t bytes, uint32_t most_words);

/* `segments` in the order of their input, which decides between equal events.  All borrowed. */
enum status runs_open(struct spool_runs **out, const struct scratch *scratch,
		      const struct segment *segments, size_t count, size_t bytes,
		      struct error *err);
/* The next events, borrowed until the next call; ST_END. */
enum status runs_next(struct spool_runs *r, struct batch *out, struct error *err);
size_t runs_bytes(const struct spool_runs *r); /* of memory */
void runs_close(struct spool_runs *r); /* accepts NULL */

#endif
