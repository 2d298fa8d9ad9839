/* SPDX-License-Identifier: Apache-2.0 */
/* Records of CUPTI, byte by byte, to the events that a reader of the log gets. */
#include "collector/config/config.h"
#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/rows.h"
#include "collector/probe/cupti/tables.h"
#include "collector/session/clock.h"
#include "collector/probe/probe.h"
#include "collector/store/internal.h"
#include "convert/source/source.h"
#include "tests/unit/cupti_library.h"
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16, FILE_BYTES = 1 << 20, NOISE = 0xA5, EVENTS = 640, LOOP = 200 };

static struct cupti_lib lib;

/* ---- a run ---- */

struct run {
	struct folder folder;
	struct config config;
	struct writer writer;
	uint8_t *bytes;
	size_t len;
	bool one_by_one; /* not in runs */
	uint64_t at_ns;  /* of the first record, CUPTI's clock */
	struct trace *trace;
	struct event *events;
	uint64_t args[EVENTS][LAYOUT_ARGS];
	size_t count;
};

static void run_open(struct run *r, unsigned version, const char *kinds)
{
	char out[160], list[64];
	char *variables[] = { out, list, (char *)"TACHO_WINDOW=all", NULL };

	memset(r, 0, sizeof(*r));
	folder_make(&r->folder);
	snprintf(out, sizeof(out), "TACHO_OUT=%s/log", r->folder.folder);
	snprintf(list, sizeof(list), "TACHO_KINDS=%s", kinds);
	config_read(&r->config, variables, NULL);
	r->writer.config = &r->config;
	r->writer.command = "unit";
	r->writer.recording = true;
	library_open(&lib, version);
	tick_init("monotonic");
	cupti_layouts_open(&lib, r->config.kinds_mask);
	cupti_calls_open(&lib);
	cupti_rows_forget();
	cupti_tables_forget();
	cupti_rows_open(&lib);
	cupti_clock_open(library_realtime);
	r->bytes = calloc(1, BYTES);
	r->at_ns = tick_clock_ns(CLOCK_REALTIME) - 1000000;
}

/* Room for a record, all noise, with its kind; times are put in by hand. */
static uint8_t *add(struct run *r, uint32_t kind)
{
	uint8_t *record = r->bytes + r->len;

	memset(record, NOISE, lib.sizes[kind]);
	memcpy(record, &kind, sizeof(kind));
	r->len += lib.sizes[kind];
	return record;
}

static void put(uint8_t *record, size_t at, uint64_t value, size_t bytes)
{
	memcpy(record + at, &value, bytes);
}

static void put_times(struct run *r, uint8_t *record, size_t begin_at, uint64_t after_ns,
		      uint64_t length_ns)
{
	put(record, begin_at, r->at_ns + after_ns, 8);
	put(record, begin_at + 8, r->at_ns + after_ns + length_ns, 8);
}

static uint8_t *add_kernel(struct run *r, const char *name, uint64_t after_ns)
{
	uint8_t *k = add(r, CUPTI_KERNEL);

	memset(k + 4, 0, 184);
	if (lib.sizes[CUPTI_KERNEL] > 192)
		memset(k + 188, 0, lib.sizes[CUPTI_KERNEL] - 188u);
	put_times(r, k, 16, after_ns, 4000);
	put(k, 32, r->at_ns + after_ns + 4000, 8);
	put(k, 6, 40, 2);
	put(k, 44, 1, 4);
	put(k, 48, 7, 4);
	put(k, 52, 80, 4);
	put(k, 56, 2, 4);
	put(k, 64, 256, 4);
	put(k, 92, 17, 4);
	put(k, 96, 5, 8);
	put(k, 104, (uintptr_t)name, 8);
	return k;
}

static void hand_over(struct run *r, uint64_t warmup_ns, uint64_t begin_ns)
{
	struct pool_buffer b = { .bytes = r->bytes,
				 .valid = r->len,
				 .completed_ns = tick_clock_ns(CLOCK_MONOTONIC) };

	b.marks = cupti_names_keep(&lib, r->bytes, r->len);
	if (r->one_by_one)
		b.marks &= ~(unsigned)MARK_EVEN;
	cupti_rows_tables(&b);
	cupti_rows_put(&r->writer, &b, warmup_ns, begin_ns);
	memset(r->bytes, 0, BYTES);
	r->len = 0;
}

