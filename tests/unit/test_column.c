/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of every kind of number, stored by what is compiled for any machine, and by what this
 * one has (AVX2): the same bytes.
 */
#include "schemas/log_column.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#undef __x86_64__
#define column_choose plain_choose
#define column_choose_delta plain_choose_delta
#define column_plan_size plain_plan_size
#define column_put plain_put
void plain_choose(const struct column_words *c, uint32_t sample, const uint64_t *const *others,
		  unsigned count, struct column_plan *plan);
void plain_choose_delta(const struct column_words *c, struct column_plan *plan);
size_t plain_plan_size(const struct column_plan *plan);
size_t plain_put(const struct column_words *c, const struct column_plan *plan, uint8_t *out);
#include "schemas/log_column_put.c"
#undef column_choose
#undef column_choose_delta
#undef column_plan_size
#undef column_put

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
	uint64_t words[ROWS], sites[ROWS], ends[ROWS], scratch[ROWS];
	uint8_t slots[ROWS];
} rows;

/* Numbers of so many bits, of a divisor, around a line, with what is rare in between. */
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
		rows.sites[i] = draw() % 300;
		rows.slots[i] = one_slot ? 7 : (uint8_t)(draw() % 64);
		rows.ends[i] = rows.words[i] + draw() % 5000;
	}
}

static void check_column(unsigned what, uint32_t count)
{
	static uint8_t wide[ROOM], plain[ROOM];
	const uint64_t *others[] = { rows.sites };
	struct column_words c = { .words = rows.words, .scratch = rows.scratch, .rows = count };
	struct column_plan plan;
	size_t size;

	c.slots = what == 1 ? rows.slots : NULL;
	c.sites = what ? rows.sites : NULL;
	c.ends = what == 1 || what == 3 ? rows.ends : NULL;
	column_choose(&c, 256, others, what > 1, &plan);
	size = column_put(&c, &plan, wide);
	CHECK_U64(size, column_plan_size(&plan));
	plain_choose(&c, 256, others, what > 1, &plan);
	CHECK_U64(plain_plan_size(&plan), size);
	if (CHECK_U64(plain_put(&c, &plan, plain), size))
		CHECK(memcmp(wide, plain, size) == 0);
	column_choose_delta(&c, &plan);
	size = column_put(&c, &plan, wide);
	plain_choose_delta(&c, &plan);
	if (CHECK_U64(plain_put(&c, &plan, plain), size))
		CHECK(memcmp(wide, plain, size) == 0);
}

void test_column_plain(void)
{
	unsigned i;

	for (i = 0; i < COLUMNS; i++) {
		uint32_t count = 1 + (uint32_t)(i % 3 ? draw() % 20 : draw() % ROWS);

		make_column(count);
		check_column(i % 4, count);
	}
}
