/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no tool can be faster than, and what a plain one does; each is a command to be timed.
 *
 * usage: bench_limits inflate FILE.gz     zlib alone, the text thrown away
 *        bench_limits deflate FILE        zlib alone at level 6 (gzip's), the bytes thrown away
 *        bench_limits copy FILE           the file into memory, then copied block by block
 *        bench_limits write FILE MB       so much to a new file and to the disk, then removed
 *        bench_limits cjson FILE          cJSON's tree of a JSON file
 *        bench_limits sprintf FILE ROWS   so many events of Chrome's JSON, each a printf
 *        bench_limits run COMMAND...      what a command costs: seconds, of CPU, peak KiB; its
 *                                         exit code.  The peak of a process counts from before
 *                                         exec, so what starts it must be small.
 */
#include "tests/bench/bench.h"

#include <cjson/cJSON.h>
#include <zlib.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 1 << 18, GZIP = 16 };

static char *read_whole(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *bytes;

	need(f && fseek(f, 0, SEEK_END) == 0, path);
	*len = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(*len + 1);
	need(bytes && fread(bytes, 1, *len, f) == *len, "cannot be read");
	bytes[*len] = 0;
	fclose(f);
	return bytes;
}

static void inflate_file(const char *path, const char *unused)
{
	size_t len;
	char *packed = read_whole(path, &len);
	static unsigned char text[PIECE];
	z_stream z = { .next_in = (unsigned char *)packed, .avail_in = (uInt)len };
	int rc;

	need(inflateInit2(&z, 15 + GZIP) == Z_OK, "zlib");
	do {
		z.next_out = text;
		z.avail_out = PIECE;
		rc = inflate(&z, Z_NO_FLUSH);
	} while (rc == Z_OK);
	need(rc == Z_STREAM_END, "not a whole gzip file");
	inflateEnd(&z);
	free(packed);
}

static void deflate_file(const char *path, const char *unused)
{
	static unsigned char packed[PIECE];
	z_stream z = { 0 };
	size_t len;
	char *text = read_whole(path, &len);

	need(deflateInit2(&z, 6, Z_DEFLATED, 15 + GZIP, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
	z.next_in = (unsigned char *)text;
	z.avail_in = (uInt)len;
	do {
		z.next_out = packed;
		z.avail_out = PIECE;
	} while (deflate(&z, Z_FINISH) != Z_STREAM_END);
	deflateEnd(&z);
	free(text);
}

static void copy_file(const char *path, const char *unused)
{
	static char to[PIECE];
	size_t len, at;
	char *from = read_whole(path, &len);

	for (at = 0; at + PIECE <= len; at += PIECE) {
		memcpy(to, from + at, PIECE);
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	free(from);
}

static void write_file(const char *path, const char *count)
{
	static char piece[1 << 20];
	long i, mb = strtol(count, NULL, 10);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	need(fd >= 0, path);
	memset(piece, 'x', sizeof(piece));
	for (i = 0; i < mb; i++)
		need(write(fd, piece, sizeof(piece)) == (ssize_t)sizeof(piece), "disk full");
	fsync(fd);
	close(fd);
	unlink(path);
}

static void parse_file(const char *path, const char *unused)
{
	size_t len;
	char *text = read_whole(path, &len);
	cJSON *tree = cJSON_ParseWithLength(text, len);

	need(tree != NULL, "not JSON to cJSON");
	cJSON_Delete(tree);
	free(text);
}

/* The text of one kernel as Kineto writes it, with all arguments. */
static void print_file(const char *path, const char *count)
{
	uint64_t i, rows = strtoull(count, NULL, 10);
	FILE *f = fopen(path, "w");

	need(f != NULL, path);
	fputs("{\"traceEvents\": [\n", f);
	for (i = 0; i < rows; i++)
		fprintf(f,
			"  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
			"kernel_%" PRIu64
			"<float, 4>(float const*, float*, int)\", \"pid\": %d, \"tid\": %d,\n"
			"    \"ts\": %" PRIu64 ".%03d, \"dur\": %d.%03d,\n    \"args\": {\n"
			"      \"External id\": %" PRIu64
			",\n      \"queued\": %d, \"device\": %d, "
			"\"context\": %d,\n      \"stream\": %d, \"correlation\": %" PRIu64 ",\n"
			"      \"registers per thread\": %d,\n      \"shared memory\": %d,\n"
			"      \"blocks per SM\": %g,\n      \"warps per SM\": %g,\n"
			"      \"grid\": [%d, %d, %d],\n      \"block\": [%d, %d, %d],\n"
			"      \"est. achieved occupancy %%\": %d\n    }\n  },\n",
			i % 300, 0, 7, 1000000 + i * 5, (int)(i % 1000), (int)(i % 97),
			(int)(i % 1000), i * 3, 0, 0, 1, 7, i * 2, 32, 49152, 1.25, 10.5, 128, 1, 1,
			256, 1, 1, 63);
	fputs("{}]}\n", f);
	need(fclose(f) == 0, "disk full");
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static int run_command(char **command)
{
	double begin = now_s(CLOCK_MONOTONIC);
	pid_t child = fork();
	struct rusage used;
	int state = 0;

	if (child == 0) {
		int nowhere = open("/dev/null", O_WRONLY);

		dup2(nowhere, 1);
		dup2(nowhere, 2);
		execvp(command[0], command);
		_exit(127);
	}
	need(child > 0 && wait4(child, &state, 0, &used) == child, "cannot start a process");
	printf("%.6f %.6f %ld\n", now_s(CLOCK_MONOTONIC) - begin,
	       seconds_of(used.ru_utime) + seconds_of(used.ru_stime), used.ru_maxrss);
	return WIFEXITED(state) ? WEXITSTATUS(state) : 1;
}

static const struct {
	const char *name;
	void (*run)(const char *path, const char *more);
	int words;
} commands[] = {
	{ "inflate", inflate_file, 1 }, { "deflate", deflate_file, 1 },
	{ "copy", copy_file, 1 },       { "write", write_file, 2 },
	{ "cjson", parse_file, 1 },     { "sprintf", print_file, 2 },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 2 && strcmp(argv[1], "run") == 0)
		return run_command(argv + 2);
	for (i = 0; argc > 2 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0 && argc == 2 + commands[i].words) {
			commands[i].run(argv[2], argv[3]);
			return 0;
		}
	fputs("usage: bench_limits inflate|deflate|copy|cjson FILE | write FILE MB |"
	      " sprintf FILE ROWS | run COMMAND...\n",
	      stderr);
	return 2;
}
