/* SPDX-License-Identifier: Apache-2.0 */
/* The lock and the requests between the program and its writer, in the memory that both map. */
#include "collector/session/internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum {
	RUNNER_MS = 50, /* interval of checks whether the recorder was killed */
	NOTE_MS = 10,   /* time until the writer finds noted work */
};

static struct session_shared own_memory = { .words.step = NEVER };
struct session_words *_Atomic session_words = &own_memory.words;
struct session session = { .lock = LOCK_INITIALIZER, .shared = &own_memory };

/* ---- the lock ---- */

bool session_is_mine(void)
{
	/* not session.shared, which another thread may change that has the lock */
	return session_words_now() == &own_memory.words || arena_is_mine();
}

/* Takes the lock in the shared state.  The caller holds the lock of this process. */
static bool enter(void)
{
	if (!session_is_mine()) {
		lock_release(&session.lock);
		return false;
	}
	lock_take_word(&session.shared->lock);
	return true;
}

bool session_enter_until(uint64_t until_ns)
{
	return lock_take_until(&session.lock, until_ns) && enter();
}

bool session_enter(void)
{
	return lock_take(&session.lock) && enter();
}

bool session_enter_masked(void)
{
	return lock_take_masked(&session.lock) && enter();
}

void session_leave(void)
{
	lock_release_word(&session.shared->lock);
	lock_release(&session.lock);
}

void session_shared_forget(void)
{
	memset(&own_memory, 0, sizeof(own_memory));
	atomic_store(&own_memory.words.step, NEVER);
	session.shared = &own_memory;
	atomic_store(&session_words, &own_memory.words);
}

static struct session_shared *in_arena(void)
{
	return arena_at(arena(), ARENA_SESSION);
}

void session_shared_move(void)
{
	struct session_shared *there = in_arena();

	if (session.shared == there)
		return;
	memcpy((void *)there, (const void *)&own_memory, sizeof(*there));
	session.shared = there;
	atomic_store_explicit(&session_words, &there->words, memory_order_release);
	atomic_store_explicit(&own_memory.lock, 0, memory_order_release);
}

static char proc[32] = "/proc/self";

const char *session_proc(void)
{
	return proc;
}

void session_join(struct config *config, uint32_t program)
{
	snprintf(proc, sizeof(proc), "/proc/%u", program);
	session.owner = getpid();
	session.config = config;
	session.shared = in_arena();
	session.ticks = true;
	atomic_store(&session_words, &session.shared->words);
}

void session_runs_as(uint32_t pid)
{
	atomic_store(&session.shared->runner_pid, pid);
}

bool session_has_begun(void)
{
	return arena_is_mine() && atomic_load(&arena()->begun);
}

bool session_is_asked(void)
{
	return atomic_load(&session.shared->asked) != atomic_load(&session.shared->done);
}

/* ---- waking and waiting: between processes, so these futexes are not private ---- */

static void wake_all(_Atomic uint32_t *futex)
{
	syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_for(_Atomic uint32_t *futex, uint32_t value, uint64_t limit_ns)
{
	struct timespec t = { .tv_sec = (time_t)(limit_ns / 1000000000u),
			      .tv_nsec = (long)(limit_ns % 1000000000u) };

	syscall(SYS_futex, futex, FUTEX_WAIT, value, limit_ns == NEVER ? NULL : &t, NULL, 0);
}

void session_wake_writer(void)
{
	struct session_shared *s = session.shared;

	if (!atomic_exchange_explicit(&s->wake, 1, memory_order_release))
		wake_all(&s->wake);
}

void session_note_work(void)
{
	if (session.has_helper)
		session_wake_writer();
	else
		atomic_store_explicit(&session.shared->wake, 1, memory_order_release);
}

void session_sleep(uint64_t limit_ns)
{
	struct session_shared *s = session.shared;
	uint64_t look = (session.config->sample_steps ? 1 : NOTE_MS) * MS;

	/* noted work does not wake the writer, so check for it; a spurious wake-up only costs a
	 * round */
	while (limit_ns && !atomic_load_explicit(&s->wake, memory_order_acquire)) {
		uint64_t wait = limit_ns < look ? limit_ns : look;

		wait_for(&s->wake, 0, wait);
		limit_ns -= limit_ns == NEVER ? 0 : wait;
	}
	atomic_exchange_explicit(&s->wake, 0, memory_order_acquire);
}

bool session_quits(void)
{
	return atomic_load(&session.shared->quit);
}

struct session_asked session_round_begins(void)
{
	struct session_shared *s = session.shared;
	struct session_asked a = { .round = atomic_load(&s->asked) };

	if (!session.helper) /* this process has joined the session */
		atomic_store(&session.config->late_rank, arena()->late_rank);
	a.waited = a.round != atomic_load(&s->done);
	a.close = a.waited && atomic_exchange(&s->close_asked, false);
	a.quit = atomic_load(&s->quit);
	return a;
}

void session_round_ends(const struct session_asked *asked)
{
	struct session_shared *s = session.shared;

	atomic_store(&s->done, asked->round);
	atomic_store(&s->finished, asked->quit);
	atomic_fetch_add(&s->round, 1);
	wake_all(&s->round);
}

/*
 * Returns whether the writer has died: the recorder reports it, or the writer is visible and dead.
 * It stays a zombie if process 1 of a container does not wait for orphans.
 */
static bool runner_is_gone(const struct session_shared *s)
{
	uint32_t pid = atomic_load(&s->runner_pid);
	char text[COMMAND_STAT];

	if (!pid || atomic_load(&arena()->writer_died))
		return atomic_load(&arena()->writer_died);
	const char *stat = command_stat(pid, text);
	return stat ? *stat == 'Z' : kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Waits until the round, or the last round, is done.  Returns false if `limit_ns` has passed. */
static bool wait_for_round(struct session_shared *s, uint64_t round, uint64_t limit_ns)
{
	uint64_t until = tick_clock_ns(CLOCK_MONOTONIC) + limit_ns;
	int kept = errno;
	bool good = false;

	for (;;) {
		uint32_t version = atomic_load(&s->round);
		uint64_t now = tick_clock_ns(CLOCK_MONOTONIC);

		good = atomic_load(&s->finished) || atomic_load(&s->done) >= round;
		if (good || now >= until || runner_is_gone(s))
			break;
		wait_for(&s->round, version,
			 until - now < RUNNER_MS * MS ? until - now : RUNNER_MS * MS);
	}
	errno = kept;
	return good;
}

static bool ask_round(bool close, uint64_t limit_ns)
{
	struct session_shared *s = session.shared;

	if (!session_has_begun())
		return true;
	if (close) /* set before the request, so that this round sees it */
		atomic_store(&s->close_asked, true);
	uint64_t round = atomic_fetch_add(&s->asked, 1) + 1;
	session_wake_writer();
	return wait_for_round(s, round, limit_ns);
}

bool session_flush(uint64_t limit_ns)
{
	return ask_round(false, limit_ns);
}

bool session_close_log(uint64_t limit_ns)
{
	return ask_round(true, limit_ns);
}

bool session_quit(uint64_t limit_ns)
{
	struct session_shared *s = session.shared;

	if (!session_has_begun())
		return true;
	atomic_store(&s->quit, true);
	session_wake_writer();
	return wait_for_round(s, NEVER, limit_ns);
}
