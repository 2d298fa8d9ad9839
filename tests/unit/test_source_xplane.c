/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "convert/source/source.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "schemas/base/pb.h"
#include "schemas/proto/xspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE_NS 1700000000000000000u

enum { CEILING = 64 << 20, MOST = 64 };

/* ---- files by hand ---- */

static void put_name(struct buf *b, uint32_t map, int64_t id, const char *text)
{
	size_t entry = pb_begin(b, map), value;

	pb_put_u64(b, ENTRY_KEY, (uint64_t)id);
	value = pb_begin(b, ENTRY_VALUE);
	pb_put_u64(b, EVENT_META_ID, (uint64_t)id);
	pb_put_text(b, EVENT_META_NAME, text);
	pb_end(b, value);
	pb_end(b, entry);
}

static size_t begin_event(struct buf *b, int64_t name, int64_t offset_ps, int64_t duration_ps)
{
	size_t at = pb_begin(b, LINE_EVENTS);

	pb_put_u64(b, XEVENT_METADATA_ID, (uint64_t)name);
	pb_put_u64(b, XEVENT_OFFSET_PS, (uint64_t)offset_ps);
	pb_put_u64(b, XEVENT_DURATION_PS, (uint64_t)duration_ps);
	return at;
}

static void put_stat(struct buf *b, uint32_t field, int64_t key, uint32_t type, uint64_t value)
{
	size_t at = pb_begin(b, field);

	pb_put_u64(b, XSTAT_METADATA_ID, (uint64_t)key);
	pb_put_u64(b, type, value);
	pb_end(b, at);
}

static void put_text_stat(struct buf *b, uint32_t field, int64_t key, const char *text)
{
	size_t at = pb_begin(b, field);

	pb_put_u64(b, XSTAT_METADATA_ID, (uint64_t)key);
	pb_put_text(b, XSTAT_TEXT, text);
	pb_end(b, at);
}

static size_t begin_line(struct buf *b, int64_t id, const char *name, int64_t timestamp_ns)
{
	size_t at = pb_begin(b, PLANE_LINES);

	pb_put_u64(b, LINE_ID, (uint64_t)id);
	pb_put_text(b, LINE_NAME, name);
	pb_put_u64(b, LINE_TIMESTAMP_NS, (uint64_t)timestamp_ns);
	return at;
}

static size_t begin_plane(struct buf *b, const char *name)
{
	size_t at = pb_begin(b, SPACE_PLANES);

	pb_put_text(b, PLANE_NAME, name);
	return at;
}

static void end_event(struct buf *b, size_t event)
{
	pb_end(b, event);
}

static void put_gpu(struct buf *b)
{
	size_t plane = begin_plane(b, "/device:GPU:2"), line, e;

	line = begin_line(b, 7, "Stream #7", 1000);
	e = begin_event(b, 1, 5000000, 2500500);
	put_stat(b, XEVENT_STATS, 1, XSTAT_UINT64, 42);
	put_text_stat(
		b, XEVENT_STATS, 2,
		"regs:32 static_shared:16 dynamic_shared:0 grid:4,2,1 block:128,1,1 occ_pct:50");
	put_stat(b, XEVENT_STATS, 3, XSTAT_REF, 4); /* tf_op: a text that stands as a name */
	end_event(b, e);
	e = begin_event(b, 2, 9000000, 1000000);
	put_stat(b, XEVENT_STATS, 1, XSTAT_INT64, 43);
	put_text_stat(b, XEVENT_STATS, 5,
		      "num_bytes:4096\nkind_src:pinned kind_dst:device size:4096 dest:0 async:1");
	end_event(b, e);
	pb_end(b, line);
	line = begin_line(b, XLINE_DERIVED_FIRST, "Steps", 1000);
	end_event(b, begin_event(b, 3, 0, 20000000));
	pb_end(b, line);
	put_name(b, PLANE_EVENT_METADATA, 1, "gemm");
	put_name(b, PLANE_EVENT_METADATA, 2, "MemcpyH2D");
	put_name(b, PLANE_EVENT_METADATA, 3, "0");
	put_name(b, PLANE_STAT_METADATA, 1, "correlation_id");
	put_name(b, PLANE_STAT_METADATA, 2, "kernel_details");
	put_name(b, PLANE_STAT_METADATA, 3, "tf_op");
	put_name(b, PLANE_STAT_METADATA, 4, "layer/mm:mm");
	put_name(b, PLANE_STAT_METADATA, 5, "memcpy_details");
	put_name(b, PLANE_STAT_METADATA, 6, "core_count");
	put_stat(b, PLANE_STATS, 6, XSTAT_INT64, 132);
	pb_end(b, plane);
}

