/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - figures as keyed rows: what a fold makes, what partials merge, what formats print.
 *
 * One row of a column table says everything about a column: its key in JSON and csv, its unit,
 * how two partial results combine, percent of what, and the sentence of --explain.  So text, csv,
 * json, md, html, the partial files and the MPI messages need no code per report.
 *
 * Partial results: rows come out in key order (text keys by bytes), and combining is SUM, MIN,
 * MAX or a histogram's addition - integers, commutative, associative.  Threads, --partial files,
 * job arrays and MPI ranks therefore give the same bytes as one process, in any order.  The bytes
 * of tables_encode() are a partial file, an MPI message, and what a table past its ceiling is
 * moved to: reading merges such pieces by key, side by side, so memory does not grow.
 */
#ifndef ANALYZE_TABLE_H
#define ANALYZE_TABLE_H

#include "schemas/status.h"

#include <stdbool.h>
#include <stddef.h>

enum cell { CELL_U64, CELL_I64, CELL_F64, CELL_TEXT, CELL_HIST }; /* F64: derived only */
enum combine {
	KEY,     /* part of the row's identity; first columns of the table */
	SUM, MIN, MAX, HIST,
	DERIVED, /* computed by finish() from combined ones; never in a partial */
};
struct column {
	const char *name;   /* "exposed_comm_ns": json key, csv header; the unit is its ending */
	const char *title;  /* "exposed comm": terminal, html */
	enum cell cell;
	enum combine combine;
	const char *of;     /* a share: of what, shown in the header; NULL: not a share */
	const char *meaning; /* one sentence, for --explain and the manual */
};
struct table_type {
	const char *name;   /* "gpus" */
	const char *under;  /* table whose keys are a prefix of ours: nests in JSON; NULL: top */
	const struct column *columns; /* ends with .name == NULL */
};

struct buf;
struct cursor { uint64_t at[2]; };
struct table;  /* rows of one type */
struct tables; /* one table per type, and the texts; what a fold returns */
union value {
	uint64_t u64;
	int64_t i64;
	double f64;
	const char *text; /* borrowed: copied in, valid until tables_free() out */
	struct hist *hist;
};

enum status tables_new(struct tables **out, const struct table_type *const *types, size_t ceiling,
		       struct error *err);
void tables_free(struct tables *t);
struct table *tables_find(const struct tables *t, const char *name); /* NULL: was not asked for */
size_t table_column(const struct table *t, const char *name);        /* its place in a row */

/* The row with these keys, made with neutral values if new.  Valid until the next table_row(). */
enum status table_row(struct table *t, const union value *keys, union value **row,
		      struct error *err);
/* Combined rows in key order, from a zeroed cursor; false at the end.  Borrowed until the next. */
bool table_next(const struct table *t, struct cursor *cursor, const union value **row);

enum status tables_merge(struct tables *into, const struct tables *from, struct error *err);
enum status tables_encode(const struct tables *t, struct buf *out, struct error *err);
enum status tables_decode(struct tables *into, const void *bytes, size_t len, struct error *err);

#endif
