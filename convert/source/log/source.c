/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log (LOG.md): block headers are read once with the tables, then event blocks are opened
 * in the order of their first begin and merged.  The ring of a flight recorder is read as the log
 * that would be saved from it.  Memory is the tables, 64 bytes for each event block, a cursor for
 * each open block (about one for each layout), and a batch.
 */
#include "convert/stage/filter/filter.h"
#include "convert/name/name.h"
#include "convert/source/log/internal.h"
#include "schemas/base/heap.h"
#include "schemas/base/utf8.h"
#include "schemas/base/vec.h"
#include "schemas/base/sort.h"
#include "schemas/log/ring.h"

#include <stdlib.h>
#include <string.h>

enum {
	BATCH_LEAST = 64, /* events */
	BATCH_MOST = 512,
	BATCH_ARGS = 8,              /* argument values per event, on average */
	OPEN_MAX = 1024,             /* most blocks that may overlap in time */
	READAHEAD_LEAST = 64 * 1024, /* resident bytes from which a source reads blocks ahead */
	WHOLE_LEAST = 32 * 1024,     /* resident bytes from which unsorted blocks stay whole */
};

/* An open block and the begin of its next event. */
struct open_block {
	uint64_t begin_ns;
	struct log_cursor *cursor; /* NULL: the entry is free */
};
struct log_source {
	struct source source;
	struct log_index index;  /* its blocks are in the order of their first begin */
	size_t next;             /* index of the first block that is not open yet */
	uint64_t next_ns;        /* first begin of that block */
	struct open_block *open; /* fixed entries, which the heap orders by their next event */
	size_t open_cap;
	struct heap heap;
	struct input *in;                /* for reporting progress; read through the index */
	struct log_readahead *readahead; /* opens blocks; NULL until the first is due */
	unsigned threads;
	bool is_sparing;           /* one of many inputs, so memory is short */
	uint64_t begin_ns, end_ns; /* times of the last event returned */
	bool stopped;              /* an error ended reading before the end of the file */
	bool has_payloads;         /* events may have NVTX payloads */
	uint32_t *plain;           /* demangled names by name id, while the source opens */
	size_t plain_cap;
	size_t given, given_words; /* events and argument words in the batch */
	size_t batch_events, batch_words;
	uint64_t *args; /* argument words; NULL until an event has some */
	struct event events[];
};

/*
 * Orders two blocks' next events: begin ascending, end descending, then the column `order`, then
 * the order of the blocks.  Most differ in their begin, so only that comparison is inlined.
 */
static __attribute__((noinline)) bool tie_before(const struct open_block *a,
						 const struct open_block *b)
{
	const struct log_cursor_head *x = log_cursor_head(a->cursor);
	const struct log_cursor_head *y = log_cursor_head(b->cursor);
	uint32_t row_x = log_cursor_row(x, x->at), row_y = log_cursor_row(y, y->at);

	if (x->rows->lengths[row_x] != y->rows->lengths[row_y])
		return x->rows->lengths[row_x] > y->rows->lengths[row_y];
	uint32_t order_x = (uint32_t)log_word(&x->rows->orders, row_x);
	uint32_t order_y = (uint32_t)log_word(&y->rows->orders, row_y);
	return order_x != order_y ? order_x < order_y : x->number < y->number;
}

static inline bool open_before(const void *self, uint32_t a, uint32_t b)
{
	const struct open_block *open = self;

	if (open[a].begin_ns != open[b].begin_ns)
		return open[a].begin_ns < open[b].begin_ns;
	return tie_before(&open[a], &open[b]);
}

static int log_bid(const uint8_t *head, size_t len)
{
	/* open() refuses a log of another version or a damaged one and reports the reason. */
	return len >= 8 && (memcmp(head, LOG_MAGIC, 8) == 0 || memcmp(head, LOG_RING_MAGIC, 8) == 0)
		       ? 100
		       : 0;
}

