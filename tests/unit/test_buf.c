/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/buf.h"

#include <inttypes.h>
#include <stdio.h>

void test_buf_puts(void)
{
	struct buf b;
	struct error err;

	buf_init(&b, 1000);
	CHECK_STR(buf_text(&b), "");
	buf_put_text(&b, "ab");
	buf_put_byte(&b, 'c');
	buf_put(&b, "d\0e", 3);
	buf_put(&b, NULL, 0);
	buf_fill(&b, '.', 3);
	buf_fill(&b, '.', 0);
	CHECK_U64(b.len, 9);
	CHECK_MEM(b.data, "abcd\0e...", 9);
	CHECK_STR(buf_text(&b) + 5, "e...");
	CHECK_OK(buf_status(&b, &err), &err);

	buf_clear(&b);
	CHECK_STR(buf_text(&b), "");
	buf_put_u16(&b, 0x0201);
	buf_put_u32(&b, 0x06050403);
	buf_put_u64(&b, 0x0e0d0c0b0a090807);
	buf_put_varint(&b, 300);
	buf_put_varint(&b, UINT64_MAX);
	buf_put_f64(&b, 1.5);
	CHECK_U64(b.len, 14 + 2 + 10 + 8);
	CHECK_MEM(b.data,
		  "\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xac\2\xff\xff\xff\xff\xff\xff\xff"
		  "\xff\xff\1\0\0\0\0\0\0\xf8\x3f",
		  34);
	buf_release(&b);
	CHECK(b.data == NULL && b.len == 0);
	CHECK_U64(b.ceiling, 1000);
	buf_put_byte(&b, 'x'); /* released is as good as new */
	CHECK_STR(buf_text(&b), "x");
	buf_release(&b);
}

void test_buf_grows(void)
{
	struct buf b;
	size_t i;
	bool same = true;

	buf_init(&b, SIZE_MAX);
	for (i = 0; i < 100000; i++)
		buf_put_byte(&b, (uint8_t)(i * 7));
	CHECK_U64(b.len, 100000);
	CHECK(b.cap >= b.len && b.cap < 4 * b.len);
	for (i = 0; i < b.len; i++)
		same = same && b.data[i] == (uint8_t)(i * 7);
	CHECK(same);
	CHECK_U64(buf_status(&b, NULL), ST_OK);
	buf_release(&b);
}

void test_buf_ceiling_sticks(void)
{
	struct buf b;
	struct error err;

	buf_init(&b, 10);
	buf_put_text(&b, "1234567");
	buf_put_text(&b, "89ab"); /* one too many: none of it is there */
	buf_put_byte(&b, 'c');    /* would fit, but a gap would be before it */
	buf_putf(&b, "%d", 1);
	buf_put_u64_text(&b, 1);
	CHECK(buf_reserve(&b, 0) == NULL);
	CHECK(buf_reserve(&b, 1) == NULL);
	CHECK_STR(buf_text(&b), "1234567");
	CHECK_U64(buf_status(&b, &err), ST_CEILING);
	CHECK_U64(err.at, NOWHERE);
	CHECK_STR(err.text, "a buffer is limited to 10 bytes");

	buf_clear(&b);
	CHECK_U64(buf_status(&b, NULL), ST_OK);
	buf_put_text(&b, "0123456789"); /* to the last byte */
	CHECK_U64(buf_status(&b, NULL), ST_OK);
	CHECK_STR(buf_text(&b), "0123456789");
	CHECK(buf_reserve(&b, 0) == b.data + 10);
	buf_put(&b, NULL, 0);
	CHECK_U64(buf_status(&b, NULL), ST_OK);
	buf_put_byte(&b, 'x');
	CHECK_U64(buf_status(&b, NULL), ST_CEILING);
	CHECK_U64(b.len, 10);
	buf_release(&b);
}

/* Appends around each capacity, at ceilings around each power of two. */
void test_buf_ceiling_exact(void)
{
	size_t ceiling, i;
	struct buf b;

	for (ceiling = 0; ceiling < 1100; ceiling++) {
		buf_init(&b, ceiling);
		for (i = 0; i < ceiling; i++)
			buf_put_byte(&b, 'x');
		if (!CHECK_U64(buf_status(&b, NULL), ST_OK) || !CHECK_U64(b.len, ceiling))
			break;
		buf_put_byte(&b, 'y');
		CHECK_U64(buf_status(&b, NULL), ST_CEILING);
		CHECK_U64(b.len, ceiling);
		buf_release(&b);
	}
	buf_release(&b);
}

