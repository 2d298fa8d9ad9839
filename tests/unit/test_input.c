/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "convert/input/input.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 1500000, MORE_BYTES = 1 << 20 };

/* Text that neither repeats nor packs badly; the caller frees it. */
static char *made_text(size_t len)
{
	char *text = malloc(len + 32);
	uint64_t random = 7;
	size_t at = 0;

	while (text && at < len)
		at += (size_t)sprintf(text + at, "%u,", (unsigned)(random_u64(&random) % 100000));
	return text;
}

/* Reads forward in steps of odd sizes; what comes is `text`, and then `last`. */
static size_t check_forward(const char *path, const char *text, size_t len, enum status last,
			    struct error *err)
{
	struct input *in;
	size_t at = 0, want = 1;
	const uint8_t *bytes;
	enum status status;

	*err = (struct error){ 0 };
	if (!CHECK_OK(input_open(&in, path, NULL, err), err))
		return 0;
	for (;;) {
		size_t got, use;

		status = input_peek(in, want, &bytes, &got, err);
		if (status != ST_OK || !got)
			break;
		CHECK_U64(input_at(in), at);
		use = got < want ? got : want;
		if (!CHECK(at + got <= len && memcmp(bytes, text + at, got) == 0))
			break;
		input_skip(in, use);
		at += use;
		want = want * 3 % 300007 + 1;
	}
	CHECK_U64(status, last);
	CHECK_U64(input_peek(in, 1, &bytes, &want, NULL), last); /* and again */
	input_close(in);
	return at;
}

void test_input_plain(void)
{
	char *text = made_text(TEXT_BYTES);
	struct folder s;
	struct error err;

	folder_make(&s);
	CHECK_U64(check_forward(folder_write(&s, "a.json", text, TEXT_BYTES), text, TEXT_BYTES,
				ST_OK, &err),
		  TEXT_BYTES);
	CHECK_U64(check_forward(folder_write(&s, "empty", "", 0), "", 0, ST_OK, &err), 0);
	CHECK_U64(check_forward(folder_write(&s, "one", "\x1f", 1), "\x1f", 1, ST_OK, &err), 1);
	folder_remove(&s);
	free(text);
}

void test_input_gzip(void)
{
	char *text = made_text(TEXT_BYTES);
	char zeros[1000] = { 0 };
	struct folder s;
	struct error err;
	FILE *f;

	folder_make(&s);
	folder_gzip(&s, "a.gz", text, MORE_BYTES, 0);
	CHECK_U64(check_forward(s.path, text, TEXT_BYTES, ST_OK, &err), MORE_BYTES);
	folder_gzip(&s, "a.gz", text + MORE_BYTES, TEXT_BYTES - MORE_BYTES, 1);
	CHECK_U64(check_forward(s.path, text, TEXT_BYTES, ST_OK, &err), TEXT_BYTES);
	f = fopen(s.path, "ab");
	CHECK(f && fwrite(zeros, 1, sizeof(zeros), f) == sizeof(zeros) && fclose(f) == 0);
	CHECK_U64(check_forward(s.path, text, TEXT_BYTES, ST_OK, &err), TEXT_BYTES);
	f = fopen(s.path, "ab");
	CHECK(f && fputs("more", f) >= 0 && fclose(f) == 0);
	CHECK_U64(check_forward(s.path, text, TEXT_BYTES, ST_FORMAT, &err), TEXT_BYTES);
	CHECK_STR(err.text, "the gzip data is followed by something else");
	CHECK_U64(err.at, TEXT_BYTES);
	CHECK_U64(check_forward(folder_gzip(&s, "e.gz", "", 0, 0), "", 0, ST_OK, &err), 0);
	folder_remove(&s);
	free(text);
}