static void log_close(struct source *source)
{
	struct log_source *s = (struct log_source *)source;

	for (size_t i = 0; i < s->open_cap; i++)
		log_cursor_free(s->open[i].cursor);
	log_readahead_close(s->readahead);
	log_translation_free(s->index.tables);
	free(s->open);
	free(s->heap.items);
	free(s->args);
	free(s->index.blocks);
	free(s);
}

/* Returns whether a block may be skipped.  Outside the requested times only GPU work may, because
 * calls and ranges determine the steps of other events. */
static bool is_unwanted(const struct log_source *s, const struct log_block *block,
			const struct filter *wanted)
{
	const struct log_layout *layout = log_layout(s->index.tables, block->layout);
	bool is_gpu = layout && layout->kind >= KIND_KERNEL && layout->kind <= KIND_GRAPH;

	if (wanted->times_relative || !is_gpu)
		return false;
	return (wanted->from_ns && block->last_end_ns < wanted->from_ns) ||
	       (wanted->to_ns != UINT64_MAX && wanted->to_ns &&
		block->first_begin_ns >= wanted->to_ns);
}

enum { NAME_BYTES = 4096, CONSTS = 96 };
#define NAME_NEW UINT32_MAX /* not demangled yet */

/* Returns the demangled form of a name, computed once, or 0 if it is not mangled. */
static uint32_t plain_name(struct log_source *s, struct trace *t, uint32_t name)
{
	size_t had = s->plain_cap;
	char *plain, shorter[NAME_BYTES];

	if (vec_reserve(&s->plain, &s->plain_cap, name + 1, NULL) != ST_OK)
		return 0;
	for (; had < s->plain_cap; had++)
		s->plain[had] = NAME_NEW;
	if (s->plain[name] != NAME_NEW)
		return s->plain[name];
	plain = name_demangle(trace_text(t, name, NULL));
	s->plain[name] = 0;
	if (plain)
		s->plain[name] = trace_name(
			t, shorter, utf8_shorten(plain, strlen(plain), shorter, NAME_BYTES), NULL);
	free(plain);
	return s->plain[name];
}

/*
 * Renames a kernel.  CUPTI returns mangled names, and logs keep them.  Users expect what other
 * tools write, so the demangled text becomes the name, and the mangled one an argument.  Names from
 * other tools do not change, as Kineto leaves long ones mangled.  A descriptor does not change if
 * memory is short.
 */
static void name_kernel(void *source, struct trace *t, struct event_desc *desc)
{
	const struct arg_schema *had = trace_get_schema(t, desc->schema);
	struct attr consts[CONSTS] = { { .type = ATTR_TEXT, .bits = desc->name } };
	struct arg_schema schema = { consts, had->args, had->const_count + 1, had->arg_count };
	const struct process *p = trace_get_process(t, trace_get_track(t, desc->track)->process);
	bool is_ours = desc->kind == KIND_KERNEL && !trace_find_attr(t, p->schema, ".imported");
	uint32_t plain = is_ours ? plain_name(source, t, desc->name) : 0;

	if (!plain || schema.const_count > CONSTS)
		return;
	consts[0].key = trace_name(t, "mangled", 7, NULL);
	if (had->const_count)
		memcpy(consts + 1, had->consts, had->const_count * sizeof(*consts));
	uint32_t with = consts[0].key ? trace_schema(t, &schema, NULL) : 0;
	if (!with)
		return;
	desc->name = plain;
	desc->schema = with;
}

static enum status log_open(struct source **out, struct input *in, struct trace *trace,
			    const struct budget *budget, const struct filter *wanted,
			    struct error *err)
{
	size_t batch = budget->resident / 2 / sizeof(struct event);
	struct log_source *s;
	enum status st;

