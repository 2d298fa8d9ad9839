/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - how events come out of a spool: sorted runs in its scratch file, merged; inside of it.
 */
#ifndef CONVERT_SPOOL_RUNS_H
#define CONVERT_SPOOL_RUNS_H

#include "convert/spool/row.h"
#include "convert/spool/scratch.h"

/* A sorted run in the scratch file, all of one group. */
struct run {
	uint64_t at, size; /* bytes */
	uint32_t group;
};

/* The batch that a spool gives, with the argument values of its events. */
struct run_batch {
	struct event *events;
	uint64_t *words;
	size_t count, word_count;
	size_t cap, word_cap; /* word_cap: at least the most words of one event */
};
/* Adds an event whose `words` argument values come next in `in`.  False: the batch is full. */
bool run_batch_add(struct run_batch *b, const struct event *e, uint32_t words, struct bytes *in);

struct runs;
/* How many runs can be merged at once with `bytes` of memory; at least 2. */
size_t runs_fan_in(size_t bytes, uint32_t most_words);
/* Everything is borrowed.  The order of `list` decides between events of equal times.  No event has
 * more than `most_words` argument values. */
enum status runs_open(struct runs **out, const struct scratch *scratch, const struct run *list,
		      size_t count, size_t bytes, uint32_t most_words, struct error *err);
/* Empties `out` and fills it with the next events; ST_END when there are none. */
enum status runs_next(struct runs *r, struct run_batch *out, struct error *err);
size_t runs_bytes(const struct runs *r); /* of memory; 0 for NULL */
void runs_close(struct runs *r);         /* accepts NULL */

#endif
