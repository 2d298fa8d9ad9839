/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work waits for a GPU: a call counts from its begin until the first of its work begins.
 *
 * Whether a call has any work is known when that begins, so calls wait in a ring until it is, at
 * most CALLS of them; one that is pushed out counts for nothing.  Begins of work wait beside, and
 * both are counted in the order of their times.
 */
#include "convert/perfetto/derive.h"

#include "schemas/hash.h"

#include <stdlib.h>

enum { CALLS = 1024, STARTS = 2 * CALLS, HEADS = CALLS };

struct call {
	uint64_t correlation, begin_ns;
	uint32_t gpu; /* 0: no work of it was seen yet */
	uint16_t next; /* 1 + the place of the next of its hash */
};
struct start {
	uint64_t at_ns;
	uint32_t gpu;
};
struct perfetto_queue {
	struct call calls[CALLS];
	struct start starts[STARTS];
	uint16_t heads[HEADS]; /* 1 + the place of the first call of a hash */
	uint64_t first_call, end_call, first_start, end_start;
};

struct perfetto_queue *perfetto_queue_new(void)
{
	return calloc(1, sizeof(struct perfetto_queue));
}

void perfetto_queue_free(struct perfetto_queue *q)
{
	free(q);
}

static uint16_t *head_of(struct perfetto_queue *q, uint64_t correlation)
{
	return &q->heads[hash_word(0, correlation) % HEADS];
}

static enum status count_start(struct perfetto_derive *d, struct perfetto_queue *q,
			       struct error *err)
{
	const struct start *s = &q->starts[q->first_start++ % STARTS];
	struct perfetto_gauge *g = &d->states[s->gpu - 1].queue;

	return perfetto_gauge_set(d, g, s->at_ns, g->now ? g->now - 1 : 0, err);
}

/* The oldest call leaves the ring; what began before it is counted first. */
static enum status leave(struct perfetto_derive *d, struct perfetto_queue *q, struct error *err)
{
	struct call *c = &q->calls[q->first_call % CALLS];
	uint16_t *at = head_of(q, c->correlation);
	uint16_t place = (uint16_t)(q->first_call % CALLS + 1);
	struct perfetto_gauge *g;

	while (*at && *at != place)
		at = &q->calls[*at - 1].next;
	*at = c->next;
	q->first_call++;
	if (!c->gpu)
		return ST_OK;
	while (q->first_start < q->end_start &&
	       q->starts[q->first_start % STARTS].at_ns < c->begin_ns)
		TRY(count_start(d, q, err));
	g = &d->states[c->gpu - 1].queue;
	return perfetto_gauge_set(d, g, c->begin_ns, g->now + 1, err);
}

enum status perfetto_queue_call(struct perfetto_derive *d, struct perfetto_queue *q,
				const struct event *e, struct error *err)
{
	uint16_t *head = head_of(q, e->correlation);
	struct call *c;

	if (q->end_call - q->first_call == CALLS)
		TRY(leave(d, q, err));
	c = &q->calls[q->end_call % CALLS];
	*c = (struct call){e->correlation, e->begin_ns, 0, *head};
	*head = (uint16_t)(q->end_call++ % CALLS + 1);
	return ST_OK;
}

enum status perfetto_queue_work(struct perfetto_derive *d, struct perfetto_queue *q, uint32_t gpu,
				const struct event *e, struct error *err)
{
	uint16_t at = *head_of(q, e->correlation);

	while (at && q->calls[at - 1].correlation != e->correlation)
		at = q->calls[at - 1].next;
	if (!at || q->calls[at - 1].gpu)
		return ST_OK;
	q->calls[at - 1].gpu = gpu;
	if (q->end_start - q->first_start == STARTS)
		TRY(count_start(d, q, err));
	q->starts[q->end_start++ % STARTS] = (struct start){e->begin_ns, gpu};
	while (q->first_call < q->end_call && q->calls[q->first_call % CALLS].gpu)
		TRY(leave(d, q, err));
	return ST_OK;
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
