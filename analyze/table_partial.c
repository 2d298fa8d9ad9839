/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/table_partial.h"

#include "analyze/hist.h"
#include "schemas/hash.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_NONE, TEXT_NEW, TEXT_FIRST, COLUMNS_MAX = 64 };

/* ---- writing ---------------------------------------------------------------------------- */

static bool slots_reach(struct partial_writer *w)
{
	size_t count = w->slots ? (w->mask + 1) * 2 : 256, at, i;
	uint32_t *slots;

	if (w->slots && w->count * 3 < (w->mask + 1) * 2)
		return true;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return false;
	free(w->slots);
	w->slots = slots;
	w->mask = count - 1;
	for (i = 0; i < w->count; i++) {
		at = hash_text(w->texts[i], strlen(w->texts[i])) & w->mask;
		while (slots[at])
			at = (at + 1) & w->mask;
		slots[at] = (uint32_t)i + 1;
	}
	return true;
}

static bool texts_reach(struct partial_writer *w)
{
	size_t cap = w->cap ? w->cap * 2 : 128;
	const char **texts;

	if (w->count < w->cap)
		return slots_reach(w);
	texts = realloc(w->texts, cap * sizeof(*texts));
	if (!texts)
		return false;
	w->texts = texts;
	w->cap = cap;
	return slots_reach(w);
}

void partial_put_text(struct partial_writer *w, const char *text)
{
	size_t len = text ? strlen(text) : 0, at;

	if (!text || w->status != ST_OK) {
		buf_put_varint(w->out, TEXT_NONE);
		return;
	}
	if (!texts_reach(w)) {
		w->status = ST_MEMORY;
		return;
	}
	for (at = hash_text(text, len) & w->mask; w->slots[at]; at = (at + 1) & w->mask)
		if (!strcmp(w->texts[w->slots[at] - 1], text)) {
			buf_put_varint(w->out, TEXT_FIRST + w->slots[at] - 1);
			return;
		}
	w->texts[w->count] = text;
	w->slots[at] = (uint32_t)++w->count;
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
	size_t columns = table_columns(type), count = 0, i, k;
	const union value *row;

	partial_put_text(w, type->name);
	for (k = 0; k < columns; k++)
		count += type->columns[k].combine != DERIVED;
	buf_put_varint(w->out, count);
	for (k = 0; k < columns; k++) {
		if (type->columns[k].combine == DERIVED)
			continue;
		partial_put_text(w, type->columns[k].name);
		buf_put_byte(w->out, (uint8_t)type->columns[k].cell);
		buf_put_byte(w->out, (uint8_t)type->columns[k].combine);
	}
	buf_put_varint(w->out, table_count(t));
	for (i = 0; (row = table_at(t, i)); i++)
		for (k = 0; k < columns; k++)
			if (type->columns[k].combine != DERIVED)
				put_value(w, &type->columns[k], row[k]);
}

void partial_put_tables(struct partial_writer *w, const struct tables *tables)
{
	size_t i;

	buf_put_varint(w->out, tables_count(tables));
	for (i = 0; i < tables_count(tables); i++)
		put_table(w, tables_at(tables, i));
}

enum status partial_writer_release(struct partial_writer *w, struct error *err)
{
	free(w->texts);
	free(w->slots);
	w->texts = NULL;
	w->slots = NULL;
	if (w->status != ST_OK)
		return fail(err, w->status, NOWHERE, "no memory for a partial result");
	return buf_status(w->out, err);
}

/* ---- reading ---------------------------------------------------------------------------- */

static enum status cut_off(struct error *err)
{
	return fail(err, ST_FORMAT, NOWHERE, "the tables do not add up");
}

static enum status text_add(struct partial_reader *r, const char *bytes, size_t len,
			    struct error *err)
{
	size_t cap = r->cap ? r->cap * 2 : 128;
	struct partial_text *texts;

	if (r->count == r->cap) {
		texts = realloc(r->texts, cap * sizeof(*texts));
		if (!texts)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for a partial result");
		r->texts = texts;
		r->cap = cap;
	}
	r->texts[r->count++] = (struct partial_text){ bytes, len, NULL };
	return ST_OK;
}

/* Held by the tables from the first time that it is wanted. */
static enum status text_hold(struct partial_reader *r, struct partial_text *of, const char **text,
			     struct error *err)
{
	char *copy;

