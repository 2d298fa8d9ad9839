/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/inside.h - the inside of the session: its one state and what its rooms ask of each other.
 *
 *	session.c         inputs of the window machine, changes for the writer, the hot path's word
 *	session/lane.c    lanes: who has which, what was open at a window's end, totals
 *	session/writer.c  what the writer takes: changes, spans, samples, times
 *	session/exit.c    flush, close, exit
 *	session/fork.c    before a fork, and both sides of it
 *
 * All of it is under session.lock but where a field is atomic.  Nobody else includes this.
 */
#ifndef COLLECTOR_SESSION_INSIDE_H
#define COLLECTOR_SESSION_INSIDE_H

#include "collector/session.h"

#include <pthread.h>

enum { PREPARE_STEPS = 3, CHANGES = 64, CHANGES_SPARE = 4, SPANS = 64, SAMPLES = 64 };
#define NEVER UINT64_MAX

struct writer;

struct session {
	pthread_mutex_t lock;
	pthread_key_t key; /* its destructor tells that a thread ends */
	bool key_made;

	const struct config *config;
	const struct watch_type *const *watches;
	struct window_machine machine;
	struct writer *writer;
	void *ancestors; /* the writer of the process that forked us: not ours, but not lost */
	_Atomic(struct lane *) lanes;
	size_t ring_bytes; /* of all lanes */
	struct lane *step_lane; /* whose steps the window machine hears of */

	uint32_t mode, generation;
	const char *by;             /* how the latest window by hand was begun */
	uint64_t window;            /* the latest that was recorded, from 1; 0 none */
	struct lane_span spans[SPANS];
	struct session_change changes[CHANGES];
	uint64_t changes_head, changes_tail;
	uint64_t samples[SAMPLES], samples_head, samples_tail;
	uint64_t next_sample_step, ignored;
	uint64_t base_count[LANE_TOTALS], base_ticks[LANE_TOTALS];
	bool exited, ticks;
	bool prepared; /* watches warm up for a window that has not begun */
};
extern struct session session HIDDEN;

/* An input of this instant. */
struct window_input session_input(enum window_event event);
/* The caller has the lock. */
void session_feed_locked(const struct window_input *in, uint64_t now);
/* The window machine from its beginning; the caller has the lock. */
void session_start_machine(const struct config *config, uint64_t now);
/* The clock and the machine of an enabled process; the caller has the lock. */
void session_begin(bool is_worker);
/* The destructor of session.key. */
void session_thread_ends(void *lane);

#endif
