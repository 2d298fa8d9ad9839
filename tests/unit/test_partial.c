/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/partial.h"
#include "analyze/engine/hist.h"
#include "analyze/engine/table_partial.h"
#include "analyze/report/report_list.h"
#include "schemas/base/crc32c.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct report_type *const asked[] = { &report_kernels, &report_steps, NULL };
enum { CEILING = 1 << 24 };

static void add_kernel(struct engine_result *r, uint64_t rank, const char *name, uint64_t first,
		       size_t count)
{
	struct table *t = tables_find(r->tables, "kernels");
	union value keys[4] = { { .u64 = rank },
				{ .text = "node" },
				{ .u64 = 7 + rank },
				{ .text = name } },
		    *row;
	size_t lengths = table_column(t, "lengths"), i;

	if (!CHECK_OK(table_row(t, keys, &row, NULL), NULL))
		return;
	if (!row[lengths].hist)
		row[lengths].hist = table_hist(t, NULL);
	for (i = 0; i < count; i++) {
		hist_put(row[lengths].hist, first + i * i * 1000, NULL);
		row[table_column(t, "count")].u64++;
	}
	row[table_column(t, "class")].text = table_text(t, "compute", NULL);
}

/* Rank 0 has few lengths, others many; `wrong`: its input could not be read to its end. */
static void result_make(struct engine_result *r, uint64_t rank, bool wrong)
{
	struct engine_outcome o = { .is_in_tables = true };
	struct engine_window w = {
		.rank = rank, .host = "node", .pid = 7 + rank, .begin_ns = 100, .end_ns = 900
	};
	char path[32];

	snprintf(path, sizeof(path), "rank%llu.json", (unsigned long long)rank);
	CHECK_OK(engine_result_init(r, asked, CEILING, NULL), NULL);
	if (wrong)
		o.status = fail(&o.error, ST_TRUNCATED, 55, "it ends");
	CHECK_OK(engine_result_input(r, path, &o, NULL), NULL);
	CHECK_OK(engine_result_window(r, &w, NULL), NULL);
	add_kernel(r, rank, "gemm", 5, rank ? 400 : 3);
	add_kernel(r, rank, "a \"name\", with | and \xff", 1u << 20, 20);
}

static void bytes_make(struct buf *out, uint64_t rank, bool wrong, const char *settings)
{
	struct engine_result r;

	buf_init(out, CEILING);
	result_make(&r, rank, wrong);
	CHECK_OK(engine_partial_put(&r, settings, out, NULL), NULL);
	engine_result_release(&r);
}

/* What is read and written again. */
static enum status again(const void *bytes, size_t len, struct buf *out, struct error *err)
{
	struct engine_result r;
	const char *settings = NULL;
	enum status status = engine_result_init(&r, asked, CEILING, err);

	if (status == ST_OK)
		status = engine_partial_take(&r, bytes, len, CEILING, &settings, err);
	if (status == ST_OK && out)
		status = engine_partial_put(&r, settings, out, err);
	engine_result_release(&r);
	return status;
}

void test_partial_round(void)
{
	struct error err = { 0 };
	struct buf one, other;

	bytes_make(&one, 3, true, "all");
	buf_init(&other, CEILING);
	CHECK_OK(again(one.data, one.len, &other, &err), &err);
	if (CHECK_U64(other.len, one.len))
		CHECK_MEM(other.data, one.data, one.len);
	buf_release(&one);
	buf_release(&other);
}

/* Tables and columns that are the same in any order of partial results. */
void test_partial_orders(void)
{
	static const int orders[][3] = { { 0, 1, 2 }, { 2, 0, 1 }, { 1, 2, 0 } };
	struct buf parts[3], tables[3];
	size_t i, k;

	for (i = 0; i < 3; i++)
		bytes_make(&parts[i], i / 2, false, "all"); /* two of rank 0: their lengths add */
	for (k = 0; k < 3; k++) {
		struct engine_result r;
		struct partial_writer w = { .out = &tables[k] };
		const char *settings = NULL;

		buf_init(&tables[k], CEILING);
		CHECK_OK(engine_result_init(&r, asked, CEILING, NULL), NULL);
		for (i = 0; i < 3; i++)
			CHECK_OK(engine_partial_take(&r, parts[orders[k][i]].data,
						     parts[orders[k][i]].len, CEILING, &settings,
						     NULL),
				 NULL);
		partial_put_tables(&w, r.tables);
		CHECK_OK(partial_writer_release(&w, NULL), NULL);
		engine_result_release(&r);
		CHECK(tables[k].len == tables[0].len &&
		      !memcmp(tables[k].data, tables[0].data, tables[0].len));
	}
	for (i = 0; i < 3; i++) {
		buf_release(&parts[i]);
		buf_release(&tables[i]);
	}
}

