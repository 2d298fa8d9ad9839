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
 *
 * In a sorted run, times and row of such an event are 8 bytes if it is short and begins soon after
 * the event before it: RUN_SHORT, the difference of both begins, the duration and the number.
 */
enum {
	ROW_TIMES = 16,
	ROW_HEAD = 24,
	ROW_REST = 24,
	ROW_WORDS = 20, /* offset of the number of argument values */
	ROW_SHARED_BYTES = 4,
};
#define ROW_SHARED (UINT32_C(1) << 31)
#define RUN_SHORT  (UINT64_C(1) << 63)
enum { RUN_SHARED_BITS = 14, RUN_DURATION_BITS = 24, RUN_DELTA_BITS = 25 }; /* of RUN_SHORT */
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

/* Writes times and row of an event to a run: the `size` bytes of `row`, or RUN_SHORT.  `last_ns` is
 * the begin of the event before it, or 0.  `out` has ROW_TIMES + size bytes; returns the length. */
static inline size_t run_put(uint8_t *out, uint64_t last_ns, uint64_t begin_ns, uint64_t end_ns,
			     const uint8_t *row, size_t size)
{
	uint64_t delta = begin_ns - last_ns, duration = end_ns - begin_ns;

	if (size == ROW_SHARED_BYTES &&
	    !(delta >> RUN_DELTA_BITS | duration >> RUN_DURATION_BITS)) {
		put_u64(out, RUN_SHORT |
				     (delta << RUN_DURATION_BITS | duration) << RUN_SHARED_BITS |
				     (get_u32(row) & ~ROW_SHARED));
		return sizeof(uint64_t);
	}
	put_u64(out, begin_ns);
	put_u64(out + sizeof(uint64_t), end_ns);
	memcpy(out + ROW_TIMES, row, size);
	return ROW_TIMES + size;
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
	bool has_short; /* events may have RUN_SHORT, and no time is that great */
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
