/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/toggle.h"

#include "collector/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic(struct writer *) writer;
static _Atomic int owner_pid; /* a raw clone() has the handler, too */
static _Atomic uint32_t count;

/* Async-signal-safe: atomics, getpid, a futex call. */
static void handle(int number)
{
	struct writer *w = atomic_load(&writer);
	int kept = errno;

	if (atomic_load(&owner_pid) == getpid()) {
		atomic_fetch_add(&count, 1);
		if (w)
			writer_wake(w);
	}
	errno = kept;
}

void toggle_watch(void)
{
	struct sigaction now, ours = { .sa_handler = handle, .sa_flags = SA_RESTART };

	atomic_store(&owner_pid, getpid());
	if (sigaction(SIGUSR1, NULL, &now) != 0)
		return;
	if ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL)
		return;
	sigemptyset(&ours.sa_mask);
	sigaction(SIGUSR1, &ours, NULL);
}

void toggle_wake(struct writer *w)
{
	atomic_store(&writer, w);
}

uint32_t toggle_take(void)
{
	return atomic_exchange(&count, 0);
}

void toggle_forked(void)
{
	atomic_store(&writer, NULL);
	atomic_store(&count, 0);
	atomic_store(&owner_pid, getpid());
}
