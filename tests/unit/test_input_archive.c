/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in tar and zip archives; nothing is written under the names in them. */
#include "convert/input/input.h"
#include "schemas/base/buf.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct member {
	const char *name, *text;
};

static void write_archive_as(const char *path, const struct member *m, size_t count, int format,
			     bool is_packed)
{
	struct archive *a = archive_write_new();

	archive_write_set_format(a, format);
	if (is_packed)
		archive_write_add_filter_gzip(a);
	CHECK(archive_write_open_filename(a, path) == ARCHIVE_OK);
	for (size_t i = 0; i < count; i++) {
		struct archive_entry *e = archive_entry_new();

		archive_entry_set_pathname(e, m[i].name);
		archive_entry_set_filetype(e, m[i].text ? AE_IFREG : AE_IFLNK);
		archive_entry_set_perm(e, 0644);
		if (m[i].text)
			archive_entry_set_size(e, (la_int64_t)strlen(m[i].text));
		else
			archive_entry_set_symlink(e, "/etc/passwd");
		CHECK(archive_write_header(a, e) == ARCHIVE_OK);
		if (m[i].text)
			archive_write_data(a, m[i].text, strlen(m[i].text));
		archive_entry_free(e);
	}
	archive_write_close(a);
	archive_write_free(a);
}

static void write_archive(const char *path, const struct member *m, size_t count, bool zip)
{
	int format = zip ? ARCHIVE_FORMAT_ZIP : ARCHIVE_FORMAT_TAR_USTAR;

	write_archive_as(path, m, count, format, false);
}

/* Of an input's bytes; "!" and the fault's text where it cannot be read. */
static void check_text(const char *path, const char *want)
{
	struct input *in = NULL;
	struct error err = { 0 };
	const uint8_t *bytes;
	size_t len;
	char got[256] = "!";

	if (input_open(&in, path, "/tmp", &err) == ST_OK &&
	    input_peek(in, 200, &bytes, &len, &err) == ST_OK) {
		snprintf(got, sizeof(got), "%.*s", (int)len, (const char *)bytes);
		input_skip(in, len);
		if (input_peek(in, 1, &bytes, &len, &err) != ST_OK)
			strcat(got, "!");
	}
	if (strchr(got, '!'))
		snprintf(got + strlen(got), 120, "%.98s", err.text);
	CHECK_STR(got, want);
	input_close(in);
}

static const struct member members[] = {
	{ "run/README", "nothing" },      { "run/report.json", "{\"schema\": \"tacho.report/1\"}" },
	{ "run/r0.json", "[zero]" },      { "run/.hidden.json", "no" },
	{ "../../etc/r1.json", "[one]" }, { "run/link.json", NULL },
	{ "/abs/r2.tacho", "[two]" },     { "bad\x1b[31m.json", "[three]" },
	{ "run/inner.tar", "no" },
};
enum { MEMBERS = sizeof(members) / sizeof(*members) };

static void check_archive(struct folder *f, const char *name, bool zip)
{
	static const char *const want[] = { "../../etc/r1.json", "/abs/r2.tacho", "run/r0.json",
					    "#8", "run/link.json" };
	struct input_paths paths;
	struct error err = { 0 };
	char *path = strdup(folder_path(f, name)), text[600];

	write_archive(path, members, MEMBERS, zip);
	if (CHECK_OK(input_paths_find(&paths, &path, 1, "/tmp", &err), &err)) {
		/* read forward, a zip does not tell a link from a text; none is followed */
		CHECK_U64(paths.count, zip ? 5 : 4);
		for (size_t i = 0; i < paths.count; i++) {
			const char *member = paths.paths[i] + strlen(path) + 1;
			bool known = false;

			for (size_t w = 0; w < 5; w++)
				known |= strcmp(member, want[w]) == 0;
			CHECK(known && paths.searched[i]);
		}
		input_paths_free(&paths);
	}
	check_text(path, "[zero]!the archive contains several traces (the second is "
			 "../../etc/r1.json), but only the first can be r");
	snprintf(text, sizeof(text), "%s:run/r0.json", path);
	check_text(text, "[zero]");
	snprintf(text, sizeof(text), "%s:../../etc/r1.json", path);
	check_text(text, "[one]");
	snprintf(text, sizeof(text), "%s:#8", path);
	check_text(text, "[three]");
	snprintf(text, sizeof(text), "%s:none", path);
	check_text(text, "!the archive has no such member");
	free(path);
}

