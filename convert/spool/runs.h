/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - how events come out of a spool: sorted runs in its scratch file, merged; inside of it.
 */
#pragma once

#include "convert/spool/scratch.h"
#include "schemas/base/bytes.h"
#include "schemas/model/event.h"

/*
 * An event as bytes, while it waits in a spool:
 *
 *	size of what follows, 4 bytes | kind | subkind | phase | flags | varints: duration, track,
 *	name, argument schema, correlation, value, step, path, number of argument values, they
 *
 * The begin is not in the row: in memory it is in the event's key, and in a sorted run the
 * distance from the row before stands in front of it, as a varint.  A row is read only by the
 * process that wrote it.
 */
enum { ROW_HEAD = 4, ROW_FIELDS = 9 };

/* The most bytes that a row with `words` argument values takes, a run's varint before it included.
 */
static inline size_t row_most(uint32_t words)
{
	return ROW_HEAD + 4 + (size_t)(ROW_FIELDS + 1 + words) * VARINT_MAX;
}

/* Writes a row to `out`, which has row_most(); returns its bytes. */
size_t row_encode(const struct event *e, uint32_t words, uint8_t *out);
/*
 * Reads a row up to its argument values, which are left in `in` for row_words(): *words of them.
 * e->args is NULL.  A damaged row sets in->is_truncated.
 */
void row_decode(struct bytes *in, uint64_t begin_ns, struct event *e, uint32_t *words);
void row_words(struct bytes *in, uint64_t *words, uint32_t count);

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
