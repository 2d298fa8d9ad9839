/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of the reader of logs. */
#pragma once

#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/log/log.h"
#include "schemas/log/tables.h"
#include "schemas/model/event.h"

/*
 * What is in a log: its tables, and where its blocks of events are; inside of the source.
 */

/* Its owner frees `blocks` and `tables`. */
struct log_index {
	const struct input *in;
	struct trace *trace;
	struct log_translation *tables;
	struct log_block *blocks; /* of events, in the order of the file */
	size_t count, block_cap;
	size_t ceiling;     /* bytes of blocks[] */
	struct error fault; /* returned after everything that was readable; ST_OK: none */
};

/*
 * Fills an index whose `in`, `trace`, `tables` and `ceiling` are set, by one walk over the block
 * headers.  Damage is counted as lost records, and where the framing is damaged it is the fault
 * too.  The ring of a flight recorder is walked as the log that would be saved from it.
 */
enum status log_index_read(struct log_index *index, struct error *err);

/*
 * One EVENTS block of a log while it is being read; inside of the source.
 *
 * A block is read, checked, inflated and then decoded a chunk of rows at a time.  One whose rows
 * are not in order is decoded whole and sorted; where memory is short it is then decoded once more
 * in chunks, of which only a window is kept (log_reorder below).  Rows stay columns until they
 * become events. A cursor is used for one block after the other, and has the memory that its
 * largest block needed.
 */

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

/*
 * The rows of a block that is not in order, a few at a time; inside of cursor.c.
 *
 * Most rows are near their place.  When the order is known, only the rows between the first that
 * was not given yet and the last that was given are needed in memory.  They are kept in a ring.
 */

struct log_window;

/* How many rows must be in memory at once when `count` rows are given in this order. */
uint32_t log_window_need(const uint16_t *order, uint32_t count);

/*
 * A ring with place for `need` rows, which include those of a chunk, filled with the first chunk.
 * Words that are the same in all rows stay borrowed from it.  NULL: no memory.  Freed by free().
 */
struct log_window *log_window_new(const struct log_rows *chunk, uint32_t need);
void log_window_put(struct log_window *w, const struct log_rows *chunk);

const struct log_rows *log_window_rows(const struct log_window *w);
uint32_t log_window_mask(const struct log_window *w); /* a row stands at its number & mask */
uint32_t log_window_end(const struct log_window *w);  /* rows that were put so far */

/*
 * Extended payloads of NVTX, which a log keeps as bytes and schemas (LOG.md, section
 * 12), as arguments of their events; inside of the source.
 *
 * Fields of nested schemas are named "outer.inner", elements of short arrays "name[0]"; arrays
 * without a constant length become one JSON text.  Bytes are not trusted, and reading never passes
 * their end.  What NCCL and XLA register gets the names that other sources use.
 */

enum { LOG_PAYLOAD_ARGS = 64 }; /* argument values of an event after decoding, at most */

/*
 * Decodes the payloads of an event whose argument values are at `args`, which has place for
 * LOG_PAYLOAD_ARGS: replaces its arguments and, where a field is its message, its name.  An event
 * without payloads stays as it is.  Returns how many fields had no place.
 */
uint64_t log_payload_decode(struct trace *trace, struct event *e, uint64_t *args);

/*
 * Adds to the trace what the payloads of all events of a log will need, so that its tables are
 * complete before the first event.  *has_any: some event has payloads.
 */
enum status log_payload_scan(const struct log_index *index, bool *has_any, struct error *err);

/*
 * The blocks of a log opened in order, some of them ahead on other cores; inside of
 * the source.  What comes is the same at any number of threads.
 *
 * With threads, blocks are read, checked, inflated and decoded whole before they are due, as many
 * as there are threads and one more.  Without, a block is opened when it is asked for, and where
 * memory is short (`sparing`) with as few of its rows as possible.
 */

struct log_readahead;

/* `index` is borrowed until close, and its blocks are in the order in which they are opened. */
enum status log_readahead_open(struct log_readahead **out, const struct log_index *index,
			       unsigned threads, bool sparing, struct error *err);
void log_readahead_close(struct log_readahead *a); /* accepts NULL */

/* The cursor of the next block, which becomes the caller's unless it is NULL (ST_MEMORY).  The
 * status is that of log_cursor_open().  Not to be called after the last block. */
enum status log_readahead_next(struct log_readahead *a, struct log_cursor **out, struct error *err);
/* Takes a cursor back, to be used again while there are more blocks. */
void log_readahead_reuse(struct log_readahead *a, struct log_cursor *c);
