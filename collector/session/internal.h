/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the state of the session, in two parts:
 *
 *	struct session         of this process
 *	struct session_shared  in the arena: of the program and of the process that runs its writer
 *
 *	session.c         inputs of the window machine, the word that the hot path reads, fork, exit
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
	ARENA_SPARE = 32 << 20, /* for the states of threads, beside their rings */
	ARENA_FIRST = 64 << 10, /* of that, which is mapped at first with a thread's ring */
};
#define NEVER UINT64_MAX

/* Before there is an arena it is in our own memory, from where it is copied into the arena. */
struct session_shared {
	struct session_words words; /* first: what the hot path reads */

	_Atomic uint32_t lock; /* 1: taken; see session_enter() */
	struct window_machine machine;
	size_t ring_bytes;    /* of all threads */
	uint64_t step_thread; /* whose steps are fed to the window machine; 0: none yet */
	uint32_t mode, generation;
	enum session_by by; /* how the latest window was begun by hand */
	uint64_t window;    /* the latest that was recorded, from 1; 0: none */
	struct tick_span spans[SPANS];
	struct session_change changes[CHANGES];
	uint64_t changes_head, changes_tail;
	uint64_t samples[SAMPLES], samples_head, samples_tail;
	uint64_t next_sample_step, ignored;
	bool exited;
	bool prepared; /* probes warm up for a window that has not begun */

	/*
	 * Requests to the writer and their completion.  There is neither lock nor condition,
	 * because exit() may be called in a signal handler that interrupted a thread waiting here,
	 * and then waits again.
	 */
	_Atomic uint32_t wake;        /* a futex; 0: nothing to do */
	_Atomic uint32_t round;       /* a futex that changes when `done` or `finished` does */
	_Atomic uint64_t asked, done; /* numbers of rounds */
	_Atomic bool close_asked, quit, finished;
	_Atomic uint32_t toggles,
		save_asked;          /* signals and requests since the writer's last round */
	_Atomic uint32_t runner_pid; /* of the recorder's, if we see it; 0: it is unknown */
};
static_assert(ARENA_SESSION + sizeof(struct session_shared) <= ARENA_HEADER, "its place");

struct session {
	struct lock lock; /* of the threads of this process */
	struct session_shared *shared;
	pthread_key_t key; /* its destructor runs when a thread ends */
	bool key_made;

	pid_t owner;                         /* the process that the state is of */
	struct config *config;               /* constant, but for a rank that is learned */
	const struct session_helper *helper; /* NULL in the recorder */
	_Atomic bool needs_helper;
	bool has_helper;
	bool refused; /* there is no recorder: this process is not recorded */
	uint64_t base_count[THREAD_TOTALS], base_ticks[THREAD_TOTALS];
	bool ticks;
};
extern struct session session HIDDEN;

/* False in the child of a bare clone(), where the arena is the parent's. */
bool session_is_mine(void);
/*
 * Takes the state for this thread alone.  False: it is not this process's, or the lock was not got
 * (lock.h).
 */
bool session_enter_until(uint64_t until_ns);
bool session_enter(void);
/* The same, with signals blocked, for what makes system calls. */
bool session_enter_masked(void);
void session_leave(void);
/* In the child of fork(), which has nothing in common with its parent any more. */
void session_shared_forget(void);
/* From here on the state is in the new arena. */
void session_shared_move(void);

/* An input at the current time. */
struct window_input session_input(enum window_event event);
/* The caller has the lock. */
void session_feed_locked(const struct window_input *in, uint64_t now);
/* Puts into a new arena what a reader needs to know of this process, its clock and its window. */
void session_publish_arena(void);
/* Puts the latest window into the arena. */
void session_publish_window(void);
/* There is no recorder, or no memory: this process is not recorded.  The caller has the lock. */
void session_refuse(void);
/* The last round: the writer closes its log and ends; false: `limit_ns` is over. */
bool session_quit(uint64_t limit_ns);
/* The destructor of session.key. */
void session_thread_ends(void *thread_state);
