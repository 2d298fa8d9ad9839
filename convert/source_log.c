/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: block headers are walked once, tables are loaded on the way, then blocks of events are
 * opened in the order of their first begin and merged.  LOG.md says what the bytes mean.  The ring
 * of a flight recorder is read as the log that would be saved from it.
 *
 * Memory is the tables, 64 bytes for each block of events, a cursor for each block that is open at
 * one time, which are about as many as there are layouts, and a batch.
 */
#include "convert/cut.h"
#include "convert/input.h"
#include "convert/log/ahead.h"
#include "convert/log/walk.h"
#include "convert/source.h"
#include "schemas/log_ring.h"
#include "schemas/log_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_LEAST = 64,       /* events */
	BATCH_MOST = 512,
	BATCH_VARY = 8,         /* words of an event, on average */
	OPEN_MAX = 1024,        /* blocks that may overlap in time */
	AHEAD_LEAST = 64 * 1024, /* bytes of a source that reads blocks ahead */
	WHOLE_LEAST = 32 * 1024, /* of one that keeps all rows of a block that is not in order */
	AHEAD_EVENTS = 4,       /* of the batch, asked of the memory before they are filled */
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
	struct head *heads;         /* in order: there are few, and one moves only a little */
	size_t open, head_room;
	uint64_t next_ns;           /* first begin of the next block */
	struct log_ahead *ahead;    /* who opens them; NULL until the first is due */
	unsigned threads;
	bool is_sparing;            /* one of many */
	uint64_t begin_ns, end_ns;  /* of the last event given */
	bool stopped;               /* by the fault, before the end of the file */
	size_t given, given_words;  /* of the batch */
	size_t batch_events, batch_words;
	uint64_t *vary;             /* NULL until something varies */
	struct event events[];
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
		log_cursor_free(s->heads[i].cursor);
	log_ahead_close(s->ahead);
	log_translation_free(s->has.tables);
	free(s->heads);
	free(s->vary);
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

/* What is read ahead is more than the share of one of very many. */
static unsigned helpers(const struct budget *budget)
{
	return budget->resident < AHEAD_LEAST ? 0 : budget->threads;
}

/* A batch takes up to half of what a source may hold. */
static size_t batch_events(const struct budget *budget)
{
	size_t count = budget->resident / 2 / sizeof(struct event);

	return count < BATCH_LEAST ? BATCH_LEAST : count > BATCH_MOST ? BATCH_MOST : count;
}

static enum status log_open(struct source **out, struct input *in, struct trace *trace,
			    const struct budget *budget, const struct cut *wanted,
			    struct error *err)
{
	size_t batch = batch_events(budget);
	struct log_source *s = malloc(sizeof(*s) + (batch + AHEAD_EVENTS) * sizeof(s->events[0]));
	enum status st;

	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	*s = (struct log_source){ .source = { &source_log }, .batch_events = batch };
	s->threads = helpers(budget);
	s->is_sparing = budget->resident < WHOLE_LEAST;
	s->batch_words = batch * BATCH_VARY;
	_Static_assert(BATCH_LEAST * BATCH_VARY >= LOG_LAYOUT_VARY, "one event at least");
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
static bool tie_before(struct log_cursor *a, struct log_cursor *b)
{
	const struct log_cursor_head *x = log_cursor_head(a), *y = log_cursor_head(b);
	uint32_t i = log_cursor_row(x, x->at), k = log_cursor_row(y, y->at);
	uint32_t of_x = (uint32_t)log_word(&x->rows->orders, i);
	uint32_t of_y = (uint32_t)log_word(&y->rows->orders, k);

	if (x->rows->lengths[i] != y->rows->lengths[k])
		return x->rows->lengths[i] > y->rows->lengths[k];
	return of_x != of_y ? of_x < of_y : x->number < y->number;
}

static bool is_before(const struct head *a, const struct head *b)
{
	return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns :
					    tie_before(a->cursor, b->cursor);
}

/* The head at `at` has moved on. */
static void head_back(struct log_source *s, size_t at)
{
	struct head moved = s->heads[at];

	for (; at + 1 < s->open && is_before(&s->heads[at + 1], &moved); at++)
		s->heads[at] = s->heads[at + 1];
	s->heads[at] = moved;
}

static void head_add(struct log_source *s, struct head head)
{
	size_t at = s->open++;

	for (; at && is_before(&head, &s->heads[at - 1]); at--)
		s->heads[at] = s->heads[at - 1];
	s->heads[at] = head;
}

static enum status head_room(struct log_source *s, struct error *err)
{
	size_t room = s->head_room ? s->head_room * 2 : 16;
	struct head *heads;

	if (s->open < s->head_room)
		return ST_OK;
	if (room > OPEN_MAX)
		return fail(err, ST_CEILING, s->has.blocks[s->next].offset,
			    "more than %d blocks of the log overlap in time", OPEN_MAX);
	heads = realloc(s->heads, room * sizeof(*heads));
	if (!heads)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	s->heads = heads;
	s->head_room = room;
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

static void put_back(struct log_source *s, struct log_cursor *c)
{
	lose_rows(s, log_cursor_lost(c));
	log_ahead_spare(s->ahead, c);
}

static enum status vary_room(struct log_source *s, struct log_cursor *c, struct error *err)
{
	if (s->vary || !log_cursor_head(c)->vary_count)
		return ST_OK;
	s->vary = malloc(s->batch_words * sizeof(*s->vary));
	return s->vary ? ST_OK : fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
}

static uint64_t present_ns(struct log_cursor *c)
{
	const struct log_cursor_head *h = log_cursor_head(c);

	return h->rows->begins[log_cursor_row(h, h->at)];
}

static enum status open_next(struct log_source *s, struct error *err)
{
	const struct log_block *block = &s->has.blocks[s->next];
	struct log_cursor *c = NULL;
	enum status st = head_room(s, err);