void test_buf_no_memory(void)
{
	struct buf b;
	struct error err;

	buf_init(&b, SIZE_MAX);
	buf_put_text(&b, "kept");
	CHECK(buf_reserve(&b, SIZE_MAX - 4) == NULL);
	CHECK_U64(buf_status(&b, &err), ST_MEMORY);
	CHECK_STR(err.text, "not enough memory");
	buf_clear(&b);
	buf_put_text(&b, "kept");
	CHECK(buf_reserve(&b, SIZE_MAX) == NULL); /* the sum would wrap */
	CHECK_U64(buf_status(&b, NULL), ST_CEILING);
	CHECK_STR(buf_text(&b), "kept");
	buf_release(&b);
}

void test_buf_reserve(void)
{
	struct buf b;
	uint8_t *room;

	buf_init(&b, 5000);
	room = buf_reserve(&b, 3000);
	if (!CHECK(room != NULL))
		return;
	memset(room, 'r', 3000);
	b.len += 10; /* of the room, what was used */
	CHECK_STR(buf_text(&b), "rrrrrrrrrr");
	CHECK(buf_reserve(&b, 4990) != NULL);
	CHECK(buf_reserve(&b, 4991) == NULL);
	buf_release(&b);
}

void test_buf_decimal(void)
{
	static const uint64_t others[] = {
		UINT32_MAX, 1ULL << 32, INT64_MAX, 1ULL << 63, UINT64_MAX, 1234567890123456789,
	};
	char want[32], got[DECIMAL_MAX + 1];
	uint64_t power = 1;
	size_t i, step;

	for (i = 0; i < 20; i++, power *= i < 20 ? 10 : 1)
		for (step = 0; step < 3; step++) {
			snprintf(want, sizeof(want), "%" PRIu64, power + step - 1);
			got[put_u64_text(got, power + step - 1)] = '\0';
			CHECK_STR(got, want);
		}
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(want, sizeof(want), "%" PRIu64, others[i]);
		got[put_u64_text(got, others[i])] = '\0';
		CHECK_STR(got, want);
	}
	for (i = 0, power = 1; i < 10000; i++) {
		power = power * 6364136223846793005 + 1442695040888963407;
		snprintf(want, sizeof(want), "%" PRIu64, power >> i % 64);
		got[put_u64_text(got, power >> i % 64)] = '\0';
		CHECK_STR(got, want);
	}
	for (i = 0; i < 64; i++) { /* around each power of two the guess of the digits moves */
		snprintf(want, sizeof(want), "%" PRIu64, ((uint64_t)1 << i) - 1);
		got[put_u64_text(got, (1ULL << i) - 1)] = '\0';
		CHECK_STR(got, want);
	}
}

void test_buf_number_texts(void)
{
	struct buf b;

	buf_init(&b, 1000);
	buf_put_u64_text(&b, 0);
	buf_put_byte(&b, ' ');
	buf_put_u64_text(&b, UINT64_MAX);
	buf_put_byte(&b, ' ');
	buf_put_i64_text(&b, 0);
	buf_put_byte(&b, ' ');
	buf_put_i64_text(&b, -7);
	buf_put_byte(&b, ' ');
	buf_put_i64_text(&b, INT64_MIN);
	buf_put_byte(&b, ' ');
	buf_put_i64_text(&b, INT64_MAX);
	CHECK_STR(buf_text(&b), "0 18446744073709551615 0 -7 -9223372036854775808 "
				"9223372036854775807");
	buf_release(&b);
}

void test_buf_putf(void)
{
	struct buf b;
	size_t len;

	for (len = 250; len < 262; len++) { /* around the first capacity */
		buf_init(&b, 1000);
		buf_putf(&b, "%0*d", (int)len, 7);
		CHECK_U64(b.len, len);
		CHECK_U64(b.data[len - 1], '7');
		buf_putf(&b, "-%s", "more");
		CHECK_STR(buf_text(&b) + len - 1, "7-more");
		buf_release(&b);
	}
	buf_init(&b, 5);
	buf_putf(&b, "%s", "12345");
	CHECK_U64(buf_status(&b, NULL), ST_OK);
	CHECK_STR(buf_text(&b), "12345");
	buf_putf(&b, "%s", "");
	CHECK_U64(buf_status(&b, NULL), ST_OK);
	buf_clear(&b);
	buf_putf(&b, "%s", "123456");
	CHECK_U64(buf_status(&b, NULL), ST_CEILING);
	CHECK_STR(buf_text(&b), "");
	buf_release(&b);
	buf_init(&b, 0);
	buf_putf(&b, "%d", 1);
	CHECK_U64(buf_status(&b, NULL), ST_CEILING);
	buf_release(&b);
}
