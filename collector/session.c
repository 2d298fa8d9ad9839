/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session.h"

#include "collector/names.h"
#include "collector/nvtx_names.h"
#include "collector/writer.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PREPARE_STEPS = 3, CHANGES = 64, CHANGES_SPARE = 4, SPANS = 64, SAMPLES = 64 };
#define NEVER UINT64_MAX

_Atomic uint32_t session_word;
_Atomic uint64_t session_step = NEVER;
_Atomic uint32_t session_range;
_Atomic uint64_t session_over;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key; /* its destructor tells that a thread ends */
static bool key_made;

static struct {
	const struct config *config;
	const struct watch_type *const *watches;
	struct window_machine machine;
	struct writer *writer;
	void *ancestors; /* the writer of the process that forked us: not ours, but not lost */
	_Atomic(struct lane *) lanes;
	size_t ring_bytes; /* of all lanes */
	struct lane *step_lane; /* whose steps the window machine hears of */

	uint32_t mode, generation;
	uint64_t window;            /* the latest that was recorded, from 1; 0 none */
	struct lane_span spans[SPANS];
	struct session_change changes[CHANGES];
	uint64_t changes_head, changes_tail;
	uint64_t samples[SAMPLES], samples_head, samples_tail;
	uint64_t next_sample_step, ignored;
	uint64_t base_count[LANE_TOTALS], base_ticks[LANE_TOTALS];
	bool exited, ticks;
	bool prepared; /* watches warm up for a window that has not begun */
} s;

const struct config *session_config(void)
{
	return s.config;
}

const struct watch_type *const *session_watches(void)
{
	return s.watches;
}

/* ---- state ---- */

static void note_change(enum change_kind kind, uint64_t at)
{
	struct session_change *c = &s.changes[s.changes_head % CHANGES];

	*c = (struct session_change){ .kind = kind, .window = s.window, .at = at,
				      .cut_short = s.machine.cut_short,
				      .by_hand = s.machine.by_hand };
	s.changes_head++;
}

static bool has_room(enum window_event event)
{
	size_t used = (size_t)(s.changes_head - s.changes_tail);

	if (event == WINDOW_EXIT || event == WINDOW_STOP)
		return used < CHANGES - 1;
	return used < CHANGES - CHANGES_SPARE;
}

static void window_changed(enum window_state before, enum window_state after, uint64_t now)
{
	struct lane_span *span;

	if (after == WINDOW_WARMUP) {
		note_change(CHANGE_WARMUP, now);
	} else if (after == WINDOW_RECORD) {
		s.prepared = false;
		s.window++;
		s.spans[s.window % SPANS] = (struct lane_span){ .begin = now };
		s.next_sample_step = 0;
		note_change(CHANGE_BEGIN, now);
	} else if (before == WINDOW_RECORD) {
		span = &s.spans[s.window % SPANS];
		span->end = now > span->begin ? now : span->begin + 1;
		atomic_store_explicit(&session_over, s.window, memory_order_release);
		note_change(CHANGE_END, span->end);
	} else {
		note_change(CHANGE_CANCEL, now);
	}
}

static uint32_t mode_wanted(void)
{
	if (s.machine.state == WINDOW_RECORD)
		return MODE_ARMED | MODE_RECORD;
	if (s.exited || !s.config->enabled)
		return 0;
	if (!window_is_done(&s.machine) || s.config->totals || s.machine.spec.on_demand)
		return MODE_ARMED;
	return 0;
}

/* Stacks were not kept while the session was off. */
static void stale_stacks(void)
{
	struct lane *l;

	for (l = session_lanes(); l; l = l->next)
		l->stale = true;
}

/* Recording a GPU takes its time to begin: the steps before a window are spent on it. */

static bool may_prepare(void)
{
	return !s.prepared && s.machine.state == WINDOW_IDLE && !s.machine.spec.warmup &&
	       !s.exited && s.config->enabled;
}

static void prepare(uint64_t steps_so_far, uint64_t now)
{
	uint64_t next = window_next_step(&s.machine);

	if (!may_prepare() || next == NEVER || steps_so_far + PREPARE_STEPS <= next ||
	    !has_room(WINDOW_STEP))
		return;
	s.prepared = true;
	note_change(CHANGE_WARMUP, now);
	if (s.writer)
		writer_wake(s.writer);
}

