/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_writer.h"

#include "schemas/buf.h"
#include "schemas/log_column.h"
#include "schemas/log_encoder.h"
#include "schemas/log_tables.h"

#include <stdlib.h>

struct log_writer {
	const struct trace *trace;
	struct log_mark *mark;
	size_t memory;                 /* bytes that encoders and pointers may still take */
	size_t encoder_bytes;          /* that encoders have */
	struct log_encoder **encoders; /* by layout */
	uint32_t encoder_room;
	struct log_encoder **by_site;  /* borrowed from encoders; NULL: not asked yet */
	uint32_t site_room;
	uint32_t sites_written, sample;
	uint64_t bytes, repeat_at;     /* appended so far; where the tables come again */
	uint64_t events[KIND_END];     /* in blocks */
	uint8_t block[LOG_HEADER_BYTES + LOG_BLOCK_BYTES];
};

enum status log_writer_new(struct log_writer **out, const struct trace *trace, size_t ceiling,
			   struct error *err)
{
	struct log_writer *w = calloc(1, sizeof(*w));
	enum status st;

	*out = NULL;
	if (!w)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of a log");
	st = log_mark_new(&w->mark, trace, ceiling / 2, err);
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
	for (uint32_t i = 0; i < w->encoder_room; i++)
		free(w->encoders[i]);
	free(w->encoders);
	free(w->by_site);
	log_mark_free(w->mark);
	free(w);
}

/* Room for pointer `id`; new ones are NULL. */
static enum status pointers_grow(struct log_writer *w, struct log_encoder ***pointers,
				 uint32_t *room, uint32_t id, struct error *err)
{
	uint64_t bigger = *room ? *room : 64;
	struct log_encoder **again;
	size_t more;

	if (id < *room)
		return ST_OK;
	while (bigger <= id)
		bigger *= 2;
	more = (bigger - *room) * sizeof(**pointers);
	if (bigger > UINT32_MAX || more > w->memory)
		return fail(err, ST_CEILING, NOWHERE,
			    "the writer of a log needs more memory than its ceiling");
	again = realloc(*pointers, bigger * sizeof(**pointers));
	if (!again)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of a log");
	memset(again + *room, 0, more);
	*pointers = again;
	*room = (uint32_t)bigger;
	w->memory -= more;
	return ST_OK;
}

static enum status put_tables(struct log_writer *w, struct buf *out, struct error *err)
{
	size_t before = out->len;

	if (w->bytes >= w->repeat_at) {
		log_mark_clear(w->mark);
		w->repeat_at = w->bytes + LOG_REPEAT_BYTES;
	}
	w->sites_written = trace_count(w->trace, TRACE_SITES);
	TRY(log_put_tables(w->mark, out, err));
	w->bytes += out->len - before;
	return ST_OK;
}

static enum status put_block(struct log_writer *w, struct log_encoder *e, struct buf *out,
			     struct error *err)
{
	uint32_t rows = e->rows;
	size_t len;

	/* What is only changed, a track's name, waits for the flush. */
	if (w->sites_written != trace_count(w->trace, TRACE_SITES) || w->bytes >= w->repeat_at)
		TRY(put_tables(w, out, err));
	len = log_finish(e, w->block);
	w->events[e->kind < KIND_END ? e->kind : KIND_UNKNOWN] += rows - e->rows;
	buf_put(out, w->block, len);
	w->bytes += len;
	return buf_status(out, err);
}

static enum status put_all_blocks(struct log_writer *w, struct buf *out, struct error *err)
{
	for (uint32_t i = 0; i < w->encoder_room; i++)
		while (w->encoders[i] && w->encoders[i]->rows)
			TRY(put_block(w, w->encoders[i], out, err));
	return ST_OK;
}

