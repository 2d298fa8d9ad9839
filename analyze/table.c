/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/table.h"

#include "analyze/hist.h"
#include "schemas/arena.h"
#include "schemas/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Slots of an open hash: index + 1 of what they stand for, 0 free. */
struct index {
	uint32_t *slots;
	size_t mask, used;
};

struct table {
	struct tables *tables;
	const struct table_type *type;
	size_t keys, columns;
	union value **rows; /* as made, or in key order when `sorted` */
	uint64_t *hashes;   /* of rows as made, while !sorted the same place */
	size_t count, cap;
	bool sorted;
	struct index index;
};

struct text {
	const char *text;
	uint64_t hash;
};

struct tables {
	struct arena arena;
	struct table *at;
	size_t count;
	struct text *texts;
	size_t text_count, text_cap;
	struct index text_index;
	struct hist **hists;
	size_t hist_count, hist_cap;
};

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for the tables of a report");
}

void *items_reach(void *items, size_t *cap, size_t count, size_t size, struct error *err)
{
	size_t more = *cap ? *cap : 16;
	char *wider;

	if (count < *cap)
		return items;
	while (more <= count)
		more *= 2;
	wider = realloc(items, more * size);
	if (!wider) {
		fail(err, ST_MEMORY, NOWHERE, "no memory for a report");
		return NULL;
	}
	memset(wider + *cap * size, 0, (more - *cap) * size);
	*cap = more;
	return wider;
}

static void index_add(struct index *x, uint64_t hash, uint32_t item)
{
	size_t at = hash & x->mask;

	while (x->slots[at])
		at = (at + 1) & x->mask;
	x->slots[at] = item + 1;
	x->used++;
}

/* Twice the slots, empty: the caller adds its items again. */
static enum status index_grow(struct index *x, struct error *err)
{
	size_t count = x->slots ? (x->mask + 1) * 2 : 32;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return no_memory(err);
	free(x->slots);
	*x = (struct index){ .slots = slots, .mask = count - 1 };
	return ST_OK;
}

static bool index_is_full(const struct index *x)
{
	return !x->slots || x->used * 3 >= (x->mask + 1) * 2;
}

static size_t count_columns(const struct table_type *type, bool keys_only)
{
	size_t n = 0;

	while (type->columns[n].name && (!keys_only || type->columns[n].combine == KEY))
		n++;
	return n;
}

size_t table_keys(const struct table_type *type)
{
	return count_columns(type, true);
}

size_t table_columns(const struct table_type *type)
{
	return count_columns(type, false);
}

enum status tables_new(struct tables **out, const struct table_type *const *types, size_t ceiling,
		       struct error *err)
{
	struct tables *t = calloc(1, sizeof(*t));
	size_t i;

	*out = NULL;
	if (!t)
		return no_memory(err);
	arena_init(&t->arena, ceiling);
	while (types[t->count])
		t->count++;
	t->at = calloc(t->count + 1, sizeof(*t->at));
	if (!t->at) {
		tables_free(t);
		return no_memory(err);
	}
	for (i = 0; i < t->count; i++)
		t->at[i] = (struct table){ .tables = t, .type = types[i],
					   .keys = table_keys(types[i]),
					   .columns = table_columns(types[i]) };
	*out = t;
	return ST_OK;
}

void tables_free(struct tables *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; t->at && i < t->count; i++) {
		free(t->at[i].rows);
		free(t->at[i].hashes);
		free(t->at[i].index.slots);
	}
	for (i = 0; i < t->hist_count; i++)
		hist_free(t->hists[i]);
	free(t->hists);
	free(t->at);
	free(t->texts);
	free(t->text_index.slots);
	arena_release(&t->arena);
	free(t);
}

size_t tables_count(const struct tables *t)
{
	return t->count;
}

struct table *tables_at(const struct tables *t, size_t index)
{
	return index < t->count ? &t->at[index] : NULL;
}

struct table *tables_find(const struct tables *t, const char *name)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		if (!strcmp(t->at[i].type->name, name))
			return &t->at[i];
	return NULL;
}