	if (!of->text) {
		copy = strndup(of->bytes, of->len);
		if (!copy)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for a partial result");
		of->text = table_text(tables_at(r->tables, 0), copy, err);
		free(copy);
	}
	*text = of->text;
	return of->text ? ST_OK : ST_CEILING;
}

static enum status text_find(struct partial_reader *r, struct partial_text **of, struct error *err)
{
	uint64_t what = take_varint(&r->in), len;
	const char *bytes;

	*of = NULL;
	if (what >= TEXT_FIRST) {
		if (what - TEXT_FIRST >= r->count)
			return cut_off(err);
		*of = &r->texts[what - TEXT_FIRST];
		return ST_OK;
	}
	if (what == TEXT_NONE)
		return r->in.cut ? cut_off(err) : ST_OK;
	len = take_varint(&r->in);
	bytes = take_text(&r->in, len);
	if (!bytes || len > PARTIAL_TEXT_MAX || memchr(bytes, 0, (size_t)len))
		return cut_off(err);
	TRY(text_add(r, bytes, (size_t)len, err));
	*of = &r->texts[r->count - 1];
	return ST_OK;
}

enum status partial_take_text(struct partial_reader *r, const char **text, struct error *err)
{
	struct partial_text *of;

	*text = NULL;
	TRY(text_find(r, &of, err));
	return of ? text_hold(r, of, text, err) : ST_OK;
}

struct read_column {
	uint8_t cell, combine;
	size_t place; /* in our rows */
	bool is_known;
};

static enum status take_column(struct partial_reader *r, const struct table *t,
			       struct read_column *c, struct error *err)
{
	const char *name;
	size_t place, columns;

	TRY(partial_take_text(r, &name, err));
	c->cell = take_u8(&r->in);
	c->combine = take_u8(&r->in);
	c->is_known = false;
	c->place = 0;
	if (r->in.cut || !name || c->cell > CELL_HIST || c->combine >= DERIVED ||
	    (c->cell == CELL_HIST) != (c->combine == HIST))
		return cut_off(err);
	columns = t ? table_columns(table_type(t)) : 0;
	for (place = 0; place < columns; place++)
		if (!strcmp(table_type(t)->columns[place].name, name))
			break;
	if (place == columns)
		return ST_OK;
	if (table_type(t)->columns[place].cell != (enum cell)c->cell ||
	    table_type(t)->columns[place].combine != (enum combine)c->combine)
		return fail(err, ST_FORMAT, NOWHERE, "made by another version: %.40s of %.40s "
			    "differs", name, table_type(t)->name);
	c->is_known = true;
	c->place = place;
	return ST_OK;
}

/* Each of ours once. */
static enum status columns_check(const struct table *t, const struct read_column *columns,
				 size_t count, struct error *err)
{
	const struct table_type *type = table_type(t);
	size_t place, i, times;

	for (place = 0; place < table_columns(type); place++) {
		if (type->columns[place].combine == DERIVED)
			continue;
		for (times = 0, i = 0; i < count; i++)
			times += columns[i].is_known && columns[i].place == place;
		if (times != 1)
			return fail(err, ST_FORMAT, NOWHERE,
				    "made by another version: %.40s of %.40s is not there",
				    type->columns[place].name, type->name);
	}
	return ST_OK;
}

static enum status take_hist(struct partial_reader *r, struct hist **out, struct error *err)
{
	uint64_t is_there = take_varint(&r->in);

	*out = NULL;
	if (!is_there)
		return ST_OK;
	if (is_there != 1)
		return cut_off(err);
	TRY(hist_new(out, err));
	TRY(hist_decode(*out, &r->in, err));
	r->hist_bytes += hist_bytes(*out);
	if (r->hist_bytes > r->ceiling)
		return fail(err, ST_CEILING, NOWHERE, "the histograms pass the memory of a report");
	return ST_OK;
}

static enum status take_value(struct partial_reader *r, uint8_t cell, bool is_known,
			      union value *v, struct error *err)
{
	struct partial_text *of;

