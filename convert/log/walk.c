/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/log/walk.h"

#include "schemas/buf.h"
#include "schemas/log_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WALK_BYTES = 4096,      /* read at once while walking: a header, small tables */
	SCAN_BYTES = 32 * 1024, /* read at once while looking for the next block after damage */
};

struct walk {
	struct log_has *s;
	struct log_cursor *cursor; /* for the payloads of tables */
	uint64_t at, size;         /* in the file */
	uint64_t rows;             /* of all blocks of events */
	uint64_t damaged;          /* blocks and gaps */
};

static enum status add_block(struct log_has *s, const struct log_block *block,
			     struct error *err)
{
	size_t room = s->block_room ? s->block_room * 2 : 8;
	struct log_block *again;

	if (s->count == s->block_room) {
		if (room * sizeof(*again) > s->ceiling)
			return fail(err, ST_CEILING, block->offset,
				    "more than %zu blocks of events", s->count);
		again = realloc(s->blocks, room * sizeof(*again));
		if (!again)
			return fail(err, ST_MEMORY, block->offset, "no memory for blocks");
		s->blocks = again;
		s->block_room = room;
	}
	s->blocks[s->count++] = *block;
	return ST_OK;
}

static void lose(struct walk *w, uint64_t count)
{
	trace_lose(w->s->trace, 0, LOSS_DAMAGED, count);
	w->damaged++;
}

static enum status take_table(struct walk *w, const struct log_block *block, struct error *err)
{
	const uint8_t *payload;
	enum status st = log_cursor_load(w->cursor, w->s->in, block, &payload, err);

	if (st == ST_OK)
		st = log_take_table(w->s->tables, block, payload, err);
	if (st != ST_FORMAT)
		return st;
	lose(w, block->rows);
	return ST_OK;
}

static enum status take_block(struct walk *w, const struct log_block *block, struct error *err)
{
	if (block->kind >= LOG_BLOCK_KIND_END || !block->kind) {
		trace_lose(w->s->trace, 0, (enum loss)0, 1); /* of a newer writer */
		return ST_OK;
	}
	if (block->kind != LOG_EVENTS)
		return take_table(w, block, err);
	w->rows += block->rows;
	return block->rows ? add_block(w->s, block, err) : ST_OK;
}

/* "1,234" */
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

/* What stands behind the last whole block, if anything: the fault that the reading ends with. */
static void end_walk(struct walk *w, uint64_t at, const struct log_block *cut)
{
	uint64_t left = w->size - at;
	char have[32], need[32];

	trace_provenance(w->s->trace)->unread_bytes = left;
	if (!left)
		return;
	grouped(left, have);
	if (cut)
		fail(&w->s->fault, ST_CUT, at, "record block is cut off: %s of %s bytes", have,
		     grouped(LOG_HEADER_BYTES + (uint64_t)cut->size, need));
	else if (left < LOG_HEADER_BYTES)
		fail(&w->s->fault, ST_CUT, at, "block header is cut off: %s of %d bytes", have,
		     LOG_HEADER_BYTES);
	else
		fail(&w->s->fault, ST_FORMAT, at, "no block follows in the last %s bytes", have);
}

/* The next header at or behind w->at; ST_END: there is none, and *gap is where the search began. */
static enum status find_block(struct walk *w, uint8_t *room, struct log_block *block,
			      uint64_t *gap, struct error *err)
{
	size_t want = WALK_BYTES, got, skipped;

	for (*gap = w->at; w->at < w->size; want = SCAN_BYTES) {
		TRY(input_read_at(w->s->in, w->at, room, want, &got, err));
		if (got < LOG_HEADER_BYTES)
			return ST_END;
		if (log_find_block(room, got, w->at, block, &skipped, NULL) == ST_OK) {
			w->at = block->offset;
			return ST_OK;
		}
		w->at += skipped;
	}
	return ST_END;
}

/* Bytes that are no block, and blocks behind them: told when all that can be read has been. */
static void pass_over(struct walk *w, uint64_t at, uint64_t bytes)
{
	char number[32];

	lose(w, 1); /* at least one record; how many, nobody knows */
	if (w->s->fault.status == ST_OK)
		fail(&w->s->fault, ST_FORMAT, at, "%s bytes are no block that can be believed, and "
		     "were passed over", grouped(bytes, number));
}

