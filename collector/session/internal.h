/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the state of the session, in two parts:
 *
 *	struct session         of this process
 *	struct session_shared  in the arena: of the program and of the process that runs its writer
 *
 *	session.c         inputs of the window machine, the word that the hot path reads, fork, exit
 *	publish.c         what the arena says of the process: command, settings, window
 *	threads.c         thread states: who has which, what was open at a window's end, totals
 *	window_changes.c  what the writer takes: changes, times of windows, samples
 *	rounds.c          the lock that both processes take; requests to the writer, and waiting
 *
 * All of it is under session_enter(), except where a field is atomic.
 */
#pragma once

#include "collector/arena/lock.h"
#include "collector/session/session.h"

#include <assert.h>
#include <pthread.h>
#include <sys/types.h>

enum { PREPARE_STEPS = 3, CHANGES = 64, CHANGES_SPARE = 4, SPANS = 64, SAMPLES = 64 };
enum {
	ARENA_SPARE = 32 << 20, /* for thread states, in addition to their rings */
	ARENA_FIRST =
		64 << 10, /* part of ARENA_SPARE that is mapped at first with a thread's ring */
};
#define NEVER UINT64_MAX

/* Before the arena exists, this state is in memory of the process, from where it is copied into the
 * arena. */
struct session_shared {
	struct session_words words; /* must be first; the hot path reads it */

	_Atomic uint32_t lock; /* 1: taken; see session_enter() */
	struct window_machine machine;
	size_t ring_bytes;    /* bytes of the rings of all threads */
	uint64_t step_thread; /* thread whose steps are fed to the window machine; 0: none yet */
	uint32_t mode, generation;
	enum session_by by; /* how the latest window was begun by hand */
	uint64_t window;    /* the latest recorded window, from 1; 0: none */
	struct tick_span spans[SPANS];
	struct session_change changes[CHANGES];
	uint64_t changes_head, changes_tail;
	uint64_t samples[SAMPLES], samples_head, samples_tail;
	uint64_t next_sample_step, ignored;
	bool exited;
	bool prepared; /* probes warm up for a window that has not begun */

	/*
	 * Requests to the writer and their completion.  These are atomics without a lock or
	 * condition, because exit() may be called in a signal handler that interrupted a thread
	 * waiting here, and then waits again.
	 */
	_Atomic uint32_t wake;        /* a futex; 0: nothing to do */
	_Atomic uint32_t round;       /* a futex that changes with `done` and `finished` */
	_Atomic uint64_t asked, done; /* numbers of rounds */
	_Atomic bool close_asked, quit, finished;
	_Atomic uint32_t toggles, save_asked; /* since the writer's last round */
	_Atomic uint32_t runner_pid; /* pid of the recorder's process, if visible; 0: unknown */
};
static_assert(ARENA_SESSION + sizeof(struct session_shared) <= ARENA_HEADER, "its place");

struct session {
	struct lock lock; /* taken by the threads of this process */
	struct session_shared *shared;
	pthread_key_t key; /* its destructor runs when a thread ends */
	bool key_made;

	pid_t owner;    /* the process that the state belongs to; 0: cloned, and had no event */
	bool is_cloned; /* by a bare clone(), without handlers of fork() */
	struct config *config;               /* constant, except for a rank that is learned later */
	const struct session_helper *helper; /* NULL in the recorder */
	_Atomic bool needs_helper;
	bool has_helper;
	bool refused; /* this process cannot be recorded */
	uint64_t base_count[THREAD_TOTALS], base_ticks[THREAD_TOTALS];
	bool ticks;
};
extern struct session session HIDDEN;

/* Returns whether the state belongs to this process.  In a child that was forked while an event was
 * being made it does not, because the arena is the parent's. */
bool session_is_mine(void);
/*
 * Locks the state for this thread.  Returns false if the state belongs to another process, or if
 * the lock could not be taken (lock.h).
 */
bool session_enter_until(uint64_t until_ns);
bool session_enter(void);
/* Locks the state with signals blocked, for code that makes system calls. */
bool session_enter_masked(void);
void session_leave(void);
/* Leaves recording off in a child that was forked while an event was being made. */
void session_leave_parents(void);
/* Resets the state in the child of fork(), which shares nothing with its parent any more. */
void session_shared_forget(void);
/* Moves the state into the new arena. */
void session_shared_move(void);

/* Returns an input at the current time. */
struct window_input session_input(enum window_event event);
/* Feeds the window machine at tick `now`.  The caller holds the lock. */
void session_feed_locked(const struct window_input *in, uint64_t now);
/* Keeps the TACHO_ variables as they are now. */
void session_keep_settings(void);
/* Publishes this process, its clock and its window in a new arena, for readers. */
void session_publish_arena(void);
/* Publishes the latest window in the arena. */
void session_publish_window(void);
/* Marks this process as not recorded, because there is no recorder or no memory.  The caller holds
 * the lock. */
void session_refuse(void);
/* Requests the last round, in which the writer closes its log and ends.  Returns false if
 * `limit_ns` has passed. */
bool session_quit(uint64_t limit_ns);
/* The destructor of session.key, which runs when a thread ends. */
void session_thread_ends(void *thread_state);
