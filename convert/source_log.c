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
#include "convert/log_walk.h"
#include "convert/source.h"
#include "schemas/log_ring.h"
#include "schemas/log_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_EVENTS = 512,
	BATCH_VARY = 4 * 1024, /* words */
	OPEN_MAX = 1024,        /* blocks that may overlap in time */
};

/* A cursor, with the begin of its present event. */
struct head {
	uint64_t begin_ns;
	struct log_cursor *cursor;
};
struct log_source {
	struct source source;
	struct log_has has;         /* its blocks by first begin */
	size_t next;                /* of them */
	struct head *heap;          /* the least event first */
	size_t open, heap_room;
	struct log_cursor **spare;
	size_t spares;
	uint64_t begin_ns, end_ns;  /* of the last event given */
	bool stopped;               /* by the fault, before the end of the file */
	size_t given, given_words;  /* of the batch */
	struct event events[BATCH_EVENTS];
	uint64_t vary[BATCH_VARY];
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
	log_translation_free(s->has.tables);
	free(s->heap);
	free(s->spare);
	free(s->has.blocks);
	free(s);
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
	const struct log_layout *layout = log_layout(s->has.tables, block->layout);
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

	for (size_t i = 0; wanted && i < s->has.count; i++) {
		if (is_unwanted(s, &s->has.blocks[i], wanted))
			trace_lose(s->has.trace, 0, LOSS_CUT_OUT, s->has.blocks[i].rows);
		else
			s->has.blocks[kept++] = s->has.blocks[i];
	}
	if (wanted)
		s->has.count = kept;
	if (s->has.count)
		qsort(s->has.blocks, s->has.count, sizeof(s->has.blocks[0]), compare_blocks);
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
	s->has.in = in;
	s->has.trace = trace;
	s->has.ceiling = budget->opening;
	st = log_translation_new(&s->has.tables, trace, budget->opening, err);
	if (st == ST_OK)
		st = input_random(in, err);
	if (st == ST_OK)
		st = log_walk(&s->has, err);
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
		return fail(err, ST_CEILING, s->has.blocks[s->next].offset,
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
	trace_lose(s->has.trace, 0, LOSS_DAMAGED, rows);
	trace_provenance(s->has.trace)->is_whole = false;
}

static void put_spare(struct log_source *s, struct log_cursor *c)
{
	lose_rows(s, log_cursor_lost(c));
	s->spare[s->spares++] = c;
}

static enum status open_next(struct log_source *s, struct error *err)
{
	const struct log_block *block = &s->has.blocks[s->next];
	struct log_cursor *c;
	enum status st;

	TRY(heap_room(s, err));
	s->next++;
	if (!s->spares) {
		TRY(log_cursor_new(&c, err));
		s->spare[s->spares++] = c;
	}
	c = s->spare[s->spares - 1];
	st = log_cursor_open(c, s->has.in, block, s->next, s->has.tables, s->has.room, err);
	if (st == ST_FORMAT) {
		lose_rows(s, block->rows);
		trace_lose_between(s->has.trace, block->first_begin_ns, block->last_end_ns);
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
	return s->next < s->has.count ? s->has.blocks[s->next].first_begin_ns : UINT64_MAX;
}

/* All blocks that may hold the next event. */
static enum status open_due(struct log_source *s, struct error *err)
{
	while (s->next < s->has.count && (!s->open || next_block_ns(s) <= s->heap[0].begin_ns))
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
		trace_lose(s->has.trace, 0, LOSS_ORDER, 1);
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
			s->has.fault = fault; /* first what is before it, then the fault */
		else if (!s->open || !give_first(s))
			break;
	}
	*out = (struct batch){ .events = s->events, .count = s->given };
	if (s->given)
		return ST_OK;
	if (s->has.fault.status == ST_OK)
		return ST_END;
	if (err)
		*err = s->has.fault;
	s->has.fault.status = ST_OK;
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
