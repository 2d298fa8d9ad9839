/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - figures as rows with keys: accumulators fill them, partial results merge them, formats
 * print them.
 *
 * One `struct column` describes a column completely: its key in JSON and csv, its unit, how two
 * partial results combine, what a percentage refers to, and the sentence of --explain. So text, csv
 * and json need no code for each report.
 *
 * Partial results: rows come out in key order (text keys by bytes), and columns combine by SUM,
 * MIN, MAX or addition of histograms, which are commutative and associative on integers. So any
 * number of threads, in any order, gives the same bytes as one. Fractions do not combine. An input
 * therefore stores the bits of its doubles in KEY columns of a row of its own, in a table of
 * NEST_NEVER, and finish() computes one figure from these rows, in their order.
 *
 * A set of tables belongs to one thread. Texts are copied in, each once, and stay valid until
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
	CELL_F64,   /* for DERIVED columns only; NAN: unknown */
	CELL_BOOL,  /* 0, 1, NO_U64; in .u64 */
	CELL_TEXT,  /* NULL: unknown */
	CELL_WORDS, /* words separated by blanks; an array in JSON */
	CELL_HIST,  /* never printed */
};
#define NO_U64 UINT64_MAX

enum combine {
	KEY, /* part of the row's identity; the first columns of the table */
	SUM, /* neutral value: 0 */
	MIN, /* neutral value: NO_U64 or NULL */
	MAX, /* neutral value: 0 or NULL */
	HIST,
	DERIVED, /* computed by finish() from the others; NO_U64, NAN or NULL before that */
};
struct column {
	const char *name;  /* "exposed_comm_ns": key in JSON, header in csv; ends in the unit */
	const char *title; /* "exposed comm": header in a terminal; NULL: not shown there */
	enum cell cell;
	enum combine combine;
	const char *of;      /* what the share refers to, shown in the header; NULL: not a share */
	const char *meaning; /* one sentence, for --explain and the manual */
};

/*
 * A table lists its columns once, in an X list, from which it makes the enum of places in a row and
 * the rows of `struct column`. An X has the place, the name, the title, the type of the cell, how
 * it combines, the meaning, and `.of = "..."` for a share:
 *
 * 	#define SPILL_COLUMNS(X)                                                    \
 * 		X(SPILL_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "device number") \
 * 		X(SPILL_PCT, "pct", "%", F64, DERIVED, "bytes / all bytes", .of = "bytes")
 * 	enum { SPILL_COLUMNS(COLUMN_PLACE) };
 *
 * 	.columns = COLUMNS(RANK_COLUMNS, SPILL_COLUMNS(COLUMN_ROW)),
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

/* Returns whether `name` ends in `end`, for example in a unit such as "_ns". */
bool name_ends_in(const char *name, const char *end);
/* Returns whether a column contains nanoseconds. */
static inline bool column_is_time(const struct column *c)
{
	return !strcmp(c->name, "ns") || name_ends_in(c->name, "_ns") ||
	       name_ends_in(c->name, "_ns_per_step");
}

enum nest {              /* how rows appear in the JSON object of their parent row */
	    NEST_ARRAY,  /* an array of objects */
	    NEST_OBJECT, /* an object; a parent has at most one row */
	    NEST_MAP,    /* one further key and one value: {"key": value} */
	    NEST_NEVER,  /* for pages only: neither JSON nor csv */
};
struct table_type {
	const char *name;   /* "step_gpus": name in --report and in code; unique */
	const char *member; /* "gpus": key in JSON; NULL: its name */
	const struct table_type
		*under; /* parent table, its keys are a prefix of ours; NULL: none */
	enum nest nest;
	const char *by;         /* column for descending order when printed; NULL: key order */
	const char *tie;        /* column for descending order of rows equal in `by`, null last */
	const char *since;      /* if `by` is NULL: a time, for ascending order */
	const char *null_texts; /* names, with blanks, of its texts that may be NULL; or NULL */
	bool is_finished;       /* finish() makes the rows; partial results contain none */
	bool is_seldom;         /* few inputs have rows: an empty table is not shown */
	bool is_picture;        /* filled only if there is a single input, otherwise cleared */
	size_t rows_most;       /* merged tables keep the first rows in key order; 0: all */
	const struct column *columns; /* ends with .name == NULL */
};

