/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - merges the sorted runs in the scratch file of a spool; only spool.c uses it. */
#pragma once

#include "convert/spool/scratch.h"
#include "schemas/base/bytes.h"
#include "schemas/model/event.h"

/*
 * The format of an event in a spool, a row:
 *
 *	size in bytes | kind, subkind, phase, flags | track | name | argument schema |
 *	number of argument values, and which of the next two exist: 4 bytes each;
 *	correlation, value: 8 bytes each | step, path: 4 bytes each | argument values: varints
 *
 * An event without argument values that equals many others may instead be 4 bytes: ROW_SHARED and
 * its number among the events that the spool keeps.  Its times are not in the row: in memory they
 * are in the event's key, and in a sorted run 16 bytes before the row.  Only the process that wrote
 * a row reads it.
 */
enum {
	ROW_TIMES = 16,
	ROW_HEAD = 24,
	ROW_REST = 24,
	ROW_WORDS = 20, /* offset of the number of argument values */
	ROW_SHARED_BYTES = 4,
};
#define ROW_SHARED (UINT32_C(1) << 31)
enum { ROW_HAS_NUMBER = 1, ROW_HAS_BYTES = 2, ROW_HAS_PLACE = 4, ROW_HAS = 3 /* bits */ };

/* Returns the maximum bytes of a row with `words` argument values and the times before it. */
static inline size_t row_most(uint32_t words)
{
	return ROW_TIMES + ROW_HEAD + ROW_REST + (size_t)words * VARINT_MAX;
}
static inline uint32_t row_words(const uint8_t *row)
{
	return get_u32(row) & ROW_SHARED ? 0 : get_u32(row + ROW_WORDS) >> ROW_HAS;
}
static inline uint32_t row_size(const uint8_t *row)
{
	return get_u32(row) & ROW_SHARED ? ROW_SHARED_BYTES : get_u32(row);
}

/* Writes a row to `out`, which has row_most() bytes; returns its length. */
size_t row_encode(const struct event *e, uint32_t words, uint8_t *out);
/* The events to which ROW_SHARED refers, without times. */
struct row_shared {
	struct event *events;
	size_t count, cap;
};
/*
 * Reads a row, and its row_words() argument values into `words`.  Does not set the times.  A
 * damaged row sets in->is_truncated.
 */
void row_decode(struct bytes *in, const struct row_shared *shared, struct event *e,
		uint64_t *words);

/* A sorted run in the scratch file, with events of one group. */
struct run {
	uint64_t at, size; /* bytes */
	uint32_t group;
};

/* The batch that a spool returns, with the argument values of its events. */
struct run_batch {
	struct event *events;
	uint64_t *words;
	struct row_shared shared;
	size_t count, word_count;
	size_t cap, word_cap; /* word_cap: at least the most words of one event */
};
/* Adds the event of the row at `in`, of which at least the head is complete.  Returns false if the
 * batch is full. */
bool run_batch_add(struct run_batch *b, uint64_t begin_ns, uint64_t end_ns, struct bytes *in);

struct runs;
/* Returns how many runs can be merged at once with `bytes` of memory; at least 2. */
size_t runs_fan_in(size_t bytes, uint32_t most_words);
/* Opens runs, all of which are borrowed.  Events with equal times have the order of `list`.  No
 * event has more than `most_words` argument values. */
enum status runs_open(struct runs **out, const struct scratch *scratch, const struct run *list,
		      size_t count, size_t bytes, uint32_t most_words, struct error *err);
/* Empties `out` and fills it with the next events; returns ST_END if there are none. */
enum status runs_next(struct runs *r, struct run_batch *out, struct error *err);
size_t runs_bytes(const struct runs *r); /* bytes of memory; 0 for NULL */
void runs_close(struct runs *r);         /* accepts NULL */
