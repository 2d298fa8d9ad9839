/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/table_partial.h"

#include "analyze/engine/hist.h"

#include <stdlib.h>

#define NOT_OURS SIZE_MAX
enum { TEXT_NONE, TEXT_NEW, TEXT_FIRST, COLUMNS_MAX = 64 };

/* ---- writing ---------------------------------------------------------------------------- */

void partial_put_text(struct partial_writer *w, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	uint64_t hash = text ? hash_text(text, len) : 0;
	uint32_t i;

	if (!text || w->status != ST_OK) {
		buf_put_varint(w->out, TEXT_NONE);
		return;
	}
	for (size_t at = hash_first(&w->index, hash);
	     (i = hash_item(&w->index, &at, hash)) != HASH_NONE; at = hash_next(&w->index, at))
		if (!strcmp(w->texts[i], text)) {
			buf_put_varint(w->out, TEXT_FIRST + i);
			return;
		}
	w->status = vec_reserve(&w->texts, &w->cap, w->count + 1, NULL);
	if (w->status == ST_OK)
		w->status = hash_add(&w->index, hash, (uint32_t)w->count, NULL);
	if (w->status == ST_OK)
		w->texts[w->count++] = text;
	buf_put_varint(w->out, TEXT_NEW);
	buf_put_varint(w->out, len);
	buf_put(w->out, text, len);
}

static void put_value(struct partial_writer *w, const struct column *c, union value v)
{
	if (column_is_text(c)) {
		partial_put_text(w, v.text);
	} else if (c->cell != CELL_HIST) {
		buf_put_varint(w->out, v.u64 + 1);
	} else {
		buf_put_varint(w->out, v.hist != NULL);
		if (v.hist)
			hist_encode(v.hist, w->out);
	}
}

static void put_table(struct partial_writer *w, struct table *t)
{
	const struct table_type *type = table_type(t);
	size_t columns = table_columns(type), count = 0;
	const union value *row;

	partial_put_text(w, type->name);
	for (size_t k = 0; k < columns; k++)
		count += type->columns[k].combine != DERIVED;
	buf_put_varint(w->out, count);
	for (size_t k = 0; k < columns; k++) {
		if (type->columns[k].combine == DERIVED)
			continue;
		partial_put_text(w, type->columns[k].name);
		buf_put_byte(w->out, (uint8_t)type->columns[k].cell);
		buf_put_byte(w->out, (uint8_t)type->columns[k].combine);
	}
	buf_put_varint(w->out, table_count(t));
	for (size_t i = 0; (row = table_at(t, i)); i++)
		for (size_t k = 0; k < columns; k++)
			if (type->columns[k].combine != DERIVED)
				put_value(w, &type->columns[k], row[k]);
}

void partial_put_tables(struct partial_writer *w, const struct tables *tables)
{
	buf_put_varint(w->out, tables_count(tables));
	for (size_t i = 0; i < tables_count(tables); i++)
		put_table(w, tables_at(tables, i));
}

enum status partial_writer_release(struct partial_writer *w, struct error *err)
{
	free(w->texts);
	hash_release(&w->index);
	w->texts = NULL;
	if (w->status != ST_OK)
		return fail_memory(err);
	return buf_status(w->out, err);
}

/* ---- reading ---------------------------------------------------------------------------- */

static enum status inconsistent(struct error *err)
{
	return fail(err, ST_FORMAT, NOWHERE, "the tables are inconsistent");
}

static enum status text_find(struct partial_reader *r, struct partial_text **of, struct error *err)
{
	uint64_t what = take_varint(&r->in);

	*of = NULL;
	if (what >= TEXT_FIRST) {
		if (what - TEXT_FIRST >= r->count)
			return inconsistent(err);
		*of = &r->texts[what - TEXT_FIRST];
		return ST_OK;
	}
	if (what == TEXT_NONE)
		return r->in.is_truncated ? inconsistent(err) : ST_OK;
	uint64_t len = take_varint(&r->in);
	const char *bytes = take_text(&r->in, len);
	if (!bytes || memchr(bytes, 0, (size_t)len))
		return inconsistent(err);
	TRY(vec_reserve(&r->texts, &r->cap, r->count + 1, err));
	r->texts[r->count++] = (struct partial_text){ bytes, (size_t)len, NULL };
	*of = &r->texts[r->count - 1];
	return ST_OK;
}