void test_input_archive(void)
{
	struct folder f;

	folder_make(&f);
	check_archive(&f, "a.tar", false);
	check_archive(&f, "a.zip", true);
	CHECK(access("/etc/r1.json", F_OK) != 0);
	folder_remove(&f);
}

void test_input_archive_single(void)
{
	struct folder f;
	struct input_paths paths;
	struct error err = { 0 };
	char *path;

	folder_make(&f);
	path = strdup(folder_path(&f, "one.zip"));
	write_archive(path, members, 3, true);
	check_text(path, "[zero]");
	if (CHECK_OK(input_paths_find(&paths, &path, 1, "/tmp", &err), &err)) {
		CHECK_U64(paths.count, 1);
		CHECK_STR(paths.paths[0], path);
		input_paths_free(&paths);
	}
	write_archive(path, members + 8, 1, true); /* an archive in an archive */
	check_text(path, "!an archive that holds no trace (none of its files is named like one; an "
			 "archive inside it stays cl");
	free(path);
	folder_remove(&f);
}

/* Any range of a member, through a scratch file. */
/* "ustar" where a tar has it, in a file that is none. */
void test_input_archive_not(void)
{
	char text[1024];
	const char *path;
	struct input *in = NULL;
	const uint8_t *bytes;
	size_t len = 0;
	struct folder s;

	folder_make(&s);
	memset(text, ' ', sizeof(text));
	text[0] = '[';
	text[sizeof(text) - 1] = ']';
	memcpy(text + 257, "ustar", 5);
	path = folder_write(&s, "words.json", text, sizeof(text));
	CHECK(input_open(&in, path, "/tmp", NULL) == ST_OK);
	CHECK(input_peek(in, sizeof(text), &bytes, &len, NULL) == ST_OK);
	CHECK_MEM(bytes, text, sizeof(text));
	CHECK_U64(len, sizeof(text));
	input_close(in);
	folder_remove(&s);
}

void test_input_archive_random(void)
{
	struct folder f;
	struct input *in = NULL;
	struct error err = { 0 };
	uint8_t bytes[4] = { 0 };
	size_t got;

	folder_make(&f);
	write_archive(folder_path(&f, "one.tar"), members, 3, false);
	if (CHECK_OK(input_open(&in, folder_path(&f, "one.tar"), "/tmp", &err), &err) &&
	    CHECK_OK(input_random(in, &err), &err)) {
		CHECK_U64(input_size(in), 6);
		CHECK_OK(input_read_at(in, 2, bytes, 3, &got, &err), &err);
		CHECK_U64(got, 3);
		CHECK_MEM(bytes, "ero", 3);
	}
	input_close(in);
	folder_remove(&f);
}

/* 300 MB of zeros in 300 kB: refused where it would have to be kept, with one sentence. */
void test_input_bomb(void)
{
	struct folder f;
	struct input *in = NULL;
	struct error err = { 0 };
	uint8_t *zeros = calloc(1, 30 << 20);

	folder_make(&f);
	for (int i = 0; zeros && i < 10; i++)
		folder_gzip(&f, "bomb.gz", zeros, 30 << 20, i > 0);
	free(zeros);
	if (CHECK_OK(input_open(&in, folder_path(&f, "bomb.gz"), "/tmp", &err), &err)) {
		CHECK_U64(input_random(in, &err), ST_FORMAT);
		CHECK(strstr(err.text, "200 times") != NULL);
	}
	input_close(in);
	folder_remove(&f);
}

