/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_state.h - the state of one thread of the program: ring, open ranges, step, totals.
 *
 *	owner (the thread)    push, pop, step: touches its own state and the clock only
 *	writer thread         takes the ring; reads what is open at the end of a window
 *
 * The state lies in the arena, except `struct thread_own`.  That is private memory, which the
 * kernel wipes in children.  So a child for which pthread_atfork() handlers did not run agrees with
 * no value of session_word, has no room, and never puts a record into its parent's ring.
 *
 * A range is one record, put when it ends; until then it is an entry of the stack.  A thread state
 * agrees with one value of session_word (session.h).  While that value holds, only the owner
 * changes the stack.  When the word has changed, the owner first catches up under the session's
 * lock; for owners that make no calls the writer does so, under the same lock.  Fields that both
 * read are atomic, and are written with plain stores.
 *
 * Thread states are never freed: a new thread reuses that of a thread that ended.
 */
#pragma once

#include "collector/arena/arena.h"
#include "collector/arena/ring.h"
#include "collector/session/clock.h"
#include "schemas/model/event.h"

enum {
	THREAD_DEPTH = 64,    /* most open ranges that are stored; deeper ones are only counted */
	THREAD_TOTALS = 1024, /* live totals exist for names with lower ids */
	THREAD_STEPS = 64,    /* number of latest steps whose durations are kept */
};

struct open_range {
	_Atomic uint64_t begin; /* tick */
	_Atomic uint64_t what;  /* name id, class << 32 */
};
struct range_total {
	_Atomic uint64_t count, ticks;
};
struct tick_span { /* a window, in ticks */
	uint64_t begin, end;
};

struct thread_state;
typedef void (*thread_put_fn)(struct thread_state *thread, const struct ring_record *r,
			      const void *tail, void *arg);

/*
 * The open NVTX ranges of a thread, which the NVTX probe keeps in separate memory besides those of
 * tacho.h.
 */
struct probe_ranges {
	/* Calls put() for each range that was open in the window. */
	void (*put_open)(void *ranges, struct thread_state *thread, const struct tick_span *window,
			 thread_put_fn put, void *arg);
	/* Closes all ranges; called by the owner. */
	void (*clear)(void *ranges);
	size_t bytes; /* size of the ranges' memory, for checks by other processes */
};

struct thread_own {
	_Atomic uint32_t agreed_word; /* the value of session_word that the state agrees with */
	struct ring_room room;
};
struct thread_state {
	/* For the owner: these pointers are valid only in its process. */
	struct thread_own *own;
	struct ring_writer writer;
	_Atomic uint32_t depth;
	bool records; /* a window is open, according to `agreed_word` */
	_Atomic bool step_open;
	uint64_t window_begin; /* tick */
	uint64_t next_step;
	_Atomic uint64_t step_begin, step_number;
	struct open_range open[THREAD_DEPTH];
	struct range_total totals[THREAD_TOTALS];
	/* Offset in bytes from this struct to NVTX's ranges; 0 until the thread makes one. */
	_Atomic int64_t nvtx;

	/*
	 * Durations of steps in ticks, and the latest step that was slower than the writer's limit.
	 */
	_Atomic uint64_t steps_done, steps_took[THREAD_STEPS];
	_Atomic uint64_t slow_ticks;             /* set by the writer; UINT64_MAX: no limit */
	_Atomic uint64_t slow_noted, slow_taken; /* noted by the owner, taken by the writer */
	_Atomic uint64_t slow_number, slow_took, slow_end;

	/* The next members are protected by the session's lock. */
	uint64_t next; /* offset of the next state in the list of all; 0: none; constant */
	uint32_t tid;
	char thread_name[16];    /* name when the state was made, NUL-terminated */
	uint64_t owners;         /* number of threads that have used the state */
	uint64_t windows_closed; /* number of windows whose open ranges were put */
	_Atomic bool dead;       /* the owner ended */
	bool stale;              /* the stack is from before the session was off */

	/* For the API probe, which drains the ring. */
	uint64_t track_owner, track_log;
	uint32_t track;

	struct ring ring; /* must be last: its slots follow */
};

extern _Thread_local struct thread_state *thread_mine __attribute__((visibility("hidden")));

/* Returns NVTX's ranges of the thread, or NULL if it has none. */
static inline void *thread_nvtx(struct thread_state *thread)
{
	int64_t at = atomic_load_explicit(&thread->nvtx, memory_order_acquire);

	return at ? (uint8_t *)thread + at : NULL;
}
/* Sets the functions for NVTX ranges, before any thread has one; `ranges` is borrowed. */
void threads_have_ranges(const struct probe_ranges *ranges);

/* Returns the number of bytes that thread_new() allocates in the arena. */
size_t thread_bytes(size_t ring_bytes);
/* Makes a thread state.  With `ring_bytes` 0 all its records are counted as lost.  NULL: out of
 * memory. */
struct thread_state *thread_new(size_t ring_bytes);
/* Call it in the child of fork(): its threads must not use private memory of the parent's threads.
 */
void threads_forked(void);
/* Returns whether all thread states and rings lie within an arena that arena_adopt() mapped. */
bool threads_are_sound(void);
/* Returns the next thread state of the list, or NULL. */
static inline struct thread_state *thread_next(const struct thread_state *thread)
{
	return thread->next ? arena_at(arena(), thread->next) : NULL;
}
/* Ends an open record at the end of the window, and marks it.  Returns false if it began after the
 * window. */
