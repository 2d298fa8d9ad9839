/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events per second of the writer of Chrome JSON on one core, beside the same text by sprintf and
 * the same objects by cJSON; plain to /dev/null, and packed.
 *
 * usage: bench_chrome [MILLIONS]    kernels of 300 long names on eight streams, and their launches
 */
#include "tests/bench/bench.h"

#include "convert/base/parallel.h"
#include "convert/output/gzip.h"
#include "convert/output/output.h"
#include "convert/sink/sink.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
	BATCH = 8192,
	STREAMS = 8,
	NAMES = 300,
	SCHEMAS = 50,
	ROUNDS = 3,
	SLOWER = 10, /* the references write so much less */
	PIECE_BYTES = 1 << 20,
	LINE_MOST = 4096,
	TABLES_CEILING = 64 << 20,
};
#define BASE_NS UINT64_C(1700000000000000000)

enum mix { KERNELS, CALLS, BOTH };

struct bench {
	struct trace *trace;
	uint32_t process, thread, launch, call_schema;
	uint32_t tracks[STREAMS], names[NAMES], schemas[SCHEMAS];
	char texts[NAMES][200];
	struct event events[BATCH];
	uint64_t at_ns, correlation;
	enum mix mix;
	size_t batches;
};

/* ---- what is written ---- */

static uint32_t make_schema(struct bench *b, const char *const *keys, const uint64_t *numbers,
			    size_t count)
{
	struct attr attrs[8];
	struct arg_schema schema = { .consts = attrs, .const_count = (uint32_t)count };
	struct error err;

	for (size_t i = 0; i < count; i++) {
		uint32_t key = trace_name(b->trace, keys[i], strlen(keys[i]), &err);

		attrs[i] = (struct attr){ .key = key, .type = ATTR_U64, .bits = numbers[i] };
	}
	return trace_schema(b->trace, &schema, &err);
}

static void make_schemas(struct bench *b)
{
	static const char *const keys[] = { "grid_x",  "grid_y",  "grid_z",   "block_x",
					    "block_y", "block_z", "registers" };
	static const char *const call_keys[] = { "cbid" };

	for (uint64_t i = 0; i < SCHEMAS; i++)
		b->schemas[i] =
			make_schema(b, keys, (uint64_t[]){ 80 + i, 1, 1, 256, 1, 1, 40 }, 7);
	b->call_schema = make_schema(b, call_keys, (uint64_t[]){ 211 }, 1);
	need(b->schemas[0] && b->call_schema, "no shapes");
}

static void make_tables(struct bench *b)
{
	struct error err;
	struct process p = { .pid = 4000, .rank = 0, .world_size = 2 };
	struct track thread = {
		.type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = 4001
	};

	need(trace_new(&b->trace, TABLES_CEILING, &err) == ST_OK, err.text);
	b->process = thread.process = trace_process(b->trace, &p, &err);
	b->thread = trace_track(b->trace, &thread, &err);
	for (size_t i = 0; i < STREAMS; i++) {
		struct track k = {
			.type = TRACK_STREAM, .context = 1, .id = 7 + i, .process = b->process
		};

		b->tracks[i] = trace_track(b->trace, &k, &err);
	}
	for (size_t i = 0; i < NAMES; i++) {
		int n = snprintf(b->texts[i], sizeof(b->texts[i]),
				 "void at::native::vectorized_elementwise_kernel<4, "
				 "at::native::Functor%zu<float>, std::array<char*, 3>>(int)",
				 i);

		b->names[i] = trace_name(b->trace, b->texts[i], (size_t)n, &err);
	}
	b->launch = trace_name(b->trace, "cudaLaunchKernel", 16, &err);
	make_schemas(b);
}

static size_t name_of(uint64_t correlation)
{
	return (correlation * 31) % NAMES;
}

/* A kernel of 1 to 50 us, or its launch 10 us before. */
static void make_event(struct bench *b, struct event *e, bool is_kernel)
{
	uint64_t length_ns = 1000 + (b->correlation * 7919) % 49000;

	if (is_kernel)
		*e = (struct event){ .begin_ns = b->at_ns,
				     .end_ns = b->at_ns + length_ns,
				     .kind = KIND_KERNEL,
				     .track = b->tracks[b->correlation % STREAMS],
				     .name = b->names[name_of(b->correlation)],
				     .schema = b->schemas[b->correlation % SCHEMAS],
				     .correlation = b->correlation };
	else
		*e = (struct event){ .begin_ns = b->at_ns - 10000,
				     .end_ns = b->at_ns - 10000 + length_ns / 10,
				     .kind = KIND_API,
				     .track = b->thread,
				     .name = b->launch,
				     .schema = b->call_schema,
				     .correlation = b->correlation };
}

