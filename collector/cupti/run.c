/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti/run.h"

#include "collector/cupti/seen.h"
#include "schemas/log_encoder.h"

/* Compiled twice: for any machine, and for one with AVX2. */
#define RUN static inline __attribute__((always_inline))
/* Each by itself and in this order: what nearly always holds is a branch, never arithmetic. */
#define NEED(condition) do { if (__builtin_expect(!(condition), 0)) return false; } while (0)
enum { AHEAD = 4096 }; /* bytes that are asked for before they are needed */

/* The encoder that rows go to, with what is the same for many of them. */
struct into {
	struct log_encoder *e; /* NULL: none */
	uint64_t *words;
	uint8_t *slots;
	uint32_t row, before, limit; /* limit: where the writer makes a block of it */
	bool wide;                   /* amount and flags have columns */
};
/* All that changes during a run or decides about it; nobody has its address but what is inlined. */
struct hand {
	struct log_places places;
	struct into works, calls;
	uint64_t first, last, add; /* of the era */
	uint64_t least_end;        /* less is of a warm-up, perhaps */
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

/* ---- where rows go ---- */

/* None where the writer has to put the row: it alone begins blocks whose amounts differ. */
static struct into into_open(struct log_encoder *e)
{
	if (!e || (e->wide ? !e->rows : e->rare.order != 0))
		return (struct into){ 0 };
	return (struct into){ .e = e, .words = e->words, .slots = e->slots, .row = e->rows,
			      .before = e->rows, .limit = e->target - 1, .wide = e->wide };
}

RUN uint32_t into_close(const struct into *in)
{
	if (in->e)
		in->e->rows = in->row;
	return in->row - in->before;
}

/* Its row in the encoder of its site.  False: the row is left out, or the writer has to put it. */
RUN bool into_find(struct hand *h, struct into *in, uint32_t site)
{
	struct log_encoder *e;

	NEED(site < h->places.count);
	e = h->places.by_site[site];
	if (__builtin_expect(e != in->e || !e, 0)) {
		h->rows += into_close(in);
		*in = into_open(e);
	}
	NEED(in->row < in->limit);
	return true;
}

/* Both times of the era, in order, and not of a warm-up. */
RUN bool are_usable(const struct hand *h, uint64_t begin, uint64_t end)
{
	NEED(begin >= h->first);
	NEED(begin <= end);
	NEED(end <= h->last);
	NEED(end >= h->least_end);
	return true;
}

RUN bool into_put_rare(const struct into *in, uint64_t amount, uint8_t flags)
{
	uint64_t *at = in->words + in->row;

	if (__builtin_expect(!in->wide, 1))
		return !((amount ^ in->e->rare.amount) | (flags ^ in->e->rare.flags));
	at[AMOUNTS * ENCODER_STRIDE] = amount;
	at[FLAGS * ENCODER_STRIDE] = flags;
	at[ORDERS * ENCODER_STRIDE] = 0;
	return true;
}

RUN void into_put(const struct hand *h, struct into *in, uint32_t site, uint8_t slot,
		  uint64_t begin, uint64_t end, uint64_t join)
{
	log_put_words(in->words + in->row, site, begin + h->add, end + h->add, join);
	in->slots[in->row++] = slot;
}

/* ---- calls ---- */

RUN bool put_call(struct hand *h, const struct cupti_plan *p, uint16_t index,
		  const uint8_t *record)
{
	uint64_t what = seen_call_what(record);
	const struct seen_call *c = seen_call_at(index, what);
	uint64_t begin = plan_word(record, CALL_BEGIN), end = plan_word(record, CALL_END);
	uint64_t join = plan_word(record, CALL_JOIN);
	uint64_t amount = (join >> 32 ^ p->amount.sign) - p->amount.sign;

	NEED(c->what == what);
	NEED(c->plan == index);
	NEED(into_find(h, &h->calls, c->site));
	NEED(are_usable(h, begin, end));
	NEED(into_put_rare(&h->calls, amount, p->flags));
	into_put(h, &h->calls, c->site, c->slot, begin, end, (uint32_t)join);
	return true;
}

/* Each of these returns the first record that was not put, or is of another kind. */
RUN const uint8_t *put_calls(struct hand *h, const struct cupti_plan *p, const uint8_t *at,
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

/* False: a time that is not of the era. */
RUN bool put_vary(const struct hand *h, const struct cupti_plan *p, const uint8_t *record)
{
	uint64_t *at = h->works.words + h->works.row + VARY * ENCODER_STRIDE;
	unsigned i;

	for (i = 0; i < p->vary_count; i++, at += ENCODER_STRIDE) {
		uint64_t word = plan_number(record, &p->vary[i]);

		if (p->vary[i].is_time && word) {
			if (word < h->first || word > h->last)
				return false;
			word += h->add;
		}
		*at = word;
	}
	return true;
}

/* The plan that its row has is that of the record too; what is 0 for it is in its mask. */
RUN bool is_of_plan(const struct cupti_family *f, const struct cupti_plan *p,
		    const uint8_t *record)
{
	if (__builtin_expect(p->flavour != 0, 0))
		return cupti_plan_of(f, record, 0) == p;
	return !f->completed_at ||
	       plan_word(record, f->completed_at) == plan_word(record, f->end_at);
}

RUN bool put_work(struct hand *h, const struct cupti_family *f, const uint8_t *record)
{
	uint32_t next = seen_next_step(h->step);
	const struct seen_row *row = &cupti_seen.rows[cupti_seen.steps[next].row];
	const struct cupti_plan *p = row->p;
	uint64_t begin, end;

	NEED(p->family == f);
	NEED(is_of_plan(f, p, record));
	NEED(seen_is(row, p, record));
	NEED(into_find(h, &h->works, row->site));
	begin = plan_word(record, p->begin.at);
	end = plan_word(record, p->end.at);
	NEED(are_usable(h, begin, end));
	NEED(into_put_rare(&h->works, plan_number(record, &p->amount), p->flags));
	NEED(put_vary(h, p, record));
	into_put(h, &h->works, row->site, log_slot(row->track), begin, end,
		 plan_number(record, &p->join));
	h->step = next;
	h->nodes += p->is_node;
	return true;
}

RUN const uint8_t *put_works(struct hand *h, const struct cupti_family *f, const uint8_t *at,
			     const uint8_t *end)
{
	uint32_t kind = kind_of(at);
	const uint8_t *from = at;

	while (at < end && kind_of(at) == kind && put_work(h, f, at)) {
		look_ahead(at);
		at += f->size;
	}
	if (at != from)
		cupti_seen.last = cupti_seen.steps[h->step].row;
	return at;
}

/* ---- runs ---- */

static struct hand hand_open(const struct cupti_run *r)
{
	uint64_t add = (uint64_t)r->era.add;

	return (struct hand){ .places = r->places, .first = r->era.first + !r->era.first,
			      .last = r->era.last, .add = add,
			      .least_end = r->begin_ns ? r->begin_ns - add : 0,
			      .step = cupti_seen.step };
}

static void hand_close(struct cupti_run *r, const struct hand *h)
{
	uint32_t rows = h->rows + into_close(&h->calls) + into_close(&h->works);

	cupti_seen.step = h->step;
	cupti_seen.counts.guessed += rows;
	r->rows += rows;
	r->nodes += h->nodes;
}

RUN const uint8_t *put_all(struct cupti_run *r, const uint8_t *at, const uint8_t *end)
{
	struct hand h = hand_open(r), done;
	const struct cupti_family *f;
	const uint8_t *from;

	do {
		from = at;
		f = cupti_family_of(kind_of(at), at);
		if (f && f->is_call && !r->joins)
			at = put_calls(&h, f->plans[0], at, end);
		else if (f && f->is_work)
			at = put_works(&h, f, at, end);
	} while (at < end && at != from);
	done = h; /* so that nobody has the address of the other */
	hand_close(r, &done);
	return at;
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2")))
static const uint8_t *put_all_wide(struct cupti_run *r, const uint8_t *at, const uint8_t *end)
{
	return put_all(r, at, end);
}
#endif

const uint8_t *cupti_run_put(struct cupti_run *r, const uint8_t *at, const uint8_t *end)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	    __builtin_cpu_supports("bmi2"))
		return put_all_wide(r, at, end);
#endif
	return put_all(r, at, end);
}
