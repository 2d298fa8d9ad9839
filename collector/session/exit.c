/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/inside.h"

#include "collector/control.h"
#include "collector/toggle.h"
#include "collector/writer.h"

static struct writer *writer_now(void)
{
	struct writer *w;

	pthread_mutex_lock(&session.lock);
	w = session.writer;
	pthread_mutex_unlock(&session.lock);
	return w;
}

bool session_flush(uint64_t limit_ns)
{
	struct writer *w = writer_now();

	return !w || writer_wait(w, false, limit_ns);
}

bool session_close_log(uint64_t limit_ns)
{
	struct writer *w = writer_now();

	return !w || writer_wait(w, true, limit_ns);
}

/* exit() may be called in a signal handler, over a thread that holds the lock. */
static bool lock_in_time(uint64_t limit_ns)
{
	uint64_t at = tick_clock_ns(CLOCK_REALTIME) + limit_ns;
	struct timespec until = { .tv_sec = (time_t)(at / 1000000000u),
				  .tv_nsec = (long)(at % 1000000000u) };

	return pthread_mutex_timedlock(&session.lock, &until) == 0;
}

void session_exit(uint64_t limit_ns)
{
	struct window_input in = session_input(WINDOW_EXIT);
	struct writer *w;

	if (!lock_in_time(limit_ns))
		return;
	if (session.config)
		session_feed_locked(&in, tick_now());
	w = session.writer;
	if (w) /* may be called again: a watch has its reasons to be the first at the exit */
		session.ancestors = w;
	session.writer = NULL;
	toggle_wake(NULL);
	pthread_mutex_unlock(&session.lock);
	if (!w)
		return;
	control_stop();
	writer_quit(w, limit_ns);
}
