/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: block headers are walked once, tables are loaded on the way, then blocks of events are
 * opened in the order of their first begin and merged.  LOG.md says what the bytes mean.  The ring
 * of a flight recorder is read as the log that would be saved from it.
 *
 * Memory is the tables, 64 bytes for each block of events, and a cursor for each block that is
 * open at one time, which are about as many as there are layouts.
 */
#include "convert/cut.h"
#include "convert/input.h"
#include "convert/log_cursor.h"
#include "convert/source.h"
#include "schemas/buf.h"
#include "schemas/log_ring.h"
#include "schemas/log_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_EVENTS = 512,
	BATCH_VARY = 4 * 1024, /* words */
	OPEN_MAX = 1024,        /* blocks that may overlap in time */
	WALK_BYTES = 4096,      /* read at once while walking: a header, small tables */
	SCAN_BYTES = 32 * 1024, /* read at once while looking for the next block after damage */
};

/* A cursor, with the begin of its present event. */
struct head {
	uint64_t begin_ns;
	struct log_cursor *cursor;
};
struct log_source {
	struct source source;
	const struct input *in;
	struct trace *trace;
	struct log_translation *tables;
	struct log_block *blocks; /* of events, by first begin */
	size_t count, block_room, next;
	size_t ceiling;             /* bytes of blocks[] */
	struct head *heap;          /* the least event first */
	size_t open, heap_room;
	struct log_cursor **spare;
	size_t spares;
	uint64_t begin_ns, end_ns;  /* of the last event given */
	struct error fault;         /* given when all else has been; ST_OK: none */
	bool stopped;               /* by the fault, before the end of the file */
	size_t given, given_words;  /* of the batch */
	struct event events[BATCH_EVENTS];
	uint64_t vary[BATCH_VARY];
	uint8_t room[LOG_BLOCK_BYTES]; /* for cursors */
};

static int log_bid(const uint8_t *head, size_t len)
{
	/* A log of another version, or a damaged one, is refused by open() with the reason. */
	return len >= 8 && (memcmp(head, LOG_MAGIC, 8) == 0 ||
			    memcmp(head, LOG_RING_MAGIC, 8) == 0) ? 100 : 0;
}

static void log_close(struct source *source)
{
	struct log_source *s = (struct log_source *)source;

	for (size_t i = 0; i < s->open; i++)
		log_cursor_free(s->heap[i].cursor);
	for (size_t i = 0; i < s->spares; i++)
		log_cursor_free(s->spare[i]);
	log_translation_free(s->tables);
	free(s->heap);
	free(s->spare);
	free(s->blocks);
	free(s);
}

/* The walk */

struct walk {
	struct log_source *s;
	struct log_cursor *cursor; /* for the payloads of tables */
	uint64_t at, size;         /* in the file */
	uint64_t rows;             /* of all blocks of events */
	uint64_t damaged;          /* blocks and gaps */
};

