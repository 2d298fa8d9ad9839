/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/table.h"

#include "analyze/engine/hist.h"
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct column city_columns[] = {
	{ "country", "country", CELL_TEXT, KEY, NULL, "" },
	{ "number", "number", CELL_U64, KEY, NULL, "" },
	{ "sum", "sum", CELL_U64, SUM, NULL, "" },
	{ "least", "least", CELL_U64, MIN, NULL, "" },
	{ "most", "most", CELL_U64, MAX, NULL, "" },
	{ "word", "word", CELL_TEXT, MAX, NULL, "" },
	{ "lengths", NULL, CELL_HIST, HIST, NULL, "" },
	{ "share", "share", CELL_F64, DERIVED, NULL, "" },
	{ .name = NULL },
};
enum { NUMBER = 1, TOTAL, LEAST, MOST, WORD, LENGTHS, SHARE };
static const struct table_type cities = {
	.name = "cities", .member = "cities", .by = "sum", .columns = city_columns
};
static const struct table_type *const types[] = { &cities, NULL };

static struct tables *open_tables(size_t ceiling)
{
	struct tables *t = NULL;

	CHECK_OK(tables_new(&t, types, ceiling, NULL), NULL);
	return t;
}

static void add(struct tables *t, const char *country, uint64_t number, uint64_t value)
{
	struct table *table = tables_find(t, "cities");
	union value keys[2] = { { .text = country }, { .u64 = number } }, *row;
	struct error err = { 0 };
	char word[32];

	if (!CHECK_OK(table_row(table, keys, &row, &err), &err))
		return;
	row[TOTAL].u64 += value;
	row[LEAST].u64 = value < row[LEAST].u64 ? value : row[LEAST].u64;
	row[MOST].u64 = value > row[MOST].u64 ? value : row[MOST].u64;
	snprintf(word, sizeof(word), "w%llu", (unsigned long long)(value % 10));
	if (!row[WORD].text || strcmp(word, row[WORD].text) > 0)
		row[WORD].text = table_text(table, word, &err);
	if (!row[LENGTHS].hist)
		row[LENGTHS].hist = table_hist(table, &err);
	hist_put(row[LENGTHS].hist, value, NULL);
}

void test_table_sum_and_any(void)
{
	struct tables *t = open_tables(1 << 20);

	CHECK_U64(tables_sum(t, "cities", "sum"), 0);
	add(t, "a", 1, 40);
	add(t, "b", 1, 2);
	CHECK_U64(tables_sum(t, "cities", "sum"), 42);
	CHECK(!tables_any(t, "cities", "sum"));
	add(t, "c", 1, 1);
	CHECK(tables_any(t, "cities", "sum"));
	add(t, "d", 1, NO_U64);
	CHECK_U64(tables_sum(t, "cities", "sum"), 43); /* what is not known adds nothing */
	add(t, "e", 1, UINT64_MAX - 40);
	CHECK_U64(tables_sum(t, "cities", "sum"), UINT64_MAX); /* and it does not begin anew */
	CHECK_U64(tables_sum(t, "villages", "sum"), 0);
	CHECK(!tables_any(t, "villages", "sum"));
	tables_free(t);
}

/* Whole names only, of those that are listed. */
void test_table_null_texts(void)
{
	struct table_type type = { .name = "cities", .null_texts = "country words" };
	struct column column = { .name = "country", .cell = CELL_TEXT };
	static const struct {
		const char *name;
		bool may;
	} rows[] = { { "country", true }, { "words", true }, { "word", false },
		     { "count", false },  { "ords", false }, { "number", false } };
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		column.name = rows[i].name;
		CHECK(column_may_be_null(&type, &column) == rows[i].may);
	}
	type.null_texts = NULL;
	column.name = "country";
	CHECK(!column_may_be_null(&type, &column));
}

/* What is looked up is not made. */
void test_table_have(void)
{
	struct tables *t = open_tables(1 << 20);
	struct table *table = tables_find(t, "cities");
	union value keys[2] = { { .text = "a" }, { .u64 = 1 } }, *row = NULL;
	struct error err = { 0 };

	CHECK_U64(table_have(table, keys, &row, &err), ST_FORMAT);
	CHECK(strstr(err.text, "a row that cities should have is missing") != NULL);
	CHECK_U64(table_count(table), 0);
	add(t, "b", 1, 7);
	add(t, "a", 1, 42);
	CHECK(table_at(table, 0) != NULL); /* in order, which moves the rows */
	if (CHECK_OK(table_have(table, keys, &row, &err), &err))
		CHECK_U64(row[TOTAL].u64, 42);
	keys[NUMBER].u64 = 2;
	CHECK_U64(table_have(table, keys, &row, NULL), ST_FORMAT);
	CHECK_U64(table_count(table), 2);
	tables_free(t);
}

