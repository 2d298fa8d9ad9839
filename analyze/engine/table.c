/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/table.h"

#include "analyze/engine/hist.h"
#include "schemas/base/arena.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

struct table {
	struct tables *tables;
	const struct table_type *type;
	size_t keys, columns;
	union value **rows;    /* in the order in which they were added, which `index` refers to */
	union value **ordered; /* the first `ordered_count` rows in key order */
	size_t count, cap, ordered_cap, ordered_count;
	size_t gone_bytes; /* bytes of texts in removed rows, which the arena cannot free */
	struct hash_index index;
};

struct tables {
	struct arena arena;
	struct table *at;
	size_t count;
	const char **texts;
	size_t text_count, text_cap;
	struct hash_index text_index;
	struct hist **hists;
	size_t hist_count, hist_cap;
};

size_t table_keys(const struct table_type *type)
{
	size_t n = 0;

	while (type->columns[n].name && type->columns[n].combine == KEY)
		n++;
	return n;
}

size_t table_columns(const struct table_type *type)
{
	size_t n = 0;

	while (type->columns[n].name)
		n++;
	return n;
}

enum status tables_new(struct tables **out, const struct table_type *const *types, size_t ceiling,
		       struct error *err)
{
	struct tables *t;

	*out = NULL;
	TRY(vec_new(&t, 1, err));
	arena_init(&t->arena, ceiling);
	while (types[t->count])
		t->count++;
	t->at = calloc(t->count + 1, sizeof(*t->at));
	if (!t->at) {
		tables_free(t);
		return fail_memory(err);
	}
	for (size_t i = 0; i < t->count; i++)
		t->at[i] = (struct table){ .tables = t,
					   .type = types[i],
					   .keys = table_keys(types[i]),
					   .columns = table_columns(types[i]) };
	*out = t;
	return ST_OK;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->at && i < t->count; i++) {
		free(t->at[i].rows);
		free(t->at[i].ordered);
		hash_release(&t->at[i].index);
	}
	for (size_t i = 0; i < t->hist_count; i++)
		hist_free(t->hists[i]);
	free(t->hists);
	free(t->at);
	free(t->texts);
	hash_release(&t->text_index);
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
	for (size_t i = 0; i < t->count; i++)
		if (t->at[i].type->name[0] == name[0] && !strcmp(t->at[i].type->name, name))
			return &t->at[i];
	return NULL;
}

const struct table_type *table_type(const struct table *t)
{
	return t->type;
}

bool name_ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len >= end_len && !strcmp(name + len - end_len, end);
}

size_t table_column(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->columns; i++)
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
	return t ? t->count : 0;
}

/* Returns the tables' copy of a text; NULL if they have none. */
static const char *text_find(const struct tables *t, const char *text, uint64_t hash)
{
	uint32_t i;

	for (size_t at = hash_first(&t->text_index, hash);
	     (i = hash_item(&t->text_index, &at, hash)) != HASH_NONE;
	     at = hash_next(&t->text_index, at))
		if (!strcmp(t->texts[i], text))
			return t->texts[i];
	return NULL;
}

const char *table_text(struct table *table, const char *text, struct error *err)
{
	struct tables *t = table->tables;
	size_t len = strlen(text);
	uint64_t hash = hash_text(text, len);
	const char *known = text_find(t, text, hash);

	if (known)
		return known;
	char *copy = arena_text(&t->arena, text, len);
	if (!copy) {
		fail(err, ST_CEILING, NOWHERE, "the names of a report exceed its memory");
		return NULL;
	}
	if (vec_reserve(&t->texts, &t->text_cap, t->text_count + 1, err) != ST_OK ||
	    hash_add(&t->text_index, hash, (uint32_t)t->text_count, err) != ST_OK)
		return NULL;
	t->texts[t->text_count++] = copy;
	return copy;
}

struct hist *table_hist(struct table *table, struct error *err)
{
	struct tables *t = table->tables;
	struct hist *h = NULL;

	if (vec_reserve(&t->hists, &t->hist_cap, t->hist_count + 1, err) != ST_OK ||
	    hist_new(&h, err) != ST_OK)
		return NULL;
	t->hists[t->hist_count++] = h;
	return h;
}

/* Returns the value of a cell before anything was combined into it. */
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

enum { KEYS_MAX = 16 };

/* Returns the row with these keys, or NULL. Texts in `keys` must be the tables' copies, so that
 * equal keys have equal words. */
static union value *row_at(const struct table *t, const union value keys[KEYS_MAX], uint64_t *hash)
{
	uint32_t i;