const struct table_type *table_type(const struct table *t)
{
	return t->type;
}

size_t table_column(const struct table *t, const char *name)
{
	size_t i;

	for (i = 0; i < t->columns; i++)
		if (!strcmp(t->type->columns[i].name, name))
			return i;
	return 0;
}

bool column_may_be_null(const struct table_type *type, const struct column *column)
{
	const char *at = type->null_texts;
	size_t len = strlen(column->name);

	for (; at && *at; at += strcspn(at, " "), at += *at == ' ')
		if (!strncmp(at, column->name, len) && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

size_t table_count(const struct table *t)
{
	return t->count;
}

static enum status texts_reach(struct tables *t, struct error *err)
{
	struct text *texts = items_reach(t->texts, &t->text_cap, t->text_count, sizeof(*texts), err);
	size_t i;

	if (!texts)
		return ST_MEMORY;
	t->texts = texts;
	if (!index_is_full(&t->text_index))
		return ST_OK;
	TRY(index_grow(&t->text_index, err));
	for (i = 0; i < t->text_count; i++)
		index_add(&t->text_index, t->texts[i].hash, (uint32_t)i);
	return ST_OK;
}

const char *table_text(struct table *table, const char *text, struct error *err)
{
	struct tables *t = table->tables;
	size_t len = strlen(text), at;
	uint64_t hash = hash_text(text, len);
	char *copy;

	if (texts_reach(t, err) != ST_OK)
		return NULL;
	for (at = hash & t->text_index.mask; t->text_index.slots[at];
	     at = (at + 1) & t->text_index.mask) {
		const struct text *have = &t->texts[t->text_index.slots[at] - 1];

		if (have->hash == hash && !strcmp(have->text, text))
			return have->text;
	}
	copy = arena_text(&t->arena, text, len);
	if (!copy) {
		fail(err, ST_CEILING, NOWHERE, "the names of a report pass its memory");
		return NULL;
	}
	t->texts[t->text_count] = (struct text){ copy, hash };
	index_add(&t->text_index, hash, (uint32_t)t->text_count++);
	return copy;
}

struct hist *table_hist(struct table *table, struct error *err)
{
	struct tables *t = table->tables;
	struct hist *h = NULL, **hists;

	hists = items_reach(t->hists, &t->hist_cap, t->hist_count, sizeof(*hists), err);
	if (!hists)
		return NULL;
	t->hists = hists;
	if (hist_new(&h, err) != ST_OK)
		return NULL;
	t->hists[t->hist_count++] = h;
	return h;
}

static union value neutral(const struct column *c)
{
	if (c->cell == CELL_F64)
		return (union value){ .f64 = NAN };
	if (column_is_text(c))
		return (union value){ .text = NULL };
	if (c->cell == CELL_HIST)
		return (union value){ .hist = NULL };
	return (union value){ .u64 = c->combine == MIN || c->combine == DERIVED ? NO_U64 : 0 };
}

static uint64_t row_hash(const struct table *t, const union value *row)
{
	uint64_t hash = 0;
	size_t i;

	for (i = 0; i < t->keys; i++)
		hash = hash_word(hash, row[i].u64);
	return hash;
}

/* Keys with texts as the tables hold them, so that equal keys have equal words. */
static enum status keys_take(struct table *t, const union value *given, union value *keys,
			     uint64_t *hash, struct error *err)
{
	size_t i;

	for (i = 0; i < t->keys; i++) {
		keys[i] = given[i];
		if (column_is_text(&t->type->columns[i]) && given[i].text) {
			keys[i].text = table_text(t, given[i].text, err);
			if (!keys[i].text)
				return ST_CEILING;
		}
	}
	*hash = row_hash(t, keys);
	return ST_OK;
}

/* The index over all rows, which may have been moved by sorting. */
static enum status rows_index(struct table *t, struct error *err)
{
	size_t i;

	if (index_is_full(&t->index))
		TRY(index_grow(&t->index, err));
	else
		memset(t->index.slots, 0, (t->index.mask + 1) * sizeof(*t->index.slots));
	t->index.used = 0;
	for (i = 0; i < t->count; i++) {
		if (t->sorted)
			t->hashes[i] = row_hash(t, t->rows[i]);
		index_add(&t->index, t->hashes[i], (uint32_t)i);
	}
	t->sorted = false;
	return ST_OK;
}

static enum status rows_reach(struct table *t, struct error *err)
{
	size_t cap = t->cap;
	union value **rows = items_reach(t->rows, &cap, t->count, sizeof(*rows), err);
	uint64_t *hashes;

	if (!rows)
		return ST_MEMORY;
	t->rows = rows;
	hashes = items_reach(t->hashes, &t->cap, t->count, sizeof(*hashes), err);
	if (!hashes)
		return ST_MEMORY;
	t->hashes = hashes;
	return index_is_full(&t->index) || t->sorted ? rows_index(t, err) : ST_OK;
}

static enum status row_add(struct table *t, const union value *keys, uint64_t hash,
			   union value **out, struct error *err)
{
	union value *row = arena_take(&t->tables->arena, t->columns * sizeof(*row), 0);
	size_t i;

	if (!row)
		return fail(err, ST_CEILING, NOWHERE, "the rows of a report pass its memory");
	memcpy(row, keys, t->keys * sizeof(*row));
	for (i = t->keys; i < t->columns; i++)
		row[i] = neutral(&t->type->columns[i]);
	t->rows[t->count] = row;
	t->hashes[t->count] = hash;
	index_add(&t->index, hash, (uint32_t)t->count++);
	*out = row;
	return ST_OK;
}

enum { KEYS_MAX = 16 };

static union value *row_find(const struct table *t, const union value *keys, uint64_t hash)
{
	size_t at;

	for (at = hash & t->index.mask; t->index.slots[at]; at = (at + 1) & t->index.mask) {
		size_t i = t->index.slots[at] - 1;

		if (t->hashes[i] == hash && !memcmp(t->rows[i], keys, t->keys * sizeof(keys[0])))
			return t->rows[i];
	}
	return NULL;
}

enum status table_row(struct table *t, const union value *given, union value **row,
		      struct error *err)
{
	union value keys[KEYS_MAX];
	uint64_t hash;

	TRY(keys_take(t, given, keys, &hash, err));
	TRY(rows_reach(t, err));
	*row = row_find(t, keys, hash);
	return *row ? ST_OK : row_add(t, keys, hash, row, err);
}

enum status table_have(struct table *t, const union value *given, union value **row,
		       struct error *err)
{
	union value keys[KEYS_MAX];
	uint64_t hash;

	TRY(keys_take(t, given, keys, &hash, err));
	TRY(rows_reach(t, err));
	*row = row_find(t, keys, hash);
	return *row ? ST_OK : fail(err, ST_FORMAT, NOWHERE, "the tables do not add up: %.60s has "
				   "no row for what another names", t->type->name);
}

static int compare_value(const struct column *c, union value a, union value b)
{
	if (column_is_text(c))
		return a.text == b.text ? 0 : !a.text ? -1 : !b.text ? 1 : strcmp(a.text, b.text);
	if (c->cell == CELL_F64)
		return (a.f64 > b.f64) - (a.f64 < b.f64);
	return (a.u64 > b.u64) - (a.u64 < b.u64);
}

static int compare_keys(const void *pa, const void *pb, void *self)
{
	const union value *a = *(union value *const *)pa, *b = *(union value *const *)pb;
	const struct table *t = self;
	size_t i;
	int order;

	for (i = 0; i < t->keys; i++) {
		order = compare_value(&t->type->columns[i], a[i], b[i]);
		if (order)
			return order;
	}
	return 0;
}

union value *table_at(struct table *t, size_t index)
{
	if (!t->sorted && t->count)
		qsort_r(t->rows, t->count, sizeof(*t->rows), compare_keys, t);
	t->sorted = true;
	return index < t->count ? t->rows[index] : NULL;
}

uint64_t tables_sum(struct tables *all, const char *table, const char *column)
{
	struct table *t = tables_find(all, table);
	size_t count = t ? table_count(t) : 0, at = t ? table_column(t, column) : 0, i;
	uint64_t sum = 0, more;

	for (i = 0; i < count; i++) {
		more = table_at(t, i)[at].u64;
		if (more != NO_U64 && __builtin_add_overflow(sum, more, &sum))
			return UINT64_MAX; /* a damaged partial file */
	}
	return sum;
}

bool tables_any(struct tables *all, const char *table, const char *column)
{
	struct table *t = tables_find(all, table);
	size_t count = t ? table_count(t) : 0, at = t ? table_column(t, column) : 0, i;

	for (i = 0; i < count; i++)
		if (table_at(t, i)[at].u64 == 1)
			return true;
	return false;
}

struct printed {
	struct table *table;
	size_t above, by; /* keys of the row above; the column that orders */
};

static int compare_printed(const void *pa, const void *pb, void *self)
{
	const union value *a = *(union value *const *)pa, *b = *(union value *const *)pb;
	const struct printed *how = self;
	const struct column *columns = how->table->type->columns;
	size_t i;
	int order;

	for (i = 0; i < how->above; i++) {
		order = compare_value(&columns[i], a[i], b[i]);
		if (order)
			return order;
	}
	order = compare_value(&columns[how->by], b[how->by], a[how->by]);
	order = how->table->type->by ? order : -order;
	return order ? order : compare_keys(pa, pb, how->table);
}

void table_printed(struct table *t, union value **rows)
{
	struct printed how = { .table = t };
	size_t i;

	for (i = 0; i < t->count; i++)
		rows[i] = table_at(t, i);
	if ((!t->type->by && !t->type->since) || !t->count)
		return;
	how.above = t->type->under ? table_keys(t->type->under) : 0;
	how.by = table_column(t, t->type->by ? t->type->by : t->type->since);
	qsort_r(rows, t->count, sizeof(*rows), compare_printed, &how);
}

static enum status combine_text(struct table *t, const struct column *c, union value *into,
				union value from, struct error *err)
{
	int order = compare_value(c, *into, from);

	if (!from.text || (into->text && (c->combine == MIN ? order <= 0 : order >= 0)))
		return ST_OK;
	into->text = table_text(t, from.text, err);
	return into->text ? ST_OK : ST_CEILING;
}

static enum status combine_value(struct table *t, const struct column *c, union value *into,
				 union value from, struct error *err)
{
	if (c->combine == DERIVED || c->combine == KEY)
		return ST_OK;
	if (column_is_text(c))
		return combine_text(t, c, into, from, err);
	if (c->combine == HIST) {
		if (!from.hist)
			return ST_OK;
		if (!into->hist)
			into->hist = table_hist(t, err);
		return into->hist ? hist_merge(into->hist, from.hist, err) : ST_MEMORY;
	}
	if (c->combine == SUM)
		into->u64 += from.u64;
	else if (c->combine == MIN ? from.u64 < into->u64 : from.u64 > into->u64)
		into->u64 = from.u64;
	return ST_OK;
}

enum status table_combine(struct table *t, union value *row, size_t column, union value v,
			  struct error *err)
{
	return combine_value(t, &t->type->columns[column], &row[column], v, err);
}

void table_clear(struct table *t)
{
	t->count = t->index.used = 0;
	t->sorted = false;
	if (t->index.slots)
		memset(t->index.slots, 0, (t->index.mask + 1) * sizeof(*t->index.slots));
}

static enum status table_merge(struct table *into, struct table *from, struct error *err)
{
	const union value *row;
	union value *mine;
	size_t i, k;

	for (i = 0; (row = table_at(from, i)); i++) {
		TRY(table_row(into, row, &mine, err));
		for (k = into->keys; k < into->columns; k++)
			TRY(combine_value(into, &into->type->columns[k], &mine[k], row[k], err));
	}
	return ST_OK;
}

enum status tables_merge(struct tables *into, struct tables *from, struct error *err)
{
	size_t i;

	for (i = 0; i < into->count; i++)
		TRY(table_merge(&into->at[i], &from->at[i], err));
	return ST_OK;
}
