/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_writer.h - events in, the bytes of a log out; used by the collector and by `-t log`.
 *
 * It keeps an encoder for each layout and puts the table rows that a block needs before it.  What
 * it appends to a buf is always whole blocks, so the buf may be written and cleared after any
 * call; a flush once per second bounds what a kill loses.  Ids in the file are those of `trace`,
 * which stays the caller's: new names, tracks, shapes, sites, windows, anchors and losses are
 * found there by themselves.  One thread; memory is an encoder (about 350 KB) for each
 * layout; where that is over the ceiling, blocks end early.
 *
 *	log_writer_new(&w, trace, ceiling, err)
 *	log_writer_begin(w, &buf, err)                       the file's first bytes
 *	log_writer_put(w, &event, site, 0, &buf, err) ...    write buf, clear it
 *	log_writer_flush(w, &buf, err)                       once per second
 *	log_writer_end(w, &buf, err)                         clean close
 */
#ifndef SCHEMAS_LOG_WRITER_H
#define SCHEMAS_LOG_WRITER_H

#include "schemas/event.h"
#include "schemas/trace.h"

struct buf;
struct log_encoder;
struct log_writer;

/* `ceiling`: bytes of memory for everything. */
enum status log_writer_new(struct log_writer **out, const struct trace *trace, size_t ceiling,
			   struct error *err);
void log_writer_free(struct log_writer *w); /* accepts NULL */
/* Before the first event: how a column is stored is decided by all rows of its block, not by a
 * sample.  A log that is to be kept gets smaller by a few percent, for about 50 ns an event. */
void log_writer_weigh_all(struct log_writer *w);

enum status log_writer_begin(struct log_writer *w, struct buf *out, struct error *err);
/*
 * `site` is trace_site() of the event's track, name, shape, kind and subkind.  `order`: see
 * log_encoder.h; 0 unless the input order of events of equal begin and end matters.
 */
enum status log_writer_put(struct log_writer *w, const struct event *e, uint32_t site,
			   uint32_t order, struct buf *out, struct error *err);
/*
 * The encoder of a site, for who puts rows there by itself as log_writer_put() would: NULL, or one
 * that the next row makes full, is left to log_writer_put().  Good until the next call here.
 */
struct log_places {
	struct log_encoder *const *by_site;
	uint32_t count;
};
struct log_places log_writer_places(const struct log_writer *w);
/* Close all open blocks; tables, windows, anchors and losses that are new or changed. */
enum status log_writer_flush(struct log_writer *w, struct buf *out, struct error *err);
/* The tables again before the next block: for a new file of the same trace, a ring. */
void log_writer_repeat(struct log_writer *w);
/* All rows of all tables, again and now: for a store that keeps them apart. */
enum status log_writer_tables(struct log_writer *w, struct buf *out, struct error *err);
/* Flush and the END block with totals. */
enum status log_writer_end(struct log_writer *w, struct buf *out, struct error *err);
/* Events put since log_writer_begin(). */
uint64_t log_writer_events(const struct log_writer *w);

#endif
