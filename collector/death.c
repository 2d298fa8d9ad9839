/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/death.h"

#include "collector/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 2 };

static _Atomic(struct writer *) writer;
static _Atomic int owner_pid; /* whose handler it is; a raw clone() has it without a writer */
static _Atomic bool came, installed, has_timer;
static timer_t timer;

static void die(void)
{
	sigset_t term;

	signal(SIGTERM, SIG_DFL);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	kill(getpid(), SIGTERM);
	pthread_sigmask(SIG_UNBLOCK, &term, NULL);
}

/* Async-signal-safe: atomics, kill, timer_settime, a futex call. */
static void handle(int number)
{
	static const struct itimerspec limit = { .it_value = { .tv_sec = LIMIT_SECONDS } };
	struct writer *w = atomic_load(&writer);
	int kept = errno;

	if (atomic_exchange(&came, true) || !w || atomic_load(&owner_pid) != getpid()) {
		die();
	} else {
		if (atomic_load(&has_timer))
			timer_settime(timer, 0, &limit, NULL);
		writer_wake(w);
	}
	errno = kept;
}

void death_watch(struct writer *w)
{
	struct sigaction now, ours = { .sa_handler = handle, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM };

	atomic_store(&writer, w);
	atomic_store(&owner_pid, getpid());
	if (atomic_load(&installed) || sigaction(SIGTERM, NULL, &now) != 0)
		return;
	if ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL)
		return;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
		atomic_store(&has_timer, true);
	sigemptyset(&ours.sa_mask);
	atomic_store(&installed, sigaction(SIGTERM, &ours, NULL) == 0);
}

bool death_came(void)
{
	return atomic_load(&came);
}

void death_go_on(void)
{
	die();
}

static void put_back(void)
{
	struct sigaction now;

	if (!atomic_exchange(&installed, false))
		return;
	if (sigaction(SIGTERM, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
	    now.sa_handler == handle)
		signal(SIGTERM, SIG_DFL);
}

void death_forked(void)
{
	put_back();
	atomic_store(&writer, NULL);
	atomic_store(&came, false);
	atomic_store(&has_timer, false); /* timers are not inherited */
}

void death_unwatch(void)
{
	put_back();
	atomic_store(&writer, NULL);
	if (atomic_exchange(&has_timer, false))
		timer_delete(timer);
}
