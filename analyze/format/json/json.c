/* SPDX-License-Identifier: Apache-2.0 */
/* tacho.report/1 (schemas/report.schema.json): tables nested by their keys, with exact values. */
#include "analyze/format/format.h"

#include "schemas/base/json_text.h"

#include <math.h>
#include <stdio.h>

struct json {
	const struct view *views;
	size_t count;
	struct buf *out;
};

static void put_words(struct buf *out, const char *text)
{
	char word[64];

	buf_put_byte(out, '[');
	for (size_t len, i = 0; text && *text; text += len + (text[len] == ' '), i++) {
		len = strcspn(text, " ");
		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		buf_put_text(out, i ? ", " : "");
		json_put_word(out, word);
	}
	buf_put_byte(out, ']');
}

void put_json_number(struct buf *out, double v)
{
	if (isfinite(v))
		buf_putf(out, "%.9g", v);
	else
		buf_put_text(out, "null");
}

static void put_cell(struct buf *out, const struct column *c, union value v)
{
	if (c->cell == CELL_WORDS)
		put_words(out, v.text);
	else if (c->cell == CELL_F64)
		put_json_number(out, v.f64);
	else if (c->cell == CELL_TEXT ? !v.text : v.u64 == NO_U64)
		buf_put_text(out, "null");
	else if (c->cell == CELL_TEXT)
		json_put_word(out, v.text);
	else if (c->cell == CELL_BOOL)
		buf_put_text(out, v.u64 ? "true" : "false");
	else
		buf_put_u64_text(out, v.u64);
}

static void put_table(struct json *j, const struct view *v, size_t depth);

/* Writes the tables whose keys begin with all keys of this row. */
static void put_nested(struct json *j, const struct table_type *type, const union value *row,
		       size_t depth)
{
	for (size_t i = 0; i < j->count; i++) {
		if (j->views[i].type->under != type || j->views[i].type->nest == NEST_NEVER)
			continue;
		struct view below = view_below(&j->views[i], row, table_keys(type));
		buf_put_text(j->out, ",\n");
		buf_fill(j->out, ' ', depth);
		json_put_word(j->out, table_member(below.type));
		buf_put_text(j->out, ": ");
		put_table(j, &below, depth);
	}
}

/* Writes an object without the keys that the objects around it have. */
static void put_row(struct json *j, const struct table_type *type, const union value *row,
		    size_t depth)
{
	size_t first = type->under ? table_keys(type->under) : 0, i, count = table_columns(type);
	bool is_first = true;

	buf_put_byte(j->out, '{');
	for (i = first; i < count; i++) {
		if (type->columns[i].cell == CELL_HIST)
			continue;
		buf_put_text(j->out, is_first ? "" : ", ");
		json_put_word(j->out, type->columns[i].name);
		buf_put_text(j->out, ": ");
		put_cell(j->out, &type->columns[i], row[i]);
		is_first = false;
	}
	put_nested(j, type, row, depth + 1);
	buf_put_byte(j->out, '}');
}

static void put_table(struct json *j, const struct view *v, size_t depth)
{
	if (v->type->nest == NEST_MAP) {
		size_t key = table_keys(v->type) - 1;

		buf_put_byte(j->out, '{');
		for (size_t i = 0; i < v->count; i++) {
			buf_put_text(j->out, i ? ", " : "");
			json_put_word(j->out, v->rows[i][key].text);
			buf_put_text(j->out, ": ");
			put_cell(j->out, &v->type->columns[key + 1], v->rows[i][key + 1]);
		}
		buf_put_byte(j->out, '}');
		return;
	}
	if (v->type->nest == NEST_OBJECT) {
		if (v->count)
			put_row(j, v->type, v->rows[0], depth);
		else
			buf_put_text(j->out, "null");
		return;
	}
	buf_put_byte(j->out, '[');
	for (size_t i = 0; i < v->count; i++) {
		buf_put_text(j->out, i ? ",\n" : "\n");
		buf_fill(j->out, ' ', depth + 1);
		put_row(j, v->type, v->rows[i], depth + 1);
	}
	buf_put_byte(j->out, ']');
}

static enum status json_write(const struct format_request *how, struct buf *out, struct error *err)
{
	struct json j = { .count = tables_count(how->tables), .out = out };
	struct view *views;

	TRY(views_new(&views, how->tables, err));
	j.views = views;
	buf_put_text(out, "{\"schema\": \"tacho.report/1\"");
	if (!tables_find(how->tables, "findings")) /* not requested: no verdict and no findings */
		buf_put_text(out, ",\n \"verdict\": null, \"findings\": []");
	for (size_t i = 0; i < j.count; i++) {
		if (views[i].type->under || views[i].type->nest == NEST_NEVER)
			continue;
		buf_put_text(out, ",\n ");
		json_put_word(out, table_member(views[i].type));
		buf_put_text(out, ": ");
		put_table(&j, &views[i], 1);
	}
	buf_put_text(out, "}\n");
	views_free(views, how->tables);
	return buf_status(out, err);
}

const struct format_type format_json = {
	.name = "json",
	.help = "exact values, stable keys",
	.write = json_write,
};
