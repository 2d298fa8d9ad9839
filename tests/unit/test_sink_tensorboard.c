/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "convert/sink/sink.h"
#include "tests/unit/folder.h"
#include "tests/unit/log_files.h"
#include "tests/unit/sink_files.h"
#include "tests/unit/unit.h"

#include "convert/output/output.h"
#include "convert/sink/tensorboard/internal.h"
#include "schemas/base/crc32c.h"
#include "schemas/proto/tfevents.pb-c.h"
#include "schemas/proto/xspace.pb-c.h"
#include "convert/output/tfevents.h"
#include "schemas/proto/xspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CEILING = 64 << 20, PS = 1000 };

/* ---- a run, written ---- */

struct written {
	struct buf names, bytes; /* of the folder's files; the XSpace */
	Tacho__Xspace__Space *space;
};

static bool read_whole(const char *path, struct buf *out)
{
	size_t len;
	void *bytes = folder_read(path, &len);

	buf_put(out, bytes, len);
	free(bytes);
	return CHECK(bytes != NULL) && CHECK(out->status == ST_OK);
}

static void put_all(struct sink *sink, struct sink_run *run)
{
	struct error err = { 0 };
	size_t half = run->count / 2;
	struct batch first = { .events = run->events, .count = half };
	struct batch rest = { .events = run->events + half, .count = run->count - half };

	CHECK_OK(sink_put(sink, &first, &err), &err);
	CHECK_OK(sink_put(sink, &rest, &err), &err);
	CHECK_OK(sink_close(sink, &err), &err);
}

/* The XSpace's name is the second of the run. */
static const char *space_name(const struct written *w)
{
	const char *first = (const char *)w->names.data;

	return first + strlen(first) + 1;
}

static bool write_run(struct sink_run *run, bool all_args, struct written *w)
{
	struct budget budget = { .opening = CEILING, .resident = 65536, .scratch = "/tmp" };
	struct sink_request request = { .trace = run->trace,
					.budget = &budget,
					.process = run->process,
					.all_args = all_args,
					.names = &w->names };
	struct sink *sink = NULL;
	struct folder folder;
	struct error err = { 0 };
	char path[600];

	memset(w, 0, sizeof(*w));
	buf_init(&w->names, 1 << 20);
	buf_init(&w->bytes, CEILING);
	folder_make(&folder);
	if (CHECK_OK(out_open(&request.out, folder.folder, true, &err), &err) &&
	    CHECK_OK(sink_open(&sink, &sink_tensorboard, &request, &err), &err)) {
		put_all(sink, run);
		CHECK_U64(sink->written, run->count);
		sink_free(sink);
		CHECK_OK(out_commit(request.out, &err), &err);
		snprintf(path, sizeof(path), "%s/%s", folder.folder, space_name(w));
		read_whole(path, &w->bytes);
	}
	out_free(request.out);
	folder_remove(&folder);
	w->space = tacho__xspace__space__unpack(NULL, w->bytes.len, w->bytes.data);
	return CHECK(w->space != NULL);
}

static void release(struct sink_run *run, struct written *w)
{
	if (w->space)
		tacho__xspace__space__free_unpacked(w->space, NULL);
	buf_release(&w->names);
	buf_release(&w->bytes);
	sink_run_release(run);
}

/* ---- looking into an XSpace ---- */

static bool is_text(const ProtobufCBinaryData *d, const char *text)
{
	return d->len == strlen(text) && memcmp(d->data, text, d->len) == 0;
}

static const Tacho__Xspace__Plane *plane_of(const struct written *w, const char *name)
{
	for (size_t i = 0; i < w->space->n_planes; i++)
		if (is_text(&w->space->planes[i]->name, name))
			return w->space->planes[i];
	return NULL;
}

static const Tacho__Xspace__Line *line_of(const Tacho__Xspace__Plane *p, const char *name)
{
	for (size_t i = 0; p && i < p->n_lines; i++)
		if (is_text(&p->lines[i]->name, name))
			return p->lines[i];
	return NULL;
}

static const ProtobufCBinaryData *stat_name(const Tacho__Xspace__Plane *p, uint64_t id)
{
	static const ProtobufCBinaryData none = { 0 };

	for (size_t i = 0; i < p->n_stat_metadata; i++)
		if ((uint64_t)p->stat_metadata[i]->key == id)
			return &p->stat_metadata[i]->value->name;
	return &none;
}

