/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/log/cursor.h"

#include "convert/log/window.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* MOVES: of a row to its place; above, on average, runs are merged.  LEAST_ROWS: of a chunk. */
enum { MOVES = 16, LEAST_ROWS = 32 };
_Static_assert(LOG_BLOCK_ROWS <= UINT16_MAX, "a row of a block is a half word");

struct log_cursor {
	struct log_cursor_head head;
	struct log_decoder *decoder;
	uint8_t *payload;
	uint16_t *order; /* of the rows of a whole block, `total` */
	uint32_t total;
	struct log_window *window; /* NULL: all of them are at hand */
	size_t decoder_room, payload_room, order_room; /* in bytes */
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
	free(c->decoder);
	free(c->payload);
	free(c->order);
	free(c->window);
	free(c);
}

/* At least `bytes` of room in place of `old`, or NULL; what was there is gone. */
static void *room_for(void *old, size_t *room, size_t bytes, struct error *err)
{
	if (bytes <= *room)
		return old;
	free(old);
	old = malloc(bytes);
	*room = old ? bytes : 0;
	if (!old)
		fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	return old;
}

static enum status read_block(const struct input *in, const struct log_block *block,
			      uint8_t *stored, struct error *err)
{
	size_t got;

	TRY(input_read_at(in, block->offset + LOG_HEADER_BYTES, stored, block->size, &got, err));
	if (got < block->size)
		return fail(err, ST_CUT, block->offset, "record block is cut off: %zu of %u bytes",
			    LOG_HEADER_BYTES + got, LOG_HEADER_BYTES + block->size);
	return log_check(block, stored, err);
}

static enum status inflate_block(struct log_cursor *c, const struct log_block *block,
				 const uint8_t *stored, struct error *err)
{
	uLongf len = block->raw_size;
	int rc = uncompress(c->payload, &len, stored, block->size);

	if (rc == Z_MEM_ERROR)
		return fail(err, ST_MEMORY, block->offset, "no memory to inflate a block");
	if (rc != Z_OK || len != block->raw_size)
		return fail(err, ST_FORMAT, block->offset, "packed block does not inflate to the "
			    "%u bytes that it says", block->raw_size);
	return ST_OK;
}

static enum status load_packed(struct log_cursor *c, const struct input *in,
			       const struct log_block *block, struct error *err)
{
	uint8_t *stored = malloc(block->size + 1);
	enum status st = stored ? read_block(in, block, stored, err) :
				  fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");

	if (st == ST_OK)
		st = inflate_block(c, block, stored, err);
	free(stored);
	return st;
}

enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, const uint8_t **payload,
			    struct error *err)
{
	c->payload = room_for(c->payload, &c->payload_room, (size_t)block->raw_size + 1, err);
	*payload = c->payload;
	if (!c->payload)
		return ST_MEMORY;
	if (block->flags & LOG_DEFLATED)
		return load_packed(c, in, block, err);
	return read_block(in, block, c->payload, err);
}

/* ---- rows in order ---------------------------------------------------------------------- */

/* The order of event.h; then that of the column `order`, then that of the rows. */
static bool row_before(const struct log_rows *r, uint32_t a, uint32_t b)
{
	uint32_t of_a, of_b;

	if (r->begins[a] != r->begins[b])
		return r->begins[a] < r->begins[b];
	if (r->lengths[a] != r->lengths[b])
		return r->lengths[a] > r->lengths[b];
	of_a = (uint32_t)log_word(&r->orders, a);
	of_b = (uint32_t)log_word(&r->orders, b);
	return of_a != of_b ? of_a < of_b : a < b;
}

/* Each row to its place; false: they are too far from theirs. */
static bool insert_rows(const struct log_rows *r, uint16_t *order, uint32_t count)
{
	uint64_t left = (uint64_t)count * MOVES;

	for (uint32_t row = 0; row < count; row++) {
		uint32_t at = row;

		for (; at && left && row_before(r, row, order[at - 1]); at--, left--)
			order[at] = order[at - 1];
		order[at] = (uint16_t)row;
	}
	return left;
}

/* Rows of a run that ends where the order breaks, from `at`. */
static uint32_t run_end(const struct log_rows *r, const uint16_t *rows, uint32_t at,
			uint32_t count)
{
	while (++at < count && row_before(r, rows[at - 1], rows[at]))
		;
	return at;
}

static void merge_runs(const struct log_rows *r, const uint16_t *in, uint32_t begin,
		       uint32_t middle, uint32_t end, uint16_t *out)
{
	uint32_t a = begin, b = middle;

	while (begin < end) {
		bool first = b == end || (a < middle && row_before(r, in[a], in[b]));

		out[begin++] = in[first ? a++ : b++];
	}
}

