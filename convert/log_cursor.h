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
 * until its next block.  ST_FORMAT: damaged; ST_CUT: the file ends before.
 */
enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, const uint8_t **payload,
			    struct error *err);
/* Load and begin; `number` is the caller's, to tell cursors apart; log_cursor_event() is then the first event, NULL when there is none. */
enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, struct error *err);

/* The present event, NULL behind the last.  Its vary words are valid until the next. */
const struct event *log_cursor_event(const struct log_cursor *c);
void log_cursor_next(struct log_cursor *c);
uint64_t log_cursor_number(const struct log_cursor *c);
/* Words of event.vary of this block. */
unsigned log_cursor_vary(const struct log_cursor *c);
/* Rows so far that could not be told. */
uint32_t log_cursor_lost(const struct log_cursor *c);

#endif