static void put_host_events(struct buf *b)
{
	size_t e = begin_event(b, 1, 0, 20000000);

	put_stat(b, XEVENT_STATS, 1, XSTAT_INT64, 1);
	put_stat(b, XEVENT_STATS, 2, XSTAT_INT64, 5);
	end_event(b, e);
	e = begin_event(b, 2, 3000000, 1000000);
	put_stat(b, XEVENT_STATS, 3, XSTAT_UINT64, 42);
	end_event(b, e);
	e = begin_event(b, 3, 6000000, 0);
	put_text_stat(b, XEVENT_STATS, 4, "GPU_2_bfc");
	put_stat(b, XEVENT_STATS, 5, XSTAT_INT64, 3000);
	put_stat(b, XEVENT_STATS, 6, XSTAT_INT64, 512);
	put_stat(b, XEVENT_STATS, 7, XSTAT_INT64, 0x7000);
	end_event(b, e);
	end_event(b, begin_event(b, 4, 7000000, 1000000));
	end_event(b, begin_event(b, 5, 7100000, 1000));
}

static void put_host(struct buf *b)
{
	static const char *const events[] = { "train", "cudaLaunchKernel", "MemoryAllocation",
					      "PjitFunction(f)", "$a.py:1 g" };
	static const char *const stats[] = { "_r",
					     "step_num",
					     "correlation_id",
					     "allocator_name",
					     "bytes_allocated",
					     "allocation_bytes",
					     "addr" };
	size_t plane = begin_plane(b, "/host:CPU"), line = begin_line(b, 99, "python", 1000);

	put_host_events(b);
	pb_end(b, line);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		put_name(b, PLANE_EVENT_METADATA, (int64_t)i + 1, events[i]);
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++)
		put_name(b, PLANE_STAT_METADATA, (int64_t)i + 1, stats[i]);
	pb_end(b, plane);
}

static void put_counters(struct buf *b)
{
	size_t plane = begin_plane(b, "/device:GPU:3"), line = begin_line(b, 1, "_counters_", 0);
	size_t e = begin_event(b, 1, 2000000, 0), stat = pb_begin(b, XEVENT_STATS);

	pb_put_u64(b, XSTAT_METADATA_ID, 1);
	pb_put_f64(b, XSTAT_DOUBLE, 300.5);
	pb_end(b, stat);
	end_event(b, e);
	pb_end(b, line);
	put_name(b, PLANE_EVENT_METADATA, 1, "power_mw");
	put_name(b, PLANE_STAT_METADATA, 1, "value");
	pb_end(b, plane);
}

static void put_environment(struct buf *b)
{
	size_t plane = begin_plane(b, "Task Environment");

	put_name(b, PLANE_STAT_METADATA, 1, "profile_start_time");
	put_stat(b, PLANE_STATS, 1, XSTAT_UINT64, BASE_NS);
	pb_end(b, plane);
}

/* What of a profile Tacho knows, the environment last as XLA writes it. */
static void put_space(struct buf *b)
{
	buf_init(b, CEILING);
	put_gpu(b);
	put_host(b);
	put_counters(b);
	put_environment(b);
	pb_put_text(b, SPACE_HOSTNAMES, "node7");
}

/* ---- reading ---- */

