/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/filter/filter.h"
#include "convert/input/input.h"
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/source/source.h"
#include "tests/unit/events.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "schemas/base/hash.h"
#include "schemas/log/log.h"
#include "schemas/log/writer.h"
#include "schemas/model/args.h"
#include "schemas/model/nvtx.h"
#include "schemas/model/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20, CEILING = 64 << 20 };

static const struct budget budget = { .opening = CEILING, .resident = 1 << 16, .scratch = "/tmp" };

/* Batch after batch of the source into a sink; at its end ST_END. */
static enum status push(struct source *s, struct sink *sink, struct error *err)
{
	struct batch batch;
	enum status st;

	while ((st = source_next(s, &batch, err)) == ST_OK)
		TRY(sink_put(sink, &batch, err));
	return st;
}

/* The run through the packing sink; its bytes. */
static bool pack(const struct log_run *run, struct buf *file)
{
	char path[] = "/tmp/tacho-test-XXXXXX";
	struct out *out = NULL;
	struct sink *sink = NULL;
	struct sink_request req = { .trace = run->trace, .budget = &budget };
	struct error err = { 0 };
	uint8_t bytes[4096];
	size_t got;
	FILE *f;
	int fd = mkstemp(path);
	bool good = CHECK(fd >= 0) && CHECK_OK(out_open(&out, path, false, &err), &err);

	req.out = out;
	good = good && CHECK_OK(sink_open(&sink, &sink_log, &req, &err), &err);
	for (size_t at = 0; good && at < run->count; at += 100) {
		struct batch batch = { .events = run->events + at,
				       .count = run->count - at < 100 ? run->count - at : 100 };

		good = CHECK_OK(sink_put(sink, &batch, &err), &err);
	}
	good = good && CHECK_OK(sink_close(sink, &err), &err) &&
	       CHECK_OK(out_commit(out, &err), &err);
	if (sink)
		sink_free(sink);
	out_free(out);
	f = fopen(path, "rb");
	while (f && (got = fread(bytes, 1, sizeof(bytes), f)) > 0)
		buf_put(file, bytes, got);
	if (f)
		fclose(f);
	close(fd);
	unlink(path);
	return good;
}

void test_sink_log_round_trip(void)
{
	struct log_run run;
	struct buf plain, packed;

	buf_init(&plain, FILE_MAX);
	buf_init(&packed, FILE_MAX);
	if (log_run_make(&run, 51, 30000, 5) && log_run_write(&run, 0, true, &plain) &&
	    pack(&run, &packed)) {
		CHECK_U64(log_run_compare(&run, packed.data, packed.len), run.count);
		CHECK(packed.len < plain.len);
	}
	log_run_release(&run);
	buf_release(&plain);
	buf_release(&packed);
}

/* Events of the same times in different layouts keep their order: a format may nest by it. */
void test_sink_log_keeps_ties(void)
{
	struct log_run run;
	struct buf packed;

	buf_init(&packed, FILE_MAX);
	if (log_run_make(&run, 52, 3000, 1)) {
		for (size_t i = 0; i < run.count; i++) {
			run.events[i].begin_ns = 1000 + i / 700;
			run.events[i].end_ns = 5000;
		}
		if (pack(&run, &packed))
			CHECK_U64(log_run_compare(&run, packed.data, packed.len), run.count);
	}
	log_run_release(&run);
	buf_release(&packed);
}

/* A packed block that does not inflate, or to more than it says, costs its rows. */
void test_source_log_bad_deflate(void)
{
	struct log_run run;
	struct buf file;
	struct trace *t;
	struct error err = { 0 };
	struct log_block block = { 0 };
	uint64_t events, lost = 0;
	size_t at = LOG_FILE_HEADER_BYTES, skipped;

	buf_init(&file, FILE_MAX);
	if (!log_run_make(&run, 53, 2000, 1) || !pack(&run, &file))
		return;
	while (at < file.len) {
		CHECK_OK(log_find_block(file.data + at, file.len - at, at, &block, &skipped, &err),
			 &err);
		if (block.kind == LOG_EVENTS && block.flags & LOG_DEFLATED) {
			lost += block.rows;
			if (lost % 2)
				block.raw_size--;
			else
				file.data[at + LOG_HEADER_BYTES + block.size / 2] ^= 0xff;
			log_put_block_header(&block, file.data + at + LOG_HEADER_BYTES,
					     file.data + at);
		}
		at += LOG_HEADER_BYTES + block.size;
	}
	CHECK(lost > 200);
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_U64(log_read(file.data, file.len, t, &events, &err), ST_END);
	CHECK(events + lost <= 2000 + lost / 4); /* a flipped byte may still be good deflate */
	CHECK(trace_lost(t, 0, LOSS_DAMAGED) > 0);
	trace_free(t);
	log_run_release(&run);
	buf_release(&file);
}