/* A hostile file whose call paths go in a circle: each node is above the other. */
void test_partial_circle(void)
{
	static const struct report_type *const stacks[] = { &report_stacks, NULL };
	struct engine_result r;
	union value keys[] = { { .u64 = 0 },          { .text = "node" }, { .u64 = 7 },
			       { .u64 = 0 },          { .u64 = 0 },       { .text = "gemm" },
			       { .text = "gpu_work" } },
		    *row;

	CHECK_OK(engine_result_init(&r, stacks, CEILING, NULL), NULL);
	CHECK_OK(engine_result_input(&r, "a", &(struct engine_outcome){ .is_in_tables = true },
				     NULL),
		 NULL);
	struct table *t = tables_find(r.tables, "paths");
	CHECK_U64(table_keys(table_type(t)), sizeof(keys) / sizeof(keys[0]));
	for (uint64_t i = 1; i <= 2; i++) {
		keys[3].u64 = i;
		keys[4].u64 = 3 - i;
		if (CHECK_OK(table_row(t, keys, &row, NULL), NULL))
			row[table_column(t, "gpu_ns")].u64 = 5;
	}
	CHECK_OK(engine_result_finish(&r, false, NULL), NULL);
	CHECK(table_count(tables_find(r.tables, "stacks")) > 0);
	engine_result_release(&r);
}

void test_partial_cut(void)
{
	struct buf whole;
	size_t len, refused = 0;

	bytes_make(&whole, 1, false, "all");
	for (len = 0; len < whole.len; len++)
		refused += again(whole.data, len, NULL, NULL) != ST_OK;
	CHECK_U64(refused, whole.len);
	buf_release(&whole);
}

static void sign(uint8_t *bytes, size_t len)
{
	put_u64(bytes + 16, len - PARTIAL_HEADER_BYTES);
	put_u32(bytes + 12, crc32c(0, bytes + PARTIAL_HEADER_BYTES, len - PARTIAL_HEADER_BYTES));
}

/* Cut and damaged bodies whose checksum is right: read or refused, never worse. */
void test_partial_hostile(void)
{
	struct buf whole;
	uint8_t *copy;
	uint32_t seed = 1;
	size_t len, i, k, refused = 0;

	bytes_make(&whole, 1, false, "all");
	copy = malloc(whole.len);
	for (len = PARTIAL_HEADER_BYTES; copy && len < whole.len; len++) {
		memcpy(copy, whole.data, len);
		sign(copy, len);
		refused += again(copy, len, NULL, NULL) != ST_OK;
	}
	CHECK_U64(refused, whole.len - PARTIAL_HEADER_BYTES);
	for (refused = 0, i = 0; copy && i < 2000; i++) {
		memcpy(copy, whole.data, whole.len);
		for (k = 0; k < whole.len / 100 + 1; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[PARTIAL_HEADER_BYTES + seed % (whole.len - PARTIAL_HEADER_BYTES)] ^=
				(uint8_t)(seed >> 24);
		}
		refused += again(copy, whole.len, NULL, NULL) != ST_OK;
		sign(copy, whole.len);
		again(copy, whole.len, NULL, NULL);
	}
	CHECK(refused >= 1990); /* a change may be none */
	free(copy);
	buf_release(&whole);
}

