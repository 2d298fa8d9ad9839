/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/lock.h"

#include "collector/arena/arena.h"

#include <time.h>

#define STEAL_NS     UINT64_C(100000000)
#define TAKE_OVER_NS UINT64_C(1000000000)
#define LIMIT_NS     UINT64_C(2000000000)
/* Pauses double, as a thousand threads that wake all the time would keep the holder from
 * running. */
enum { SPINS = 200, PAUSE_NS = 20000, PAUSES_EACH = 4, PAUSE_DOUBLES = 8 };
enum { CLONES_AT = 48 }; /* addresses of threads have fewer bits */

static uintptr_t clones; /* how often the process was cloned, at CLONES_AT */

void lock_forget_holders(void)
{
	clones += (uintptr_t)1 << CLONES_AT;
}

static uintptr_t own_mark(void)
{
	return (uintptr_t)pthread_self() | clones;
}

uint64_t lock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool lock_is_mine(const struct lock *l)
{
	return atomic_load_explicit(&l->holder, memory_order_relaxed) == own_mark();
}

/* Returns whether the interrupted code of this thread that has the lock will not continue, because
 * handlers do not take this long. */
static bool takes_over(struct lock *l)
{
	uint64_t now = lock_now_ns();

	if (!l->refused_ns)
		l->refused_ns = now;
	return now - l->refused_ns >= TAKE_OVER_NS;
}

static bool wait_for(struct lock *l, uint64_t until_ns)
{
	for (unsigned i = 0;; i++) {
		unsigned longer = i > SPINS ? (i - SPINS) / PAUSES_EACH : 0;
		struct timespec pause = { .tv_nsec = PAUSE_NS };
		uintptr_t nobody = atomic_load_explicit(&l->holder, memory_order_relaxed);

		nobody = nobody >> CLONES_AT == clones >> CLONES_AT ? 0 : nobody;
		if (atomic_compare_exchange_weak_explicit(&l->holder, &nobody, own_mark(),
							  memory_order_acquire,
							  memory_order_relaxed))
			return true;
		if (i < SPINS)
			continue;
		if (lock_now_ns() >= until_ns)
			return false;
		pause.tv_nsec <<= longer < PAUSE_DOUBLES ? longer : PAUSE_DOUBLES;
		nanosleep(&pause, NULL);
	}
}

static bool take(struct lock *l, uint64_t until_ns, bool masked)
{
	sigset_t all, signals;
	int cancel_state;

	arena_notice_clone();
	if (lock_is_mine(l))
		return takes_over(l);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (masked) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &signals);
	}
	if (!wait_for(l, until_ns)) {
		pthread_setcancelstate(cancel_state, NULL);
		return false;
	}
	l->refused_ns = 0;
	l->is_masked = masked;
	if (masked)
		l->signals = signals;
	l->cancel_state = cancel_state;
	return true;
}

bool lock_take_until(struct lock *l, uint64_t until_ns)
{
	return take(l, until_ns, false);
}

bool lock_take(struct lock *l)
{
	return take(l, lock_now_ns() + LIMIT_NS, false);
}

bool lock_take_masked(struct lock *l)
{
	return take(l, UINT64_MAX, true);
}

void lock_release(struct lock *l)
{
	int cancel_state = l->cancel_state;
	bool is_masked = l->is_masked;
	sigset_t signals;

	if (is_masked)
		signals = l->signals;

	atomic_store_explicit(&l->holder, 0, memory_order_release);
	if (is_masked)
		pthread_sigmask(SIG_SETMASK, &signals, NULL);
	pthread_setcancelstate(cancel_state, NULL);
}

void lock_take_word(_Atomic uint32_t *word)
{
	uint64_t until = 0;

	while (atomic_exchange_explicit(word, 1, memory_order_acquire)) {
		uint64_t now = lock_now_ns();
		until = until ? until : now + STEAL_NS;
		if (now >= until)
			return;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
}