	if ((cell == CELL_TEXT || cell == CELL_WORDS) && is_known)
		return partial_take_text(r, &v->text, err);
	if (cell == CELL_TEXT || cell == CELL_WORDS)
		return text_find(r, &of, err);
	if (cell == CELL_HIST)
		return take_hist(r, &v->hist, err);
	v->u64 = take_varint(&r->in) - 1;
	if (cell == CELL_BOOL && v->u64 > 1 && v->u64 != NO_U64)
		return cut_off(err);
	return r->in.cut ? cut_off(err) : ST_OK;
}

static void hists_free(const struct read_column *columns, size_t count, const union value *read)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (columns[i].cell == CELL_HIST)
			hist_free(read[i].hist);
}

/* Who finishes and prints relies on the texts of a row, and on making some tables alone. */
static bool row_can_be(const struct table_type *type, const struct read_column *columns,
		       size_t count, const union value *read)
{
	const struct column *ours;
	size_t i;

	for (i = 0; i < count; i++) {
		ours = &type->columns[columns[i].place];
		if (columns[i].is_known && column_is_text(ours) && !read[i].text &&
		    !column_may_be_null(type, ours))
			return false;
	}
	return !type->is_finished;
}

static enum status row_add(struct table *t, const struct read_column *columns, size_t count,
			   const union value *read, struct error *err)
{
	const struct table_type *type = table_type(t);
	union value keys[COLUMNS_MAX], *row;
	size_t i;

	if (!row_can_be(type, columns, count, read))
		return cut_off(err);
	for (i = 0; i < count; i++)
		if (columns[i].is_known && columns[i].combine == KEY)
			keys[columns[i].place] = read[i];
	TRY(table_row(t, keys, &row, err));
	for (i = 0; i < count; i++)
		if (columns[i].is_known && type->columns[columns[i].place].combine != KEY)
			TRY(table_combine(t, row, columns[i].place, read[i], err));
	return ST_OK;
}

static enum status take_row(struct partial_reader *r, struct table *t,
			    const struct read_column *columns, size_t count, struct error *err)
{
	union value read[COLUMNS_MAX] = { { .u64 = 0 } };
	enum status status = ST_OK;
	size_t i;

	for (i = 0; i < count && status == ST_OK; i++)
		status = take_value(r, columns[i].cell, columns[i].is_known, &read[i], err);
	if (status == ST_OK && t)
		status = row_add(t, columns, count, read, err);
	hists_free(columns, count, read);
	return status;
}

/* *t: which it was; NULL: none of ours. */
static enum status take_table(struct partial_reader *r, struct table **t, struct error *err)
{
	struct read_column columns[COLUMNS_MAX];
	const char *name;
	uint64_t count, rows, i;

	*t = NULL;
	TRY(partial_take_text(r, &name, err));
	count = take_varint(&r->in);
	if (!name || !count || count > COLUMNS_MAX)
		return cut_off(err);
	*t = tables_find(r->tables, name);
	for (i = 0; i < count; i++)
		TRY(take_column(r, *t, &columns[i], err));
	if (*t)
		TRY(columns_check(*t, columns, (size_t)count, err));
	rows = take_varint(&r->in);
	for (i = 0; i < rows && !r->in.cut; i++)
		TRY(take_row(r, *t, columns, (size_t)count, err));
	return r->in.cut ? cut_off(err) : ST_OK;
}

enum status partial_take_tables(struct partial_reader *r, struct error *err)
{
	uint64_t count = take_varint(&r->in), i;
	size_t ours = tables_count(r->tables), k;
	bool *seen = calloc(ours + 1, sizeof(*seen));
	enum status status = ST_OK;
	struct table *t;

	if (!seen)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a partial result");
	for (i = 0; i < count && status == ST_OK; i++) {
		status = take_table(r, &t, err);
		for (k = 0; k < ours && status == ST_OK; k++) {
			if (tables_at(r->tables, k) != t)
				continue;
			if (seen[k])
				status = cut_off(err);
			seen[k] = true;
		}
	}
	for (k = 0; k < ours && status == ST_OK; k++)
		if (!seen[k])
			status = fail(err, ST_FORMAT, NOWHERE,
				      "made by another version: it has no table %.60s",
				      table_type(tables_at(r->tables, k))->name);
	free(seen);
	return status;
}

void partial_reader_release(struct partial_reader *r)
{
	free(r->texts);
	r->texts = NULL;
}
