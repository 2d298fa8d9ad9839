/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/log_cursor.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { CHUNK_EVENTS = 128 };

struct log_cursor {
	struct event *events; /* room for those of a chunk, or of a whole block */
	uint64_t *vary;
	struct log_decoder *decoder;
	size_t event_room, vary_room, decoder_room; /* the last two in bytes */
	size_t at, count;
	unsigned vary_count;
	uint64_t number;
	bool is_whole; /* the chunk is all that the block has */
	uint8_t stored[LOG_BLOCK_BYTES];
	uint8_t raw[LOG_BLOCK_BYTES];
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
	free(c);
}

static enum status inflate_block(struct log_cursor *c, const struct log_block *block,
				 struct error *err)
{
	uLongf len = sizeof(c->raw);
	int rc = uncompress(c->raw, &len, c->stored, block->size);

	if (rc == Z_MEM_ERROR)
		return fail(err, ST_MEMORY, block->offset, "no memory to inflate a block");
	if (rc != Z_OK || len != block->raw_size)
		return fail(err, ST_FORMAT, block->offset, "packed block does not inflate to the "
			    "%u bytes that it says", block->raw_size);
	return ST_OK;
}

enum status log_cursor_load(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, const uint8_t **payload,
			    struct error *err)
{
	size_t got;

	TRY(input_read_at(in, block->offset + LOG_HEADER_BYTES, c->stored, block->size, &got,
			  err));
	if (got < block->size)
		return fail(err, ST_CUT, block->offset, "record block is cut off: %zu of %u bytes",
			    LOG_HEADER_BYTES + got, LOG_HEADER_BYTES + block->size);
	TRY(log_check(block, c->stored, err));
	*payload = c->stored;
	if (!(block->flags & LOG_DEFLATED))
		return ST_OK;
	*payload = c->raw;
	return inflate_block(c, block, err);
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

static int compare_events(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	if (a->step != b->step) /* the order column */
		return a->step < b->step ? -1 : 1;
	return a->owner < b->owner ? -1 : a->owner > b->owner; /* the row */
}

/* A block that is not in order, whole. */
static void sort_rows(struct log_cursor *c)
{
	for (size_t i = 0; i < c->count; i++)
		c->events[i].owner = (uint32_t)i;
	qsort(c->events, c->count, sizeof(c->events[0]), compare_events);
	for (size_t i = 0; i < c->count; i++)
		c->events[i].owner = 0;
}

static void refill(struct log_cursor *c)
{
	c->at = c->count = 0;
	if (c->is_whole)
		return;
	c->count = log_decode(c->decoder, c->events, CHUNK_EVENTS, c->vary);
}

static enum status make_room(struct log_cursor *c, const struct log_layout *layout, size_t rows,
			     struct error *err)
{
	void *events = c->events, *vary = c->vary, *decoder = c->decoder;
	enum status st = room_for(&events, &c->event_room, rows * sizeof(struct event), err);

	if (st == ST_OK)
		st = room_for(&vary, &c->vary_room, (rows * layout->vary_count + 1) * 8, err);
	if (st == ST_OK)
		st = room_for(&decoder, &c->decoder_room, log_decoder_size(layout), err);
	c->events = events;
	c->vary = vary;
	c->decoder = decoder;
	return st;
}

enum status log_cursor_open(struct log_cursor *c, const struct input *in,
			    const struct log_block *block, uint64_t number,
			    const struct log_translation *tables, struct error *err)
{
	const struct log_layout *layout = log_layout(tables, block->layout);
	const struct log_site *sites;
	const uint8_t *payload;
	size_t site_count, rows;

	c->at = c->count = 0;
	c->number = number;
	TRY(log_cursor_load(c, in, block, &payload, err));
	if (!layout)
		return fail(err, ST_FORMAT, block->offset, "block has layout %u, which did not come",
			    block->layout);
	sites = log_sites(tables, &site_count);
	c->is_whole = !(block->flags & LOG_SORTED);
	rows = c->is_whole ? block->rows : CHUNK_EVENTS;
	TRY(make_room(c, layout, rows, err));
	c->vary_count = layout->vary_count;
	TRY(log_decode_init(c->decoder, block, payload, layout, sites, site_count, err));
	if (!c->is_whole) {
		refill(c);
		return ST_OK;
	}
	c->count = log_decode(c->decoder, c->events, rows, c->vary);
	sort_rows(c);
	return ST_OK;
}

const struct event *log_cursor_event(const struct log_cursor *c)
{
	return c->at < c->count ? &c->events[c->at] : NULL;
}

void log_cursor_next(struct log_cursor *c)
{
	if (++c->at >= c->count)
		refill(c);
}

uint64_t log_cursor_number(const struct log_cursor *c)
{
	return c->number;
}

unsigned log_cursor_vary(const struct log_cursor *c)
{
	return c->vary_count;
}

uint32_t log_cursor_lost(const struct log_cursor *c)
{
	return log_decode_lost(c->decoder);
}