void test_table_rows_by_key(void)
{
	struct tables *t = open_tables(1 << 20);
	struct table *table = tables_find(t, "cities");
	union value *row;
	char country[8] = "b";

	add(t, country, 2, 10);
	country[0] = 'x'; /* keys are copied */
	add(t, "b", 2, 5);
	add(t, "b", 1, 7);
	add(t, "a", 9, 1);
	CHECK_U64(table_count(table), 3);
	row = table_at(table, 0);
	CHECK_STR(row[0].text, "a");
	row = table_at(table, 1);
	CHECK_U64(row[NUMBER].u64, 1);
	row = table_at(table, 2);
	CHECK_STR(row[0].text, "b");
	CHECK_U64(row[TOTAL].u64, 15);
	CHECK_U64(row[LEAST].u64, 5);
	CHECK_U64(row[MOST].u64, 10);
	CHECK(isnan(row[SHARE].f64));
	CHECK(table_at(table, 3) == NULL);
	add(t, "b", 2, 1); /* found again after rows were put in order */
	CHECK_U64(table_count(table), 3);
	CHECK_U64(table_at(table, 2)[TOTAL].u64, 16);
	CHECK(tables_find(t, "towns") == NULL);
	tables_free(t);
}

void test_table_prints_largest_first(void)
{
	struct tables *t = open_tables(1 << 20);
	union value *rows[3];

	add(t, "a", 1, 5);
	add(t, "b", 1, 50);
	add(t, "c", 1, 5);
	table_printed(tables_find(t, "cities"), rows);
	CHECK_STR(rows[0][0].text, "b");
	CHECK_STR(rows[1][0].text, "a"); /* equal: by key */
	CHECK_STR(rows[2][0].text, "c");
	tables_free(t);
}

/* The same rows from any number of parts in any order. */
void test_table_merges_alike(void)
{
	enum { PARTS = 5, ROWS = 400 };
	struct tables *whole = open_tables(1 << 24), *sum = open_tables(1 << 24), *parts[PARTS];
	struct table *a, *b;
	uint64_t seed = 3;
	size_t i, wrong = 0;
	char country[8];

	for (i = 0; i < PARTS; i++)
		parts[i] = open_tables(1 << 22);
	for (i = 0; i < ROWS; i++) {
		uint64_t r = random_u64(&seed);

		snprintf(country, sizeof(country), "c%u", (unsigned)(r % 7));
		add(whole, country, r >> 8 & 7, r >> 40);
		add(parts[r >> 32 & 3], country, r >> 8 & 7, r >> 40);
	}
	for (i = PARTS; i; i--) {
		CHECK_OK(tables_merge(sum, parts[i - 1], NULL), NULL);
		tables_free(parts[i - 1]);
	}
	a = tables_find(whole, "cities");
	b = tables_find(sum, "cities");
	CHECK_U64(table_count(b), table_count(a));
	for (i = 0; i < table_count(a); i++) {
		const union value *x = table_at(a, i), *y = table_at(b, i);

		wrong += strcmp(x[0].text, y[0].text) || x[NUMBER].u64 != y[NUMBER].u64 ||
			 x[TOTAL].u64 != y[TOTAL].u64 || x[LEAST].u64 != y[LEAST].u64 ||
			 x[MOST].u64 != y[MOST].u64 || strcmp(x[WORD].text, y[WORD].text) ||
			 hist_median(x[LENGTHS].hist) != hist_median(y[LENGTHS].hist);
	}
	CHECK_U64(wrong, 0);
	tables_free(whole);
	tables_free(sum);
}

void test_table_ceiling(void)
{
	struct tables *t = open_tables(4096);
	struct table *table = tables_find(t, "cities");
	union value keys[2] = { { .text = "somewhere" }, { .u64 = 0 } }, *row;
	struct error err = { 0 };
	enum status status = ST_OK;

	while (status == ST_OK && keys[1].u64 < 1000) {
		status = table_row(table, keys, &row, &err);
		keys[1].u64++;
	}
	CHECK_U64(status, ST_CEILING);
	CHECK(keys[1].u64 > 10);
	tables_free(t);
}
