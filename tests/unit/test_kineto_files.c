/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kineto source on real files, beside a count of the same elements with cJSON.
 */
#include "tests/unit/unit.h"

#include "convert/input/input.h"
#include "convert/source/json/scan.h"
#include "convert/source/source.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct sums {
	uint64_t events[KIND_END], begins_ns, durations_ns, correlations, bytes;
	uint64_t derived, names, elements, base_ns;
};

static unsigned kind_of_cat(const char *cat)
{
	static const struct {
		const char *cat;
		unsigned kind;
	} rows[] = {
		{ "kernel", KIND_KERNEL },  { "gpu_memcpy", KIND_MEMCPY },
		{ "memcpy", KIND_MEMCPY },  { "gpu_memset", KIND_MEMSET },
		{ "memset", KIND_MEMSET },  { "cuda_runtime", KIND_API },
		{ "runtime", KIND_API },    { "cuda_driver", KIND_API },
		{ "cuda_sync", KIND_SYNC }, { "overhead", KIND_OVERHEAD },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcasecmp(rows[i].cat, cat) == 0)
			return rows[i].kind;
	return KIND_RANGE;
}

static double number_of(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *text_of(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static uint64_t ns_of(double us)
{
	return (uint64_t)floor(us) * 1000 + (uint64_t)llround((us - floor(us)) * 1000);
}

static void count_element(struct sums *s, const cJSON *e)
{
	const cJSON *args = cJSON_GetObjectItemCaseSensitive(e, "args");
	const char *cat = text_of(e, "cat"), *ph = text_of(e, "ph");
	bool memory = strcmp(text_of(e, "name"), "[memory]") == 0;
	double bytes = number_of(args, memory ? "Bytes" : "bytes");
	unsigned kind = ph[0] == 'X' ? kind_of_cat(cat) : KIND_MARK;

	s->elements++;
	if (ph[0] == 'M') {
		s->names++;
		return;
	}
	if ((ph[0] == 's' || ph[0] == 'f') && strcmp(cat, "fwdbwd") != 0) {
		s->derived++;
		return;
	}
	if (ph[0] == 'i' && memory)
		kind = bytes < 0 ? KIND_FREE : KIND_ALLOC;
	s->events[kind]++;
	s->begins_ns += ns_of(number_of(e, "ts"));
	s->durations_ns += ns_of(number_of(e, "dur"));
	if (kind <= KIND_API)
		s->correlations += (uint64_t)number_of(args, "correlation");
	if (kind == KIND_MEMCPY || kind == KIND_MEMSET || memory)
		s->bytes += (uint64_t)fabs(bytes);
}

/* The scanner only cuts the file in elements, so that cJSON needs no gigabyte. */
static void count_elements(struct sums *s, struct json_scan *scan)
{
	struct error err = { 0 };
	struct json token;
	cJSON *e;

	for (;;) {
		do {
			json_hold(scan);
			if (!CHECK_OK(json_next(scan, &token, &err), &err) ||
			    !CHECK_OK(json_raw(scan, &token, &err), &err))
				return;
		} while (json_again(scan));
		if (token.type == JSON_ARRAY_END)
			return;
		e = cJSON_ParseWithLength(token.text, token.len);
		if (CHECK(cJSON_IsObject(e)))
			count_element(s, e);
		cJSON_Delete(e);
	}
}

static void count_file(struct sums *s, const char *path)
{
	struct error err = { 0 };
	struct json_scan scan;
	struct json key, value;
	struct input *in;
	bool events, base;

	if (!CHECK_OK(input_open(&in, path, NULL, &err), &err))
		return;
	json_open(&scan, in);
	CHECK_OK(json_next(&scan, &key, &err), &err);
	while (json_next(&scan, &key, &err) == ST_OK && key.type == JSON_KEY) {
		events = key.len == 11 && memcmp(key.text, "traceEvents", 11) == 0;
		base = key.len == 19 && memcmp(key.text, "baseTimeNanoseconds", 19) == 0;
		CHECK_OK(json_next(&scan, &value, &err), &err);
		if (base)
			CHECK(json_u64(value.text, value.len, &s->base_ns));
		if (events)
			count_elements(s, &scan);
		else
			CHECK_OK(json_skip(&scan, &value, &err), &err);
	}
	CHECK_OK(err.status, &err);
	input_close(in);
}

static void add_batch(struct sums *s, const struct trace *t, const struct batch *batch,
		      uint64_t *last_ns)
{
	size_t i;

	for (i = 0; i < batch->count; i++) {
		const struct event *e = &batch->events[i];
		const struct track *k = trace_get_track(t, e->track);

		if (e->begin_ns < *last_ns || e->end_ns < e->begin_ns || !k->process)
			CHECK(!"in order and on a track");
		*last_ns = e->begin_ns;
		s->events[e->kind]++;
		s->begins_ns += e->begin_ns;
		s->durations_ns += e->end_ns - e->begin_ns;
		if (e->kind <= KIND_API)
			s->correlations += e->correlation;
		if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET || e->kind == KIND_ALLOC ||
		    e->kind == KIND_FREE)
			s->bytes += e->bytes;
	}
}

static void check_sums(const struct sums *want, const struct sums *got, const struct trace *t)
{
	uint64_t events = 0;
	unsigned kind;

	for (kind = 0; kind < KIND_END; kind++) {
		CHECK_U64(got->events[kind], want->events[kind]);
		events += got->events[kind];
	}
	CHECK_U64(got->begins_ns, want->begins_ns + want->base_ns * events);
	CHECK_U64(got->durations_ns, want->durations_ns);
	CHECK_U64(got->correlations, want->correlations);
	CHECK_U64(got->bytes, want->bytes);
	CHECK_U64(trace_lost(t, 0, LOSS_DERIVED), want->derived);
	CHECK_U64(trace_lost_total(t, 0), 0);
	CHECK_U64(events + want->derived + want->names, want->elements);
	CHECK_U64(trace_provenance((struct trace *)t)->events, events);
}

static void check_file(const char *path, void *arg)
{
	struct budget budget = { .opening = 8 << 20, .resident = 65536, .scratch = "/tmp" };
	struct sums want = { .base_ns = 0 }, got = { .base_ns = 0 };
	struct error err = { 0 };
	struct source *source = NULL;
	struct trace *trace;
	struct input *in;
	struct batch batch;
	uint64_t last_ns = 0;
	enum status status;

	count_file(&want, path);
	CHECK(want.elements > 0);
	CHECK_OK(trace_new(&trace, 64 << 20, &err), &err);
	if (CHECK_OK(input_open(&in, path, NULL, &err), &err) &&
	    CHECK_OK(source_open(&source, in, trace, &budget, NULL, &err), &err)) {
		while ((status = source_next(source, &batch, &err)) == ST_OK)
			add_batch(&got, trace, &batch, &last_ns);
		CHECK_U64(status, ST_END);
		check_sums(&want, &got, trace);
		CHECK(trace_provenance(trace)->is_whole);
	}
	source_close(source);
	input_close(in);
	trace_free(trace);
}

void test_kineto_real_files(void)
{
	size_t files = unit_kineto_traces(check_file, NULL);

	if (files)
		CHECK_U64(files, 20);
}
