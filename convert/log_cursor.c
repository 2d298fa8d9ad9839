/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/log_cursor.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { CHUNK_EVENTS = 128 };

struct log_cursor {
	struct log_cursor_head head;
	struct event *events; /* those of a chunk, or of a whole block */
	uint64_t *vary;
	struct log_decoder *decoder;
	uint32_t *order; /* of the events of a whole block */
	size_t event_room, vary_room, decoder_room, order_room; /* in bytes */
	bool is_whole; /* the chunk is all that the block has */
	uint8_t payload[LOG_BLOCK_BYTES];
};

enum status log_cursor_new(struct log_cursor **out, struct error *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	return ST_OK;
}

void log_cursor_free(struct log_cursor *c)
{
	if (!c)
		return;
	free(c->events);
	free(c->vary);
	free(c->decoder);
	free(c->order);
	free(c);
}

static enum status inflate_block(struct log_cursor *c, const struct log_block *block,
				 const uint8_t *stored, struct error *err)
{
	uLongf len = sizeof(c->payload);
	int rc = uncompress(c->payload, &len, stored, block->size);

	if (rc == Z_MEM_ERROR)
		return fail(err, ST_MEMORY, block->offset, "no memory to inflate a block");
	if (rc != Z_OK || len != block->raw_size)
		return fail(err, ST_FORMAT, block->offset, "packed block does not inflate to the "
			    "%u bytes that it says", block->raw_size);
	return ST_OK;
}

enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint8_t room[LOG_BLOCK_BYTES],
			    const uint8_t **payload, struct error *err)
{
	bool packed = block->flags & LOG_DEFLATED;
	uint8_t *stored = packed ? room : c->payload;
	size_t got;

	*payload = c->payload;
	TRY(input_read_at(in, block->offset + LOG_HEADER_BYTES, stored, block->size, &got, err));
	if (got < block->size)
		return fail(err, ST_CUT, block->offset, "record block is cut off: %zu of %u bytes",
			    LOG_HEADER_BYTES + got, LOG_HEADER_BYTES + block->size);
	TRY(log_check(block, stored, err));
	return packed ? inflate_block(c, block, stored, err) : ST_OK;
}

/* At least `bytes` of room at *p; what was there is gone. */
static enum status room_for(void **p, size_t *room, size_t bytes, struct error *err)
{
	if (bytes <= *room)
		return ST_OK;
	free(*p);
	*room = 0;
	*p = malloc(bytes);
	if (!*p)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	*room = bytes;
	return ST_OK;
}

/* The order of event.h; then that of the column `order`, then that of the rows. */
static bool row_before(const struct event *a, const struct event *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns;
	return a->step <= b->step;
}

/* Rows of a run that ends where the order breaks, from `at`. */
static size_t run_end(const struct event *e, const uint32_t *rows, size_t at, size_t count)
{
	while (++at < count && row_before(&e[rows[at - 1]], &e[rows[at]]))
		;
	return at;
}

static void merge_runs(const struct event *e, const uint32_t *in, size_t begin, size_t middle,
		       size_t end, uint32_t *out)
{
	size_t a = begin, b = middle;

	while (begin < end) {
		bool first = b == end || (a < middle && row_before(&e[in[a]], &e[in[b]]));

		out[begin++] = in[first ? a++ : b++];
	}
}

/*
 * A merge sort of row numbers by the runs that are there: rows of a recording are in order but for
 * a few.  c->order has room for twice the rows.
 */
static void sort_rows(struct log_cursor *c)
{
	size_t count = c->head.count, runs = 2;
	uint32_t *in = c->order, *out = c->order + count;

	for (size_t i = 0; i < count; i++)
		in[i] = (uint32_t)i;
	while (runs > 1) {
		uint32_t *turn = in;

		runs = 0;
		for (size_t begin = 0; begin < count; runs++) {
			size_t middle = run_end(c->events, in, begin, count);
			size_t end = middle < count ? run_end(c->events, in, middle, count) : middle;

			merge_runs(c->events, in, begin, middle, end, out);
			begin = end;
		}
		in = out;
		out = turn;
	}
	c->head.order = in;
}

bool log_cursor_refill(struct log_cursor *c)
{
	c->head.at = 0;
	c->head.count = c->is_whole ? 0 : log_decode(c->decoder, c->events, CHUNK_EVENTS, c->vary);
	return c->head.count > 0;
}

static enum status make_room(struct log_cursor *c, const struct log_layout *layout, size_t rows,
			     struct error *err)
{
	void *events = c->events, *vary = c->vary, *decoder = c->decoder, *order = c->order;
	enum status st = room_for(&events, &c->event_room, rows * sizeof(struct event), err);

	if (st == ST_OK)
		st = room_for(&vary, &c->vary_room, (rows * layout->vary_count + 1) * 8, err);
	if (st == ST_OK)
		st = room_for(&decoder, &c->decoder_room, log_decoder_size(layout), err);
	if (st == ST_OK && c->is_whole)
		st = room_for(&order, &c->order_room, 2 * rows * sizeof(uint32_t), err);
	c->order = order;
	c->events = events;
	c->vary = vary;
	c->decoder = decoder;
	return st;
}

enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, uint8_t room[LOG_BLOCK_BYTES],
			    struct error *err)
{
	const struct log_layout *layout = log_layout(tables, block->layout);
	const struct log_site *sites;
	const uint8_t *payload;
	size_t site_count, rows;

	c->head = (struct log_cursor_head){ .number = number };
	TRY(log_cursor_load(c, in, block, room, &payload, err));
	if (!layout)
		return fail(err, ST_FORMAT, block->offset, "block has layout %u, which did not come",
			    block->layout);
	sites = log_sites(tables, &site_count);
	c->is_whole = !(block->flags & LOG_SORTED);
	rows = c->is_whole ? block->rows : CHUNK_EVENTS;
	TRY(make_room(c, layout, rows, err));
	c->head.vary_count = layout->vary_count;
	c->head.events = c->events;
	TRY(log_decode_init(c->decoder, block, payload, layout, sites, site_count, err));
	if (!c->is_whole) {
		log_cursor_refill(c);
		return ST_OK;
	}
	c->head.count = log_decode(c->decoder, c->events, rows, c->vary);
	sort_rows(c);
	return ST_OK;
}

uint32_t log_cursor_lost(const struct log_cursor *c)
{
	return log_decode_lost(c->decoder);
}
