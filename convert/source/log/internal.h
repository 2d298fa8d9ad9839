/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of the log reader. */
#pragma once

#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/log/log.h"
#include "schemas/log/tables.h"
#include "schemas/model/event.h"

/* The index of a log: its tables and the positions of its event blocks. */

/* The owner frees `blocks` and `tables`. */
struct log_index {
	const struct input *in;
	struct trace *trace;
	struct log_translation *tables;
	struct log_block *blocks; /* event blocks, in file order */
	size_t count, block_cap;
	size_t ceiling;     /* most bytes of `blocks` */
	struct error fault; /* returned after all readable events; ST_OK: none */
};

/*
 * Fills an index whose `in`, `trace`, `tables` and `ceiling` are set, in one walk over the block
 * headers.  Damage is counted as lost records; damaged framing also sets `fault`.  The ring of a
 * flight recorder is walked as the log that would be saved from it.
 */
enum status log_index_read(struct log_index *index, struct error *err);

/*
 * Cursors: a cursor reads one EVENTS block of a log.
 *
 * A block is read, checked and inflated, and then decoded in chunks of rows.  A block whose rows
 * are not in order is decoded whole and sorted; if memory is short, it is then decoded a second
 * time in chunks, of which only a window is kept (log_window below).  Rows remain columns until
 * they become events.  A cursor is reused for one block after another and keeps the memory that its
 * largest block needed.
 */

struct log_cursor;

enum status log_cursor_new(struct log_cursor **out, struct error *err);
void log_cursor_free(struct log_cursor *c); /* accepts NULL */

/*
 * Reads a block's payload, checks it and inflates it.  *payload is block->raw_size bytes in the
 * cursor, valid until its next block.  Returns ST_FORMAT if it is damaged, ST_TRUNCATED if the file
 * ends inside it.
 */
enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, const uint8_t **payload,
			    struct error *err);
enum log_keep {
	LOG_KEEP_ALL,   /* keep all rows of a block in memory */
	LOG_KEEP_CHUNK, /* keep all rows only if the block is not in order */
	LOG_KEEP_LEAST, /* keep few rows, even if some blocks are decoded twice */
};
/*
 * Loads a block and decodes its first rows; log_cursor_has() returns whether there is a row.
 * `number` is the caller's and distinguishes cursors.
 */
enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, enum log_keep keep,
			    struct error *err);

/* The decoded rows.  This part of a cursor is public so that access is inlined; users change only
 * `at` and `spare`. */
struct log_cursor_head {
	const struct log_rows *rows; /* NULL: no rows */
	const uint16_t *order;       /* row numbers in order; NULL: the rows are in order already */
	uint32_t mask;               /* row number N is at index N & mask of `rows` */
	uint32_t at, count;          /* the next row, and one past the last */
	unsigned arg_count;          /* argument values per event */
	uint64_t number;
	struct log_cursor *spare; /* link of a list of the user */
};
static inline struct log_cursor_head *log_cursor_head(struct log_cursor *c)
{
	return (struct log_cursor_head *)c;
}

/* Decodes the next rows, after all decoded rows were consumed.  Returns false at the end of the
 * block. */
bool log_cursor_refill(struct log_cursor *c);

static inline bool log_cursor_has(struct log_cursor *c)
{
	return log_cursor_head(c)->at < log_cursor_head(c)->count || log_cursor_refill(c);
}

/* Returns the index of the row at position `at` of the order. */
static inline uint32_t log_cursor_row(const struct log_cursor_head *h, uint32_t at)
{
	return h->order ? h->order[at] & h->mask : at;
}

/* Returns the number of rows so far that could not be decoded. */
uint32_t log_cursor_lost(const struct log_cursor *c);

/*
 * Windows: the rows of a block that is not in order, a few at a time; used by cursor.c.
 *
 * Most rows are near their final position.  Once the order is known, only the rows between the
 * first one not yet returned and the last one returned have to be in memory.  They are kept in a
 * ring.
 */

struct log_window;

/* Returns how many rows must be in memory at once if `count` rows are returned in this order. */
uint32_t log_window_need(const uint16_t *order, uint32_t count);

/*
 * Creates a ring for `need` rows, including those of a chunk, and puts the first chunk into it.
 * Columns with the same value in all rows are borrowed from the chunk.  Returns NULL if memory is
 * short.  The caller releases it with free().
 */
struct log_window *log_window_new(const struct log_rows *chunk, uint32_t need);
void log_window_put(struct log_window *w, const struct log_rows *chunk);

const struct log_rows *log_window_rows(const struct log_window *w);
uint32_t log_window_mask(const struct log_window *w); /* row number N is at index N & mask */
uint32_t log_window_end(const struct log_window *w);  /* number of rows put so far */

/*
 * Payloads: converts extended payloads of NVTX, which a log keeps as bytes and schemas (LOG.md,
 * section 12), to arguments of their events.
 *
 * Fields of nested schemas are named "outer.inner", elements of short arrays "name[0]"; arrays
 * without a constant length become one JSON text.  The bytes are untrusted, and decoding never
 * reads past their end.  Fields that NCCL and XLA register get the names that other sources use.
 */

enum { LOG_PAYLOAD_ARGS = 64 }; /* most argument values of an event after decoding */

/*
 * Decodes the payloads of an event and replaces its arguments and, if a field is its message, its
 * name.  The argument values are at `args`, which has space for LOG_PAYLOAD_ARGS.  An event without
 * payloads does not change.  Returns the number of fields that did not fit.
 */
uint64_t log_payload_decode(struct trace *trace, struct event *e, uint64_t *args);

/*
 * Adds to the trace everything that the payloads of all events of a log will need, so that its
 * tables are complete before the first event.  *has_any: some event has payloads.
 */
enum status log_payload_scan(const struct log_index *index, bool *has_any, struct error *err);

/*
 * Readahead: opens the blocks of a log in order, some of them in advance on other threads.  The
 * events do not depend on the number of threads.
 *
 * With threads, blocks are read, checked, inflated and decoded whole before they are due, as many
 * as there are threads plus one.  Without threads, a block is opened when it is requested, and with
 * as few of its rows as possible if memory is short (`sparing`).
 */

struct log_readahead;

/* `index` is borrowed until close; its blocks are in the order in which they are to be opened. */
enum status log_readahead_open(struct log_readahead **out, const struct log_index *index,
			       unsigned threads, bool sparing, struct error *err);
void log_readahead_close(struct log_readahead *a); /* accepts NULL */

/* Returns the status of log_cursor_open() for the next block and sets *out to its cursor, which the
 * caller owns unless it is NULL (ST_MEMORY).  Must not be called after the last block. */
enum status log_readahead_next(struct log_readahead *a, struct log_cursor **out, struct error *err);
/* Takes a cursor back and reuses it while there are more blocks. */
void log_readahead_reuse(struct log_readahead *a, struct log_cursor *c);
