/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log, compressed for archiving: the output of schemas/log/writer.h, with each block deflated
 * if that makes it smaller.
 */
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "schemas/log/log.h"
#include "schemas/log/writer.h"

#include <zlib.h>

enum {
	MEMORY_MAX = 96 << 20, /* memory of encoders and tables */
	DEFLATE_LEVEL = 9,
};

struct log_sink { /* base.lines: blocks that are not written yet */
	struct sink base;
	struct log_writer *writer;
	z_stream deflate;
	bool deflate_ready;
	uint64_t begin_ns, end_ns; /* times of the last event */
	uint32_t order;            /* number of earlier events with the same times */
	uint8_t packed[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
};

/* Writes a block, deflated if that is smaller.  META is never deflated, because it is read
 * separately. */
static enum status put_block(struct log_sink *s, struct log_block *block, const uint8_t *bytes,
			     struct error *err)
{
	z_stream *z = &s->deflate;

	z->next_in = (Bytef *)(uintptr_t)(bytes + LOG_HEADER_BYTES);
	z->avail_in = block->size;
	z->next_out = s->packed + LOG_HEADER_BYTES;
	z->avail_out = block->size ? block->size - 1 : 0;
	if (block->kind == LOG_META || deflateReset(z) != Z_OK || !z->avail_out ||
	    deflate(z, Z_FINISH) != Z_STREAM_END)
		return out_write(s->base.out, bytes, LOG_HEADER_BYTES + block->size, err);
	block->size = (uint32_t)z->total_out;
	block->flags |= LOG_DEFLATED;
	log_put_block_header(block, s->packed + LOG_HEADER_BYTES, s->packed);
	return out_write(s->base.out, s->packed, LOG_HEADER_BYTES + block->size, err);
}

/* Packs and writes the complete blocks that the writer has made. */
static enum status write_blocks(struct log_sink *s, struct error *err)
{
	struct buf *blocks = &s->base.lines;
	struct log_block block;
	size_t skipped;

	for (size_t at = 0, size; at < blocks->len; at += LOG_HEADER_BYTES + size) {
		TRY(log_find_block(blocks->data + at, blocks->len - at, at, &block, &skipped, err));
		size = block.size;
		TRY(put_block(s, &block, blocks->data + at, err));
	}
	buf_clear(blocks);
	return ST_OK;
}

static enum status log_open(struct sink *sink, const struct sink_request *req, struct error *err)
{
	struct log_sink *s = (struct log_sink *)sink;

	s->deflate_ready = deflateInit(&s->deflate, DEFLATE_LEVEL) == Z_OK;
	if (!s->deflate_ready)
		return fail_memory(err);
	TRY(log_writer_new(&s->writer, sink->trace, MEMORY_MAX, err));
	log_writer_weigh_all(s->writer);
	TRY(log_writer_begin(s->writer, &sink->lines, err));
	return sink_flush(sink, 0, err);
}

static enum status log_put(struct sink *sink, const struct event *e, struct error *err)
{
	struct log_sink *s = (struct log_sink *)sink;
	struct event_desc desc = {
		.track = e->track,
		.name = e->name,
		.schema = e->schema,
		.kind = e->kind,
		.subkind = e->subkind,
	};
	uint32_t id = trace_desc(sink->trace, &desc, err);
	/* A block contains only one event layout, so the number keeps the order of events with
	 * equal times. */
	bool is_same = e->begin_ns == s->begin_ns && e->end_ns == s->end_ns;

	if (!id)
		return err ? err->status : ST_CEILING;
	s->order = is_same ? s->order + 1 : 0;
	s->begin_ns = e->begin_ns;
	s->end_ns = e->end_ns;
	sink->written++;
	TRY(log_writer_put(s->writer, e, id, s->order, &sink->lines, err));
	return write_blocks(s, err);
}

static enum status log_close(struct sink *sink, struct error *err)
{
	struct log_sink *s = (struct log_sink *)sink;

	TRY(log_writer_end(s->writer, &sink->lines, err));
	return write_blocks(s, err);
}

static void log_release(struct sink *sink)
{
	struct log_sink *s = (struct log_sink *)sink;

	if (s->deflate_ready)
		deflateEnd(&s->deflate);
	log_writer_free(s->writer);
}

const struct sink_type sink_log = {
	.name = "log",
	.help = "Tacho log, compressed for archiving",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.size = sizeof(struct log_sink),
	.open = log_open,
	.put_event = log_put,
	.close = log_close,
	.release = log_release,
};
