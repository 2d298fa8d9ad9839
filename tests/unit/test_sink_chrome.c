/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "convert/sink/sink.h"
#include "tests/unit/sink_files.h"
#include "tests/unit/unit.h"

#include "schemas/base/json_text.h"
#include "schemas/base/utf8.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was written, read again; the text stays in `text`. */
static cJSON *written(struct sink_run *run, bool all_args, struct buf *text)
{
	cJSON *file = NULL;

	if (sink_run_write(run, &sink_chrome, all_args, text))
		file = cJSON_ParseWithOpts(buf_text(text), NULL, true);
	CHECK(file != NULL);
	return file;
}

static const cJSON *find(const cJSON *file, const char *ph, const char *name)
{
	const cJSON *e;

	cJSON_ArrayForEach(e, cJSON_GetObjectItem(file, "traceEvents"))
	{
		const char *n = cJSON_GetStringValue(cJSON_GetObjectItem(e, "name"));

		if (n && strcmp(n, name) == 0 &&
		    strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(e, "ph")), ph) == 0)
			return e;
	}
	return NULL;
}

static double number_of(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static double arg_of(const cJSON *event, const char *key)
{
	return number_of(cJSON_GetObjectItem(event, "args"), key);
}

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool is_whole(const cJSON *object, const char *key)
{
	double v = number_of(object, key);

	return v == floor(v);
}

/* What the readers of these files cannot do without (HTA, TensorBoard's plugin). */
static void check_readable(const cJSON *file)
{
	const cJSON *e;

	cJSON_ArrayForEach(e, cJSON_GetObjectItem(file, "traceEvents"))
	{
		const char *ph = text_of(e, "ph"), *cat = text_of(e, "cat");

		CHECK(ph && text_of(e, "name"));
		CHECK(is_whole(e, "pid") && is_whole(e, "tid"));
		CHECK(!isnan(number_of(e, "ts")));
		if (strcmp(ph, "X") != 0)
			continue;
		CHECK(cat != NULL);
		CHECK(number_of(e, "dur") >= 0);
		CHECK(strcmp(cat, "gpu_user_annotation") != 0);
		if (strcmp(cat, "kernel") != 0 && strcmp(cat, "gpu_memcpy") != 0)
			continue;
		CHECK(is_whole(cJSON_GetObjectItem(e, "args"), "device"));
		CHECK(is_whole(cJSON_GetObjectItem(e, "args"), "stream"));
		CHECK(arg_of(e, "stream") == number_of(e, "tid"));
		CHECK(arg_of(e, "device") == number_of(e, "pid"));
	}
}

static void add_device(struct sink_run *run, uint32_t id, const char *name, uint64_t sms)
{
	struct attr attrs[] = { run_number(run, "numSms", sms) };
	struct device d = { .process = run->process,
			    .id = id,
			    .name = run_name(run, name),
			    .schema = run_schema(run, attrs, 1, NULL, 0) };
	struct error err;

	CHECK(trace_device(run->trace, &d, &err) != 0);
}

/* A kernel of a grid of 8 x 2 x 1 blocks of 64 x 2 x 1 threads, as CUPTI has it. */
static uint32_t kernel_schema(struct sink_run *run)
{
	static const struct {
		const char *key;
		uint64_t number;
	} rows[] = { { "grid_x", 8 },      { "grid_y", 2 },           { "grid_z", 1 },
		     { "block_x", 64 },    { "block_y", 2 },          { "block_z", 1 },
		     { "registers", 32 },  { "static_shared", 1024 }, { "dynamic_shared", 512 },
		     { "cache_config", 2 } };
	struct attr attrs[10];

	for (size_t i = 0; i < 10; i++)
		attrs[i] = run_number(run, rows[i].key, rows[i].number);
	return run_schema(run, attrs, 10, NULL, 0);
}

static void make_native(struct sink_run *run)
{
	uint32_t thread, stream;
	struct attr copy[2];
	struct event *e;

	sink_run_make(run);
	add_device(run, 1, "GPU of a test", 4);
	thread = run_thread(run, 101);
	stream = run_stream(run, 1, 7);
	copy[0] = run_number(run, "src_kind", 1);
	copy[1] = run_number(run, "dst_kind", 3);
	run_event(run, KIND_STEP, thread, NULL, 0, 900)->number = 12;
	run_event(run, KIND_RANGE, thread, "forward", 10, 500)->subkind = RANGE_PHASE;
	e = run_event(run, KIND_API, thread, "cudaLaunchKernel_v7000", 20, 30.5);
	e->correlation = 40;
	e = run_event(run, KIND_API, thread, "cuLaunchKernel", 21, 29);
	e->subkind = API_DRIVER;
	e->correlation = 40;
	e = run_event(run, KIND_KERNEL, stream, "sgemm<float, 4>", 40, 100.25);
	e->correlation = 40;
	e->schema = kernel_schema(run);
	e = run_event(run, KIND_MEMCPY, stream, NULL, 110, 112);
	e->correlation = 41;
	e->bytes = 8000;
	e->subkind = 1;
	e->schema = run_schema(run, copy, 2, NULL, 0);
	e = run_event(run, KIND_SYNC, stream, NULL, 120, 130);
	e->subkind = 3;
	e = run_event(run, KIND_COUNTER, run_counter(run, 1, "bytes_in_use"), NULL, 150, 150);
	e->value = 4096.5;
	e = run_event(run, KIND_ALLOC, run_pool(run, 1), NULL, 160, 160);
	e->bytes = 64;
	e->address = 4096;
	e = run_event(run, KIND_FREE, run_pool(run, NO_ID), NULL, 170, 170);
	e->bytes = 64;
}

void test_chrome_native(void)
{
	struct sink_run run;
	struct buf text;
	const cJSON *e;
	cJSON *file;

	make_native(&run);
	file = written(&run, false, &text);
	check_readable(file);
	e = find(file, "X", "sgemm<float, 4>");
	CHECK_F64(arg_of(e, "blocks per SM"), 4, 0);
	CHECK_F64(arg_of(e, "warps per SM"), 16, 0);
	CHECK_F64(arg_of(e, "shared memory"), 1536, 0);
	CHECK_F64(arg_of(e, "External id"), 0, 0);
	CHECK_F64(arg_of(e, "correlation"), 40, 0);
	CHECK_F64(number_of(e, "dur"), 60.25, 1e-9);
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetObjectItem(e, "args"), "grid")) == 3);
	CHECK(isnan(arg_of(e, "cache_config"))); /* Kineto writes none */
	e = find(file, "X", "Memcpy HtoD (Pageable -> Device)");
	CHECK_F64(arg_of(e, "memory bandwidth (GB/s)"), 4, 1e-9);
	CHECK_F64(arg_of(e, "bytes"), 8000, 0);
	e = find(file, "X", "Stream Sync");
	CHECK_F64(number_of(e, "tid"), 1000007, 0);
	CHECK_STR(text_of(cJSON_GetObjectItem(e, "args"), "cuda_sync_kind"), "Stream Sync");
	CHECK_STR(text_of(find(file, "X", "ProfilerStep#12"), "cat"), "user_annotation");
	CHECK_STR(text_of(find(file, "X", "forward"), "cat"), "user_annotation");
	CHECK_F64(arg_of(find(file, "C", "bytes_in_use"), "value"), 4096.5, 0);
	e = find(file, "i", "[memory]");
	CHECK_F64(arg_of(e, "Device Type"), 1, 0);
	CHECK_F64(arg_of(e, "Bytes"), 64, 0);
	CHECK(strstr(buf_text(&text), "\"Device Type\": 0, \"Device Id\": -1, \"Addr\": 0, "
				      "\"Bytes\": -64") != NULL);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

