/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/log/internal.h"

#include "schemas/base/buf.h"
#include "schemas/base/vec.h"
#include "schemas/log/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WALK_BYTES = 4096,      /* bytes per read while walking: a header and small tables */
	SCAN_BYTES = 32 * 1024, /* bytes per read while searching a block after damage */
};

struct walk {
	struct log_index *index;
	struct log_cursor *cursor; /* loads the payloads of tables */
	uint64_t at, size;         /* offset in the file, and its size */
	uint64_t rows;             /* rows of all event blocks */
	uint64_t damaged;          /* damaged blocks and gaps */
	uint8_t *bytes;            /* buffer of SCAN_BYTES */
};

static void lose(struct walk *w, uint64_t count)
{
	trace_lose(w->index->trace, 0, LOSS_DAMAGED, count);
	w->damaged++;
}

static enum status take_block(struct walk *w, const struct log_block *block, struct error *err)
{
	struct log_index *index = w->index;
	const uint8_t *payload;
	enum status st;

	if (block->kind >= LOG_BLOCK_KIND_END || !block->kind) {
		trace_lose(index->trace, 0, (enum loss)0, 1); /* written by a newer version */
		return ST_OK;
	}
	if (block->kind != LOG_EVENTS) {
		st = log_cursor_load(w->cursor, index->in, block, &payload, err);
		if (st == ST_OK)
			st = log_take_table(index->tables, block, payload, err);
		if (st != ST_FORMAT)
			return st;
		lose(w, block->rows);
		return ST_OK;
	}
	w->rows += block->rows;
	if (!block->rows)
		return ST_OK;
	if (index->count == index->block_cap &&
	    2 * index->block_cap * sizeof(*block) > index->ceiling)
		return fail(err, ST_CEILING, block->offset, "more than %zu blocks of events",
			    index->count);
	TRY(vec_reserve(&index->blocks, &index->block_cap, index->count + 1, err));
	index->blocks[index->count++] = *block;
	return ST_OK;
}

/* Formats a number with separators, such as "1,234". */
static const char *grouped(uint64_t number, char out[32])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	char *p = out;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = '\0';
	return out;
}

/* Records bytes after the last whole block, if any, as the error with which reading ends. */
static void end_walk(struct walk *w, uint64_t at, const struct log_block *truncated)
{
	struct error *fault = &w->index->fault;
	uint64_t left = w->size - at;
	char have[32], need[32];

	trace_provenance(w->index->trace)->unread_bytes = left;
	if (!left)
		return;
	grouped(left, have);
	if (truncated)
		fail(fault, ST_TRUNCATED, at, "record block is truncated: %s of %s bytes", have,
		     grouped(LOG_HEADER_BYTES + (uint64_t)truncated->size, need));
	else if (left < LOG_HEADER_BYTES)
		fail(fault, ST_TRUNCATED, at, "block header is truncated: %s of %d bytes", have,
		     LOG_HEADER_BYTES);
	else
		fail(fault, ST_FORMAT, at, "the last %s bytes contain no block", have);
}

/* Finds the next block header at or after w->at.  Returns ST_END if there is none. */
static enum status find_block(struct walk *w, struct log_block *block, struct error *err)
{
	size_t want = WALK_BYTES, got, skipped;

	for (; w->at < w->size; want = SCAN_BYTES) {
		TRY(input_read_at(w->index->in, w->at, w->bytes, want, &got, err));
		if (got < LOG_HEADER_BYTES)
			return ST_END;
		if (log_find_block(w->bytes, got, w->at, block, &skipped, NULL) == ST_OK) {
			w->at = block->offset;
			return ST_OK;
		}
		w->at += skipped;
	}
	return ST_END;
}

static enum status walk_blocks(struct walk *w, struct error *err)
{
	struct error *fault = &w->index->fault;
	struct log_block block;
	char number[32];

	for (;;) {
		uint64_t from = w->at;
		enum status st = find_block(w, &block, err);

		if (st == ST_END) {
			end_walk(w, from, NULL);
			return ST_OK;
		}
		TRY(st);
		if (block.offset != from) {
			lose(w, 1); /* the number of records is unknown, but at least one */
			if (fault->status == ST_OK)
				fail(fault, ST_FORMAT, from,
				     "%s bytes contain no valid block and were skipped",
				     grouped(block.offset - from, number));
		}
		if (block.size > w->size - block.offset - LOG_HEADER_BYTES) {
			end_walk(w, block.offset, &block);
			return ST_OK;
		}
		TRY(take_block(w, &block, err));
		w->at = block.offset + LOG_HEADER_BYTES + block.size;
	}
}

