/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "convert/sink/sink.h"
#include "tests/unit/perfetto_reading.h"
#include "tests/unit/unit.h"

#include "schemas/base/json_text.h"
#include "schemas/base/pb.h"
#include "schemas/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- field numbers ---- */

static unsigned key_of(const ProtobufCMessageDescriptor *m, const char *name)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m, name);

	if (!CHECK(f != NULL))
		return 0;
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
		return f->id << 3 | PB_BYTES;
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return f->id << 3 | PB_FIXED64;
	default:
		return f->id << 3 | PB_VARINT;
	}
}

void test_perfetto_keys(void)
{
	static const ProtobufCMessageDescriptor *const of[] = {
		&perfetto__trace__descriptor, &perfetto__trace_packet__descriptor,
		&perfetto__track_event__descriptor
	};
	static const struct {
		unsigned of, key;
		const char *name;
	} rows[] = {
		{ 0, WIRE_PACKET, "packet" },
		{ 1, WIRE_TIME, "timestamp" },
		{ 1, WIRE_SEQUENCE, "trusted_packet_sequence_id" },
		{ 1, WIRE_FLAGS, "sequence_flags" },
		{ 1, WIRE_EVENT, "track_event" },
		{ 2, WIRE_CATEGORY, "category_iids" },
		{ 2, WIRE_ARG, "debug_annotations" },
		{ 2, WIRE_TYPE, "type" },
		{ 2, WIRE_NAME, "name_iid" },
		{ 2, WIRE_TRACK, "track_uuid" },
		{ 2, WIRE_TEXT, "name" },
		{ 2, WIRE_VALUE, "double_counter_value" },
		{ 2, WIRE_FLOW, "flow_ids" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_U64(key_of(of[rows[i].of], rows[i].name), rows[i].key);
	CHECK_U64(SLICE_BEGIN, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN);
	CHECK_U64(SLICE_END, PERFETTO__TRACK_EVENT__TYPE__SLICE_END);
	CHECK_U64(INSTANT, PERFETTO__TRACK_EVENT__TYPE__INSTANT);
	CHECK_U64(COUNTER, PERFETTO__TRACK_EVENT__TYPE__COUNTER);
}

void test_perfetto_time(void)
{
	uint64_t state = 5;

	for (unsigned i = 0; i < 4096; i++) {
		uint64_t v = random_u64(&state) >> i % 64;
		uint8_t bytes[16] = { 0 };
		uint8_t *end = wire_put_time(bytes, v);
		struct bytes b = bytes_init(bytes, (size_t)(end - bytes));

		CHECK(take_varint(&b) == v && !b.is_truncated && b.at == end);
	}
}

/* ---- events ---- */

static uint32_t kernel_schema(struct sink_run *run)
{
	static const struct {
		const char *key;
		uint64_t number;
	} rows[] = { { "grid_x", 8 }, { "grid_y", 2 }, { "grid_z", 1 }, { "registers", 300 } };
	struct attr attrs[6];

	for (size_t i = 0; i < 4; i++)
		attrs[i] = run_number(run, rows[i].key, rows[i].number);
	attrs[4] = run_text(run, "my note", "a \"text\"");
	attrs[5] = run_text(run, ".cat", "own category");
	return run_schema(run, attrs, 6, NULL, 0);
}

static void fill_native(struct sink_run *run)
{
	uint32_t thread, stream;
	struct event *e;

	thread = run_thread(run, 101);
	stream = run_stream(run, 1, 7);
	run_event(run, KIND_STEP, thread, NULL, 0, 900)->number = 12;
	run_event(run, KIND_RANGE, thread, "forward", 10, 500)->subkind = RANGE_PHASE;
	e = run_event(run, KIND_API, thread, "cudaLaunchKernel_v7000", 20, 30.5);
	e->correlation = 40;
	e = run_event(run, KIND_API, thread, "cuLaunchKernel", 21, 29);
	e->subkind = API_DRIVER;
	e->correlation = 40;
	e->result = -700;
	e->flags = EVENT_RESULT;
	e = run_event(run, KIND_KERNEL, stream, "sgemm<float, 4>", 40, 100.25);
	e->correlation = 40;
	e->schema = kernel_schema(run);
	e = run_event(run, KIND_KERNEL, stream, "late", 90, 120);
	e->flags = EVENT_NEVER_ENDED;
	e = run_event(run, KIND_MEMCPY, stream, NULL, 110, 112);
	e->correlation = 41;
	e->bytes = 8000;
	e->subkind = 1;
	e = run_event(run, KIND_SYNC, stream, NULL, 120, 130);
	e->subkind = 3;
	e = run_event(run, KIND_MARK, thread, "fwdbwd", 140, 140);
	e->subkind = MARK_FLOW_BEGIN;
	e->number = 9;
	e = run_event(run, KIND_COUNTER, run_counter(run, 1, "power"), NULL, 150, 150);
	e->value = 4096.5;
	e = run_event(run, KIND_ALLOC, run_pool(run, 1), NULL, 160, 160);
	e->bytes = 64;
	e->address = 4096;
	e = run_event(run, KIND_FREE, run_pool(run, 1), NULL, 170, 170);
	e->bytes = 24;
}

static void make_native(struct sink_run *run)
{
	sink_run_make(run);
	fill_native(run);
}

void test_perfetto_native(void)
{
	static struct reading r;
	struct sink_run run;
	const Perfetto__TrackDescriptor *stream, *gpu, *thread;
	size_t kernel, call;

	make_native(&run);
	if (!read_run(&run, false, &r))
		return;
	CHECK_U64(length_of(&r, "sgemm<float, 4>", 0), 60250);
	CHECK_U64(length_of(&r, "late", 0), 30000);
	CHECK_U64(length_of(&r, "forward", 0), 490000);
	CHECK_U64(length_of(&r, "step 12", 0), 900000);
	CHECK_U64(length_of(&r, "cudaLaunchKernel", 0), 10500);
	CHECK_U64(length_of(&r, "Memcpy HtoD", 0), 2000);
	CHECK_U64(length_of(&r, "Stream Sync", 0), 10000);
	kernel = find(&r, BEGIN, "sgemm<float, 4>", 0);
	call = find(&r, BEGIN, "cudaLaunchKernel", 0);
	CHECK(event_at(&r, kernel)->n_flow_ids == 1 && event_at(&r, call)->n_flow_ids == 1);
	CHECK(event_at(&r, kernel)->flow_ids[0] == event_at(&r, call)->flow_ids[0]);
	CHECK_U64(event_at(&r, find(&r, BEGIN, "cuLaunchKernel", 0))->n_flow_ids, 0);
	CHECK_STR(text_of(&r, SPACE_CATEGORY, event_at(&r, call)->category_iids[0], call), "api");
	stream = track_of(&r, event_at(&r, kernel)->track_uuid);
	CHECK_STR(stream->name, "Stream 7");
	gpu = track_of(&r, stream->parent_uuid);
	CHECK_STR(gpu->name, "GPU 1");
	CHECK(track_of(&r, gpu->parent_uuid)->process->pid == 1000000003);
	CHECK_STR(track_of(&r, gpu->parent_uuid)->process->process_name, "rank 3 (node)");
	thread = track_of(&r, event_at(&r, call)->track_uuid);
	CHECK(thread->thread && thread->thread->tid == 101 && thread->thread->pid == 1000000003);
	CHECK(arg_of(&r, kernel, "grid") == NULL);
	CHECK_U64(arg_of(&r, find(&r, BEGIN, "Memcpy HtoD", 0), "bytes")->uint_value, 8000);
	CHECK_F64(arg_of(&r, find(&r, BEGIN, "Memcpy HtoD", 0), "GB/s")->double_value, 4, 1e-9);
	CHECK(arg_of(&r, find(&r, BEGIN, "cuLaunchKernel", 0), "result")->int_value == -700);
	CHECK_U64(arg_of(&r, find(&r, BEGIN, "late", 0), "never ended")->uint_value, 1);
	forget(&r);
	sink_run_release(&run);
}

void test_perfetto_full(void)
{
	static struct reading r;
	struct sink_run run;
	const Perfetto__DebugAnnotation *grid;
	const Perfetto__TrackEvent *e;
	size_t kernel, taken;

	make_native(&run);
	if (!read_run(&run, true, &r))
		return;
	kernel = find(&r, BEGIN, "sgemm<float, 4>", 0);
	grid = arg_of(&r, kernel, "grid");
	if (CHECK(grid && grid->n_array_values == 3))
		CHECK_U64(grid->array_values[0]->uint_value, 8);
	CHECK_U64(arg_of(&r, kernel, "registers per thread")->uint_value, 300);
	CHECK_U64(arg_of(&r, kernel, "correlation")->uint_value, 40);
	CHECK_U64(arg_of(&r, kernel, "device")->uint_value, 1);
	CHECK_U64(arg_of(&r, kernel, "stream")->uint_value, 7);
	CHECK_STR(text_of(&r, SPACE_TEXT, arg_of(&r, kernel, "my note")->string_value_iid, kernel),
		  "a \"text\"");
	e = event_at(&r, kernel);
	CHECK_STR(text_of(&r, SPACE_CATEGORY, e->category_iids[0], kernel), "own category");
	CHECK(arg_of(&r, kernel, ".cat") == NULL);
	CHECK_U64(length_of(&r, "sgemm<float, 4>", 0), 60250);
	taken = find(&r, PERFETTO__TRACK_EVENT__TYPE__INSTANT, "alloc", 0);
	CHECK_U64(arg_of(&r, taken, "address")->pointer_value, 4096);
	forget(&r);
	sink_run_release(&run);
}

/* The samples of a counter by its name, in the file's order. */
static size_t samples_of(const struct reading *r, const char *name, double *values, size_t most)
{
	size_t count = 0;

	for (size_t i = 0; i < r->count && count < most; i++) {
		const Perfetto__TrackEvent *e = r->packets[i]->track_event;
		const Perfetto__TrackDescriptor *d;

		if (!e || e->type != PERFETTO__TRACK_EVENT__TYPE__COUNTER)
			continue;
		d = track_of(r, e->track_uuid);
		if (CHECK(d && d->counter) && strcmp(d->name, name) == 0)
			values[count++] = e->double_counter_value;
	}
	return count;
}

void test_perfetto_derived(void)
{
	static struct reading r;
	struct sink_run run;
	double values[16];

	make_native(&run);
	if (!read_run(&run, false, &r))
		return;
	CHECK_U64(length_of(&r, "compute", 0),
		  80000); /* two kernels that overlap; the copy is in them */
	CHECK(find(&r, BEGIN, "exposed copy", 0) == PACKETS);
	CHECK_U64(samples_of(&r, "power", values, 16), 1);
	CHECK_F64(values[0], 4096.5, 0);
	CHECK_U64(samples_of(&r, "Memory allocated", values, 16), 2);
	CHECK_F64(values[0], 64, 0);
	CHECK_F64(values[1], 40, 0);
	CHECK_U64(samples_of(&r, "Queue length", values, 16), 2);
	CHECK_F64(values[0], 1, 0);
	CHECK_F64(values[1], 0, 0);
	CHECK_U64(samples_of(&r, "GPU busy", values, 16), 2);
	CHECK_F64(values[0], 8, 0); /* 80 us of a millisecond */
	CHECK_F64(values[1], 0, 0);
	forget(&r);
	sink_run_release(&run);
}

/* ---- places ---- */

/* On each track the intervals are within each other or apart, and each has its own length. */
static void check_nesting(const struct reading *r, unsigned *slices)
{
	for (size_t i = 0; i + 1 < r->count; i++) {
		const Perfetto__TracePacket *a = r->packets[i];

		if (!a->track_event || a->track_event->type != BEGIN)
			continue;
		++*slices;
		CHECK(r->packets[i + 1]->timestamp >= a->timestamp);
		for (size_t k = i + 2; k + 1 < r->count; k++) {
			const Perfetto__TracePacket *b = r->packets[k];

			if (!b->track_event || b->track_event->type != BEGIN ||
			    b->track_event->track_uuid != a->track_event->track_uuid)
				continue;
			CHECK(b->timestamp >= r->packets[i + 1]->timestamp ||
			      r->packets[k + 1]->timestamp <= r->packets[i + 1]->timestamp);
		}
	}
}

void test_perfetto_subtracks(void)
{
	static struct reading r;
	struct sink_run run;
	uint64_t state = 3, uuids[3];
	unsigned slices = 0;

	sink_run_make(&run);
	run_event(&run, KIND_KERNEL, run_stream(&run, 0, 7), "one", 0, 10);
	run_event(&run, KIND_KERNEL, run_stream(&run, 0, 7), "two", 5, 20);
	run_event(&run, KIND_KERNEL, run_stream(&run, 0, 7), "three", 10, 12);
	for (unsigned i = 0; i < 50; i++) {
		double begin = 20 + i * 3, length = (double)(random_u64(&state) % 40);

		run_event(&run, KIND_RANGE, run_thread(&run, 5), "range", begin, begin + length);
	}
	if (!read_run(&run, false, &r))
		return;
	uuids[0] = event_at(&r, find(&r, BEGIN, "one", 0))->track_uuid;
	uuids[1] = event_at(&r, find(&r, BEGIN, "two", 0))->track_uuid;
	uuids[2] = event_at(&r, find(&r, BEGIN, "three", 0))->track_uuid;
	CHECK(uuids[0] != uuids[1] && uuids[0] == uuids[2]);
	CHECK_STR(track_of(&r, uuids[0])->name, track_of(&r, uuids[1])->name);
	CHECK_U64(track_of(&r, uuids[0])->parent_uuid, track_of(&r, uuids[1])->parent_uuid);
	check_nesting(&r, &slices);
	CHECK(slices >= 53);
	CHECK_U64(length_of(&r, "two", 0), 15000);
	forget(&r);
	sink_run_release(&run);
}

/* More that overlap than there are subtracks: counted. */
void test_perfetto_no_place(void)
{
	static struct reading r;
	struct sink_run run;

	sink_run_make(&run);
	for (unsigned i = 0; i < 64; i++)
		run_event(&run, KIND_KERNEL, run_stream(&run, 0, 7), "k", i, 1000 + i);
	CHECK_U64(SUBTRACKS_MOST, 64);
	if (read_run(&run, false, &r))
		CHECK_U64(trace_lost(run.trace, run.process, LOSS_NO_PLACE), 0);
	forget(&r);
	run.events[0].track = run_counter(&run, 0, "c"); /* a kernel on a counter */
	run.events[1].kind = KIND_ALLOC;
	run.events[1].track = run_thread(&run, 1);
	if (read_run(&run, false, &r))
		CHECK_U64(trace_lost(run.trace, 0, LOSS_NO_PLACE), 2);
	forget(&r);
	for (unsigned i = 0; i < 64; i++) /* sixty-four at once have a place */
		run.events[i].end_ns = run.events[63].end_ns;
	run.events[0] = run.events[2];
	run.events[1] = run.events[2];
	if (read_run(&run, false, &r))
		CHECK_U64(trace_lost(run.trace, 0, LOSS_NO_PLACE), 2);
	forget(&r);
	sink_run_release(&run);
}

/* ---- files of ranks ---- */

static void make_rank(struct sink_run *run, unsigned rank)
{
	struct process p = { .pid = 100, .rank = rank, .world_size = 4 };
	struct error err;

	sink_run_make(run);
	p.host = run_name(run, "node");
	run->process = trace_process(run->trace, &p, &err);
	CHECK(run->process != 0);
	fill_native(run);
}

/* Numbers of tracks, sequences and arrows of one file are not in the other; the overview, to which
 * all ranks add, is the same. */
static void check_apart(const struct reading *one, const struct reading *two)
{
	for (size_t i = 0; i < one->count; i++) {
		const Perfetto__TracePacket *a = one->packets[i];

		for (size_t k = 0; k < two->count; k++) {
			const Perfetto__TracePacket *b = two->packets[k];
			bool same_flow = a->track_event && b->track_event &&
					 a->track_event->n_flow_ids && b->track_event->n_flow_ids &&
					 a->track_event->flow_ids[0] == b->track_event->flow_ids[0];
			bool same_track =
				a->track_descriptor && b->track_descriptor &&
				a->track_descriptor->uuid &&
				a->track_descriptor->child_ordering !=
					PERFETTO__TRACK_DESCRIPTOR__CHILD_ORDERING__EXPLICIT &&
				a->track_descriptor->uuid == b->track_descriptor->uuid;

			if (a->trusted_packet_sequence_id == b->trusted_packet_sequence_id ||
			    same_flow || same_track) {
				CHECK(!"a number of both files");
				return;
			}
		}
	}
	CHECK(one->count > 20 && two->count > 20);
}

void test_perfetto_ranks(void)
{
	static struct reading one, two;
	struct sink_run runs[2];

	make_rank(&runs[0], 0);
	make_rank(&runs[1], 1);
	if (read_run(&runs[0], false, &one) && read_run(&runs[1], false, &two))
		check_apart(&one, &two);
	forget(&one);
	forget(&two);
	sink_run_release(&runs[0]);
	sink_run_release(&runs[1]);
}

/* ---- whatever the bytes ---- */

static bool is_utf8(const char *text)
{
	while (*text) {
		size_t n = utf8_sequence(text, strlen(text));

		if (!n)
			return false;
		text += n;
	}
	return true;
}

static void check_texts(const struct reading *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const Perfetto__InternedData *d = r->packets[i]->interned_data;
		const Perfetto__TrackDescriptor *t = r->packets[i]->track_descriptor;

		CHECK(!t || !t->name || is_utf8(t->name));
		CHECK(!t || !t->thread || !t->thread->thread_name ||
		      is_utf8(t->thread->thread_name));
		if (!d)
			continue;
		CHECK(!d->n_event_names || is_utf8(d->event_names[0]->name));
		CHECK(!d->n_event_categories || is_utf8(d->event_categories[0]->name));
		CHECK(!d->n_debug_annotation_names || is_utf8(d->debug_annotation_names[0]->name));
		if (d->n_debug_annotation_string_values)
			CHECK(is_utf8(valued(d->debug_annotation_string_values[0],
					     d->debug_annotation_string_values[0]->iid)));
	}
}

void test_perfetto_odd_names(void)
{
	static const char *const odd[] = { "\"",
					   "\\",
					   "\n\t\x01",
					   "\xff\xfe",
					   "\xe2\x82",
					   "</script>",
					   "\xf0\x9f\x98\x80",
					   "_v7000",
					   "cu_v7000",
					   "%s%n",
					   "" };
	static struct reading r;
	struct sink_run run;
	struct attr attrs[2];
	struct event *e;
	struct track k;

	sink_run_make(&run);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		attrs[0] = run_text(&run, odd[i], odd[i]);
		attrs[1] = run_text(&run, ".cat", odd[i]);
		e = run_event(&run, i % 2 ? KIND_KERNEL : KIND_RANGE,
			      i % 2 ? run_stream(&run, 0, i) : run_thread(&run, i), odd[i],
			      (double)i, (double)i + 1);
		e->schema = run_schema(&run, attrs, 2, NULL, 0);
		k = *trace_get_track(run.trace, e->track);
		trace_set_track_name(run.trace, e->track, run_name(&run, odd[i]));
		CHECK(k.process == run.process);
	}
	if (read_run(&run, true, &r)) {
		check_texts(&r);
		CHECK(find(&r, BEGIN, "\xf0\x9f\x98\x80", 0) < PACKETS);
		CHECK(find(&r, BEGIN, "\xef\xbf\xbd\xef\xbf\xbd", 0) < PACKETS);
		CHECK(find(&r, BEGIN, "_v7000", 0) < PACKETS);
	}
	forget(&r);
	sink_run_release(&run);
}

