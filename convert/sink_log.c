/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log, packed to be kept: what log_writer.h makes, each block deflated where that is smaller.
 */
#include "convert/out.h"
#include "convert/sink.h"
#include "schemas/buf.h"
#include "schemas/log.h"
#include "schemas/log_writer.h"

#include <stdlib.h>
#include <zlib.h>

enum {
	MEMORY_MAX = 96 << 20,  /* for encoders and tables */
	BUFFER_MAX = 256 << 20, /* all tables once, before the first block */
	DEFLATE_LEVEL = 9,
};

struct log_sink {
	struct sink sink;
	struct trace *trace;
	struct out *out;
	struct log_writer *writer;
	struct buf blocks; /* not yet packed and written */
	z_stream deflate;
	bool deflate_ready;
	uint64_t begin_ns, end_ns; /* of the event before */
	uint32_t order;            /* how many before had these times */
	uint8_t packed[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
};

static void log_free(struct sink *sink)
{
	struct log_sink *s = (struct log_sink *)sink;

	if (!s)
		return;
	if (s->deflate_ready)
		deflateEnd(&s->deflate);
	log_writer_free(s->writer);
	buf_release(&s->blocks);
	free(s);
}

/* The packed size of a payload in s->packed, behind room for its header; 0: not smaller. */
static uint32_t deflate_payload(struct log_sink *s, const uint8_t *payload, uint32_t size)
{
	z_stream *z = &s->deflate;

	if (deflateReset(z) != Z_OK)
		return 0;
	z->next_in = (Bytef *)(uintptr_t)payload;
	z->avail_in = size;
	z->next_out = s->packed + LOG_HEADER_BYTES;
	z->avail_out = size ? size - 1 : 0;
	if (!z->avail_out || deflate(z, Z_FINISH) != Z_STREAM_END)
		return 0;
	return (uint32_t)z->total_out;
}

static enum status put_block(struct log_sink *s, struct log_block *block, const uint8_t *bytes,
			     struct error *err)
{
	uint32_t packed = deflate_payload(s, bytes + LOG_HEADER_BYTES, block->size);

	if (!packed)
		return out_write(s->out, bytes, LOG_HEADER_BYTES + block->size, err);
	block->size = packed;
	block->flags |= LOG_DEFLATED;
	log_put_block_header(block, s->packed + LOG_HEADER_BYTES, s->packed);
	return out_write(s->out, s->packed, LOG_HEADER_BYTES + packed, err);
}

/* Pack and write what the writer has made: whole blocks. */
static enum status write_blocks(struct log_sink *s, struct error *err)
{
	const uint8_t *bytes = s->blocks.data;
	size_t at = 0;

	while (at < s->blocks.len) {
		struct log_block block;
		size_t skipped;
		uint32_t size;

		TRY(log_find_block(bytes + at, s->blocks.len - at, at, &block, &skipped, err));
		size = block.size;
		TRY(put_block(s, &block, bytes + at, err));
		at += LOG_HEADER_BYTES + size;
	}
	buf_clear(&s->blocks);
	return ST_OK;
}

static enum status log_begin(struct log_sink *s, struct error *err)
{
	if (deflateInit(&s->deflate, DEFLATE_LEVEL) != Z_OK)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to pack a log");
	s->deflate_ready = true;
	TRY(log_writer_new(&s->writer, s->trace, MEMORY_MAX, err));
	log_writer_weigh_all(s->writer);
	TRY(log_writer_begin(s->writer, &s->blocks, err));
	TRY(out_write(s->out, s->blocks.data, s->blocks.len, err));
	buf_clear(&s->blocks);
	return ST_OK;
}

static enum status log_open(struct sink **out, const struct sink_request *req, struct error *err)
{
	struct log_sink *s = calloc(1, sizeof(*s));
	enum status st;

	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to write a log");
	s->sink.type = &sink_log;
	s->trace = req->trace;
	s->out = req->out;
	buf_init(&s->blocks, BUFFER_MAX);
	st = log_begin(s, err);
	if (st != ST_OK) {
		log_free(&s->sink);
		return st;
	}
	*out = &s->sink;
	return ST_OK;
}

/* Blocks are of one layout each: which of two events of the same times came first is kept. */
static void count_order(struct log_sink *s, const struct event *e)
{
	bool same = e->begin_ns == s->begin_ns && e->end_ns == s->end_ns;

	s->order = same ? s->order + 1 : 0;
	s->begin_ns = e->begin_ns;
	s->end_ns = e->end_ns;
}

static enum status log_put_events(struct sink *sink, const struct event *events, size_t count,
				  struct error *err)
{
	struct log_sink *s = (struct log_sink *)sink;

	for (size_t i = 0; i < count; i++) {
		const struct event *e = &events[i];
		struct site site = {
			.track = e->track, .name = e->name, .shape = e->shape,
			.kind = e->kind, .subkind = e->subkind,
		};
		uint32_t id = trace_site(s->trace, &site, err);

		if (!id)
			return err ? err->status : ST_CEILING;
		count_order(s, e);
		TRY(log_writer_put(s->writer, e, id, s->order, &s->blocks, err));
		s->sink.written++;
	}
	return write_blocks(s, err);
}

static enum status log_finish_file(struct sink *sink, struct error *err)
{
	struct log_sink *s = (struct log_sink *)sink;

	TRY(log_writer_end(s->writer, &s->blocks, err));
	return write_blocks(s, err);
}

const struct sink_type sink_log = {
	.name = "log",
	.help = "Tacho log, packed to be kept",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.open = log_open,
	.put = log_put_events,
	.close = log_finish_file,
	.free = log_free,
};
