/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "convert/output/gzip.h"
#include "convert/output/output.h"
#include "schemas/base/buf.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

/* Names in a folder, but for . and .. */
static unsigned files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;
	struct dirent *d;

	while (dir && (d = readdir(dir)) != NULL)
		count += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	if (dir)
		closedir(dir);
	return count;
}

/* A file, unpacked if it is packed, is these bytes. */
static bool file_is(const char *path, const void *bytes, size_t len)
{
	char *got = malloc(len + 1);
	gzFile f = gzopen(path, "rb");
	int n = f && got ? gzread(f, got, (unsigned)len + 1) : -1;
	bool same = CHECK_I64(n, (int64_t)len) && CHECK_MEM(got, bytes, len);

	if (f)
		gzclose(f);
	free(got);
	return same;
}

void test_out_file(void)
{
	struct folder folder;
	struct out *o;
	struct error err;
	char path[512];

	folder_make(&folder);
	snprintf(path, sizeof(path), "%s", folder_path(&folder, "a.txt"));
	CHECK_OK(out_open(&o, path, false, &err), &err);
	CHECK_OK(out_write(o, "hello", 5, &err), &err);
	CHECK(access(path, F_OK) != 0);
	CHECK_U64(files_in(folder.folder), 1);
	out_free(o);
	CHECK_U64(files_in(folder.folder), 0);

	CHECK_OK(out_open(&o, path, false, &err), &err);
	CHECK_OK(out_write(o, "hello", 5, &err), &err);
	CHECK_OK(out_write(o, "", 0, &err), &err);
	CHECK_OK(out_commit(o, &err), &err);
	CHECK_U64(out_bytes(o), 5);
	CHECK_U64(out_stored(o), 5);
	out_free(o);
	CHECK_U64(files_in(folder.folder), 1);
	file_is(path, "hello", 5);
	folder_remove(&folder);
}

void test_out_replaces(void)
{
	struct folder folder;
	struct out *o;
	struct error err;
	char path[512];

	folder_make(&folder);
	snprintf(path, sizeof(path), "%s", folder_write(&folder, "a.txt", "old", 3));
	CHECK_OK(out_open(&o, path, false, &err), &err);
	CHECK_OK(out_write(o, "newer", 5, &err), &err);
	file_is(path, "old", 3);
	CHECK_OK(out_commit(o, &err), &err);
	out_free(o);
	file_is(path, "newer", 5);
	folder_remove(&folder);
}

/* Pieces of all sizes by both ways, to a plain and to a packed file. */
static void write_pieces(const char *path, const uint8_t *bytes, size_t len)
{
	uint64_t state = 5;
	struct error err;
	struct out *o;
	size_t at = 0;

	CHECK_OK(out_open(&o, path, false, &err), &err);
	while (at < len) {
		size_t n = random_u64(&state) % 70000;
		uint8_t *room;

		n = n > len - at ? len - at : n;
		room = n <= 65536 && n % 2 ? out_reserve(o, n) : NULL;
		if (room) {
			memcpy(room, bytes + at, n);
			out_advance(o, n);
		} else {
			CHECK_OK(out_write(o, bytes + at, n, &err), &err);
		}
		at += n;
	}
	CHECK(out_reserve(o, 65537) == NULL);
	CHECK_OK(out_commit(o, &err), &err);
	CHECK_U64(out_bytes(o), len);
	if (strstr(path, ".gz"))
		CHECK(out_stored(o) < len);
	else
		CHECK_U64(out_stored(o), len);
	out_free(o);
	file_is(path, bytes, len);
}

void test_out_pieces(void)
{
	enum { LEN = 3000000 };
	uint8_t *bytes = malloc(LEN);
	struct folder folder;
	uint64_t state = 9;
	char path[512];

	folder_make(&folder);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(random_u64(&state) % 7);
	snprintf(path, sizeof(path), "%s", folder_path(&folder, "plain"));
	write_pieces(path, bytes, LEN);
	snprintf(path, sizeof(path), "%s", folder_path(&folder, "packed.gz"));
	write_pieces(path, bytes, LEN);
	free(bytes);
	folder_remove(&folder);
}