void test_source_log_bid(void)
{
	uint8_t head[LOG_FILE_HEADER_BYTES + 4] = { 0 };
	struct trace *t;
	struct error err = { 0 };
	uint64_t events;

	log_put_file_header(head);
	CHECK_U64((uint64_t)source_log.bid(head, sizeof(head)), 100);
	CHECK_U64((uint64_t)source_log.bid((const uint8_t *)"{\"traceEvents\": []}", 19), 0);
	CHECK_U64((uint64_t)source_log.bid(head, 3), 0);
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_U64(log_read(head, LOG_FILE_HEADER_BYTES, t, &events, &err), ST_END);
	CHECK_U64(events, 0);
	head[9] ^= 1;
	CHECK_U64(log_read(head, sizeof(head), t, &events, &err), ST_FORMAT);
	CHECK_STR(err.text, "file header is damaged");
	trace_free(t);
}

/* Work of a GPU outside of the times asked for is left out by the block, calls are not. */
void test_source_log_wanted(void)
{
	struct filter wanted = { .from_ns = UINT64_C(1700000000000000000) + 3000000,
				 .to_ns = UINT64_C(1700000000000000000) + 6000000 };
	struct log_run run;
	struct buf file;
	struct trace *t;
	struct source *s = NULL;
	struct input *in;
	struct batch batch;
	struct error err = { 0 };
	uint64_t given = 0, inside = 0, hosts = 0, hosts_given = 0, inside_given = 0;

	buf_init(&file, FILE_MAX);
	if (!log_run_make(&run, 54, 6000, 1) || !log_run_write(&run, 100, true, &file))
		return;
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	in = log_input(file.data, file.len);
	CHECK_OK(source_log.open(&s, in, t, &budget, &wanted, &err), &err);
	for (size_t i = 0; i < run.count; i++) {
		const struct event *e = &run.events[i];

		hosts += !event_is_gpu_work(e);
		inside += e->begin_ns < wanted.to_ns && e->end_ns > wanted.from_ns;
	}
	while (s && source_log.next(s, &batch, &err) == ST_OK) {
		for (size_t i = 0; i < batch.count; i++) {
			const struct event *e = &batch.events[i];

			hosts_given += !event_is_gpu_work(e);
			inside_given += e->begin_ns < wanted.to_ns && e->end_ns > wanted.from_ns;
		}
		given += batch.count;
	}
	CHECK_U64(hosts_given, hosts);
	CHECK_U64(inside_given, inside);
	CHECK(given < run.count);
	CHECK_U64(given + trace_lost(t, 0, LOSS_CUT_OUT), run.count);
	if (s)
		source_log.close(s);
	input_close(in);
	trace_free(t);
	log_run_release(&run);
	buf_release(&file);
}

/* A block whose rows come before what its header promised: moved up to the order, and counted. */
void test_source_log_broken_promise(void)
{
	struct log_run run;
	struct buf file;
	struct trace *t;
	struct error err = { 0 };
	struct log_block block = { 0 };
	uint64_t events;
	size_t at = LOG_FILE_HEADER_BYTES, skipped;

	buf_init(&file, FILE_MAX);
	if (!log_run_make(&run, 55, 900, 1) || !log_run_write(&run, 300, true, &file))
		return;
	while (at < file.len) {
		log_find_block(file.data + at, file.len - at, at, &block, &skipped, NULL);
		if (block.kind == LOG_EVENTS) {
			block.first_begin_ns = block.last_begin_ns;
			log_put_block_header(&block, file.data + at + LOG_HEADER_BYTES,
					     file.data + at);
		}
		at += LOG_HEADER_BYTES + block.size;
	}
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_U64(log_read(file.data, file.len, t, &events, &err), ST_END);
	CHECK_U64(events, 900);
	CHECK(trace_lost(t, 0, LOSS_ORDER) > 0);
	trace_free(t);
	log_run_release(&run);
	buf_release(&file);
}

/* More blocks at one time than cursors: what is before them, then the reason. */
void test_source_log_overlap(void)
{
	struct log_run run;
	struct buf file;
	struct trace *t;
	struct error err = { 0 };
	struct log_block block = { 0 };
	uint64_t events, many = 0;
	size_t at = LOG_FILE_HEADER_BYTES, skipped;

	buf_init(&file, FILE_MAX);
	if (!log_run_make(&run, 56, 900, 1) || !log_run_write(&run, 0, false, &file))
		return;
	while (block.kind != LOG_EVENTS) {
		at += block.kind ? LOG_HEADER_BYTES + block.size : 0;
		log_find_block(file.data + at, file.len - at, at, &block, &skipped, NULL);
	}
	for (; many < 2000; many++) { /* this block again and again */
		uint8_t *copy = buf_reserve(&file, LOG_HEADER_BYTES + block.size);

		memcpy(copy, file.data + at, LOG_HEADER_BYTES + block.size);
		file.len += LOG_HEADER_BYTES + block.size;
	}
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_U64(log_read(file.data, file.len, t, &events, &err), ST_CEILING);
	CHECK_STR(err.text, "more than 1024 blocks of the log overlap in time");
	trace_free(t);
	log_run_release(&run);
	buf_release(&file);
}