struct read {
	struct trace *trace;
	struct event events[MOST];
	size_t count;
	uint64_t words[MOST][8];
	enum status opened, last;
	struct error err;
};

static void keep(struct read *r, const struct event *e)
{
	const struct arg_schema *s = trace_get_schema(r->trace, e->schema);

	if (r->count == MOST)
		return;
	r->events[r->count] = *e;
	for (uint32_t i = 0; i < s->arg_count && i < 8; i++)
		r->words[r->count][i] = e->args[i];
	r->events[r->count].args = r->words[r->count];
	r->count++;
}

static void read_bytes(struct read *r, const void *bytes, size_t len)
{
	struct budget budget = { .opening = 1 << 20, .resident = 65536, .scratch = "/tmp" };
	struct input *in = log_input(bytes, len);
	struct source *source = NULL;
	struct batch batch;
	uint64_t last_ns = 0;

	memset(r, 0, sizeof(*r));
	CHECK_OK(trace_new(&r->trace, CEILING, &r->err), &r->err);
	r->opened = source_open_as(&source, &source_xplane, in, r->trace, &budget, NULL, &r->err);
	r->last = r->opened;
	while (r->last == ST_OK && (r->last = source_next(source, &batch, &r->err)) == ST_OK)
		for (size_t i = 0; i < batch.count; i++) {
			CHECK(batch.events[i].begin_ns >= last_ns &&
			      batch.events[i].end_ns >= batch.events[i].begin_ns);
			last_ns = batch.events[i].begin_ns;
			keep(r, &batch.events[i]);
		}
	source_close(source);
	input_close(in);
}

static void release(struct read *r)
{
	trace_free(r->trace);
}

static const struct event *event_of(const struct read *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(trace_text(r->trace, r->events[i].name, NULL), name) == 0)
			return &r->events[i];
	CHECK(!"no event of that name");
	return &r->events[0];
}

static uint64_t number_of(const struct read *r, const struct event *e, const char *key)
{
	const struct attr *a = trace_find_attr(r->trace, e->schema, key);
	const struct arg_schema *s = trace_get_schema(r->trace, e->schema);

	for (uint32_t i = 0; i < s->arg_count; i++)
		if (strcmp(trace_text(r->trace, s->args[i].key, NULL), key) == 0)
			return e->args[i];
	return a ? a->bits : UINT64_MAX;
}

static const char *text_of(const struct read *r, const struct event *e, const char *key)
{
	const struct attr *a = trace_find_attr(r->trace, e->schema, key);

	return a && a->type == ATTR_TEXT ? trace_text(r->trace, (uint32_t)a->bits, NULL) : "";
}

static void check_gpu(const struct read *r)
{
	const struct event *e = event_of(r, "gemm");
	const struct track *k = trace_get_track(r->trace, e->track);

	CHECK_U64(e->kind, KIND_KERNEL);
	CHECK_U64(e->begin_ns, BASE_NS + 6000);
	CHECK_U64(e->end_ns, BASE_NS + 6000 + 2500);
	CHECK_U64(number_of(r, e, ".duration_ps"), 500);
	CHECK_U64(e->correlation, 42);
	CHECK_U64(number_of(r, e, "registers"), 32);
	CHECK_U64(number_of(r, e, "grid_y"), 2);
	CHECK_U64(number_of(r, e, "block_x"), 128);
	CHECK_STR(text_of(r, e, "tf_op"), "layer/mm:mm");
	CHECK_STR(text_of(r, e, "kernel_details"), "");
	CHECK_U64(k->type, TRACK_STREAM);
	CHECK_U64(k->device, 2);
	CHECK_U64(k->id, 7);
	e = event_of(r, "MemcpyH2D");
	CHECK_U64(e->kind, KIND_MEMCPY);
	CHECK_U64(e->subkind, 1);
	CHECK_U64(e->bytes, 4096);
	CHECK_U64(number_of(r, e, "src_kind"), 2);
	CHECK_U64(e->correlation, 43);
	CHECK_U64(event_of(r, "0")->subkind, RANGE_GPU_ANNOTATION);
	CHECK_U64(trace_find_attr(
			  r->trace,
			  trace_get_device(r->trace, trace_find_device(r->trace, 1, 2))->schema,
			  "numSms")
			  ->bits,
		  132);
}