/* ---- the ring of a flight recorder ---- */

static enum status ring_read(const void *arg, uint64_t at, void *bytes, size_t len, size_t *got,
			     struct error *err)
{
	return input_read_at(arg, at, bytes, len, got, err);
}

/* Adds the SAVED row that a log saved from the ring would contain.  The reason is "not saved": the
 * process died, or nobody requested a save. */
static enum status take_saved(struct walk *w, const struct log_ring *r, uint64_t from_ns,
			      struct error *err)
{
	struct log_saved saved;
	struct log_block block;
	size_t skipped;
	enum status st;
	struct buf bytes;

	log_ring_saved(r, "not saved", &saved);
	saved.from_ns = from_ns;
	buf_init(&bytes, LOG_HEADER_BYTES + LOG_BLOCK_BYTES);
	log_put_saved(&saved, &bytes);
	st = buf_status(&bytes, err);
	if (st == ST_OK)
		st = log_find_block(bytes.data, bytes.len, 0, &block, &skipped, err);
	if (st == ST_OK)
		st = log_take_table(w->index->tables, &block, bytes.data + LOG_HEADER_BYTES, err);
	buf_release(&bytes);
	if (st == ST_FORMAT) /* the row of its process is missing */
		lose(w, 1);
	return st == ST_FORMAT ? ST_OK : st;
}

static enum status walk_ring(struct walk *w, struct log_ring *r, struct error *err)
{
	uint64_t number, from_ns = 0;
	struct log_block block;
	enum status st;

	TRY(log_ring_open(r, ring_read, w->index->in, err));
	if (w->size < r->consts.size)
		fail(&w->index->fault, ST_TRUNCATED, w->size,
		     "the ring is truncated: %llu of %llu bytes", (unsigned long long)w->size,
		     (unsigned long long)r->consts.size);
	while ((st = log_ring_next_table(r, &block, err)) == ST_OK)
		TRY(take_block(w, &block, err));
	while (st == ST_END && (st = log_ring_next_events(r, &block, &number, err)) == ST_OK) {
		if (number == r->lowest && number > 1)
			from_ns = block.last_end_ns;
		TRY(take_block(w, &block, err));
		st = ST_END;
	}
	if (st != ST_END)
		return st;
	w->damaged++; /* a ring is never complete, because it is never closed */
	return take_saved(w, r, from_ns, err);
}

static enum status walk_file(struct walk *w, struct error *err)
{
	uint8_t header[LOG_FILE_HEADER_BYTES];
	struct log_ring *ring;
	enum status st;
	size_t got;

	if (!w->bytes)
		return fail_memory(err);
	TRY(log_cursor_new(&w->cursor, err));
	TRY(input_read_at(w->index->in, 0, header, sizeof(header), &got, err));
	if (got >= 8 && memcmp(header, LOG_RING_MAGIC, 8) == 0) {
		ring = malloc(sizeof(*ring));
		st = ring ? walk_ring(w, ring, err) : fail_memory(err);
		free(ring);
		return st;
	}
	TRY(log_take_file_header(header, got, err));
	return walk_blocks(w, err);
}

enum status log_index_read(struct log_index *index, struct error *err)
{
	struct walk w = {
		.index = index,
		.at = LOG_FILE_HEADER_BYTES,
		.size = input_size(index->in),
		.bytes = malloc(SCAN_BYTES),
	};
	struct provenance *p = trace_provenance(index->trace);
	enum status st = walk_file(&w, err);
	uint64_t events;
	bool ended;

	log_cursor_free(w.cursor);
	free(w.bytes);
	TRY(st);
	log_translation_finish(index->tables);
	ended = log_translation_ended(index->tables, &events);
	p->format = trace_name(index->trace, "Tacho log", 9, err);
	p->is_whole = ended && events == w.rows && !w.damaged && !p->unread_bytes;
	p->events += w.rows;
	return p->format ? ST_OK : ST_CEILING;
}
