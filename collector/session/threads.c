/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/internal.h"

#include "collector/arena/introduce.h"
#include "collector/arena/texts.h"
#include "collector/session/seen.h"
#include "collector/session/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { RING_LEAST = 4096 };

static char process_name[16];

struct thread_state *session_threads(void)
{
	/* a child without an arena has no threads, even if its parent has */
	uint64_t first =
		arena_is_mine() ? atomic_load_explicit(&arena()->threads, memory_order_acquire) : 0;

	return first ? arena_at(arena(), first) : NULL;
}

/* Returns the number of the last window that has ended. */
static uint64_t last_ended(void)
{
	return session.shared->machine.state == WINDOW_RECORD ? session.shared->window - 1
							      : session.shared->window;
}

static void close_windows(struct thread_state *thread, uint64_t last, thread_put_fn put, void *arg)
{
	if (thread->windows_closed + SPANS < last)
		thread->windows_closed = last - SPANS;
	while (thread->windows_closed < last) {
		uint64_t window = thread->windows_closed + 1;

		if (!thread->stale && !GET_RELAXED(thread->dead))
			thread_put_open(thread, &session.shared->spans[window % SPANS], put, arg);
		thread->windows_closed = window; /* last, because the writer may be killed before */
	}
}

static void put_in_ring(struct thread_state *thread, const struct ring_record *r, const void *tail,
			void *arg)
{
	ring_put_tail(&thread->writer, r, tail);
}

static void catch_up(struct thread_state *thread)
{
	close_windows(thread, last_ended(), put_in_ring, NULL);
	if (thread->stale)
		thread_clear(thread);
	thread->stale = false;
	thread->records = session.shared->mode & MODE_RECORD;
	thread->window_begin =
		thread->records ? session.shared->spans[session.shared->window % SPANS].begin : 0;
	SET_RELAXED(thread->own->agreed_word,
		    atomic_load_explicit(&session.shared->words.word, memory_order_relaxed));
}

/* Returns the state with the largest ring among those whose thread has ended and whose ring was
 * emptied, or NULL. */
static struct thread_state *find_free(bool with_ring)
{
	struct thread_state *best = NULL;

	for (struct thread_state *thread = session_threads(); thread; thread = thread_next(thread))
		if (GET_RELAXED(thread->dead) && (thread->ring.slots != 0) == with_ring &&
		    ring_is_done(&thread->ring) && (!best || thread->ring.bits > best->ring.bits))
			best = thread;
	return best;
}

/*
 * Returns the size of the next thread's ring in bytes.  The first threads get the configured size,
 * later ones smaller and smaller rings, so that a thousand threads get one. 0: no memory is left
 * for another ring.
 */
static size_t next_ring_bytes(void)
{
	size_t all = session.config->memory / 4, used = session.shared->ring_bytes;
	size_t bytes = session.config->buffer, left = all > used ? all - used : 0;

	while (used && bytes > RING_LEAST && all / 8 + 8 * bytes > left)
		bytes /= 2;
	return ring_size(bytes) <= left ? ring_size(bytes) : 0;
}

static struct thread_state *add_thread(void)
{
	size_t bytes = next_ring_bytes();
	/* records of a thread without a ring are only counted */
	struct thread_state *thread = bytes ? NULL : find_free(false);

	if (thread)
		return thread;
	thread = thread_new(bytes);
	if (!thread && bytes)
		thread = thread_new(bytes = 0);
	if (!thread)
		return NULL;
	session.shared->ring_bytes += bytes;
	thread->next = atomic_load_explicit(&arena()->threads, memory_order_relaxed);
	atomic_store_explicit(&arena()->threads, arena_offset(arena(), thread),
			      memory_order_release);
	return thread;
}

/* Makes the state of the calling thread, in an arena that the recorder has. */
static struct thread_state *take_thread(void)
{
	struct thread_state *thread = find_free(true);

	if (!thread)
		thread = add_thread();
	if (!thread)
		return NULL;
	thread_clear(thread);
	thread->next_step = 0;
	SET_RELAXED(thread->dead, false);
	thread->stale = false;
	thread->tid = arena_thread_number();
	/* while the thread lives, the writer reads its own name from /proc */
	memcpy(thread->thread_name, process_name, sizeof(process_name));
	thread->owners++;
	thread->windows_closed = last_ended();
	if (!session.is_cloned || thread->tid != (uint32_t)session.owner) /* may allocate */
		pthread_setspecific(session.key, thread);
	return thread;
}

static bool has_arena(void)
{
	if (session_threads())
		return true;
	if (!names_open() || !arena_is_introduced())
		return false;
	prctl(PR_GET_NAME, process_name);
	session_publish_arena();
	return true;
}

bool session_prepare(void)
{
	if (!session_word_now() || !session_enter_masked())
		return false;
	if (has_arena() && (thread_mine = take_thread()) != NULL)
		arena_want(thread_bytes(session.config->buffer)); /* for the next thread */
	session_leave();
	return thread_mine != NULL;
}

/* Handles the first event of this process, when the recorder has the arena. */
static void begin(void)
{
	if (session.config->ring)
		signals_install_save(session.config->trigger_spec.signal_number);
	if (introduced_to())
		session_runs_as((uint32_t)introduced_to());
	atomic_store(&arena()->begun, true);
	session_note_work();
}

/*
 * Returns whether this process needs a helper.  No lock is held, because CUDA is called, but
 * signals are blocked, so that no handler of the program jumps out of the call.  If the recorder
 * has the arena, it checks for CUDA itself, without a system call here.
 */
static bool needs_helper(void)
{
	sigset_t all, before;

	if (session.has_helper || !session.helper || atomic_load(&session.needs_helper) ||
	    (arena_is_introduced() && !atomic_load(&arena()->has_cuda)))
		return atomic_load(&session.needs_helper);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (session.helper->is_needed())
		atomic_store(&session.needs_helper, true);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return atomic_load(&session.needs_helper);
}