static void check_host(const struct read *r)
{
	const struct event *e = event_of(r, "train");

	CHECK_U64(e->kind, KIND_STEP);
	CHECK_U64(e->number, 5);
	e = event_of(r, "cudaLaunchKernel");
	CHECK_U64(e->kind, KIND_API);
	CHECK_U64(e->correlation, 42);
	e = event_of(r, "MemoryAllocation");
	CHECK_U64(e->kind, KIND_ALLOC);
	CHECK_U64(e->bytes, 512);
	CHECK_U64(e->address, 0x7000);
	CHECK_U64(number_of(r, e, "total_allocated"), 3000);
	CHECK_U64(trace_get_track(r->trace, e->track)->device, 2);
	CHECK_U64(event_of(r, "PjitFunction(f)")->subkind, RANGE_ANNOTATION);
	CHECK_U64(event_of(r, "$a.py:1 g")->subkind, RANGE_PYTHON);
	e = event_of(r, "power_mw");
	CHECK_U64(e->kind, KIND_COUNTER);
	CHECK_F64(e->value, 300.5, 0);
}

static void put_call(struct buf *b, int64_t name, uint64_t correlation, int64_t key,
		     const char *details)
{
	size_t e = begin_event(b, name, name * 1000000, 500000);

	if (correlation)
		put_stat(b, XEVENT_STATS, 1, XSTAT_UINT64, correlation);
	put_text_stat(b, XEVENT_STATS, key, details);
	end_event(b, e);
}

/* TensorFlow: calls have the name and the details of their work. */
void test_xplane_calls(void)
{
	static const char *const names[] = { "gemm",      "MemcpyD2H",      "MemcpyH2D",
					     "cutlass_a", "cuLaunchKernel", "not a call",
					     "Launch b" };
	static const struct {
		const char *name;
		uint8_t class;
	} calls[] = { { "gemm", API_OF_KERNEL },
		      { "MemcpyD2H", API_OF_ASYNC_COPY },
		      { "MemcpyH2D", API_RUNTIME },
		      { "cutlass_a", API_OF_KERNEL },
		      { "cuLaunchKernel", API_DRIVER } };
	size_t plane, line;
	struct read r;
	struct buf b;

	buf_init(&b, CEILING);
	plane = begin_plane(&b, "/host:CPU");
	line = begin_line(&b, 99, "python", 1000);
	put_call(&b, 1, 42, 2, "grid:4,2,1 block:128,1,1");
	put_call(&b, 2, 43, 3, "size:4 dest:4 async:1");
	put_call(&b, 3, 44, 3, "size:4 dest:4 async:0");
	put_call(&b, 4, 45, 2, "grid:4,2,1 block:128,1,1");
	put_call(&b, 5, 46, 2, "grid:4,2,1 block:128,1,1");
	put_call(&b, 6, 0, 2, "grid:4,2,1 block:128,1,1");
	put_call(&b, 7, 47, 4, "none");
	pb_end(&b, line);
	for (size_t i = 0; i < 7; i++)
		put_name(&b, PLANE_EVENT_METADATA, (int64_t)i + 1, names[i]);
	put_name(&b, PLANE_STAT_METADATA, 1, "correlation_id");
	put_name(&b, PLANE_STAT_METADATA, 2, "kernel_details");
	put_name(&b, PLANE_STAT_METADATA, 3, "memcpy_details");
	put_name(&b, PLANE_STAT_METADATA, 4, "other");
	pb_end(&b, plane);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.last, ST_END);
	CHECK_U64(r.count, 7);
	CHECK_U64(event_of(&r, "Launch b")->kind, KIND_API); /* as we write it */
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct event *e = event_of(&r, calls[i].name);

		CHECK_U64(e->kind, KIND_API);
		CHECK_U64(e->subkind, calls[i].class);
		CHECK_U64(e->correlation, 42 + i);
		CHECK(text_of(&r, e, i == 1 || i == 2 ? "memcpy_details" : "kernel_details")[0]);
	}
	CHECK_U64(event_of(&r, "not a call")->kind, KIND_RANGE);
	release(&r);
	buf_release(&b);
}