static enum status text_copy(struct partial_reader *r, struct partial_text *of, const char **text,
			     struct error *err)
{
	*text = NULL;
	if (!of)
		return ST_OK;
	if (!of->text) { /* copy a text into the tables only when it is first needed */
		char *copy = strndup(of->bytes, of->len);
		if (!copy)
			return fail_memory(err);
		of->text = table_text(tables_at(r->tables, 0), copy, err);
		free(copy);
	}
	*text = of->text;
	return of->text ? ST_OK : ST_CEILING;
}

enum status partial_take_text(struct partial_reader *r, const char **text, struct error *err)
{
	struct partial_text *of;

	*text = NULL;
	TRY(text_find(r, &of, err));
	return text_copy(r, of, text, err);
}

struct read_column {
	uint8_t cell, combine;
	size_t place; /* index in our rows; NOT_OURS: this version has no such column */
};

static enum status take_column(struct partial_reader *r, const struct table *t,
			       struct read_column *c, struct error *err)
{
	const char *name;
	size_t place;

	TRY(partial_take_text(r, &name, err));
	c->cell = take_u8(&r->in);
	c->combine = take_u8(&r->in);
	c->place = NOT_OURS;
	if (r->in.is_truncated || !name || c->cell > CELL_HIST || c->combine >= DERIVED ||
	    (c->cell == CELL_HIST) != (c->combine == HIST))
		return inconsistent(err);
	size_t columns = t ? table_columns(table_type(t)) : 0;
	for (place = 0; place < columns; place++)
		if (!strcmp(table_type(t)->columns[place].name, name))
			break;
	if (place == columns)
		return ST_OK;
	if (table_type(t)->columns[place].cell != (enum cell)c->cell ||
	    table_type(t)->columns[place].combine != (enum combine)c->combine)
		return fail(err, ST_FORMAT, NOWHERE,
			    "made by another version: %.40s of %.40s differs", name,
			    table_type(t)->name);
	c->place = place;
	return ST_OK;
}

/* Reads one cell. Texts are returned as their index in r->texts plus 1, or 0 for none. */
static enum status take_value(struct partial_reader *r, uint8_t cell, union value *v,
			      struct error *err)
{
	struct partial_text *of;

	if (cell == CELL_TEXT || cell == CELL_WORDS) {
		TRY(text_find(r, &of, err));
		v->u64 = of ? (uint64_t)(of - r->texts) + 1 : 0;
		return ST_OK;
	}
	if (cell == CELL_HIST) {
		uint64_t is_there = take_varint(&r->in);

		v->hist = NULL;
		if (!is_there)
			return ST_OK;
		if (is_there != 1)
			return inconsistent(err);
		TRY(hist_new(&v->hist, err));
		TRY(hist_decode(v->hist, &r->in, err));
		r->hist_bytes += hist_bytes(v->hist);
		if (r->hist_bytes > r->ceiling)
			return fail(err, ST_CEILING, NOWHERE,
				    "the histograms exceed the memory of a report");
		return ST_OK;
	}
	v->u64 = take_varint(&r->in) - 1;
	if (cell == CELL_BOOL && v->u64 > 1 && v->u64 != NO_U64)
		return inconsistent(err);
	return r->in.is_truncated ? inconsistent(err) : ST_OK;
}

static enum status row_add(struct partial_reader *r, struct table *t,
			   const struct read_column *columns, size_t count, union value *read,
			   struct error *err)
{
	const struct table_type *type = table_type(t);
	union value keys[COLUMNS_MAX], *row;
	bool is_accepted = true;

