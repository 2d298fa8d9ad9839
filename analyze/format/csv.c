/* SPDX-License-Identifier: Apache-2.0 */
/* One table: the first of the one report asked for.  RFC 4180, but lines end in \n. */
#include "analyze/format/format.h"

#include "schemas/base/utf8.h"

#include <math.h>
#include <string.h>

static void put_text(struct buf *out, const char *text)
{
	bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;
	char bytes[4];

	if (is_quoted)
		buf_put_byte(out, '"');
	while (*text) {
		uint32_t c = utf8_next(&text);

		if (c == '"')
			buf_put_byte(out, '"');
		buf_put(out, bytes, utf8_put(bytes, c));
	}
	if (is_quoted)
		buf_put_byte(out, '"');
}

static void put_cell(struct buf *out, const struct column *c, union value v)
{
	if (column_is_text(c))
		put_text(out, v.text ? v.text : "");
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
			put_text(out, type->columns[i].name);
	}
	buf_put_byte(out, '\n');
}

static enum status csv_write(const struct format_request *how, struct buf *out, struct error *err)
{
	struct view *views, v;

	if (!how->reports[0] || how->reports[1])
		return fail(err, ST_USAGE, NOWHERE,
			    "csv holds one table: name one report, such as --report kernels");
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
	.help = "one table, the report's first; the header names the columns",
	.write = csv_write,
};