static void next_batch(struct bench *b)
{
	for (size_t i = 0; i < BATCH; i++) {
		bool is_kernel = b->mix == KERNELS || (b->mix == BOTH && i % 2);

		if (!is_kernel || b->mix == KERNELS) {
			b->correlation++;
			b->at_ns += 51000 / STREAMS;
		}
		make_event(b, &b->events[i], is_kernel);
	}
}

static void begin(struct bench *b)
{
	b->at_ns = BASE_NS;
	b->correlation = 0;
}

/* ---- ours ---- */

struct figures {
	double cpu_s, wall_s, bytes, stored;
};

static struct figures run_ours(struct bench *b, const char *path, unsigned threads)
{
	struct budget budget = { .opening = TABLES_CEILING, .resident = 65536, .scratch = "/tmp" };
	struct sink_request request = { .trace = b->trace,
					.budget = &budget,
					.process = b->process };
	struct figures f = { 0 };
	struct sink *sink;
	struct error err;

	need(out_open(&request.out, path, false, &err) == ST_OK, err.text);
	out_set_threads(request.out, threads);
	need(sink_open(&sink, &sink_chrome, &request, &err) == ST_OK, err.text);
	struct batch batch = { .events = b->events, .count = BATCH };

	begin(b);
	for (size_t i = 0; i <= b->batches; i++) {
		if (i < b->batches)
			next_batch(b);
		double cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID), wall_s = now_s(CLOCK_MONOTONIC);

		if (i < b->batches)
			need(sink_put(sink, &batch, &err) == ST_OK, err.text);
		else
			need(sink_close(sink, &err) == ST_OK && out_end(request.out, &err) == ST_OK,
			     err.text);
		f.cpu_s += now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
		f.wall_s += now_s(CLOCK_MONOTONIC) - wall_s;
	}
	sink_free(sink);
	f.bytes = (double)out_bytes(request.out);
	f.stored = (double)out_stored(request.out);
	out_free(request.out);
	return f;
}

/* ---- by sprintf, and by cJSON ---- */

#define ARROW                                                                                      \
	",\n{\"ph\": \"%c\", \"id\": %llu, \"pid\": %u, \"tid\": %llu, \"ts\": %s, "               \
	"\"cat\": \"ac2g\", \"name\": \"ac2g\"%s}"

/* As Kineto does it: whole microseconds, and the rest of a nanosecond's count. */
static const char *us_text(char *text, uint64_t ns)
{
	int n = sprintf(text, "%llu", (unsigned long long)(ns / 1000));

	if (ns % 1000)
		sprintf(text + n, ".%03u", (unsigned)(ns % 1000));
	return text;
}

static int print_kernel(char *out, const struct bench *b, const struct event *e, const char *ts,
			const char *dur)
{
	unsigned long long id = e->correlation, stream = 7 + id % STREAMS;

	return sprintf(out,
		       ",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", "
		       "\"pid\": %u, "
		       "\"tid\": %llu, \"ts\": %s, \"dur\": %s, \"args\": {\"correlation\": %llu, "
		       "\"device\": %u, \"context\": %u, \"stream\": %llu, \"grid\": [%u, %u, %u], "
		       "\"block\": [%u, %u, %u], \"registers per thread\": %u, "
		       "\"External id\": %u}}" ARROW,
		       b->texts[name_of(id)], 0u, stream, ts, dur, id, 0u, 1u, stream,
		       80 + (unsigned)(id % SCHEMAS), 1u, 1u, 256u, 1u, 1u, 40u, 0u, 'f', id, 0u,
		       stream, ts, ", \"bp\": \"e\"");
}