static void publish(bool changed)
{
	uint32_t mode = mode_wanted();
	uint64_t step = window_next_step(&s.machine);

	if (step != NEVER && may_prepare())
		step = step > PREPARE_STEPS ? step - PREPARE_STEPS : 0;
	if (mode & MODE_RECORD && s.config->sample_steps && s.next_sample_step < step)
		step = s.next_sample_step;
	atomic_store_explicit(&session_step, step, memory_order_relaxed);
	if (mode == s.mode && !changed)
		return;
	if (!s.mode && mode)
		stale_stacks();
	s.mode = mode;
	s.generation++;
	/* release: who sees the word sees the window behind it, under the lock anyway */
	atomic_store_explicit(&session_word, mode ? s.generation << MODE_BITS | mode : 0,
			      memory_order_release);
}

static void feed(const struct window_input *in, uint64_t now)
{
	enum window_state before, after;
	bool again, changed = false;

	if (!has_room(in->event)) {
		s.ignored++;
		return;
	}
	do {
		before = s.machine.state;
		after = window_feed(&s.machine, in, &again);
		if (before != after) {
			window_changed(before, after, now);
			changed = true;
		}
	} while (again);
	if (in->event == WINDOW_EXIT)
		s.exited = true;
	if (s.exited && s.prepared)
		note_change(CHANGE_CANCEL, now);
	s.prepared &= !s.exited;
	/* a window that ended and no other to come: the log is whole */
	if (changed && s.machine.state == WINDOW_IDLE && s.changes_head != s.changes_tail)
		s.changes[(s.changes_head - 1) % CHANGES].final =
			window_is_done(&s.machine) || in->event == WINDOW_STOP;
	if (in->event == WINDOW_STEP)
		prepare(in->number + 1, now);
	publish(changed);
	if (changed && s.writer)
		writer_wake(s.writer);
}

void session_feed(enum window_event event, uint64_t now, uint64_t number, const char *name)
{
	struct window_input in = { .event = event, .number = number, .name = name,
				   .now_ns = tick_clock_ns(CLOCK_REALTIME) };

	pthread_mutex_lock(&lock);
	if (s.config)
		feed(&in, now);
	pthread_mutex_unlock(&lock);
}

void session_step_begins(struct lane *l, uint64_t number, uint64_t now)
{
	struct window_input in = { .event = WINDOW_STEP, .number = number,
				   .now_ns = tick_clock_ns(CLOCK_REALTIME) };
	uint64_t every = s.config->sample_steps;

	pthread_mutex_lock(&lock);
	if (!s.step_lane)
		s.step_lane = l;
	if (s.step_lane == l) {
		feed(&in, now);
		if (every && s.machine.state == WINDOW_RECORD && number >= s.next_sample_step) {
			s.next_sample_step = number - number % every + every;
			if (s.samples_head - s.samples_tail < SAMPLES)
				s.samples[s.samples_head++ % SAMPLES] = now;
			else
				s.ignored++;
			publish(false);
			if (s.writer)
				writer_wake(s.writer);
		}
	}
	pthread_mutex_unlock(&lock);
}

void session_sample(uint64_t now)
{
	pthread_mutex_lock(&lock);
	if (s.mode & MODE_RECORD && s.samples_head - s.samples_tail < SAMPLES)
		s.samples[s.samples_head++ % SAMPLES] = now;
	else
		s.ignored++;
	if (s.writer)
		writer_wake(s.writer);
	pthread_mutex_unlock(&lock);
}

static void start_machine(const struct config *config, uint64_t now)
{
	struct window_input in = { .event = WINDOW_TIME,
				   .now_ns = tick_clock_ns(CLOCK_REALTIME) };

	window_init(&s.machine, &config->window_spec, in.now_ns);
	if (config->window_spec.range[0])
		atomic_store_explicit(&session_range, name_find(config->window_spec.range),
				      memory_order_relaxed);
	feed(&in, now);
	if (!config->window_spec.cyclic || !config->window_spec.wait)
		prepare(0, now);
}

static void thread_ends(void *arg);

static void start_clock(void)
{
	if (!s.ticks)
		tick_init(s.config->clock);
	s.ticks = true;
}

void session_init(const struct config *config, const struct watch_type *const *watches)
{
	pthread_mutex_lock(&lock);
	s.config = config;
	s.watches = watches;
	key_made = pthread_key_create(&key, thread_ends) == 0;
	if (config->enabled) {
		start_clock();
		start_machine(config, tick_now());
	}
	pthread_mutex_unlock(&lock);
}

