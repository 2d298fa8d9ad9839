/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/signals.h"

#include "collector/session/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* A signal that the user has named, and its previous action. */
static struct named {
	int number; /* 0: not installed */
	struct sigaction before;
} save, toggle;

/* Everything down to handle_toggle() is async-signal-safe: atomics, getpid, a futex call. */

/* Returns whether this process owns the session.  A child made by a raw clone(), or by vfork(), has
 * the handlers and the memory, but no writer. */
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

/* Calls the handler that was replaced by ours. */
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

void signals_stop(void)
{
	uninstall_named(&save, handle_save);
}

uint32_t signals_take_toggles(void)
{
	return atomic_exchange(&session.shared->toggles, 0);
}

enum trigger_kind trigger_asked(void)
{
	return (enum trigger_kind)atomic_exchange(&session.shared->save_asked, TRIGGER_NONE);
}