void test_partial_versions(void)
{
	struct error err = { 0 };
	struct buf whole, other;
	struct engine_result r;
	const char *settings = NULL;

	bytes_make(&whole, 1, false, "all");
	bytes_make(&other, 2, false, "steps=1-2");
	CHECK_OK(engine_result_init(&r, asked, CEILING, NULL), NULL);
	CHECK_OK(engine_partial_take(&r, whole.data, whole.len, CEILING, &settings, &err), &err);
	CHECK(engine_partial_take(&r, other.data, other.len, CEILING, &settings, &err) == ST_USAGE);
	CHECK(strstr(err.text, "different filters") != NULL);
	engine_result_release(&r);
	whole.data[8] = PARTIAL_VERSION + 1;
	CHECK(again(whole.data, whole.len, NULL, &err) == ST_FORMAT);
	CHECK(strstr(err.text, "version 3") != NULL);
	buf_release(&whole);
	buf_release(&other);
}

/* A table that is not there, and ones that nobody asked for. */
void test_partial_tables(void)
{
	static const struct report_type *const more[] = { &report_kernels, &report_steps,
							  &report_copies, NULL };
	static const struct report_type *const fewer[] = { &report_kernels, NULL };
	struct error err = { 0 };
	struct engine_result r;
	const char *settings = NULL;
	struct buf whole;

	bytes_make(&whole, 1, false, "all");
	CHECK_OK(engine_result_init(&r, more, CEILING, NULL), NULL);
	CHECK_U64(engine_partial_take(&r, whole.data, whole.len, CEILING, &settings, &err),
		  ST_FORMAT);
	CHECK(strstr(err.text, "no table copies") != NULL);
	engine_result_release(&r);
	settings = NULL;
	CHECK_OK(engine_result_init(&r, fewer, CEILING, NULL), NULL);
	CHECK_OK(engine_partial_take(&r, whole.data, whole.len, CEILING, &settings, &err), &err);
	CHECK_U64(table_count(tables_find(r.tables, "kernels")), 2);
	engine_result_release(&r);
	buf_release(&whole);
}

/* A row of texts, numbers and no lengths, with or without the text of column `without`. */
static enum status row_round(size_t table, size_t without)
{
	union value keys[16] = { { .u64 = 0 } }, *row;
	struct engine_result r, back = { .tables = NULL };
	const struct table_type *type;
	const char *settings = NULL;
	enum status status;
	struct buf out;
	size_t k;

	CHECK_OK(engine_result_init(&r, report_types, CEILING, NULL), NULL);
	type = table_type(tables_at(r.tables, table));
	for (k = 0; k < table_columns(type); k++)
		if (type->columns[k].combine == KEY && column_is_text(&type->columns[k]))
			keys[k].text = "t";
	if (without < table_keys(type))
		keys[without].text = NULL;
	CHECK_OK(table_row(tables_at(r.tables, table), keys, &row, NULL), NULL);
	for (; k-- > table_keys(type);)
		if (column_is_text(&type->columns[k]) && k != without)
			row[k].text = table_text(tables_at(r.tables, table), "t", NULL);
	buf_init(&out, CEILING);
	CHECK_OK(engine_partial_put(&r, "all", &out, NULL), NULL);
	CHECK_OK(engine_result_init(&back, report_types, CEILING, NULL), NULL);
	status = engine_partial_take(&back, out.data, out.len, CEILING, &settings, NULL);
	buf_release(&out);
	engine_result_release(&r);
	engine_result_release(&back);
	return status;
}

/* Of each table: with all texts, and without each of them. */
void test_partial_texts(void)
{
	size_t i, k, none = SIZE_MAX, asked_for = 0, finished = 0;
	struct engine_result r;

	CHECK_OK(engine_result_init(&r, report_types, CEILING, NULL), NULL);
	for (i = 0; i < tables_count(r.tables); i++) {
		const struct table_type *type = table_type(tables_at(r.tables, i));

		CHECK_U64(row_round(i, none), type->is_finished ? ST_FORMAT : ST_OK);
		finished += type->is_finished;
		for (k = 0; k < table_columns(type) && !type->is_finished; k++) {
			if (!column_is_text(&type->columns[k]) ||
			    type->columns[k].combine == DERIVED)
				continue;
			CHECK_U64(row_round(i, k),
				  column_may_be_null(type, &type->columns[k]) ? ST_OK : ST_FORMAT);
			asked_for++;
		}
	}
	CHECK(asked_for > 60);
	CHECK(finished > 10); /* of findings, verdicts, checks, meetings, ranks */
	engine_result_release(&r);
}

