/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - writes events as a log, for the collector and for `-t log`.
 *
 * It keeps an encoder for each layout, and writes the table rows that a block needs before it.  It
 * appends whole blocks only, so the buf may be written out and cleared after any call; a flush once
 * per second bounds what a kill loses.  Ids in the file are those of `trace`, which belongs to the
 * caller; the writer reads new rows of tables from it.  A writer belongs to one thread.  Its memory
 * is an encoder (about 350 KB) for each layout; over the ceiling, blocks end early.
 *
 *	log_writer_new(&w, trace, ceiling, err)
 *	log_writer_begin(w, &buf, err)                       the file's first bytes
 *	log_writer_put(w, &event, desc, 0, &buf, err) ...    write buf, clear it
 *	log_writer_flush(w, &buf, err)                       once per second
 *	log_writer_end(w, &buf, err)                         clean close
 */
#pragma once

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct buf;
struct log_writer;

/* `ceiling` bounds all memory of the writer, in bytes. */
enum status log_writer_new(struct log_writer **out, const struct trace *trace, size_t ceiling,
			   struct error *err);
void log_writer_free(struct log_writer *w); /* accepts NULL */
/* Call this before the first event to choose the form of each column by all rows of its block, not
 * by a sample.  The log is a few percent smaller and writing takes about 50 ns more for each
 * event. */
void log_writer_weigh_all(struct log_writer *w);

enum status log_writer_begin(struct log_writer *w, struct buf *out, struct error *err);
/*
 * Adds an event.  `desc` is trace_desc() of its track, name, schema, kind and subkind.  `order` is
 * 0 unless the input order of events of equal begin and end matters.
 */
enum status log_writer_put(struct log_writer *w, const struct event *e, uint32_t desc,
			   uint32_t order, struct buf *out, struct error *err);
/* Closes all open blocks and writes the tables, windows, anchors and losses that are new or
 * changed. */
enum status log_writer_flush(struct log_writer *w, struct buf *out, struct error *err);
/* Makes the writer repeat all tables before the next block, for a new file of the trace or a
 * ring. */
void log_writer_repeat(struct log_writer *w);
/* Writes all rows of all tables at once, for a store that keeps them apart from events. */
enum status log_writer_tables(struct log_writer *w, struct buf *out, struct error *err);
/* Flushes, and writes the END block with totals. */
enum status log_writer_end(struct log_writer *w, struct buf *out, struct error *err);
