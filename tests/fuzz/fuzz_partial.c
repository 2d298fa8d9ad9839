/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of --partial, its header made right: read or refused; what was read finishes
 * and prints in every format.  Under libFuzzer two of three changes are to cells of tables: another
 * number, text or row where one may be, which bytes at random seldom come to.
 */
#include "analyze/engine/partial.h"
#include "analyze/engine/hist.h"
#include "analyze/report/report_list.h"
#include "schemas/base/crc32c.h"
#include "tests/fuzz/finished.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CEILING = 16 << 20, FILE_MAX = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take(struct engine_result *r, const uint8_t *data, size_t size, const char **settings)
{
	uint8_t *copy = malloc(size + 1);
	bool is_taken;

	memcpy(copy, data, size);
	if (size >= PARTIAL_HEADER_BYTES) {
		memcpy(copy, "TACHOPRT", 8);
		put_u32(copy + 8, PARTIAL_VERSION);
		put_u32(copy + 12,
			crc32c(0, copy + PARTIAL_HEADER_BYTES, size - PARTIAL_HEADER_BYTES));
		put_u64(copy + 16, size - PARTIAL_HEADER_BYTES);
	}
	*settings = NULL;
	is_taken = engine_result_init(r, report_types, CEILING, NULL) == ST_OK &&
		   engine_partial_take(r, copy, size, CEILING, settings, NULL) == ST_OK;
	free(copy);
	return is_taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine_result r;
	const char *settings;

	if (take(&r, data, size, &settings) && engine_result_finish(&r, false, NULL) == ST_OK)
		fuzz_finished(r.tables);
	engine_result_release(&r);
	return 0;
}

/* ---- changes to cells ------------------------------------------------------------------- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t cap, unsigned seed);
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t cap);

static uint32_t dice(uint32_t *state, uint32_t sides)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % sides;
}

static uint64_t other_number(uint32_t *state, uint64_t v)
{
	static const uint64_t edges[] = { 0,          1,          2,          1000,
					  1u << 31,   UINT32_MAX, 1ull << 53, INT64_MAX,
					  1ull << 63, NO_U64 - 1, NO_U64 };

	switch (dice(state, 6)) {
	case 0:
		return v + 1;
	case 1:
		return v - 1;
	case 2:
		return v * 2;
	case 3:
		return v / 2;
	case 4:
		return (uint64_t)dice(state, UINT32_MAX) << dice(state, 33);
	default:
		return edges[dice(state, sizeof(edges) / sizeof(edges[0]))];
	}
}

/* Another letter, an end or a begin less; or what no tool would write. */
static const char *other_text(uint32_t *state, struct table *t, const char *text)
{
	static const char *const strange[] = { "",
					       " ",
					       "\xff\"<&|,",
					       "0",
					       "-1",
					       "18446744073709551616",
					       "1e400",
					       "nan",
					       "comm",
					       "compute",
					       "host:forward",
					       "data",
					       "backward",
					       "all_reduce",
					       "nccl" };
	char copy[256];
	size_t len;

	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	len = strlen(copy);
	switch (len ? dice(state, 4) : 0) {
	case 1:
		copy[dice(state, (uint32_t)len)] = (char)(1 + dice(state, 255));
		break;
	case 2:
		copy[dice(state, (uint32_t)len)] = '\0';
		break;
	case 3:
		memmove(copy, copy + 1, len);
		break;
	default:
		return strange[dice(state, sizeof(strange) / sizeof(strange[0]))];
	}
	return table_text(t, copy, NULL);
}

static void change_cell(uint32_t *state, struct table *t, const struct column *c, union value *v,
			const union value *other)
{
	if (c->cell == CELL_HIST) {
		if (v->hist && dice(state, 2))
			hist_put(v->hist, other_number(state, hist_median(v->hist)), NULL);
		else
			v->hist = NULL; /* still the tables' to free */
	} else if (dice(state, 3) == 0) {
		*v = *other;
	} else if (c->cell == CELL_BOOL) {
		v->u64 = dice(state, 3) ? dice(state, 2) : NO_U64;
	} else if (!column_is_text(c)) {
		v->u64 = other_number(state, v->u64);
	} else {
		v->text = dice(state, 8) ? other_text(state, t, v->text) : NULL;
	}
}

/* One more row like it, but for one key. */
static void add_row(uint32_t *state, struct table *t, const union value *like)
{
	const struct table_type *type = table_type(t);
	size_t columns = table_columns(type), keys = table_keys(type), key, k;
	union value changed[64], *row;

	memcpy(changed, like, columns * sizeof(*like));
	key = dice(state, (uint32_t)keys);
	change_cell(state, t, &type->columns[key], &changed[key], &changed[key]);
	for (k = 0; k < keys; k++)
		if (column_is_text(&type->columns[k]) && !changed[k].text)
			changed[k].text = "";
	if (table_row(t, changed, &row, NULL) != ST_OK)
		return;
	for (k = keys; k < columns; k++)
		if (type->columns[k].cell != CELL_HIST)
			row[k] = changed[k];
}

static void change_table(uint32_t *state, struct table *t)
{
	const struct table_type *type = table_type(t);
	uint32_t rows = (uint32_t)table_count(t);
	size_t k = dice(state, (uint32_t)table_columns(type));
	union value *row, *other;

	if (!rows)
		return;
	row = table_at(t, dice(state, rows));
	other = table_at(t, dice(state, rows));
	switch (dice(state, 16)) {
	case 0:
		table_clear(t);
		break;
	case 1:
		add_row(state, t, row);
		break;
	default:
		change_cell(state, t, &type->columns[k], &row[k], &other[k]);
		break;
	}
}

/* Tables with rows are few: each throw tries some. */
static void change(uint32_t *state, struct engine_result *r)
{
	uint32_t count = (uint32_t)tables_count(r->tables), times = 1 + dice(state, 8);
	struct engine_window *w;

	if (r->window_count && dice(state, 20) == 0) {
		w = &r->windows[dice(state, (uint32_t)r->window_count)];
		w->begin_ns = other_number(state, w->begin_ns);
		w->end_ns = other_number(state, w->end_ns);
	}
	while (times--)
		change_table(state, tables_at(r->tables, dice(state, count)));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t cap, unsigned seed)
{
	struct engine_result r = { .tables = NULL };
	uint32_t state = seed * 2654435761u | 1;
	const char *settings;
	struct buf out;
	size_t len = 0;

	buf_init(&out, FILE_MAX);
	if (dice(&state, 3) && take(&r, data, size, &settings)) {
		change(&state, &r);
		if (engine_partial_put(&r, settings, &out, NULL) == ST_OK && out.len <= cap)
			memcpy(data, out.data, len = out.len);
	}
	engine_result_release(&r);
	buf_release(&out);
	return len ? len : LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, cap) : size;
}