static const Tacho__Xspace__Event *event_named(const Tacho__Xspace__Plane *p,
					       const Tacho__Xspace__Line *l, const char *name)
{
	for (size_t i = 0; p && l && i < l->n_events; i++)
		for (size_t k = 0; k < p->n_event_metadata; k++)
			if (p->event_metadata[k]->key == l->events[i]->metadata_id &&
			    is_text(&p->event_metadata[k]->value->name, name))
				return l->events[i];
	printf("no event %s\n", name);
	return NULL;
}

static const Tacho__Xspace__Stat *find_stat(const Tacho__Xspace__Plane *p,
					    Tacho__Xspace__Stat *const *stats, size_t count,
					    const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (is_text(stat_name(p, (uint64_t)stats[i]->metadata_id), name))
			return stats[i];
	return NULL;
}

static const Tacho__Xspace__Stat *stat_of(const Tacho__Xspace__Plane *p,
					  const Tacho__Xspace__Event *e, const char *name)
{
	static const Tacho__Xspace__Stat none = TACHO__XSPACE__STAT__INIT;
	const Tacho__Xspace__Stat *s = e ? find_stat(p, e->stats, e->n_stats, name) : NULL;

	return s ? s : &none;
}

static void check_i64(const Tacho__Xspace__Plane *p, const Tacho__Xspace__Event *e,
		      const char *name, int64_t want)
{
	const Tacho__Xspace__Stat *s = stat_of(p, e, name);

	if (CHECK_U64(s->value_case, TACHO__XSPACE__STAT__VALUE_INT64_VALUE))
		CHECK_I64(s->int64_value, want);
}

static void check_u64(const Tacho__Xspace__Plane *p, const Tacho__Xspace__Event *e,
		      const char *name, uint64_t want)
{
	const Tacho__Xspace__Stat *s = stat_of(p, e, name);

	if (CHECK_U64(s->value_case, TACHO__XSPACE__STAT__VALUE_UINT64_VALUE))
		CHECK_U64(s->uint64_value, want);
}

static void check_text(const Tacho__Xspace__Plane *p, const Tacho__Xspace__Event *e,
		       const char *name, const char *want)
{
	const Tacho__Xspace__Stat *s = stat_of(p, e, name);
	const ProtobufCBinaryData *text = s->value_case == TACHO__XSPACE__STAT__VALUE_REF_VALUE
						  ? stat_name(p, s->ref_value)
						  : &s->str_value;

	if (!CHECK(s->value_case == TACHO__XSPACE__STAT__VALUE_REF_VALUE ||
		   s->value_case == TACHO__XSPACE__STAT__VALUE_STR_VALUE) ||
	    !CHECK(is_text(text, want)))
		printf("%s: %.*s, not %s\n", name, (int)text->len, (const char *)text->data, want);
}

/* ---- the run of most tests: two steps of one launch each, on stream 7 of GPU 1 ---- */

static void add_step(struct sink_run *run, uint32_t number, double at_us)
{
	uint32_t thread = run_thread(run, 55), stream = run_stream(run, 1, 7);
	struct attr consts[] = { run_number(run, "registers", 40), run_number(run, "grid_x", 3),
				 run_number(run, "block_x", 64) };
	uint32_t schema = run_schema(run, consts, 3, NULL, 0);
	struct event *e = run_event(run, KIND_STEP, thread, NULL, at_us, at_us + 100);

	e->number = number;
	e->step = number + 1;
	e = run_event(run, KIND_API, thread, "cudaLaunchKernel", at_us + 10, at_us + 12);
	e->correlation = number + 70;
	e->step = number + 1;
	e = run_event(run, KIND_KERNEL, stream, "gemm", at_us + 20, at_us + 30.5);
	e->correlation = number + 70;
	e->path = trace_path(run->trace, 0, run_name(run, "aten::mm"), RANGE_OP);
	e->schema = schema;
	e = run_event(run, KIND_MEMCPY, stream, NULL, at_us + 40, at_us + 45);
	e->subkind = 1;
	e->bytes = 4096;
}

