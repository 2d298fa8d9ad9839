/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - figures as rows with keys: accumulators fill them, partial results merge them, formats
 * print them.
 *
 * One `struct column` describes a column completely: its key in JSON and csv, its unit, how two
 * partial results combine, what a percentage is of, and the sentence of --explain.  So text, csv
 * and json need no code for each report.
 *
 * Partial results: rows come out in key order (text keys by bytes), and combining is SUM, MIN,
 * MAX or a histogram's addition - integers, commutative, associative.  Any number of threads, in
 * any order, therefore gives the same bytes as one.  Fractions do not combine: an input leaves a
 * row of its own with the bits of its doubles in columns that are KEY, in a table of NEST_NEVER,
 * and finish() makes one figure of these rows, in their order.
 *
 * A set of tables belongs to one thread.  Texts are copied in, each once, and stay valid until
 * tables_free(); all memory but histograms is one arena with a ceiling.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hist;

enum cell {
	CELL_U64,   /* NO_U64: not applicable or unknown; null in JSON, empty in csv */
	CELL_F64,   /* derived only; NAN is unknown */
	CELL_BOOL,  /* 0, 1, NO_U64; in .u64 */
	CELL_TEXT,  /* NULL is unknown */
	CELL_WORDS, /* a text of words with blanks between: an array in JSON */
	CELL_HIST,  /* never printed */
};
#define NO_U64 UINT64_MAX

enum combine {
	KEY, /* part of the row's identity; first columns of the table */
	SUM, /* neutral: 0 */
	MIN, /* neutral: NO_U64, NULL */
	MAX, /* neutral: 0, NULL */
	HIST,
	DERIVED, /* computed by finish() from combined ones; nothing (NO_U64, NAN, NULL) before */
};
struct column {
	const char *name;  /* "exposed_comm_ns": json key, csv header; the unit is its ending */
	const char *title; /* "exposed comm": terminal; NULL: not shown there */
	enum cell cell;
	enum combine combine;
	const char *of;      /* a share: of what, shown in the header; NULL: not a share */
	const char *meaning; /* one sentence, for --explain and the manual */
};

/*
 * A table states each of its columns once, in an X list, and makes the places of cells in a row and
 * the rows of `struct column` from it.  An X takes the place, the name, the title, the type of the
 * cell, how it combines, the meaning, and `.of = "..."` for a share:
 *
 *	#define SPILL_COLUMNS(X)                                                    \
 *		X(SPILL_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "its number") \
 *		X(SPILL_PCT, "pct", "%", F64, DERIVED, "bytes / all", .of = "bytes")
 *	enum { SPILL_COLUMNS(COLUMN_PLACE) };
 *
 *	.columns = COLUMNS(RANK_COLUMNS, SPILL_COLUMNS(COLUMN_ROW)),
 */
#define COLUMN_PLACE(place, ...) place,
#define COLUMN_ROW(place, key, heading, type, how, ...)                                            \
	{ .name = key,                                                                             \
	  .title = heading,                                                                        \
	  .cell = CELL_##type,                                                                     \
	  .combine = how,                                                                          \
	  .meaning = __VA_ARGS__ },
#define COLUMNS(...) ((const struct column[]){ __VA_ARGS__{ .name = NULL } })

static inline bool column_is_text(const struct column *c)
{
	return c->cell == CELL_TEXT || c->cell == CELL_WORDS;
}

/* Whether a name ends in `end`, as "_ns": the unit. */
bool name_ends_in(const char *name, const char *end);
/* Whether a column holds nanoseconds. */
static inline bool column_is_time(const struct column *c)
{
	return !strcmp(c->name, "ns") || name_ends_in(c->name, "_ns") ||
	       name_ends_in(c->name, "_ns_per_step");
}

enum nest {              /* how rows stand in the JSON object of the row above them */
	    NEST_ARRAY,  /* an array of objects */
	    NEST_OBJECT, /* at most one row: an object */
	    NEST_MAP,    /* one key of its own and one value: {"key": value} */
	    NEST_NEVER,  /* for pages only: neither JSON nor csv */
};
struct table_type {
	const char *name;               /* "step_gpus": for --report and code; unique */
	const char *member;             /* "gpus": its key in JSON; NULL: its name */
	const struct table_type *under; /* table whose keys are a prefix of ours; NULL: top */
	enum nest nest;
	const char *by;         /* printed in descending order of this column; NULL: in key order */
	const char *tie;        /* those equal in it in descending order of this one, null last */
	const char *since;      /* in ascending order of this one: a time, where `by` is NULL */
	const char *null_texts; /* names, with blanks, of its texts that may be NULL; or NULL */
	bool is_finished;       /* finish() makes its rows: a partial result has none */
	bool is_seldom;         /* few inputs have any row: without one no table is shown */
	bool is_picture;        /* made only of an input that is alone: left out of several */
	size_t rows_most;       /* of merged tables the first in key order are kept; 0: all */
	const struct column *columns; /* ends with .name == NULL */
};

