/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/bytes.h"

static const uint64_t edges[] = {
	0,
	1,
	0x7f,
	0x80,
	0x3fff,
	0x4000,
	0x1fffff,
	0x200000,
	0xfffffff,
	0x10000000,
	0x7ffffffff,
	0x800000000,
	0x3ffffffffff,
	0x40000000000,
	0x1ffffffffffff,
	0x2000000000000,
	0xffffffffffffff,
	0x100000000000000,
	INT64_MAX,
	1ULL << 63,
	UINT64_MAX,
};
/* Of their varints. */
static const uint8_t lengths[] = {
	1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10,
};
enum { EDGES = sizeof(edges) / sizeof(edges[0]) };

void test_bytes_numbers(void)
{
	static const uint8_t data[] = {
		0xfe, 1,    2, 3, 4, 5, 6, 7, 8,    9,    10,  11,  12,
		13,   0xff, 0, 0, 0, 0, 0, 0, 0xf0, 0xbf, 'h', 'i',
	};
	struct bytes b = bytes_init(data, sizeof(data));

	CHECK_U64(bytes_left(&b), sizeof(data));
	CHECK_U64(take_u8(&b), 0xfe);
	CHECK_U64(take_u16(&b), 0x0201);
	CHECK_U64(take_u32(&b), 0x06050403);
	CHECK_U64(take_u64(&b), 0xff0d0c0b0a090807);
	CHECK_U64(take_u64(&b), 0xbff0000000000000);
	CHECK_MEM(take_text(&b, 2), "hi", 2);
	CHECK(!b.is_truncated);
	CHECK_U64(bytes_left(&b), 0);
	CHECK(take_text(&b, 0) != NULL);
	CHECK(!b.is_truncated);
}

void test_bytes_cut_sticks(void)
{
	static const uint8_t data[] = { 1, 2, 3, 4, 5, 6, 7 };
	struct bytes b = bytes_init(data, sizeof(data));

	CHECK_U64(take_u64(&b), 0);
	CHECK(b.is_truncated);
	CHECK_U64(bytes_left(&b), 0);
	CHECK_U64(take_u8(&b), 0); /* there is one, but nobody knows what it would mean */
	CHECK_U64(take_u16(&b), 0);
	CHECK_U64(take_u32(&b), 0);
	CHECK_U64(take_varint(&b), 0);
	CHECK_I64(take_zigzag(&b), 0);
	CHECK(take_text(&b, 0) == NULL);
	CHECK(b.is_truncated);
}

void test_bytes_each_width_cut(void)
{
	static const uint8_t data[8] = { 9, 9, 9, 9, 9, 9, 9, 9 };
	size_t len;

	for (len = 0; len <= 8; len++) {
		struct bytes b1 = bytes_init(data, len), b2 = b1, b4 = b1, b8 = b1;

		take_u8(&b1);
		take_u16(&b2);
		take_u32(&b4);
		take_u64(&b8);
		CHECK_U64(b1.is_truncated, len < 1);
		CHECK_U64(b2.is_truncated, len < 2);
		CHECK_U64(b4.is_truncated, len < 4);
		CHECK_U64(b8.is_truncated, len < 8);
	}
}

void test_bytes_lengths(void)
{
	struct bytes b = bytes_init("abcdef", 6), empty = bytes_init(NULL, 0), part;

	part = take_part(&b, 4);
	CHECK_U64(bytes_left(&part), 4);
	CHECK_U64(take_u16(&part), 'a' | 'b' << 8);
	CHECK_U64(take_u32(&part), 0);
	CHECK(part.is_truncated && !b.is_truncated);
	CHECK_U64(bytes_left(&b), 2);
	part = take_part(&b, UINT64_MAX); /* no pointer may wrap */
	CHECK(part.is_truncated && b.is_truncated);
	CHECK_U64(bytes_left(&part), 0);
	CHECK(take_text(&empty, 0) != NULL);
	CHECK(!empty.is_truncated);
	CHECK(take_text(&empty, 1) == NULL);
	CHECK(empty.is_truncated);
}

void test_bytes_varint(void)
{
	uint8_t data[VARINT_MAX];
	size_t i, len, n;

	for (i = 0; i < EDGES; i++) {
		n = put_varint(data, edges[i]);
		CHECK_U64(n, lengths[i]);
		CHECK_U64(varint_size(edges[i]), n);
		for (len = 0; len <= n; len++) {
			struct bytes b = bytes_init(data, len);

			CHECK_U64(take_varint(&b), len == n ? edges[i] : 0);
			CHECK_U64(b.is_truncated, len < n);
			CHECK_U64(bytes_left(&b), 0);
		}
	}
}

static bool varint_is_cut(const char *data, size_t len, uint64_t *v)
{
	struct bytes b = bytes_init(data, len);

	*v = take_varint(&b);
	return b.is_truncated;
}

void test_bytes_varint_overlong(void)
{
	uint64_t v;

	CHECK(!varint_is_cut("\x80\x80\x80\x00", 4, &v)); /* padded zero */
	CHECK_U64(v, 0);
	CHECK(!varint_is_cut("\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, &v));
	CHECK_U64(v, 5);
	CHECK(!varint_is_cut("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, &v));
	CHECK_U64(v, UINT64_MAX);
	CHECK(varint_is_cut("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, &v)); /* bit 64 */
	CHECK_U64(v, 0);
	CHECK(varint_is_cut("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, &v));
	CHECK_U64(v, 0);
	CHECK(varint_is_cut("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81", 10, &v));
	CHECK_U64(v, 0);
}

void test_bytes_zigzag(void)
{
	static const int64_t values[] = { 0, -1, 1, -2, 2, INT32_MIN, INT64_MAX, INT64_MIN };
	uint8_t data[VARINT_MAX];
	size_t i;

	CHECK_U64(zigzag(0), 0);
	CHECK_U64(zigzag(-1), 1);
	CHECK_U64(zigzag(1), 2);
	CHECK_U64(zigzag(INT64_MAX), UINT64_MAX - 1);
	CHECK_U64(zigzag(INT64_MIN), UINT64_MAX);
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct bytes b = bytes_init(data, put_varint(data, zigzag(values[i])));

		CHECK_I64(take_zigzag(&b), values[i]);
		CHECK(!b.is_truncated);
	}
}

void test_bytes_raw(void)
{
	uint8_t data[9] = { 0 };

	put_u16(data + 1, 0x1234); /* odd address on purpose */
	CHECK_MEM(data, "\0\x34\x12\0", 4);
	CHECK_U64(get_u16(data + 1), 0x1234);
	put_u32(data + 1, 0xdeadbeef);
	CHECK_MEM(data, "\0\xef\xbe\xad\xde\0", 6);
	CHECK_U64(get_u32(data + 1), 0xdeadbeef);
	put_u64(data + 1, 0x0102030405060708);
	CHECK_MEM(data, "\0\x08\x07\x06\x05\x04\x03\x02\x01", 9);
	CHECK_U64(get_u64(data + 1), 0x0102030405060708);
	put_f64(data + 1, 1.5);
	CHECK_MEM(data, "\0\0\0\0\0\0\0\xf8\x3f", 9);
	CHECK_U64(get_u64(data + 1), 0x3ff8000000000000);
}
