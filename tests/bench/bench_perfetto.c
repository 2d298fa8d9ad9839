/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices per second of the Perfetto writer on one core, lean and with twelve arguments, beside the
 * same slices written through protobuf-c; all of it to /dev/null.
 *
 * usage: bench_perfetto [MILLIONS]    kernels on eight streams, 300 names, an arrow each
 */
#include "tests/bench/bench.h"

#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "schemas/base/buf.h"
#include "schemas/base/pb.h"
#include "schemas/proto/perfetto.pb-c.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	BATCH = 8192,
	STREAMS = 8,
	NAMES = 300,
	CONST = 8, /* with correlation, device, context and stream: twelve */
	ARGS = 12,
	ROUNDS = 3,
	TABLES_CEILING = 64 << 20,
	PIECE_BYTES = 1 << 20,
};

struct bench {
	struct trace *trace;
	uint32_t tracks[STREAMS], names[NAMES], schema;
	struct event events[BATCH];
	uint64_t at_ns, correlation;
	size_t batches;
};

static void make_tables(struct bench *b)
{
	struct error err;
	struct process p = { .pid = 4000, .rank = 0, .world_size = 2 };
	struct attr attrs[CONST];
	struct arg_schema schema = { .consts = attrs, .const_count = CONST };
	char text[200];

	need(trace_new(&b->trace, TABLES_CEILING, &err) == ST_OK, err.text);
	for (size_t i = 0; i < STREAMS; i++) {
		struct track k = { .type = TRACK_STREAM,
				   .context = 1,
				   .id = 7 + i,
				   .process = trace_process(b->trace, &p, &err) };

		b->tracks[i] = trace_track(b->trace, &k, &err);
	}
	for (size_t i = 0; i < NAMES; i++) {
		int n = snprintf(text, sizeof(text),
				 "void at::native::vectorized_elementwise_kernel<4, "
				 "at::native::Functor%zu<float>, std::array<char*, 3>>(int)",
				 i);

		b->names[i] = trace_name(b->trace, text, (size_t)n, &err);
	}
	for (size_t i = 0; i < CONST; i++) {
		int n = snprintf(text, sizeof(text), "argument %zu", i);

		attrs[i] = (struct attr){ .key = trace_name(b->trace, text, (size_t)n, &err),
					  .type = ATTR_U64,
					  .bits = 128 + i * 1000 };
	}
	b->schema = trace_schema(b->trace, &schema, &err);
	need(b->schema != 0, err.text);
}

/* The next batch: kernels of 1 to 50 us, a gap of 1 us, stream by stream. */
static void next_batch(struct bench *b)
{
	for (size_t i = 0; i < BATCH; i++) {
		struct event *e = &b->events[i];
		uint64_t length_ns = 1000 + (b->correlation * 7919) % 49000;

		*e = (struct event){ .begin_ns = b->at_ns,
				     .end_ns = b->at_ns + length_ns,
				     .kind = KIND_KERNEL,
				     .track = b->tracks[i % STREAMS],
				     .name = b->names[(b->correlation * 31) % NAMES],
				     .schema = b->schema,
				     .correlation = ++b->correlation };
		b->at_ns += 51000 / STREAMS;
	}
}

static void begin(struct bench *b)
{
	b->at_ns = UINT64_C(1700000000000000000);
	b->correlation = 0;
}

static double run_ours(struct bench *b, bool all_args, uint64_t *bytes)
{
	struct budget budget = { .opening = TABLES_CEILING, .resident = 65536, .scratch = "/tmp" };
	struct sink_request request = { .trace = b->trace,
					.budget = &budget,
					.all_args = all_args };
	struct sink *sink;
	struct error err;
	double spent = 0;

	need(out_open(&request.out, "/dev/null", false, &err) == ST_OK, err.text);
	need(sink_open(&sink, &sink_perfetto, &request, &err) == ST_OK, err.text);
	struct batch batch = { .events = b->events, .count = BATCH };

	begin(b);
	for (size_t i = 0; i < b->batches; i++) {
		next_batch(b);
		double from = now_s(CLOCK_PROCESS_CPUTIME_ID);
		need(sink_put(sink, &batch, &err) == ST_OK, err.text);
		spent += now_s(CLOCK_PROCESS_CPUTIME_ID) - from;
	}
	need(sink_close(sink, &err) == ST_OK, err.text);
	sink_free(sink);
	*bytes = out_bytes(request.out);
	need(out_commit(request.out, &err) == ST_OK, err.text);
	out_free(request.out);
	return spent;
}

