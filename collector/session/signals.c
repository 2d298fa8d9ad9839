/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/signals.h"

#include "collector/session/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEATH_SECONDS = 2 };

static _Atomic bool has_death_handler, death_signal;

/* A signal that the user has named for us. */
static struct named {
	int number; /* 0: not installed */
	struct sigaction before;
} save, toggle;

/* Everything down to handle_death() is async-signal-safe: atomics, getpid, kill, a futex call. */

/* A child made by a raw clone(), or by vfork(), has the handlers and the memory, but no writer. */
static bool is_owner(void)
{
	return session.owner == getpid();
}

void trigger_ask(enum trigger_kind kind)
{
	if (!is_owner())
		return;
	atomic_store(&session.shared->save_asked, (uint32_t)kind);
	session_wake_writer();
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
	int kept = errno;

	if (is_owner()) {
		atomic_fetch_add(&session.shared->toggles, 1);
		session_wake_writer();
	}
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
	struct timespec left = { .tv_sec = DEATH_SECONDS };

	if (is_owner() && !atomic_exchange(&death_signal, true)) {
		session_wake_writer();
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
	install_named(&toggle, number, handle_toggle);
}

void signals_install_save(int number)
{
	install_named(&save, number, handle_save);
}

void signals_catch_death(void)
{
	if (atomic_load(&has_death_handler) || !is_default(SIGTERM))
		return;
	atomic_store(&has_death_handler, install(SIGTERM, handle_death));
}

void signals_stop(void)
{
	uninstall(SIGTERM, handle_death, &has_death_handler);
	uninstall_named(&save, handle_save);
}

void signals_forked(void)
{
	uninstall(SIGTERM, handle_death, &has_death_handler);
	atomic_store(&death_signal, false);
}

uint32_t signals_take_toggles(void)
{
	return atomic_exchange(&session.shared->toggles, 0);
}

bool death_came(void)
{
	return atomic_load(&death_signal);
}

enum trigger_kind trigger_asked(void)
{
	return (enum trigger_kind)atomic_exchange(&session.shared->save_asked, TRIGGER_NONE);
}