void test_xplane_events(void)
{
	struct read r;
	struct buf b;

	put_space(&b);
	CHECK(source_xplane.bid(b.data, b.len) >= 90);
	CHECK_U64((uint64_t)source_xplane.bid((const uint8_t *)"{\"a\": 1}", 8), 0);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.last, ST_END);
	CHECK_U64(r.count, 9);
	CHECK_U64(trace_lost_total(r.trace, 0), 0);
	CHECK_STR(trace_text(r.trace, trace_get_process(r.trace, 1)->host, NULL), "node7");
	CHECK(trace_provenance(r.trace)->epoch_known);
	check_gpu(&r);
	check_host(&r);
	release(&r);
	buf_release(&b);
}

/* ---- hostile files ---- */

static void put_odd_events(struct buf *b)
{
	size_t e = begin_event(b, 1, 1000, 1000);

	put_text_stat(b, XEVENT_STATS, 1, "not a number"); /* of a wrong type */
	end_event(b, e);
	end_event(b, begin_event(b, 77, 2000, 1000)); /* a name that is nowhere */
	end_event(b, begin_event(b, 1, 3000, -5000)); /* ends before it begins */
	e = begin_event(b, 1, 4000, 1000);
	put_stat(b, XEVENT_STATS, 88, XSTAT_UINT64, 1); /* a stat that is nowhere */
	put_stat(b, XEVENT_STATS, 1, XSTAT_REF, 99);    /* a text that is nowhere */
	end_event(b, e);
	e = begin_event(b, 1, 5000, 1000);
	pb_put_u64(b, XEVENT_OCCURRENCES, 3); /* a sum without a time */
	end_event(b, e);
	end_event(b, begin_event(b, 1, INT64_MAX, INT64_MAX)); /* beyond any clock */
}

void test_xplane_odd(void)
{
	size_t plane, line;
	struct read r;
	struct buf b;

	buf_init(&b, CEILING);
	plane = begin_plane(&b, "/device:GPU:0");
	line = begin_line(&b, 1, "Stream #1", 0);
	put_odd_events(&b);
	pb_end(&b, line);
	line = begin_line(&b, 2, "Stream #2", -5000);
	end_event(&b, begin_event(&b, 1, 1000, 1000)); /* before 1970 */
	pb_end(&b, line);
	put_name(&b, PLANE_EVENT_METADATA, 1, "k");
	put_name(&b, PLANE_STAT_METADATA, 1, "correlation_id");
	pb_end(&b, plane);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.last, ST_END);
	CHECK_U64(r.count, 4);
	CHECK_U64(trace_lost(r.trace, 0, LOSS_NO_TIME), 3);
	CHECK_U64(trace_lost(r.trace, 0, LOSS_DAMAGED), 5);
	CHECK_STR(text_of(&r, &r.events[0], "correlation_id"), "not a number");
	CHECK_U64(r.events[2].begin_ns, r.events[2].end_ns);
	release(&r);
	buf_release(&b);
}