bool thread_clip_open(struct ring_record *r, const struct tick_span *window);
/*
 * Makes records of the step and ranges that were open in the window and did not end: at most
 * THREAD_DEPTH + 1.  Changes nothing in the state.  The owner may call it, or any thread while the
 * owner must catch up.
 */
size_t thread_open_records(const struct thread_state *thread, const struct tick_span *window,
			   struct ring_record out[THREAD_DEPTH + 1]);
/* Calls put() for each of these records, and for the ranges that a probe keeps for the thread. */
void thread_put_open(struct thread_state *thread, const struct tick_span *window, thread_put_fn put,
		     void *arg);
/* Drops all open ranges and the open step; called by the owner. */
void thread_clear(struct thread_state *thread);
/* Notes a slow step for the writer, unless it has not taken the previous one. */
void thread_step_was_slow(struct thread_state *thread, uint64_t took, uint64_t end);

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define GET_RELAXED(field)        atomic_load_explicit(&(field), memory_order_relaxed)
#define SET_RELAXED(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

static inline void thread_push(struct thread_state *thread, uint32_t name, unsigned range_class)
{
	uint32_t depth = GET_RELAXED(thread->depth);

	if (__builtin_expect(depth < THREAD_DEPTH, 1)) {
		SET_RELAXED(thread->open[depth].what, name | (uint64_t)range_class << 32);
		SET_RELAXED(thread->open[depth].begin, tick_now());
	}
	SET_RELAXED(thread->depth, depth + 1);
}

static inline void thread_add_total(struct thread_state *thread, uint32_t name, uint64_t ticks)
{
	if (name >= THREAD_TOTALS)
		return;
	struct range_total *t = &thread->totals[name];
	SET_RELAXED(t->count, GET_RELAXED(t->count) + 1);
	SET_RELAXED(t->ticks, GET_RELAXED(t->ticks) + ticks);
}

/* Puts a record into the ring, clipped to the window that the thread has noticed. */
static inline void thread_put_record(struct thread_state *thread, struct ring_record *r,
				     const void *tail)
{
	if (__builtin_expect(r->begin < thread->window_begin, 0)) {
		r->begin = thread->window_begin;
		r->flags |= EVENT_BEGAN_EARLIER;
	}
	if (r->more)
		ring_put_tail(&thread->writer, r, tail);
	else
		ring_put(&thread->writer, r);
}

/* Puts a record of a range or step that was open from `begin` to `end`. */
static inline void thread_put(struct thread_state *thread, unsigned kind, uint64_t begin,
			      uint64_t end, uint64_t word, uint64_t what)
{
	struct ring_record r = {
		.begin = begin,
		.end = end,
		.word = word,
		.name = (uint32_t)what,
		.kind = (uint8_t)kind,
		.subkind = (uint8_t)(what >> 32),
	};

	thread_put_record(thread, &r, NULL);
}

/* Ends the innermost range and returns its name; 0: there was none, or it has no name. */
static inline uint32_t thread_pop(struct thread_state *thread)
{
	uint32_t depth = GET_RELAXED(thread->depth);

	if (__builtin_expect(!depth, 0))
		return 0;
	SET_RELAXED(thread->depth, --depth);
	if (__builtin_expect(depth >= THREAD_DEPTH, 0))
		return 0;
	uint64_t end = tick_now();
	uint64_t begin = GET_RELAXED(thread->open[depth].begin);
	uint64_t what = GET_RELAXED(thread->open[depth].what);
	thread_add_total(thread, (uint32_t)what, end - begin);
	if (thread->records && (uint32_t)what)
		thread_put(thread, KIND_RANGE, begin, end, 0, what);
	return (uint32_t)what;
}

/* Ends the innermost range without a record, which is counted as lost if the range has a name. */
static inline void thread_drop(struct thread_state *thread)
{
	uint32_t depth = GET_RELAXED(thread->depth);

	if (!depth)
		return;
	SET_RELAXED(thread->depth, --depth);
	if (depth < THREAD_DEPTH && (uint32_t)GET_RELAXED(thread->open[depth].what))
		atomic_fetch_add(&thread->ring.lost, 1);
}

static inline void thread_step_end(struct thread_state *thread, uint64_t now)
{
	uint64_t took = now - GET_RELAXED(thread->step_begin),
		 done = GET_RELAXED(thread->steps_done);

	if (!GET_RELAXED(thread->step_open))
		return;
	SET_RELAXED(thread->step_open, false);
	SET_RELAXED(thread->steps_took[done % THREAD_STEPS], took);
	atomic_store_explicit(&thread->steps_done, done + 1, memory_order_release);
	if (__builtin_expect(took > GET_RELAXED(thread->slow_ticks), 0))
		thread_step_was_slow(thread, took, now);
	if (thread->records)
		thread_put(thread, KIND_STEP, GET_RELAXED(thread->step_begin), now,
			   GET_RELAXED(thread->step_number), 0);
}

/* Ends the previous step at `now`, and begins this one. */
static inline void thread_step_begin(struct thread_state *thread, uint64_t number, uint64_t now)
{
	thread_step_end(thread, now);
	SET_RELAXED(thread->step_begin, now);
	SET_RELAXED(thread->step_number, number);
	SET_RELAXED(thread->step_open, true);
	thread->next_step = number + 1;
}
