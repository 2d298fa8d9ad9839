/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/internal.h"

#include "collector/arena/texts.h"
#include "collector/session/seen.h"
#include "collector/session/signals.h"
#include "schemas/base/buf.h"

#include <string.h>
#include <unistd.h>

_Atomic bool session_works;

const char *session_by_text(enum session_by by)
{
	static const char *const texts[] = {
#define X(name, text) text,
		SESSION_BY(X)
#undef X
	};

	return texts[by < sizeof(texts) / sizeof(texts[0]) ? by : BY_CONFIG];
}

const struct config *session_config(void)
{
	return session.config;
}

/* ---- state ---- */

static void note_change(enum change_kind kind, uint64_t at)
{
	struct session_change *c = &session.shared->changes[session.shared->changes_head % CHANGES];

	*c = (struct session_change){ .kind = kind,
				      .window = session.shared->window,
				      .at = at,
				      .cut_short = session.shared->machine.cut_short,
				      .by = session.shared->machine.by_hand ? session.shared->by
									    : BY_CONFIG };
	session.shared->changes_head++;
}

/* Returns whether the list of changes has room for an event.  Room for ends is reserved, so that no
 * window begins that could not end, even if no writer takes changes. */
static bool fits(enum window_event event)
{
	size_t used = (size_t)(session.shared->changes_head - session.shared->changes_tail);
	bool ends = session.shared->machine.state != WINDOW_IDLE || event == WINDOW_EXIT;

	return used < CHANGES - (ends ? 1 : CHANGES_SPARE);
}

static void window_changed(enum window_state before, enum window_state after, uint64_t now)
{
	if (after == WINDOW_WARMUP) {
		note_change(CHANGE_WARMUP, now);
	} else if (after == WINDOW_RECORD) {
		session.shared->prepared = false;
		session.shared->window++;
		session.shared->spans[session.shared->window % SPANS] =
			(struct tick_span){ .begin = now };
		session.shared->next_sample_step = 0;
		note_change(CHANGE_BEGIN, now);
	} else if (before == WINDOW_RECORD) {
		struct tick_span *span = &session.shared->spans[session.shared->window % SPANS];
		span->end = now > span->begin ? now : span->begin + 1;
		atomic_store_explicit(&session.shared->words.over, session.shared->window,
				      memory_order_release);
		note_change(CHANGE_END, span->end);
	} else {
		note_change(CHANGE_CANCEL, now);
	}
	session_publish_window();
}

static uint32_t mode_wanted(void)
{
	if (session.refused)
		return 0;
	if (session.shared->machine.state == WINDOW_RECORD)
		return MODE_ARMED | MODE_RECORD;
	if (session.shared->exited || !session.config->enabled)
		return 0;
	if (!window_is_done(&session.shared->machine) || session.config->totals ||
	    session.config->ring || session.shared->machine.spec.on_demand)
		return MODE_ARMED;
	return 0;
}

/* Starting to record a GPU takes time, so it begins during the steps before a window. */

static bool may_prepare(void)
{
	return !session.shared->prepared && session.shared->machine.state == WINDOW_IDLE &&
	       !session.shared->machine.spec.warmup && !session.shared->exited &&
	       session.config->enabled;
}

static void prepare(uint64_t steps_so_far, uint64_t now)
{
	uint64_t next = window_next_step(&session.shared->machine);

	if (!may_prepare() || next == NEVER || steps_so_far + PREPARE_STEPS <= next ||
	    !fits(WINDOW_STEP))
		return;
	session.shared->prepared = true;
	note_change(CHANGE_WARMUP, now);
	session_note_work();
}