/* The value of an entry twice, each with a stat: protobuf has both. */
void test_xplane_pieces(void)
{
	size_t plane, line, entry, value;
	struct read r;
	struct buf b;

	buf_init(&b, CEILING);
	plane = begin_plane(&b, "/device:GPU:0");
	line = begin_line(&b, 1, "Stream #1", 0);
	end_event(&b, begin_event(&b, 1, 1000, 1000));
	pb_end(&b, line);
	entry = pb_begin(&b, PLANE_EVENT_METADATA);
	pb_put_u64(&b, ENTRY_KEY, 1);
	value = pb_begin(&b, ENTRY_VALUE);
	pb_put_text(&b, EVENT_META_NAME, "k");
	put_text_stat(&b, EVENT_META_STATS, 1, "one");
	pb_end(&b, value);
	value = pb_begin(&b, ENTRY_VALUE);
	put_text_stat(&b, EVENT_META_STATS, 2, "two");
	pb_end(&b, value);
	pb_end(&b, entry);
	put_name(&b, PLANE_STAT_METADATA, 1, "first_key");
	put_name(&b, PLANE_STAT_METADATA, 2, "second_key");
	pb_end(&b, plane);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.count, 1);
	CHECK_STR(text_of(&r, &r.events[0], "first_key"), "one");
	CHECK_STR(text_of(&r, &r.events[0], "second_key"), "two");
	release(&r);
	buf_release(&b);
}

/* XLA's lines of a TPU: operations are work, a module and a step are drawn over them. */
void test_xplane_tpu(void)
{
	static const char *const lines[] = { "Steps", "XLA Modules", "XLA Ops", "Async XLA Ops",
					     "XLA TraceMe" };
	const struct device *device;
	size_t plane, line;
	struct read r;
	struct buf b;

	buf_init(&b, CEILING);
	plane = begin_plane(&b, "/device:TPU:3");
	for (unsigned i = 0; i < 5; i++) {
		line = begin_line(&b, i + 1, lines[i], 0);
		end_event(&b, begin_event(&b, i + 1, 1000 * (i + 1), 1000));
		pb_end(&b, line);
	}
	put_name(&b, PLANE_EVENT_METADATA, 1, "0");
	put_name(&b, PLANE_EVENT_METADATA, 2, "jit_train_step(1)");
	put_name(&b, PLANE_EVENT_METADATA, 3, "fusion.1");
	put_name(&b, PLANE_EVENT_METADATA, 4, "all-reduce-start");
	put_name(&b, PLANE_EVENT_METADATA, 5, "MemcpyD2D");
	put_name(&b, PLANE_STAT_METADATA, 1, "device_type_string");
	put_text_stat(&b, PLANE_STATS, 1, "TPU v5e");
	pb_end(&b, plane);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.count, 5);
	for (unsigned i = 0; i < r.count; i++) {
		bool is_work = i == 2 || i == 3;

		CHECK_U64(r.events[i].kind, is_work ? KIND_KERNEL : KIND_RANGE);
		CHECK_U64(trace_get_track(r.trace, r.events[i].track)->device, 3);
	}
	device = trace_get_device(r.trace, 1);
	CHECK_STR(trace_text(r.trace, device->name, NULL), "TPU v5e");
	release(&r);
	buf_release(&b);
}

/* As JAX writes `_src` in each event: the first counts, and nothing is damaged. */
void test_xplane_stat_again(void)
{
	size_t plane, line, e;
	struct read r;
	struct buf b;

	buf_init(&b, CEILING);
	plane = begin_plane(&b, "/host:CPU");
	line = begin_line(&b, 1, "python", 0);
	e = begin_event(&b, 1, 1000, 1000);
	put_text_stat(&b, XEVENT_STATS, 1, "train.py:7");
	put_text_stat(&b, XEVENT_STATS, 1, "train.py:9");
	put_text_stat(&b, XEVENT_STATS, 1, "train.py:7");
	end_event(&b, e);
	pb_end(&b, line);
	put_name(&b, PLANE_EVENT_METADATA, 1, "k");
	put_name(&b, PLANE_STAT_METADATA, 1, "_src");
	pb_end(&b, plane);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.count, 1);
	CHECK_U64(trace_lost(r.trace, 0, LOSS_DAMAGED), 0);
	CHECK_STR(text_of(&r, &r.events[0], "_src"), "train.py:7");
	CHECK_STR(text_of(&r, &r.events[0], "_src.2"), "train.py:9");
	release(&r);
	buf_release(&b);
}