void test_input_archive_cut(void)
{
	struct folder f;
	uint8_t bytes[16384];
	size_t len;
	FILE *file;

	folder_make(&f);
	for (int zip = 0; zip < 2; zip++) {
		write_archive(folder_path(&f, "a"), members, 3, zip);
		file = fopen(folder_path(&f, "a"), "rb");
		len = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
		if (file)
			fclose(file);
		CHECK(len > 100);
		for (size_t cut = 1; cut < len; cut += zip ? 1 : 37) {
			struct input *in = NULL;
			struct error err = { 0 };
			const uint8_t *at;
			size_t got = 1;

			if (input_open(&in, folder_write(&f, "cut", bytes, cut), "/tmp", &err) ==
			    ST_OK) {
				while (input_peek(in, 64, &at, &got, &err) == ST_OK && got)
					input_skip(in, got);
			} else {
				CHECK(err.text[0] != 0);
			}
			input_close(in);
		}
	}
	folder_remove(&f);
}

/* ---- many members ---- */

enum { MANY = 40, NAME_MOST = 200 };

/* Bytes of the file that an input reads, which an unpacked copy has more of. */
static uint64_t bytes_of(const char *path)
{
	struct input *in = NULL;
	struct error err = { 0 };
	struct input_progress at = { .all_bytes = 0 };

	if (CHECK_OK(input_open(&in, path, "/tmp", &err), &err))
		input_look(in, &at);
	input_close(in);
	return at.all_bytes;
}

static void check_members(const struct input_paths *paths)
{
	CHECK_U64(paths->count, MANY);
	for (size_t i = 0; i < paths->count; i++) {
		const char *digits = strrchr(paths->paths[i], '-');
		char want[32];

		snprintf(want, sizeof(want), "[%d]", digits ? atoi(digits + 1) : -1);
		check_text(paths->paths[i], want);
	}
}

static void check_packed(struct folder *f, const struct member *many, int format, bool is_packed)
{
	struct input_paths paths;
	struct error err = { 0 };
	char *path = strdup(folder_path(f, "many")), *member;
	struct stat before = { 0 };

	write_archive_as(path, many, MANY, format, is_packed);
	CHECK(stat(path, &before) == 0);
	CHECK_OK(input_paths_find(&paths, &path, 1, "/tmp", &err), &err);
	check_members(&paths);
	check_members(&paths);
	CHECK((bytes_of(paths.paths[0]) > (uint64_t)before.st_size) == is_packed);
	write_archive_as(path, many + 1, MANY - 1, format, is_packed); /* another file by now */
	for (size_t i = 0; i < paths.count; i++)
		if (strstr(paths.paths[i], "-7.json"))
			check_text(paths.paths[i], "[7]");
	CHECK(stat(path, &before) == 0);
	CHECK_U64(bytes_of(paths.paths[1]), (uint64_t)before.st_size);
	member = strdup(paths.paths[1]);
	input_paths_free(&paths);
	CHECK_U64(bytes_of(member), (uint64_t)before.st_size);
	free(member);
	free(path);
}

/* A packed archive is unpacked once, whatever order its members are read in, and how often. */
void test_input_archive_many(void)
{
	static const int formats[] = { ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE,
				       ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FORMAT_ZIP };
	static char names[MANY][NAME_MOST], texts[MANY][16];
	struct member many[MANY];
	struct folder f;

	folder_make(&f);
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], NAME_MOST, "zyxwvuts%d-%d.json", i % 4, MANY - i);
		snprintf(texts[i], sizeof(texts[i]), "[%d]", MANY - i);
		many[i] = (struct member){ names[i], texts[i] };
	}
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		for (int packed = 0; packed < 2; packed++)
			check_packed(&f, many, formats[i], packed);
	for (int i = 0; i < MANY; i += 3) /* long names have headers before the header */
		snprintf(names[i], NAME_MOST, "%0150d-%d.json", i, MANY - i);
	for (size_t i = 1; i < sizeof(formats) / sizeof(formats[0]); i++)
		check_packed(&f, many, formats[i], true);
	folder_remove(&f);
}
