/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/format.h"
#include "convert/output/output.h"
#include "schemas/base/sort.h"

#include <stdlib.h>

enum status views_new(struct view **out, struct tables *tables, struct error *err)
{
	size_t count = tables_count(tables);
	struct view *views = calloc(count + 1, sizeof(*views));

	*out = NULL;
	if (!views)
		return fail_memory(err);
	for (size_t i = 0; i < count; i++) {
		struct view *v = &views[i];

		v->table = tables_at(tables, i);
		v->type = table_type(v->table);
		v->count = table_count(v->table);
		v->rows = calloc(v->count + 1, sizeof(*v->rows));
		if (!v->rows) {
			views_free(views, tables);
			return fail_memory(err);
		}
		table_printed(v->table, v->rows);
	}
	*out = views;
	return ST_OK;
}

void views_free(struct view *views, const struct tables *tables)
{
	for (size_t i = 0; views && i < tables_count(tables); i++)
		free(views[i].rows);
	free(views);
}

struct view view_find(const struct view *views, const struct tables *tables, const char *name)
{
	for (size_t i = 0; i < tables_count(tables); i++)
		if (!strcmp(views[i].type->name, name))
			return views[i];
	return (struct view){ .count = 0 };
}

static int compare_prefix(const struct table_type *type, const union value *row,
			  const union value *parent, size_t keys)
{
	for (size_t i = 0; i < keys; i++) {
		bool is_text = type->columns[i].cell == CELL_TEXT;

		if (is_text && row[i].text != parent[i].text)
			return strcmp(row[i].text ? row[i].text : "",
				      parent[i].text ? parent[i].text : "");
		if (!is_text && row[i].u64 != parent[i].u64)
			return row[i].u64 < parent[i].u64 ? -1 : 1;
	}
	return 0;
}

/* Returns the index of the first row that is not before the parent's or, with `after`, that is
 * after them. */
static size_t bound(const struct view *v, const union value *parent, size_t keys, bool after)
{
	size_t at;

	SEARCH(at, 0, v->count, compare_prefix(v->type, v->rows[at], parent, keys) < after);
	return at;
}

struct view view_below(const struct view *v, const union value *parent, size_t keys)
{
	struct view below = *v;

	if (!v->count)
		return below;
	size_t first = bound(v, parent, keys, false);
	below.rows = v->rows + first;
	below.count = bound(v, parent, keys, true) - first;
	return below;
}

union value view_cell(const struct view *v, size_t row, const char *column)
{
	size_t place = table_column(v->table, column);

	if (row < v->count)
		return v->rows[row][place];
	if (column_is_text(&v->type->columns[place]))
		return (union value){ .text = NULL };
	return (union value){ .u64 = NO_U64 };
}

const char *view_text(const struct view *v, size_t row, const char *column)
{
	const char *text = view_cell(v, row, column).text;

	return text ? text : "";
}

bool view_is_shown(const struct view *v)
{
	size_t i = v->type->under ? table_keys(v->type->under) : 0;

	for (; i < table_columns(v->type); i++)
		if (v->type->columns[i].title)
			return true;
	return false;
}

enum { NAME_BYTES = 4096 };
#define PART_BYTES ((size_t)1 << 30)

static enum status put_part(struct out *folder, struct buf *name, const struct buf *bytes,
			    struct error *err)
{
	TRY(out_begin(folder, buf_text(name), err));
	return out_write(folder, bytes->data, bytes->len, err);
}

enum status format_parts_write(const struct format_type *type, const struct format_request *how,
			       struct out *folder, struct error *err)
{
	enum status status = ST_OK;
	struct buf name, bytes;
	bool more = true;

	buf_init(&name, NAME_BYTES);
	buf_init(&bytes, PART_BYTES);
	for (size_t i = 0; status == ST_OK && more; i++) {
		buf_clear(&name);
		buf_clear(&bytes);
		status = type->part(how, i, &name, &bytes, &more, err);
		if (status == ST_OK && more)
			status = put_part(folder, &name, &bytes, err);
	}
	buf_release(&name);
	buf_release(&bytes);
	return status;
}