static void make(struct sink_run *run)
{
	struct device d = { .id = 1 };
	struct attr consts[2];
	struct error err;

	sink_run_make(run);
	d.process = run->process;
	d.name = run_name(run, "GPU of a test");
	consts[0] = run_number(run, "numSms", 132);
	consts[1] = run_number(run, "totalGlobalMem", 1000000);
	d.schema = run_schema(run, consts, 2, NULL, 0);
	CHECK(trace_device(run->trace, &d, &err) != 0);
	add_step(run, 4, 0);
	add_step(run, 5, 100.5);
}

static void check_planes(const struct written *w)
{
	static const char *const names[] = { "/device:GPU:1", "/host:CPU" };

	for (size_t i = 0; i < 2; i++) { /* steps are taken as they are only if all say group_id */
		const Tacho__Xspace__Plane *p = plane_of(w, names[i]);
		bool any = false;

		if (!CHECK(p != NULL))
			return;
		for (size_t k = 0; k < p->n_stat_metadata; k++) {
			any |= is_text(&p->stat_metadata[k]->value->name, "group_id");
			CHECK_I64(p->stat_metadata[k]->key, p->stat_metadata[k]->value->id);
		}
		CHECK(any);
	}
	CHECK_U64(w->space->n_hostnames, 1);
	CHECK(is_text(&w->space->hostnames[0], "node-r3"));
	CHECK_STR(space_name(w), "plugins/profile/2023_11_14_22_13_20/node-r3.xplane.pb");
}

void test_tensorboard_space(void)
{
	const Tacho__Xspace__Plane *gpu;
	const Tacho__Xspace__Event *e;
	struct sink_run run;
	struct written w;

	make(&run);
	if (write_run(&run, false, &w)) {
		check_planes(&w);
		gpu = plane_of(&w, "/device:GPU:1");
		e = event_named(gpu, line_of(gpu, "Stream #7"), "gemm");
		if (CHECK(e != NULL)) {
			CHECK_I64(e->offset_ps, 20000 * PS);
			CHECK_I64(e->duration_ps, 10500 * PS);
		}
		check_u64(gpu, e, "correlation_id", 74);
		check_i64(gpu, e, "group_id", 4);
		check_u64(gpu, e, "flow", 1 | 74 << 2 | UINT64_C(9) << 58);
		check_text(gpu, e, "tf_op", "other/aten.mm:mm");
		check_text(gpu, e, "kernel_details",
			   "regs:40 static_shared:0 dynamic_shared:0 "
			   "grid:3,1,1 block:64,1,1 occ_pct:0");
		e = event_named(gpu, line_of(gpu, "Stream #7"), "MemcpyHToD");
		check_text(gpu, e, "memcpy_details",
			   "num_bytes:4096\nkind_src:unknown "
			   "kind_dst:unknown size:4096 dest:0 async:0");
		CHECK(find_stat(gpu, gpu->stats, gpu->n_stats, "device_vendor") != NULL);
		CHECK_U64(find_stat(gpu, gpu->stats, gpu->n_stats, "core_count")->uint64_value,
			  132);
	}
	release(&run, &w);
}

/* Steps: the gap of 0.5 us after step 4 is within 1 % of a mark, so it belongs to it. */
void test_tensorboard_steps(void)
{
	const Tacho__Xspace__Plane *gpu, *host;
	const Tacho__Xspace__Line *steps;
	const Tacho__Xspace__Event *e;
	struct sink_run run;
	struct written w;

	make(&run);
	if (write_run(&run, false, &w)) {
		gpu = plane_of(&w, "/device:GPU:1");
		steps = line_of(gpu, "Steps");
		if (CHECK(steps != NULL) && CHECK_U64(steps->n_events, 2)) {
			CHECK_I64(steps->id, XLINE_DERIVED_FIRST);
			CHECK_I64(steps->events[0]->duration_ps, 100500 * PS);
			CHECK_I64(steps->events[1]->offset_ps, 100500 * PS);
			CHECK_I64(steps->events[1]->duration_ps, 100000 * PS);
			check_i64(gpu, steps->events[1], "group_id", 5);
			check_text(gpu, steps->events[1], "step_name", "5");
		}
		host = plane_of(&w, "/host:CPU");
		e = event_named(host, line_of(host, "Thread 55"), "ProfilerStep#5");
		check_i64(host, e, "_r", 1);
		check_i64(host, e, "step_num", 5);
		e = event_named(host, line_of(host, "Thread 55"), "cudaLaunchKernel");
		check_u64(host, e, "correlation_id", 74);
	}
	release(&run, &w);
}

