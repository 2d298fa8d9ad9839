/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - prints the tables of a run.
 *
 * A format appends bytes to a buffer. It uses no file, terminal or environment: the request
 * contains what the terminal can show. The same tables give the same bytes.
 *
 * To add a format: write NAME/NAME.c that exports `const struct format_type format_NAME`, and add
 * X(NAME) to FORMAT_LIST below.
 */
#pragma once

#include "analyze/engine/report.h"
#include "schemas/base/buf.h"

/* the last two use 24-bit colours */
enum colour { COLOUR_NONE, COLOUR_16, COLOUR_DARK, COLOUR_LIGHT };

enum wording { VIEW_OWN, VIEW_LIGHTNING, VIEW_METRICS }; /* how the text format shows phases */

struct format_request {
	struct tables *tables;
	const struct report_type *const *reports; /* the requested ones; ends with NULL */
	const struct report_type *hidden;         /* one of them that pages do not show, or NULL */
	/* The following members are only for text. */
	enum colour colour;
	bool is_utf8;
	enum wording view;
	unsigned width; /* columns of a terminal */
};
struct format_type {
	const char *name;       /* the argument of --format */
	const char *help;       /* one line */
	enum pictures pictures; /* which pictures it shows */
	enum status (*write)(const struct format_request *how, struct buf *out, struct error *err);
	/* For a format that is a folder of files, otherwise NULL: appends the name and the bytes of
	 * file `index`; *more is false after the last one. */
	enum status (*part)(const struct format_request *how, size_t index, struct buf *name,
			    struct buf *out, bool *more, struct error *err);
};

/* Appends a number with nine significant digits; null if it is not finite. */
void put_json_number(struct buf *out, double v);
/* Appends the JSON Schema of the output of `json` for all reports. */
void put_json_schema(struct buf *out);

/* The rows of a table in printing order; rows below one parent are adjacent. */
struct view {
	struct table *table;
	const struct table_type *type;
	union value **rows;
	size_t count;
};
/* Makes a view for each table, in order. Free them with views_free(). Rows belong to the tables. */
enum status views_new(struct view **out, struct tables *tables, struct error *err);
void views_free(struct view *views, const struct tables *tables);
/* Returns the view of a table; it has no rows if the table was not requested. */
struct view view_find(const struct view *views, const struct tables *tables, const char *name);
/* Returns the rows of `v` whose first `keys` columns are those of `parent`. */
struct view view_below(const struct view *v, const union value *parent, size_t keys);
/* Returns whether pages show the table: it has a titled column besides those of its parent. */
bool view_is_shown(const struct view *v);
/* Return a cell by its column's name; NO_U64 (NAN as a double) or NULL past the last row. */
union value view_cell(const struct view *v, size_t row, const char *column);
static inline uint64_t view_u64(const struct view *v, size_t row, const char *column)
{
	return view_cell(v, row, column).u64;
}
static inline double view_number(const struct view *v, size_t row, const char *column)
{
	return (double)view_cell(v, row, column).u64;
}
/* Returns a text cell; "" if it is null. */
const char *view_text(const struct view *v, size_t row, const char *column);

/* The registry of formats of reports, in the order of --help. */

#define FORMAT_LIST(X) X(text) X(json) X(csv) X(md) X(html) X(tfevents)

#define X(name) extern const struct format_type format_##name;
FORMAT_LIST(X)
#undef X

extern const struct format_type *const format_types[];   /* ends with NULL */
const struct format_type *format_find(const char *name); /* NULL: no such format */

struct out;

/* Writes each file of type->part into `folder`; the caller commits the folder. */
enum status format_parts_write(const struct format_type *type, const struct format_request *how,
			       struct out *folder, struct error *err);
