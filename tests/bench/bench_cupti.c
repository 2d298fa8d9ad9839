/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cupti.c - what the writer's thread does to a record of CUPTI: from the completed buffer to
 * encoded columns, in ns, beside memcpy() of the same cold buffers.
 *
 *	bench_cupti [LIBCUPTI [WHAT [FOLDER]]]
 *
 * WHAT: kernel (216 bytes), call (40), launch (one of each and a driver call); none: all.  With a
 * library its own GetNextRecord walks, else ours.  With a FOLDER it is done once, and the log
 *stays.
 *
 * The records are those of CUDA 13.0: a sequence of launches that comes again and again, of 549
 * shapes and 174 names on 4 streams, with jitter in times.  Bytes per record are of the log's file.
 */
#include "collector/config/config.h"
#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/rows.h"
#include "collector/probe/cupti/client.h"
#include "collector/probe/probe.h"
#include "collector/store/internal.h"
#include "collector/session/clock.h"
#include "tests/unit/cupti_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BUFFER = 512 * 1024,
	BUFFERS = 192,
	SEQUENCE = 2000,
	SCHEMAS = 549,
	NAMES = 174,
	REPEATS = 5
};
enum { KERNEL_BYTES = 216, CALL_BYTES = 40 };

static uint8_t *buffers, *copy;
static size_t valid[BUFFERS];
static unsigned marks[BUFFERS];
static uint64_t now_ns, ends[4], seed = 88172645463325252u;
static uint32_t correlation, grid, process_id;
static char names[NAMES][96];
static uint16_t schemas[SEQUENCE];

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % below;
}

/* ---- records ---- */

static void put32(uint8_t *r, size_t at, uint32_t v)
{
	memcpy(r + at, &v, sizeof(v));
}

static void put64(uint8_t *r, size_t at, uint64_t v)
{
	memcpy(r + at, &v, sizeof(v));
}

static void make_kernel(uint8_t *r, unsigned i)
{
	unsigned schema = schemas[i % SEQUENCE], stream = schema % 16 ? 0 : schema % 3 + 1;
	uint64_t begin = now_ns > ends[stream] ? now_ns : ends[stream];
	uint64_t length = 1000 + schema * 97 + draw(200) * 32;

	ends[stream] = begin + length;
	put32(r, 0, 10);
	r[6] = (uint8_t)(16 + schema % 200);
	put64(r, 16, begin);
	put64(r, 24, begin + length);
	put64(r, 32, begin + length);
	put32(r, 44, 1);
	put32(r, 48, 7 + stream * 6);
	put32(r, 52, 1 + schema);
	put32(r, 56, 1);
	put32(r, 60, 1);
	put32(r, 64, 128 << schema % 3);
	put32(r, 68, 1);
	put32(r, 72, 1);
	put32(r, 80, schema % 7 * 1024);
	put32(r, 92, correlation);
	put64(r, 96, grid++);
	put64(r, 104, (uintptr_t)names[schema % NAMES]);
	put32(r, 168, 3);
	put32(r, 172, 1);
}

static void make_call(uint8_t *r, uint32_t kind, uint32_t cbid)
{
	put32(r, 0, kind);
	put32(r, 4, cbid);
	put64(r, 8, now_ns);
	put64(r, 16, now_ns + 2000 + draw(1500));
	put32(r, 24, process_id);
	put32(r, 28, process_id);
	put32(r, 32, correlation);
}

static size_t make_launch(uint8_t *r, const char *what, unsigned i)
{
	size_t len = 0;

	now_ns += 3500 + draw(2000);
	correlation += 1 + draw(3);
	if (*what != 'c') {
		make_kernel(r, i);
		len += KERNEL_BYTES;
	}
	if (*what == 'l') {
		make_call(r + len, 4, 307);
		len += CALL_BYTES;
	}
	if (*what != 'k') {
		make_call(r + len, 5, i % 7 ? 211 : 51);
		len += CALL_BYTES;
	}
	return len;
}

static void fill(const char *what)
{
	unsigned launches = 0, b;

	memset(buffers, 0, (size_t)BUFFER * BUFFERS);
	for (b = 0; b < BUFFERS; b++)
		for (valid[b] = 0; valid[b] + 512 < BUFFER; launches++)
			valid[b] += make_launch(buffers + (size_t)b * BUFFER + valid[b], what,
						launches);
}

/* ---- measuring ---- */

static double seconds(void)
{
	return (double)tick_clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
}

static double time_copy(void)
{
	double begin = seconds();
	unsigned b;

	for (b = 0; b < BUFFERS; b++)
		memcpy(copy + (size_t)b * BUFFER, buffers + (size_t)b * BUFFER, valid[b]);
	return seconds() - begin;
}

