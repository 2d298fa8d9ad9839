/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event costs on its way from a log to a report, on one core: the codec alone beside memcpy
 * of the events it gives, then the reader of logs, then the stages above it.
 *
 * usage: bench_decode LOG...    every figure is the best of five
 */
#include "tests/bench/bench.h"

#include "convert/input/input.h"
#include "convert/stage/pump.h"
#include "schemas/log/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ROUNDS = 5, BATCH = 512, ARG = 128 * BATCH, TABLES_CEILING = 256 << 20 };

struct blocks { /* of events, inflated */
	struct log_block *items;
	uint8_t **payloads;
	size_t count, room;
	uint64_t rows, bytes; /* as in the file */
};

static struct event out[BATCH], copy[BATCH];
static uint64_t args[ARG];

static uint8_t *inflated(const struct log_block *block, const uint8_t *stored)
{
	uint8_t *raw = malloc(block->raw_size + 1);
	uLongf len = block->raw_size;

	need(raw, "no memory");
	if (!(block->flags & LOG_DEFLATED))
		memcpy(raw, stored, block->size);
	else
		need(uncompress(raw, &len, stored, block->size) == Z_OK,
		     "a block does not inflate");
	return raw;
}

static void keep(struct blocks *b, const struct log_block *block, uint8_t *raw)
{
	if (b->count == b->room) {
		b->room = b->room ? b->room * 2 : 1024;
		b->items = realloc(b->items, b->room * sizeof(*b->items));
		b->payloads = realloc(b->payloads, b->room * sizeof(*b->payloads));
		need(b->items && b->payloads, "no memory");
	}
	b->items[b->count] = *block;
	b->payloads[b->count++] = raw;
	b->rows += block->rows;
	b->bytes += LOG_HEADER_BYTES + block->size;
}

static void walk(struct blocks *b, struct log_translation *tables, const struct input *in)
{
	static uint8_t bytes[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
	uint64_t at = LOG_FILE_HEADER_BYTES;
	struct log_block block;
	struct error err;
	size_t got, skipped;

	for (;; at += LOG_HEADER_BYTES + block.size) {
		need(input_read_at(in, at, bytes, sizeof(bytes), &got, &err) == ST_OK, err.text);
		if (log_find_block(bytes, got, at, &block, &skipped, &err) != ST_OK)
			return;
		need(!skipped && got >= LOG_HEADER_BYTES + block.size, "the log is damaged");

		uint8_t *raw = inflated(&block, bytes + LOG_HEADER_BYTES);

		if (block.kind == LOG_EVENTS) {
			keep(b, &block, raw);
			continue;
		}
		need(log_take_table(tables, &block, raw, &err) == ST_OK, err.text);
		free(raw);
	}
}

static uint64_t decode(struct log_decoder *d, const struct log_block *block, const uint8_t *payload,
		       const struct log_translation *tables, bool copies)
{
	const struct log_desc *descs;
	const struct log_rows *rows;
	size_t desc_count;
	uint64_t events = 0;
	struct error err;

	descs = log_descs(tables, &desc_count);
	need(log_decode_init(d, block, payload, log_layout(tables, block->layout), descs,
			     desc_count, LOG_CHUNK_ROWS, &err) == ST_OK,
	     err.text);
	while ((rows = log_decode_rows(d))) {
		for (uint32_t i = 0; i < rows->count; i++)
			log_rows_event(rows, i, &out[i], args + (size_t)i * rows->arg_count);
		events += rows->count;
		if (copies)
			memcpy(copy, out, rows->count * sizeof(*out));
		__asm__ volatile("" : : "r"(copy), "r"(out) : "memory");
	}
	return events;
}

static double codec(const struct blocks *b, const struct log_translation *tables, bool copies)
{
	size_t room = 0, size;
	double best = 1e9, begin;
	struct log_decoder *d;
	uint64_t events;

	for (size_t i = 0; i < b->count; i++) {
		size = log_decoder_size(log_layout(tables, b->items[i].layout), &b->items[i],
					b->payloads[i], LOG_CHUNK_ROWS);
		room = size > room ? size : room;
	}
	d = malloc(room);
	need(d, "no memory");
	for (int round = 0; round < ROUNDS; round++) {
		begin = now_s(CLOCK_PROCESS_CPUTIME_ID);
		events = 0;
		for (size_t i = 0; i < b->count; i++)
			events += decode(d, &b->items[i], b->payloads[i], tables, copies);
		need(events == b->rows, "events were lost");
		best = now_s(CLOCK_PROCESS_CPUTIME_ID) - begin < best
			       ? now_s(CLOCK_PROCESS_CPUTIME_ID) - begin
			       : best;
	}
	free(d);
	return best / (double)b->rows * 1e9;
}

static double memory(uint64_t rows)
{
	double best = 1e9, begin;

	for (int round = 0; round < ROUNDS; round++) {
		begin = now_s(CLOCK_PROCESS_CPUTIME_ID);
		for (uint64_t i = 0; i < rows; i += BATCH) {
			memcpy(copy, out, sizeof(out));
			__asm__ volatile("" : : "r"(copy), "r"(out) : "memory");
		}
		best = now_s(CLOCK_PROCESS_CPUTIME_ID) - begin < best
			       ? now_s(CLOCK_PROCESS_CPUTIME_ID) - begin
			       : best;
	}
	return best / (double)rows * 1e9;
}

/* The reader and the stages that `needs` asks for; nobody looks at what comes. */
static double pipeline(const char *path, const struct name_rules *rules, unsigned needs)
{
	struct budget budget = { .opening = TABLES_CEILING,
				 .resident = 64 * 1024,
				 .scratch = "/tmp" };
	struct pipeline_request how = { .rules = rules, .budget = &budget, .needs = needs };
	double best = 1e9, begin;
	uint64_t events = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct pipeline p;
		struct trace *trace;
		struct input *in;
		struct batch batch;
		struct error err;

		begin = now_s(CLOCK_PROCESS_CPUTIME_ID);
		need(input_open(&in, path, "/tmp", &err) == ST_OK, err.text);
		need(trace_new(&trace, TABLES_CEILING, &err) == ST_OK, err.text);
		need(pipeline_open(&p, trace, &in, 1, &how, &err) == ST_OK, err.text);
		for (events = 0; source_next(p.top, &batch, &err) == ST_OK;)
			events += batch.count;
		pipeline_close(&p);
		trace_free(trace);
		input_close(in);
		best = now_s(CLOCK_PROCESS_CPUTIME_ID) - begin < best
			       ? now_s(CLOCK_PROCESS_CPUTIME_ID) - begin
			       : best;
	}
	return best / (double)events * 1e9;
}