/* A merge sort by the runs that are there, between `in` and `out`; the one that has the result. */
static uint16_t *merge_rows(const struct log_rows *r, uint16_t *in, uint16_t *out, uint32_t count)
{
	uint32_t runs = 2;

	for (uint32_t i = 0; i < count; i++)
		in[i] = (uint16_t)i;
	while (runs > 1) {
		uint16_t *turn = in;

		runs = 0;
		for (uint32_t begin = 0; begin < count; runs++) {
			uint32_t middle = run_end(r, in, begin, count);
			uint32_t end = middle < count ? run_end(r, in, middle, count) : middle;

			merge_runs(r, in, begin, middle, end, out);
			begin = end;
		}
		in = out;
		out = turn;
	}
	return in;
}

static enum status merge_far(struct log_cursor *c, struct error *err)
{
	struct log_cursor_head *h = &c->head;
	uint16_t *other = malloc(h->count * sizeof(*other)), *sorted;

	if (!other)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	sorted = merge_rows(h->rows, c->order, other, h->count);
	if (sorted != c->order)
		memcpy(c->order, sorted, h->count * sizeof(*sorted));
	free(other);
	return ST_OK;
}

static enum status sort_rows(struct log_cursor *c, struct error *err)
{
	struct log_cursor_head *h = &c->head;

	c->order = room_for(c->order, &c->order_room, h->count * sizeof(*c->order), err);
	h->order = c->order;
	if (!c->order)
		return ST_MEMORY;
	return insert_rows(h->rows, c->order, h->count) ? ST_OK : merge_far(c, err);
}

/* Chunks until the next row in order is at hand, and with it those that follow. */
static bool refill_window(struct log_cursor *c)
{
	struct log_cursor_head *h = &c->head;
	const struct log_rows *chunk;

	while (h->at < c->total && h->order[h->at] >= log_window_end(c->window)) {
		chunk = log_decode_rows(c->decoder);
		if (!chunk)
			break;
		log_window_put(c->window, chunk);
	}
	while (h->count < c->total && h->order[h->count] < log_window_end(c->window))
		h->count++;
	if (h->at < h->count)
		return true;
	log_decode_rows(c->decoder); /* none, but what was lost behind the last one */
	h->at = h->count = c->total = 0;
	h->rows = NULL;
	return false;
}

bool log_cursor_refill(struct log_cursor *c)
{
	struct log_cursor_head *h = &c->head;

	if (c->window)
		return refill_window(c);
	h->at = h->count = 0;
	h->rows = h->order ? NULL : log_decode_rows(c->decoder);
	if (h->rows)
		h->count = h->rows->count;
	return h->rows;
}

static enum status begin_decode(struct log_cursor *c, const struct log_block *block,
				const struct log_translation *tables, uint32_t rows,
				struct error *err)
{
	const struct log_layout *layout = log_layout(tables, block->layout);
	const struct log_site *sites;
	size_t site_count, size = log_decoder_size(layout, block, c->payload, rows);

	sites = log_sites(tables, &site_count);
	c->decoder = room_for(c->decoder, &c->decoder_room, size, err);
	if (!c->decoder)
		return ST_MEMORY;
	return log_decode_init(c->decoder, block, c->payload, layout, sites, site_count, rows, err);
}

/* Once more from the beginning, now that the order is known; not where it saves little. */
static enum status narrow(struct log_cursor *c, const struct log_block *block,
			  const struct log_translation *tables, struct error *err)
{
	struct log_cursor_head *h = &c->head;
	uint32_t need = log_window_need(h->order, h->count) + LEAST_ROWS;

	if (need > h->count / 2)
		return ST_OK;
	free(c->decoder);
	c->decoder = NULL;
	c->decoder_room = 0;
	c->total = h->count;
	h->at = h->count = 0;
	TRY(begin_decode(c, block, tables, LEAST_ROWS, err));
	c->window = log_window_new(log_decode_rows(c->decoder), need);
	if (!c->window)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	h->rows = log_window_rows(c->window);
	h->mask = log_window_mask(c->window);
	refill_window(c);
	return ST_OK;
}

enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, enum log_room room,
			    struct error *err)
{
	const struct log_layout *layout = log_layout(tables, block->layout);
	bool sorted = block->flags & LOG_SORTED;
	uint32_t rows = !sorted || room == LOG_ROOM_WHOLE ? block->rows :
			room == LOG_ROOM_LEAST ? LEAST_ROWS : LOG_CHUNK_ROWS;
	const uint8_t *payload;

	c->head = (struct log_cursor_head){ .number = number, .mask = UINT32_MAX };
	free(c->window);
	c->window = NULL;
	TRY(log_cursor_load(c, in, block, &payload, err));
	if (!layout)
		return fail(err, ST_FORMAT, block->offset,
			    "block has layout %u, which did not come", block->layout);
	c->head.vary_count = layout->vary_count;
	TRY(begin_decode(c, block, tables, rows, err));
	if (!log_cursor_refill(c) || sorted)
		return ST_OK;
	TRY(sort_rows(c, err));
	if (room == LOG_ROOM_LEAST)
		TRY(narrow(c, block, tables, err));
	if (c->window)
		return ST_OK;
	free(c->payload); /* nothing is left in it, and many logs may be open */
	c->payload = NULL;
	c->payload_room = 0;
	return ST_OK;
}

uint32_t log_cursor_lost(const struct log_cursor *c)
{
	return log_decode_lost(c->decoder);
}
