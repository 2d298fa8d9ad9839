/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/step/queue.h"

#include <stdlib.h>
#include <string.h>

enum { PUT_MAX = 1024 };

/* An index and a pointer share event.vary: what is held may move. */
static const uint64_t *vary_hold(size_t index)
{
	return (const uint64_t *)(uintptr_t)(index + 1);
}

static size_t vary_held(const uint64_t *vary)
{
	return (size_t)(uintptr_t)vary - 1;
}

void queue_release(struct event_queue *q)
{
	free(q->events);
	free(q->tags);
	free(q->words);
	free(q->vary_of);
	memset(q, 0, sizeof(*q));
}

static enum status queue_room(struct event_queue *q, size_t count, struct error *err)
{
	size_t cap = q->cap ? q->cap : 1024;
	struct event *events;
	uint32_t *tags;

	while (cap - q->end < count)
		cap *= 2;
	if (cap == q->cap)
		return ST_OK;
	events = realloc(q->events, cap * sizeof(*events));
	if (events)
		q->events = events;
	tags = realloc(q->tags, cap * sizeof(*tags));
	if (tags)
		q->tags = tags;
	if (!events || !tags)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %zu waiting events", cap);
	q->cap = cap;
	return ST_OK;
}

/* Tables are complete before the first event comes. */
static enum status shapes_take(struct event_queue *q, const struct trace *trace, struct error *err)
{
	uint32_t count = trace_count(trace, TRACE_SHAPES);

	q->vary_of = calloc((size_t)count + 1, sizeof(*q->vary_of));
	if (!q->vary_of)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for waiting events");
	q->shape_count = count;
	for (uint32_t i = 1; i <= count; i++) {
		uint32_t vary = trace_get_shape(trace, i)->vary_count;

		q->vary_of[i] = vary < UINT16_MAX ? (uint16_t)vary : UINT16_MAX;
	}
	return ST_OK;
}

static size_t vary_count(const struct event_queue *q, const struct trace *trace, uint32_t shape)
{
	if (shape <= q->shape_count && q->vary_of[shape] < UINT16_MAX)
		return q->vary_of[shape];
	return trace_get_shape(trace, shape)->vary_count;
}

static enum status words_room(struct event_queue *q, size_t count, struct error *err)
{
	size_t cap = q->word_cap ? q->word_cap : 1024;
	uint64_t *words;

	while (cap - q->word_end < count)
		cap *= 2;
	words = realloc(q->words, cap * sizeof(*words));
	if (!words)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for waiting events");
	q->words = words;
	q->word_cap = cap;
	return ST_OK;
}

static enum status words_put(struct event_queue *q, struct event *e, size_t count,
			     struct error *err)
{
	if (q->word_cap - q->word_end < count)
		TRY(words_room(q, count, err));
	for (size_t i = 0; i < count; i++)
		q->words[q->word_end + i] = e->vary[i];
	e->vary = vary_hold(q->word_end);
	q->word_end += count;
	return ST_OK;
}

/* Everything moves to the front: only when at least as much has left, so it costs little. */
static void queue_compact(struct event_queue *q)
{
	size_t count = queue_count(q), first = 0;
	bool found = false;

	if (!q->head || q->head < count)
		return;
	memmove(q->events, queue_at(q, 0), count * sizeof(*q->events));
	memmove(q->tags, queue_tag(q, 0), count * sizeof(*q->tags));
	q->head = 0;
	q->end = count;
	for (size_t i = 0; i < count; i++) {
		struct event *e = queue_at(q, i);

		if (!e->vary)
			continue;
		if (!found)
			first = vary_held(e->vary);
		found = true;
		e->vary = vary_hold(vary_held(e->vary) - first);
	}
	if (!found)
		first = q->word_end;
	q->word_end -= first;
	if (q->word_end)
		memmove(q->words, q->words + first, q->word_end * sizeof(*q->words));
}

enum status queue_put(struct event_queue *q, const struct trace *trace, struct batch *b,
		      struct batch *taken, struct error *err)
{
	*taken = (struct batch){ b->events, b->count < PUT_MAX ? b->count : PUT_MAX };
	b->events += taken->count;
	b->count -= taken->count;
	queue_compact(q);
	TRY(queue_room(q, taken->count, err));
	if (!q->vary_of)
		TRY(shapes_take(q, trace, err));
	for (size_t i = 0; i < taken->count; i++) {
		struct event *e = &q->events[q->end];

		*e = taken->events[i];
		if (e->vary)
			TRY(words_put(q, e, vary_count(q, trace, e->shape), err));
		q->end++;
	}
	return ST_OK;
}

struct batch queue_lend(struct event_queue *q, size_t count)
{
	struct batch b = { queue_at(q, 0), count };

	for (; q->lent < count; q->lent++) {
		struct event *e = queue_at(q, q->lent);

		if (e->vary)
			e->vary = q->words + vary_held(e->vary);
	}
	return b;
}

void queue_drop(struct event_queue *q)
{
	q->head += q->lent;
	q->taken += q->lent;
	q->lent = 0;
}