/* A real recording of another profiler, with all of its arguments: a quarter of its .json.gz. */
void test_sink_log_packs_kineto(void)
{
	char path[512], packed[] = "/tmp/tacho-test-XXXXXX";
	const char *traces = unit_traces();
	struct trace *t = NULL;
	struct input *in = NULL;
	struct source *s = NULL;
	struct sink *sink = NULL;
	struct out *out = NULL;
	struct sink_request req = { .budget = &budget };
	struct error err = { 0 };
	int fd;

	if (!traces) {
		SKIP("no sample traces");
		return;
	}
	snprintf(path, sizeof(path), "%s/kineto/a100_ddp_rank0of2_nccl_args.json.gz", traces);
	fd = mkstemp(packed);
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_OK(input_open(&in, path, "/tmp", &err), &err);
	CHECK_OK(source_open(&s, in, t, &budget, NULL, &err), &err);
	CHECK_OK(out_open(&out, packed, false, &err), &err);
	req.trace = t;
	req.out = out;
	CHECK_OK(sink_open(&sink, &sink_log, &req, &err), &err);
	if (s && sink) {
		CHECK_U64(push(s, sink, &err), ST_END);
		CHECK_OK(sink_close(sink, &err), &err);
		CHECK(out_bytes(out) < 749757 / 4);
		sink_free(sink);
	}
	out_free(out);
	source_close(s);
	input_close(in);
	trace_free(t);
	close(fd);
	unlink(packed);
}

/* A number that all members of all events decide, in their order; their vary words too. */
static uint64_t read_sum(const struct buf *file, unsigned threads, uint64_t *count)
{
	struct budget with = budget;
	struct trace *t = NULL;
	struct source *s = NULL;
	struct input *in = log_input(file->data, file->len);
	struct batch batch;
	struct error err = { 0 };
	uint64_t sum = 0;

	with.threads = threads;
	*count = 0;
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_OK(source_log.open(&s, in, t, &with, NULL, &err), &err);
	while (s && source_log.next(s, &batch, &err) == ST_OK) {
		for (size_t i = 0; i < batch.count; i++) {
			struct event e = batch.events[i];
			unsigned args = trace_get_schema(t, e.schema)->arg_count;

			for (unsigned k = 0; k < args; k++)
				sum = hash_word(sum, e.args[k]);
			e.args = NULL;
			sum = hash_word(sum, hash_text((const char *)&e, sizeof(e)));
		}
		*count += batch.count;
	}
	if (s)
		source_log.close(s);
	trace_free(t);
	input_close(in);
	return sum;
}

/* Blocks that are opened ahead on other threads give the same; so do those left behind at close. */
void test_source_log_threads(void)
{
	static const unsigned threads[] = { 1, 2, 7 };
	struct log_run run;
	struct buf file;
	uint64_t count, again, sum;

	buf_init(&file, FILE_MAX);
	if (!log_run_make(&run, 55, 20000, 2) || !log_run_write(&run, 700, true, &file))
		return;
	sum = read_sum(&file, 0, &count);
	CHECK_U64(count, run.count);
	for (size_t i = 0; i < 3; i++) {
		CHECK_U64(read_sum(&file, threads[i], &again), sum);
		CHECK_U64(again, count);
	}
	log_run_release(&run);
	buf_release(&file);
}

/* Rows that are far from their place: the last begins first. */
void test_source_log_reversed(void)
{
	struct log_run run;
	struct buf file;
	struct trace *t;
	struct error err = { 0 };
	uint64_t events;

	buf_init(&file, FILE_MAX);
	if (!log_run_make(&run, 56, 9000, 1))
		return;
	for (size_t i = 0, k = run.count - 1; i < k; i++, k--) {
		struct event turn = run.events[i];

		run.events[i] = run.events[k];
		run.events[k] = turn;
	}
	CHECK(log_run_write(&run, 0, true, &file));
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	CHECK_U64(log_read(file.data, file.len, t, &events, &err), ST_END);
	CHECK_U64(events, run.count);
	CHECK_U64(trace_lost(t, 0, LOSS_ORDER), 0);
	trace_free(t);
	log_run_release(&run);
	buf_release(&file);
}

/* ---- payloads of NVTX ---- */