static int print_call(char *out, const struct event *e, const char *ts, const char *dur)
{
	unsigned long long id = e->correlation;

	return sprintf(out,
		       ",\n{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"%s\", "
		       "\"pid\": %u, \"tid\": %llu, \"ts\": %s, \"dur\": %s, \"args\": "
		       "{\"correlation\": %llu, \"cbid\": %u, \"External id\": %u}}" ARROW,
		       "cudaLaunchKernel", 4000u, 4001ull, ts, dur, id, 211u, 0u, 's', id, 4000u,
		       4001ull, ts, "");
}

static int by_sprintf(char *out, const struct bench *b, const struct event *e, uint64_t base_ns)
{
	char ts[32], dur[32];

	us_text(ts, e->begin_ns - base_ns);
	us_text(dur, e->end_ns - e->begin_ns);
	return e->kind == KIND_KERNEL ? print_kernel(out, b, e, ts, dur)
				      : print_call(out, e, ts, dur);
}

static void add_args(cJSON *o, const struct event *e)
{
	cJSON *args = cJSON_AddObjectToObject(o, "args"), *grid, *block;

	cJSON_AddNumberToObject(args, "correlation", (double)e->correlation);
	cJSON_AddNumberToObject(args, "External id", 0);
	if (e->kind == KIND_API) {
		cJSON_AddNumberToObject(args, "cbid", 211);
		return;
	}
	cJSON_AddNumberToObject(args, "device", 0);
	cJSON_AddNumberToObject(args, "context", 1);
	cJSON_AddNumberToObject(args, "stream", (double)(7 + e->correlation % STREAMS));
	grid = cJSON_AddArrayToObject(args, "grid");
	block = cJSON_AddArrayToObject(args, "block");
	for (unsigned i = 0; i < 3; i++) {
		double blocks = 80 + (double)(e->correlation % SCHEMAS);

		cJSON_AddItemToArray(grid, cJSON_CreateNumber(i ? 1 : blocks));
		cJSON_AddItemToArray(block, cJSON_CreateNumber(i ? 1 : 256));
	}
	cJSON_AddNumberToObject(args, "registers per thread", 40);
}

static int print_object(char *out, cJSON *o)
{
	need(cJSON_PrintPreallocated(o, out, LINE_MOST, false), "cJSON has no room");
	cJSON_Delete(o);
	return (int)strlen(out);
}

static int by_cjson(char *out, const struct bench *b, const struct event *e, uint64_t base_ns)
{
	bool is_kernel = e->kind == KIND_KERNEL;
	double stream = 7 + (double)(e->correlation % STREAMS);
	double pid = is_kernel ? 0 : 4000, tid = is_kernel ? stream : 4001;
	const char *name = is_kernel ? b->texts[name_of(e->correlation)] : "cudaLaunchKernel";
	const char *cat = is_kernel ? "kernel" : "cuda_runtime";
	int len = 0;

	for (unsigned i = 0; i < 2; i++) {
		cJSON *o = cJSON_CreateObject();

		cJSON_AddStringToObject(o, "ph", i ? (is_kernel ? "f" : "s") : "X");
		cJSON_AddStringToObject(o, "cat", i ? "ac2g" : cat);
		cJSON_AddStringToObject(o, "name", i ? "ac2g" : name);
		cJSON_AddNumberToObject(o, "pid", pid);
		cJSON_AddNumberToObject(o, "tid", tid);
		cJSON_AddNumberToObject(o, "ts", (double)(e->begin_ns - base_ns) / 1000);
		if (i)
			cJSON_AddNumberToObject(o, "id", (double)e->correlation);
		else
			cJSON_AddNumberToObject(o, "dur", (double)(e->end_ns - e->begin_ns) / 1000);
		if (!i)
			add_args(o, e);
		len += print_object(out + len, o);
	}
	return len;
}

typedef int (*print)(char *out, const struct bench *b, const struct event *e, uint64_t base_ns);

static struct figures run_reference(struct bench *b, print put, gzFile packed)
{
	static char piece[PIECE_BYTES];
	uint64_t base_ns = BASE_NS / 1000000000u / 7889238u * 7889238u * 1000000000u;
	struct figures f = { 0 };
	size_t filled = 0;
	FILE *nowhere = fopen("/dev/null", "wb");