void session_start(void)
{
	struct window_input in = { .event = WINDOW_START,
				   .now_ns = tick_clock_ns(CLOCK_REALTIME) };

	pthread_mutex_lock(&lock);
	if (s.config && !s.config->forbidden && !s.exited) {
		if (!s.config->enabled && !s.machine.spec.on_demand)
			window_init(&s.machine, &(struct window_spec){ .on_demand = true },
				    in.now_ns);
		start_clock();
		feed(&in, tick_now());
	}
	pthread_mutex_unlock(&lock);
}

/* ---- lanes ---- */

struct lane *session_lanes(void)
{
	return atomic_load_explicit(&s.lanes, memory_order_acquire);
}

/* The last window that has ended. */
static uint64_t last_ended(void)
{
	return s.machine.state == WINDOW_RECORD ? s.window - 1 : s.window;
}

struct closing {
	lane_put_fn put;
	void *arg;
};

static void close_windows(struct lane *l, uint64_t last, const struct closing *to)
{
	if (l->windows_closed + SPANS < last)
		l->windows_closed = last - SPANS;
	while (l->windows_closed < last) {
		l->windows_closed++;
		if (l->stale || l->dead)
			continue;
		lane_tell_open(l, &s.spans[l->windows_closed % SPANS], to->put, to->arg);
	}
}

static void put_in_ring(struct lane *l, const struct ring_record *r, const void *tail, void *arg)
{
	ring_put_tail(&l->ring, r, tail);
}

static void catch_up(struct lane *l)
{
	static const struct closing ring = { put_in_ring, NULL };

	close_windows(l, last_ended(), &ring);
	if (l->stale)
		lane_clear(l);
	l->stale = false;
	l->records = s.mode & MODE_RECORD;
	l->window_begin = l->records ? s.spans[s.window % SPANS].begin : 0;
	LANE_SET(l->seen, atomic_load_explicit(&session_word, memory_order_relaxed));
}

/* One whose thread is gone and whose ring was emptied. */
static struct lane *find_free(bool with_ring)
{
	struct lane *l;

	for (l = session_lanes(); l; l = l->next)
		if (l->dead && (l->ring.records != NULL) == with_ring && ring_is_done(&l->ring))
			return l;
	return NULL;
}

static struct lane *add_lane(void)
{
	size_t bytes = ring_size(s.config->buffer);
	struct lane *l;

	if (s.ring_bytes + bytes > s.config->memory / 4) {
		l = find_free(false);
		if (l)
			return l;
		bytes = 0; /* what this thread does is counted, and no more */
	}
	l = lane_new(bytes);
	if (!l)
		return NULL;
	s.ring_bytes += bytes;
	l->next = session_lanes();
	atomic_store_explicit(&s.lanes, l, memory_order_release);
	return l;
}

static struct lane *take_lane(void)
{
	struct lane *l = find_free(true);

	if (!l)
		l = add_lane();
	if (!l)
		return NULL;
	lane_clear(l);
	l->next_step = 0;
	l->dead = l->stale = false;
	l->tid = (uint32_t)gettid();
	prctl(PR_GET_NAME, l->thread_name);
	l->owners++;
	l->windows_closed = last_ended();
	pthread_setspecific(key, l);
	return l;
}

struct lane *session_lane(bool make)
{
	struct lane *l = lane_mine;

	if (!l && !make)
		return NULL;
	pthread_mutex_lock(&lock);
	if (!s.mode || !key_made)
		l = NULL;
	else if (!l)
		l = lane_mine = take_lane();
	if (!s.writer && l)
		s.writer = writer_start(s.config, s.watches);
	if (l)
		catch_up(l);
	else
		s.ignored++;
	pthread_mutex_unlock(&lock);
	return l;
}

static void thread_ends(void *arg)
{
	struct lane *l = arg;
	struct lane_span span = { .end = tick_now() };

	pthread_mutex_lock(&lock);
	lane_mine = NULL;
	catch_up(l);
	span.begin = l->window_begin;
	if (l->records)
		lane_tell_open(l, &span, put_in_ring, NULL);
	lane_clear(l);
	l->dead = true;
	if (s.step_lane == l)
		s.step_lane = NULL;
	/* threads come and go faster than their rings are emptied */
	if (s.writer && s.ring_bytes > s.config->memory / 8)
		writer_wake(s.writer);
	pthread_mutex_unlock(&lock);
}

void session_close_lanes(uint64_t window, lane_put_fn put, void *arg)
{
	struct closing to = { put, arg };
	struct lane *l;

	pthread_mutex_lock(&lock);
	for (l = session_lanes(); l; l = l->next)
		close_windows(l, window, &to);
	pthread_mutex_unlock(&lock);
}