static uint64_t group_of(const Tacho__Xspace__Plane *p, const Tacho__Xspace__Line *l, size_t i)
{
	const Tacho__Xspace__Stat *s = stat_of(p, l->events[i], "group_id");

	return CHECK(s != NULL) ? (uint64_t)s->int64_value : UINT64_MAX;
}

/* Steps of one number, next to each other and later, are steps of their own: XProf puts together
 * what has one group.  What began with a mark and is none does not stand for it. */
void test_tensorboard_steps_again(void)
{
	static const uint32_t numbers[] = { 7, 7, 12, 7 }, groups[] = { 7, 107, 12, 207 };
	const Tacho__Xspace__Line *steps, *stream, *thread;
	const Tacho__Xspace__Plane *gpu, *host;
	struct sink_run run;
	struct written w;
	struct event *e;
	size_t i;

	sink_run_make(&run);
	e = run_event(&run, KIND_RANGE, run_thread(&run, 55), "epoch", 0, 400);
	e->subkind = RANGE_ANNOTATION;
	e->step = 8;
	for (i = 0; i < 4; i++)
		add_step(&run, numbers[i], (double)i * 100);
	if (write_run(&run, false, &w)) {
		gpu = plane_of(&w, "/device:GPU:1");
		host = plane_of(&w, "/host:CPU");
		steps = line_of(gpu, "Steps");
		stream = line_of(gpu, "Stream #7");
		thread = line_of(host, "Thread 55");
		if (CHECK(steps && stream && thread) && CHECK_U64(steps->n_events, 4) &&
		    CHECK_U64(stream->n_events, 8) && CHECK_U64(thread->n_events, 9))
			for (i = 0; i < 4; i++) {
				CHECK_I64(steps->events[i]->offset_ps, (int64_t)i * 100000 * PS);
				CHECK_I64(steps->events[i]->duration_ps, 100000 * PS);
				CHECK_U64(group_of(gpu, steps, i), groups[i]);
				CHECK_U64(group_of(gpu, stream, 2 * i), groups[i]);
				CHECK_U64(group_of(host, thread, 1 + 2 * i), groups[i]);
				check_text(gpu, steps->events[i], "step_name", i == 2 ? "12" : "7");
			}
	}
	release(&run, &w);
}

void test_tensorboard_memory(void)
{
	struct attr args;
	uint64_t total = 5000;
	struct sink_run run;
	struct written w;
	uint32_t pool;

	make(&run);
	run.count = 0;
	pool = run_pool(&run, 1);
	run_event(&run, KIND_ALLOC, pool, "[memory]", 1, 1)->bytes = 300;
	run_event(&run, KIND_ALLOC, pool, "[memory]", 2, 2)->bytes = 200;
	run_event(&run, KIND_FREE, pool, "[memory]", 3, 3)->bytes = 300;
	args = run_number(&run, "total_allocated", 0);
	run_event(&run, KIND_ALLOC, pool, "[memory]", 4, 4)->schema =
		run_schema(&run, NULL, 0, &args, 1);
	run.events[3].args = &total; /* what the allocator says counts */
	run_event(&run, KIND_COUNTER, run_counter(&run, 1, "bytes_in_use"), NULL, 5, 5)->value = 77;
	if (write_run(&run, false, &w)) {
		const Tacho__Xspace__Plane *host = plane_of(&w, "/host:CPU");
		const Tacho__Xspace__Line *l = line_of(host, "Memory");
		static const int64_t totals[] = { 300, 500, 200, 5000, 77 };
		static const int64_t peaks[] = { 300, 500, 500, 5000, 77 };

		if (CHECK(l != NULL) && CHECK_U64(l->n_events, 5)) {
			for (size_t i = 0; i < 5; i++) {
				check_i64(host, l->events[i], "bytes_allocated", totals[i]);
				check_i64(host, l->events[i], "peak_bytes_in_use", peaks[i]);
				check_i64(host, l->events[i], "bytes_available",
					  1000000 - totals[i]);
			}
			check_text(host, l->events[0], "allocator_name", "GPU_1");
			check_text(host, l->events[4], "allocator_name", "GPU_1 (sampled)");
			check_i64(host, l->events[2], "allocation_bytes", 300);
		}
	}
	release(&run, &w);
}

