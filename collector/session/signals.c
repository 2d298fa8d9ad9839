/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEATH_SECONDS = 2 };

static _Atomic(const struct wake_up *) wake_up;
static _Atomic int owner_pid; /* a child made by a raw clone() has the handlers, but no writer */
static _Atomic uint32_t toggles, save_asked /* enum trigger_kind */;
static _Atomic bool has_death_handler, death_signal;

/* A signal that the user has named for us. */
static struct named {
	int number; /* 0: not installed */
	struct sigaction before;
} save, toggle;

/* Everything down to handle_death() is async-signal-safe: atomics, getpid, kill, a futex call. */

static const struct wake_up *writer_of_process(void)
{
	return atomic_load(&owner_pid) == getpid() ? atomic_load(&wake_up) : NULL;
}

void trigger_ask(enum trigger_kind kind)
{
	const struct wake_up *w = writer_of_process();

	if (!w)
		return;
	atomic_store(&save_asked, (uint32_t)kind);
	w->wake(w->arg);
}

/* A handler that one of ours has replaced runs as well. */
static void chain(const struct sigaction *before, int number, siginfo_t *info, void *context)
{
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(number, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(number);
}

static void handle_save(int number, siginfo_t *info, void *context)
{
	int kept = errno;

	trigger_ask(TRIGGER_SIGNAL);
	errno = kept;
	chain(&save.before, number, info, context);
}

static void handle_toggle(int number, siginfo_t *info, void *context)
{
	const struct wake_up *w = writer_of_process();
	int kept = errno;

	if (atomic_load(&owner_pid) == getpid())
		atomic_fetch_add(&toggles, 1);
	if (w)
		w->wake(w->arg);
	errno = kept;
	chain(&toggle.before, number, info, context);
}

void death_go_on(void)
{
	sigset_t term;

	signal(SIGTERM, SIG_DFL);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	kill(getpid(), SIGTERM);
	pthread_sigmask(SIG_UNBLOCK, &term, NULL);
}

/*
 * It does not return, so that the program neither runs on nor sees an interrupted call: the writer
 * ends the process when the log is closed, and we do if that takes too long.
 */
static void handle_death(int number)
{
	const struct wake_up *w = writer_of_process();
	struct timespec left = { .tv_sec = DEATH_SECONDS };

	/* without a writer it is the child of vfork(), whose memory is the parent's */
	if (w && !atomic_exchange(&death_signal, true)) {
		w->wake(w->arg);
		while (nanosleep(&left, &left) != 0 && errno == EINTR)
			;
	}
	death_go_on();
}

/* False: the program has a handler of its own, or ignores the signal. */
static bool is_default(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
	       now.sa_handler == SIG_DFL;
}

static bool install(int number, void (*handler)(int))
{
	struct sigaction ours = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigemptyset(&ours.sa_mask);
	return sigaction(number, &ours, NULL) == 0;
}

static void uninstall(int number, void (*handler)(int), _Atomic bool *installed)
{
	struct sigaction now;

	if (atomic_exchange(installed, false) && sigaction(number, NULL, &now) == 0 &&
	    !(now.sa_flags & SA_SIGINFO) && now.sa_handler == handler)
		signal(number, SIG_DFL);
}

static void install_named(struct named *n, int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction ours = { .sa_sigaction = handler, .sa_flags = SA_RESTART | SA_SIGINFO };

	sigemptyset(&ours.sa_mask);
	if (number && !n->number && sigaction(number, &ours, &n->before) == 0)
		n->number = number;
}

static void uninstall_named(struct named *n, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction now;

	if (n->number && sigaction(n->number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == handler)
		sigaction(n->number, &n->before, NULL);
	n->number = 0;
}

void signals_install_toggle(int number)
{
	atomic_store(&owner_pid, getpid());
	install_named(&toggle, number, handle_toggle);
}

void signals_start(const struct wake_up *w, const struct trigger_spec *spec)
{
	atomic_store(&owner_pid, getpid());
	atomic_store(&wake_up, w);
	install_named(&save, spec ? spec->signal_number : 0, handle_save);
	if (atomic_load(&has_death_handler) || !is_default(SIGTERM))
		return;
	atomic_store(&has_death_handler, install(SIGTERM, handle_death));
}

void signals_stop(void)
{
	uninstall(SIGTERM, handle_death, &has_death_handler);
	uninstall_named(&save, handle_save);
	atomic_store(&wake_up, NULL);
}

void signals_forked(void)
{
	uninstall(SIGTERM, handle_death, &has_death_handler);
	atomic_store(&wake_up, NULL);
	atomic_store(&death_signal, false);
	atomic_store(&save_asked, TRIGGER_NONE);
	atomic_store(&toggles, 0);
	atomic_store(&owner_pid, getpid());
}

uint32_t signals_take_toggles(void)
{
	return atomic_exchange(&toggles, 0);
}

bool death_came(void)
{
	return atomic_load(&death_signal);
}

enum trigger_kind trigger_asked(void)
{
	return (enum trigger_kind)atomic_exchange(&save_asked, TRIGGER_NONE);
}