	*hash = 0;
	for (size_t k = 0; k < t->keys; k++)
		*hash = hash_word(*hash, keys[k].u64);
	for (size_t at = hash_first(&t->index, *hash);
	     (i = hash_item(&t->index, &at, *hash)) != HASH_NONE; at = hash_next(&t->index, at))
		if (!memcmp(t->rows[i], keys, t->keys * sizeof(keys[0])))
			return t->rows[i];
	return NULL;
}

/* Like row_at(), for keys with any texts, which are not copied into the tables. */
static union value *row_find(const struct table *t, const union value *given)
{
	union value keys[KEYS_MAX];
	uint64_t hash;

	for (size_t k = 0; k < t->keys; k++) {
		const char *text = given[k].text;

		keys[k] = given[k];
		if (!column_is_text(&t->type->columns[k]) || !text)
			continue;
		keys[k].text = text_find(t->tables, text, hash_text(text, strlen(text)));
		if (!keys[k].text)
			return NULL;
	}
	return row_at(t, keys, &hash);
}

enum status table_row(struct table *t, const union value *given, union value **row,
		      struct error *err)
{
	union value keys[KEYS_MAX];
	uint64_t hash;

	for (size_t k = 0; k < t->keys; k++) {
		keys[k] = given[k];
		if (!column_is_text(&t->type->columns[k]) || !given[k].text)
			continue;
		keys[k].text = table_text(t, given[k].text, err);
		if (!keys[k].text)
			return ST_CEILING;
	}
	*row = row_at(t, keys, &hash);
	if (*row)
		return ST_OK;
	union value *made = arena_take(&t->tables->arena, t->columns * sizeof(*made), 0);
	if (!made)
		return fail(err, ST_CEILING, NOWHERE, "the rows of a report exceed its memory");
	memcpy(made, keys, t->keys * sizeof(*made));
	for (size_t i = t->keys; i < t->columns; i++)
		made[i] = neutral(&t->type->columns[i]);
	TRY(vec_reserve(&t->rows, &t->cap, t->count + 1, err));
	TRY(vec_reserve(&t->ordered, &t->ordered_cap, t->count + 1, err));
	TRY(hash_add(&t->index, hash, (uint32_t)t->count, err));
	t->rows[t->count++] = *row = made;
	return ST_OK;
}

enum status table_have(struct table *t, const union value *given, union value **row,
		       struct error *err)
{
	*row = row_find(t, given);
	return *row ? ST_OK
		    : fail(err, ST_FORMAT, NOWHERE,
			   "the tables are inconsistent: a row that %.60s should have is missing",
			   t->type->name);
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

	for (size_t i = 0; i < t->keys; i++) {
		int order = compare_value(&t->type->columns[i], a[i], b[i]);
		if (order)
			return order;
	}
	return 0;
}

union value *table_at(struct table *t, size_t index)
{
	if (!t)
		return NULL;
	if (t->ordered_count != t->count) {
		memcpy(t->ordered, t->rows, t->count * sizeof(*t->rows));
		qsort_r(t->ordered, t->count, sizeof(*t->ordered), compare_keys, t);
		t->ordered_count = t->count;
	}
	return index < t->count ? t->ordered[index] : NULL;
}

size_t table_group_end(struct table *t, size_t first, size_t keys)
{
	size_t end = first;

	/* the tables have one copy of each text, so equal texts have equal addresses */
	while (end < t->count &&
	       !memcmp(table_at(t, end), table_at(t, first), keys * sizeof(union value)))
		end++;
	return end;
}

uint64_t tables_sum(struct tables *all, const char *table, const char *column)
{
	struct table *t = tables_find(all, table);
	size_t count = t ? table_count(t) : 0, at = t ? table_column(t, column) : 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t more = table_at(t, i)[at].u64;
		if (more != NO_U64 && __builtin_add_overflow(sum, more, &sum))
			return UINT64_MAX; /* overflow: a damaged partial file */
	}
	return sum;
}

bool tables_any(struct tables *all, const char *table, const char *column)
{
	struct table *t = tables_find(all, table);
	size_t count = t ? table_count(t) : 0, at = t ? table_column(t, column) : 0;

	for (size_t i = 0; i < count; i++)
		if (table_at(t, i)[at].u64 == 1)
			return true;
	return false;
}

struct printed {
	struct table *table;
	size_t above, by, tie; /* number of the parent's keys; ordering columns */
};

