/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - a trace's tables as blocks, and back.
 *
 * The ids in a file are those of the writer's trace.  Writing: rows that are new or have changed
 * since a mark become blocks, names before the rows that use them, so a file that is truncated
 * anywhere has every row that its whole blocks of events need.  Reading: rows go into the reader's
 * trace, and their ids into a translation with one word for each id of the file.  A row may come
 * again (tables are repeated every LOG_REPEAT_BYTES), and then the last one is valid.  Columns of
 * events are matched with records.def *by name*, so order, widths and numbers may differ:
 *
 *	in the file and in records.def   a member of struct event, or an argument of that name
 *	only in the file                 an argument value under the file's own name and unit
 *	only in records.def              absent: 0, and no argument
 *
 * A kind that the reader does not know becomes KIND_UNKNOWN with a const arg ".kind", its word.
 * One translation or mark belongs to one thread.
 */
#pragma once

#include "schemas/log/log.h"
#include "schemas/model/trace.h"

struct buf;

#define LOG_REPEAT_BYTES ((uint64_t)64 << 20)

/* A mark: what a file has already of rows and layouts. */
struct log_mark;
enum status log_mark_new(struct log_mark **out, const struct trace *t, size_t ceiling,
			 struct error *err);
void log_mark_free(struct log_mark *m); /* accepts NULL */
/* Forgets the rows, so that the next log_put_tables() writes all of them again. */
void log_mark_clear(struct log_mark *m);
/*
 * Finds or makes the layout of an event descriptor of the trace, which follows from its kind and
 * the keys of its argument values.  *layout is at least 1.  ST_CEILING: too many layouts or keys.
 */
enum status log_mark_layout(struct log_mark *m, uint32_t desc, uint16_t *layout,
			    unsigned *arg_count, struct error *err);
/* Appends what is new or has changed to `out` as whole blocks. */
enum status log_put_tables(struct log_mark *m, struct buf *out, struct error *err);
/* Appends the last block; `events` has counts by enum kind, KIND_END of them. */
enum status log_put_end(struct log_mark *m, const uint64_t *events, struct buf *out,
			struct error *err);

/* From one file's ids to those of the trace; it has the file's layouts and descriptors too. */
struct log_translation;
enum status log_translation_new(struct log_translation **out, struct trace *t, size_t ceiling,
				struct error *err);
/* Gives each event descriptor of the file to `change` before it goes into the trace. */
typedef void (*log_change_fn)(void *arg, struct trace *t, struct event_desc *desc);
void log_translation_change(struct log_translation *x, log_change_fn change, void *arg);
void log_translation_free(struct log_translation *x); /* accepts NULL */
/*
 * Takes one table block, in file order; `payload` is inflated, raw_size bytes.  ST_FORMAT: it is
 * damaged, or a row refers to an id that did not come; the rows before it are used.  After
 * ST_CEILING and ST_MEMORY nothing more can be read.
 */
enum status log_take_table(struct log_translation *x, const struct log_block *block,
			   const uint8_t *payload, struct error *err);
/* After the last block: adds launches and losses to the trace, and frees what only tables need. */
void log_translation_finish(struct log_translation *x);
/* For log_decode_init(); borrowed until the next table block.  NULL for a layout that did not come.
 */
const struct log_desc *log_descs(const struct log_translation *x, size_t *count);
const struct log_layout *log_layout(const struct log_translation *x, uint16_t layout);
/* Whether an END block came last so far, and the events it counts. */
bool log_translation_ended(const struct log_translation *x, uint64_t *events);
