/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/rows_fast.h"

#include "collector/probe/cupti/cache.h"
#include "schemas/base/hash.h"
#include "schemas/log/encoder.h"
#include "schemas/log/log.h"

#define RUN static inline __attribute__((always_inline))
/*
 * Conditions are tested one by one: they nearly always hold, and branches that are predicted well
 * are cheaper than combining them.
 */
#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			return false;                                                              \
	} while (0)
enum {
	AHEAD = 4096, /* bytes by which prefetching is ahead */
	LOOP_STEPS = 1 << 15,
	LOOP_SLOT_BITS = 16,
	CACHED_CALL_BITS = 12,
};

/* ---- predictions ---- */

/* A row of GPU work that came after another one, and the step that came next the last time. */
struct loop_step {
	uint16_t before, row, next;
};
/* A call by its function and thread, which are all of it that repeats. */
struct cached_call {
	uint64_t key;  /* call_key() */
	uint32_t desc; /* 0: free */
	uint16_t layout;
	uint8_t slot; /* log_slot() of its track */
};
static struct {
	uint32_t generation;       /* of the cache whose rows these are */
	uint32_t step_count, step; /* step: that of the latest work; step 0 is none */
	struct loop_step steps[LOOP_STEPS];
	uint16_t slots[1 << LOOP_SLOT_BITS]; /* steps by the hash of both rows */
	struct cached_call calls[1 << CACHED_CALL_BITS];
} predictor;

static void clear_steps(void)
{
	predictor.step_count = predictor.step = 0;
	predictor.steps[0] = (struct loop_step){ 0 };
	memset(predictor.slots, 0, sizeof(predictor.slots));
}

static void follow_cache(void)
{
	if (predictor.generation == cupti_cache.generation)
		return;
	predictor.generation = cupti_cache.generation;
	clear_steps();
	memset(predictor.calls, 0, sizeof(predictor.calls));
}

/* Calls follow each other in any order, but there are few different ones. */
static inline uint64_t call_key(const uint8_t *record)
{
	return (read_word(record, CALL_WHO) & CALL_MASK) | read_word(record, CALL_THREAD) >> 32;
}

static inline struct cached_call *cached_call_at(uint16_t layout, uint64_t key)
{
	return &predictor.calls[(key ^ layout) * HASH_A >> (64 - CACHED_CALL_BITS)];
}

/* The step of `row` after `before`, added if it is new. */
static uint32_t find_step(uint16_t before, uint16_t row)
{
	uint64_t hash = ((uint64_t)before << 16 | row) * HASH_A;
	uint16_t *slot = &predictor.slots[hash >> (64 - LOOP_SLOT_BITS)];
	const struct loop_step *s = &predictor.steps[*slot];

	if (!*slot || s->before != before || s->row != row) {
		if (predictor.step_count + 1 == LOOP_STEPS)
			clear_steps();
		*slot = (uint16_t)++predictor.step_count;
		predictor.steps[*slot] = (struct loop_step){ .before = before, .row = row };
	}
	return *slot;
}

void cupti_run_learn(const struct cupti_layout *p, const uint8_t *record, uint32_t number)
{
	const struct cache_row *row = &cupti_cache.rows[number];

	follow_cache();
	if (p->is_call) {
		uint64_t key = call_key(record);

		*cached_call_at(p->index, key) = (struct cached_call){
			.key = key,
			.desc = row->desc,
			.layout = p->index,
			.slot = log_slot(row->track),
		};
	} else if (p->record->kind <= KIND_GRAPH) {
		struct loop_step *s = &predictor.steps[predictor.step];
		uint32_t next = find_step(s->row, (uint16_t)number);

		if (predictor.step) /* find_step() has not forgotten it */
			s->next = (uint16_t)next;
		predictor.step = next;
	}
}

/* ---- where rows go ---- */

