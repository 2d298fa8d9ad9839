/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes through the input layer: what compresses them, what archive they are, read forward and
 * then at random; both give the same bytes.
 */
#include "convert/input/input.h"
#include "schemas/base/crc32c.h"
#include "tests/fuzz/target.h"

enum { MOST = 4 << 20, MEMBERS = 8 };

struct read {
	uint64_t len;
	uint32_t crc;
	enum status status;
};

/* `ahead`: another thread unpacks what will be read. */
static struct read read_forward(const char *path, bool ahead)
{
	struct read r = { .status = ST_OK };
	struct input *in = NULL;
	const uint8_t *bytes;
	size_t len = 1;

	r.status = input_open(&in, path, "/tmp", NULL);
	if (r.status == ST_OK && ahead)
		input_read_ahead(in);
	while (r.status == ST_OK && len && r.len < MOST) {
		r.status = input_peek(in, 1 + r.len % 70000, &bytes, &len, NULL);
		if (r.status != ST_OK)
			break;
		r.crc = crc32c(r.crc, bytes, len);
		r.len += len;
		input_skip(in, len);
		if (input_at(in) != r.len)
			abort();
	}
	input_close(in);
	return r;
}

static struct read read_random(const char *path)
{
	struct read r = { .status = ST_OK };
	struct input *in = NULL;
	uint8_t bytes[4096];
	size_t got = 1;

	r.status = input_open(&in, path, "/tmp", NULL);
	if (r.status == ST_OK)
		r.status = input_random(in, NULL);
	while (r.status == ST_OK && got && r.len < MOST) {
		r.status = input_read_at(in, r.len, bytes, sizeof(bytes), &got, NULL);
		if (r.status != ST_OK)
			break;
		if (r.len + got > input_size(in))
			abort();
		r.crc = crc32c(r.crc, bytes, got);
		r.len += got;
	}
	input_close(in);
	return r;
}

static void read_both(const char *path)
{
	struct read a = read_forward(path, false), b = read_random(path);
	struct read c = read_forward(path, true);

	if (a.status != c.status || a.len != c.len || a.crc != c.crc)
		abort();
	if (a.status == ST_OK && b.status == ST_OK && a.len < MOST && b.len < MOST &&
	    (a.len != b.len || a.crc != b.crc))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_paths paths;
	char path[64], *operand = path;
	int fd = fuzz_file(data, size, path);
	size_t i;

	read_both(path);
	if (input_paths_find(&paths, &operand, 1, "/tmp", NULL) == ST_OK)
		for (i = 0; i < paths.count && i < MEMBERS; i++)
			read_both(paths.paths[i]);
	input_paths_free(&paths);
	close(fd);
	return 0;
}
