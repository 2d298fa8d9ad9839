/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what the files of the stage `context` share.
 *
 *	context.c  the source: pulls events into the queue, hands them out with their intervals
 *	queue.c    the events that wait
 *	host.c     which thread is the step thread, which ranges are open
 *	scope.c    the path of work that has its scope in its own arguments
 *	autograd.c the forward operator of a backward one, and recomputation
 *	phase.c    step, phase and path of each event; the phase intervals of the step thread
 *	launch.c   recent calls by correlation, and the GPU work that they launched
 *	ids.c      how far these ids reach
 */
#pragma once

#include "convert/stage/context/host.h"

enum { QUEUE_EVENTS = 65536 };

/* ---- queue.c ---- */

/*
 * Holds copies of events with their argument words, so that their batch can be released.  An
 * event's place counts from the oldest one that is held.  Pointers are valid until the next put or
 * drop.
 */
struct event_queue {
	struct event *events;
	uint32_t *tags;                 /* one per event, for phase.c */
	size_t head, end, cap, tag_cap; /* held are events[head .. end) */
	uint64_t *words; /* until it is lent, event.args is 1 + an index into this, as a pointer */
	size_t word_end, word_cap;
	size_t lent;    /* the oldest so many events have real pointers in args */
	uint64_t taken; /* events that have left: numbers of events count from the first ever */
	uint16_t *schema_words; /* by schema: its number of argument words */
	uint32_t schema_count;
};
void queue_release(struct event_queue *q);
/* Copies the first events of `b`, no more than fit the processor's cache, and takes them off `b`.
 */
enum status queue_put(struct event_queue *q, const struct trace *trace, struct batch *b,
		      struct error *err);
/* Makes the oldest `count` events fit to be read by others; they stay until queue_drop(). */
struct event *queue_lend(struct event_queue *q, size_t count);
/* Drops the events that were lent. */
void queue_drop(struct event_queue *q);

static inline size_t queue_count(const struct event_queue *q)
{
	return q->end - q->head;
}

static inline struct event *queue_at(const struct event_queue *q, size_t i)
{
	return &q->events[q->head + i];
}

/* ---- ids.c ---- */

struct id_set { /* zeroed: empty */
	struct id_run {
		uint64_t low, high;
	} * runs; /* ascending */
	size_t count, cap, near;
	unsigned shift; /* a run's ids differ in so many bits at most */
};
enum status id_set_add(struct id_set *s, uint64_t id, struct error *err);
/* How many ids the set reaches over, without the largest gaps: a few stray ids count for nothing.
 * `ids`: how many were added. */
uint64_t id_set_range(const struct id_set *s, uint64_t ids);

/* ---- launch.c ---- */

struct call_table;
struct launch_stage {
	struct call_table *tables; /* by process; NULL: launches are not wanted */
	uint8_t *starts;           /* by name: 0 not asked yet, 1 no, 2 launches */
	uint32_t name_count;
	uint64_t slack_ns;
	size_t entered;              /* events of the queue whose calls are in the tables */
	const struct launch **found; /* by event of the batch */
	struct launch *copies;       /* what `found` points to */
	size_t found_cap, copies_cap;
};

/* ---- context.c ---- */

struct context {
	struct source source;
	struct source *below;
	struct host host;
	struct batch in; /* what is left of the last batch from below */
	struct event_queue queue;
	size_t stamped; /* events of the queue that have step, phase and path */
	size_t final;   /* of these, the oldest ones without a pending phase among them */
	bool has_ended, is_exhausted; /* the source below has; and all its events are final */
	enum status fault;
	struct error error;

	struct launch_stage launch;

	struct interval_list closed; /* over; phase from PHASE_PENDING on: not decided yet */
	struct interval_list out;
	struct step_mark *marks;
	size_t mark_count, mark_cap, marks_out;
	uint32_t pass;
	bool whole_intervals;
	uint64_t limit_ns; /* intervals of the last batch end there at most */
	uint64_t split_at; /* long intervals are split when so many events have been given */
};

/* phase.c */

/* Sets the context of all events of the queue that can have it. */
enum status phase_run(struct context *c, struct error *err);
/* No more events come: closes what is open. */
enum status phase_finish(struct context *c, struct error *err);
/* The queue is full: ends the host gap that its oldest event waits for. */
enum status phase_give_up(struct context *c, struct error *err);
/* Closes the intervals that are open at `limit_ns`, which go on behind it. */
enum status phase_split(struct context *c, uint64_t limit_ns, struct error *err);

/* launch.c */

enum status launch_init(struct context *c, const struct context_request *how, struct error *err);
void launch_release(struct context *c);
/* How many of the final events have all calls that may have launched them behind them. */
size_t launch_ready(const struct context *c);
/* Finds the launches of the oldest `count` events, by the same index in launch.found. */
enum status launch_find(struct context *c, size_t count, struct error *err);
