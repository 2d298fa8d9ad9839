/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/writer.h"

#include "schemas/base/buf.h"
#include "schemas/base/vec.h"
#include "schemas/log/column.h"
#include "schemas/log/encoder.h"
#include "schemas/log/tables.h"

#include <stdlib.h>

enum { POINTERS_FIRST = 16 }; /* first capacity of vec_reserve() */

struct log_writer {
	const struct trace *trace;
	struct log_mark *mark;
	size_t memory;                 /* bytes that encoders and pointers may still take */
	size_t encoder_bytes;          /* bytes of all encoders */
	struct log_encoder **encoders; /* by layout */
	size_t encoder_cap;
	struct log_encoder *
		*by_desc; /* by event descriptor, borrowed from encoders; NULL: not yet */
	size_t desc_cap;
	uint32_t descs_written, sample;
	uint64_t bytes, repeat_at; /* bytes appended so far; tables are repeated at `repeat_at` */
	uint64_t events[KIND_END]; /* number of events in blocks, by kind */
	uint8_t block[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
};

enum status log_writer_new(struct log_writer **out, const struct trace *trace, size_t ceiling,
			   struct error *err)
{
	struct log_writer *w;

	*out = NULL;
	TRY(vec_new(&w, 1, err));
	enum status st = log_mark_new(&w->mark, trace, ceiling / 2, err);
	if (st != ST_OK) {
		free(w);
		return st;
	}
	w->trace = trace;
	w->memory = ceiling - ceiling / 2;
	w->repeat_at = LOG_REPEAT_BYTES;
	w->sample = COLUMN_SAMPLE;
	*out = w;
	return ST_OK;
}

void log_writer_free(struct log_writer *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->encoder_cap; i++)
		free(w->encoders[i]);
	free(w->encoders);
	free(w->by_desc);
	log_mark_free(w->mark);
	free(w);
}

/* Makes the array hold pointer `id`; new pointers are NULL. */
static enum status pointers_reach(struct log_writer *w, struct log_encoder ***pointers, size_t *cap,
				  uint32_t id, struct error *err)
{
	size_t before = *cap, wider = id < 2 * before ? 2 * before : (size_t)id + POINTERS_FIRST;

	if (id < before)
		return ST_OK;
	if ((wider - before) * sizeof(**pointers) > w->memory)
		return fail(err, ST_CEILING, NOWHERE,
			    "the writer of a log exceeds its memory limit");
	TRY(vec_reserve(pointers, cap, (size_t)id + 1, err));
	w->memory -= (*cap - before) * sizeof(**pointers);
	return ST_OK;
}

static enum status put_tables(struct log_writer *w, struct buf *out, struct error *err)
{
	size_t before = out->len;

	if (w->bytes >= w->repeat_at) {
		log_mark_clear(w->mark);
		w->repeat_at = w->bytes + LOG_REPEAT_BYTES;
	}
	w->descs_written = trace_count(w->trace, TRACE_DESCS);
	TRY(log_put_tables(w->mark, out, err));
	w->bytes += out->len - before;
	return ST_OK;
}

static enum status put_block(struct log_writer *w, struct log_encoder *e, struct buf *out,
			     struct error *err)
{
	uint32_t rows = e->rows;

	/* A row that has only changed, such as a track's name, waits for the flush. */
	if (w->descs_written != trace_count(w->trace, TRACE_DESCS) || w->bytes >= w->repeat_at)
		TRY(put_tables(w, out, err));
	size_t len = log_finish(e, w->block);
	w->events[e->kind < KIND_END ? e->kind : KIND_UNKNOWN] += rows - e->rows;
	buf_put(out, w->block, len);
	w->bytes += len;
	return buf_status(out, err);
}

static enum status put_all_blocks(struct log_writer *w, struct buf *out, struct error *err)
{
	for (size_t i = 0; i < w->encoder_cap; i++)
		while (w->encoders[i] && w->encoders[i]->rows)
			TRY(put_block(w, w->encoders[i], out, err));
	return ST_OK;
}

