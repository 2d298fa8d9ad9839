/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder's part of the writer: steps to the triggers, the ring to a log. */
#include "collector/config.h"
#include "collector/session.h"
#include "collector/writer/inside.h"
#include "schemas/log_ring.h"

#include <stdio.h>
#include <unistd.h>

#define NEVER UINT64_MAX
/* What comes late, work of a GPU most of all, and the steps behind a slow one are saved with it. */
#define PATIENCE_NS UINT64_C(1200000000)

/* ---- steps ---- */

/* The thread that steps: of those in a step, the one that did most. */
static struct lane *find_stepper(void)
{
	struct lane *l, *best = NULL;

	for (l = session_lanes(); l; l = l->next)
		if (LANE_GET(l->step_open) &&
		    (!best || LANE_GET(l->steps_done) > LANE_GET(best->steps_done)))
			best = l;
	return best;
}

static void follow(struct writer *w, struct lane *l)
{
	struct saver *s = &w->saver;

	if (s->stepper)
		LANE_SET(s->stepper->slow_ticks, NEVER);
	trigger_init(&s->trigger, &w->config->trigger_spec);
	s->stepper = l;
	s->steps_seen = 0; /* the last ones are still known */
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)((double)ticks * 1e9 / tick_per_second());
}

static uint64_t ns_to_ticks(uint64_t ns)
{
	return ns == NEVER ? NEVER : (uint64_t)((double)ns / 1e9 * tick_per_second());
}

static void learn_steps(struct saver *s, struct lane *l)
{
	uint64_t done = atomic_load_explicit(&l->steps_done, memory_order_acquire);

	if (done - s->steps_seen > LANE_STEPS) {
		s->trigger.steps += done - s->steps_seen - LANE_STEPS;
		s->steps_seen = done - LANE_STEPS;
	}
	if (s->steps_seen == done)
		return;
	for (; s->steps_seen < done; s->steps_seen++)
		trigger_learn(&s->trigger, ticks_to_ns(LANE_GET(l->steps_took[s->steps_seen %
									      LANE_STEPS])));
	trigger_settle(&s->trigger);
	LANE_SET(l->slow_ticks, ns_to_ticks(s->trigger.threshold_ns));
}

static bool slow_step(struct saver *s, struct lane *l, struct trigger_fired *fired)
{
	uint64_t noted = atomic_load_explicit(&l->slow_noted, memory_order_acquire);
	bool fires;

	if (noted == LANE_GET(l->slow_seen))
		return false;
	fires = trigger_slow(&s->trigger, LANE_GET(l->slow_number),
			     ticks_to_ns(LANE_GET(l->slow_took)),
			     tick_to_ns(LANE_GET(l->slow_end)), fired);
	atomic_store_explicit(&l->slow_seen, noted, memory_order_release);
	return fires;
}

static bool look_at_steps(struct writer *w, struct trigger_fired *fired)
{
	struct saver *s = &w->saver;
	struct lane *l = find_stepper();
	uint64_t now, begin;
	bool fires;

	if (l && l != s->stepper)
		follow(w, l);
	if (!s->stepper)
		return false;
	fires = slow_step(s, s->stepper, fired);
	learn_steps(s, s->stepper);
	if (fires || !LANE_GET(s->stepper->step_open))
		return fires;
	begin = LANE_GET(s->stepper->step_begin);
	now = tick_now();
	return begin < now && trigger_hang(&s->trigger, LANE_GET(s->stepper->step_number),
					   tick_to_ns(begin), tick_to_ns(now), fired);
}

/* ---- saving ---- */

static void tell_count(struct writer *w, const char *key, uint64_t count)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)count);
	writer_tell(w, key, text, false);
}

static enum status save_now(struct writer *w, const struct trigger_fired *fired)
{
	const struct config *c = w->config;
	struct saver *s = &w->saver;
	struct store_place place = { .folder = c->out, .host = c->host, .rank = c->rank.rank,
				     .pid = (uint32_t)getpid(), .min_free = c->min_free };
	struct log_saved why = { .why = trigger_word(fired->kind), .at_ns = fired->at_ns,
				 .step = fired->step, .value_ns = fired->value_ns,
				 .threshold_ns = fired->threshold_ns };
	uint64_t bytes = 0;
	enum status status;

	if (c->max_disk && s->saved_bytes >= c->max_disk)
		return ST_CEILING;
	place.max_bytes = c->max_disk ? c->max_disk - s->saved_bytes : 0;
	status = w->store->type->save(w->store, &place, &why, &bytes, NULL);
	s->saved_bytes += bytes;
	return status;
}

static void save(struct writer *w)
{
	struct saver *s = &w->saver;
	enum status status;

	s->pending = false;
	if (!w->store || !w->store->type->save)
		return;
	writer_put_anchor(w);
	writer_flush_log(w, tick_clock_ns(CLOCK_MONOTONIC));
	status = save_now(w, &s->fired);
	if (status != ST_OK && status != ST_END)
		tell_count(w, "saves_failed", ++s->failed);
}

static void fire(struct writer *w, const struct trigger_fired *fired)
{
	struct saver *s = &w->saver;
	bool patient = fired->kind == TRIGGER_SLOW;

	/* a slow step that waits for its end is not forgotten for a hang; who asks now is */
	if (!s->pending || !patient)
		s->fired = *fired;
	s->due_ns = tick_clock_ns(CLOCK_MONOTONIC) + (patient ? PATIENCE_NS : 0);
	s->put_before = w->store ? w->store->type->bytes(w->store) : 0;
	s->pending = true;
}

static void fire_asked(struct writer *w, enum trigger_kind kind)
{
	struct lane *l = w->saver.stepper;
	struct trigger_fired fired = { .kind = kind, .at_ns = tick_to_ns(tick_now()),
				       .step = NOWHERE };

	if (l && LANE_GET(l->step_open))
		fired.step = LANE_GET(l->step_number);
	fire(w, &fired);
}

/* The ring goes round: what is to be saved must not be pushed out. */
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