void test_out_folder(void)
{
	struct folder folder;
	struct out *o;
	struct error err;

	folder_make(&folder);
	CHECK_OK(out_open(&o, folder.folder, true, &err), &err);
	CHECK_U64(out_write(o, "early", 5, &err), ST_OK);
	CHECK_U64(out_commit(o, &err), ST_USAGE);
	out_free(o);
	CHECK_OK(out_open(&o, folder.folder, true, &err), &err);
	CHECK_U64(out_begin(o, "../x", &err), ST_USAGE);
	CHECK_U64(out_begin(o, "/x", &err), ST_USAGE);
	CHECK_OK(out_begin(o, "a", &err), &err);
	CHECK_OK(out_write(o, "one", 3, &err), &err);
	CHECK_OK(out_begin(o, "deep/er/b.gz", &err), &err);
	CHECK_OK(out_write(o, "two", 3, &err), &err);
	CHECK(access(folder_path(&folder, "a"), F_OK) != 0);
	CHECK_OK(out_commit(o, &err), &err);
	out_free(o);
	file_is(folder_path(&folder, "a"), "one", 3);
	file_is(folder_path(&folder, "deep/er/b.gz"), "two", 3);
	folder_remove(&folder);
}

void test_out_folder_taken_back(void)
{
	struct folder folder;
	struct out *o;
	struct error err;

	folder_make(&folder);
	CHECK_OK(out_open(&o, folder.folder, true, &err), &err);
	CHECK_OK(out_begin(o, "a", &err), &err);
	CHECK_OK(out_begin(o, "b", &err), &err);
	CHECK_U64(files_in(folder.folder), 2);
	out_free(o);
	CHECK_U64(files_in(folder.folder), 0);
	folder_remove(&folder);
}

void test_out_faults(void)
{
	static uint8_t bytes[300000];
	struct out *o;
	struct error err;

	CHECK_U64(out_open(&o, NULL, true, &err), ST_USAGE);
	CHECK(o == NULL);
	CHECK_U64(out_open(&o, "/no/such/folder/x", false, &err), ST_IO);
	CHECK(o == NULL);
	CHECK_OK(out_open(&o, "/dev/full", false, &err), &err);
	CHECK_U64(out_write(o, bytes, sizeof(bytes), &err), ST_IO);
	err = (struct error){ 0 };
	CHECK_U64(out_write(o, bytes, 1, &err), ST_IO); /* it stays */
	CHECK(out_reserve(o, 1) == NULL);
	CHECK_U64(out_commit(o, &err), ST_IO);
	CHECK(strstr(err.text, "/dev/full") != NULL);
	out_free(o);
	out_free(NULL);
	CHECK_OK(out_open(&o, "/dev/full", false, &err), &err);
	CHECK_OK(out_write(o, bytes, 10, &err), &err);
	CHECK_U64(out_commit(o, &err), ST_IO); /* at the latest */
	out_free(o);
}

/* ---- gzip ---- */

static enum status take_packed(void *self, const void *bytes, size_t len, struct error *err)
{
	struct buf *b = self;

	buf_put(b, bytes, len);
	return buf_status(b, err);
}

static size_t unpack(const struct buf *packed, uint8_t *out, size_t cap)
{
	z_stream z = { .next_in = packed->data,
		       .avail_in = (uInt)packed->len,
		       .next_out = out,
		       .avail_out = (uInt)cap };

	CHECK(inflateInit2(&z, 15 + 16) == Z_OK);
	CHECK(inflate(&z, Z_FINISH) == Z_STREAM_END);
	CHECK_U64(z.avail_in, 0); /* one member and nothing behind it */
	inflateEnd(&z);
	return z.total_out;
}

static void pack_by(struct buf *out, const uint8_t *bytes, size_t len, size_t piece,
		    unsigned threads)
{
	struct error err;
	struct gzip *g;

	buf_init(out, 16 << 20);
	CHECK_OK(gzip_new(&g, 6, take_packed, out, &err), &err);
	gzip_set_threads(g, threads);
	for (size_t at = 0; at < len; at += piece)
		CHECK_OK(gzip_put(g, bytes + at, len - at < piece ? len - at : piece, &err), &err);
	CHECK_OK(gzip_finish(g, &err), &err);
	gzip_free(g);
}

static void pack(struct buf *out, const uint8_t *bytes, size_t len, size_t piece)
{
	pack_by(out, bytes, len, piece, 0);
}

/* What shrinks, and in the middle what does not. */
static uint8_t *make_bytes(size_t len)
{
	uint8_t *bytes = malloc(len);
	uint64_t state = 3;

	for (size_t i = 0; i < len; i++) {
		uint64_t r = random_u64(&state);

		bytes[i] = (uint8_t) "kernel, memcpy; "[r % 5 ? i % 16 : r % 16];
		if (i / 700000 == 1)
			bytes[i] = (uint8_t)r;
	}
	return bytes;
}

/* The same bytes by any number of helpers, whatever the pieces are that they come in. */
void test_gzip_threads(void)
{
	enum { LEN = 2500000 };
	uint8_t *bytes = make_bytes(LEN), *back = malloc(LEN);
	struct buf alone, helped;

	pack(&alone, bytes, LEN, LEN);
	CHECK(alone.len < LEN);
	CHECK_U64(unpack(&alone, back, LEN), LEN);
	CHECK_MEM(back, bytes, LEN);
	for (unsigned threads = 1; threads <= 20; threads *= 4) {
		pack_by(&helped, bytes, LEN, 100000 / threads, threads);
		CHECK_U64(helped.len, alone.len);
		CHECK_MEM(helped.data, alone.data, helped.len);
		buf_release(&helped);
	}
	buf_release(&alone);
	free(bytes);
	free(back);
}