/* One call for each correlation id, or readers count the work twice. */
void test_chrome_one_call(void)
{
	struct sink_run run;
	struct buf text;
	cJSON *file;

	make_native(&run);
	file = written(&run, false, &text);
	CHECK_F64(arg_of(find(file, "X", "cudaLaunchKernel"), "correlation"), 40, 0);
	CHECK(find(file, "X", "cuLaunchKernel") != NULL);
	CHECK(isnan(arg_of(find(file, "X", "cuLaunchKernel"), "correlation")));
	CHECK_F64(number_of(find(file, "s", "ac2g"), "id"), 40, 0);
	CHECK_F64(number_of(find(file, "f", "ac2g"), "id"), 40, 0);
	CHECK_STR(text_of(find(file, "f", "ac2g"), "bp"), "e");
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

/* Steps adjoin; in the doubles that readers compute with, none reaches into the next. */
void test_chrome_steps(void)
{
	struct sink_run run;
	uint64_t state = 8, begin_ns = 7000000000123000u;
	double end = 0;
	struct buf text;
	const cJSON *e;
	unsigned steps = 0;
	cJSON *file;

	sink_run_make(&run);
	for (unsigned i = 0; i < 60; i++) {
		struct event *step = run_event(&run, KIND_STEP, run_thread(&run, 1), NULL, 0, 0);

		step->number = i;
		step->begin_ns = begin_ns;
		begin_ns += 1000000 + random_u64(&state) % 1000000;
		step->end_ns = begin_ns;
	}
	file = written(&run, false, &text);
	cJSON_ArrayForEach(e, cJSON_GetObjectItem(file, "traceEvents"))
	{
		if (strcmp(text_of(e, "ph"), "X") != 0)
			continue;
		CHECK(number_of(e, "ts") >= end);
		end = number_of(e, "ts") + number_of(e, "dur");
		steps++;
	}
	CHECK_U64(steps, 60);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

void test_chrome_head(void)
{
	struct sink_run run;
	struct buf text;
	const char *rank, *events;
	const cJSON *devices;
	cJSON *file;

	make_native(&run);
	file = written(&run, false, &text);
	rank = strstr(buf_text(&text),
		      "\n  \"distributedInfo\": {\"rank\": 3, \"world_size\": 4},\n");
	events = strstr(buf_text(&text), "\"traceEvents\": [");
	CHECK(rank != NULL && rank < events);
	CHECK_STR(text_of(file, "host_name"), "node");
	devices = cJSON_GetObjectItem(file, "deviceProperties");
	CHECK_U64((uint64_t)cJSON_GetArraySize(devices), 2); /* found by place: 0 is kept free */
	CHECK_F64(number_of(cJSON_GetArrayItem(devices, 0), "id"), 0, 0);
	CHECK_STR(text_of(cJSON_GetArrayItem(devices, 1), "name"), "GPU of a test");
	/* The base is on Kineto's grid, and base + ts is the time. */
	CHECK_F64(fmod(number_of(file, "baseTimeNanoseconds") / 1e9, 7889238), 0, 0);
	CHECK_F64(number_of(file, "baseTimeNanoseconds") / 1e9 +
			  number_of(find(file, "X", "ProfilerStep#12"), "ts") / 1e6,
		  1700000000, 1e-6);
	CHECK_STR(text_of(cJSON_GetObjectItem(find(file, "M", "process_name"), "args"), "name"),
		  "train \"x\"");
	CHECK_STR(text_of(cJSON_GetObjectItem(find(file, "M", "thread_name"), "args"), "name"),
		  "thread 101 ");
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

void test_chrome_all_args(void)
{
	struct sink_run run;
	struct buf text;
	cJSON *file;

	make_native(&run);
	file = written(&run, true, &text);
	CHECK_F64(arg_of(find(file, "X", "sgemm<float, 4>"), "cache_config"), 2, 0);
	CHECK_F64(arg_of(find(file, "X", "sgemm<float, 4>"), "registers per thread"), 32, 0);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

/* What an import kept because it is not what the sink would write by itself. */
void test_chrome_import(void)
{
	struct sink_run run;
	struct attr keys[3], consts[6], args[1];
	struct event *e;
	uint64_t words[] = { 77 };
	struct buf text;
	const cJSON *x;
	cJSON *file;

	sink_run_make(&run);
	keys[0] = run_text(&run, "traceName", "a/b.json");
	keys[1] = run_number(&run, "baseTimeNanoseconds", 1699999999000000000u);
	keys[2] = run_text(&run, "distributedInfo", "{\"rank\":5,\"note\":\"a:b,\\\"c\\\"\"}");
	keys[2].type = ATTR_JSON;
	run_import(&run, keys, 3);
	consts[0] = run_text(&run, ".cat", "odd \"cat\"");
	consts[1] = run_text(&run, ".tid", "stream 7");
	consts[2] = run_text(&run, ".s", "g");
	consts[3] = run_number(&run, "my own", 5);
	consts[4] = run_number(&run, "correlation", 0);
	consts[5] = run_number(&run, "payload", 6); /* a key of ours that Kineto does not write */
	args[0] = run_number(&run, "external_id", 0);
	e = run_event(&run, KIND_RANGE, run_thread(&run, 9), "op", 5, 6);
	e->subkind = RANGE_OP;
	e->schema = run_schema(&run, consts, 6, args, 1);
	e->args = words;
	file = written(&run, false, &text);
	CHECK(strstr(buf_text(&text), "{\n  \"converted_by\": \"Tacho\",\n"
				      "  \"distributedInfo\": {\"rank\": 5, \"note\": "
				      "\"a:b,\\\"c\\\"\"},\n") == buf_text(&text));
	CHECK_STR(text_of(file, "traceName"), "a/b.json");
	CHECK(cJSON_GetObjectItem(file, ".imported") == NULL);
	CHECK(cJSON_GetObjectItem(file, "deviceProperties") == NULL);
	x = find(file, "X", "op");
	CHECK_STR(text_of(x, "cat"), "odd \"cat\"");
	CHECK_STR(text_of(x, "tid"), "stream 7");
	CHECK_STR(text_of(x, "s"), "g");
	CHECK_F64(number_of(x, "ts"), 1000005, 1e-6);
	CHECK_F64(arg_of(x, "my own"), 5, 0);
	CHECK_F64(arg_of(x, "correlation"), 0, 0);
	CHECK_F64(arg_of(x, "payload"), 6, 0);
	CHECK_F64(arg_of(x, "External id"), 77, 0);
	CHECK_U64((uint64_t)cJSON_GetArraySize(cJSON_GetObjectItem(x, "args")), 4);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

void test_chrome_empty(void)
{
	struct sink_run run;
	struct buf text;
	cJSON *file;

	sink_run_make(&run);
	file = written(&run, false, &text);
	CHECK(cJSON_IsArray(cJSON_GetObjectItem(file, "traceEvents")));
	CHECK(find(file, "M", "process_name") != NULL);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

/* A file is of one process. */
void test_chrome_other_process(void)
{
	struct sink_run run;
	struct process other = { .pid = 200, .rank = 4, .world_size = 4 };
	struct error err;
	struct buf text;
	cJSON *file;
	uint32_t first;

	sink_run_make(&run);
	run_event(&run, KIND_RANGE, run_thread(&run, 1), "ours", 1, 2);
	first = run.process;
	run.process = trace_process(run.trace, &other, &err);
	run_event(&run, KIND_RANGE, run_thread(&run, 2), "theirs", 1, 2);
	run.process = first;
	file = written(&run, false, &text);
	CHECK(find(file, "X", "ours") != NULL);
	CHECK(find(file, "X", "theirs") == NULL);
	CHECK(strstr(buf_text(&text), "200") == NULL);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

/* Any bytes in any text of the trace: valid JSON in valid UTF-8. */
void test_chrome_odd_names(void)
{
	static const char *const odd[] = { "\"",       "\\",        "\n\t\x01",         "\xff\xfe",
					   "\xe2\x82", "</script>", "\xf0\x9f\x98\x80", "\\u0041",
					   "%s%n",     "" };
	struct sink_run run;
	struct attr attrs[2];
	struct event *e;
	struct buf text;
	const char *at;
	cJSON *file;

	sink_run_make(&run);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		attrs[0] = run_text(&run, odd[i], odd[i]);
		attrs[1] = run_text(&run, "key", odd[i]);
		e = run_event(&run, i % 2 ? KIND_KERNEL : KIND_RANGE,
			      i % 2 ? run_stream(&run, 0, 7) : run_thread(&run, 5), odd[i],
			      (double)i, (double)i + 1);
		e->schema = run_schema(&run, attrs, 2, NULL, 0);
	}
	file = written(&run, false, &text);
	for (at = buf_text(&text); *at; at += utf8_sequence(at, strlen(at)))
		if (!CHECK(utf8_sequence(at, strlen(at)) > 0))
			break;
	CHECK(find(file, "X", "\xf0\x9f\x98\x80") != NULL);
	CHECK(find(file, "X", "\xef\xbf\xbd") != NULL);
	CHECK(find(file, "X", "\n\t\x01") != NULL);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

/* Kinds, subkinds and times that nobody makes, with shapes of everything. */
void test_chrome_any_event(void)
{
	struct sink_run run;
	uint64_t state = 4, words[2] = { UINT64_MAX, 1 };
	uint32_t tracks[5];
	struct attr args[2];
	struct buf text;
	cJSON *file;

	sink_run_make(&run);
	tracks[0] = run_thread(&run, UINT64_MAX);
	tracks[1] = run_stream(&run, NO_ID, 7);
	tracks[2] = run_stream(&run, 63, UINT32_MAX);
	tracks[3] = run_pool(&run, NO_ID);
	tracks[4] = run_counter(&run, NO_ID, "\x80");
	args[0] = run_number(&run, "a", 0);
	args[1] = run_number(&run, "external_id", 0);
	args[1].type = ATTR_F64;
	for (unsigned i = 0; i < 64; i++) {
		struct event *e = run_event(&run, i % 18, tracks[random_u64(&state) % 5],
					    i % 3 ? NULL : "x", i, i + (double)(i % 2));

		e->subkind = (uint8_t)random_u64(&state);
		e->flags = (uint8_t)random_u64(&state);
		e->bytes = random_u64(&state);
		e->number = i % 2 ? random_u64(&state) : 0;
		e->schema = i % 5 ? 0 : run_schema(&run, NULL, 0, args, 2);
		e->args = e->schema ? words : NULL;
	}
	file = written(&run, true, &text);
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(file, "traceEvents")) >= 64);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

/* More texts of shapes than are kept at once. */
void test_chrome_many_schemas(void)
{
	enum { LONG = 400000 };
	struct sink_run run;
	char *big = malloc(LONG + 16);
	struct buf text;
	const cJSON *e;
	cJSON *file;
	unsigned i;

	sink_run_make(&run);
	memset(big, 'x', LONG);
	for (i = 0; i < 60; i++) {
		struct attr attr;

		snprintf(big + LONG, 16, "%u", i % 30); /* each twice, far apart */
		attr = run_text(&run, "stack", big);
		run_event(&run, KIND_RANGE, run_thread(&run, 5), "op", i, i + 1)->schema =
			run_schema(&run, &attr, 1, NULL, 0);
	}
	file = written(&run, false, &text);
	i = 0;
	cJSON_ArrayForEach(e, cJSON_GetObjectItem(file, "traceEvents"))
	{
		if (strcmp(text_of(e, "name"), "op") != 0)
			continue;
		snprintf(big + LONG, 16, "%u", i++ % 30);
		CHECK(strcmp(text_of(cJSON_GetObjectItem(e, "args"), "stack"), big) == 0);
	}
	CHECK_U64(i, 60);
	free(big);
	cJSON_Delete(file);
	buf_release(&text);
	sink_run_release(&run);
}

void test_sink_file_names(void)
{
	struct sink_run run;
	struct process odd = { .pid = 7, .rank = NO_RANK };
	struct error err;
	struct buf b;

	sink_run_make(&run);
	buf_init(&b, 10000);
	CHECK_OK(sink_put_name("", sink_chrome.file_name, run.trace, run.process, 55, &b, &err),
		 &err);
	CHECK_STR(buf_text(&b), "node_100.55.pt.trace.json.gz");
	buf_clear(&b);
	CHECK_OK(sink_put_name("", sink_memory.file_name, run.trace, run.process, 55, &b, &err),
		 &err);
	CHECK_STR(buf_text(&b), "memory_profile.r3.json");
	odd.host = run_name(&run, "../etc/a b\xff");
	odd.pid = 7;
	run.process = trace_process(run.trace, &odd, &err);
	buf_clear(&b);
	CHECK_OK(sink_put_name("", sink_chrome.file_name, run.trace, run.process, 0, &b, &err),
		 &err);
	CHECK_STR(buf_text(&b), "a_b__7.0.pt.trace.json.gz");
	buf_clear(&b);
	CHECK_OK(sink_put_name("", sink_memory.file_name, run.trace, run.process, 0, &b, &err),
		 &err);
	CHECK_STR(buf_text(&b), "memory_profile.p7.json");
	buf_release(&b);
	sink_run_release(&run);
	CHECK(sink_find("chrome") == &sink_chrome);
	CHECK(sink_find("nothing") == NULL);
	CHECK(sink_find("no") == NULL);
}