	if (type->is_finished)
		return inconsistent(err);
	for (int is_key = 1; is_key >= 0 && is_accepted; is_key--) {
		for (size_t i = 0; i < count; i++) {
			size_t place = columns[i].place;
			if (place == NOT_OURS || (type->columns[place].combine == KEY) != is_key)
				continue;
			const struct column *ours = &type->columns[place];
			if (column_is_text(ours)) {
				uint64_t n = read[i].u64;
				TRY(text_copy(r, n ? &r->texts[n - 1] : NULL, &read[i].text, err));
				/* reports and formats rely on texts that must not be NULL */
				if (!read[i].text && !column_may_be_null(type, ours))
					return inconsistent(err);
			}
			if (is_key)
				keys[place] = read[i];
		}
		if (is_key)
			TRY(table_accepts(t, keys, &is_accepted, err));
	}
	if (!is_accepted)
		return ST_OK;
	TRY(table_row(t, keys, &row, err));
	for (size_t i = 0; i < count; i++)
		if (columns[i].place != NOT_OURS)
			TRY(table_combine(t, row, columns[i].place, read[i], err));
	return ST_OK;
}

static enum status take_row(struct partial_reader *r, struct table *t,
			    const struct read_column *columns, size_t count, struct error *err)
{
	union value read[COLUMNS_MAX] = { { .u64 = 0 } };
	enum status status = ST_OK;

	for (size_t i = 0; i < count && status == ST_OK; i++)
		status = take_value(r, columns[i].cell, &read[i], err);
	if (status == ST_OK && t)
		status = row_add(r, t, columns, count, read, err);
	for (size_t i = 0; i < count; i++)
		if (columns[i].cell == CELL_HIST)
			hist_free(read[i].hist);
	return status;
}

/* Reads one table. *t becomes the table of this version, or NULL if it has none of that name. */
static enum status take_table(struct partial_reader *r, struct table **t, struct error *err)
{
	struct read_column columns[COLUMNS_MAX];
	const char *name;

	*t = NULL;
	TRY(partial_take_text(r, &name, err));
	uint64_t count = take_varint(&r->in);
	if (!name || !count || count > COLUMNS_MAX)
		return inconsistent(err);
	*t = tables_find(r->tables, name);
	for (uint64_t i = 0; i < count; i++)
		TRY(take_column(r, *t, &columns[i], err));
	if (*t) {
		/* Check that the file has each of our columns exactly once. */
		const struct table_type *type = table_type(*t);
		size_t i, times;
		for (size_t place = 0; place < table_columns(type); place++) {
			if (type->columns[place].combine == DERIVED)
				continue;
			for (times = 0, i = 0; i < ((size_t)count); i++)
				times += columns[i].place != NOT_OURS && columns[i].place == place;
			if (times != 1)
				return fail(err, ST_FORMAT, NOWHERE,
					    "made by another version: %.40s of %.40s is missing",
					    type->columns[place].name, type->name);
		}
	}
	uint64_t rows = take_varint(&r->in);
	for (uint64_t i = 0; i < rows && !r->in.is_truncated; i++)
		TRY(take_row(r, *t, columns, (size_t)count, err));
	return r->in.is_truncated ? inconsistent(err) : ST_OK;
}

enum status partial_take_tables(struct partial_reader *r, struct error *err)
{
	uint64_t count = take_varint(&r->in);
	size_t ours = tables_count(r->tables);
	RELEASED_BY(vec_release) bool *came = NULL;
	struct table *t;

	TRY(vec_new(&came, ours, err));
	for (uint64_t i = 0; i < count; i++) {
		TRY(take_table(r, &t, err));
		for (size_t k = 0; k < ours; k++) {
			if (tables_at(r->tables, k) != t)
				continue;
			if (came[k])
				return inconsistent(err);
			came[k] = true;
		}
	}
	for (size_t k = 0; k < ours; k++)
		if (!came[k])
			return fail(err, ST_FORMAT, NOWHERE,
				    "made by another version: it has no table %.60s",
				    table_type(tables_at(r->tables, k))->name);
	return ST_OK;
}

void partial_reader_release(struct partial_reader *r)
{
	free(r->texts);
	r->texts = NULL;
}
