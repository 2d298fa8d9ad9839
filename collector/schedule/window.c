/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/schedule/window.h"

#include <string.h>

#define NEVER UINT64_MAX

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > NEVER - b ? NEVER : a + b;
}

static bool counts_steps(const struct window_spec *s)
{
	return s->first_step || s->active || s->wait || s->warmup || s->every_steps;
}

static bool may_repeat(const struct window_machine *w)
{
	const struct window_spec *s = &w->spec;

	if (s->repeat)
		return w->scheduled < s->repeat;
	return !w->scheduled || s->cyclic || s->every_ns || s->every_steps || s->range[0];
}

/* Returns whether the spec will begin no further window. */
static bool is_spent(const struct window_machine *w)
{
	return w->exited || w->missed || w->spec.on_demand || !may_repeat(w);
}

static uint64_t cycle_of(const struct window_spec *s)
{
	uint64_t steps = add(add(s->wait, s->warmup), s->active);

	return steps < s->every_steps ? s->every_steps : steps;
}

/* Returns the step at which the next cycle, or the current one if `step` is within its wait, begins
 * to warm up. */
static uint64_t cycle_begin(const struct window_machine *w, uint64_t step)
{
	const struct window_spec *s = &w->spec;
	uint64_t from = add(w->origin, s->first_step), cycle = cycle_of(s), begin;

	if (step < from)
		return add(from, s->wait);
	begin = add(from, (step - from) / cycle * cycle);
	begin = add(begin, s->wait);
	/* A cycle whose warmup has begun already is skipped. */
	return step <= begin ? begin : add(begin, cycle);
}

static void schedule_next(struct window_machine *w, uint64_t step)
{
	const struct window_spec *s = &w->spec;

	w->next_step = NEVER;
	if (is_spent(w) || !counts_steps(s))
		return;
	if (s->cyclic)
		w->next_step = w->has_origin ? cycle_begin(w, step) : 0;
	else if (!w->scheduled)
		w->next_step = s->first_step;
	else
		w->next_step = add(w->begin_step, s->every_steps);
}

void window_init(struct window_machine *w, const struct window_spec *spec, uint64_t now_ns)
{
	memset(w, 0, sizeof(*w));
	w->spec = *spec;
	w->now_ns = w->wall_ns = now_ns;
	w->next_ns = add(now_ns, spec->delay_ns);
	w->at_ns = spec->at_ns;
	w->record_step = w->end_step = w->end_ns = NEVER;
	schedule_next(w, 0);
}

/* Converts a time of the wall clock to the monotonic clock with their current distance. */
static uint64_t steady(const struct window_machine *w, uint64_t wall_ns)
{
	return wall_ns > w->wall_ns ? add(w->now_ns, wall_ns - w->wall_ns) : w->now_ns;
}

static bool is_due(const struct window_machine *w)
{
	return w->at_ns ? w->wall_ns >= w->at_ns : w->now_ns >= w->next_ns;
}

static void record(struct window_machine *w)
{
	const struct window_spec *s = &w->spec;

	w->state = WINDOW_RECORD;
	w->begin_ns = w->now_ns;
	w->end_ns = s->duration_ns ? add(w->now_ns, s->duration_ns) : NEVER;
	/* A process that starts late ends its window at the same time as the others. */
	if (w->at_ns && s->duration_ns && !w->by_hand && !counts_steps(s))
		w->end_ns = steady(w, add(w->at_ns, s->duration_ns));
}

