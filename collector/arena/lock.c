/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/lock.h"

#include <stddef.h>

enum { SPINS = 200, PAUSE_NS = 20000, STEAL_MS = 100 };

bool lock_take_until(struct lock *l, const struct timespec *until)
{
	sigset_t all, signals;
	int cancel_state;

	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_sigmask(SIG_SETMASK, &all, &signals);
	int failed =
		until ? pthread_mutex_timedlock(&l->mutex, until) : pthread_mutex_lock(&l->mutex);
	if (failed) {
		pthread_sigmask(SIG_SETMASK, &signals, NULL);
		pthread_setcancelstate(cancel_state, NULL);
		return false;
	}
	l->signals = signals;
	l->cancel_state = cancel_state;
	return true;
}

void lock_take(struct lock *l)
{
	lock_take_until(l, NULL);
}

void lock_release(struct lock *l)
{
	sigset_t signals = l->signals;
	int cancel_state = l->cancel_state;

	pthread_mutex_unlock(&l->mutex);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	pthread_setcancelstate(cancel_state, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void lock_take_word(_Atomic uint32_t *word)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t until = 0;

	for (unsigned i = 0; atomic_exchange_explicit(word, 1, memory_order_acquire); i++) {
		if (i < SPINS)
			continue;
		uint64_t now = now_ns();
		until = until ? until : now + STEAL_MS * UINT64_C(1000000);
		if (now >= until)
			return;
		nanosleep(&pause, NULL);
	}
}