static void publish(bool changed)
{
	uint32_t mode = mode_wanted();
	uint64_t step = window_next_step(&session.shared->machine);

	if (step != NEVER && may_prepare())
		step = step > PREPARE_STEPS ? step - PREPARE_STEPS : 0;
	if (mode & MODE_RECORD && session.config->sample_steps &&
	    session.shared->next_sample_step < step)
		step = session.shared->next_sample_step;
	if (!session.shared->step_thread && config_rank(session.config).rank == RANK_UNKNOWN)
		step = 0; /* the rank is known at the first step */
	atomic_store_explicit(&session.shared->words.step, step, memory_order_relaxed);
	if (mode == session.shared->mode && !changed)
		return;
	if (!session.shared->mode && mode) {
		/* Open ranges were not recorded while the session was off. */
		for (struct thread_state *thread = session_threads(); thread;
		     thread = thread_next(thread))
			thread->stale = true;
	}
	session.shared->mode = mode;
	session.shared->generation++;
	/*
	 * release: a thread that sees the word also sees the window, which it reads under the lock
	 */
	atomic_store_explicit(&session.shared->words.word,
			      mode ? session.shared->generation << MODE_BITS | mode : 0,
			      memory_order_release);
	if (session.has_helper)
		session.helper->changed();
}

void session_feed_locked(const struct window_input *in, uint64_t now)
{
	bool again, changed = false;

	do {
		if (!fits(in->event)) {
			session.shared->ignored++;
			break;
		}
		enum window_state before = session.shared->machine.state;
		enum window_state after = window_feed(&session.shared->machine, in, &again);
		if (before != after) {
			window_changed(before, after, now);
			changed = true;
		}
	} while (again);
	if (in->event == WINDOW_EXIT)
		session.shared->exited = true;
	if (session.shared->exited && session.shared->prepared)
		note_change(CHANGE_CANCEL, now);
	session.shared->prepared &= !session.shared->exited;
	/* if no other window will come, the log is complete */
	if (changed && session.shared->machine.state == WINDOW_IDLE &&
	    session.shared->changes_head != session.shared->changes_tail)
		session.shared->changes[(session.shared->changes_head - 1) % CHANGES].final =
			window_is_done(&session.shared->machine) || in->event == WINDOW_STOP;
	if (in->event == WINDOW_STEP)
		prepare(in->number + 1, now);
	publish(changed);
	if (changed)
		session_note_work();
}

struct window_input session_input(enum window_event event)
{
	return (struct window_input){ .event = event,
				      .now_ns = tick_clock_ns(CLOCK_MONOTONIC),
				      .wall_ns = tick_clock_ns(CLOCK_REALTIME) };
}

void session_feed(enum window_event event, uint64_t now, uint64_t number, const char *name)
{
	struct window_input in = session_input(event);

	in.number = number;
	in.name = name;
	if (!session_enter())
		return;
	if (session.config)
		session_feed_locked(&in, now);
	session_leave();
}

void session_feed_range(enum window_event event, uint32_t name)
{
	size_t len;

	session_feed(event, tick_now(), 0, name_text(name, &len));
}

static void ask_sample(uint64_t now)
{
	if (session.shared->samples_head - session.shared->samples_tail < SAMPLES)
		session.shared->samples[session.shared->samples_head++ % SAMPLES] = now;
	else
		session.shared->ignored++;
	session_note_work();
}

void session_step_begins(struct thread_state *thread, uint64_t number, uint64_t now)
{
	struct window_input in = session_input(WINDOW_STEP);
	uint64_t every = session.config->sample_steps;

	in.number = number;
	if (!session_enter())
		return;
	uint64_t place = arena_offset(arena(), thread);
	if (!session.shared->step_thread) {
		session.shared->step_thread = place;
		config_learn_rank(session.config, environ);
		arena()->late_rank = atomic_load(&session.config->late_rank);
		publish(false);
	}
	if (session.shared->step_thread == place) {
		session_feed_locked(&in, now);
		if (every && session.shared->machine.state == WINDOW_RECORD &&
		    number >= session.shared->next_sample_step) {
			session.shared->next_sample_step = number - number % every + every;
			ask_sample(now);
			publish(false);
		}
	}
	session_leave();
}

void session_sample(uint64_t now)
{
	if (!session_enter())
		return;
	if (session.shared->mode & MODE_RECORD)
		ask_sample(now);
	else
		session.shared->ignored++;
	session_leave();
	session_wake_writer();
}

