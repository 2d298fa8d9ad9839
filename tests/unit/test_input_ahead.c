/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacked on another thread, or by another library: the same bytes, the same end, the same fault.
 */
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "convert/input/input.h"
#include "convert/input/internal.h"
#include "schemas/base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1500000, SMALL_BYTES = 3000 };

static void make_text(struct buf *text, size_t len)
{
	uint64_t random = 11;

	while (text->len < len)
		buf_putf(text, "%u,", (unsigned)(random_u64(&random) % 100000));
	text->len = len;
}

static void read_file(struct buf *out, const char *path)
{
	size_t len;
	void *bytes = folder_read(path, &len);

	buf_put(out, bytes, len);
	free(bytes);
}

/* ---- on another thread ---- */

/* All that the input gives, up to `most` bytes; from `first` on it is read ahead. */
static enum status read_input(const char *path, size_t first, size_t most, struct buf *out,
			      struct error *err)
{
	struct input *in;
	const uint8_t *bytes;
	enum status status = input_open(&in, path, "/tmp", err);
	size_t len, want = 1;

	while (status == ST_OK && out->len < most) {
		if (out->len >= first)
			input_read_ahead(in);
		status = input_peek(in, want, &bytes, &len, err);
		if (status != ST_OK || !len)
			break;
		len = len < want ? len : want;
		buf_put(out, bytes, len);
		input_skip(in, len);
		want = want * 3 % 300007 + 1;
	}
	input_close(in);
	return status;
}

static void check_same(const char *path)
{
	static const size_t firsts[] = { 0, 1, 100000, 700000 };
	struct error want_err = { 0 };
	struct buf want;
	enum status status;

	buf_init(&want, 4 * TEXT_BYTES);
	status = read_input(path, SIZE_MAX, SIZE_MAX, &want, &want_err);
	for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
		struct error err = { 0 };
		struct buf got;

		buf_init(&got, 4 * TEXT_BYTES);
		CHECK_U64(read_input(path, firsts[i], SIZE_MAX, &got, &err), status);
		CHECK_U64(got.len, want.len);
		CHECK(!got.len ||
		      (got.len == want.len && memcmp(got.data, want.data, got.len) == 0));
		CHECK_STR(err.text, want_err.text);
		CHECK_U64(err.at, want_err.at);
		buf_release(&got);
	}
	buf_release(&want);
}

void test_input_ahead(void)
{
	struct buf text, packed;
	struct folder s;

	folder_make(&s);
	buf_init(&text, 4 * TEXT_BYTES);
	buf_init(&packed, 4 * TEXT_BYTES);
	make_text(&text, TEXT_BYTES);
	check_same(folder_write(&s, "plain", text.data, text.len));
	folder_gzip(&s, "a.gz", text.data, TEXT_BYTES - 100000, 0);
	check_same(folder_gzip(&s, "a.gz", text.data, 100000, 1));
	read_file(&packed, s.path);
	check_same(folder_write(&s, "cut.gz", packed.data, packed.len / 2));
	check_same(folder_write(&s, "nearly.gz", packed.data, packed.len - 1));
	packed.data[packed.len / 3] ^= 0x55;
	check_same(folder_write(&s, "damaged.gz", packed.data, packed.len));
	check_same(folder_gzip(&s, "empty.gz", "", 0, 0));
	buf_release(&text);
	buf_release(&packed);
	folder_remove(&s);
}

/* Closed while blocks are still on their way. */
void test_input_ahead_close(void)
{
	struct buf text;
	struct folder s;

	folder_make(&s);
	buf_init(&text, 4 * TEXT_BYTES);
	make_text(&text, TEXT_BYTES);
	folder_gzip(&s, "a.gz", text.data, text.len, 0);
	for (size_t most = 1; most < TEXT_BYTES; most += 149999) {
		struct error err = { 0 };
		struct buf got;

		buf_init(&got, 4 * TEXT_BYTES);
		CHECK_OK(read_input(s.path, 0, most, &got, &err), &err);
		CHECK(got.len >= most && memcmp(got.data, text.data, got.len) == 0);
		buf_release(&got);
	}
	buf_release(&text);
	folder_remove(&s);
}

/* ---- by another library ---- */

/* In pieces of odd sizes; the last thing it said. */
static enum inflate_outcome inflate_all(enum inflate_with with, const struct buf *packed,
					size_t len, struct buf *out)
{
	struct inflater *f;
	enum inflate_outcome said = INFLATE_ON;
	size_t at = 0, piece = 1;
	uint8_t bytes[7001];

	if (!CHECK_OK(inflater_open(&f, with, NULL), NULL))
		return INFLATE_NO_MEMORY;
	while (said == INFLATE_ON || (said == INFLATE_STARVED && at < len)) {
		size_t in_len = len - at < piece ? len - at : piece, got, left = in_len;
		const uint8_t *in = packed->data + at;

		said = inflater_step(f, &in, &left, bytes, 1 + piece % sizeof(bytes), &got);
		CHECK(in == packed->data + at + in_len - left);
		at += in_len - left;
		buf_put(out, bytes, got);
		piece = piece * 7 % 5003 + 1;
	}
	inflater_close(f);
	return said;
}

static void check_agree(const struct buf *packed, size_t len, const struct buf *text)
{
	struct buf fast, zlib;
	enum inflate_outcome said, want;

	buf_init(&fast, 4 * TEXT_BYTES);
	buf_init(&zlib, 4 * TEXT_BYTES);
	want = inflate_all(INFLATE_ZLIB, packed, len, &zlib);
	said = inflate_all(INFLATE_FASTEST, packed, len, &fast);
	CHECK_U64(said, want);
	CHECK_U64(want, len == packed->len ? INFLATE_END : INFLATE_STARVED);
	CHECK(fast.len <= text->len &&
	      memcmp(fast.data ? fast.data : text->data, text->data, fast.len) == 0);
	CHECK_U64(fast.len, zlib.len);
	buf_release(&fast);
	buf_release(&zlib);
}

/* Neither may call good what it is not. */
static void check_damaged(const struct buf *packed, const struct buf *text)
{
	for (int with = INFLATE_FASTEST; with <= INFLATE_ZLIB; with++) {
		struct buf out;

		buf_init(&out, 4 * TEXT_BYTES);
		if (inflate_all((enum inflate_with)with, packed, packed->len, &out) == INFLATE_END)
			CHECK(out.len == text->len && memcmp(out.data, text->data, out.len) == 0);
		buf_release(&out);
	}
}

void test_inflaters_agree(void)
{
	struct buf text, packed;
	uint64_t random = 3;
	struct folder s;

	folder_make(&s);
	buf_init(&text, 4 * TEXT_BYTES);
	buf_init(&packed, 4 * TEXT_BYTES);
	make_text(&text, TEXT_BYTES);
	read_file(&packed, folder_gzip(&s, "a.gz", text.data, text.len, 0));
	check_agree(&packed, packed.len, &text);
	buf_clear(&text);
	buf_clear(&packed);
	make_text(&text, SMALL_BYTES);
	read_file(&packed, folder_gzip(&s, "b.gz", text.data, text.len, 0));
	for (size_t len = 0; len <= packed.len; len++)
		check_agree(&packed, len, &text);
	for (int i = 0; i < 2000; i++) {
		size_t at = random_u64(&random) % packed.len;
		uint8_t was = packed.data[at];

		packed.data[at] ^= (uint8_t)(1u << random_u64(&random) % 8);
		check_damaged(&packed, &text);
		packed.data[at] = was;
	}
	buf_release(&text);
	buf_release(&packed);
	folder_remove(&s);
}