static void write_big(const char *path, const uint8_t *bytes, size_t len)
{
	struct error err;
	struct out *o;

	CHECK_OK(out_open(&o, path, false, &err), &err);
	out_set_threads(o, 2);
	CHECK_OK(out_write(o, bytes, len, &err), &err);
	CHECK_U64(out_bytes(o), len);
	CHECK_OK(out_commit(o, &err), &err);
	CHECK_U64(out_largest(o), len);
	out_free(o);
}

/* Pieces that another thread writes are at their places. */
void test_out_threads(void)
{
	enum { LEN = 2500000 };
	uint8_t *bytes = make_bytes(LEN);
	struct folder folder;
	char path[512];

	folder_make(&folder);
	for (size_t len = LEN; len > 1000; len /= 9) {
		snprintf(path, sizeof(path), "%s", folder_path(&folder, len % 2 ? "a.gz" : "a"));
		write_big(path, bytes, len);
		CHECK(file_is(path, bytes, len));
	}
	write_big(folder_path(&folder, "b.gz"), bytes, LEN);
	CHECK(file_is(folder_path(&folder, "b.gz"), bytes, LEN));
	CHECK_U64(files_in(folder.folder), 3);
	folder_remove(&folder);
	free(bytes);
}

/* The disk is full while another thread writes: told at the latest by the commit. */
void test_out_threads_fault(void)
{
	enum { LEN = 3000000 };
	uint8_t *bytes = make_bytes(LEN);
	struct folder folder;
	struct rlimit before, small;
	struct error err = { .status = ST_OK };
	struct out *o;

	folder_make(&folder);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 600000;
	CHECK_OK(out_open(&o, folder_path(&folder, "a"), false, &err), &err);
	out_set_threads(o, 1);
	setrlimit(RLIMIT_FSIZE, &small);
	if (out_write(o, bytes, LEN, &err) == ST_OK)
		out_commit(o, &err);
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, SIG_DFL);
	CHECK_U64(err.status, ST_IO);
	CHECK(strstr(err.text, "cannot write") != NULL);
	CHECK(out_commit(o, &err) == ST_IO); /* and remembered */
	out_free(o);
	CHECK_U64(files_in(folder.folder), 0);
	folder_remove(&folder);
	free(bytes);
}

void test_gzip_member(void)
{
	enum { LEN = 500000 };
	uint8_t *bytes = malloc(LEN), *back = malloc(LEN);
	struct buf a, b;
	uint64_t state = 3;

	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)random_u64(&state);
	pack(&a, bytes, LEN, LEN);
	pack(&b, bytes, LEN, 1000);
	CHECK_U64(a.len, b.len);
	CHECK_MEM(a.data, b.data, a.len);
	CHECK_U64(unpack(&a, back, LEN), LEN);
	CHECK_MEM(back, bytes, LEN);
	buf_release(&a);
	buf_release(&b);
	pack(&a, bytes, 0, 1);
	CHECK_U64(unpack(&a, back, LEN), 0);
	CHECK_MEM(a.data + 4, "\0\0\0\0", 4); /* no time of writing */
	buf_release(&a);
	free(bytes);
	free(back);
}

void test_gzip_fault(void)
{
	enum { LEN = 3000000 };
	uint8_t *bytes = malloc(LEN);
	uint64_t state = 3;
	struct error err;
	struct gzip *g;
	struct buf small;

	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)random_u64(&state);
	buf_init(&small, 1000);
	CHECK_OK(gzip_new(&g, 1, take_packed, &small, &err), &err);
	CHECK_U64(gzip_put(g, bytes, LEN, &err), ST_CEILING);
	gzip_free(g);
	buf_clear(&small);
	CHECK_OK(gzip_new(&g, 1, take_packed, &small, &err), &err);
	gzip_set_threads(g, 2); /* jobs are under way when it ends */
	CHECK_U64(gzip_put(g, bytes, LEN, &err), ST_CEILING);
	gzip_free(g);
	buf_clear(&small);
	CHECK_OK(gzip_new(&g, 1, take_packed, &small, &err), &err);
	CHECK_OK(gzip_put(g, bytes, 2000, &err), &err); /* less than a block */
	CHECK_U64(gzip_finish(g, &err), ST_CEILING);
	gzip_free(g);
	gzip_free(NULL);
	buf_release(&small);
	free(bytes);
}