	need(nowhere != NULL, "cannot open /dev/null");
	begin(b);
	for (size_t i = 0; i < b->batches; i += SLOWER) {
		next_batch(b);
		double from = now_s(CLOCK_PROCESS_CPUTIME_ID);
		for (size_t k = 0; k < BATCH; k++) {
			filled += (size_t)put(piece + filled, b, &b->events[k], base_ns);
			if (filled < PIECE_BYTES - 2 * LINE_MOST)
				continue;
			if (packed)
				f.bytes += gzwrite(packed, piece, (unsigned)filled);
			else
				f.bytes += (double)fwrite(piece, 1, filled, nowhere);
			filled = 0;
		}
		f.cpu_s += now_s(CLOCK_PROCESS_CPUTIME_ID) - from;
	}
	f.bytes += (double)filled;
	fclose(nowhere);
	return f;
}

/* ---- rows ---- */

static double events_of(const struct bench *b)
{
	return (double)(b->batches * BATCH);
}

static double reference_events(const struct bench *b)
{
	return (double)((b->batches + SLOWER - 1) / SLOWER * BATCH);
}

static double best_reference(struct bench *b, print put, bool is_packed, double *bytes)
{
	double best_s = 1e9;

	for (unsigned i = 0; i < ROUNDS; i++) {
		gzFile packed = is_packed ? gzopen("/dev/null", "wb6") : NULL;
		struct figures f = run_reference(b, put, packed);

		if (packed)
			gzclose(packed);
		best_s = f.cpu_s < best_s ? f.cpu_s : best_s;
		*bytes = f.bytes;
	}
	return reference_events(b) / best_s;
}

static void plain_row(struct bench *b, const char *what, enum mix mix)
{
	double best_s = 1e9, by_print, by_tree, bytes = 0, ours = 0;

	b->mix = mix;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct figures f = run_ours(b, "/dev/null", 0);

		best_s = f.cpu_s < best_s ? f.cpu_s : best_s;
		ours = f.bytes;
	}
	by_tree = best_reference(b, by_cjson, false, &bytes);
	by_print = best_reference(b, by_sprintf, false, &bytes);
	printf("%-22s %6.2f M events/s %5.1f ns %4.0f B   sprintf %5.2f M/s %4.0f B %5.1f x   "
	       "cJSON %5.2f M/s %5.1f x\n",
	       what, events_of(b) / best_s / 1e6, best_s / events_of(b) * 1e9, ours / events_of(b),
	       by_print / 1e6, bytes / reference_events(b), events_of(b) / best_s / by_print,
	       by_tree / 1e6, events_of(b) / best_s / by_tree);
}

static void packed_row(struct bench *b, unsigned threads, double by_print)
{
	char path[64];
	double cpu_s = 1e9, wall_s = 1e9;
	struct figures f;

	snprintf(path, sizeof(path), "/tmp/bench_chrome.%ld.json.gz", (long)getpid());
	for (unsigned i = 0; i < ROUNDS; i++) {
		f = run_ours(b, path, threads);
		cpu_s = f.cpu_s < cpu_s ? f.cpu_s : cpu_s;
		wall_s = f.wall_s < wall_s ? f.wall_s : wall_s;
	}
	printf("packed, %u helper%s      %6.2f M events/s %6.2f M per core %4.1f B   "
	       "sprintf + zlib 6 %5.2f M/s %5.1f x per core\n",
	       threads, threads == 1 ? " " : "s", events_of(b) / wall_s / 1e6,
	       events_of(b) / cpu_s / 1e6, f.stored / events_of(b), by_print / 1e6,
	       events_of(b) / cpu_s / by_print);
}

int main(int argc, char **argv)
{
	static struct bench b;
	double millions = argc > 1 ? atof(argv[1]) : 2, bytes, by_print;
	unsigned cores = usable_cores();

	b.batches = (size_t)(millions * 1e6 / BATCH) + 1;
	make_tables(&b);
	printf("== writing Chrome JSON, one core; plain\n");
	plain_row(&b, "kernels, arrows", KERNELS);
	plain_row(&b, "calls, arrows", CALLS);
	plain_row(&b, "launches of both", BOTH);
	printf("== the same launches to .json.gz by %s\n", gzip_library());
	by_print = best_reference(&b, by_sprintf, true, &bytes);
	for (unsigned threads = 0; threads < 4 && threads <= cores; threads++)
		packed_row(&b, threads, by_print);
	trace_free(b.trace);
	return 0;
}
