/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h - one EVENTS block of a log while it is being read; inside of the source.
 *
 * A block is read, checked, inflated and then decoded a chunk of rows at a time.  One whose rows
 * are not in order is decoded whole and sorted; where memory is short it is then decoded once more
 * in chunks, of which only a window is kept (reorder.h).  Rows stay columns until they become
 * events. A cursor is used for one block after the other, and has the memory that its largest block
 * needed.
 */
#ifndef CONVERT_SOURCE_LOG_CURSOR_H
#define CONVERT_SOURCE_LOG_CURSOR_H

#include "convert/input/input.h"
#include "schemas/log/tables.h"

struct log_cursor;

enum status log_cursor_new(struct log_cursor **out, struct error *err);
void log_cursor_free(struct log_cursor *c); /* accepts NULL */

/*
 * The stored payload of a block, checked and inflated: block->raw_size bytes in the cursor, valid
 * until its next block.  ST_FORMAT: damaged; ST_TRUNCATED: the file ends before.
 */
enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, const uint8_t **payload,
			    struct error *err);
enum log_keep {
	LOG_KEEP_ALL,   /* all rows of a block at once */
	LOG_KEEP_CHUNK, /* all rows at once only where a block is not in order */
	LOG_KEEP_LEAST, /* as few rows as possible, at the price of decoding some blocks twice */
};
/*
 * Loads a block and decodes its first rows.  `number` is the caller's, to tell cursors apart.
 * log_cursor_has() then tells whether there is a row.
 */
enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, enum log_keep keep,
			    struct error *err);

/* The rows at hand.  This part of a cursor is open to its users, so that access is inlined; they
 * change only `at` and `spare`. */
struct log_cursor_head {
	const struct log_rows *rows; /* NULL: none */
	const uint16_t *order;       /* the rows in order; NULL: they are in order as they stand */
	uint32_t mask;               /* a row of `order` stands at its number & mask */
	uint32_t at, count;          /* the next row, and one past the last */
	unsigned arg_count;          /* argument values of an event */
	uint64_t number;
	struct log_cursor *spare; /* link of a list of the user's */
};
static inline struct log_cursor_head *log_cursor_head(struct log_cursor *c)
{
	return (struct log_cursor_head *)c;
}

/* Decodes the next rows, after all rows at hand were taken.  False: the block has ended. */
bool log_cursor_refill(struct log_cursor *c);

static inline bool log_cursor_has(struct log_cursor *c)
{
	return log_cursor_head(c)->at < log_cursor_head(c)->count || log_cursor_refill(c);
}

/* The row, of those at hand, that is at place `at` in their order. */
static inline uint32_t log_cursor_row(const struct log_cursor_head *h, uint32_t at)
{
	return h->order ? h->order[at] & h->mask : at;
}

/* Rows so far that could not be decoded. */
uint32_t log_cursor_lost(const struct log_cursor *c);

#endif