/* Kinds, subkinds and times that nobody makes, with shapes of everything: written or counted. */
void test_perfetto_any_event(void)
{
	static struct reading r;
	struct sink_run run;
	uint64_t state = 4, words[3] = { UINT64_MAX, 1, 0 };
	uint32_t tracks[6], schema;
	struct attr args[3];

	sink_run_make(&run);
	tracks[0] = run_thread(&run, UINT64_MAX);
	tracks[1] = run_stream(&run, NO_ID, 7);
	tracks[2] = run_stream(&run, 63, UINT32_MAX);
	tracks[3] = run_pool(&run, NO_ID);
	tracks[4] = run_counter(&run, NO_ID, "\x80");
	tracks[5] = run_thread(&run, 0);
	args[0] = run_number(&run, "a", 0);
	args[1] = run_number(&run, "external_id", 0);
	args[1].type = ATTR_TEXT;
	args[2] = run_number(&run, "b", 0);
	args[2].type = ATTR_JSON;
	schema = run_schema(&run, NULL, 0, args, 3);
	for (unsigned i = 0; i < 64; i++) {
		struct event *e = run_event(&run, i % 18, tracks[random_u64(&state) % 6],
					    i % 3 ? NULL : "x", i, i + (double)(i % 2));

		e->subkind = (uint8_t)random_u64(&state);
		e->flags = (uint8_t)random_u64(&state);
		e->bytes = random_u64(&state);
		e->number = i % 2 ? random_u64(&state) : 0;
		e->step = (uint32_t)random_u64(&state);
		e->schema = i % 5 ? 0 : schema;
		e->args = e->schema ? words : NULL;
	}
	run.events[0].begin_ns = 0;
	run.events[63].end_ns = UINT64_MAX;
	if (read_run(&run, true, &r)) {
		uint64_t placed = 0;

		for (size_t i = 0; i < r.count; i++)
			if (r.packets[i]->trace_attributes)
				placed = (uint64_t)r.packets[i]
						 ->trace_attributes->attribute[1]
						 ->long_value;
		CHECK_U64(placed + trace_lost(run.trace, 0, LOSS_NO_PLACE), 64);
	}
	forget(&r);
	sink_run_release(&run);
}

