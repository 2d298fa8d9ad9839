/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/lock.h"

#include <stddef.h>

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