	_Static_assert(BATCH_LEAST * BATCH_ARGS >= LOG_LAYOUT_ARG, "a batch holds any event");
	batch = batch < BATCH_LEAST ? BATCH_LEAST : batch > BATCH_MOST ? BATCH_MOST : batch;
	*out = NULL;
	s = malloc(sizeof(*s) + batch * sizeof(s->events[0]));
	if (!s)
		return fail_memory(err);
	*s = (struct log_source){
		.source = { &source_log },
		.in = in,
		.index = { .in = in, .trace = trace, .ceiling = budget->opening },
		.batch_events = batch,
		.batch_words = batch * BATCH_ARGS,
		/* One of very many inputs has too little memory to read blocks ahead. */
		.threads = budget->resident < READAHEAD_LEAST ? 0 : budget->threads,
		.is_sparing = budget->resident < WHOLE_LEAST,
	};
	st = log_translation_new(&s->index.tables, trace, budget->opening, err);
	if (st == ST_OK) {
		log_translation_change(s->index.tables, name_kernel, s);
		st = input_random(in, err);
	}
	if (st == ST_OK)
		st = log_index_read(&s->index, err);
	if (st == ST_OK)
		st = log_payload_scan(&s->index, &s->has_payloads, err);
	free(s->plain);
	s->plain = NULL;
	if (st != ST_OK) {
		log_close(&s->source);
		return st;
	}
	struct log_index *index = &s->index;
	size_t kept = 0;

	for (size_t i = 0; i < index->count; i++) {
		if (wanted && is_unwanted(s, &index->blocks[i], wanted))
			trace_lose(index->trace, 0, LOSS_CUT_OUT, index->blocks[i].rows);
		else
			index->blocks[kept++] = index->blocks[i];
	}
	index->count = kept;
	SORT_BY(index->blocks, kept, UP(struct log_block, first_begin_ns),
		UP(struct log_block, offset));
	*out = &s->source;
	return ST_OK;
}

/* ---- the merge of blocks ---- */

/* Counts rows as lost whose damage appears only when their block is read. */
static void lose_rows(struct log_source *s, uint64_t rows)
{
	if (!rows)
		return;
	trace_lose(s->index.trace, 0, LOSS_DAMAGED, rows);
	trace_provenance(s->index.trace)->is_whole = false;
}

static void set_begin(struct open_block *b)
{
	const struct log_cursor_head *h = log_cursor_head(b->cursor);

	b->begin_ns = h->rows->begins[log_cursor_row(h, h->at)];
}

static enum status open_next(struct log_source *s, struct error *err)
{
	const struct log_block *block = &s->index.blocks[s->next];
	struct log_cursor *c = NULL;
	enum status st = ST_OK;
	size_t place = 0;

	if (s->heap.count == OPEN_MAX)
		return fail(err, ST_CEILING, block->offset,
			    "more than %d blocks of the log overlap in time", OPEN_MAX);
	while (place < s->open_cap && s->open[place].cursor)
		place++;
	TRY(vec_reserve(&s->open, &s->open_cap, place + 1, err));
	s->heap.self = s->open;
	input_passed(s->in, s->next + 1, s->index.count);
	if (!s->readahead)
		TRY(log_readahead_open(&s->readahead, &s->index, s->threads, s->is_sparing, err));
	s->next++;
	st = log_readahead_next(s->readahead, &c, err);
	if (st == ST_FORMAT) {
		lose_rows(s, block->rows);
		trace_lose_between(s->index.trace, block->first_begin_ns, block->last_end_ns);
	}
	if (st == ST_OK && !s->args && log_cursor_head(c)->arg_count) {
		s->args = malloc(s->batch_words * sizeof(*s->args));
		if (!s->args)
			st = fail_memory(err);
	}
	if (st == ST_OK && log_cursor_has(c)) {
		s->open[place].cursor = c;
		set_begin(&s->open[place]);
		return heap_push(&s->heap, (uint32_t)place, open_before, err);
	}
	if (st == ST_OK)
		lose_rows(s, log_cursor_lost(c));
	if (c)
		log_readahead_reuse(s->readahead, c);
	return st == ST_FORMAT ? ST_OK : st;
}

static struct open_block *first_open(const struct log_source *s)
{
	return &s->open[s->heap.items[0]];
}