static size_t read_file(struct run *r, uint8_t *out)
{
	char path[400];
	struct dirent *entry;
	DIR *d;
	FILE *f = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%s/log", r->folder.folder);
	d = opendir(path);
	while (d && (entry = readdir(d)) != NULL && !f)
		if (strstr(entry->d_name, ".tacho")) {
			snprintf(path, sizeof(path), "%s/log/%.200s", r->folder.folder,
				 entry->d_name);
			f = fopen(path, "rb");
		}
	if (d)
		closedir(d);
	len = f ? fread(out, 1, FILE_BYTES, f) : 0;
	if (f)
		fclose(f);
	return len;
}

/* All events of the log, in order, with what varies. */
static void run_read(struct run *r)
{
	static const struct budget budget = { .opening = 8 << 20,
					      .resident = 1 << 16,
					      .scratch = "/tmp" };
	uint8_t *file = calloc(1, FILE_BYTES);
	struct source *s = NULL;
	struct input *in;
	struct batch b;
	struct error err;
	size_t i;

	cupti_rows_end(&r->writer);
	writer_close_log(&r->writer);
	writer_free_attributes(&r->writer);
	in = log_input(file, read_file(r, file));
	trace_new(&r->trace, 8 << 20, NULL);
	r->events = calloc(EVENTS, sizeof(*r->events));
	if (!CHECK_OK(source_open(&s, in, r->trace, &budget, NULL, &err), &err))
		return;
	while (source_next(s, &b, &err) == ST_OK)
		for (i = 0; i < b.count && r->count < EVENTS; i++, r->count++) {
			const struct arg_schema *schema =
				trace_get_schema(r->trace, b.events[i].schema);

			r->events[r->count] = b.events[i];
			if (schema->arg_count && schema->arg_count <= LAYOUT_ARGS)
				memcpy(r->args[r->count], b.events[i].args, schema->arg_count * 8);
		}
	source_close(s);
	input_close(in);
	free(file);
}

static void run_close(struct run *r)
{
	if (r->trace)
		trace_free(r->trace);
	free(r->events);
	free(r->bytes);
	config_release(&r->config);
	folder_remove(&r->folder);
}

static uint64_t consts(const struct run *r, size_t i, const char *key)
{
	const struct attr *a = trace_find_attr(r->trace, r->events[i].schema, key);

	return a ? a->bits : UINT64_MAX;
}

static uint64_t varying(const struct run *r, size_t i, const char *key)
{
	const struct arg_schema *s = trace_get_schema(r->trace, r->events[i].schema);
	uint32_t k;

	for (k = 0; k < s->arg_count; k++)
		if (strcmp(trace_text(r->trace, s->args[k].key, NULL), key) == 0)
			return r->args[i][k];
	return UINT64_MAX;
}

static const char *name_of(const struct run *r, size_t i)
{
	return trace_text(r->trace, r->events[i].name, NULL);
}

static const struct track *track_of(const struct run *r, size_t i)
{
	return trace_get_track(r->trace, r->events[i].track);
}

static uint64_t lost(const struct run *r, enum loss why)
{
	return trace_lost(r->trace, 0, why);
}

/* ---- kernels ---- */

void test_cupti_rows_kernel(void)
{
	struct run r;

	run_open(&r, LIBRARY_13_0, "all");
	add_kernel(&r, "void gemm<float>(int)", 1000);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 1)) {
		CHECK_U64(r.events[0].kind, KIND_KERNEL);
		CHECK_STR(name_of(&r, 0), "void gemm<float>(int)");
		CHECK_U64(r.events[0].end_ns - r.events[0].begin_ns, 4000);
		/* CLOCK_REALTIME was not set back or on since the start: the same clock */
		CHECK(llabs((long long)(r.events[0].begin_ns - r.at_ns - 1000)) < 100000);
		CHECK_U64(r.events[0].correlation, 17);
		CHECK_U64(track_of(&r, 0)->type, TRACK_STREAM);
		CHECK_U64(track_of(&r, 0)->device, 0);
		CHECK_U64(track_of(&r, 0)->context, 1);
		CHECK_U64(track_of(&r, 0)->id, 7);
		CHECK_U64(consts(&r, 0, "grid_x"), 80);
		CHECK_U64(consts(&r, 0, "grid_y"), 2);
		CHECK_U64(consts(&r, 0, "block_x"), 256);
		CHECK_U64(consts(&r, 0, "registers"), 40);
		CHECK_U64(consts(&r, 0, "graph_node"), 0);
		CHECK_U64(consts(&r, 0, "priority"), UINT64_MAX); /* of 13.1 */
		CHECK_U64(varying(&r, 0, "grid_id"), 5);
		CHECK_U64(varying(&r, 0, "completed"), UINT64_MAX); /* it is the end */
		CHECK_U64(varying(&r, 0, "queued"), UINT64_MAX);    /* not known */
	}
	run_close(&r);
}

