/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/context/internal.h"

#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { PUT_MAX = 1024 };

/* While an event is in the queue, its words may move, so its `args` is an index stored as a
 * pointer. */
static const uint64_t *args_of_index(size_t index)
{
	return (const uint64_t *)(uintptr_t)(index + 1);
}

static size_t index_of_args(const uint64_t *args)
{
	return (size_t)(uintptr_t)args - 1;
}

void queue_release(struct event_queue *q)
{
	free(q->events);
	free(q->tags);
	free(q->words);
	free(q->schema_words);
}

/* Caches the number of argument words of each schema.  The schemas are complete before the first
 * event comes. */
static enum status schemas_take(struct event_queue *q, const struct trace *trace, struct error *err)
{
	uint32_t count = trace_count(trace, TRACE_SCHEMAS);

	TRY(vec_new(&q->schema_words, (size_t)count + 1, err));
	q->schema_count = count;
	for (uint32_t i = 1; i <= count; i++) {
		uint32_t words = trace_get_schema(trace, i)->arg_count;

		q->schema_words[i] = words < UINT16_MAX ? (uint16_t)words : UINT16_MAX;
	}
	return ST_OK;
}

static enum status words_put(struct event_queue *q, const struct trace *trace, struct event *e,
			     struct error *err)
{
	size_t count = e->schema <= q->schema_count ? q->schema_words[e->schema] : UINT16_MAX;

	if (count == UINT16_MAX)
		count = trace_get_schema(trace, e->schema)->arg_count;
	TRY(vec_reserve(&q->words, &q->word_cap, q->word_end + count, err));
	for (size_t i = 0; i < count; i++)
		q->words[q->word_end + i] = e->args[i];
	e->args = args_of_index(q->word_end);
	q->word_end += count;
	return ST_OK;
}

/* Moves the queue to the front of its memory, but only if at least as many events have left, so
 * that the cost per event is small. */
static void queue_compact(struct event_queue *q)
{
	size_t count = queue_count(q), first = q->word_end;
	bool found = false;

	if (!q->head || q->head < count)
		return;
	memmove(q->events, q->events + q->head, count * sizeof(*q->events));
	memmove(q->tags, q->tags + q->head, count * sizeof(*q->tags));
	q->head = 0;
	q->end = count;
	for (size_t i = 0; i < count; i++) {
		struct event *e = queue_at(q, i);

		if (!e->args)
			continue;
		if (!found)
			first = index_of_args(e->args);
		found = true;
		e->args = args_of_index(index_of_args(e->args) - first);
	}
	q->word_end -= first;
	if (q->word_end)
		memmove(q->words, q->words + first, q->word_end * sizeof(*q->words));
}

enum status queue_put(struct event_queue *q, const struct trace *trace, struct batch *b,
		      struct error *err)
{
	size_t count = b->count < PUT_MAX ? b->count : PUT_MAX;

	if (!q->schema_words)
		TRY(schemas_take(q, trace, err));
	queue_compact(q);
	TRY(vec_reserve(&q->events, &q->cap, q->end + count, err));
	TRY(vec_reserve(&q->tags, &q->tag_cap, q->end + count, err));
	for (size_t i = 0; i < count; i++) {
		struct event *e = &q->events[q->end];

		*e = b->events[i];
		if (e->args)
			TRY(words_put(q, trace, e, err));
		q->end++;
	}
	b->events += count;
	b->count -= count;
	return ST_OK;
}

struct event *queue_lend(struct event_queue *q, size_t count)
{
	for (; q->lent < count; q->lent++) {
		struct event *e = queue_at(q, q->lent);

		if (e->args)
			e->args = q->words + index_of_args(e->args);
	}
	return queue_at(q, 0);
}

void queue_drop(struct event_queue *q)
{
	q->head += q->lent;
	q->taken += q->lent;
	q->lent = 0;
}