/* Opens all blocks that may contain the next event. */
static enum status open_due(struct log_source *s, struct error *err)
{
	enum status st = ST_OK;

	while (st == ST_OK && s->next < s->index.count &&
	       (!s->heap.count ||
		s->index.blocks[s->next].first_begin_ns <= first_open(s)->begin_ns))
		st = open_next(s, err);
	s->next_ns =
		s->next < s->index.count ? s->index.blocks[s->next].first_begin_ns : UINT64_MAX;
	return st;
}

/* Returns the most argument values that a row may have after decoding. */
static inline size_t arg_space(const struct log_source *s, const struct log_cursor_head *h)
{
	bool grows = s->has_payloads && h->arg_count && h->arg_count < LOG_PAYLOAD_ARGS;

	return grows ? LOG_PAYLOAD_ARGS : h->arg_count;
}

static inline void give_row(struct log_source *s, const struct log_cursor_head *h)
{
	struct event *e = &s->events[s->given++];
	uint64_t *words = h->arg_count ? s->args + s->given_words : NULL;

	log_rows_event(h->rows, log_cursor_row(h, h->at), e, words);
	if (__builtin_expect(s->has_payloads, 0))
		log_payload_decode(s->index.trace, e, words);
	s->given_words += arg_space(s, h);
	e->step = 0; /* it contained the `order` column */
	if (__builtin_expect(e->begin_ns < s->begin_ns || (e->begin_ns == s->begin_ns &&
							   e->end_ns > s->end_ns && s->end_ns),
			     0)) {
		/* A block may contradict its header.  An event that would break the order begins
		 * with the previous event, and is counted. */
		trace_lose(s->index.trace, 0, LOSS_ORDER, 1);
		e->begin_ns = s->begin_ns;
		if (e->end_ns < e->begin_ns)
			e->end_ns = e->begin_ns;
		if (e->end_ns > s->end_ns)
			e->begin_ns++;
	}
	s->begin_ns = e->begin_ns;
	s->end_ns = e->end_ns;
}

/* Adds events to the batch.  Returns false if the batch is full, true if a block has ended or the
 * next one is due. */
static bool give_rows(struct log_source *s)
{
	for (;;) {
		struct open_block *first = first_open(s);
		struct log_cursor_head *h = log_cursor_head(first->cursor);
		uint64_t until_ns = s->next_ns;

		for (size_t i = 1; i <= 2 && i < s->heap.count; i++)
			if (s->open[s->heap.items[i]].begin_ns < until_ns)
				until_ns = s->open[s->heap.items[i]].begin_ns;
		do {
			if (s->given == s->batch_events ||
			    s->given_words + arg_space(s, h) > s->batch_words)
				return false;
			give_row(s, h);
			if (++h->at == h->count && !log_cursor_refill(first->cursor)) {
				heap_pop(&s->heap, open_before);
				lose_rows(s, log_cursor_lost(first->cursor));
				log_readahead_reuse(s->readahead, first->cursor);
				first->cursor = NULL;
				return true;
			}
			set_begin(first);
		} while (first->begin_ns < until_ns);
		heap_sink(&s->heap, 0, open_before);
		if (first->begin_ns >= s->next_ns)
			return true;
	}
}

static enum status log_next(struct source *source, struct batch *out, struct error *err)
{
	struct log_source *s = (struct log_source *)source;
	struct error fault;

	s->given = s->given_words = 0;
	while (!s->stopped) {
		if (!s->heap.count || s->next_ns <= first_open(s)->begin_ns)
			s->stopped = open_due(s, &fault) != ST_OK;
		if (s->stopped)
			s->index.fault = fault; /* returned after the events before it */
		else if (!s->heap.count || !give_rows(s))
			break;
	}
	*out = (struct batch){ .events = s->events, .count = s->given };
	if (s->given)
		return ST_OK;
	if (s->index.fault.status == ST_OK)
		return ST_END;
	if (err)
		*err = s->index.fault;
	s->index.fault.status = ST_OK;
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
