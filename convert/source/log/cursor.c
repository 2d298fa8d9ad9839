/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/log/internal.h"

#include <stdlib.h>
#include <zlib.h>

enum {
	MOVES = 16,      /* average moves of a row, beyond which sorting is cheaper */
	LEAST_ROWS = 32, /* rows of a chunk if memory is short */
};
_Static_assert(LOG_BLOCK_ROWS <= UINT16_MAX, "a row's number fits 16 bits");

struct log_cursor {
	struct log_cursor_head head;
	struct log_decoder *decoder;
	uint8_t *payload;
	uint16_t *order; /* order of the block's `total` rows */
	uint32_t total;
	struct log_window *window;                  /* NULL: all rows are in memory */
	size_t decoder_cap, payload_cap, order_cap; /* bytes */
};

enum status log_cursor_new(struct log_cursor **out, struct error *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
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

/* Returns memory of at least `bytes` that replaces `old`, whose content is lost if it has to grow.
 * Returns NULL if there is no memory. */
static void *reserve(void *old, size_t *cap, size_t bytes)
{
	if (bytes <= *cap)
		return old;
	free(old);
	old = malloc(bytes);
	*cap = old ? bytes : 0;
	return old;
}

static enum status read_block(const struct input *in, const struct log_block *block,
			      uint8_t *stored, struct error *err)
{
	size_t got;

	TRY(input_read_at(in, block->offset + LOG_HEADER_BYTES, stored, block->size, &got, err));
	if (got < block->size)
		return fail(err, ST_TRUNCATED, block->offset,
			    "record block is truncated: %zu of %u bytes", LOG_HEADER_BYTES + got,
			    LOG_HEADER_BYTES + block->size);
	return log_check(block, stored, err);
}

enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, const uint8_t **payload,
			    struct error *err)
{
	uLongf len = block->raw_size;
	uint8_t *stored;
	enum status st;

	*payload = c->payload = reserve(c->payload, &c->payload_cap, (size_t)block->raw_size + 1);
	if (!c->payload)
		return fail_memory(err);
	if (!(block->flags & LOG_DEFLATED))
		return read_block(in, block, c->payload, err);
	stored = malloc(block->size + 1);
	st = stored ? read_block(in, block, stored, err) : fail_memory(err);
	if (st == ST_OK) {
		int rc = uncompress(c->payload, &len, stored, block->size);

		if (rc == Z_MEM_ERROR)
			st = fail_memory(err);
		else if (rc != Z_OK || len != block->raw_size)
			st = fail(err, ST_FORMAT, block->offset,
				  "packed block does not inflate to its stated %u bytes",
				  block->raw_size);
	}
	free(stored);
	return st;
}

/* ---- rows in order ---------------------------------------------------------------------- */

/* Compares by the order of event.h, then the column `order`, then the position in the block. */
static bool row_before(const struct log_rows *r, uint32_t a, uint32_t b)
{
	uint32_t order_a, order_b;

	if (r->begins[a] != r->begins[b])
		return r->begins[a] < r->begins[b];
	if (r->lengths[a] != r->lengths[b])
		return r->lengths[a] > r->lengths[b];
	order_a = (uint32_t)log_word(&r->orders, a);
	order_b = (uint32_t)log_word(&r->orders, b);
	return order_a != order_b ? order_a < order_b : a < b;
}

/* Sorts by insertion, because most rows are near their position.  Returns false, with the rows in
 * any order, if this takes too many moves. */
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

static int compare_rows(const void *a, const void *b, void *rows)
{
	uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;

	return x == y ? 0 : row_before(rows, x, y) ? -1 : 1;
}

/* Decodes chunks until the next row in order is in memory, together with all rows that can follow
 * it. */
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
	log_decode_rows(c->decoder); /* counts what was lost after the last row */
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
	const struct log_desc *descs;
	size_t desc_count, size = log_decoder_size(layout, block, c->payload, rows);

	descs = log_descs(tables, &desc_count);
	c->decoder = reserve(c->decoder, &c->decoder_cap, size);
	if (!c->decoder)
		return fail_memory(err);
	return log_decode_init(c->decoder, block, c->payload, layout, descs, desc_count, rows, err);
}

/* Decodes a block again from its beginning, now that the order is known, so that only a window of
 * its rows is in memory.  Does nothing if that saves little. */
static enum status open_window(struct log_cursor *c, const struct log_block *block,
			       const struct log_translation *tables, struct error *err)
{
	struct log_cursor_head *h = &c->head;
	uint32_t need = log_window_need(h->order, h->count) + LEAST_ROWS;

	if (need > h->count / 2)
		return ST_OK;
	free(c->decoder);
	c->decoder = NULL;
	c->decoder_cap = 0;
	c->total = h->count;
	h->at = h->count = 0;
	TRY(begin_decode(c, block, tables, LEAST_ROWS, err));
	c->window = log_window_new(log_decode_rows(c->decoder), need);
	if (!c->window)
		return fail_memory(err);
	h->rows = log_window_rows(c->window);
	h->mask = log_window_mask(c->window);
	refill_window(c);
	return ST_OK;
}

enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, enum log_keep keep,
			    struct error *err)
{
	const struct log_layout *layout = log_layout(tables, block->layout);
	bool sorted = block->flags & LOG_SORTED;
	uint32_t rows = !sorted || keep == LOG_KEEP_ALL ? block->rows
			: keep == LOG_KEEP_LEAST        ? LEAST_ROWS
							: LOG_CHUNK_ROWS;
	const uint8_t *payload;

	c->head = (struct log_cursor_head){ .number = number, .mask = UINT32_MAX };
	free(c->window);
	c->window = NULL;
	TRY(log_cursor_load(c, in, block, &payload, err));
	if (!layout)
		return fail(err, ST_FORMAT, block->offset,
			    "block has layout %u, which was not defined before", block->layout);
	c->head.arg_count = layout->arg_count;
	TRY(begin_decode(c, block, tables, rows, err));
	if (!log_cursor_refill(c) || sorted)
		return ST_OK;
	struct log_cursor_head *h = &c->head;

	h->order = c->order = reserve(c->order, &c->order_cap, h->count * sizeof(*c->order));
	if (!c->order)
		return fail_memory(err);
	if (!insert_rows(h->rows, c->order, h->count))
		qsort_r(c->order, h->count, sizeof(*c->order), compare_rows, (void *)h->rows);
	if (keep == LOG_KEEP_LEAST)
		TRY(open_window(c, block, tables, err));
	if (c->window)
		return ST_OK;
	free(c->payload); /* The payload is decoded, and many logs may be open. */
	c->payload = NULL;
	c->payload_cap = 0;
	return ST_OK;
}

uint32_t log_cursor_lost(const struct log_cursor *c)
{
	return log_decode_lost(c->decoder);
}
