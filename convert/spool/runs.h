/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - merges the sorted runs in the scratch file of a spool, which alone uses this.
 */
#pragma once

#include "convert/spool/scratch.h"
#include "schemas/base/bytes.h"
#include "schemas/model/event.h"

/*
 * An event as bytes, while it waits in a spool:
 *
 *	size of what follows, 4 bytes | kind | subkind | phase | flags | varints: duration, track,
 *	name, argument schema, correlation, value, step, path, number of argument values, values
 *
 * The begin is not in the row: in memory it is in the event's key, and in a sorted run a varint
 * before the row has the distance from the previous begin.  Only the process that wrote a row reads
 * it.
 */
enum { ROW_HEAD = 4, ROW_FIELDS = 9 };

/* Returns the maximum bytes of a row with `words` argument values and the varint before it. */
static inline size_t row_most(uint32_t words)
{
	return ROW_HEAD + 4 + (size_t)(ROW_FIELDS + 1 + words) * VARINT_MAX;
}

/* Writes a row to `out`, which has row_most() bytes; returns its length. */
size_t row_encode(const struct event *e, uint32_t words, uint8_t *out);
/*
 * Reads a row up to its *words argument values, which row_words() then takes from `in`. e->args is
 * NULL.  A damaged row sets in->is_truncated.
 */
void row_decode(struct bytes *in, uint64_t begin_ns, struct event *e, uint32_t *words);
void row_words(struct bytes *in, uint64_t *words, uint32_t count);

/* A sorted run in the scratch file, all of one group. */
struct run {
	uint64_t at, size; /* bytes */
	uint32_t group;
};

/* The batch that a spool returns, with the argument values of its events. */
struct run_batch {
	struct event *events;
	uint64_t *words;
	size_t count, word_count;
	size_t cap, word_cap; /* word_cap: at least the most words of one event */
};
/* Adds an event whose `words` argument values are next in `in`; returns false if the batch is full.
 */
bool run_batch_add(struct run_batch *b, const struct event *e, uint32_t words, struct bytes *in);

struct runs;
/* Returns how many runs can be merged at once with `bytes` of memory; at least 2. */
size_t runs_fan_in(size_t bytes, uint32_t most_words);
/* Everything is borrowed.  Events of equal times have the order of `list`.  No event has more than
 * `most_words` argument values. */
enum status runs_open(struct runs **out, const struct scratch *scratch, const struct run *list,
		      size_t count, size_t bytes, uint32_t most_words, struct error *err);
/* Empties `out` and fills it with the next events; returns ST_END if there are none. */
enum status runs_next(struct runs *r, struct run_batch *out, struct error *err);
size_t runs_bytes(const struct runs *r); /* of memory; 0 for NULL */
void runs_close(struct runs *r);         /* accepts NULL */