/* A text that says to be of 2 GiB, and an event that really is longer than the window. */
void test_xplane_huge(void)
{
	size_t plane, line, e;
	struct read r;
	struct buf b;

	buf_init(&b, CEILING);
	plane = begin_plane(&b, "/host:CPU");
	line = begin_line(&b, 1, "python", 0);
	e = begin_event(&b, 1, 1000, 1000);
	pb_put_key(&b, 99, PB_BYTES);
	buf_put_varint(&b, 400000);
	buf_fill(&b, 'x', 400000);
	end_event(&b, e);
	e = begin_event(&b, 1, 2000, 1000);
	pb_put_key(&b, XEVENT_STATS, PB_BYTES);
	buf_put_varint(&b, (uint64_t)2 << 30);
	end_event(&b, e);
	pb_end(&b, line);
	put_name(&b, PLANE_EVENT_METADATA, 1, "k");
	pb_end(&b, plane);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.last, ST_END);
	CHECK_U64(r.count, 1);
	CHECK_U64(trace_lost(r.trace, 0, LOSS_CEILING), 1);
	CHECK_U64(trace_lost(r.trace, 0, LOSS_DAMAGED), 1);
	release(&r);
	buf_release(&b);
}

static void put_bytes_stat(struct buf *b, uint32_t field, int64_t key, size_t len)
{
	size_t at = pb_begin(b, field);

	pb_put_u64(b, XSTAT_METADATA_ID, (uint64_t)key);
	pb_put_key(b, XSTAT_BYTES, PB_BYTES);
	buf_put_varint(b, len);
	buf_fill(b, 0xA5, len);
	pb_end(b, at);
}

/* A program of XLA's compiler, as it stands in saved profiles. */
static void put_program(struct buf *b, size_t len)
{
	size_t plane = begin_plane(b, XPLANE_METADATA);
	size_t entry = pb_begin(b, PLANE_EVENT_METADATA), value;

	pb_put_u64(b, ENTRY_KEY, 7);
	value = pb_begin(b, ENTRY_VALUE);
	pb_put_u64(b, EVENT_META_ID, 7);
	pb_put_text(b, EVENT_META_NAME, "jit_train(7)");
	put_bytes_stat(b, EVENT_META_STATS, 1, len);
	pb_end(b, value);
	pb_end(b, entry);
	put_name(b, PLANE_STAT_METADATA, 1, "Hlo Proto");
	pb_end(b, plane);
}

/* Programs of the compiler are kept whole.  Of other bytes that are no number or text a few are
 * shown, more are left out and counted. */
void test_xplane_programs(void)
{
	const struct attr *program;
	const char *text;
	size_t len;
	size_t plane, line, e;
	struct read r;
	struct buf b;

	buf_init(&b, CEILING);
	put_program(&b, 100000);
	put_program(&b, 33);
	plane = begin_plane(&b, "/device:GPU:0");
	put_bytes_stat(&b, PLANE_STATS, 2, 5000);
	line = begin_line(&b, 1, "Stream #1", 0);
	e = begin_event(&b, 1, 1000, 1000);
	put_bytes_stat(&b, XEVENT_STATS, 1, 32);
	put_bytes_stat(&b, XEVENT_STATS, 2, 33);
	end_event(&b, e);
	pb_end(&b, line);
	put_name(&b, PLANE_EVENT_METADATA, 1, "k");
	put_name(&b, PLANE_STAT_METADATA, 1, "digest");
	put_name(&b, PLANE_STAT_METADATA, 2, "blob");
	pb_end(&b, plane);
	read_bytes(&r, b.data, b.len);
	CHECK_U64(r.last, ST_END);
	CHECK_U64(r.count, 1);
	CHECK_U64(trace_lost(r.trace, 0, LOSS_UNREAD), 2);
	program = trace_find_attr(r.trace, trace_get_process(r.trace, 1)->schema,
				  XSPACE_PROGRAM_KEY "7.jit_train(7)");
	if (CHECK(program && program->type == ATTR_TEXT)) {
		text = trace_text(r.trace, (uint32_t)program->bits, &len);
		CHECK_U64(len, 100000);
		CHECK(len && (uint8_t)text[0] == 0xa5 && (uint8_t)text[len - 1] == 0xa5);
	}
	CHECK_U64(trace_lost(r.trace, 0, LOSS_DAMAGED), 0);
	CHECK_STR(text_of(&r, &r.events[0], "digest"),
		  "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5");
	CHECK(trace_find_attr(r.trace, r.events[0].schema, "blob") == NULL);
	release(&r);
	buf_release(&b);
}

