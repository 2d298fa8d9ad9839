/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a lock for the program's own threads.
 *
 * It makes no system call unless two threads want it at once, because the program may have
 * forbidden system calls with a seccomp filter.  So a signal handler of the program may interrupt
 * the holder.  Our functions that the handler calls do not get the lock, and neither does a fork()
 * in it.  If the handler jumps away, the lock still belongs to its thread, which takes it over
 * after a second.
 *
 * Code that makes system calls anyway and must not be interrupted takes the lock masked: all
 * signals are blocked while it is held.  No holder can be cancelled.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
	/* pthread_self() of the holder, and in its upper bits how often its process was cloned;
	 * 0: the lock is free */
	_Atomic uintptr_t holder;
	uint64_t refused_ns; /* when the holder's thread was first refused; 0: it was not */
	/* The holder's state before it took the lock. */
	bool is_masked; /* `signals` must be restored */
	sigset_t signals;
	int cancel_state;
};
#define LOCK_INITIALIZER                                                                           \
	{                                                                                          \
		.holder = 0                                                                        \
	}

/*
 * A lock in memory that two processes map, taken in addition to a lock of each process.  It is held
 * for microseconds, so a lock that is held for long is taken from its holder, which must have been
 * killed.
 */
void lock_take_word(_Atomic uint32_t *word);
static inline void lock_release_word(_Atomic uint32_t *word)
{
	atomic_store_explicit(word, 0, memory_order_release);
}

/*
 * Takes the lock.  Returns false if the calling thread was interrupted while it held the lock, or
 * if `until_ns`, a time of CLOCK_MONOTONIC, has passed because another holder was interrupted.
 */
bool lock_take_until(struct lock *l, uint64_t until_ns);
/* Does the same with a limit of two seconds. */
bool lock_take(struct lock *l);
/* Does the same with signals blocked and without a limit. */
bool lock_take_masked(struct lock *l);
/* Releases the lock, which the caller must hold. */
void lock_release(struct lock *l);
/* Returns CLOCK_MONOTONIC in ns. */
uint64_t lock_now_ns(void);
/* Returns whether this thread has the lock. */
bool lock_is_mine(const struct lock *l);
/* Frees all locks in the child of a bare clone(), where the threads that had them are not. */
void lock_forget_holders(void);
