/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - writes the tables of a trace as blocks and reads them back.
 *
 * The ids in a file are those of the writer's trace.  A writer makes blocks of the rows that are
 * new or have changed since a mark, and writes names before the rows that use them.  So a file that
 * is truncated anywhere has every row that its whole blocks of events need.  A reader adds the rows
 * to its own trace and keeps a translation with one word for each id of the file.  If a row is
 * repeated (tables are, every LOG_REPEAT_BYTES), the last one is valid.  Columns of events are
 * matched with records.def *by name*, so order, widths and numbers may differ:
 *
 *	in the file and in records.def   a member of struct event, or an argument of that name
 *	only in the file                 an argument value under the file's own name and unit
 *	only in records.def              absent: 0, and no argument
 *
 * An unknown kind becomes KIND_UNKNOWN with its word as the const arg ".kind".  One translation or
 * mark belongs to one thread.
 */
#pragma once

#include "schemas/log/log.h"
#include "schemas/model/trace.h"

struct buf;

#define LOG_REPEAT_BYTES ((uint64_t)64 << 20)

/* A mark records which rows and layouts a file has already. */
struct log_mark;
enum status log_mark_new(struct log_mark **out, const struct trace *t, size_t ceiling,
			 struct error *err);
void log_mark_free(struct log_mark *m); /* accepts NULL */
/* Forgets the rows, so that the next log_put_tables() writes all of them again. */
void log_mark_clear(struct log_mark *m);
/*
 * Finds or adds the layout of an event descriptor of the trace, which depends on its kind and the
 * keys of its argument values.  *layout is at least 1.  ST_CEILING: there are too many layouts or
 * keys.
 */
enum status log_mark_layout(struct log_mark *m, uint32_t desc, uint16_t *layout,
			    unsigned *arg_count, struct error *err);
/* Appends the rows that are new or have changed to `out` as whole blocks. */
enum status log_put_tables(struct log_mark *m, struct buf *out, struct error *err);
/* Appends the last block; `events` has KIND_END counts, one for each enum kind. */
enum status log_put_end(struct log_mark *m, const uint64_t *events, struct buf *out,
			struct error *err);

/* Translates the ids of one file to those of the trace; it also holds the file's layouts and
 * descriptors. */
struct log_translation;
enum status log_translation_new(struct log_translation **out, struct trace *t, size_t ceiling,
				struct error *err);
/* May change each event descriptor of the file before it is added to the trace. */
typedef void (*log_change_fn)(void *arg, struct trace *t, struct event_desc *desc);
void log_translation_change(struct log_translation *x, log_change_fn change, void *arg);
void log_translation_free(struct log_translation *x); /* accepts NULL */
/*
 * Reads the next table block in the order of the file; `payload` has raw_size inflated bytes.
 * ST_FORMAT: it is damaged, or a row refers to an id that was not read; the rows before it are
 * used.  After ST_CEILING and ST_MEMORY nothing more can be read.
 */
enum status log_take_table(struct log_translation *x, const struct log_block *block,
			   const uint8_t *payload, struct error *err);
/* Adds launches and losses to the trace and frees what only tables need.  Call this after the last
 * block. */
void log_translation_finish(struct log_translation *x);
/* These return the arguments of log_decode_init(), borrowed until the next table block.  NULL: the
 * layout was not read. */
const struct log_desc *log_descs(const struct log_translation *x, size_t *count);
const struct log_layout *log_layout(const struct log_translation *x, uint16_t layout);
/* Returns whether the last block so far was END; *events is set to its count of events. */
bool log_translation_ended(const struct log_translation *x, uint64_t *events);