static enum status add_block(struct log_source *s, const struct log_block *block,
			     struct error *err)
{
	size_t room = s->block_room ? s->block_room * 2 : 64;
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
	enum status st = log_cursor_load(w->cursor, w->s->in, block, w->s->room, &payload, err);

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

static int compare_blocks(const void *left, const void *right)
{
	const struct log_block *a = left, *b = right;

	if (a->first_begin_ns != b->first_begin_ns)
		return a->first_begin_ns < b->first_begin_ns ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Kinds that nobody outside of the times asked for needs: calls and ranges give others a step. */
static bool is_unwanted(const struct log_source *s, const struct log_block *block,
			const struct cut *wanted)
{
	const struct log_layout *layout = log_layout(s->tables, block->layout);
	bool is_gpu = layout && layout->kind >= KIND_KERNEL && layout->kind <= KIND_GRAPH;

	if (wanted->times_relative || !is_gpu)
		return false;
	return (wanted->from_ns && block->last_end_ns < wanted->from_ns) ||
	       (wanted->to_ns != UINT64_MAX && wanted->to_ns &&
		block->first_begin_ns >= wanted->to_ns);
}

static void leave_out(struct log_source *s, const struct cut *wanted)
{
	size_t kept = 0;

	for (size_t i = 0; wanted && i < s->count; i++) {
		if (is_unwanted(s, &s->blocks[i], wanted))
			trace_lose(s->trace, 0, LOSS_CUT_OUT, s->blocks[i].rows);
		else
			s->blocks[kept++] = s->blocks[i];
	}
	if (wanted)
		s->count = kept;
	if (s->count)
		qsort(s->blocks, s->count, sizeof(s->blocks[0]), compare_blocks);
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

static enum status log_walk(struct log_source *s, struct error *err)
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

static enum status log_open(struct source **out, struct input *in, struct trace *trace,
			    const struct budget *budget, const struct cut *wanted,
			    struct error *err)
{
	struct log_source *s = calloc(1, sizeof(*s));
	enum status st;

	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	s->source.type = &source_log;
	s->in = in;
	s->trace = trace;
	s->ceiling = budget->opening;
	st = log_translation_new(&s->tables, trace, budget->opening, err);
	if (st == ST_OK)
		st = input_random(in, err);
	if (st == ST_OK)
		st = log_walk(s, err);
	if (st != ST_OK) {
		log_close(&s->source);
		return st;
	}
	leave_out(s, wanted);
	*out = &s->source;
	return ST_OK;
}

/* The merge */

/* Of equal begin, the longer comes first; then by the column `order`, then by block. */
static bool tie_before(const struct log_cursor *a, const struct log_cursor *b)
{
	const struct event *x = log_cursor_event(a), *y = log_cursor_event(b);

	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns;
	if (x->step != y->step)
		return x->step < y->step;
	return log_cursor_number(a) < log_cursor_number(b);
}

static bool is_before(const struct head *a, const struct head *b)
{
	return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns :
					    tie_before(a->cursor, b->cursor);
}

static void heap_down(struct log_source *s, size_t at)
{
	struct head moved = s->heap[at];
	size_t child;

	while ((child = 2 * at + 1) < s->open) {
		if (child + 1 < s->open && is_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!is_before(&s->heap[child], &moved))
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = moved;
}

static void heap_up(struct log_source *s, size_t at)
{
	struct head moved = s->heap[at];

	while (at && is_before(&moved, &s->heap[(at - 1) / 2])) {
		s->heap[at] = s->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	s->heap[at] = moved;
}

static enum status heap_room(struct log_source *s, struct error *err)
{
	size_t room = s->heap_room ? s->heap_room * 2 : 16;
	struct log_cursor **spare;
	struct head *heap;

	if (s->open < s->heap_room)
		return ST_OK;
	if (room > OPEN_MAX)
		return fail(err, ST_CEILING, s->blocks[s->next].offset,
			    "more than %d blocks of the log overlap in time", OPEN_MAX);
	heap = realloc(s->heap, room * sizeof(*heap));
	if (heap)
		s->heap = heap;
	spare = realloc(s->spare, room * sizeof(*spare));
	if (spare)
		s->spare = spare;
	if (!heap || !spare)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	s->heap_room = room;
	return ST_OK;
}

/* Damage that shows only when a block is read. */
static void lose_rows(struct log_source *s, uint64_t rows)
{
	if (!rows)
		return;
	trace_lose(s->trace, 0, LOSS_DAMAGED, rows);
	trace_provenance(s->trace)->is_whole = false;
}

static void put_spare(struct log_source *s, struct log_cursor *c)
{
	lose_rows(s, log_cursor_lost(c));
	s->spare[s->spares++] = c;
}

static enum status open_next(struct log_source *s, struct error *err)
{
	const struct log_block *block = &s->blocks[s->next];
	struct log_cursor *c;
	enum status st;

	TRY(heap_room(s, err));
	s->next++;
	if (!s->spares) {
		TRY(log_cursor_new(&c, err));
		s->spare[s->spares++] = c;
	}
	c = s->spare[s->spares - 1];
	st = log_cursor_open(c, s->in, block, s->next, s->tables, s->room, err);
	if (st == ST_FORMAT) {
		lose_rows(s, block->rows);
		return ST_OK;
	}
	TRY(st);
	s->spares--;
	if (!log_cursor_event(c)) {
		put_spare(s, c);
		return ST_OK;
	}
	s->heap[s->open] = (struct head){ log_cursor_event(c)->begin_ns, c };
	heap_up(s, s->open++);
	return ST_OK;
}

static uint64_t next_block_ns(const struct log_source *s)
{
	return s->next < s->count ? s->blocks[s->next].first_begin_ns : UINT64_MAX;
}

/* All blocks that may hold the next event. */
static enum status open_due(struct log_source *s, struct error *err)
{
	while (s->next < s->count && (!s->open || next_block_ns(s) <= s->heap[0].begin_ns))
		TRY(open_next(s, err));
	return ST_OK;
}

/* Until when the first cursor of the heap has it all for itself. */
static uint64_t undisputed_ns(const struct log_source *s)
{
	uint64_t until_ns = next_block_ns(s);

	for (size_t child = 1; child < s->open && child < 3; child++)
		if (s->heap[child].begin_ns < until_ns)
			until_ns = s->heap[child].begin_ns;
	return until_ns;
}

/* The first cursor has moved to `e`, or ended: set the heap right. */
static void settle_first(struct log_source *s, const struct event *e)
{
	if (e) {
		s->heap[0].begin_ns = e->begin_ns;
	} else {
		put_spare(s, s->heap[0].cursor);
		s->heap[0] = s->heap[--s->open];
	}
	if (s->open)
		heap_down(s, 0);
}

/* A block may not keep what its header promised: what would break the order is moved up to it. */
static void keep_order(struct log_source *s, struct event *e)
{
	if (e->begin_ns < s->begin_ns ||
	    (e->begin_ns == s->begin_ns && e->end_ns > s->end_ns && s->end_ns)) {
		trace_lose(s->trace, 0, LOSS_ORDER, 1);
		e->begin_ns = s->begin_ns;
		if (e->end_ns < e->begin_ns)
			e->end_ns = e->begin_ns;
		if (e->end_ns > s->end_ns)
			e->begin_ns++;
	}
	s->begin_ns = e->begin_ns;
	s->end_ns = e->end_ns;
}

/* An event to the batch, with its words. */
static void give(struct log_source *s, const struct event *from, unsigned vary)
{
	struct event *e = &s->events[s->given++];

	*e = *from;
	e->step = 0; /* it held the order column */
	if (vary) {
		uint64_t *words = s->vary + s->given_words;

		for (unsigned i = 0; i < vary; i++)
			words[i] = from->vary[i];
		e->vary = words;
		s->given_words += vary;
	}
	keep_order(s, e);
}

/* Events of the first cursor while no other can be before them; false: the batch is full. */
static bool give_first(struct log_source *s)
{
	struct log_cursor *c = s->heap[0].cursor;
	unsigned vary = log_cursor_vary(c);
	uint64_t until_ns = undisputed_ns(s);
	const struct event *e = log_cursor_event(c);

	do {
		if (s->given == BATCH_EVENTS || s->given_words + vary > BATCH_VARY) {
			s->heap[0].begin_ns = e->begin_ns;
			heap_down(s, 0);
			return false;
		}
		give(s, e, vary);
		e = log_cursor_next(c);
	} while (e && e->begin_ns < until_ns);
	settle_first(s, e);
	return true;
}

static enum status log_next(struct source *source, struct batch *out, struct error *err)
{
	struct log_source *s = (struct log_source *)source;
	struct error fault;

	s->given = s->given_words = 0;
	while (!s->stopped) {
		s->stopped = open_due(s, &fault) != ST_OK;
		if (s->stopped)
			s->fault = fault; /* first what is before it, then the fault */
		else if (!s->open || !give_first(s))
			break;
	}
	*out = (struct batch){ .events = s->events, .count = s->given };
	if (s->given)
		return ST_OK;
	if (s->fault.status == ST_OK)
		return ST_END;
	if (err)
		*err = s->fault;
	s->fault.status = ST_OK;
	return err ? err->status : ST_FORMAT;
}

const struct source_type source_log = {
	.name = "log",
	.help = "Tacho log (.tacho)",
	.bid = log_bid,
	.open = log_open,
	.next = log_next,
	.close = log_close,
};