static enum status results_merge(struct engine_result *into, struct engine_result *from,
				 struct error *err)
{
	size_t first = into->input_count;

	TRY(tables_merge(into->tables, from->tables, err));
	for (size_t i = 0; i < from->input_count; i++)
		TRY(engine_result_input(into, from->inputs[i].path, &from->inputs[i].outcome, err));
	for (size_t i = 0; i < from->window_count; i++) {
		struct engine_window w = from->windows[i];

		w.input += first;
		TRY(engine_result_window(into, &w, err));
	}
	return ST_OK;
}

void test_partial_twice(void)
{
	struct error err = { 0 };
	struct engine_result a, b;

	result_make(&a, 4, false);
	result_make(&b, 4, false);
	b.inputs[0].path = table_text(tables_find(b.tables, "ranks"), "copy.json", NULL);
	CHECK_OK(results_merge(&a, &b, NULL), NULL);
	CHECK(engine_result_finish(&a, false, &err) == ST_USAGE);
	CHECK(strstr(err.text, "copy.json") && strstr(err.text, "rank4.json"));
	engine_result_release(&a);
	engine_result_release(&b);
}

static enum status outcome_round(struct engine_outcome o)
{
	struct engine_result r;
	enum status status;
	struct buf out;

	CHECK_OK(engine_result_init(&r, asked, CEILING, NULL), NULL);
	CHECK_OK(engine_result_input(&r, "a.json", &o, NULL), NULL);
	buf_init(&out, CEILING);
	CHECK_OK(engine_partial_put(&r, "all", &out, NULL), NULL);
	status = again(out.data, out.len, NULL, NULL);
	buf_release(&out);
	engine_result_release(&r);
	return status;
}

/* Read to its end and yet in no table: there would be nothing to finish, and no error. */
void test_partial_inputs(void)
{
	struct engine_outcome o = { .status = ST_OK };

	CHECK_U64(outcome_round(o), ST_FORMAT);
	o.is_in_tables = true;
	CHECK_U64(outcome_round(o), ST_OK);
	o.status = ST_END; /* as above: its exit code is 0 */
	CHECK_U64(outcome_round(o), ST_FORMAT);
	o = (struct engine_outcome){ .status = ST_IO };
	CHECK_U64(outcome_round(o), ST_OK);
}

static uint64_t hist_round(const uint64_t *values, size_t count)
{
	struct hist *h = NULL, *other = NULL;
	struct buf out, back;
	struct bytes in;
	uint64_t same = 0, i;

	buf_init(&out, CEILING);
	buf_init(&back, CEILING);
	hist_new(&h, NULL);
	hist_new(&other, NULL);
	for (i = 0; i < count; i++)
		hist_put(h, values[i], NULL);
	hist_encode(h, &out);
	in = bytes_init(out.data, out.len);
	CHECK_OK(hist_decode(other, &in, NULL), NULL);
	CHECK_U64(bytes_left(&in), 0);
	for (i = 0; i < count; i++)
		same += hist_at(h, i) == hist_at(other, i);
	hist_encode(other, &back);
	CHECK(back.len == out.len && !memcmp(back.data, out.data, out.len));
	hist_free(h);
	hist_free(other);
	buf_release(&out);
	buf_release(&back);
	return same;
}

void test_partial_hist(void)
{
	uint64_t values[100], i;

	for (i = 0; i < 100; i++)
		values[i] = i < 3 ? (uint64_t[]){ 0, UINT64_MAX, 63 }[i] : i * i * i * 1000;
	CHECK_U64(hist_round(values, 0), 0);
	CHECK_U64(hist_round(values, 1), 1);
	CHECK_U64(hist_round(values, HIST_EXACT), HIST_EXACT);
	CHECK_U64(hist_round(values, HIST_EXACT + 1), HIST_EXACT + 1);
	CHECK_U64(hist_round(values, 100), 100);
	CHECK_U64(hist_count(NULL) + hist_at(NULL, 0) + hist_median(NULL), 0);
}