struct table;  /* rows of one type */
struct tables; /* one table per type, and the texts; what an accumulator returns */
union value {
	uint64_t u64;
	double f64;
	const char *text; /* borrowed when given as a key or to table_text(), else the tables' */
	struct hist *hist;
};

/* `types` ends with NULL; what it points to is borrowed until tables_free(). */
enum status tables_new(struct tables **out, const struct table_type *const *types, size_t ceiling,
		       struct error *err);
void tables_free(struct tables *t); /* accepts NULL */
size_t tables_count(const struct tables *t);
struct table *tables_at(const struct tables *t, size_t index);       /* in the order of `types` */
struct table *tables_find(const struct tables *t, const char *name); /* NULL: was not asked for */

static inline const char *table_member(const struct table_type *type)
{
	return type->member ? type->member : type->name;
}
const struct table_type *table_type(const struct table *t);
size_t table_keys(const struct table_type *type);             /* how many of its columns are keys */
size_t table_columns(const struct table_type *type);          /* all of them */
size_t table_column(const struct table *t, const char *name); /* its place in a row */
/* Whether a text of this column may be NULL; other columns have a text in each row once reports
 * have finished. */
bool column_may_be_null(const struct table_type *type, const struct column *column);
/* The number of rows; 0 if `t` is NULL, as in a run without the report that makes the table. */
size_t table_count(const struct table *t);

/* The row with these keys; a new one has neutral values.  The pointer stays valid. */
enum status table_row(struct table *t, const union value *keys, union value **row,
		      struct error *err);
/*
 * Call it before a row with these keys is merged: whether it is among the first `rows_most`, for
 * which the last row may be removed.  The same rows are kept in whatever order they come, until the
 * texts of removed rows take TABLE_GONE_MOST bytes; then only rows that exist are accepted.
 */
enum { TABLE_GONE_MOST = 32 << 20 };
enum status table_accepts(struct table *t, const union value *keys, bool *is_accepted,
			  struct error *err);
/* For a table that is limited to TABLE_NAMES rows per input: whether a row with these keys exists
 * or fits.  What does not fit belongs to the row TABLE_OTHER. */
enum { TABLE_NAMES = 1 << 14 };
#define TABLE_OTHER "(other)"
bool table_takes(const struct table *t, const union value *keys);
/* For finish(): the row with these keys; ST_FORMAT: a damaged partial result lacks it. */
enum status table_have(struct table *t, const union value *keys, union value **row,
		       struct error *err);
/* A copy of `text` that lives as long as the tables, to be stored in a row; NULL on a ceiling. */
const char *table_text(struct table *t, const char *text, struct error *err);
/* A histogram to be stored in a row; freed with the tables.  NULL: out of memory. */
struct hist *table_hist(struct table *t, struct error *err);

/* Row `index` in key order, until the next table_row(); NULL past the end, and where `t` is NULL.
 */
union value *table_at(struct table *t, size_t index);
/* The index after the last row from `first` on that has the same first `keys` columns. */
size_t table_group_end(struct table *t, size_t first, size_t keys);
/*
 * Fills `rows`, which has room for table_count() of them, in the order in which they are printed:
 * below one parent by type->by or type->since.
 */
void table_printed(struct table *t, union value **rows);

/*
 * The sum of a CELL_U64 column without nulls (at most UINT64_MAX), and whether a column is 1 in any
 * row; 0 and false for a table that was not requested.
 */
uint64_t tables_sum(struct tables *all, const char *table, const char *column);
bool tables_any(struct tables *all, const char *table, const char *column);

/* Combines `v` into a column of `row`; texts and histograms are copied. */
enum status table_combine(struct table *t, union value *row, size_t column, union value v,
			  struct error *err);
/* Removes all rows. */
void table_clear(struct table *t);
/* Removes the rows of which `keep` says so.  It may change keys, to texts of the tables, if no two
 * rows come to have the same. */
typedef enum status (*table_keep_fn)(void *self, struct table *t, union value *row, bool *is_kept,
				     struct error *err);
enum status table_sift(struct table *t, table_keep_fn keep, void *self, struct error *err);

/* Both must have the same type or types.  DERIVED columns of `into` are left unchanged. */
enum status table_merge(struct table *into, struct table *from, struct error *err);
enum status tables_merge(struct tables *into, struct tables *from, struct error *err);