static double time_rows(struct writer *w)
{
	double begin = seconds();
	unsigned b;

	for (b = 0; b < BUFFERS; b++) {
		struct pool_buffer p = { .bytes = buffers + (size_t)b * BUFFER,
					 .valid = valid[b],
					 .completed_ns = UINT64_MAX / 2,
					 .marks = marks[b] };

		cupti_rows_put(w, &p, 0, 0);
	}
	return seconds() - begin;
}

static double time_names(const struct cupti_lib *lib)
{
	double begin = seconds();
	unsigned b;

	for (b = 0; b < BUFFERS; b++)
		marks[b] = cupti_names_keep(lib, buffers + (size_t)b * BUFFER, valid[b]);
	return seconds() - begin;
}

static void run(const char *what, const struct cupti_lib *lib, struct writer *w, unsigned repeats)
{
	double best_copy = 1e9, best_rows = 1e9, best_names = 1e9, t;
	uint64_t before, bytes, records;
	unsigned i;

	for (i = 0; i < repeats; i++) {
		cupti_clock_note(true);
		now_ns = tick_clock_ns(CLOCK_REALTIME) - 60000000000u;
		memset(ends, 0, sizeof(ends));
		fill(what);
		t = time_copy();
		best_copy = t < best_copy ? t : best_copy;
		t = time_names(lib);
		best_names = t < best_names ? t : best_names;
		before = w->store ? w->store->type->bytes(w->store) : 0;
		records = cupti_row_counts()->rows;
		t = time_rows(w);
		writer_flush_log(w, 0);
		best_rows = t < best_rows ? t : best_rows;
		bytes = w->store->type->bytes(w->store) - before;
		records = cupti_row_counts()->rows - records;
	}
	printf("%-8s %7.1f ns/record  memcpy %5.1f ns  ratio %4.2f  names %5.1f ns  %5.2f bytes  "
	       "(%llu records)\n",
	       what, best_rows / (double)records * 1e9, best_copy / (double)records * 1e9,
	       best_rows / best_copy, best_names / (double)records * 1e9,
	       (double)bytes / (double)records, (unsigned long long)records);
}

static void open_writer(struct writer *w, struct config *c, const char *kept)
{
	char folder[] = "/dev/shm/tacho-bench-XXXXXX", out[4096];
	char *variables[] = { out, (char *)"TACHO_WINDOW=all", (char *)"TACHO_MAX_DISK=0",
			      (char *)"TACHO_MEMORY=256M", NULL };

	if (!kept && !mkdtemp(folder))
		exit(1);
	snprintf(out, sizeof(out), "TACHO_OUT=%s", kept ? kept : folder);
	config_read(c, variables, NULL);
	w->config = c;
	w->recording = true;
}

static void remove_log(const struct config *c)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", c->out);
	if (system(command) != 0)
		fprintf(stderr, "%s stays\n", c->out);
}

static void find_library(struct cupti_lib *lib, const char *path)
{
	struct error err;

	if (path && cupti_lib_open(lib, path, &err) == ST_OK)
		return;
	if (path)
		fprintf(stderr, "bench_cupti: %s\n", err.text);
	library_open(lib, LIBRARY_13_0);
}

int main(int argc, char **argv)
{
	static const char *const whats[] = { "kernel", "call", "launch" };
	static struct cupti_lib lib;
	static struct writer w;
	static struct config c;
	unsigned i;

	process_id = (uint32_t)getpid();
	find_library(&lib, argc > 1 && *argv[1] ? argv[1] : NULL);
	buffers = malloc((size_t)BUFFER * BUFFERS);
	copy = malloc((size_t)BUFFER * BUFFERS);
	if (!buffers || !copy)
		return 1;
	memset(copy, 1, (size_t)BUFFER * BUFFERS);
	for (i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof(names[i]),
			 "void at::native::kernel_%u<4, float>(int, "
			 "Functor<float>)",
			 i);
	for (i = 0; i < SEQUENCE; i++)
		schemas[i] = (uint16_t)draw(SCHEMAS);
	tick_init(NULL);
	cupti_layouts_open(&lib, UINT32_MAX);
	cupti_calls_open(&lib);
	cupti_rows_open(&lib);
	cupti_clock_open(library_realtime);
	open_writer(&w, &c, argc > 3 ? argv[3] : NULL);
	for (i = 0; i < 3; i++)
		if (argc < 3 || strcmp(argv[2], whats[i]) == 0)
			run(whats[i], &lib, &w, argc > 3 ? 1 : REPEATS);
	writer_close_log(&w);
	if (argc <= 3)
		remove_log(&c);
	return 0;
}
