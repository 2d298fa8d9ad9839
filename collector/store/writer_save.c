/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder's part of the writer: passes steps to the triggers, and saves the ring. */
#include "collector/session/seen.h"
#include "collector/store/internal.h"
#include "schemas/log/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEVER UINT64_MAX
/*
 * The time from a slow step until the ring is saved, so that late GPU work and the steps after it
 * are included.
 */
#define PATIENCE_NS UINT64_C(1200000000)

/* ---- steps ---- */

static void follow(struct writer *w, struct thread_state *thread)
{
	struct saver *s = &w->saver;

	if (s->stepper)
		SET_RELAXED(s->stepper->slow_ticks, NEVER);
	trigger_init(&s->trigger, &w->config->trigger_spec);
	s->stepper = thread;
	s->steps_taken = 0; /* process the steps that the thread still has */
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)((double)ticks * 1e9 / tick_per_second());
}

static uint64_t ns_to_ticks(uint64_t ns)
{
	return ns == NEVER ? NEVER : (uint64_t)((double)ns / 1e9 * tick_per_second());
}

static void learn_steps(struct saver *s, struct thread_state *thread)
{
	uint64_t done = atomic_load_explicit(&thread->steps_done, memory_order_acquire);

	if (done - s->steps_taken > THREAD_STEPS) {
		s->trigger.steps += done - s->steps_taken - THREAD_STEPS;
		s->steps_taken = done - THREAD_STEPS;
	}
	if (s->steps_taken == done)
		return;
	for (; s->steps_taken < done; s->steps_taken++)
		trigger_learn(&s->trigger,
			      ticks_to_ns(GET_RELAXED(
				      thread->steps_took[s->steps_taken % THREAD_STEPS])));
	trigger_settle(&s->trigger);
	SET_RELAXED(thread->slow_ticks, ns_to_ticks(s->trigger.threshold_ns));
}

/* Counts a slow step that was not saved.  Saved logs, and tacho-record at the end, report the
 * number. */
static void count_slow(struct writer *w, const struct trigger_fired *slow)
{
	struct saver *s = &w->saver;
	char text[96];

	s->not_saved++;
	if (slow->value_ns > s->longest_ns) {
		s->longest_ns = slow->value_ns;
		snprintf(text, sizeof(text), "step %llu, %.3f ms", (unsigned long long)slow->step,
			 (double)slow->value_ns / 1e6);
		writer_set_attribute(w, "slow_not_saved_longest", text, false);
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)s->not_saved);
	writer_set_attribute(w, "slow_not_saved", text, true);
	seen_add_slow(slow->step, slow->value_ns);
}

static bool slow_step(struct writer *w, struct thread_state *thread, struct trigger_fired *fired)
{
	struct saver *s = &w->saver;
	uint64_t noted = atomic_load_explicit(&thread->slow_noted, memory_order_acquire);

	if (noted == GET_RELAXED(thread->slow_taken))
		return false;
	bool fires = trigger_slow(&s->trigger, GET_RELAXED(thread->slow_number),
				  ticks_to_ns(GET_RELAXED(thread->slow_took)),
				  tick_to_ns(GET_RELAXED(thread->slow_end)), fired);
	if (!fires && fired->kind == TRIGGER_SLOW)
		count_slow(w, fired);
	atomic_store_explicit(&thread->slow_taken, noted, memory_order_release);
	return fires;
}

static bool look_at_steps(struct writer *w, struct trigger_fired *fired)
{
	struct saver *s = &w->saver;
	/* The thread that makes steps: of the threads in a step, the one with most steps. */
	struct thread_state *best = NULL;

	for (struct thread_state *thread = session_threads(); thread; thread = thread_next(thread))
		if (GET_RELAXED(thread->step_open) &&
		    (!best || GET_RELAXED(thread->steps_done) > GET_RELAXED(best->steps_done)))
			best = thread;
	if (best && best != s->stepper)
		follow(w, best);
	if (!s->stepper)
		return false;
	bool fires = slow_step(w, s->stepper, fired);
	learn_steps(s, s->stepper);
	if (fires || !GET_RELAXED(s->stepper->step_open))
		return fires;
	uint64_t begin = GET_RELAXED(s->stepper->step_begin);
	uint64_t now = tick_now();
	return begin < now && trigger_hang(&s->trigger, GET_RELAXED(s->stepper->step_number),
					   tick_to_ns(begin), tick_to_ns(now), fired);
}

/* ---- saving ---- */

/* Replaces the log of a shorter slow step at this place. */
static void keep_slow(struct saver *s, unsigned place, const char *path, uint64_t bytes)
{
	struct saved_slow *slow = &s->slow[place];

	if (slow->path && unlink(slow->path) == 0)
		s->saved_bytes -= slow->bytes;
	free(slow->path);
	slow->path = strdup(path);
	slow->bytes = bytes;
}