/* Readers of proto3 refuse a file with bytes in it that are no UTF-8. */
void test_tensorboard_odd(void)
{
	struct sink_run run;
	struct written w;

	make(&run);
	run_event(&run, KIND_RANGE, run_thread(&run, 55), "a\xff\"\n\xc3\xa4", 300, 301);
	run_event(&run, KIND_SYNC, run_stream(&run, 1, 7), "Stream Sync", 302, 303);
	run_event(&run, KIND_MARK, run_stream(&run, NO_ID, 7), "m", 304, 304);
	if (write_run(&run, true, &w)) {
		const Tacho__Xspace__Plane *host = plane_of(&w, "/host:CPU");
		const Tacho__Xspace__Plane *own =
			plane_of(&w, "/device:CUSTOM:Waits and annotations of GPU 1");

		CHECK(event_named(host, line_of(host, "Thread 55"), "a\xef\xbf\xbd\"\n\xc3\xa4") !=
		      NULL);
		CHECK(event_named(own, line_of(own, "Stream #7"), "Stream Sync") != NULL);
		CHECK(plane_of(&w, "/device:CUSTOM:Waits and annotations") != NULL);
	}
	release(&run, &w);
}

/* Past the limit a sentence, and no file. */
void test_tensorboard_limit(void)
{
	struct budget budget = { .opening = CEILING, .resident = 65536, .scratch = "/tmp" };
	struct sink_request request = { .budget = &budget };
	struct tb_space *space = NULL;
	struct folder folder;
	struct sink_run run;
	struct error err = { 0 };

	make(&run);
	request.trace = run.trace;
	request.process = run.process;
	folder_make(&folder);
	CHECK_OK(out_open(&request.out, folder_path(&folder, "x"), false, &err), &err);
	if (CHECK_OK(tb_space_open(&space, &request, 300, &err), &err)) {
		for (size_t i = 0; i < run.count; i++)
			CHECK_OK(tb_space_put(space, &run.events[i], &err), &err);
		CHECK_U64(tb_space_write(space, "node", run.events[0].begin_ns, &err), ST_CEILING);
		CHECK(strstr(err.text, "exceed 2 GiB") != NULL);
	}
	tb_space_free(space);
	out_free(request.out);
	folder_remove(&folder);
	sink_run_release(&run);
}

/* What was written reads as the same events. */
void test_tensorboard_round(void)
{
	struct budget budget = { .opening = 1 << 20, .resident = 65536, .scratch = "/tmp" };
	struct source *source = NULL;
	struct trace *trace = NULL;
	struct sink_run run;
	struct written w;
	struct batch batch;
	struct error err = { 0 };
	size_t same = 0;

	make(&run);
	if (write_run(&run, true, &w) && CHECK_OK(trace_new(&trace, CEILING, &err), &err)) {
		struct input *in = log_input(w.bytes.data, w.bytes.len);

		CHECK_OK(source_open(&source, in, trace, &budget, NULL, &err), &err);
		while (source && source_next(source, &batch, &err) == ST_OK)
			for (size_t i = 0; i < batch.count; i++)
				for (size_t k = 0; k < run.count; k++) {
					const struct event *a = &batch.events[i],
							   *b = &run.events[k];

					same += a->kind == b->kind && a->begin_ns == b->begin_ns &&
						a->end_ns == b->end_ns &&
						a->correlation == b->correlation &&
						(a->kind != KIND_MEMCPY || a->bytes == b->bytes);
				}
		CHECK_U64(same, run.count);
		CHECK_U64(trace_lost_total(trace, 0), 0);
		source_close(source);
		input_close(in);
	}
	trace_free(trace);
	release(&run, &w);
}

/* ---- numbers of fields ---- */

static uint32_t field_of(const ProtobufCMessageDescriptor *d, const char *name)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(d, name);

	return f ? f->id : 0;
}