/* Returns whether the event needs no system calls, because everything for the thread's first event
 * exists. */
static bool is_prepared(const struct thread_state *thread, bool needs)
{
	if (thread)
		return !needs || session.has_helper;
	if (!arena_is_introduced() || !session_threads())
		return false;
	/* before the session's lock is taken, because this may take 10 ms */
	if (!find_free(true))
		arena_want(thread_bytes(session.config->buffer));
	return true;
}

/* Returns whether this process must not make the system calls for an arena. */
static bool must_stay_out(void)
{
	uint64_t limit;

	if (arena_is_mine())
		return false;
	if (arena_refused(&limit) == REFUSED_FILTER)
		return true;
	if (arena_filters() != FILTERS_MORE)
		return false;
	arena_stay_out(REFUSED_FILTER);
	return true;
}

void session_stay_out(void)
{
	atomic_store(&session_words_now()->word, MODE_ARMED); /* until the first event */
}

/* Counts an event of a thread that gets no state.  Returns false if the event is in no window. */
static bool lose_event(void)
{
	struct thread_state *first = session_word_now() & MODE_RECORD ? session_threads() : NULL;

	if (first)
		atomic_fetch_add(&first->ring.lost, 1);
	return first != NULL;
}

/* Leaves the parent's state in a child that was forked while an event was being made. */
void session_leave_parents(void)
{
	thread_mine = NULL;
	session_shared_forget(); /* recording stays off after this */
	arena_stay_out(REFUSED_CLONE);
	seen_add_refused();
	session.refused = true;
}

static struct thread_state *find_thread(bool make)
{
	bool is_new = arena_notice_clone();
	struct thread_state *thread = thread_mine;

	if ((is_new && !session_word_now()) || (!make && (!thread || !session_has_begun())))
		return NULL;
	if (!session_is_mine()) {
		session_leave_parents();
		return NULL;
	}
	if (must_stay_out()) {
		atomic_store(&session_words_now()->word, 0);
		if (!session.refused)
			seen_add_refused();
		session.refused = true;
		return NULL;
	}
	if (arena_learn_number())
		session.owner = getpid();
	bool needs = needs_helper();
	if (!(is_prepared(thread, needs) ? session_enter() : session_enter_masked())) {
		if (make)
			lose_event();
		return NULL;
	}
	if (!session.shared->mode || !session.key_made || (thread && !arena_is_mine()))
		thread = NULL; /* the session is off */
	else if (!thread && has_arena())
		thread = thread_mine = take_thread();
	else if (!thread)
		session_refuse();
	if (thread && !session_has_begun())
		begin();
	if (thread && needs && !session.has_helper)
		session.has_helper = session.helper->start(session.config);
	if (thread)
		catch_up(thread);
	else if (!lose_event())
		session.shared->ignored++;
	session_leave();
	return thread;
}

struct thread_state *session_thread(bool make)
{
	int kept = errno;
	struct thread_state *thread = find_thread(make);

	errno = kept; /* an event must not change errno */
	return thread;
}

struct thread_state *session_thread_unlocked(void)
{
	return session_has_begun() ? thread_mine : NULL;
}

void session_thread_ends(void *arg)
{
	struct thread_state *thread = thread_mine; /* `arg` may be that of a parent's thread */
	struct tick_span span = { .end = tick_now() };

	if (!thread || !arena_is_mine() || !session_enter())
		return; /* a child of a bare clone(): the state is the parent's */
	thread_mine = NULL;
	catch_up(thread);
	span.begin = thread->window_begin;
	if (thread->records)
		thread_put_open(thread, &span, put_in_ring, NULL);
	thread_clear(thread);
	/* release: a reader that sees `dead` also sees all records of the thread */
	atomic_store_explicit(&thread->dead, true, memory_order_release);
	if (session.shared->step_thread == arena_offset(arena(), thread))
		session.shared->step_thread = 0;
	/* wake the writer if threads end faster than it empties their rings */
	if (session.shared->ring_bytes > session.config->memory / 8)
		session_note_work();
	session_leave();
}

bool session_wants_rings(void)
{
	bool wants = false;

	if (!session_enter())
		return false;
	if (session.shared->ring_bytes > session.config->memory / 8)
		for (struct thread_state *thread = session_threads(); thread && !wants;
		     thread = thread_next(thread))
			wants = GET_RELAXED(thread->dead) && !ring_is_done(&thread->ring);
	session_leave();
	return wants;
}

void session_close_threads(uint64_t window, thread_put_fn put, void *arg)
{
	if (!session_enter())
		return;
	for (struct thread_state *thread = session_threads(); thread; thread = thread_next(thread))
		close_windows(thread, window, put, arg);
	session_leave();
}

void session_total(uint32_t name, uint64_t *count, uint64_t *ticks)
{
	*count = *ticks = 0;
	if (name >= THREAD_TOTALS)
		return;
	for (struct thread_state *thread = session_threads(); thread;
	     thread = thread_next(thread)) {
		*count += GET_RELAXED(thread->totals[name].count);
		*ticks += GET_RELAXED(thread->totals[name].ticks);
	}
	if (!session_enter())
		return;
	*count -= session.base_count[name];
	*ticks -= session.base_ticks[name];
	session_leave();
}

void session_reset_totals(void)
{
	uint64_t count, ticks;

	for (uint32_t name = 0; name < THREAD_TOTALS; name++) {
		session_total(name, &count, &ticks);
		if (!session_enter())
			return;
		session.base_count[name] += count;
		session.base_ticks[name] += ticks;
		session_leave();
	}
}