static void session_start_machine(const struct config *config, uint64_t now)
{
	struct window_input in = session_input(WINDOW_TIME);

	window_init(&session.shared->machine, &config->window_spec, in.now_ns);
	if (config->window_spec.range[0])
		atomic_store_explicit(&session.shared->words.range,
				      name_find(config->window_spec.range), memory_order_relaxed);
	session_feed_locked(&in, now);
	if (!config->window_spec.cyclic || !config->window_spec.wait)
		prepare(0, now);
}

static void start_clock(void)
{
	if (!session.ticks)
		tick_init(session.config->clock);
	session.ticks = true;
}

/* Starts the clock and the window machine of an enabled process.  The caller holds the lock. */
static void session_begin(bool is_worker)
{
	const struct config *c = session.config;

	atomic_store(&session_works, is_worker && !c->workers);
	if (is_worker && !c->workers)
		return;
	start_clock();
	session_start_machine(c, tick_now());
}

void session_init(struct config *config, const struct session_helper *helper)
{
	session_enter();
	session.owner = getpid();
	arena_limit(config->memory / 4 + ARENA_SPARE, ARENA_FIRST + thread_bytes(config->buffer));
	session.config = config;
	session_keep_settings();
	session.helper = helper;
	session.key_made = pthread_key_create(&session.key, session_thread_ends) == 0;
	if (config->enabled)
		session_begin(config->is_worker);
	session_leave();
}

static void note_time(struct thread_state *thread, const struct ring_record *r, const void *tail,
		      void *latest)
{
	uint64_t end = r->end > r->begin && r->end < NEVER ? r->end : r->begin;

	if (end > *(uint64_t *)latest)
		*(uint64_t *)latest = end;
}

/* Returns the latest tick that is known of the adopted process. */
static uint64_t last_tick(const struct arena_header *a)
{
	const struct tick_span ever = { .end = NEVER };
	uint64_t latest = a->points[a->point & 1].tick;
	uint8_t tail[RING_TAIL_MAX];
	struct ring_record r;

	for (struct thread_state *t = session_threads(); t; t = thread_next(t)) {
		ring_poll(&t->ring);
		while (ring_next(&t->ring, true, &r, tail))
			note_time(t, &r, tail, &latest);
		ring_rewind(&t->ring, a->commit & 1);
		thread_put_open(t, &ever, note_time, &latest);
	}
	return latest + 1;
}

uint64_t session_adopt(struct config *config, bool died_now)
{
	const struct arena_header *a = arena();
	const struct session_shared *theirs = arena_at(a, ARENA_SESSION);
	uint64_t first = a->committed[a->commit & 1].closed + 1;

	session.owner = getpid();
	session.config = config;
	session.shared->window = a->window;
	session.shared->ignored = theirs->ignored + theirs->machine.ignored;
	memcpy(session.shared->spans, theirs->spans, sizeof(theirs->spans));
	session.shared->spans[a->window % SPANS] =
		(struct tick_span){ .begin = a->window_begin,
				    .end = a->window_end ? a->window_end
					   : died_now    ? tick_now()
							 : last_tick(a) };
	first = first > a->window ? a->window : first;
	first = first + SPANS > a->window ? first : a->window - SPANS + 1;
	for (struct thread_state *thread = session_threads(); thread;
	     thread = thread_next(thread)) {
		ring_rewind(&thread->ring, a->commit & 1);
		thread->track_log = 0; /* it was the number of another writer's log */
		if (thread->windows_closed + 1 < first)
			thread->windows_closed = first - 1;
	}
	return first;
}

void session_stop_working(void)
{
	if (!session_enter())
		return;
	if (atomic_exchange(&session_works, false) && config_learn_rank(session.config, environ))
		session_begin(false);
	session_leave();
}

static void start_by_hand(enum session_by by)
{
	struct window_input in = session_input(WINDOW_START);

	if (!session.config || session.config->forbidden || session.shared->exited)
		return;
	if (atomic_exchange(&session_works, false))
		session_begin(false);
	if (!session.config->enabled && !session.shared->machine.spec.on_demand)
		window_init(&session.shared->machine, &(struct window_spec){ .on_demand = true },
			    in.now_ns);
	if (session.shared->machine.state == WINDOW_IDLE)
		session.shared->by = by;
	start_clock();
	session_feed_locked(&in, tick_now());
}

