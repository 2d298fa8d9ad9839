/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/pb.h"

#include "tests/unit/unit.h"

static void put_message(struct buf *b, size_t text_len)
{
	size_t outer = pb_begin(b, 1), inner;

	pb_put_u64(b, 8, UINT64_MAX);
	inner = pb_begin(b, 3000);
	buf_fill(b, 'x', 0);
	pb_put_key(b, 23, PB_BYTES);
	buf_put_varint(b, text_len);
	buf_fill(b, 'x', text_len);
	pb_end(b, inner);
	pb_put_fixed64(b, 47, 7);
	pb_put_f64(b, 5, -0.5);
	pb_put_key(b, 2, PB_FIXED32);
	buf_put_u32(b, 0x3F800000);
	pb_end(b, outer);
}

static void check_inner(struct bytes inner, size_t text_len)
{
	struct pb_field f;

	CHECK(pb_next(&inner, &f) && f.number == 23 && f.wire == PB_BYTES);
	CHECK_U64(bytes_left(&f.bytes), text_len);
	CHECK(!pb_next(&inner, &f) && !inner.is_truncated);
}

static void check_message(const struct buf *b, size_t text_len)
{
	struct bytes all = bytes_init(b->data, b->len), outer;
	struct pb_field f;

	if (!CHECK(pb_next(&all, &f) && f.number == 1 && f.wire == PB_BYTES))
		return;
	outer = f.bytes;
	CHECK(!bytes_left(&all) && !pb_next(&all, &f) && !all.is_truncated);
	CHECK(pb_next(&outer, &f) && f.number == 8 && f.u64 == UINT64_MAX);
	if (CHECK(pb_next(&outer, &f) && f.number == 3000))
		check_inner(f.bytes, text_len);
	CHECK(pb_next(&outer, &f) && f.number == 47 && f.wire == PB_FIXED64 && f.u64 == 7);
	CHECK(pb_next(&outer, &f) && f.u64 == 0xBFE0000000000000);
	CHECK(pb_next(&outer, &f) && f.wire == PB_FIXED32 && f.u64 == 0x3F800000);
	CHECK(!pb_next(&outer, &f) && !outer.is_truncated);
}

/* Lengths on both sides of each byte that a length takes. */
void test_pb_round(void)
{
	static const size_t lens[] = { 0, 1, 90, 120, 127, 128, 16000, 16384, 70000, 2100000 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		struct buf b;

		buf_init(&b, 1 << 22);
		put_message(&b, lens[i]);
		CHECK_U64(b.status, ST_OK);
		check_message(&b, lens[i]);
		buf_release(&b);
	}
}

void test_pb_ceiling(void)
{
	struct buf b;
	size_t whole;

	buf_init(&b, 4096);
	put_message(&b, 250);
	whole = b.len;
	buf_release(&b);
	for (size_t ceiling = 0; ceiling <= whole; ceiling++) {
		buf_init(&b, ceiling);
		put_message(&b, 250);
		CHECK_U64(b.status, ceiling < whole ? ST_CEILING : ST_OK);
		buf_release(&b);
	}
}

void test_pb_damage(void)
{
	static const char *const bad[] = {
		"\x03",       /* a group */
		"\x02\x01x",  /* field 0 */
		"\x0A\x05xx", /* longer than the message */
		"\x08",       /* no value */
		"\x09xxxx",   /* half a fixed64 */
		"\x0D"
		"xx", /* half a fixed32 */
		"\x0E"
		"x", /* wire type 6 */
		"\x0F"
		"x",                                            /* wire type 7 */
		"\xF8\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x01", /* a field number beyond 29 bits */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct bytes b = bytes_init(bad[i], strlen(bad[i]));
		struct pb_field f;

		CHECK(!pb_next(&b, &f) && b.is_truncated);
	}
}