static void begin(struct window_machine *w, const struct window_input *in, bool by_hand)
{
	const struct window_spec *s = &w->spec;

	w->windows++;
	w->scheduled += !by_hand;
	w->by_hand = by_hand;
	w->cut_short = false;
	w->state = WINDOW_WARMUP;
	w->begin_ns = w->now_ns;
	w->ranges = 1;
	if (!by_hand)
		w->begin_step = in->event == WINDOW_STEP ? in->number : 0;
	w->record_step = w->end_step = w->end_ns = NEVER;
	if (by_hand || in->event != WINDOW_STEP) {
		record(w);
		return;
	}
	w->record_step = add(in->number, s->warmup);
	if (s->active)
		w->end_step = add(w->record_step, s->active);
	/* A "steps:10-20" window that begins at step 12 still ends at 20. */
	if (s->repeat == 1 && !s->cyclic && s->active && !s->every_ns && !s->every_steps)
		w->end_step = add(add(s->first_step, s->warmup), s->active);
	if (!s->warmup)
		record(w);
}

static void end(struct window_machine *w, const struct window_input *in, bool cut_short)
{
	const struct window_spec *s = &w->spec;

	w->state = WINDOW_IDLE;
	w->cut_short = cut_short;
	if (s->every_ns)
		w->next_ns = add(w->begin_ns, s->every_ns);
	else if (!w->by_hand)
		w->next_ns = 0;
	if (w->at_ns && !w->by_hand)
		w->at_ns = s->every_ns ? add(w->at_ns, s->every_ns) : 0;
	schedule_next(w, in->event == WINDOW_STEP ? in->number : w->begin_step + 1);
}

/* Returns whether the first step is already after the window, as step 1000 is after
 * "steps:10-20". */
static bool is_past(const struct window_machine *w, uint64_t number)
{
	const struct window_spec *s = &w->spec;

	return s->repeat == 1 && !s->cyclic && s->active && !s->every_ns && !s->every_steps &&
	       !w->scheduled && number >= add(s->first_step, s->active);
}

static void idle_step(struct window_machine *w, const struct window_input *in)
{
	if (w->spec.cyclic && !w->has_origin) {
		w->has_origin = true;
		w->origin = in->number;
		schedule_next(w, in->number);
	}
	if (is_past(w, in->number)) {
		w->next_step = NEVER;
		return;
	}
	if (w->spec.cyclic && in->number > w->next_step)
		schedule_next(w, in->number);
	if (w->next_step != NEVER && in->number >= w->next_step && is_due(w))
		begin(w, in, false);
}

static bool begins_by_time(const struct window_machine *w)
{
	return !is_spent(w) && !counts_steps(&w->spec) && !w->spec.range[0];
}

static void feed_idle(struct window_machine *w, const struct window_input *in)
{
	const char *range = w->spec.range;

	if (in->event == WINDOW_START)
		begin(w, in, true);
	else if (in->event == WINDOW_STOP)
		w->ignored++;
	else if (in->event == WINDOW_STEP && counts_steps(&w->spec) && !is_spent(w))
		idle_step(w, in);
	else if (in->event == WINDOW_RANGE_BEGIN && range[0] && !strcmp(range, in->name) &&
		 !is_spent(w) && is_due(w))
		begin(w, in, false);
	else if ((in->event == WINDOW_TIME || in->event == WINDOW_STEP) && begins_by_time(w) &&
		 is_due(w))
		begin(w, in, false);
}

/* Returns whether the running window ends without a stop. */
static bool has_bounds(const struct window_machine *w)
{
	return w->end_step != NEVER || w->end_ns != NEVER || (w->spec.range[0] && !w->by_hand);
}

static bool ends_early(const struct window_machine *w, enum window_event event)
{
	if (event == WINDOW_STOP || event == WINDOW_EXIT)
		return true;
	if (event == WINDOW_EPOCH_END || event == WINDOW_VALIDATION_BEGIN)
		return has_bounds(w) && !w->by_hand;
	return false;
}

/* Returns whether a window that ends by this event is cut short.  One that was begun by hand is
 * complete when a stop ends it, and "all" is complete when the exit ends it. */
static bool is_short(const struct window_machine *w, enum window_event event)
{
	return has_bounds(w) && !(w->by_hand && event == WINDOW_STOP);
}

