/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config.h"
#include "collector/death.h"
#include "collector/session.h"
#include "collector/watch.h"
#include "collector/writer/inside.h"
#include "schemas/buf.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define MS UINT64_C(1000000)
enum {
	PERIOD_MS = 100, /* between two drains of rings that are nearly empty */
	GRACE_MS = 2,    /* for calls that were under way when a window ended */
	FLUSH_MS = 1000, /* what a kill loses at most; also between anchors */
};

/* ---- windows ---- */

static uint64_t cpu_now(void)
{
	return tick_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void open_watches(struct writer *w)
{
	size_t i, kept = 0;

	if (w->opened)
		return;
	w->opened = true;
	for (i = 0; i < w->watch_count; i++) {
		const struct watch_type *t = w->watches[i];

		if (!t->open || t->open(w->config, NULL) == ST_OK)
			w->watches[kept++] = t;
	}
	w->watch_count = kept;
}

static void begin_watches(struct writer *w, uint64_t now_ns)
{
	size_t i;

	open_watches(w);
	for (i = 0; i < w->watch_count && !w->begun; i++)
		if (w->watches[i]->begin)
			w->watches[i]->begin(now_ns, NULL);
	w->begun = true;
}

static void end_watches(struct writer *w, uint64_t now_ns)
{
	size_t i;

	for (i = 0; i < w->watch_count && w->begun; i++)
		if (w->watches[i]->end)
			w->watches[i]->end(now_ns, now_ns + FLUSH_MS * MS);
	w->begun = false;
}

static unsigned drain_watches(struct writer *w)
{
	uint64_t now_ns;
	unsigned fullest = 0, full;
	size_t i;

	tick_knot();
	now_ns = tick_to_ns(tick_now());
	for (i = 0; i < w->watch_count; i++) {
		full = w->watches[i]->drain ? w->watches[i]->drain(w, now_ns) : 0;
		fullest = full > fullest ? full : fullest;
	}
	return fullest;
}

static void warm_watches(struct writer *w)
{
	size_t i;

	for (i = 0; i < w->watch_count; i++)
		if (w->watches[i]->warm)
			w->watches[i]->warm();
}

static void window_begins(struct writer *w, const struct session_change *c)
{
	tick_knot();
	w->recording = true;
	w->broken = false;
	w->cost_ns = 0;
	w->cpu_ns = cpu_now();
	w->got = (struct window){ .begin_ns = tick_to_ns(c->at) };
	w->by = c->by;
	w->window_row = 0;
	if (w->trace)
		writer_put_window(w);
	begin_watches(w, w->got.begin_ns);
	step_cost_begin(&w->steps, session_lanes(), c->at);
}

static void tell_number(struct writer *w, const char *key, uint64_t number)
{
	char text[DECIMAL_MAX + 1];

	if (!number)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	writer_tell(w, key, text, true);
}

static void tell_steps(struct writer *w, const struct steps_kept *k, const char *count,
		       const char *median)
{
	double ns = (double)step_cost_median(k) * 1e9 / tick_per_second();

	tell_number(w, count, k->count);
	tell_number(w, median, (uint64_t)ns);
}

/* What recording does to the time of a step. */
static void compare_steps(struct writer *w, uint64_t end)
{
	step_cost_end(&w->steps, session_lanes(), end);
	tell_steps(w, &w->steps.around, "steps_around", "steps_around_median_ns");
	tell_steps(w, &w->steps.inside, "steps_recorded", "steps_recorded_median_ns");
}

static void wait_for_calls(uint64_t since)
{
	double passed = (double)(tick_now() - since) / tick_per_second() * 1e9;
	struct timespec t = { .tv_nsec = GRACE_MS * MS };

	if (passed < (double)t.tv_nsec)
		nanosleep(&t, NULL);
}

static void window_ends(struct writer *w, const struct session_change *c)
{
	size_t i;

	wait_for_calls(c->at);
	tick_knot();
	w->got.end_ns = tick_to_ns(c->at);
	w->got.cut_short = c->cut_short;
	end_watches(w, w->got.end_ns);
	drain_watches(w);
	for (i = 0; i < w->watch_count; i++)
		if (w->watches[i]->close_window)
			w->watches[i]->close_window(w, c->window);
	w->got.own_ns = w->cost_ns + cpu_now() - w->cpu_ns;
	compare_steps(w, c->at);
	w->recording = false;
	if (!w->trace)
		return;
	writer_put_window(w);
	writer_flush_log(w, tick_clock_ns(CLOCK_MONOTONIC));
}

static void take_change(struct writer *w, const struct session_change *c)
{
	if (c->kind == CHANGE_WARMUP) {
		step_cost_warm(&w->steps, session_lanes(), c->at);
		begin_watches(w, tick_to_ns(c->at));
	} else if (c->kind == CHANGE_BEGIN) {
		window_begins(w, c);
	} else if (c->kind == CHANGE_CANCEL) {
		end_watches(w, tick_to_ns(c->at));
		step_cost_end(&w->steps, session_lanes(), c->at);
	} else if (w->recording) {
		window_ends(w, c);
	}
	if (c->final)
		writer_rest_log(w);
}

/* ---- the thread ---- */

void writer_wake(struct writer *w)
{
	if (!atomic_exchange_explicit(&w->bell, 1, memory_order_release))
		syscall(SYS_futex, &w->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wait_for_bell(struct writer *w, uint64_t limit_ns)
{
	struct timespec t = { .tv_sec = (time_t)(limit_ns / 1000000000u),
			      .tv_nsec = (long)(limit_ns % 1000000000u) };

	/* woken for nothing is no harm: there is a round more */
	if (limit_ns && !atomic_load_explicit(&w->bell, memory_order_acquire))
		syscall(SYS_futex, &w->bell, FUTEX_WAIT_PRIVATE, 0,
			limit_ns == NEVER ? NULL : &t, NULL, 0);
	atomic_exchange_explicit(&w->bell, 0, memory_order_acquire);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_round(struct writer *w, unsigned fullest)
{
	uint64_t next = session_next_ns(), now = tick_clock_ns(CLOCK_MONOTONIC);
	uint64_t wait = NEVER, due;
	size_t i;

	if (next != NEVER)
		wait = next > now ? next - now : 0;
	if (w->config->ring)
		wait = least(wait, PERIOD_MS * MS);
	if (!w->recording && !w->begun)
		return wait;
	wait = least(wait, fullest > 40 ? MS : fullest > 10 ? 10 * MS : PERIOD_MS * MS);
	now = tick_to_ns(tick_now());
	for (i = 0; i < w->watch_count; i++) {
		due = w->watches[i]->due ? w->watches[i]->due(now) : NEVER;
		wait = least(wait, due);
	}
	return wait;
}

/* Returns how full the fullest ring was. */
static unsigned work(struct writer *w)
{
	struct session_change change;
	unsigned fullest = 0;
	uint64_t now_ns;

	writer_listen(w);
	if (tick_clock_ns(CLOCK_MONOTONIC) >= session_next_ns())
		session_feed(WINDOW_TIME, tick_now(), 0, NULL);
	session_take_signals();
	while (session_next_change(&change))
		take_change(w, &change);
	w->drained_ns = tick_to_ns(tick_now());
	if (w->recording)
		fullest = drain_watches(w);
	else if (w->begun)
		warm_watches(w);
	step_cost_look(&w->steps, session_lanes());
	writer_look(w);
	if (w->outgrown)
		writer_close_log(w);
	now_ns = tick_clock_ns(CLOCK_MONOTONIC);
	if (!w->trace || now_ns - w->flushed_ns < FLUSH_MS * MS)
		return fullest;
	writer_put_anchor(w);
	writer_flush_log(w, now_ns);
	return fullest;
}

static void close_watches(struct writer *w)
{
	size_t i;

	for (i = 0; i < w->watch_count && w->opened; i++)
		if (w->watches[i]->close)
			w->watches[i]->close(w, tick_to_ns(tick_now()) + FLUSH_MS * MS);
	w->opened = false;
}

static void flush_now(struct writer *w, bool close)
{
	if (!w->trace)
		return;
	if (close && !w->recording)
		writer_rest_log(w);
	else
		writer_flush_log(w, tick_clock_ns(CLOCK_MONOTONIC));
}

static void tell_round(struct writer *w, uint64_t round, bool was_last)
{
	atomic_store(&w->done, round);
	atomic_store(&w->finished, was_last);
	atomic_fetch_add(&w->news, 1);
	syscall(SYS_futex, &w->news, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* One round; false: it was the last. */
static bool serve(struct writer *w, unsigned *fullest)
{
	uint64_t asked = atomic_load(&w->asked);
	bool waited = asked != atomic_load(&w->done);
	bool close = waited && atomic_exchange(&w->close_asked, false);
	bool quit = atomic_load(&w->quit);

	if (death_came()) {
		session_feed(WINDOW_EXIT, tick_now(), 0, NULL);
		quit = true;
	}
	*fullest = work(w);
	if (quit) {
		close_watches(w);
		writer_look_last(w, death_came());
		writer_close_log(w);
	} else if (waited) {
		flush_now(w, close);
	}
	tell_round(w, asked, quit);
	return !quit;
}

static void *writer_main(void *arg)
{
	struct writer *w = arg;
	unsigned fullest = 0;

	pthread_setname_np(pthread_self(), "tacho");
	while (serve(w, &fullest))
		wait_for_bell(w, next_round(w, fullest));
	if (death_came())
		death_go_on();
	return NULL;
}

static bool make_thread(struct writer *w)
{
	sigset_t all, before;
	int failed;

	/* the program's handlers run on its own threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&w->thread, NULL, writer_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !failed;
}

struct writer *writer_start(const struct config *config, const struct watch_type *const *watches)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->config = config;
	while (watches[w->watch_count] && w->watch_count < WATCHES) {
		w->watches[w->watch_count] = watches[w->watch_count];
		w->watch_count++;
	}
	if (!make_thread(w)) {
		free(w);
		return NULL;
	}
	death_watch(w);
	trigger_watch(w, &config->trigger_spec);
	return w;
}

/* Until that round is done, or the last one; false: `limit_ns` is over. */
static bool wait_for_round(struct writer *w, uint64_t round, uint64_t limit_ns)
{
	uint64_t until = tick_clock_ns(CLOCK_MONOTONIC) + limit_ns;

	for (;;) {
		uint32_t seen = atomic_load(&w->news);
		uint64_t now = tick_clock_ns(CLOCK_MONOTONIC);
		struct timespec left;

		if (atomic_load(&w->finished) || atomic_load(&w->done) >= round)
			return true;
		if (now >= until)
			return false;
		left = (struct timespec){ .tv_sec = (time_t)((until - now) / 1000000000u),
					  .tv_nsec = (long)((until - now) % 1000000000u) };
		syscall(SYS_futex, &w->news, FUTEX_WAIT_PRIVATE, seen, &left, NULL, 0);
	}
}

bool writer_wait(struct writer *w, bool close, uint64_t limit_ns)
{
	uint64_t round;

	if (close) /* before the round: who sees that sees this */
		atomic_store(&w->close_asked, true);
	round = atomic_fetch_add(&w->asked, 1) + 1;
	writer_wake(w);
	return wait_for_round(w, round, limit_ns);
}

bool writer_quit(struct writer *w, uint64_t limit_ns)
{
	bool finished;

	atomic_store(&w->quit, true);
	writer_wake(w);
	finished = wait_for_round(w, NEVER, limit_ns);
	death_unwatch();
	trigger_unwatch();
	if (finished)
		pthread_join(w->thread, NULL);
	return finished;
}