/* What costs a column only where it says something. */
void test_cupti_rows_flavours(void)
{
	struct run r;
	uint8_t *k;

	run_open(&r, LIBRARY_13_0, "all");
	k = add_kernel(&r, "a", 1000);
	put(k, 32, r.at_ns + 9000, 8);
	k = add_kernel(&r, "b", 20000);
	put(k, 144, UINT64_C(0x500000003), 8);
	put(k, 156, 5, 4);
	k = add_kernel(&r, "c", 30000);
	put(k, 120, r.at_ns + 25000, 8);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 3)) {
		CHECK_U64(varying(&r, 0, "completed") - r.events[0].begin_ns, 8000);
		CHECK_U64(varying(&r, 1, "graph_node"), UINT64_C(0x500000003));
		CHECK_U64(consts(&r, 1, "graph_node"), UINT64_MAX);
		CHECK_U64(consts(&r, 1, "graph"), 5);
		CHECK_U64(r.events[2].begin_ns - varying(&r, 2, "queued"), 5000);
		CHECK_U64(varying(&r, 2, "submitted"), 0);
	}
	run_close(&r);
}

/* Padding of an older CUPTI is noise, and fields that it had not yet are absent. */
void test_cupti_rows_versions(void)
{
	struct run r;
	uint8_t *m, *k;

	run_open(&r, LIBRARY_12_4, "all");
	m = add(&r, 1);
	memset(m + 4, 0, 48);
	memset(m + 64, 0, 16);
	put_times(&r, m, 16, 100, 2000);
	m = add(&r, 1);
	memset(m + 4, 0, 48);
	memset(m + 64, 0, 16);
	m[84] = 0x5A; /* isDeviceLaunched of 13.0 */
	put_times(&r, m, 16, 5000, 2000);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 2)) {
		CHECK_U64(r.events[0].schema, r.events[1].schema);
		CHECK_U64(consts(&r, 0, "device_launched"), UINT64_MAX);
		CHECK_U64(consts(&r, 0, "copies"), UINT64_MAX);
	}
	run_close(&r);
	run_open(&r, LIBRARY_13_4, "all");
	k = add_kernel(&r, "k", 1000);
	put(k, 216, (uint64_t)-5, 4);
	put(k, 240, 77, 8);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 1)) {
		CHECK_I64((int64_t)consts(&r, 0, "priority"), -5);
		CHECK_U64(consts(&r, 0, "source_graph_node"), 77);
	}
	run_close(&r);
}

/* ---- copies, calls, waits ---- */

static uint8_t *add_call(struct run *r, uint32_t kind, uint32_t cbid, uint32_t correlation,
			 uint64_t after_ns)
{
	uint8_t *a = add(r, kind);

	put(a, 4, cbid, 4);
	put_times(r, a, 8, after_ns, 500);
	put(a, 24, 1, 4);
	put(a, 28, 4242, 4);
	put(a, 32, correlation, 4);
	put(a, 36, 3, 4);
	return a;
}

void test_cupti_rows_calls(void)
{
	struct run r;

	run_open(&r, LIBRARY_13_0, "all");
	add_call(&r, 5, 211, 9, 100);
	add_call(&r, 4, 307, 9, 200); /* within the runtime's */
	add_call(&r, 4, 277, 12, 1100);
	add_call(&r, 5, 10, 10, 2100); /* noise */
	add_call(&r, 5, 499, 11, 3100);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 3)) {
		CHECK_STR(name_of(&r, 0), "cudaLaunchKernel");
		CHECK_U64(r.events[0].subkind, API_RUNTIME);
		CHECK_U64(r.events[0].result, 3);
		CHECK(r.events[0].flags & EVENT_RESULT);
		CHECK_U64(consts(&r, 0, "cbid"), 211);
		CHECK_U64(track_of(&r, 0)->type, TRACK_THREAD);
		CHECK_U64(track_of(&r, 0)->id, 4242);
		CHECK_STR(name_of(&r, 1), "cuMemcpyHtoDAsync_v2");
		CHECK_U64(r.events[1].subkind, API_DRIVER);
		CHECK_STR(name_of(&r, 2), "runtime call 499");
	}
	CHECK_U64(lost(&r, LOSS_CUT_OUT), 2);
	run_close(&r);
}