	if (st == ST_OK && !s->ahead)
		st = log_ahead_open(&s->ahead, &s->has, s->threads, s->is_sparing, err);
	TRY(st);
	s->next++;
	st = log_ahead_next(s->ahead, &c, err);
	if (st == ST_FORMAT) {
		lose_rows(s, block->rows);
		trace_lose_between(s->has.trace, block->first_begin_ns, block->last_end_ns);
	}
	if (st == ST_OK)
		st = vary_room(s, c, err);
	if (st == ST_OK && log_cursor_has(c)) {
		head_add(s, (struct head){ present_ns(c), c });
		return ST_OK;
	}
	if (st == ST_OK)
		lose_rows(s, log_cursor_lost(c));
	if (c)
		log_ahead_spare(s->ahead, c);
	return st == ST_FORMAT ? ST_OK : st;
}

/* All blocks that may hold the next event. */
static enum status open_due(struct log_source *s, struct error *err)
{
	enum status st = ST_OK;

	while (st == ST_OK && s->next < s->has.count &&
	       (!s->open || s->has.blocks[s->next].first_begin_ns <= s->heads[0].begin_ns))
		st = open_next(s, err);
	s->next_ns = s->next < s->has.count ? s->has.blocks[s->next].first_begin_ns : UINT64_MAX;
	return st;
}

/* The block of the first cursor has ended. */
static void drop_first(struct log_source *s)
{
	put_back(s, s->heads[0].cursor);
	s->open--;
	memmove(s->heads, s->heads + 1, s->open * sizeof(s->heads[0]));
}

/* A block may not keep what its header promised: what would break the order is moved up to it. */
static void move_up(struct log_source *s, struct event *e)
{
	trace_lose(s->has.trace, 0, LOSS_ORDER, 1);
	e->begin_ns = s->begin_ns;
	if (e->end_ns < e->begin_ns)
		e->end_ns = e->begin_ns;
	if (e->end_ns > s->end_ns)
		e->begin_ns++;
}

static bool breaks_order(const struct log_source *s, const struct event *e)
{
	return e->begin_ns < s->begin_ns ||
	       (e->begin_ns == s->begin_ns && e->end_ns > s->end_ns && s->end_ns);
}

static bool is_full(const struct log_source *s, const struct log_cursor_head *h)
{
	return s->given == s->batch_events || s->given_words + h->vary_count > s->batch_words;
}

static inline void give_row(struct log_source *s, const struct log_cursor_head *h)
{
	struct event *e = &s->events[s->given++];
	uint64_t *words = h->vary_count ? s->vary + s->given_words : NULL;

	__builtin_prefetch(e + AHEAD_EVENTS, 1);
	log_rows_event(h->rows, log_cursor_row(h, h->at), e, words);
	log_cursor_near_site(h);
	s->given_words += h->vary_count;
	e->step = 0; /* it held the order column */
	if (__builtin_expect(breaks_order(s, e), 0))
		move_up(s, e);
	s->begin_ns = e->begin_ns;
	s->end_ns = e->end_ns;
}

/*
 * Events in order until the batch is full (false) or a block ends or is due (true).  Kinds take
 * turns, mostly after one event, so that what is done at a turn is as little as can be.
 */
static bool give_turns(struct log_source *s)
{
	struct head *first = s->heads, *second = s->open > 1 ? s->heads + 1 : NULL;

	for (;;) {
		struct log_cursor_head *h = log_cursor_head(first->cursor);
		uint64_t until_ns = s->next_ns;

		if (second && second->begin_ns < until_ns)
			until_ns = second->begin_ns;
		do {
			if (is_full(s, h))
				return false;
			give_row(s, h);
			if (++h->at == h->count && !log_cursor_refill(first->cursor)) {
				drop_first(s);
				return true;
			}
			first->begin_ns = h->rows->begins[log_cursor_row(h, h->at)];
		} while (first->begin_ns < until_ns);
		head_back(s, 0);
		if (first->begin_ns >= s->next_ns)
			return true;
	}
}

/*
 * Of many logs each is asked after a while, and by then has left the caches: what the batch begins
 * with is asked of the memory at once, not one after the other when it is looked at.
 */
static void log_near(const struct log_source *s)
{
	for (size_t i = 0; i < s->open; i++)
		__builtin_prefetch(s->heads[i].cursor);
	for (size_t i = 0; i < s->open; i++)
		__builtin_prefetch(log_cursor_head(s->heads[i].cursor)->rows);
	for (size_t i = 0; i < s->open; i++)
		log_cursor_near(s->heads[i].cursor);
}

static enum status log_next(struct source *source, struct batch *out, struct error *err)
{
	struct log_source *s = (struct log_source *)source;
	struct error fault;

	log_near(s);
	s->given = s->given_words = 0;
	while (!s->stopped) {
		if (!s->open || s->next_ns <= s->heads[0].begin_ns)
			s->stopped = open_due(s, &fault) != ST_OK;
		if (s->stopped)
			s->has.fault = fault; /* first what is before it, then the fault */
		else if (!s->open || !give_turns(s))
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
