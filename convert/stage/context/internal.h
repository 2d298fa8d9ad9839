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
 * Holds copies of events with their argument words, so that their batch can be released.  The place
 * of an event counts from the oldest event in the queue.  Pointers are valid until the next put or
 * drop.
 */
struct event_queue {
	struct event *events;
	uint32_t *tags;                 /* one per event, for phase.c */
	size_t head, end, cap, tag_cap; /* the queue is events[head .. end) */
	uint64_t *words;                /* argument words; see queue_lend() */
	size_t word_end, word_cap;
	size_t lent;    /* number of oldest events that queue_lend() prepared */
	uint64_t taken; /* events that have left; an event's number is this plus its place */
	uint16_t *schema_words; /* number of argument words, by schema */
	uint32_t schema_count;
};
void queue_release(struct event_queue *q);
/* Moves the first events of `b` into the queue, at most as many as fit into the processor's cache.
 */
enum status queue_put(struct event_queue *q, const struct trace *trace, struct batch *b,
		      struct error *err);
/* Makes `args` of the oldest `count` events valid pointers: in the queue it is an index + 1 into
 * `words`.  The events stay until queue_drop(). */
struct event *queue_lend(struct event_queue *q, size_t count);
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
	unsigned shift; /* ids of a run differ only in their lowest `shift` bits */
};
enum status id_set_add(struct id_set *s, uint64_t id, struct error *err);
/* Returns the size of the range of ids without its largest gaps, so that a few stray ids do not
 * count.  `ids`: number of ids that were added. */
uint64_t id_set_range(const struct id_set *s, uint64_t ids);

/* ---- launch.c ---- */

struct call_table;
struct launch_stage {
	struct call_table *tables; /* by process; NULL: launches are not wanted */
	uint8_t *starts;           /* by name; 0: not looked up; 1: no; 2: launches work */
	uint32_t name_count;
	uint64_t slack_ns;
	size_t entered; /* number of queued events whose calls were entered in the tables */
	const struct launch **found; /* launch or NULL, by event of the batch */
	struct launch *copies;       /* what `found` points to */
	size_t found_cap, copies_cap;
};

/* ---- context.c ---- */

struct context {
	struct source source;
	struct source *below;
	struct host host;
	struct batch in; /* the rest of the last batch from below */
	struct event_queue queue;
	size_t stamped; /* number of queued events that have step, phase and path */
	size_t final;   /* number of these, from the oldest on, without a pending phase */
	bool has_ended, is_exhausted; /* the source below has ended; all its events are final */
	enum status fault;
	struct error error;

	struct launch_stage launch;

	struct interval_list
		closed; /* ended intervals; a phase >= PHASE_PENDING is not decided yet */
	struct interval_list out;
	struct step_mark *marks;
	size_t mark_count, mark_cap, marks_out;
	uint32_t pass;
	bool whole_intervals;
	uint64_t limit_ns; /* latest end of intervals of the last batch */
	uint64_t split_at; /* number of returned events at which long intervals are split */
};

/* phase.c */

/* Sets the context of all events in the queue whose group is complete. */
enum status phase_run(struct context *c, struct error *err);
/* Closes the open intervals after the last event. */
enum status phase_finish(struct context *c, struct error *err);
/* Decides the phase that the oldest event waits for, because the queue is full. */
enum status phase_give_up(struct context *c, struct error *err);
/* Splits the intervals that are open at `limit_ns`: they are closed there and continue in a new
 * interval. */
enum status phase_split(struct context *c, uint64_t limit_ns, struct error *err);

/* launch.c */

enum status launch_init(struct context *c, const struct context_request *how, struct error *err);
void launch_release(struct context *c);
/* Returns how many of the oldest final events are ready, because all calls that may have launched
 * them were read. */
size_t launch_ready(const struct context *c);
/* Finds the launches of the oldest `count` events and stores them in launch.found by the event's
 * place. */
enum status launch_find(struct context *c, size_t count, struct error *err);
