/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step/queue.h - events that a stage holds back until it knows more.
 *
 * A queue of copies, their vary words included, so the batch they came in may go.  Each event has
 * a tag for its owner's use.  Events are counted from the oldest that is held; pointers are good
 * to the next put or drop.  One thread.
 */
#ifndef CONVERT_STEP_QUEUE_H
#define CONVERT_STEP_QUEUE_H

#include "schemas/event.h"
#include "schemas/trace.h"

struct event_queue { /* zeroed: empty */
	struct event *events;
	uint32_t *tags;
	size_t head, end, cap; /* held are events[head .. end) */
	uint64_t *words;       /* while held, event.vary is 1 + an index into this, as a pointer */
	size_t word_end, word_cap;
	size_t lent;    /* of the oldest, vary points to the words */
	uint64_t taken; /* events that left: numbers of events are counted from the first ever */
	uint16_t *vary_of; /* words of a shape, by its id */
	uint32_t shape_count;
};

void queue_release(struct event_queue *q);
/*
 * Copies the first events of `b`, no more than the processor's cache likes, and takes them off it;
 * *taken are those.
 */
enum status queue_put(struct event_queue *q, const struct trace *trace, struct batch *b,
		      struct batch *taken, struct error *err);
/* The oldest `count` as a batch, borrowed until the next put or drop. */
struct batch queue_lend(struct event_queue *q, size_t count);
/* What was lent leaves. */
void queue_drop(struct event_queue *q);

static inline size_t queue_count(const struct event_queue *q)
{
	return q->end - q->head;
}

static inline struct event *queue_at(const struct event_queue *q, size_t i)
{
	return &q->events[q->head + i];
}

static inline uint32_t *queue_tag(const struct event_queue *q, size_t i)
{
	return &q->tags[q->head + i];
}

#endif