/* The encoder that rows go to, with what is the same for many of them. */
struct into {
	struct log_encoder *e; /* NULL: none */
	uint64_t *words;
	uint8_t *slots;
	uint32_t row, before, limit; /* limit: where the writer makes a block of it */
	bool wide;                   /* values and flags have columns */
};
/* The state of one run.  Its address must not escape, so that it stays in registers. */
struct hand {
	struct log_places places;
	struct into works, calls;
	uint64_t first, last, add; /* of the clock epoch */
	uint64_t least_end;        /* records that end earlier may belong to a warmup */
	uint32_t rows, nodes, step;
};

static inline uint32_t kind_of(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind;
}

/* The buffer lies where another core wrote it; beyond its end nothing happens. */
RUN void look_ahead(const uint8_t *record)
{
	__builtin_prefetch(record + AHEAD);
	__builtin_prefetch(record + AHEAD + 64);
	__builtin_prefetch(record + AHEAD + 128);
	__builtin_prefetch(record + AHEAD + 192);
}

/*
 * Empty where the writer has to put the row, because only the writer starts blocks with columns of
 * values.
 */
static struct into into_open(struct log_encoder *e)
{
	if (!e || (e->wide ? !e->rows : e->rare.order != 0))
		return (struct into){ 0 };
	return (struct into){ .e = e,
			      .words = e->words,
			      .slots = e->slots,
			      .row = e->rows,
			      .before = e->rows,
			      .limit = e->target - 1,
			      .wide = e->wide };
}

RUN uint32_t into_close(const struct into *in)
{
	if (in->e)
		in->e->rows = in->row;
	return in->row - in->before;
}

/*
 * Selects the encoder of the descriptor.  False: the row is left out, or the writer has to put it.
 */
RUN bool into_find(struct hand *h, struct into *in, uint32_t desc)
{
	NEED(desc < h->places.count);
	struct log_encoder *e = h->places.by_desc[desc];
	if (__builtin_expect(e != in->e || !e, 0)) {
		h->rows += into_close(in);
		*in = into_open(e);
	}
	NEED(in->row < in->limit);
	return true;
}

/* Both times lie in the clock epoch, in order, and after the warmup. */
RUN bool are_usable(const struct hand *h, uint64_t begin, uint64_t end)
{
	NEED(begin >= h->first);
	NEED(begin <= end);
	NEED(end <= h->last);
	NEED(end >= h->least_end);
	return true;
}

RUN bool into_put_rare(const struct into *in, uint64_t value, uint8_t flags)
{
	uint64_t *at = in->words + in->row;

	if (__builtin_expect(!in->wide, 1))
		return !((value ^ in->e->rare.value) | (flags ^ in->e->rare.flags));
	at[VALUES * ENCODER_STRIDE] = value;
	at[FLAGS * ENCODER_STRIDE] = flags;
	at[ORDERS * ENCODER_STRIDE] = 0;
	return true;
}

RUN void into_put(const struct hand *h, struct into *in, uint32_t desc, uint8_t slot,
		  uint64_t begin, uint64_t end, uint64_t correlation)
{
	log_put_words(in->words + in->row, desc, begin + h->add, end + h->add, correlation);
	in->slots[in->row++] = slot;
}

/* ---- calls ---- */

RUN bool put_call(struct hand *h, const struct cupti_layout *p, uint16_t index,
		  const uint8_t *record)
{
	uint64_t key = call_key(record);
	const struct cached_call *c = cached_call_at(index, key);
	uint64_t begin = read_word(record, CALL_BEGIN), end = read_word(record, CALL_END);
	uint64_t correlation = read_word(record, CALL_CORRELATION);
	uint64_t value = (correlation >> 32 ^ p->value.sign) - p->value.sign;

	NEED(c->key == key);
	NEED(c->layout == index);
	NEED(into_find(h, &h->calls, c->desc));
	NEED(are_usable(h, begin, end));
	NEED(into_put_rare(&h->calls, value, p->flags));
	into_put(h, &h->calls, c->desc, c->slot, begin, end, (uint32_t)correlation);
	return true;
}