/* ---- the same through protobuf-c ---- */

struct reference {
	uint8_t *piece;
	size_t filled;
	uint64_t bytes;
	FILE *nowhere;
};

static void put_packet(struct reference *r, const Perfetto__TracePacket *p)
{
	size_t len = perfetto__trace_packet__get_packed_size(p);

	if (PIECE_BYTES - r->filled < len + 16) {
		fwrite(r->piece, 1, r->filled, r->nowhere);
		r->bytes += r->filled;
		r->filled = 0;
	}
	r->piece[r->filled++] = 1 << 3 | PB_BYTES;
	r->filled += put_varint(r->piece + r->filled, len);
	r->filled += perfetto__trace_packet__pack(p, r->piece + r->filled);
}

static void put_slice(struct reference *r, const struct event *e, size_t args)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation rows[ARGS], *list[ARGS];
	uint64_t category = 1, flow = e->correlation * UINT64_C(0x9e3779b97f4a7c15);

	packet.has_timestamp = packet.has_trusted_packet_sequence_id = true;
	packet.timestamp = e->begin_ns;
	packet.trusted_packet_sequence_id = 3;
	packet.has_sequence_flags = true;
	packet.sequence_flags = 2;
	packet.track_event = &event;
	event.has_type = event.has_track_uuid = event.has_name_iid = true;
	event.type = PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN;
	event.track_uuid = UINT64_C(0x3fff00000000) + e->track;
	event.name_iid = e->name;
	event.n_category_iids = event.n_flow_ids = 1;
	event.category_iids = &category;
	event.flow_ids = &flow;
	for (size_t i = 0; i < args; i++) {
		perfetto__debug_annotation__init(&rows[i]);
		rows[i].has_name_iid = rows[i].has_uint_value = true;
		rows[i].name_iid = 310 + i;
		rows[i].uint_value = i ? 128 + i * 1000 : e->correlation;
		list[i] = &rows[i];
	}
	event.n_debug_annotations = args;
	event.debug_annotations = list;
	put_packet(r, &packet);
	event = (Perfetto__TrackEvent)PERFETTO__TRACK_EVENT__INIT;
	event.has_type = event.has_track_uuid = true;
	event.type = PERFETTO__TRACK_EVENT__TYPE__SLICE_END;
	event.track_uuid = UINT64_C(0x3fff00000000) + e->track;
	packet.timestamp = e->end_ns;
	packet.has_sequence_flags = false;
	put_packet(r, &packet);
}

static double run_reference(struct bench *b, size_t args, uint64_t *bytes)
{
	struct reference r = { .piece = malloc(PIECE_BYTES), .nowhere = fopen("/dev/null", "wb") };
	double spent = 0;

	need(r.piece && r.nowhere, "no memory");
	begin(b);
	for (size_t i = 0; i < b->batches; i++) {
		next_batch(b);
		double from = now_s(CLOCK_PROCESS_CPUTIME_ID);
		for (size_t k = 0; k < BATCH; k++)
			put_slice(&r, &b->events[k], args);
		spent += now_s(CLOCK_PROCESS_CPUTIME_ID) - from;
	}
	*bytes = r.bytes + r.filled;
	fclose(r.nowhere);
	free(r.piece);
	return spent;
}

static void row(struct bench *b, const char *what, bool all_args, size_t args)
{
	double ours = 1e9, theirs = 1e9, slices = (double)(b->batches * BATCH);
	uint64_t our_bytes = 0, their_bytes = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		double s = run_ours(b, all_args, &our_bytes);

		ours = s < ours ? s : ours;
		s = run_reference(b, args, &their_bytes);
		theirs = s < theirs ? s : theirs;
	}
	printf("%-22s %7.2f M slices/s %6.1f ns %5.0f B   protobuf-c %6.2f M slices/s %5.0f B  "
	       "%5.1f x\n",
	       what, slices / ours / 1e6, ours / slices * 1e9, (double)our_bytes / slices,
	       slices / theirs / 1e6, (double)their_bytes / slices, theirs / ours);
}

int main(int argc, char **argv)
{
	static struct bench b;
	double millions = argc > 1 ? atof(argv[1]) : 2;

	b.batches = (size_t)(millions * 1e6 / BATCH) + 1;
	make_tables(&b);
	printf("== writing Perfetto, one core; ours has a row of what the GPU did besides\n");
	row(&b, "lean", false, 0);
	row(&b, "with 12 arguments", true, ARGS);
	trace_free(b.trace);
	return 0;
}
