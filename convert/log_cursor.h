/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_cursor.h - one EVENTS block of a log while it is being read; inside of source_log.
 *
 * A block is read, checked, inflated and then decoded a few hundred rows at a time; one whose rows
 * are not in order is decoded whole and sorted.  A cursor is used again for block after block.
 */
#ifndef CONVERT_LOG_CURSOR_H
#define CONVERT_LOG_CURSOR_H

#include "convert/input.h"
#include "schemas/log_tables.h"

struct log_cursor;

enum status log_cursor_new(struct log_cursor **out, struct error *err);
void log_cursor_free(struct log_cursor *c); /* accepts NULL */

/*
 * The stored payload of a block, checked and inflated: block->raw_size bytes in the cursor, valid
 * until its next block.  ST_FORMAT: damaged; ST_CUT: the file ends before.  `room` is for the time
 * of the call.
 */
enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint8_t room[LOG_BLOCK_BYTES],
			    const uint8_t **payload, struct error *err);
/*
 * Load and begin; `number` is the caller's, to tell cursors apart.  log_cursor_event() is then the
 * first event, NULL when there is none.
 */
enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, uint8_t room[LOG_BLOCK_BYTES],
			    struct error *err);

/*
 * The present event, NULL behind the last, and the next.  Vary words are valid until the cursor
 * has moved.  What they look at stands here, to be inlined; nobody else touches it.
 */
struct log_cursor_head {
	const struct event *events;
	const uint32_t *order; /* of the events; NULL: as they stand */
	size_t at, count;
	uint64_t number;
	unsigned vary_count;
};
bool log_cursor_refill(struct log_cursor *c);

static inline const struct event *log_cursor_event(const struct log_cursor *c)
{
	const struct log_cursor_head *h = (const struct log_cursor_head *)c;

	if (h->at >= h->count)
		return NULL;
	return &h->events[h->order ? h->order[h->at] : h->at];
}

static inline const struct event *log_cursor_next(struct log_cursor *c)
{
	struct log_cursor_head *h = (struct log_cursor_head *)c;

	if (++h->at >= h->count && !log_cursor_refill(c))
		return NULL;
	return log_cursor_event(c);
}

static inline uint64_t log_cursor_number(const struct log_cursor *c)
{
	return ((const struct log_cursor_head *)c)->number;
}

/* Words of event.vary of this block. */
static inline unsigned log_cursor_vary(const struct log_cursor *c)
{
	return ((const struct log_cursor_head *)c)->vary_count;
}

/* Rows so far that could not be told. */
uint32_t log_cursor_lost(const struct log_cursor *c);

#endif