static enum status walk_blocks(struct walk *w, uint8_t *room, struct error *err)
{
	struct log_block block;
	uint64_t gap;

	for (;;) {
		enum status st = find_block(w, room, &block, &gap, err);

		if (st == ST_END) {
			end_walk(w, gap, NULL);
			return ST_OK;
		}
		TRY(st);
		if (block.offset != gap)
			pass_over(w, gap, block.offset - gap);
		if (block.size > w->size - block.offset - LOG_HEADER_BYTES) {
			end_walk(w, block.offset, &block);
			return ST_OK;
		}
		TRY(take_block(w, &block, err));
		w->at = block.offset + LOG_HEADER_BYTES + block.size;
	}
}

static enum status note_provenance(struct walk *w, struct error *err)
{
	struct provenance *p = trace_provenance(w->s->trace);
	uint64_t events;
	bool ended = log_translation_ended(w->s->tables, &events);

	p->format = trace_name(w->s->trace, "Tacho log", 9, err);
	p->is_whole = ended && events == w->rows && !w->damaged && !p->unread_bytes;
	p->events += w->rows;
	return p->format ? ST_OK : ST_CEILING;
}

/* The ring of a flight recorder */

static enum status ring_read(const void *arg, uint64_t at, void *bytes, size_t len, size_t *got,
			     struct error *err)
{
	return input_read_at(arg, at, bytes, len, got, err);
}

/* What a saved log would say: nobody has saved it, so its process is dead, or was not asked. */
static enum status ring_says(struct walk *w, const struct log_ring *r, uint64_t from_ns,
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
		st = log_take_table(w->s->tables, &block, bytes.data + LOG_HEADER_BYTES, err);
	buf_release(&bytes);
	if (st == ST_FORMAT) /* its process did not come */
		lose(w, 1);
	return st == ST_FORMAT ? ST_OK : st;
}

static enum status walk_ring_blocks(struct walk *w, struct log_ring *r, struct error *err)
{
	uint64_t number, from_ns = 0;
	struct log_block block;
	enum status st;

	TRY(log_ring_open(r, ring_read, w->s->in, err));
	if (input_size(w->s->in) < r->fixed.size)
		fail(&w->s->fault, ST_CUT, input_size(w->s->in), "the ring is cut off: %llu of "
		     "%llu bytes", (unsigned long long)input_size(w->s->in),
		     (unsigned long long)r->fixed.size);
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
	w->damaged++; /* never whole: nobody closed it */
	return ring_says(w, r, from_ns, err);
}

static enum status walk_ring(struct walk *w, struct error *err)
{
	struct log_ring *r = malloc(sizeof(*r));
	enum status st = r ? walk_ring_blocks(w, r, err) :
			     fail(err, ST_MEMORY, NOWHERE, "no memory to read a ring");

	free(r);
	return st;
}

static enum status walk_file(struct walk *w, uint8_t *room, struct error *err)
{
	uint8_t header[LOG_FILE_HEADER_BYTES];
	size_t got;

	TRY(log_cursor_new(&w->cursor, err));
	TRY(input_read_at(w->s->in, 0, header, sizeof(header), &got, err));
	if (got >= 8 && memcmp(header, LOG_RING_MAGIC, 8) == 0)
		return walk_ring(w, err);
	TRY(log_take_file_header(header, got, err));
	return walk_blocks(w, room, err);
}

enum status log_walk(struct log_has *s, struct error *err)
{
	struct walk w = { .s = s, .at = LOG_FILE_HEADER_BYTES, .size = input_size(s->in) };
	uint8_t *room = malloc(SCAN_BYTES);
	enum status st = room ? ST_OK : fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");

	if (st == ST_OK)
		st = walk_file(&w, room, err);
	if (st == ST_OK) {
		log_translation_finish(s->tables);
		st = note_provenance(&w, err);
	}
	log_cursor_free(w.cursor);
	free(room);
	return st;
}

