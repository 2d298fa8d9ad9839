/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work waits for a GPU: a call counts from its begin until the first of its work begins.
 *
 * Whether a call has any work is known when that begins, so calls wait in a ring until it is, at
 * most CALLS of them; one that is pushed out counts for nothing.  Begins of work wait beside, and
 * both are counted in the order of their times.
 *
 * Of a thousand processes a few calls each wait, mostly: rings begin small and grow by doubling.
 */
#include "convert/perfetto/derive.h"

#include "schemas/hash.h"

#include <stdlib.h>

enum {
	CALLS = 1024,
	STARTS = 2 * CALLS,
	FIRST = 16,
	ABREAST = 32, /* ids that follow each other have heads on one cache line */
};

struct perfetto_call {
	uint64_t correlation, begin_ns;
	uint32_t gpu; /* 0: no work of it was seen yet */
	uint16_t next; /* 1 + the place of the next of its hash */
};
struct perfetto_start {
	uint64_t at_ns;
	uint32_t gpu;
};

void perfetto_queue_release(struct perfetto_queue *q)
{
	free(q->calls);
	free(q->starts);
	*q = (struct perfetto_queue){0};
}

/* Room is a power of two, so that a place is a few bits of a number that only grows. */
static uint32_t call_place(const struct perfetto_queue *q, uint64_t number)
{
	return (uint32_t)number & (q->call_room - 1);
}

static struct perfetto_start *start_at(const struct perfetto_queue *q, uint64_t number)
{
	return &q->starts[number & (q->start_room - 1)];
}

/* 1 + the place of the first call of a hash; as many as calls, behind them. */
static uint16_t *head_of(const struct perfetto_queue *q, uint64_t correlation)
{
	uint16_t *heads = (uint16_t *)(q->calls + q->call_room);
	uint64_t hash = (correlation / ABREAST * HASH_A >> 32) * ABREAST + correlation % ABREAST;

	return &heads[hash & (q->call_room - 1)];
}

static void put_call(struct perfetto_queue *q, uint64_t number, const struct perfetto_call *call)
{
	uint16_t *head = head_of(q, call->correlation);
	struct perfetto_call *c = &q->calls[call_place(q, number)];

	*c = *call;
	c->next = *head;
	*head = (uint16_t)(call_place(q, number) + 1);
}

/* In twice the room those of one hash stand as they did: the last one first. */
static enum status grow_calls(struct perfetto_queue *q, struct error *err)
{
	struct perfetto_queue old = *q;

	q->call_room = old.call_room ? old.call_room * 2 : FIRST;
	q->calls = calloc(q->call_room, sizeof(*q->calls) + sizeof(uint16_t));
	if (!q->calls) {
		*q = old;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a list of launches");
	}
	for (uint64_t i = old.first_call; i < old.end_call; i++)
		put_call(q, i, &old.calls[call_place(&old, i)]);
	free(old.calls);
	return ST_OK;
}

static enum status grow_starts(struct perfetto_queue *q, struct error *err)
{
	struct perfetto_queue old = *q;

	q->start_room = old.start_room ? old.start_room * 2 : FIRST;
	q->starts = malloc(q->start_room * sizeof(*q->starts));
	if (!q->starts) {
		*q = old;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a list of launches");
	}
	for (uint64_t i = old.first_start; i < old.end_start; i++)
		*start_at(q, i) = *start_at(&old, i);
	free(old.starts);
	return ST_OK;
}

static enum status count_start(struct perfetto_derive *d, struct perfetto_queue *q,
			       struct error *err)
{
	const struct perfetto_start *s = start_at(q, q->first_start++);
	struct perfetto_gauge *g = &d->states[s->gpu - 1].queue;

	return perfetto_gauge_set(d, g, s->at_ns, g->now ? g->now - 1 : 0, err);
}

/* The oldest call leaves the ring; what began before it is counted first. */
static enum status leave(struct perfetto_derive *d, struct perfetto_queue *q, struct error *err)
{
	uint16_t place = (uint16_t)(call_place(q, q->first_call) + 1);
	struct perfetto_call *c = &q->calls[place - 1];
	uint16_t *at = head_of(q, c->correlation);
	struct perfetto_gauge *g;

	while (*at && *at != place)
		at = &q->calls[*at - 1].next;
	*at = c->next;
	q->first_call++;
	if (!c->gpu)
		return ST_OK;
	while (q->first_start < q->end_start && start_at(q, q->first_start)->at_ns < c->begin_ns)
		TRY(count_start(d, q, err));
	g = &d->states[c->gpu - 1].queue;
	return perfetto_gauge_set(d, g, c->begin_ns, g->now + 1, err);
}

enum status perfetto_queue_call(struct perfetto_derive *d, struct perfetto_queue *q,
				const struct event *e, struct error *err)
{
	struct perfetto_call call = {.correlation = e->correlation, .begin_ns = e->begin_ns};

	if (q->end_call - q->first_call == CALLS)
		TRY(leave(d, q, err));
	if (q->end_call - q->first_call == q->call_room)
		TRY(grow_calls(q, err));
	put_call(q, q->end_call++, &call);
	return ST_OK;
}

enum status perfetto_queue_work(struct perfetto_derive *d, struct perfetto_queue *q, uint32_t gpu,
				const struct event *e, struct error *err)
{
	uint16_t at;

	if (!q->calls)
		return ST_OK;
	at = *head_of(q, e->correlation);
	while (at && q->calls[at - 1].correlation != e->correlation)
		at = q->calls[at - 1].next;
	if (!at || q->calls[at - 1].gpu)
		return ST_OK;
	q->calls[at - 1].gpu = gpu;
	if (q->end_start - q->first_start == STARTS)
		TRY(count_start(d, q, err));
	if (q->end_start - q->first_start == q->start_room)
		TRY(grow_starts(q, err));
	*start_at(q, q->end_start++) = (struct perfetto_start){e->begin_ns, gpu};
	while (q->first_call < q->end_call && q->calls[call_place(q, q->first_call)].gpu)
		TRY(leave(d, q, err));
	return ST_OK;
}

void perfetto_queue_near(const struct perfetto_queue *q, uint64_t correlation)
{
	if (!q->calls)
		return;
	__builtin_prefetch(head_of(q, correlation), 1);
	__builtin_prefetch(&q->calls[call_place(q, q->first_call)], 1);
	__builtin_prefetch(&q->calls[call_place(q, q->end_call)], 1);
	if (q->starts)
		__builtin_prefetch(start_at(q, q->first_start), 1);
}

enum status perfetto_queue_end(struct perfetto_derive *d, struct perfetto_queue *q,
			       struct error *err)
{
	while (q->first_call < q->end_call)
		TRY(leave(d, q, err));
	while (q->first_start < q->end_start)
		TRY(count_start(d, q, err));
	return ST_OK;
}