/* Counts open ranges with the awaited name, which may be nested or on several threads.  Returns
 * whether the last one has ended. */
static bool range_is_over(struct window_machine *w, const struct window_input *in)
{
	if (!w->spec.range[0] || w->by_hand || !in->name || strcmp(w->spec.range, in->name))
		return false;
	if (in->event == WINDOW_RANGE_BEGIN)
		w->ranges++;
	return in->event == WINDOW_RANGE_END && --w->ranges == 0;
}

static void feed_running(struct window_machine *w, const struct window_input *in)
{
	bool is_range = in->event == WINDOW_RANGE_BEGIN || in->event == WINDOW_RANGE_END;

	if (in->event == WINDOW_START)
		w->ignored++;
	else if (ends_early(w, in->event))
		end(w, in, is_short(w, in->event));
	else if (is_range && range_is_over(w, in))
		end(w, in, false);
	else if (in->event == WINDOW_STEP && in->number >= w->end_step)
		end(w, in, false);
	else if (w->now_ns >= w->end_ns)
		end(w, in, false);
	else if (in->event == WINDOW_STEP && w->state == WINDOW_WARMUP &&
		 in->number >= w->record_step)
		record(w);
}

/* If the at= time had passed before this process started, moves it to the next repetition. */
static void pass_missed(struct window_machine *w)
{
	const struct window_spec *s = &w->spec;
	uint64_t end = add(w->at_ns, s->duration_ns), late;

	if (!w->at_ns || !s->duration_ns || counts_steps(s) || w->wall_ns < end)
		return;
	w->missed = !s->every_ns;
	if (w->missed)
		return;
	late = w->wall_ns - end;
	w->at_ns = add(w->at_ns, late / s->every_ns * s->every_ns);
	w->at_ns = add(w->at_ns, s->every_ns);
}

enum window_state window_feed(struct window_machine *w, const struct window_input *in, bool *again)
{
	enum window_state before = w->state;

	if (w->exited) {
		w->ignored += in->event == WINDOW_START || in->event == WINDOW_STOP;
		*again = false;
		return w->state;
	}
	if (in->now_ns > w->now_ns) /* time stands still if the clock steps back */
		w->now_ns = in->now_ns;
	w->wall_ns = in->wall_ns ? in->wall_ns : w->now_ns;
	if (w->state == WINDOW_IDLE)
		pass_missed(w);
	w->exited = in->event == WINDOW_EXIT;
	if (w->state == WINDOW_IDLE)
		feed_idle(w, in);
	else
		feed_running(w, in);
	/* Only a step may begin the next window at the instant at which the last one ends. */
	*again = before != WINDOW_IDLE && w->state == WINDOW_IDLE && in->event == WINDOW_STEP;
	return w->state;
}

uint64_t window_next_step(const struct window_machine *w)
{
	if (w->exited)
		return NEVER;
	if (w->state == WINDOW_WARMUP)
		return w->record_step < w->end_step ? w->record_step : w->end_step;
	if (w->state == WINDOW_RECORD)
		return w->end_step;
	return is_due(w) ? w->next_step : NEVER;
}

uint64_t window_next_ns(const struct window_machine *w)
{
	if (w->exited)
		return NEVER;
	if (w->state != WINDOW_IDLE)
		return w->end_ns;
	uint64_t next_ns = w->at_ns ? steady(w, w->at_ns) : w->next_ns;
	if (begins_by_time(w))
		return next_ns;
	return w->next_step != NEVER && !is_due(w) ? next_ns : NEVER;
}

bool window_is_done(const struct window_machine *w)
{
	if (w->state != WINDOW_IDLE)
		return false;
	if (w->exited || is_spent(w))
		return true;
	return counts_steps(&w->spec) && w->next_step == NEVER;
}

bool window_waits_for_wall(const struct window_machine *w)
{
	return w->state == WINDOW_IDLE && w->at_ns && !is_spent(w);
}