/* An event whose arguments are more than the output's room, and plans that are made again. */
void test_perfetto_large(void)
{
	enum { MANY = 9000 };
	struct sink_run run;
	struct buf file;
	struct attr *attrs = calloc(MANY, sizeof(*attrs));
	char key[16];

	sink_run_make(&run);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(key, sizeof(key), "key %u", i);
		attrs[i] = run_number(&run, key, UINT64_MAX - i);
	}
	for (unsigned i = 0; i < 40; i++) {
		struct event *e =
			run_event(&run, KIND_KERNEL, run_stream(&run, 0, 7), "k", i * 2, i * 2 + 1);

		attrs[0].bits = i;
		e->schema = run_schema(&run, attrs, i ? 2000 : MANY, NULL, 0);
	}
	if (sink_run_write(&run, &sink_perfetto, true, &file)) {
		struct bytes b = bytes_init(file.data, file.len);
		struct pb_field f;
		size_t largest = 0, slices = 0;

		while (pb_next(&b, &f)) {
			Perfetto__TracePacket *p = perfetto__trace_packet__unpack(
				NULL, bytes_left(&f.bytes), f.bytes.at);

			if (!CHECK(p != NULL))
				break;
			if (p->track_event && p->track_event->n_debug_annotations > largest)
				largest = p->track_event->n_debug_annotations;
			slices += p->track_event && p->track_event->n_debug_annotations >= 2000;
			perfetto__trace_packet__free_unpacked(p, NULL);
		}
		CHECK(largest >= MANY);
		CHECK_U64(slices, 40);
	}
	buf_release(&file);
	free(attrs);
	sink_run_release(&run);
}
