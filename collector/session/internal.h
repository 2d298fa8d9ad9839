/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the one state of the session, shared by its files:
 *
 *	session.c         inputs of the window machine, the word that the hot path reads, fork, exit
 *	threads.c         thread states: who has which, what was open at a window's end, totals
 *	window_changes.c  what the writer takes: changes, times of windows, samples
 *
 * All of it is under session.lock, except where a field is atomic.
 */
#ifndef COLLECTOR_SESSION_INTERNAL_H
#define COLLECTOR_SESSION_INTERNAL_H

#include "collector/arena/lock.h"
#include "collector/session/session.h"

#include <pthread.h>
#include <sys/types.h>

enum { PREPARE_STEPS = 3, CHANGES = 64, CHANGES_SPARE = 4, SPANS = 64, SAMPLES = 64 };
enum { ARENA_SPARE = 32 << 20 }; /* for the states of threads, beside their rings */
#define NEVER UINT64_MAX

struct session {
	struct lock lock;
	pthread_key_t key; /* its destructor runs when a thread ends */
	bool key_made;

	pid_t owner;           /* the process that the state is of */
	struct config *config; /* constant, but for a rank that is learned */
	const struct probe_type *const *probes;
	const struct writer_hooks *writer_hooks;
	struct window_machine machine;
	struct writer *writer;
	void *ancestors; /* a forked child keeps the parent's writer reachable for leak checkers */
	size_t ring_bytes;                /* of all threads */
	struct thread_state *step_thread; /* whose steps are fed to the window machine */

	uint32_t mode, generation;
	const char *by;  /* how the latest window was begun by hand */
	uint64_t window; /* the latest that was recorded, from 1; 0: none */
	struct tick_span spans[SPANS];
	struct session_change changes[CHANGES];
	uint64_t changes_head, changes_tail;
	uint64_t samples[SAMPLES], samples_head, samples_tail;
	uint64_t next_sample_step, ignored;
	uint64_t base_count[THREAD_TOTALS], base_ticks[THREAD_TOTALS];
	bool exited, ticks;
	bool prepared; /* probes warm up for a window that has not begun */
};
extern struct session session HIDDEN;

/* An input at the current time. */
struct window_input session_input(enum window_event event);
/* The caller has the lock. */
void session_feed_locked(const struct window_input *in, uint64_t now);
void session_wake_writer(void);
/* Puts into a new arena what a reader needs to know of this process, its clock and its window. */
void session_publish_arena(void);
/* Puts the latest window into the arena. */
void session_publish_window(void);
/* The destructor of session.key. */
void session_thread_ends(void *thread_state);

#endif