void session_total(uint32_t name, uint64_t *count, uint64_t *ticks)
{
	struct lane *l;

	*count = *ticks = 0;
	if (name >= LANE_TOTALS)
		return;
	for (l = session_lanes(); l; l = l->next) {
		*count += LANE_GET(l->totals[name].count);
		*ticks += LANE_GET(l->totals[name].ticks);
	}
	pthread_mutex_lock(&lock);
	*count -= s.base_count[name];
	*ticks -= s.base_ticks[name];
	pthread_mutex_unlock(&lock);
}

void session_reset_totals(void)
{
	uint64_t count, ticks;
	uint32_t name;

	for (name = 0; name < LANE_TOTALS; name++) {
		session_total(name, &count, &ticks);
		pthread_mutex_lock(&lock);
		s.base_count[name] += count;
		s.base_ticks[name] += ticks;
		pthread_mutex_unlock(&lock);
	}
}

/* ---- the writer's side ---- */

bool session_next_change(struct session_change *out)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = s.changes_tail != s.changes_head;
	if (any)
		*out = s.changes[s.changes_tail++ % CHANGES];
	pthread_mutex_unlock(&lock);
	return any;
}

struct lane_span session_span(uint64_t window)
{
	struct lane_span span;

	pthread_mutex_lock(&lock);
	span = s.spans[window % SPANS];
	pthread_mutex_unlock(&lock);
	return span;
}

uint64_t session_next_ns(void)
{
	uint64_t ns;

	pthread_mutex_lock(&lock);
	ns = window_next_ns(&s.machine);
	pthread_mutex_unlock(&lock);
	return ns;
}

bool session_next_sample(uint64_t *at)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = s.samples_tail != s.samples_head;
	if (any)
		*at = s.samples[s.samples_tail++ % SAMPLES];
	pthread_mutex_unlock(&lock);
	return any;
}

bool session_is_warm(void)
{
	bool warm;

	pthread_mutex_lock(&lock);
	warm = s.prepared || s.machine.state != WINDOW_IDLE;
	pthread_mutex_unlock(&lock);
	return warm;
}

uint64_t session_ignored(void)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = s.ignored + s.machine.ignored;
	pthread_mutex_unlock(&lock);
	return count;
}

/* ---- flush, exit, fork ---- */

static struct writer *writer_now(void)
{
	struct writer *w;

	pthread_mutex_lock(&lock);
	w = s.writer;
	pthread_mutex_unlock(&lock);
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

	return pthread_mutex_timedlock(&lock, &until) == 0;
}

void session_exit(uint64_t limit_ns)
{
	struct window_input in = { .event = WINDOW_EXIT,
				   .now_ns = tick_clock_ns(CLOCK_REALTIME) };
	struct writer *w;

	if (!lock_in_time(limit_ns))
		return;
	if (s.config)
		feed(&in, tick_now());
	w = s.writer;
	if (w) /* may be called again: a watch has its reasons to be the first at the exit */
		s.ancestors = w;
	s.writer = NULL;
	pthread_mutex_unlock(&lock);
	if (w)
		writer_quit(w, limit_ns);
}

void session_before_fork(void)
{
	pthread_mutex_lock(&lock);
	nvtx_names_lock();
	names_before_fork();
}

void session_forked_parent(void)
{
	names_after_fork();
	nvtx_names_unlock();
	pthread_mutex_unlock(&lock);
}

void session_forked_child(void)
{
	names_after_fork();
	nvtx_names_unlock();
	if (s.writer)
		s.ancestors = s.writer;
	s.writer = NULL;
	atomic_store_explicit(&s.lanes, NULL, memory_order_relaxed);
	lane_mine = NULL;
	if (key_made)
		pthread_setspecific(key, NULL);
	s.ring_bytes = 0;
	s.step_lane = NULL;
	s.window = s.changes_head = s.changes_tail = s.samples_head = s.samples_tail = 0;
	s.ignored = 0;
	s.mode = 0;
	s.exited = s.prepared = false;
	memset(s.base_count, 0, sizeof(s.base_count));
	memset(s.base_ticks, 0, sizeof(s.base_ticks));
	atomic_store_explicit(&session_word, 0, memory_order_relaxed);
	atomic_store_explicit(&session_over, 0, memory_order_relaxed);
	memset(&s.machine, 0, sizeof(s.machine));
	if (s.ticks)
		tick_forked();
	if (s.config && s.config->enabled)
		start_machine(s.config, tick_now());
	pthread_mutex_unlock(&lock);
}
