/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_partial.h - the encoding of tables in a partial result.
 *
 *	tables: varint count, then each
 *	  name: text; varint columns, then each { name: text, u8 cell, u8 combine }; varint rows,
 *	  then each row, a value a column:
 *	    number   varint of value + 1, 0: unknown
 *	    text     as below
 *	    lengths  0: none; 1, then the histogram (hist.h)
 *	text: varint 0: none; 1: varint length, bytes; n: the text that was number n - 2, from 0, of
 *	  those written out before
 *
 * DERIVED columns and rows that finish() makes are not written.  A reader finds tables and columns
 * by name, in any order, and skips unknown ones.  A missing one is an error, and so is a missing
 * text where table.h requires one.  Any bytes are safe to read.
 *
 * Not thread-safe.
 */
#pragma once

#include "analyze/engine/table.h"
#include "schemas/base/buf.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"

struct partial_writer { /* all members zero but `out`: nothing was written yet */
	struct buf *out;
	const char **texts; /* borrowed from the caller */
	size_t count, cap;
	struct hash_index index; /* numbers of the texts written so far */
	enum status status;      /* the first error: out of memory */
};
void partial_put_text(struct partial_writer *w, const char *text);
void partial_put_tables(struct partial_writer *w, const struct tables *tables);
/* Frees everything but the buffer, and returns `status`. */
enum status partial_writer_release(struct partial_writer *w, struct error *err);

struct partial_text {
	const char *bytes; /* points into the file */
	size_t len;
	const char *text; /* copy in the tables; NULL: not needed yet */
};
struct partial_reader { /* all members zero but `in`, `tables` and `ceiling` */
	struct bytes in;
	struct tables *tables; /* the tables to fill, which also own all texts */
	size_t ceiling;        /* limit for histograms in bytes */
	size_t hist_bytes;
	struct partial_text *texts;
	size_t count, cap;
};
/* Reads a text, which the tables own. *text is NULL if none was written. */
enum status partial_take_text(struct partial_reader *r, const char **text, struct error *err);
/* Combines the rows with existing ones. Fails if the file lacks a table of r->tables. */
enum status partial_take_tables(struct partial_reader *r, struct error *err);
void partial_reader_release(struct partial_reader *r);