static int compare_printed(const void *pa, const void *pb, void *self)
{
	const union value *a = *(union value *const *)pa, *b = *(union value *const *)pb;
	const struct printed *how = self;
	const struct column *columns = how->table->type->columns;
	int order;

	for (size_t i = 0; i < how->above; i++) {
		order = compare_value(&columns[i], a[i], b[i]);
		if (order)
			return order;
	}
	order = compare_value(&columns[how->by], b[how->by], a[how->by]);
	order = how->table->type->by ? order : -order;
	if (!order && how->table->type->tie) {
		uint64_t first = a[how->tie].u64 + 1, second = b[how->tie].u64 + 1; /* null: 0 */

		order = (second > first) - (second < first);
	}
	return order ? order : compare_keys(pa, pb, how->table);
}

void table_printed(struct table *t, union value **rows)
{
	struct printed how = { .table = t };

	for (size_t i = 0; i < t->count; i++)
		rows[i] = table_at(t, i);
	if ((!t->type->by && !t->type->since) || !t->count)
		return;
	how.above = t->type->under ? table_keys(t->type->under) : 0;
	how.by = table_column(t, t->type->by ? t->type->by : t->type->since);
	how.tie = t->type->tie ? table_column(t, t->type->tie) : 0;
	qsort_r(rows, t->count, sizeof(*rows), compare_printed, &how);
}

enum status table_combine(struct table *t, union value *row, size_t column, union value from,
			  struct error *err)
{
	const struct column *c = &t->type->columns[column];
	union value *into = &row[column];

	if (c->combine == DERIVED || c->combine == KEY)
		return ST_OK;
	if (column_is_text(c)) {
		int order = compare_value(c, *into, from);
		if (!from.text || (into->text && (c->combine == MIN ? order <= 0 : order >= 0)))
			return ST_OK;
		into->text = table_text(t, from.text, err);
		return into->text ? ST_OK : ST_CEILING;
	}
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

void table_clear(struct table *t)
{
	t->count = t->ordered_count = 0;
	hash_clear(&t->index);
}

enum status table_sift(struct table *t, table_keep_fn keep, void *self, struct error *err)
{
	size_t count = t->count;

	table_clear(t);
	for (size_t i = 0; i < count; i++) {
		bool is_kept;

		TRY(keep(self, t, t->rows[i], &is_kept, err));
		if (!is_kept)
			continue;
		uint64_t hash = 0;
		for (size_t k = 0; k < t->keys; k++)
			hash = hash_word(hash, t->rows[i][k].u64);
		TRY(hash_add(&t->index, hash, (uint32_t)t->count, err));
		t->rows[t->count++] = t->rows[i];
	}
	return ST_OK;
}

/* A table_keep_fn that removes the row `self` and counts its texts in gone_bytes. */
static enum status keep_not(void *self, struct table *t, union value *row, bool *is_kept,
			    struct error *err)
{
	(void)err;
	*is_kept = row != self;
	for (size_t k = t->keys; !*is_kept && k < t->columns; k++)
		if (column_is_text(&t->type->columns[k]) && row[k].text)
			t->gone_bytes += strlen(row[k].text);
	return ST_OK;
}

bool table_takes(const struct table *t, const union value *keys)
{
	return t->count < TABLE_NAMES || row_find(t, keys);
}

enum status table_accepts(struct table *t, const union value *keys, bool *is_accepted,
			  struct error *err)
{
	*is_accepted = true;
	if (!t->type->rows_most || t->count < t->type->rows_most)
		return ST_OK;
	union value *last = table_at(t, t->count - 1);
	int order = compare_keys(&keys, &last, t);
	*is_accepted = order <= 0;
	if (order >= 0)
		return ST_OK;
	const union value *known = row_find(t, keys);
	*is_accepted = known || t->gone_bytes < TABLE_GONE_MOST;
	return known || !*is_accepted ? ST_OK : table_sift(t, keep_not, last, err);
}

enum status table_merge(struct table *t, struct table *from, struct error *err)
{
	const union value *row;
	union value *mine;
	bool is_accepted;

	for (size_t r = 0; (row = table_at(from, r)); r++) {
		TRY(table_accepts(t, row, &is_accepted, err));
		if (!is_accepted)
			continue;
		TRY(table_row(t, row, &mine, err));
		for (size_t k = t->keys; k < t->columns; k++)
			TRY(table_combine(t, mine, k, row[k], err));
	}
	return ST_OK;
}

enum status tables_merge(struct tables *into, struct tables *from, struct error *err)
{
	for (size_t i = 0; i < into->count; i++)
		TRY(table_merge(&into->at[i], &from->at[i], err));
	return ST_OK;
}