/* Each of these returns the first record that was not put, or is of another kind. */
RUN const uint8_t *put_calls(struct hand *h, const struct cupti_layout *p, const uint8_t *at,
			     const uint8_t *end)
{
	uint32_t kind = kind_of(at);
	uint16_t index = p->index;

	while (at < end && kind_of(at) == kind && put_call(h, p, index, at)) {
		__builtin_prefetch(at + AHEAD);
		at += CALL_BYTES;
	}
	return at;
}

/* ---- work on a GPU ---- */

/* False: a time lies in another clock epoch. */
RUN bool put_event_arg(const struct hand *h, const struct cupti_layout *p, const uint8_t *record)
{
	uint64_t *at = h->works.words + h->works.row + ARG * ENCODER_STRIDE;

	for (unsigned i = 0; i < p->arg_count; i++, at += ENCODER_STRIDE) {
		uint64_t word = read_number(record, &p->args[i]);

		if (p->args[i].is_time && word) {
			if (word < h->first || word > h->last)
				return false;
			word += h->add;
		}
		*at = word;
	}
	return true;
}

/*
 * The predicted row's layout is also the layout of this record; zero fields are part of its mask.
 */
RUN bool is_of_layout(const struct cupti_family *f, const struct cupti_layout *p,
		      const uint8_t *record)
{
	if (__builtin_expect(p->variant != 0, 0))
		return cupti_layout_of(f, record, 0) == p;
	return !f->completed_at ||
	       read_word(record, f->completed_at) == read_word(record, f->end_at);
}

RUN bool put_work(struct hand *h, const struct cupti_family *f, const uint8_t *record)
{
	uint32_t next = predictor.steps[h->step].next;
	const struct cache_row *row = &cupti_cache.rows[predictor.steps[next].row];
	const struct cupti_layout *p = row->p;

	NEED(p->family == f);
	NEED(is_of_layout(f, p, record));
	NEED(row_matches(row, p, record));
	NEED(into_find(h, &h->works, row->desc));
	uint64_t begin = read_word(record, p->begin.at);
	uint64_t end = read_word(record, p->end.at);
	NEED(are_usable(h, begin, end));
	NEED(into_put_rare(&h->works, read_number(record, &p->value), p->flags));
	NEED(put_event_arg(h, p, record));
	into_put(h, &h->works, row->desc, log_slot(row->track), begin, end,
		 read_number(record, &p->correlation));
	h->step = next;
	h->nodes += p->is_node;
	return true;
}

RUN const uint8_t *put_works(struct hand *h, const struct cupti_family *f, const uint8_t *at,
			     const uint8_t *end)
{
	uint32_t kind = kind_of(at);
	while (at < end && kind_of(at) == kind && put_work(h, f, at)) {
		look_ahead(at);
		at += f->size;
	}
	return at;
}

/* ---- runs ---- */

static void hand_close(struct cupti_run *r, const struct hand *h)
{
	uint32_t rows = h->rows + into_close(&h->calls) + into_close(&h->works);

	predictor.step = h->step;
	cupti_cache.counts.predicted += rows;
	r->rows += rows;
	r->nodes += h->nodes;
}

const uint8_t *cupti_run_put(struct cupti_run *r, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *from;

	follow_cache();
	uint64_t add = (uint64_t)r->epoch.add;

	struct hand h = (struct hand){ .places = r->places,
				       .first = r->epoch.first + !r->epoch.first,
				       .last = r->epoch.last,
				       .add = add,
				       .least_end = r->begin_ns ? r->begin_ns - add : 0,
				       .step = predictor.step };
	do {
		from = at;
		const struct cupti_family *f = cupti_family_of(kind_of(at), at);
		if (f && f->is_call && !r->correlations)
			at = put_calls(&h, f->layouts[0], at, end);
		else if (f && f->is_work)
			at = put_works(&h, f, at, end);
	} while (at < end && at != from);
	struct hand done = h; /* a copy, so that the address of the original does not escape */
	hand_close(r, &done);
	return at;
}