void session_start(enum session_by by)
{
	if (!session_enter())
		return;
	start_by_hand(by);
	session_leave();
}

void session_toggle(void)
{
	struct window_input in = session_input(WINDOW_STOP);

	if (!session_enter())
		return;
	if (session.shared->machine.state == WINDOW_IDLE)
		start_by_hand(BY_SIGNAL);
	else
		session_feed_locked(&in, tick_now());
	session_leave();
}

bool session_is_recording(void)
{
	return session_word_now() & MODE_RECORD;
}

/* ---- the end of the process, and fork() ---- */

void session_needs_helper(void)
{
	atomic_store(&session.needs_helper, true);
}

void session_look_again(void)
{
	if (!session_enter())
		return;
	if (session.shared->mode)
		publish(true);
	session_leave();
}

void session_refuse(void)
{
	if (getpid() != session.owner)
		return;
	session.refused = true;
	seen_add_refused();
	publish(true);
}

void session_exit(uint64_t limit_ns)
{
	struct window_input in = session_input(WINDOW_EXIT);

	/* a seccomp filter may forbid these calls; the recorder notices that the process ended */
	if (!session_has_begun() || arena_filters() == FILTERS_MORE)
		return;
	/*
	 * Children of vfork() and of a raw clone() run the parent's exit handlers, but the parent's
	 * threads are not in these processes.
	 */
	if (getpid() != session.owner)
		return;
	/* a thread that holds the lock may have been stopped forever */
	if (!session_enter_until(in.now_ns + limit_ns))
		return;
	if (session.config)
		session_feed_locked(&in, tick_now());
	uint64_t steps = 0;
	for (struct thread_state *t = session_threads(); t; t = thread_next(t))
		steps += GET_RELAXED(t->steps_done) + GET_RELAXED(t->step_open);
	seen_add_steps(steps);
	session_leave();
	session_quit(limit_ns);
	signals_stop();
}

/* Number of forks by this thread while some thread, perhaps itself, was changing the state. */
static _Thread_local unsigned forks_inside;

bool session_before_fork(void)
{
	bool whole = lock_take(&session.lock);

	if (whole && !names_before_fork()) {
		lock_release(&session.lock);
		whole = false;
	}
	if (whole)
		arena_before_fork();
	else
		forks_inside++;
	return whole;
}

static bool forked_inside(void)
{
	return forks_inside && forks_inside--;
}

bool session_forked_parent(void)
{
	if (forked_inside())
		return false;
	arena_after_fork();
	names_after_fork();
	lock_release(&session.lock);
	return true;
}

/* In a child: all that is said of the parent's recording begins again. */
static void begin_again(void)
{
	threads_forked();
	thread_mine = NULL;
	atomic_store(&session.needs_helper, false);
	session.has_helper = session.refused = false;
	session_shared_forget();
	memset(session.base_count, 0, sizeof(session.base_count));
	memset(session.base_ticks, 0, sizeof(session.base_ticks));
	if (session.ticks)
		tick_forked();
	if (session.config && session.config->enabled)
		session_begin(true);
}

bool session_forked_child(void)
{
	if (forked_inside()) { /* its arena remains the parent's, so it is not recorded */
		thread_mine = NULL;
		arena_forked(true);
		if (!lock_is_mine(&session.lock))
			session.lock = (struct lock)LOCK_INITIALIZER;
		return false;
	}
	arena_after_fork();
	names_after_fork();
	arena_forked(false);
	session.owner = (pid_t)arena_thread_number(); /* a seccomp filter may forbid getpid() */
	session.is_cloned = false;
	if (session.key_made)
		pthread_setspecific(session.key, NULL);
	begin_again();
	lock_release(&session.lock);
	return true;
}

bool session_cloned_child(void)
{
	bool inside = lock_is_mine(&session.lock);

	arena_cloned();
	if (inside) {
		session_leave_parents();
		return false;
	}
	session.owner = 0; /* a seccomp filter may forbid getpid() */
	session.is_cloned = true;
	session.helper =
		NULL; /* starting a thread allocates, and malloc() may be locked for ever */
	begin_again();
	return true;
}