static void bench(const char *path, const struct name_rules *rules)
{
	struct blocks b = { .count = 0 };
	struct log_translation *tables;
	struct trace *trace;
	struct input *in;
	struct error err;
	double plain, source, step, link;

	need(input_open(&in, path, "/tmp", &err) == ST_OK, err.text);
	need(input_random(in, &err) == ST_OK, err.text);
	need(trace_new(&trace, TABLES_CEILING, &err) == ST_OK, err.text);
	need(log_translation_new(&tables, trace, TABLES_CEILING, &err) == ST_OK, err.text);
	walk(&b, tables, in);
	need(b.rows, "the log has no events");
	plain = codec(&b, tables, false);
	printf("%s: %llu events of %.2f bytes\n", path, (unsigned long long)b.rows,
	       (double)b.bytes / (double)b.rows);
	printf("decode                          %6.1f ns an event\n", plain);
	printf("decode, and copied once         %6.1f\n", codec(&b, tables, true));
	printf("memcpy of the events            %6.1f\n", memory(b.rows));
	source = pipeline(path, rules, 0);
	step = pipeline(path, rules, NEED_STEP);
	link = pipeline(path, rules, NEED_LINK);
	printf("opened, read, in order          %6.1f\n", source);
	printf("and with its step and phase     %6.1f  + %.1f\n", step, step - source);
	printf("and with its launch             %6.1f  + %.1f\n", link, link - step);
	for (size_t i = 0; i < b.count; i++)
		free(b.payloads[i]);
	free(b.items);
	free(b.payloads);
	log_translation_free(tables);
	trace_free(trace);
	input_close(in);
}

int main(int argc, char **argv)
{
	struct name_rules *rules;
	struct error err;

	need(argc > 1, "usage: bench_decode LOG...");
	need(name_rules_new(&rules, NULL, 0, &err) == ST_OK, err.text);
	for (int i = 1; i < argc; i++)
		bench(argv[i], rules);
	name_rules_free(rules);
	return 0;
}
