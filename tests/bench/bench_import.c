/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast an input becomes events, and nothing else: unpacked, read, sorted, drained.  On a busy
 * machine the CPU time of the reading thread, and the rest, say what the wall would with free
 * cores.
 * usage: bench_import FILE [HELPERS [REPEAT]]      the best of REPEAT runs
 */
#include "tests/bench/bench.h"

#include "convert/input/input.h"
#include "convert/source/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

struct run {
	double wall_s, cpu_s, own_s; /* own: of the thread that reads */
	uint64_t events, bytes, sum;
};

static enum status drain(struct source *source, struct run *r, struct error *err)
{
	struct batch batch;
	enum status status;

	while ((status = source_next(source, &batch, err)) == ST_OK) {
		r->events += batch.count;
		for (size_t i = 0; i < batch.count; i++)
			r->sum += batch.events[i].end_ns - batch.events[i].begin_ns;
	}
	return status == ST_END ? ST_OK : status;
}

static enum status import(const char *path, unsigned helpers, struct run *r, struct error *err)
{
	struct budget budget = {
		.opening = 24 << 20, .resident = 65536, .threads = helpers, .scratch = "/tmp"
	};
	struct source *source = NULL;
	struct input *in = NULL;
	struct trace *trace = NULL;
	enum status status = trace_new(&trace, 256 << 20, err);

	if (status == ST_OK)
		status = input_open(&in, path, "/tmp", err);
	if (status == ST_OK)
		status = source_open(&source, in, trace, &budget, NULL, err);
	if (status == ST_OK)
		status = drain(source, r, err);
	if (in)
		r->bytes = input_at(in);
	source_close(source);
	input_close(in);
	trace_free(trace);
	return status;
}

int main(int argc, char **argv)
{
	unsigned helpers = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	int repeat = argc > 3 ? atoi(argv[3]) : 1;
	struct run best = { .wall_s = 1e9, .cpu_s = 1e9, .own_s = 1e9 };
	struct rusage usage;
	struct error err = { 0 };

	if (argc < 2)
		return 64;
	for (int i = 0; i < repeat; i++) {
		double wall = now_s(CLOCK_MONOTONIC), cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
		double own = now_s(CLOCK_THREAD_CPUTIME_ID);
		struct run r = { 0 };

		if (import(argv[1], helpers, &r, &err) != ST_OK) {
			fprintf(stderr, "bench_import: %s: %s\n", argv[1], err.text);
			return 1;
		}
		r.wall_s = now_s(CLOCK_MONOTONIC) - wall;
		r.cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		r.own_s = now_s(CLOCK_THREAD_CPUTIME_ID) - own;
		best.own_s = r.own_s < best.own_s ? r.own_s : best.own_s;
		best.wall_s = r.wall_s < best.wall_s ? r.wall_s : best.wall_s;
		best.cpu_s = r.cpu_s < best.cpu_s ? r.cpu_s : best.cpu_s;
		best.events = r.events;
		best.bytes = r.bytes;
		best.sum = r.sum;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%llu events, %.1f MB of text; wall %.4f s = %.0f MB/s, %.2f M events/s; cpu %.4f "
	       "s, "
	       "reading thread %.4f s; peak %ld MB; sum %llu\n",
	       (unsigned long long)best.events, (double)best.bytes * 1e-6, best.wall_s,
	       (double)best.bytes * 1e-6 / best.wall_s, (double)best.events * 1e-6 / best.wall_s,
	       best.cpu_s, best.own_s, usage.ru_maxrss / 1024, (unsigned long long)best.sum);
	return 0;
}