static enum status save_now(struct writer *w, const struct trigger_fired *fired)
{
	const struct config *c = w->config;
	struct saver *s = &w->saver;
	struct store_place place = { .folder = c->out,
				     .host = c->host,
				     .rank = config_rank(c).rank,
				     .pid = w->pid,
				     .min_free = c->min_free };
	struct log_saved why = { .why = trigger_word(fired->kind),
				 .at_ns = fired->at_ns,
				 .step = fired->step,
				 .value_ns = fired->value_ns,
				 .threshold_ns = fired->threshold_ns };
	uint64_t bytes = 0;
	char path[STORE_PATH_MAX];

	place.path = path;
	if (c->max_disk && s->saved_bytes >= c->max_disk)
		return ST_CEILING;
	place.max_bytes = c->max_disk ? c->max_disk - s->saved_bytes : 0;
	enum status status = w->store->type->save(w->store, &place, &why, &bytes, NULL);
	s->saved_bytes += bytes;
	if (status == ST_OK && fired->kind == TRIGGER_SLOW)
		keep_slow(s, fired->place, path, bytes);
	return status;
}

static void save(struct writer *w)
{
	struct saver *s = &w->saver;

	s->pending = false;
	if (!w->store || !w->store->type->save)
		return;
	writer_put_anchor(w);
	writer_note_hang(w);
	writer_flush_log(w, tick_clock_ns(CLOCK_MONOTONIC));
	enum status status = save_now(w, &s->fired);
	if (status != ST_OK && status != ST_END) {
		uint64_t count = ++s->failed;
		char text[24];

		snprintf(text, sizeof(text), "%llu", (unsigned long long)count);
		writer_set_attribute(w, "saves_failed", text, false);
	}
}

static void fire(struct writer *w, const struct trigger_fired *fired)
{
	struct saver *s = &w->saver;
	/* Stacks of a step that hangs come a moment later. */
	bool patient = fired->kind == TRIGGER_SLOW ||
		       (fired->kind == TRIGGER_HANG && w->program && w->program->hang);

	/* a request, a hang or a longer slow step replaces a slow step that waits to be saved */
	if (!s->pending || !patient || s->fired.kind == TRIGGER_SLOW)
		s->fired = *fired;
	s->due_ns = tick_clock_ns(CLOCK_MONOTONIC) + (patient ? PATIENCE_NS : 0);
	s->put_before = w->store ? w->store->type->bytes(w->store) : 0;
	s->pending = true;
}

static void fire_asked(struct writer *w, enum trigger_kind kind)
{
	struct thread_state *thread = w->saver.stepper;
	struct trigger_fired fired = { .kind = kind,
				       .at_ns = tick_to_ns(tick_now()),
				       .step = NOWHERE };

	if (thread && GET_RELAXED(thread->step_open))
		fired.step = GET_RELAXED(thread->step_number);
	fire(w, &fired);
}

/* Returns whether the ring must be saved now.  A ring that fills fast is saved early, before the
 * slow step is overwritten. */
static bool is_due(const struct writer *w)
{
	const struct saver *s = &w->saver;

	if (tick_clock_ns(CLOCK_MONOTONIC) >= s->due_ns || !w->store)
		return true;
	return w->store->type->bytes(w->store) - s->put_before > w->config->ring / 4;
}

void writer_listen(struct writer *w)
{
	enum trigger_kind asked = trigger_asked();

	if (asked != TRIGGER_NONE)
		w->saver.asked = asked;
}

void writer_look(struct writer *w)
{
	struct trigger_fired fired;

	if (!w->config->ring)
		return;
	if (w->store && w->store->type->beat)
		w->store->type->beat(w->store, tick_to_ns(tick_now()), 0);
	if (look_at_steps(w, &fired))
		fire(w, &fired);
	if (w->saver.asked != TRIGGER_NONE)
		fire_asked(w, w->saver.asked);
	w->saver.asked = TRIGGER_NONE;
	if (w->saver.pending && is_due(w))
		save(w);
}

void writer_leave_ring(struct writer *w)
{
	if (!w->store || !w->store->type->leave)
		return;
	writer_flush_log(w, 0);
	w->store->type->leave(w->store);
}

void writer_look_last(struct writer *w, bool died)
{
	if (!w->config->ring)
		return;
	writer_listen(w);
	writer_look(w);
	if (died && w->config->trigger_spec.death)
		fire_asked(w, TRIGGER_DEATH);
	if (w->saver.pending)
		save(w);
}