void test_input_gzip_damaged(void)
{
	char *text = made_text(TEXT_BYTES), *packed;
	struct folder s;
	struct error err;
	size_t len, got;

	folder_make(&s);
	packed = folder_read(folder_gzip(&s, "a.gz", text, TEXT_BYTES, 0), &len);
	got = check_forward(folder_write(&s, "cut.gz", packed, len / 2), text, TEXT_BYTES,
			    ST_TRUNCATED, &err);
	CHECK_U64(err.at, got);
	CHECK(err.at > TEXT_BYTES / 3 && err.at < TEXT_BYTES * 2 / 3);
	CHECK(strstr(err.text, "the gzip data is truncated after") == err.text);
	got = check_forward(folder_write(&s, "nearly.gz", packed, len - 1), text, TEXT_BYTES,
			    ST_TRUNCATED, &err);
	CHECK_U64(got, TEXT_BYTES);
	got = check_forward(folder_write(&s, "head.gz", packed, 5), text, TEXT_BYTES, ST_TRUNCATED,
			    &err);
	CHECK_U64(got, 0);
	packed[len - 6] ^= 1; /* of the checksum */
	got = check_forward(folder_write(&s, "crc.gz", packed, len), text, TEXT_BYTES, ST_FORMAT,
			    &err);
	CHECK_U64(got, TEXT_BYTES);
	CHECK_STR(err.text, "the gzip data is damaged: incorrect data check");
	packed[len - 6] ^= 1;
	packed[len - 3] ^= 1; /* of the length */
	got = check_forward(folder_write(&s, "len.gz", packed, len), text, TEXT_BYTES, ST_FORMAT,
			    &err);
	CHECK_U64(got, TEXT_BYTES);
	CHECK(strcmp(err.text, "the gzip data is damaged: incorrect length check") == 0 ||
	      strcmp(err.text, "the gzip data is damaged: incorrect data check") == 0); /* ISA-L */
	free(packed);
	free(text);
	folder_remove(&s);
}

static void write_packed(const char *path, const char *filter, const char *text, size_t len)
{
	struct archive *a = archive_write_new();
	struct archive_entry *entry = archive_entry_new();

	CHECK(archive_write_set_format_raw(a) == ARCHIVE_OK);
	CHECK(archive_write_add_filter_by_name(a, filter) == ARCHIVE_OK);
	CHECK(archive_write_open_filename(a, path) == ARCHIVE_OK);
	archive_entry_set_pathname(entry, "data");
	archive_entry_set_filetype(entry, AE_IFREG);
	CHECK(archive_write_header(a, entry) == ARCHIVE_OK);
	CHECK(archive_write_data(a, text, len) == (la_ssize_t)len);
	CHECK(archive_write_close(a) == ARCHIVE_OK);
	archive_write_free(a);
	archive_entry_free(entry);
}

void test_input_filters(void)
{
	static const char *const filters[] = { "zstd", "xz", "bzip2", "lz4" };
	char *text = made_text(TEXT_BYTES), *packed;
	struct folder s;
	struct error err;
	size_t i, len, got;

	folder_make(&s);
	for (i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		write_packed(folder_path(&s, filters[i]), filters[i], text, TEXT_BYTES);
		CHECK_U64(check_forward(s.path, text, TEXT_BYTES, ST_OK, &err), TEXT_BYTES);
		packed = folder_read(s.path, &len);
		CHECK(len > 1000 && len < TEXT_BYTES);
		got = check_forward(folder_write(&s, "cut", packed, len / 2), text, TEXT_BYTES,
				    ST_TRUNCATED, &err);
		CHECK_U64(err.at, got);
		CHECK(got < TEXT_BYTES && strstr(err.text, filters[i]) != NULL);
		free(packed);
	}
	free(text);
	folder_remove(&s);
}

void test_input_refused(void)
{
	struct folder s;
	struct input *in;
	struct error err;

	folder_make(&s);
	CHECK_U64(input_open(&in, folder_path(&s, "absent"), NULL, &err), ST_IO);
	CHECK_STR(err.text, "cannot be opened: No such file or directory");
	CHECK(in == NULL);
	CHECK_U64(input_open(&in, s.folder, NULL, &err), ST_IO);
	CHECK_STR(err.text, "is a folder");
	folder_remove(&s);
}

void test_input_stdin(void)
{
	char text[] = "through a pipe";
	const uint8_t *bytes;
	struct error err = { 0 };
	struct input *in;
	int ends[2], saved = dup(STDIN_FILENO);
	struct input_progress at;
	size_t len;

	if (!CHECK(pipe(ends) == 0))
		return;
	CHECK(write(ends[1], text, sizeof(text)) == sizeof(text));
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	if (CHECK_OK(input_open(&in, "-", NULL, &err), &err)) {
		CHECK_STR(input_path(in), "(stdin)");
		CHECK_OK(input_peek(in, 100, &bytes, &len, &err), &err);
		CHECK_U64(len, sizeof(text));
		CHECK_MEM(bytes, text, sizeof(text));
		input_look(in, &at);
		CHECK_U64(at.all_bytes, 0);
		CHECK_OK(input_random(in, &err), &err); /* nothing was passed yet */
		CHECK_U64(input_size(in), sizeof(text));
		input_close(in);
	}
	dup2(saved, STDIN_FILENO);
	close(saved);
}

