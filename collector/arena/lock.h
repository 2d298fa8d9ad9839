/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a lock for the program's own threads.
 *
 * It makes no system call unless two threads want it at once, as the program may have forbidden
 * system calls by a seccomp filter.  So a handler of the program may interrupt the holder.  What
 * that handler calls of ours does not get the lock, and neither does a fork() in it.  If the
 * handler jumps away, the lock still belongs to its thread, which takes it over after a second.
 *
 * What makes system calls anyway, and must not be left half done, takes it masked: all signals are
 * blocked while it is held.  No holder can be cancelled.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
	_Atomic uintptr_t holder; /* pthread_self(); 0: nobody */
	uint64_t refused_ns;      /* when its own thread was first refused; 0: it was not */
	/* The holder's, as they were before. */
	bool is_masked; /* `signals` is to be set again */
	sigset_t signals;
	int cancel_state;
};
#define LOCK_INITIALIZER                                                                           \
	{                                                                                          \
		.holder = 0                                                                        \
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

/*
 * Takes the lock.  False: the calling thread was interrupted while it held it; or `until`, a time
 * of CLOCK_MONOTONIC in ns, has passed, as another thread was.
 */
bool lock_take_until(struct lock *l, uint64_t until_ns);
/* The same, with a limit of two seconds. */
bool lock_take(struct lock *l);
/* The same, with signals blocked and without a limit. */
bool lock_take_masked(struct lock *l);
/* The caller has it. */
void lock_release(struct lock *l);
/* Of CLOCK_MONOTONIC. */
uint64_t lock_now_ns(void);
/* Whether this thread has the lock. */
bool lock_is_mine(const struct lock *l);
