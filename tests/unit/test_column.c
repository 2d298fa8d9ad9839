/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of every kind of number, written and read by the plain ways and by the fast ones of this
 * machine: the bytes and the words are the same.
 */
#include "schemas/base/plain.h"
#include "schemas/log/column.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, ROOM = ROWS * VARINT_MAX + 64, COLUMNS = 3000 };

static uint64_t seed = 88172645463325252u;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static struct {
	uint64_t words[ROWS], descs[ROWS], ends[ROWS], scratch[ROWS];
	uint8_t slots[ROWS];
} rows;

/* Numbers of random width, multiples of a divisor around a line, with rare outliers. */
static void make_column(uint32_t count)
{
	unsigned bits = (unsigned)(draw() % 65), step_bits = (unsigned)(draw() % 20);
	uint64_t mask = bits ? UINT64_MAX >> (64 - bits) : 0, at = draw() & draw();
	uint64_t divisor = draw() % 4 ? 1 : 1 + draw() % 1000;
	uint64_t step = draw() % 3 ? draw() >> (63 - step_bits) : 0;
	bool is_rare = draw() % 8 == 0, one_slot = draw() % 2;
	uint32_t i;

	for (i = 0; i < count; i++, at += step) {
		rows.words[i] = at + (draw() & mask) * divisor;
		if (is_rare && draw() % 100 == 0)
			rows.words[i] = draw();
		rows.descs[i] = draw() % 300;
		rows.slots[i] = one_slot ? 7 : (uint8_t)(draw() % 64);
		rows.ends[i] = rows.words[i] + draw() % 5000;
	}
}

/* Chooses and writes the column by the plain or the fast way; returns its bytes. */
static size_t put_column(const struct column_words *c, unsigned others, bool delta, bool plain,
			 uint8_t *out)
{
	const uint64_t *columns[] = { rows.descs };
	struct column_form form;
	size_t size;

	plain_ways = plain;
	if (delta)
		column_choose_delta(c, &form);
	else
		column_choose(c, 256, columns, others, &form);
	size = column_put(c, &form, out);
	CHECK_U64(size, column_form_size(&form));
	return size;
}

/* Reads the residuals of a column, a few at a time. */
static void take_column(const uint8_t *bytes, size_t size, uint32_t count, bool plain,
			uint64_t *words)
{
	struct bytes in = bytes_init(bytes, size);
	struct log_block block = { .rows = count };
	struct column_reader r;
	struct error err;

	plain_ways = plain;
	if (!CHECK_OK(column_open(&r, &in, &block, 1, &err), &err))
		return;
	CHECK_U64(bytes_left(&in), 0);
	for (uint32_t at = 0; at < count; at += 128)
		CHECK(column_take(&r, words + at, count - at < 128 ? count - at : 128));
}

static void check_column(unsigned what, uint32_t count)
{
	static uint8_t fast[ROOM], plain[ROOM];
	static uint64_t by_fast[ROWS], by_plain[ROWS];
	struct column_words c = { .words = rows.words, .scratch = rows.scratch, .rows = count };
	bool were_plain = plain_ways;

	c.slots = what == 1 ? rows.slots : NULL;
	c.descs = what ? rows.descs : NULL;
	c.ends = what == 1 || what == 3 ? rows.ends : NULL;
	for (unsigned delta = 0; delta < 2; delta++) {
		size_t size = put_column(&c, what > 1, delta, false, fast);

		if (CHECK_U64(put_column(&c, what > 1, delta, true, plain), size))
			CHECK(memcmp(fast, plain, size) == 0);
		take_column(fast, size, count, false, by_fast);
		take_column(fast, size, count, true, by_plain);
		CHECK(memcmp(by_fast, by_plain, count * sizeof(by_fast[0])) == 0);
	}
	plain_ways = were_plain;
}

void test_column_fast(void)
{
	unsigned i;

	for (i = 0; i < COLUMNS; i++) {
		uint32_t count = 1 + (uint32_t)(i % 3 ? draw() % 20 : draw() % ROWS);

		make_column(count);
		check_column(i % 4, count);
	}
}
