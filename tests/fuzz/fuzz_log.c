/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a log: what is given is in order and stands in the tables.  The bytes are taken as
 * they are, and then once more with every checksum made right, which a fuzzer cannot guess.
 * With -DREPLAY it is a program that reads the files that it is given.
 */
#include "convert/input.h"
#include "convert/source.h"
#include "schemas/bytes.h"
#include "schemas/crc32c.h"
#include "schemas/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct trace *t, const struct event *e, const struct event *last)
{
	const struct shape *shape = trace_get_shape(t, e->shape);

	if (event_before(e, last) || e->end_ns < e->begin_ns ||
	    e->track > trace_count(t, TRACE_TRACKS) || e->name > trace_count(t, TRACE_NAMES) ||
	    e->shape > trace_count(t, TRACE_SHAPES) || e->step)
		abort();
	for (uint32_t i = 0; i < shape->vary_count; i++)
		if (e->vary[i] == 0x5ca1ab1e5ca1ab1e) /* touched, so that a sanitizer sees it */
			abort();
}

static void read_log(const uint8_t *data, size_t size)
{
	struct budget budget = { .opening = 1 << 20, .resident = 65536, .scratch = "/tmp" };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct source *source = NULL;
	struct trace *t = NULL;
	struct input *in = NULL;
	struct event last = { .end_ns = UINT64_MAX };
	struct batch batch;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (input_open(&in, path, "/tmp", NULL) == ST_OK && trace_new(&t, 16 << 20, NULL) == ST_OK &&
	    source_log.open(&source, in, t, &budget, NULL, NULL) == ST_OK) {
		while (source_next(source, &batch, NULL) == ST_OK)
			for (size_t i = 0; i < batch.count; last = batch.events[i++])
				check_event(t, &batch.events[i], &last);
		source_close(source);
	}
	input_close(in);
	trace_free(t);
	close(fd);
}

/* Magic, sizes and checksums of whatever stands there as blocks. */
static void sign(uint8_t *bytes, size_t size)
{
	size_t at = LOG_FILE_HEADER_BYTES;

	if (size < at)
		return;
	log_put_file_header(bytes);
	while (size - at >= LOG_HEADER_BYTES) {
		uint8_t *header = bytes + at;
		size_t left = size - at - LOG_HEADER_BYTES, len = get_u32(header + 16) % 4096;

		len = len < left ? len : left;
		memcpy(header, "TBLK", 4);
		put_u32(header + 16, (uint32_t)len);
		if (!(header[10] & LOG_DEFLATED))
			put_u32(header + 20, (uint32_t)len);
		put_u32(header + 28, crc32c(0, header + LOG_HEADER_BYTES, len));
		put_u32(header + 4, crc32c(0, header + 8, LOG_HEADER_BYTES - 8));
		at += LOG_HEADER_BYTES + len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	read_log(data, size);
	memcpy(copy, data, size);
	sign(copy, size);
	read_log(copy, size);
	free(copy);
	return 0;
}

#ifdef REPLAY
int main(int argc, char **argv)
{
	static uint8_t bytes[1 << 24];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");

		if (f)
			LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof(bytes), f));
		if (f)
			fclose(f);
	}
	return 0;
}
#endif
