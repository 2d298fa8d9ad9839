/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log, packed to be kept: what schemas/log/writer.h makes, each block deflated where that is
 * smaller.
 */
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/sink/sink_list.h"
#include "schemas/base/buf.h"
#include "schemas/log/log.h"
#include "schemas/log/writer.h"

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
	uint64_t begin_ns, end_ns; /* of the last event */
	uint32_t order;            /* how many before it had these times */
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

/* Writes a block, deflated where that is smaller. */
static enum status put_block(struct log_sink *s, struct log_block *block, const uint8_t *bytes,
			     struct error *err)
{
	z_stream *z = &s->deflate;

	z->next_in = (Bytef *)(uintptr_t)(bytes + LOG_HEADER_BYTES);
	z->avail_in = block->size;
	z->next_out = s->packed + LOG_HEADER_BYTES;
	z->avail_out = block->size ? block->size - 1 : 0;
	if (deflateReset(z) != Z_OK || !z->avail_out || deflate(z, Z_FINISH) != Z_STREAM_END)
		return out_write(s->out, bytes, LOG_HEADER_BYTES + block->size, err);
	block->size = (uint32_t)z->total_out;
	block->flags |= LOG_DEFLATED;
	log_put_block_header(block, s->packed + LOG_HEADER_BYTES, s->packed);
	return out_write(s->out, s->packed, LOG_HEADER_BYTES + block->size, err);
}

/* Packs and writes what the writer has made, which is whole blocks. */
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

static enum status log_open(struct sink **out, const struct sink_request *req, struct error *err)
{
	struct log_sink *s = calloc(1, sizeof(*s));
	enum status st;

	*out = NULL;
	if (!s)
		return fail_memory(err);
	s->sink.type = &sink_log;
	s->trace = req->trace;
	s->out = req->out;
	buf_init(&s->blocks, BUFFER_MAX);
	s->deflate_ready = deflateInit(&s->deflate, DEFLATE_LEVEL) == Z_OK;
	st = s->deflate_ready ? log_writer_new(&s->writer, s->trace, MEMORY_MAX, err)
			      : fail_memory(err);
	if (st == ST_OK) {
		log_writer_weigh_all(s->writer);
		st = log_writer_begin(s->writer, &s->blocks, err);
	}
	if (st == ST_OK)
		st = out_write(s->out, s->blocks.data, s->blocks.len, err);
	buf_clear(&s->blocks);
	if (st != ST_OK) {
		log_free(&s->sink);
		return st;
	}
	*out = &s->sink;
	return ST_OK;
}

static enum status log_put_events(struct sink *sink, const struct batch *batch, struct error *err)
{
	struct log_sink *s = (struct log_sink *)sink;

	for (size_t i = 0; i < batch->count; i++) {
		const struct event *e = &batch->events[i];
		struct event_desc desc = {
			.track = e->track,
			.name = e->name,
			.schema = e->schema,
			.kind = e->kind,
			.subkind = e->subkind,
		};
		uint32_t id = trace_desc(s->trace, &desc, err);

		if (!id)
			return err ? err->status : ST_CEILING;
		/* Blocks hold one layout each, so the order of events with equal times is kept. */
		bool is_same = e->begin_ns == s->begin_ns && e->end_ns == s->end_ns;

		s->order = is_same ? s->order + 1 : 0;
		s->begin_ns = e->begin_ns;
		s->end_ns = e->end_ns;
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