void test_cupti_rows_device_work(void)
{
	struct run r;
	uint8_t *m;

	run_open(&r, LIBRARY_13_0, "all");
	m = add(&r, 1);
	memset(m + 4, 0, 92);
	put(m, 4, 1, 1);
	put(m, 8, 65536, 8);
	put_times(&r, m, 16, 100, 2000);
	put(m, 36, 3, 4);
	put(m, 40, 14, 4);
	m = add(&r, 38);
	memset(m + 4, 0, 52);
	put(m, 4, 3, 4);
	put_times(&r, m, 8, 5000, 700);
	put(m, 28, 3, 4);
	put(m, 32, 14, 4);
	m = add(&r, 54);
	memset(m + 4, 0, 60);
	put(m, 28, 6, 4);
	put(m, 32, 4096, 8);
	put_times(&r, m, 48, 9000, 100);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 3)) {
		CHECK_U64(r.events[0].kind, KIND_MEMCPY);
		CHECK_U64(r.events[0].subkind, 1);
		CHECK_U64(r.events[0].bytes, 65536);
		CHECK_U64(r.events[1].kind, KIND_SYNC);
		CHECK_U64(r.events[1].subkind, 3);
		CHECK_U64(r.events[1].track, r.events[0].track); /* device by the context */
		CHECK_U64(r.events[2].kind, KIND_MEMCPY);
		CHECK_U64(r.events[2].bytes, 4096);
		CHECK_U64(varying(&r, 2, "operations"), 6);
	}
	run_close(&r);
}

/* ---- runs ---- */

/* A loop with everything that ends a run: flavours, amounts, results, noise, bad times, tables. */
static void add_loop(struct run *r, unsigned i)
{
	static const char *const names[] = { "a", "b", "c" };
	uint64_t at_ns = i * UINT64_C(100000);
	uint8_t *k = add_kernel(r, names[i % 3], at_ns);

	put(k, 92, i, 4);
	put(k, 96, i * 3, 8);
	if (i % 29 == 25)
		put(k, 32, r->at_ns + at_ns + 5000, 8);
	if (i % 3 == 2)
		put(k, 144, UINT64_C(0x500000000) + i, 8);
	if (i % 3 == 1 || i % 37 == 27)
		put(k, 120, i % 7 ? r->at_ns + at_ns - 500 : 77, 8);
	if (i % 41 == 8) {
		put(k, 24, 1, 8);
		put(k, 32, 1, 8);
	}
	add_call(r, 5, i % 7 ? 211 : 10, i, at_ns + 100);
	if (i % 5 == 3) {
		k = add(r, 1);
		memset(k + 4, 0, 92);
		put(k, 4, 1 + i % 2, 1);
		put(k, 8, i * 4096, 8);
		put_times(r, k, 16, at_ns + 300, 200);
	}
	k = add_call(r, 4, 277, i, at_ns + 200);
	put(k, 36, i % 4 == 3 ? i : 0, 4);
	if (i % 43 == 9)
		add(r, 60);
}

static void record_loop(struct run *r, bool one_by_one)
{
	unsigned i;

	run_open(r, LIBRARY_13_0, "all");
	r->one_by_one = one_by_one;
	for (i = 0; i < LOOP; i++) {
		add_loop(r, i);
		if (i % 10 == 9)
			hand_over(r, r->at_ns + 50000, i < 20 ? r->at_ns + 1550000 : 0);
	}
	run_read(r);
}

/* Times as they lie to the begin of the event. */
static uint64_t after(const struct run *r, size_t i, const char *key)
{
	uint64_t value = varying(r, i, key);

	return value < 1000000 || value == UINT64_MAX ? value : value - r->events[i].begin_ns;
}

static void check_same(const struct run *a, const struct run *b, size_t i)
{
	const struct event *x = &a->events[i], *y = &b->events[i];

	CHECK_STR(name_of(a, i), name_of(b, i));
	CHECK_U64(x->begin_ns - a->events[0].begin_ns, y->begin_ns - b->events[0].begin_ns);
	CHECK_U64(x->end_ns - x->begin_ns, y->end_ns - y->begin_ns);
	CHECK_U64(x->correlation, y->correlation);
	CHECK_U64(x->bytes, y->bytes);
	CHECK_U64(x->flags, y->flags);
	CHECK_U64(track_of(a, i)->id, track_of(b, i)->id);
	CHECK_U64(varying(a, i, "grid_id"), varying(b, i, "grid_id"));
	CHECK_U64(varying(a, i, "graph_node"), varying(b, i, "graph_node"));
	CHECK_U64(after(a, i, "completed"), after(b, i, "completed"));
	CHECK_U64(after(a, i, "queued"), after(b, i, "queued"));
}