void test_tensorboard_fields(void)
{
	const ProtobufCMessageDescriptor *event = &tacho__xspace__event__descriptor;
	const ProtobufCMessageDescriptor *stat = &tacho__xspace__stat__descriptor;
	const ProtobufCMessageDescriptor *plane = &tacho__xspace__plane__descriptor;
	const ProtobufCMessageDescriptor *line = &tacho__xspace__line__descriptor;

	CHECK_U64(field_of(event, "metadata_id"), XEVENT_METADATA_ID);
	CHECK_U64(field_of(event, "offset_ps"), XEVENT_OFFSET_PS);
	CHECK_U64(field_of(event, "duration_ps"), XEVENT_DURATION_PS);
	CHECK_U64(field_of(event, "stats"), XEVENT_STATS);
	CHECK_U64(field_of(event, "num_occurrences"), XEVENT_OCCURRENCES);
	CHECK_U64(field_of(stat, "metadata_id"), XSTAT_METADATA_ID);
	CHECK_U64(field_of(stat, "double_value"), XSTAT_DOUBLE);
	CHECK_U64(field_of(stat, "uint64_value"), XSTAT_UINT64);
	CHECK_U64(field_of(stat, "int64_value"), XSTAT_INT64);
	CHECK_U64(field_of(stat, "str_value"), XSTAT_TEXT);
	CHECK_U64(field_of(stat, "bytes_value"), XSTAT_BYTES);
	CHECK_U64(field_of(stat, "ref_value"), XSTAT_REF);
	CHECK_U64(field_of(plane, "lines"), PLANE_LINES);
	CHECK_U64(field_of(plane, "event_metadata"), PLANE_EVENT_METADATA);
	CHECK_U64(field_of(plane, "stat_metadata"), PLANE_STAT_METADATA);
	CHECK_U64(field_of(plane, "stats"), PLANE_STATS);
	CHECK_U64(field_of(line, "events"), LINE_EVENTS);
	CHECK_U64(field_of(line, "timestamp_ns"), LINE_TIMESTAMP_NS);
	CHECK_U64(field_of(&tacho__xspace__space__descriptor, "planes"), SPACE_PLANES);
	CHECK_U64(field_of(&tacho__xspace__space__descriptor, "hostnames"), SPACE_HOSTNAMES);
	CHECK_U64(field_of(&tacho__xspace__event_metadata__descriptor, "stats"), EVENT_META_STATS);
}

/* ---- tfevents ---- */

static Tacho__Tfevents__Event *take_record(struct bytes *b)
{
	const uint8_t *at = b->at;
	uint64_t len = take_u64(b);
	uint32_t crc = take_u32(b);
	const uint8_t *message = take_bytes(b, len);

	CHECK(crc == crc32c_masked(at, 8));
	if (!CHECK(message != NULL) || !CHECK(take_u32(b) == crc32c_masked(message, len)))
		return NULL;
	return tacho__tfevents__event__unpack(NULL, len, message);
}

void test_tfevents_records(void)
{
	/* Written by TensorBoard: tag "loss", step 5, 0.5 at 1.7e9 s. */
	static const uint8_t loss[] = {
		0x1a, 0,    0,    0,    0,    0,    0,    0,    0x12, 0x9b, 0xd8, 0x2d, 0x09, 0,
		0,    0,    0x40, 0xfc, 0x54, 0xd9, 0x41, 0x10, 0x05, 0x2a, 0x0d, 0x0a, 0x0b, 0x0a,
		0x04, 0x6c, 0x6f, 0x73, 0x73, 0x15, 0,    0,    0,    0x3f, 0x94, 0x34, 0xff, 0x71,
	};
	Tacho__Tfevents__Event *e;
	struct bytes b;
	struct buf out;

	buf_init(&out, CEILING);
	tfevents_put_scalar(&out, 1700000000000000000u, 5, "loss", 0.5);
	if (CHECK_U64(out.len, sizeof(loss)))
		CHECK_MEM(out.data, loss, sizeof(loss));
	buf_clear(&out);
	tfevents_put_version(&out, 1700000000000000000u);
	tfevents_put_text_card(&out, 1700000000000000000u, 9, "summary", "# a\n", 4);
	b = bytes_init(out.data, out.len);
	e = take_record(&b);
	if (CHECK(e != NULL))
		CHECK_STR(e->file_version, "brain.Event:2");
	tacho__tfevents__event__free_unpacked(e, NULL);
	e = take_record(&b);
	if (CHECK(e && e->summary && e->summary->n_value == 1)) {
		CHECK_I64(e->step, 9);
		CHECK_STR(e->summary->value[0]->metadata->plugin_data->plugin_name, "text");
		CHECK(is_text(&e->summary->value[0]->tensor->string_val[0], "# a\n"));
	}
	tacho__tfevents__event__free_unpacked(e, NULL);
	CHECK_U64(bytes_left(&b), 0);
	buf_release(&out);
}