/* More layouts than memory: their blocks end early, and who comes next has room. */
static enum status release_encoders(struct log_writer *w, struct buf *out, struct error *err)
{
	TRY(put_all_blocks(w, out, err));
	for (uint32_t i = 0; i < w->encoder_room; i++) {
		free(w->encoders[i]);
		w->encoders[i] = NULL;
	}
	if (w->site_room)
		memset(w->by_site, 0, w->site_room * sizeof(*w->by_site));
	w->memory += w->encoder_bytes;
	w->encoder_bytes = 0;
	return ST_OK;
}

static enum status encoder_new(struct log_writer *w, uint16_t layout, unsigned kind,
			       unsigned vary_count, struct buf *out, struct error *err)
{
	size_t size = log_encoder_size(vary_count);

	if (size > w->memory)
		TRY(release_encoders(w, out, err));
	if (size > w->memory)
		return fail(err, ST_CEILING, NOWHERE,
			    "the writer of a log needs more memory than its ceiling");
	w->encoders[layout] = malloc(size);
	if (!w->encoders[layout])
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the writer of a log");
	log_encode_init(w->encoders[layout], layout, kind, vary_count, w->sample);
	w->memory -= size;
	w->encoder_bytes += size;
	return ST_OK;
}

/* The encoder of a site that comes for the first time. */
static enum status site_begin(struct log_writer *w, uint32_t site, struct buf *out,
			      struct error *err)
{
	unsigned vary_count;
	uint16_t layout;

	if (!site || site > trace_count(w->trace, TRACE_SITES))
		return fail(err, ST_FORMAT, NOWHERE, "an event of site %u, which is none", site);
	TRY(log_mark_layout(w->mark, site, &layout, &vary_count, err));
	TRY(pointers_grow(w, &w->by_site, &w->site_room, site, err));
	TRY(pointers_grow(w, &w->encoders, &w->encoder_room, layout, err));
	if (!w->encoders[layout])
		TRY(encoder_new(w, layout, trace_get_site(w->trace, site)->kind, vary_count, out,
				err));
	w->by_site[site] = w->encoders[layout];
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

/* What is rare stands apart, so that log_writer_put() has nothing to save. */
static __attribute__((noinline)) enum status put_full_blocks(struct log_writer *w,
							     struct log_encoder *e,
							     struct buf *out, struct error *err)
{
	while (log_is_full(e))
		TRY(put_block(w, e, out, err));
	return ST_OK;
}

static __attribute__((noinline)) enum status put_unusual(struct log_writer *w,
							 struct log_encoder *encoder,
							 const struct event *e, uint32_t site,
							 uint32_t order, struct buf *out,
							 struct error *err)
{
	log_put_rare(encoder, e, order);
	log_put(encoder, e, site);
	return put_full_blocks(w, encoder, out, err);
}

static __attribute__((noinline)) enum status put_first(struct log_writer *w,
						       const struct event *e, uint32_t site,
						       uint32_t order, struct buf *out,
						       struct error *err)
{
	TRY(site_begin(w, site, out, err));
	return log_writer_put(w, e, site, order, out, err);
}

enum status log_writer_put(struct log_writer *w, const struct event *e, uint32_t site,
			   uint32_t order, struct buf *out, struct error *err)
{
	struct log_encoder *encoder;

	if (__builtin_expect(site >= w->site_room || !w->by_site[site], 0))
		return put_first(w, e, site, order, out, err);
	encoder = w->by_site[site];
	if (__builtin_expect(!log_is_usual(encoder, e, order), 0))
		return put_unusual(w, encoder, e, site, order, out, err);
	log_put(encoder, e, site);
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

uint64_t log_writer_events(const struct log_writer *w)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < KIND_END; i++)
		total += w->events[i];
	for (uint32_t i = 0; i < w->encoder_room; i++)
		total += w->encoders[i] ? w->encoders[i]->rows : 0;
	return total;
}

struct log_places log_writer_places(const struct log_writer *w)
{
	return (struct log_places){ w->by_site, w->site_room };
}
