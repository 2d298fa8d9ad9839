/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane.h - what one thread of the program has: its ring, its open ranges, its step, its totals.
 *
 *	owner (the thread)    push, pop, step: touches its lane and the clock, nothing else
 *	writer thread         takes the ring; at the end of a window reads what is still open
 *
 * A range is one record, put when it ends; until then it is an entry of the stack.  A lane agrees
 * with one word of the session (session.h): while that word holds, nobody but the owner moves the
 * stack.  When the word has changed the owner catches up first, under the session's lock; lanes
 * whose owner does not come by are looked after by the writer, under the same lock.  Fields that
 * both read are atomic for that reason; they are written with plain stores.
 *
 * Lanes are mapped, never freed: that of a thread that ended serves the next one.
 */
#ifndef COLLECTOR_LANE_H
#define COLLECTOR_LANE_H

#include "collector/nvtx/open.h"
#include "collector/tick.h"
#include "schemas/event.h"

enum {
	LANE_DEPTH = 64,    /* open ranges kept; deeper ones are counted only */
	LANE_TOTALS = 1024, /* names with live totals: those registered first */
	LANE_STEPS = 64,    /* steps whose times are kept */
};

struct lane_open {
	_Atomic uint64_t begin; /* tick */
	_Atomic uint64_t what;  /* name, class << 32 */
};
struct lane_total {
	_Atomic uint64_t count, ticks;
};
struct lane_span { /* a window, in ticks */
	uint64_t begin, end;
};

struct lane {
	struct ring ring;
	_Atomic uint32_t seen; /* the session's word that the rest agrees with */
	_Atomic uint32_t depth;
	bool records;          /* a window is open, by `seen` */
	_Atomic bool step_open;
	uint64_t window_begin; /* tick */
	uint64_t next_step;
	_Atomic uint64_t step_begin, step_number;
	struct lane_open open[LANE_DEPTH];
	struct lane_total totals[LANE_TOTALS];
	struct nvtx_stack *_Atomic nvtx; /* NULL until the thread pushes a range of NVTX */

	/* How long its steps took, in ticks, and one that took longer than the writer wants. */
	_Atomic uint64_t steps_done, steps_took[LANE_STEPS];
	_Atomic uint64_t slow_ticks;            /* the writer's; UINT64_MAX: none is too long */
	_Atomic uint64_t slow_noted, slow_seen; /* noted by the owner, seen by the writer */
	_Atomic uint64_t slow_number, slow_took, slow_end;

	/* Under the session's lock. */
	struct lane *next;     /* all lanes; does not change */
	uint32_t tid;
	char thread_name[16];  /* as it was at first; NUL-terminated */
	uint64_t owners;       /* threads that had it */
	uint64_t windows_closed; /* windows whose open ranges were told */
	bool dead;             /* the owner ended */
	bool stale;            /* its stack is from before the session was off */

	/* The watch's that takes the ring. */
	uint64_t track_owner, track_log;
	uint32_t track;
};

extern _Thread_local struct lane *lane_mine __attribute__((visibility("hidden")));

/* `ring_bytes` 0: all records are counted as lost.  NULL: no memory. */
struct lane *lane_new(size_t ring_bytes);
/*
 * What was open in the window and did not end: at most LANE_DEPTH + 1 records.  Nothing is
 * changed.  Called by the owner, or by anybody while the owner must catch up first.
 */
size_t lane_open_records(const struct lane *l, const struct lane_span *window,
			 struct ring_record out[LANE_DEPTH + 1]);
/* The same, ranges of NVTX too, one by one. */
typedef void (*lane_put_fn)(struct lane *l, const struct ring_record *r, const void *tail,
			    void *arg);
void lane_tell_open(struct lane *l, const struct lane_span *window, lane_put_fn put, void *arg);
/* Nothing is open; by the owner. */
void lane_clear(struct lane *l);
/* Notes a step for the writer, unless it has not seen the one before. */
void lane_step_was_slow(struct lane *l, uint64_t took, uint64_t end);

#define LANE_GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define LANE_SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

static inline void lane_push(struct lane *l, uint32_t name, unsigned range_class)
{
	uint32_t depth = LANE_GET(l->depth);

	if (__builtin_expect(depth < LANE_DEPTH, 1)) {
		LANE_SET(l->open[depth].what, name | (uint64_t)range_class << 32);
		LANE_SET(l->open[depth].begin, tick_now());
	}
	LANE_SET(l->depth, depth + 1);
}

static inline void lane_count(struct lane *l, uint32_t name, uint64_t ticks)
{
	struct lane_total *t;

	if (name >= LANE_TOTALS)
		return;
	t = &l->totals[name];
	LANE_SET(t->count, LANE_GET(t->count) + 1);
	LANE_SET(t->ticks, LANE_GET(t->ticks) + ticks);
}

/* In the window that the lane knows of. */
static inline void lane_put_record(struct lane *l, struct ring_record *r, const void *tail)
{
	if (__builtin_expect(r->begin < l->window_begin, 0)) {
		r->begin = l->window_begin;
		r->flags |= EVENT_BEGAN_EARLIER;
	}
	if (r->more)
		ring_put_tail(&l->ring, r, tail);
	else
		ring_put(&l->ring, r);
}

/* Ends what is open since `begin`, at `end`. */
static inline void lane_put(struct lane *l, unsigned kind, uint64_t begin, uint64_t end,
			    uint64_t word, uint64_t what)
{
	struct ring_record r = {
		.begin = begin, .end = end, .word = word,
		.name = (uint32_t)what, .kind = (uint8_t)kind, .subkind = (uint8_t)(what >> 32),
	};

	lane_put_record(l, &r, NULL);
}

/* The name of what was popped; 0: there was nothing, or it had none. */
static inline uint32_t lane_pop(struct lane *l)
{
	uint32_t depth = LANE_GET(l->depth);
	uint64_t begin, end, what;

	if (__builtin_expect(!depth, 0))
		return 0;
	LANE_SET(l->depth, --depth);
	if (__builtin_expect(depth >= LANE_DEPTH, 0))
		return 0;
	end = tick_now();
	begin = LANE_GET(l->open[depth].begin);
	what = LANE_GET(l->open[depth].what);
	lane_count(l, (uint32_t)what, end - begin);
	if (l->records && (uint32_t)what)
		lane_put(l, KIND_RANGE, begin, end, 0, what);
	return (uint32_t)what;
}

static inline void lane_step_end(struct lane *l, uint64_t now)
{
	uint64_t took = now - LANE_GET(l->step_begin), done = LANE_GET(l->steps_done);

	if (!LANE_GET(l->step_open))
		return;
	LANE_SET(l->step_open, false);
	LANE_SET(l->steps_took[done % LANE_STEPS], took);
	atomic_store_explicit(&l->steps_done, done + 1, memory_order_release);
	if (__builtin_expect(took > LANE_GET(l->slow_ticks), 0))
		lane_step_was_slow(l, took, now);
	if (l->records)
		lane_put(l, KIND_STEP, LANE_GET(l->step_begin), now, LANE_GET(l->step_number), 0);
}

/* The step before ends at `now`, and this one begins. */
static inline void lane_step(struct lane *l, uint64_t number, uint64_t now)
{
	lane_step_end(l, now);
	LANE_SET(l->step_begin, now);
	LANE_SET(l->step_number, number);
	LANE_SET(l->step_open, true);
	l->next_step = number + 1;
}

#endif