/* Cut anywhere: what was whole before it is given, then one sentence. */
void test_xplane_cut(void)
{
	struct read r;
	struct buf b;
	size_t most = 0;

	put_space(&b);
	for (size_t len = 1; len < b.len; len++) {
		read_bytes(&r, b.data, len);
		if (r.opened != ST_OK)
			CHECK(r.err.text[0] != 0);
		else
			CHECK(r.last == ST_TRUNCATED || r.last == ST_END);
		CHECK(r.count <= 9);
		most = r.count > most ? r.count : most;
		release(&r);
	}
	CHECK_U64(most, 9);
	buf_release(&b);
}

void test_xplane_damage(void)
{
	uint64_t seed = 5;
	struct read r;
	struct buf b;
	uint8_t *bad;

	put_space(&b);
	bad = malloc(b.len);
	for (unsigned round = 0; bad && round < 1000; round++) {
		memcpy(bad, b.data, b.len);
		for (size_t i = 0; i < 1 + b.len / 100; i++)
			bad[random_u64(&seed) % b.len] = (uint8_t)random_u64(&seed);
		read_bytes(&r, bad, b.len);
		CHECK(r.opened != ST_OK ? r.err.text[0] != 0 : r.last != ST_OK);
		release(&r);
	}
	free(bad);
	buf_release(&b);
}

/* ---- real files ---- */

static void count_file(const char *path, const uint64_t want[KIND_END])
{
	struct budget budget = { .opening = 1 << 20, .resident = 65536, .scratch = "/tmp" };
	uint64_t counts[KIND_END] = { 0 };
	struct source *source = NULL;
	struct trace *trace = NULL;
	struct input *in = NULL;
	struct batch batch;
	struct error err;

	if (CHECK_OK(input_open(&in, path, "/tmp", &err), &err) &&
	    CHECK_OK(trace_new(&trace, CEILING, &err), &err) &&
	    CHECK_OK(source_open(&source, in, trace, &budget, NULL, &err), &err)) {
		while (source_next(source, &batch, &err) == ST_OK)
			for (size_t i = 0; i < batch.count; i++)
				counts[batch.events[i].kind]++;
		for (unsigned kind = 0; kind < KIND_END; kind++)
			if (!CHECK_U64(counts[kind], want[kind]))
				printf("%s: kind %u\n", path, kind);
		CHECK_U64(trace_lost_total(trace, 0), 0);
	}
	source_close(source);
	trace_free(trace);
	input_close(in);
}

/* Counted with a reader of a few lines of Python: tests/clients/xprof/xspace.py. */
void test_xplane_files(void)
{
	const char *traces = unit_traces();
	char path[4096];

	if (!traces) {
		SKIP("no sample traces");
		return;
	}
	snprintf(path, sizeof(path), "%s/xplane/jax_te_mi300.xplane.pb", traces);
	count_file(path, (const uint64_t[KIND_END]){ [KIND_KERNEL] = 150,
						     [KIND_API] = 150,
						     [KIND_RANGE] = 1633,
						     [KIND_ALLOC] = 30,
						     [KIND_FREE] = 29 });
	snprintf(path, sizeof(path), "%s/xplane/jax_conv_mi300_8gpu.xplane.pb", traces);
	count_file(path, (const uint64_t[KIND_END]){ [KIND_KERNEL] = 235,
						     [KIND_API] = 234,
						     [KIND_RANGE] = 2951,
						     [KIND_ALLOC] = 115,
						     [KIND_FREE] = 115 });
}
