/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one table: the first one of the only requested report. RFC 4180, but lines end in \n. */
#include "analyze/format/format.h"

#include "convert/base/csv.h"

#include <math.h>

static void put_cell(struct buf *out, const struct column *c, union value v)
{
	if (column_is_text(c))
		csv_put_text(out, v.text ? v.text : "", v.text ? strlen(v.text) : 0);
	else if (c->cell == CELL_F64 && isfinite(v.f64))
		buf_putf(out, "%.9g", v.f64);
	else if (c->cell == CELL_BOOL && v.u64 != NO_U64)
		buf_put_text(out, v.u64 ? "true" : "false");
	else if (c->cell != CELL_F64 && v.u64 != NO_U64)
		buf_put_u64_text(out, v.u64);
}

static void put_line(struct buf *out, const struct table_type *type, const union value *row)
{
	const char *between = "";

	for (size_t i = 0; type->columns[i].name; i++) {
		if (type->columns[i].cell == CELL_HIST)
			continue;
		buf_put_text(out, between);
		between = ",";
		if (row)
			put_cell(out, &type->columns[i], row[i]);
		else
			buf_put_text(out, type->columns[i].name);
	}
	buf_put_byte(out, '\n');
}

static enum status csv_write(const struct format_request *how, struct buf *out, struct error *err)
{
	struct view *views, v;

	if (!how->reports[0] || how->reports[1])
		return fail(err, ST_USAGE, NOWHERE,
			    "csv has one table: name one report, such as --report kernels");
	TRY(views_new(&views, how->tables, err));
	v = view_find(views, how->tables, how->reports[0]->tables[0]->name);
	put_line(out, v.type, NULL);
	for (size_t i = 0; i < v.count; i++)
		put_line(out, v.type, v.rows[i]);
	views_free(views, how->tables);
	return buf_status(out, err);
}

const struct format_type format_csv = {
	.name = "csv",
	.help = "the report's first table; text that a spreadsheet would execute is prefixed with "
		"'",
	.write = csv_write,
};
