/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a mutex for the program's own threads.
 *
 * While a thread holds it, the thread has all signals blocked and cannot be cancelled.  So no
 * handler of the program forks, exits or jumps away over a holder, and no cancellation leaves the
 * mutex locked for ever.  It costs two system calls, and is not for what happens at each event.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct lock {
	pthread_mutex_t mutex;
	sigset_t signals; /* signals and cancel_state: the holder's, as they were before */
	int cancel_state;
};
#define LOCK_INITIALIZER                                                                           \
	{                                                                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                                 \
	}

/*
 * A lock in memory that two processes map, besides a lock of each: it is held for microseconds, so
 * one that is held for long is taken from its holder, which has been killed.
 */
void lock_take_word(_Atomic uint32_t *word);
static inline void lock_release_word(_Atomic uint32_t *word)
{
	atomic_store_explicit(word, 0, memory_order_release);
}

/* Takes the lock; `until` (NULL: for ever) is a time of CLOCK_REALTIME.  False: it has passed. */
bool lock_take_until(struct lock *l, const struct timespec *until);
void lock_take(struct lock *l);
void lock_release(struct lock *l);