static void put_entry(struct buf *row, uint64_t type, uint64_t offset, const char *name)
{
	buf_put_varint(row, type);
	buf_put_varint(row, 0);
	buf_put_varint(row, 0);
	buf_put_varint(row, offset);
	buf_put_varint(row, strlen(name));
	buf_put_text(row, name);
}

/* A log of `count` marks, each with a number of 64 bits, its number, and a word of an enum. */
static void write_payloads(struct buf *file, uint64_t count)
{
	enum { ENUM = 1 << 24, SCHEMA };
	struct trace *t;
	struct log_writer *w;
	struct error err = { 0 };
	struct attr args[4], schemas = { .type = ATTR_TEXT };
	struct arg_schema schema = { &schemas, args, 1, 4 };
	struct track track = { .device = NO_ID, .context = NO_ID, .type = TRACK_THREAD };
	struct event e = { .kind = KIND_MARK };
	struct buf rows, row;

	buf_init(&rows, 4096);
	buf_init(&row, 4096);
	for (unsigned id = ENUM; id <= SCHEMA; id++) {
		buf_clear(&row);
		buf_put_varint(&row, id);
		buf_put_byte(&row, id == ENUM ? NVTX_FORM_ENUM : NVTX_FORM_STATIC);
		buf_put_u16(&row, id == ENUM ? 4 : 16);
		buf_put_u16(&row, id == ENUM ? 4 : 8);
		put_entry(&row, id == ENUM ? 0 : NVTX_TYPE_UINT64, 0, id == ENUM ? "Sum" : "n");
		put_entry(&row, id == ENUM ? 1 : ENUM, id == ENUM ? 0 : 8,
			  id == ENUM ? "Max" : "op");
		buf_put_varint(&rows, row.len);
		buf_put(&rows, row.data, row.len);
	}
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	schemas.key = trace_name(t, NVTX_SCHEMAS_KEY, 8, &err);
	schemas.bits = trace_name(t, buf_text(&rows), rows.len, &err);
	for (unsigned i = 0; i < 4; i++)
		args[i] = (struct attr){ .key = trace_name(t, NVTX_PAYLOAD_KEY, 8, &err) };
	track.process = trace_process(t, &(struct process){ .pid = 7 }, &err);
	struct event_desc desc = { .track = trace_track(t, &track, &err),
				   .name = trace_name(t, "mark", 4, &err),
				   .schema = trace_schema(t, &schema, &err),
				   .kind = KIND_MARK };
	CHECK_OK(log_writer_new(&w, t, CEILING, &err), &err);
	log_writer_begin(w, file, &err);
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t words[4] = { SCHEMA, 16, i, i % 2 };

		e.begin_ns = e.end_ns = 1000 + i;
		e.args = words;
		e.track = desc.track;
		CHECK_OK(log_writer_put(w, &e, trace_desc(t, &desc, &err), 0, file, &err), &err);
	}
	CHECK_OK(log_writer_end(w, file, &err), &err);
	log_writer_free(w);
	trace_free(t);
	buf_release(&rows);
	buf_release(&row);
}

/* Fields become arguments, and all tables are complete before the first event. */
void test_source_log_payloads(void)
{
	enum { COUNT = 300 };
	struct trace *t;
	struct source *s = NULL;
	struct batch batch;
	struct error err = { 0 };
	uint64_t seen = 0, number;
	struct input *in;
	struct buf file;

	buf_init(&file, FILE_MAX);
	write_payloads(&file, COUNT);
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	in = log_input(file.data, file.len);
	CHECK_OK(source_log.open(&s, in, t, &budget, NULL, &err), &err);
	uint32_t names = trace_count(t, TRACE_NAMES), descs = trace_count(t, TRACE_DESCS);
	uint32_t n = trace_find_name(t, "n", 1), max = trace_find_name(t, "Max", 3);

	while (s && source_log.next(s, &batch, &err) == ST_OK)
		for (size_t i = 0; i < batch.count; i++, seen++) {
			const struct event *e = &batch.events[i];
			const struct attr *op = trace_find_attr(t, e->schema, "op");

			CHECK(event_arg(t, e, n, &number) && number == seen);
			CHECK(op && op->type == ATTR_TEXT && (op->bits == max) == (seen % 2 == 1));
			CHECK_U64(trace_get_schema(t, e->schema)->const_count, 1);
			CHECK_U64(trace_get_schema(t, e->schema)->arg_count, 1);
		}
	CHECK_U64(seen, COUNT);
	CHECK_U64(trace_count(t, TRACE_NAMES), names);
	CHECK_U64(trace_count(t, TRACE_DESCS), descs);
	if (s)
		source_log.close(s);
	input_close(in);
	trace_free(t);
	buf_release(&file);
}
