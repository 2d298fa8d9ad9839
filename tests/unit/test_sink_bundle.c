/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of sink bundle, and the checksums in it. */
#include "convert/sink/bundle/internal.h"
#include "convert/input/input.h"
#include "convert/output/output.h"
#include "schemas/base/buf.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

/* Digests that FIPS 180-4's authors publish, and one of a length that fills the last block. */
void test_bundle_sha256(void)
{
	static const struct {
		const char *text;
		size_t times;
		const char *digest;
	} rows[] = {
		{ "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "a", 1000000,
		  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
	};
	char text[SHA256_TEXT];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sha256 s;

		sha256_init(&s);
		for (size_t n = 0; n < rows[i].times; n++)
			sha256_put(&s, rows[i].text, strlen(rows[i].text));
		CHECK_STR(sha256_text(&s, text), rows[i].digest);
	}
}

static const char member[] = "[{\"ph\": \"X\", \"ts\": 1, \"dur\": 2, \"name\": \"n\"}]\n";

static void write_bundle(const char *path, const char *file)
{
	struct out *out = NULL;
	struct bundle *b = NULL;
	struct error err = { 0 };

	if (!CHECK_OK(out_open(&out, path, false, &err), &err))
		return;
	if (CHECK_OK(bundle_new(&b, out, &err), &err)) {
		CHECK_OK(bundle_put_file(b, "a.json", file, &err), &err);
		CHECK_OK(bundle_put(b, "report.json", "{\"schema\": \"tacho.report/1\"}", 28, &err),
			 &err);
		CHECK_OK(bundle_finish(b, 1, &err), &err);
		CHECK_OK(out_commit(out, &err), &err);
	}
	bundle_free(b);
	out_free(out);
}

/* The trace of an archive is its bytes; report and manifest are passed over. */
static void check_bundle(const char *path)
{
	struct input *in = NULL;
	struct error err = { 0 };
	const uint8_t *bytes;
	size_t len;

	if (!CHECK_OK(input_open(&in, path, "/tmp", &err), &err))
		return;
	if (CHECK_OK(input_peek(in, sizeof(member) + 100, &bytes, &len, &err), &err) &&
	    CHECK_U64(len, sizeof(member) - 1))
		CHECK_MEM(bytes, member, len);
	input_skip(in, len);
	CHECK_OK(input_peek(in, 1, &bytes, &len, &err), &err);
	CHECK_U64(len, 0);
	input_close(in);
}

void test_bundle_archive(void)
{
	static const char *const names[] = { "b.tar.zst", "b.tar.gz", "b.tar", "b.zip" };
	struct folder folder;
	struct out *out = NULL;
	struct bundle *b = NULL;
	char *file;

	folder_make(&folder);
	file = strdup(folder_write(&folder, "in.json", member, sizeof(member) - 1));
	for (size_t i = 0; file && i < sizeof(names) / sizeof(*names); i++) {
		write_bundle(folder_path(&folder, names[i]), file);
		check_bundle(folder_path(&folder, names[i]));
	}
	if (CHECK_OK(out_open(&out, folder_path(&folder, "b.rar"), false, NULL), NULL))
		CHECK_U64(bundle_new(&b, out, NULL), ST_USAGE);
	out_free(out);
	free(file);
	folder_remove(&folder);
}