struct table;  /* rows of one type */
struct tables; /* one table of each type, and their texts */
union value {
	uint64_t u64;
	double f64;
	const char *text; /* borrowed in keys and table_text(), otherwise the tables own it */
	struct hist *hist;
};

/* `types` ends with NULL; it and its items are borrowed until tables_free(). */
enum status tables_new(struct tables **out, const struct table_type *const *types, size_t ceiling,
		       struct error *err);
void tables_free(struct tables *t); /* accepts NULL */
size_t tables_count(const struct tables *t);
struct table *tables_at(const struct tables *t, size_t index);       /* in the order of `types` */
struct table *tables_find(const struct tables *t, const char *name); /* NULL: no report fills it */

static inline const char *table_member(const struct table_type *type)
{
	return type->member ? type->member : type->name;
}
const struct table_type *table_type(const struct table *t);
size_t table_keys(const struct table_type *type);             /* number of key columns */
size_t table_columns(const struct table_type *type);          /* number of columns */
size_t table_column(const struct table *t, const char *name); /* index of a column in a row */
/* Returns whether a text of this column may be NULL. All other text columns are set in each row
 * once reports have finished. */
bool column_may_be_null(const struct table_type *type, const struct column *column);
/* Returns the number of rows; 0 if `t` is NULL, as in a run without the report that fills the
 * table. */
size_t table_count(const struct table *t);

/* Finds the row with these keys, or adds one with neutral values. The pointer stays valid. */
enum status table_row(struct table *t, const union value *keys, union value **row,
		      struct error *err);
/* Call it before a row with these keys is merged. Returns in *is_accepted whether it is among the
 * first `rows_most`; the last row may be removed to make space. The same rows are kept in whatever
 * order they come, until the texts of removed rows take TABLE_GONE_MOST bytes. From then on only
 * existing rows are accepted. */
enum { TABLE_GONE_MOST = 32 << 20 };
enum status table_accepts(struct table *t, const union value *keys, bool *is_accepted,
			  struct error *err);
/* For a table that is limited to TABLE_NAMES rows per input: returns whether a row with these keys
 * exists or fits. The caller uses the row TABLE_OTHER for the rest. */
enum { TABLE_NAMES = 1 << 14 };
#define TABLE_OTHER "(other)"
bool table_takes(const struct table *t, const union value *keys);
/* For finish(): finds the row with these keys. ST_FORMAT: it is missing, in a damaged partial
 * result. */
enum status table_have(struct table *t, const union value *keys, union value **row,
		       struct error *err);
/* Returns a copy of `text` that lives as long as the tables, to be stored in a row; NULL at the
 * ceiling. */
const char *table_text(struct table *t, const char *text, struct error *err);
/* Returns a new histogram to be stored in a row; freed with the tables. NULL: out of memory. */
struct hist *table_hist(struct table *t, struct error *err);

/* Returns row `index` in key order, where indices change with the next table_row(); NULL past the
 * end or if `t` is NULL.
 */
union value *table_at(struct table *t, size_t index);
/* Returns the index after the last row from `first` on with the same first `keys` columns. */
size_t table_group_end(struct table *t, size_t first, size_t keys);
/* Fills `rows`, which has space for table_count() items, in printing order: below one parent by
 * type->by or type->since. */
void table_printed(struct table *t, union value **rows);

/* tables_sum() returns the sum of a CELL_U64 column without nulls, at most UINT64_MAX. tables_any()
 * returns whether a column is 1 in any row. A table that was not requested gives 0 and false. */
uint64_t tables_sum(struct tables *all, const char *table, const char *column);
bool tables_any(struct tables *all, const char *table, const char *column);

/* Combines `v` into a column of `row`; texts and histograms are copied. */
enum status table_combine(struct table *t, union value *row, size_t column, union value v,
			  struct error *err);
/* Removes all rows. */
void table_clear(struct table *t);
/* Removes the rows for which `keep` sets *is_kept to false. `keep` may change keys, to texts of the
 * tables, if the keys of rows stay unique. */
typedef enum status (*table_keep_fn)(void *self, struct table *t, union value *row, bool *is_kept,
				     struct error *err);
enum status table_sift(struct table *t, table_keep_fn keep, void *self, struct error *err);

/* Merges all rows of `from`. Both must have the same type or types. DERIVED columns of `into` do
 * not change. */
enum status table_merge(struct table *into, struct table *from, struct error *err);
enum status tables_merge(struct tables *into, struct tables *from, struct error *err);
