/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work waits for a GPU: a call counts from its begin until the first of its work begins.
 *
 * Whether a call has any work is known only when that begins, so calls wait in a ring until then,
 * at most CALLS of them; a call that is pushed out counts for nothing.  Begins of work wait beside,
 * and both are counted in the order of their times.
 */
#include "convert/sink/perfetto/derive.h"

#include <stdlib.h>

enum { CALLS = 1024, WORKS = 2 * CALLS, FIRST_CAP = 16 };

struct queued_call {
	uint64_t correlation, begin_ns;
	uint32_t gpu; /* 0: none of its work began yet */
};
struct begun_work {
	uint64_t at_ns;
	uint32_t gpu;
};

void perfetto_queue_release(struct perfetto_queue *q)
{
	free(q->calls.items);
	free(q->works.items);
	map_release(&q->call_of);
}

static struct queued_call *call_at(const struct perfetto_queue *q, uint64_t number)
{
	return (struct queued_call *)q->calls.items + (number & (q->calls.cap - 1));
}

static struct begun_work *work_at(const struct perfetto_queue *q, uint64_t number)
{
	return (struct begun_work *)q->works.items + (number & (q->works.cap - 1));
}

/* Doubles the capacity for items of `size` bytes: they keep their numbers, not their places. */
static enum status ring_grow(struct perfetto_ring *r, size_t size, struct error *err)
{
	size_t cap = r->cap ? r->cap * 2 : FIRST_CAP;
	uint8_t *items;

	items = malloc(cap * size);
	if (!items)
		return fail_memory(err);
	for (uint64_t i = r->first; i < r->end; i++)
		memcpy(items + (i & (cap - 1)) * size,
		       (uint8_t *)r->items + (i & (r->cap - 1)) * size, size);
	free(r->items);
	r->items = items;
	r->cap = cap;
	return ST_OK;
}

static enum status count_work(struct perfetto_derive *d, struct perfetto_queue *q,
			      struct error *err)
{
	const struct begun_work *w = work_at(q, q->works.first++);
	struct perfetto_gauge *g = &d->states[w->gpu - 1].queue;

	return perfetto_gauge_set(d, g, w->at_ns, g->now ? g->now - 1 : 0, err);
}

/* The oldest call leaves the ring; work that began before it is counted first. */
static enum status leave(struct perfetto_derive *d, struct perfetto_queue *q, struct error *err)
{
	uint64_t number = q->calls.first++;
	const struct queued_call *c = call_at(q, number);
	const uint64_t *last = map_find(&q->call_of, c->correlation);
	struct perfetto_gauge *g;

	if (last && *last == number)
		map_remove(&q->call_of, c->correlation);
	if (!c->gpu)
		return ST_OK;
	while (q->works.first < q->works.end && work_at(q, q->works.first)->at_ns < c->begin_ns)
		TRY(count_work(d, q, err));
	g = &d->states[c->gpu - 1].queue;
	return perfetto_gauge_set(d, g, c->begin_ns, g->now + 1, err);
}

enum status perfetto_queue_call(struct perfetto_derive *d, struct perfetto_queue *q,
				const struct event *e, struct error *err)
{
	uint64_t *last;

	if (q->calls.end - q->calls.first == CALLS)
		TRY(leave(d, q, err));
	if (q->calls.end - q->calls.first == q->calls.cap)
		TRY(ring_grow(&q->calls, sizeof(struct queued_call), err));
	last = map_put(&q->call_of, e->correlation, NULL);
	if (!last)
		return fail_memory(err);
	*last = q->calls.end;
	*call_at(q, q->calls.end++) =
		(struct queued_call){ .correlation = e->correlation, .begin_ns = e->begin_ns };
	return ST_OK;
}

enum status perfetto_queue_work(struct perfetto_derive *d, struct perfetto_queue *q, uint32_t gpu,
				const struct event *e, struct error *err)
{
	const uint64_t *last = map_find(&q->call_of, e->correlation);
	struct queued_call *c = last ? call_at(q, *last) : NULL;

	if (!c || c->gpu)
		return ST_OK;
	c->gpu = gpu;
	if (q->works.end - q->works.first == WORKS)
		TRY(count_work(d, q, err));
	if (q->works.end - q->works.first == q->works.cap)
		TRY(ring_grow(&q->works, sizeof(struct begun_work), err));
	*work_at(q, q->works.end++) = (struct begun_work){ e->begin_ns, gpu };
	while (q->calls.first < q->calls.end && call_at(q, q->calls.first)->gpu)
		TRY(leave(d, q, err));
	return ST_OK;
}

enum status perfetto_queue_end(struct perfetto_derive *d, struct perfetto_queue *q,
			       struct error *err)
{
	while (q->calls.first < q->calls.end)
		TRY(leave(d, q, err));
	while (q->works.first < q->works.end)
		TRY(count_work(d, q, err));
	return ST_OK;
}