/* By sizes that are sure, or by the library walk: the same events, and the same that was lost. */
void test_cupti_rows_runs(void)
{
	struct run a, b;
	struct cupti_row_counts counts;
	unsigned why;
	size_t i;

	record_loop(&a, false);
	counts = *cupti_row_counts();
	record_loop(&b, true);
	CHECK(counts.nodes > LOOP / 4);
	CHECK_U64(counts.nodes, cupti_row_counts()->nodes);
	CHECK_U64(a.count, b.count);
	CHECK(a.count > 3 * LOOP / 2);
	for (i = 0; i < a.count && i < b.count; i++)
		check_same(&a, &b, i);
	for (why = 1; why < LOSS_END; why++)
		CHECK_U64(lost(&a, (enum loss)why), lost(&b, (enum loss)why));
	CHECK(lost(&a, LOSS_NO_TIME) && lost(&a, LOSS_CUT_OUT) && lost(&a, LOSS_NO_PLACE));
	run_close(&a);
	run_close(&b);
}

/* ---- what cannot become a row ---- */

void test_cupti_rows_losses(void)
{
	struct run r;
	uint8_t *k;

	run_open(&r, LIBRARY_13_0, "kernel");
	k = add_kernel(&r, "no times", 0);
	put(k, 16, 0, 8);
	put(k, 24, 0, 8);
	k = add_kernel(&r, "back to front", 9000);
	put(k, 24, r.at_ns, 8);
	k = add_kernel(&r, "of another age", 9000);
	put(k, 16, 12345, 8);
	put(k, 24, 12349, 8);
	add(&r, 60);
	add_call(&r, 5, 211, 9, 100); /* not asked for */
	add_kernel(&r, "good", 100);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 1))
		CHECK_STR(name_of(&r, 0), "good");
	CHECK_U64(lost(&r, LOSS_NO_TIME), 3);
	CHECK_U64(lost(&r, LOSS_NO_PLACE), 1);
	CHECK_U64(lost(&r, LOSS_CUT_OUT), 1);
	run_close(&r);
}

/* Of a warm-up is what lies wholly between its begin and the window's. */
void test_cupti_rows_warm_up(void)
{
	struct run r;
	uint64_t host_ns;

	run_open(&r, LIBRARY_13_0, "all");
	host_ns = tick_base_ns() + tick_clock_ns(CLOCK_MONOTONIC) - 1000000;
	add_kernel(&r, "of the window before, late", 0);
	add_kernel(&r, "in the warm-up", 100000);
	add_kernel(&r, "across", 298000);
	add_kernel(&r, "in the window", 400000);
	hand_over(&r, host_ns + 50000, host_ns + 300000);
	run_read(&r);
	if (CHECK_U64(r.count, 3)) {
		CHECK_STR(name_of(&r, 1), "across");
		CHECK_STR(name_of(&r, 2), "in the window");
	}
	CHECK_U64(lost(&r, LOSS_CUT_OUT), 1);
	run_close(&r);
}

/* A buffer of tables alone opens no log. */
void test_cupti_rows_tables(void)
{
	struct run r;
	uint8_t *d;

	run_open(&r, LIBRARY_13_0, "all");
	d = add(&r, CUPTI_DEVICE);
	memset(d + 4, 0, 180);
	put(d, 44, 132, 4);
	put(d, 104, 9, 4);
	put(d, 112, 2, 4);
	put(d, 136, (uintptr_t)strdup("GPU of a test"), 8);
	hand_over(&r, 0, 0);
	CHECK(!writer_has_log(&r.writer));
	add_kernel(&r, "k", 10);
	hand_over(&r, 0, 0);
	cupti_tables_put(&r.writer);
	run_read(&r);
	CHECK_U64(r.count, 1);
	if (CHECK_U64(trace_count(r.trace, TRACE_DEVICES), 1)) {
		const struct device *row = trace_get_device(r.trace, 1);

		CHECK_U64(row->id, 2);
		CHECK_STR(trace_text(r.trace, row->name, NULL), "GPU of a test");
		CHECK_U64(trace_find_attr(r.trace, row->schema, "numSms")->bits, 132);
		CHECK_U64(trace_find_attr(r.trace, row->schema, "computeMajor")->bits, 9);
	}
	run_close(&r);
}

