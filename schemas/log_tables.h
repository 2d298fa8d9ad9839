/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_tables.h - a trace's tables as blocks, and back.
 *
 * Ids in a file are the file's own, dense from 1: those of the writer's trace.  Writing: rows that
 * are new or have changed since a mark become blocks, names before what uses them, so a file cut
 * anywhere has every row that a whole block of events needs.  Reading: rows go into the run's
 * trace and their ids into a translation, one word per local id.  A row may come again (tables are
 * repeated every LOG_REPEAT_BYTES): the last one holds.  Columns of events are matched with
 * records.def *by name*, so order, widths and numbers may differ:
 *
 *	known here and in the file   a member of struct event, or an attribute of that name
 *	only in the file             an attribute under the file's own name and unit
 *	only here                    absent: 0, and no attribute
 *
 * A kind that is unknown here becomes KIND_UNKNOWN with an attribute ".kind", its word.
 * One translation or mark belongs to one thread.
 */
#ifndef SCHEMAS_LOG_TABLES_H
#define SCHEMAS_LOG_TABLES_H

#include "schemas/log.h"
#include "schemas/trace.h"

struct buf;

#define LOG_REPEAT_BYTES ((uint64_t)64 << 20)

/* What a file has already: rows of its tables, its layouts. */
struct log_mark;
enum status log_mark_new(struct log_mark **out, const struct trace *t, size_t ceiling,
			 struct error *err);
void log_mark_free(struct log_mark *m); /* accepts NULL */
/* Forget it: the next log_put_tables() writes all again. */
void log_mark_clear(struct log_mark *m);
/*
 * The layout of a site of the trace, found or made; kind and vary keys decide it.  *layout is not
 * below 1.  ST_CEILING: too many layouts or keys.
 */
enum status log_mark_layout(struct log_mark *m, uint32_t site, uint16_t *layout,
			    unsigned *vary_count, struct error *err);
/* Append what is new or changed to `out` as whole blocks. */
enum status log_put_tables(struct log_mark *m, struct buf *out, struct error *err);
/* The last block: `events` counts events by enum kind, KIND_END entries. */
enum status log_put_end(struct log_mark *m, const uint64_t *events, struct buf *out,
			struct error *err);

/* One file's local ids -> the run's; holds its layouts and log_site rows. */
struct log_translation;
enum status log_translation_new(struct log_translation **out, struct trace *t, size_t ceiling,
				struct error *err);
void log_translation_free(struct log_translation *x); /* accepts NULL */
/*
 * One table block, in file order; `payload` is inflated, raw_size bytes.  ST_FORMAT: damaged, or a
 * row names an id that did not come; rows before it hold.  ST_CEILING, ST_MEMORY end the reading.
 */
enum status log_take_table(struct log_translation *x, const struct log_block *block,
			   const uint8_t *payload, struct error *err);
/* Losses that the file tells of, to the run's trace: once, after the last block.  What only other
 * tables need is given back. */
void log_translation_finish(struct log_translation *x);
/* For log_decode_init(); borrowed until the next table.  NULL for a layout that did not come. */
const struct log_site *log_sites(const struct log_translation *x, size_t *count);
const struct log_layout *log_layout(const struct log_translation *x, uint16_t layout);
/* Whether an END block came last so far, and the events it counts. */
bool log_translation_ended(const struct log_translation *x, uint64_t *events);

#endif
