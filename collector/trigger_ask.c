/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/trigger.h"
#include "collector/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic(struct writer *) writer;
static _Atomic int owner_pid; /* whose handler it is: a child of a fork has it without a writer */
static _Atomic uint32_t asked; /* enum trigger_kind */
static _Atomic bool installed;

void trigger_ask(enum trigger_kind kind)
{
	struct writer *w = atomic_load(&writer);

	if (!w || atomic_load(&owner_pid) != getpid())
		return;
	atomic_store(&asked, (uint32_t)kind);
	writer_wake(w);
}

enum trigger_kind trigger_asked(void)
{
	return (enum trigger_kind)atomic_exchange(&asked, TRIGGER_NONE);
}

/* Async-signal-safe: atomics, getpid, a futex call. */
static void handle(int number)
{
	int kept = errno;

	trigger_ask(TRIGGER_SIGNAL);
	errno = kept;
}

void trigger_watch(struct writer *w, const struct trigger_spec *spec)
{
	struct sigaction now, ours = { .sa_handler = handle, .sa_flags = SA_RESTART };

	atomic_store(&owner_pid, getpid());
	atomic_store(&writer, w);
	if (!spec->signal || atomic_load(&installed) || sigaction(SIGUSR2, NULL, &now) != 0)
		return;
	if ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL)
		return;
	sigemptyset(&ours.sa_mask);
	atomic_store(&installed, sigaction(SIGUSR2, &ours, NULL) == 0);
}

void trigger_forked(void)
{
	atomic_store(&writer, NULL);
	atomic_store(&asked, TRIGGER_NONE);
}

void trigger_unwatch(void)
{
	struct sigaction now;

	atomic_store(&writer, NULL);
	if (!atomic_exchange(&installed, false))
		return;
	if (sigaction(SIGUSR2, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
	    now.sa_handler == handle)
		signal(SIGUSR2, SIG_DFL);
}