/* ---- joins ---- */

static void add_event(struct run *r, uint32_t correlation)
{
	uint8_t *e = add(r, CUPTI_CUDA_EVENT);

	memset(e + 4, 0, lib.sizes[CUPTI_CUDA_EVENT] - 4u);
	put(e, 4, correlation, 4);
	put(e, 8, 1, 4);
	put(e, 12, 7, 4);
	put(e, 16, 99, 4);
}

static void add_external(struct run *r, uint32_t kind, uint64_t id, uint32_t correlation)
{
	uint8_t *e = add(r, CUPTI_EXTERNAL_CORRELATION);

	put(e, 4, kind, 4);
	put(e, 8, id, 8);
	put(e, 16, correlation, 4);
}

/* A CUDA event has the time of its call, which may stand in another buffer. */
static void join(unsigned version)
{
	struct run r;

	run_open(&r, version, "all");
	add_event(&r, 5);
	add_event(&r, 6);
	add_event(&r, 7);
	add_call(&r, 5, 211, 5, 1000);
	hand_over(&r, 0, 0);
	add_call(&r, 5, 211, 6, 2000);
	add_call(&r, 5, 211, 8, 3000);
	hand_over(&r, 0, 0);
	add_event(&r, 8); /* its call came before */
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 6)) {
		for (size_t i = 0; i < 6; i += 2) {
			bool first = r.events[i].kind == KIND_MARK;
			const struct event *e = &r.events[first ? i : i + 1];

			CHECK_U64(e->kind, KIND_MARK);
			CHECK_U64(e->begin_ns, r.events[first ? i + 1 : i].begin_ns);
			CHECK_U64(varying(&r, first ? i : i + 1, "event_id"), 99);
		}
	}
	CHECK_U64(lost(&r, LOSS_NO_TIME), 1); /* 7: its call never came */
	run_close(&r);
}

void test_cupti_rows_events(void)
{
	join(LIBRARY_13_0);
	join(LIBRARY_12_4);
}

void test_cupti_rows_external(void)
{
	struct run r;

	run_open(&r, LIBRARY_13_0, "all");
	add_call(&r, 5, 211, 5, 1000);
	add_external(&r, 4, 1234, 5);
	add_external(&r, 3, 77, 5); /* CUSTOM0 goes first */
	add_call(&r, 5, 211, 6, 2000);
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 2)) {
		CHECK_U64(varying(&r, 0, "external_id"), 77);
		CHECK_U64(varying(&r, 1, "external_id"), UINT64_MAX);
	}
	CHECK_U64(lost(&r, LOSS_NO_PLACE), 1);
	run_close(&r);
}

/* Allocations and what an overhead belongs to: kinds whose ids depend on the record. */
void test_cupti_rows_odd_tracks(void)
{
	struct run r;
	uint8_t *m;
	uint64_t i;

	run_open(&r, LIBRARY_13_0, "all,memory");
	for (i = 1; i <= 2; i++) {
		m = add(&r, CUPTI_MEMORY2);
		memset(m + 4, 0, 124);
		put(m, 4, i, 4);
		put(m, 16, 0x7000, 8);
		put(m, 24, 4096, 8);
		put(m, 32, r.at_ns + i * 1000, 8);
	}
	for (i = 2; i <= 5; i += 3) {
		m = add(&r, CUPTI_OVERHEAD);
		memset(m + 4, 0, 52);
		put(m, 4, 2 << 16, 4);
		put(m, 8, i, 4);
		put(m, 12, 1, 4);
		put(m, 16, 2, 4);
		put(m, 20, 3, 4);
		put_times(&r, m, 24, i * 10000, 10);
	}
	hand_over(&r, 0, 0);
	run_read(&r);
	if (CHECK_U64(r.count, 4)) {
		CHECK_U64(r.events[0].kind, KIND_ALLOC);
		CHECK_U64(r.events[1].kind, KIND_FREE);
		CHECK_U64(r.events[1].address, 0x7000);
		CHECK_U64(r.events[1].bytes, 4096);
		CHECK_STR(name_of(&r, 2), "Instrumentation");
		CHECK_U64(track_of(&r, 2)->type, TRACK_THREAD);
		CHECK_U64(track_of(&r, 2)->id, 2);
		CHECK_U64(track_of(&r, 3)->type, TRACK_STREAM);
		CHECK_U64(track_of(&r, 3)->device, 1);
		CHECK_U64(track_of(&r, 3)->id, 3);
	}
	run_close(&r);
}