static void check_random(const char *path, const char *folder, const char *text, size_t len,
			 enum status behind)
{
	struct error err = { 0 };
	uint64_t random = 3;
	struct input *in;
	char bytes[5000];
	size_t i, got;

	if (!CHECK_OK(input_open(&in, path, folder, &err), &err))
		return;
	CHECK_OK(input_random(in, &err), &err);
	CHECK_OK(input_random(in, &err), &err);
	CHECK_U64(input_size(in), len);
	for (i = 0; i < 100; i++) {
		size_t at = (size_t)(random_u64(&random) % len);
		size_t want = (size_t)(random_u64(&random) % sizeof(bytes)) + 1;

		CHECK_OK(input_read_at(in, at, bytes, want, &got, &err), &err);
		CHECK_U64(got, want < len - at ? want : len - at);
		CHECK_MEM(bytes, text + at, got);
	}
	CHECK_U64(input_read_at(in, len, bytes, 1, &got, &err), behind);
	CHECK_U64(got, 0);
	input_close(in);
}

void test_input_random(void)
{
	char *text = made_text(TEXT_BYTES), *packed;
	struct error err = { 0 };
	struct folder s;
	struct input *in;
	size_t len;

	folder_make(&s);
	check_random(folder_write(&s, "plain", text, TEXT_BYTES), s.folder, text, TEXT_BYTES,
		     ST_OK);
	check_random(folder_gzip(&s, "a.gz", text, TEXT_BYTES, 0), s.folder, text, TEXT_BYTES,
		     ST_OK);
	packed = folder_read(s.path, &len);
	check_forward(folder_write(&s, "cut.gz", packed, len / 2), text, TEXT_BYTES, ST_TRUNCATED,
		      &err);
	check_random(s.path, s.folder, text, (size_t)err.at, ST_TRUNCATED);
	free(packed);
	if (CHECK_OK(input_open(&in, folder_gzip(&s, "b.gz", text, 100, 0), "/nowhere", &err),
		     &err)) {
		CHECK_U64(input_random(in, &err), ST_IO);
		CHECK(strstr(err.text, "cannot create a temporary file in /nowhere") == err.text);
		input_close(in);
	}
	free(text);
	folder_remove(&s);
}

void test_input_paths(void)
{
	static const char *const names[] = {
		"run/b.pt.trace.json.gz", "run/a.tacho",    "run/deep/er/c.json", "run/notes.txt",
		"run/.hidden.json",       "run/d.json.zst", "run/json",           "none/readme.md",
	};
	static const char *const found[] = {
		"run/a.tacho",
		"run/b.pt.trace.json.gz",
		"run/d.json.zst",
		"run/deep/er/c.json",
	};
	struct input_paths paths;
	char folder[600], absent[600], *operands[] = { folder, absent, (char[]){ "-" } };
	struct error err = { 0 };
	struct folder s;
	size_t i;

	folder_make(&s);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		folder_write(&s, names[i], "x", 1);
	CHECK(symlink("..", folder_path(&s, "run/deep/circle")) == 0);
	snprintf(folder, sizeof(folder), "%s/run", s.folder);
	snprintf(absent, sizeof(absent), "%s/absent", s.folder);
	CHECK_OK(input_paths_find(&paths, operands, 3, "/tmp", &err), &err);
	if (CHECK_U64(paths.count, 6)) {
		for (i = 0; i < 4; i++)
			CHECK_STR(paths.paths[i], folder_path(&s, found[i]));
		CHECK_STR(paths.paths[4], absent);
		CHECK_STR(paths.paths[5], "-");
	}
	input_paths_free(&paths);
	snprintf(folder, sizeof(folder), "%s/none/", s.folder);
	CHECK_U64(input_paths_find(&paths, operands, 1, "/tmp", &err), ST_FORMAT);
	CHECK(strstr(err.text, "contains no traces") != NULL);
	CHECK(paths.paths == NULL);
	input_paths_free(&paths);
	folder_remove(&s);
}
