/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log/cursor.h - one EVENTS block of a log while it is being read; inside of source_log.
 *
 * A block is read, checked, inflated and then decoded a chunk of rows at a time; one whose rows are
 * not in order is decoded whole and sorted, and where memory is short then once more in chunks, of
 * which few are kept.  Rows stay columns until they are given.  A cursor is used again for block
 * after block, and has the memory that its largest block needed.
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
 * until its next block.  ST_FORMAT: damaged; ST_CUT: the file ends before.
 */
enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, const uint8_t **payload,
			    struct error *err);
enum log_room {
	LOG_ROOM_WHOLE,  /* all rows of a block at once */
	LOG_ROOM_CHUNKS, /* those of a block that is not in order at once */
	LOG_ROOM_LEAST,  /* as few as can be, for more work */
};
/*
 * Load and begin; `number` is the caller's, to tell cursors apart.  log_cursor_has() then says
 * whether there is a row.
 */
enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, enum log_room room,
			    struct error *err);

/* The rows at hand.  What its users look at stands here, to be inlined; `at` alone is theirs. */
struct log_cursor_head {
	const struct log_rows *rows; /* NULL: none */
	const uint16_t *order;       /* of the rows; NULL: as they stand */
	uint32_t mask;               /* of a row in `order`: where it stands */
	uint32_t at, count;          /* the present one, and where they end */
	unsigned vary_count;         /* words of event.vary */
	uint64_t number;
	struct log_cursor *spare;    /* for who keeps several */
};
static inline struct log_cursor_head *log_cursor_head(struct log_cursor *c)
{
	return (struct log_cursor_head *)c;
}

/* All rows at hand were taken: the next ones.  False: the block has ended. */
bool log_cursor_refill(struct log_cursor *c);

static inline bool log_cursor_has(struct log_cursor *c)
{
	return log_cursor_head(c)->at < log_cursor_head(c)->count || log_cursor_refill(c);
}

/* Place `at` of the rows at hand as a row of them. */
static inline uint32_t log_cursor_row(const struct log_cursor_head *h, uint32_t at)
{
	return h->order ? h->order[at] & h->mask : at;
}

/* Asks the memory for the present row and those that follow, by whoever has many cursors. */
static inline void log_cursor_near(const struct log_cursor *c)
{
	const struct log_cursor_head *h = (const struct log_cursor_head *)c;
	const struct log_rows *r = h->rows;
	uint32_t row;

	if (h->at >= h->count)
		return;
	row = log_cursor_row(h, h->at);
	__builtin_prefetch(r->begins + row);
	__builtin_prefetch(r->lengths + row);
	__builtin_prefetch(r->sites + row);
	__builtin_prefetch(r->joins + row);
	__builtin_prefetch(r->amounts.at + (row & r->amounts.mask));
	__builtin_prefetch(r->orders.at + (row & r->orders.mask));
}
/* The same of the site of the row behind the present one. */
static inline void log_cursor_near_site(const struct log_cursor_head *h)
{
	uint32_t at = h->at + 1;

	if (at < h->count)
		__builtin_prefetch(&h->rows->site[h->rows->sites[log_cursor_row(h, at)]]);
}

/* Rows so far that could not be told. */
uint32_t log_cursor_lost(const struct log_cursor *c);

#endif