static enum status encoder_new(struct log_writer *w, uint16_t layout, unsigned kind,
			       unsigned arg_count, struct buf *out, struct error *err)
{
	size_t size = log_encoder_size(arg_count);

	if (size > w->memory) {
		/* There are more encoders than fit in memory: end their blocks early and free
		 * them. */
		TRY(put_all_blocks(w, out, err));
		for (size_t i = 0; i < w->encoder_cap; i++) {
			free(w->encoders[i]);
			w->encoders[i] = NULL;
		}
		if (w->desc_cap)
			memset(w->by_desc, 0, w->desc_cap * sizeof(*w->by_desc));
		w->memory += w->encoder_bytes;
		w->encoder_bytes = 0;
	}
	if (size > w->memory)
		return fail(err, ST_CEILING, NOWHERE,
			    "the writer of a log exceeds its memory limit");
	w->encoders[layout] = malloc(size);
	if (!w->encoders[layout])
		return fail_memory(err);
	log_encode_init(w->encoders[layout], layout, kind, arg_count, w->sample);
	w->memory -= size;
	w->encoder_bytes += size;
	return ST_OK;
}

void log_writer_weigh_all(struct log_writer *w)
{
	w->sample = ENCODER_ROWS;
}

enum status log_writer_begin(struct log_writer *w, struct buf *out, struct error *err)
{
	uint8_t header[LOG_FILE_HEADER_BYTES];

	memset(w->events, 0, sizeof(w->events));
	log_put_file_header(header);
	buf_put(out, header, sizeof(header));
	w->bytes += sizeof(header);
	return buf_status(out, err);
}

/* The rare cases are separate functions, so that log_writer_put() saves no registers. */
static __attribute__((noinline)) enum status
put_full_blocks(struct log_writer *w, struct log_encoder *e, struct buf *out, struct error *err)
{
	while (log_is_full(e))
		TRY(put_block(w, e, out, err));
	return ST_OK;
}

static __attribute__((noinline)) enum status
put_unusual(struct log_writer *w, struct log_encoder *encoder, const struct event *e, uint32_t desc,
	    uint32_t order, struct buf *out, struct error *err)
{
	log_put_rare(encoder, e, order);
	log_put(encoder, e, desc);
	return put_full_blocks(w, encoder, out, err);
}

static __attribute__((noinline)) enum status put_first(struct log_writer *w, const struct event *e,
						       uint32_t desc, uint32_t order,
						       struct buf *out, struct error *err)
{
	/* The descriptor is new: find or create its encoder. */
	unsigned arg_count;
	uint16_t layout;

	if (!desc || desc > trace_count(w->trace, TRACE_DESCS))
		return fail(err, ST_FORMAT, NOWHERE, "an event has an unknown descriptor %u", desc);
	TRY(log_mark_layout(w->mark, desc, &layout, &arg_count, err));
	TRY(pointers_reach(w, &w->by_desc, &w->desc_cap, desc, err));
	TRY(pointers_reach(w, &w->encoders, &w->encoder_cap, layout, err));
	if (!w->encoders[layout])
		TRY(encoder_new(w, layout, trace_get_desc(w->trace, desc)->kind, arg_count, out,
				err));
	w->by_desc[desc] = w->encoders[layout];
	return log_writer_put(w, e, desc, order, out, err);
}

enum status log_writer_put(struct log_writer *w, const struct event *e, uint32_t desc,
			   uint32_t order, struct buf *out, struct error *err)
{
	if (__builtin_expect(desc >= w->desc_cap || !w->by_desc[desc], 0))
		return put_first(w, e, desc, order, out, err);
	struct log_encoder *encoder = w->by_desc[desc];
	if (__builtin_expect(!log_is_usual(encoder, e, order), 0))
		return put_unusual(w, encoder, e, desc, order, out, err);
	log_put(encoder, e, desc);
	if (__builtin_expect(log_is_full(encoder), 0))
		return put_full_blocks(w, encoder, out, err);
	return ST_OK;
}

enum status log_writer_flush(struct log_writer *w, struct buf *out, struct error *err)
{
	TRY(put_tables(w, out, err));
	return put_all_blocks(w, out, err);
}

void log_writer_repeat(struct log_writer *w)
{
	w->repeat_at = w->bytes;
}

enum status log_writer_tables(struct log_writer *w, struct buf *out, struct error *err)
{
	log_writer_repeat(w);
	return put_tables(w, out, err);
}

enum status log_writer_end(struct log_writer *w, struct buf *out, struct error *err)
{
	TRY(log_writer_flush(w, out, err));
	return log_put_end(w->mark, w->events, out, err);
}
