/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_tables.h - a trace as tables, for the sinks sqlite and parquet.  Columns, units, keys and
 * meanings are defined here once.  This module makes the rows, and a sink writes their cells.
 *
 * Names of tables and columns are stable: new ones may be added, but none changes its meaning.
 */
#pragma once

#include "convert/sink/columns.h"
#include "convert/sink/sink.h"

enum data_table_id {
	TABLE_META,
	TABLE_NAMES,
	TABLE_PROCESSES,
	TABLE_DEVICES,
	TABLE_TRACKS,
	TABLE_SCHEMAS,
	TABLE_WINDOWS,
	TABLE_DESCRIPTION,
	/* Rows of the next three tables come while the trace is read, and those of the last table
	 * at its end. */
	TABLE_EVENTS,
	TABLE_STEPS,
	TABLE_PHASES,
	TABLE_LOSSES,
	TABLE_COUNT,
};
enum { TABLE_COLUMNS_MOST = 16 };

/* TABLE_KEY is a row's number, from 1.  TABLE_ANY is a text or a whole number. */
enum data_type { TABLE_KEY, TABLE_INTEGER, TABLE_REAL, TABLE_TEXT, TABLE_ANY };
struct data_column {
	const char *name;
	uint8_t type;
	const char *refers; /* the table whose key the column contains, or NULL */
	const char *unit;   /* "ns", "bytes", or "" */
	const char *meaning;
};
struct data_table {
	const char *name, *meaning;
	struct data_column columns[TABLE_COLUMNS_MOST]; /* ends with a NULL name */
};
extern const struct data_table data_tables[TABLE_COUNT];
size_t data_table_width(const struct data_table *t);

/* A view: a query that combines several tables. */
struct data_view {
	const char *name, *meaning, *select; /* SQL */
};
extern const struct data_view data_views[]; /* ends with a NULL name */

struct data_tables {
	struct trace *trace;           /* borrowed, like `context` */
	const struct context *context; /* NULL: phases have no names */
	void *self;
	/* Writes a row, which has a cell for each column.  Texts are borrowed for the call. */
	enum status (*put)(void *self, enum data_table_id table, const struct cell *cells,
			   struct error *err);
	struct data_process *processes; /* by process */
	uint64_t events;
	struct buf attrs;
};

/* Initializes `t`, in which the caller has set `put`, `self` and the borrowed members. */
enum status data_tables_init(struct data_tables *t, struct error *err);
void data_tables_release(struct data_tables *t); /* accepts a zeroed one */
/* Writes the rows of a table that is complete before the first event. */
enum status data_tables_put_static(struct data_tables *t, enum data_table_id table,
				   struct error *err);
/* Writes the events, steps and phases of a batch. */
enum status data_tables_put_batch(struct data_tables *t, const struct batch *batch,
				  struct error *err);
/* Writes the open phases and the losses.  Call it after the last batch. */
enum status data_tables_put_end(struct data_tables *t, struct error *err);

/* Returns a cell's text as valid UTF-8, in place or in `scratch`, and its length in *len.  Numbers
 * are returned as digits, for formats without TABLE_ANY. */
const char *cell_text(const struct cell *cell, struct buf *scratch, size_t *len);
