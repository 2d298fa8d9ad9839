/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/probe.h"
#include "collector/store/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define MS    UINT64_C(1000000)
enum {
	PERIOD_MS = 100, /* time between two drains of nearly empty rings */
	BEHIND_MS = 5,   /* time between two checks of GPUs that are behind */
	GRACE_MS = 2,    /* time for calls that were in progress when a window ended */
	/*
	 * The time after which unfinished blocks are stored, which is also the time between
	 * anchors; and the shorter time if so many rows wait that the size of blocks does not
	 * matter.  Waiting rows are lost if this process is killed together with the program.
	 */
	FLUSH_MS = 1000,
	MANY_MS = 100,
	MANY_ROWS = 128,
	END_MS = 1000,     /* time that probes have to end by force */
	FULL_PERCENT = 25, /* rows are stored early if a ring is this full, to make room */
};

/* ---- windows ---- */

static uint64_t cpu_now(void)
{
	return tick_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void open_probes(struct writer *w)
{
	size_t kept = 0;

	if (w->opened)
		return;
	w->opened = true;
	for (size_t i = 0; i < w->probe_count; i++) {
		const struct probe_type *t = w->probes[i];

		if (!t->open || t->open(w->config, NULL) == ST_OK)
			w->probes[kept++] = t;
	}
	w->probe_count = kept;
}

static void begin_probes(struct writer *w, uint64_t now_ns)
{
	open_probes(w);
	for (size_t i = 0; i < w->probe_count && !w->begun; i++)
		if (w->probes[i]->begin)
			w->probes[i]->begin(now_ns, NULL);
	w->begun = true;
}

static bool is_last_round(struct writer *w)
{
	return w->is_last || session_quits();
}

/* Ends the probes.  `force`: they do not wait for work in progress. */
static void end_probes(struct writer *w, uint64_t now_ns, bool force)
{
	for (size_t i = 0; i < w->probe_count && w->begun; i++)
		if (w->probes[i]->end)
			w->probes[i]->end(now_ns, force ? now_ns + END_MS * MS : 0);
	w->begun = false;
}

static bool is_behind(struct writer *w)
{
	for (size_t i = 0; i < w->probe_count; i++)
		if (w->probes[i]->behind && w->probes[i]->behind())
			return true;
	return false;
}

/* Publishes the latest calibration point, which a reader of the arena needs to convert ticks after
 * this process is dead. */
static void publish_clock(void)
{
	struct arena_header *a = arena();
	uint32_t next = a ? !atomic_load_explicit(&a->point, memory_order_relaxed) : 0;

	if (arena_is_mine() && tick_latest(&a->points[next].tick, &a->points[next].ns))
		atomic_store_explicit(&a->point, next, memory_order_release);
}

static unsigned drain_probes(struct writer *w)
{
	unsigned fullest = 0;

	tick_calibrate();
	publish_clock();
	w->drained_until = tick_now();
	uint64_t now_ns = tick_to_ns(w->drained_until);
	for (size_t i = 0; i < w->probe_count; i++) {
		unsigned full = w->probes[i]->drain ? w->probes[i]->drain(w, now_ns) : 0;
		fullest = full > fullest ? full : fullest;
	}
	return fullest;
}

/*
 * Waits for the GPUs: a program may be ahead of them by seconds if kernels are long, and no other
 * thread waits for their records.  The next window and the end of the process take precedence.
 */
static void wait_for_gpus(struct writer *w)
{
	struct timespec t = { .tv_nsec = BEHIND_MS * MS };

	while (is_behind(w) && !session_has_begin()) {
		if (is_last_round(w)) {
			w->begun = true;
			end_probes(w, tick_to_ns(tick_now()), true);
			return;
		}
		if (tick_clock_ns(CLOCK_MONOTONIC) >= session_next_ns())
			session_feed(WINDOW_TIME, tick_now(), 0, NULL);
		session_take_signals();
		drain_probes(w);
		nanosleep(&t, NULL);
	}
}

static void set_number_attribute(struct writer *w, const char *key, uint64_t number)
{
	char text[DECIMAL_MAX + 1];

	if (!number)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	writer_set_attribute(w, key, text, true);
}

static void set_step_attributes(struct writer *w, const struct steps_kept *k, const char *count,
				const char *median)
{
	double ns = (double)step_cost_median(k) * 1e9 / tick_per_second();

	set_number_attribute(w, count, k->count);
	set_number_attribute(w, median, (uint64_t)ns);
}

static void window_ends(struct writer *w, const struct session_change *c)
{
	uint64_t since = c->at;
	double passed = (double)(tick_now() - since) / tick_per_second() * 1e9;
	struct timespec t = { .tv_nsec = GRACE_MS * MS };

	if (passed < (double)t.tv_nsec)
		nanosleep(&t, NULL);
	tick_calibrate();
	w->got.end_ns = tick_to_ns(c->at);
	w->got.cut_short = c->cut_short || w->is_last;
	drain_probes(w); /* a helper that started meanwhile learns that a window is open */
	end_probes(w, w->got.end_ns, is_last_round(w));
	wait_for_gpus(w);
	drain_probes(w);
	for (size_t i = 0; i < w->probe_count; i++)
		if (w->probes[i]->close_window)
			w->probes[i]->close_window(w, c->window);
	w->closed = c->window;
	w->got.own_ns = w->cost_ns + cpu_now() - w->cpu_ns;
	/* Compares the steps inside and around the window. */
	uint64_t end = c->at;
	step_cost_end(&w->steps, session_threads(), end);
	set_step_attributes(w, &w->steps.around, "steps_around", "steps_around_median_ns");
	set_step_attributes(w, &w->steps.inside, "steps_recorded", "steps_recorded_median_ns");
	w->recording = false;
	if (!w->trace)
		return;
	writer_put_window(w);
	writer_flush_log(w, tick_clock_ns(CLOCK_MONOTONIC));
}

static void take_change(struct writer *w, const struct session_change *c)
{
	w->latest = *c;
	if (c->kind == CHANGE_WARMUP) {
		step_cost_warmup(&w->steps, session_threads(), c->at);
		begin_probes(w, tick_to_ns(c->at));
	} else if (c->kind == CHANGE_BEGIN) {
		tick_calibrate();
		w->recording = true;
		w->broken = false;
		w->cost_ns = 0;
		w->cpu_ns = cpu_now();
		w->got = (struct window){ .begin_ns = tick_to_ns(c->at) };
		w->by = c->by;
		w->window_row = 0;
		w->rotated_ns = 0;
		w->parts = 0;
		free(w->first);
		w->first = NULL;
		if (w->trace)
			writer_put_window(w);
		begin_probes(w, w->got.begin_ns);
		step_cost_begin(&w->steps, session_threads(), c->at);
	} else if (c->kind == CHANGE_CANCEL) {
		end_probes(w, tick_to_ns(c->at), true);
		step_cost_end(&w->steps, session_threads(), c->at);
	} else if (w->recording) {
		window_ends(w, c);
	}
	if (c->final)
		writer_rest_log(w);
}

/* ---- rounds ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_round(struct writer *w, unsigned fullest)
{
	uint64_t next = session_next_ns(), now = tick_clock_ns(CLOCK_MONOTONIC);
	uint64_t wait = NEVER;

	if (next != NEVER)
		wait = next > now ? next - now : 0;
	wait = least(wait, PERIOD_MS * MS);
	if (!w->recording && !w->begun)
		return wait;
	wait = least(wait, fullest > 40 ? MS : fullest > 10 ? 10 * MS : PERIOD_MS * MS);
	now = tick_to_ns(tick_now());
	for (size_t i = 0; i < w->probe_count; i++) {
		uint64_t due = w->probes[i]->due ? w->probes[i]->due(now) : NEVER;
		wait = least(wait, due);
	}
	return wait;
}

/* Does the work of a round.  Returns how full the fullest ring was, in percent. */
static unsigned work(struct writer *w)
{
	struct session_change change;
	unsigned fullest = 0;

	writer_listen(w);
	if (tick_clock_ns(CLOCK_MONOTONIC) >= session_next_ns())
		session_feed(WINDOW_TIME, tick_now(), 0, NULL);
	session_take_signals();
	while (session_next_change(&change))
		take_change(w, &change);
	w->drained_ns = tick_to_ns(tick_now());
	if (w->recording)
		fullest = drain_probes(w);
	else if (w->begun) {
		for (size_t i = 0; i < w->probe_count; i++)
			if (w->probes[i]->warmup)
				w->probes[i]->warmup();
	}
	step_cost_look(&w->steps, session_threads());
	writer_look(w);
	if (w->outgrown)
		writer_close_log(w);
	writer_rotate(w);
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);
	if (!w->trace)
		writer_has_stored(w, true); /* no log is open, so nothing is left to store */
	uint64_t waited_ms = (now_ns - w->flushed_ns) / MS;
	bool is_due = waited_ms >= (w->rows_waiting >= MANY_ROWS ? MANY_MS : FLUSH_MS);
	if (!w->trace || (!is_due && fullest < FULL_PERCENT && !session_wants_rings()))
		return fullest;
	if (now_ns - w->anchored_ns >= FLUSH_MS * MS) {
		writer_put_anchor(w);
		w->anchored_ns = now_ns;
	}
	writer_flush_log(w, now_ns);
	return fullest;
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

/* Returns whether the program died without ending its session. */
static bool is_gone(struct writer *w)
{
	if (!w->is_last && w->program->is_gone())
		w->is_last = true;
	return w->is_last;
}

/* Runs one round.  Returns false if it was the last one. */
static bool serve(struct writer *w, unsigned *fullest)
{
	bool died = is_gone(w);
	struct session_asked asked = session_round_begins();

	if (died && !asked.quit)
		session_feed(WINDOW_EXIT, tick_now(), 0, NULL);
	asked.quit |= died;
	*fullest = work(w);
	if (asked.quit) {
		for (size_t i = 0; i < w->probe_count && w->opened; i++)
			if (w->probes[i]->close)
				w->probes[i]->close(w, tick_to_ns(tick_now()) + END_MS * MS);
		w->opened = false;
		if (w->is_last && !w->program->is_alone && w->config->trigger_spec.death)
			writer_leave_ring(w); /* tacho-record knows of what it died */
		else
			writer_look_last(w, w->is_last);
		writer_close_log(w);
	} else if (asked.waited) {
		flush_now(w, asked.close);
	}
	session_round_ends(&asked);
	return !asked.quit;
}

static void run(struct writer *w)
{
	unsigned fullest = 0;

	while (serve(w, &fullest))
		session_sleep(next_round(w, fullest));
}

static struct writer *make_writer(const struct config *config,
				  const struct probe_type *const *probes)
{
	struct writer *w = calloc(1, sizeof(*w));
	size_t count = 0;

	while (probes[count])
		count++;
	if (w)
		w->probes = calloc(count + 1, sizeof(const struct probe_type *));
	if (!w || !w->probes) {
		free(w);
		return NULL;
	}
	w->config = config;
	w->probe_count = count;
	w->pid = (uint32_t)getpid();
	memcpy(w->probes, probes, count * sizeof(const struct probe_type *));
	return w;
}

static void free_writer(struct writer *w)
{
	writer_free_attributes(w);
	free(w->probes);
	free(w);
}

void writer_run(const struct config *config, const struct probe_type *const *probes,
		const struct writer_program *program)
{
	struct writer *w = make_writer(config, probes);

	if (!w)
		return;
	w->program = program;
	w->pid = program->pid;
	w->command = program->command;
	run(w);
	free_writer(w);
}

/* Begins a window of a dead process: the open log, or else the next one, gets its row. */
static void take_window(struct writer *w, uint64_t window)
{
	const struct arena_header *a = arena();
	struct tick_span span = session_span(window);
	/* two logs of one process must not cover the same time */
	uint64_t until = a->committed[a->commit & 1].until;
	uint64_t begin = span.begin < until ? until : span.begin;
	begin = begin < span.end ? begin : span.end; /* if equal, only its close is missing */

	w->window_row = 0;
	w->got = (struct window){ .begin_ns = tick_to_ns(begin),
				  .end_ns = tick_to_ns(span.end),
				  .cut_short = window == a->window && !a->window_end };
	if (w->trace)
		writer_put_window(w);
}

bool writer_put_left(const struct config *config, const struct probe_type *const *probes,
		     uint64_t first, uint32_t pid, const char *command)
{
	const struct arena_header *a = arena();
	struct writer *w = make_writer(config, probes);

	if (!w)
		return false;
	w->pid = pid;
	w->command = command;
	w->is_last = w->clips = w->opened = w->recording = true;
	w->drained_until = UINT64_MAX;
	w->log_number = 1;
	take_window(w, first);
	/* records that the killed writer put for threads that have continued since are lost */
	if (a->late_commit > a->commit)
		writer_lose(w, LOSS_BUFFER, a->late);
	for (size_t i = 0; i < w->probe_count; i++) {
		if (w->probes[i]->drain)
			w->probes[i]->drain(w, tick_to_ns(session_span(a->window).end));
		if (w->probes[i]->close_window)
			w->probes[i]->close_window(w, a->window);
	}
	while (first++ < a->window)
		take_window(w, first);
	w->recording = false;
	w->closed = a->window;
	if (w->trace)
		writer_put_window(w);
	writer_close_log(w);
	bool good = !w->broken;
	free_writer(w);
	return good;
}
