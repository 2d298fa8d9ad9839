/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.c - step, phase and path of each event, and the phase intervals of the step threads.
 *
 * Events that begin at the same instant form a group: first all events of a group are entered, then
 * each gets the context that holds at that instant.
 */
#include "convert/stage/context/internal.h"

#include "schemas/base/vec.h"

#define STEP_MAX (STEP_GAP / 2 - 1) /* the most steps that event.step can tell apart */

/* ---- phase intervals ---- */

/* Closes the open interval at `t`, where the step thread changes to another phase or step. */
static enum status process_close(struct context *c, struct host_process *p, uint64_t t,
				 struct error *err)
{
	p->current.end_ns = t;
	p->current.phase = p->now.phase;
	p->current.inferred = p->now.inferred;
	if (p->current.begin_ns < t && p->step_thread) {
		struct phase_pending *w = &p->pending[p->now.phase == PHASE_GAP];

		if (p->now.phase >= PHASE_PENDING && !w->intervals++)
			w->interval = c->closed.count;
		TRY(vec_reserve(&c->closed.items, &c->closed.cap, c->closed.count + 1, err));
		c->closed.items[c->closed.count++] = p->current;
	}
	p->current.begins_step &= p->current.begin_ns >= t;
	p->current.begin_ns = t;
	return ST_OK;
}

/* Sets `phase` in the intervals and events that waited for a decision on the pending phase `kind`.
 */
static void process_resolve(struct context *c, struct host_process *p, uint8_t kind, uint8_t phase)
{
	struct phase_pending *w = &p->pending[kind - PHASE_PENDING];
	uint32_t taken = (uint32_t)c->queue.taken, number = w->first;
	bool is_inferred = phase != PHASE_OTHER;

	for (size_t i = w->interval; w->intervals && i < c->closed.count; i++) {
		struct phase_interval *one = &c->closed.items[i];

		if (&c->host.processes[one->process] != p || one->phase != kind)
			continue;
		one->phase = phase;
		one->inferred = is_inferred;
		w->intervals--;
	}
	for (; w->count; w->count--) {
		queue_at(&c->queue, number - taken)->phase = phase;
		number = c->queue.tags[c->queue.head + (number - taken)];
	}
	if (p->now.phase != kind)
		return;
	p->now.phase = phase;
	p->now.inferred = is_inferred;
}

static enum status process_turn(struct context *c, struct host_process *p, uint64_t t,
				struct error *err)
{
	uint32_t step = 0;

	/* PHASE_FORWARD_ONLY is decided once the mark has a backward, or has ended without one. */
	if (t >= p->mark_end_ns)
		process_resolve(c, p, PHASE_FORWARD_ONLY, PHASE_VALIDATION);
	else if (p->backward_at > p->mark_begin_ns)
		process_resolve(c, p, PHASE_FORWARD_ONLY, PHASE_FORWARD);
	struct host_state state = host_state_at(&c->host, p, t);
	if (p->mark_step)
		step = p->mark_end_ns > t ? p->mark_step : p->mark_step | STEP_GAP;
	if (state.phase != p->now.phase || state.inferred != p->now.inferred ||
	    step != p->current.step)
		TRY(process_close(c, p, t, err));
	p->now = state;
	p->current.step = step;
	return ST_OK;
}

/* Handles changes of state before `t`.  Those at `t` are handled together with the events that
 * begin there. */
static enum status process_advance(struct context *c, struct host_process *p, uint64_t t,
				   struct error *err)
{
	while (p->now.until_ns < t)
		TRY(process_turn(c, p, p->now.until_ns, err));
	return ST_OK;
}

/* Updates the state after all events that begin at `t` were entered. */
static enum status process_settle(struct context *c, struct host_process *p, uint64_t t,
				  struct error *err)
{
	if (p->busy_begins)
		process_resolve(c, p, PHASE_GAP, PHASE_OTHER);
	else if (p->active_begins)
		process_resolve(c, p, PHASE_GAP, PHASE_BACKWARD);
	p->busy_begins = p->active_begins = p->is_stale = false;
	return process_turn(c, p, t, err);
}

enum status phase_give_up(struct context *c, struct error *err)
{
	const struct event *first = queue_at(&c->queue, c->final);
	uint64_t t = queue_at(&c->queue, c->stamped - 1)->begin_ns;
	struct host_process *p = &c->host.processes[host_thread(&c->host, first->track)->process];

	TRY(process_advance(c, p, t, err));
	if (first->phase == PHASE_FORWARD_ONLY) {
		p->gave_up = true;
		process_resolve(c, p, PHASE_FORWARD_ONLY,
				p->expects_backward ? PHASE_FORWARD : PHASE_VALIDATION);
		return process_turn(c, p, t, err);
	}
	process_resolve(c, p, PHASE_GAP, PHASE_OTHER);
	if (p->busy_until_ns < t)
		p->busy_until_ns = t; /* a new host gap begins here */
	return process_turn(c, p, t, err);
}

enum status phase_split(struct context *c, uint64_t limit_ns, struct error *err)
{
	for (uint32_t i = 0; i <= c->host.process_count; i++) {
		struct host_process *p = &c->host.processes[i];
		uint64_t end_ns = limit_ns < p->last_end_ns ? limit_ns : p->last_end_ns;

		if (!p->has_begun || p->current.begin_ns >= end_ns)
			continue;
		TRY(process_advance(c, p, end_ns, err));
		if (p->now.phase < PHASE_PENDING && p->current.begin_ns < end_ns)
			TRY(process_close(c, p, end_ns, err));
	}
	return ST_OK;
}

/* ---- events ---- */

static enum status enter_mark(struct context *c, struct host_process *p, const struct event *e,
			      struct error *err)
{
	struct step_mark mark = { e->begin_ns, e->end_ns,
				  e->number,   host_thread(&c->host, e->track)->process,
				  e->name,     e->flags };

	host_decide(&c->host, e);
	if (e->track != p->step_thread)
		return ST_OK;
	if (e->kind == KIND_RANGE)
		host_name_is_step(&c->host, e->name, &mark.number);
	if (mark.number == UINT64_MAX)
		mark.number = p->next_number;
	p->next_number = mark.number + 1;
	TRY(process_close(c, p, e->begin_ns, err));
	p->current.begins_step = true;
	process_resolve(c, p, PHASE_FORWARD_ONLY, PHASE_VALIDATION);
	p->gave_up = false;
	p->expects_backward = !p->mark_step || p->backward_at > p->mark_begin_ns;
	p->mark_begin_ns = e->begin_ns;
	p->mark_end_ns = e->end_ns;
	p->mark_step = mark.number < STEP_MAX ? (uint32_t)mark.number + 1 : STEP_MAX;
	p->is_stale = true;
	TRY(vec_reserve(&c->marks, &c->mark_cap, c->mark_count + 1, err));
	c->marks[c->mark_count++] = mark;
	return ST_OK;
}

/* Extends the time that the intervals cover by work of the host or the process's GPUs.  A
 * profiler's spans and records of its own overhead do not extend it. */
static inline void process_extend(struct host_process *p, const struct host_thread *t,
				  const struct event *e)
{
	bool counts;

	if (t->type != TRACK_THREAD)
		counts = event_is_gpu_work(e);
	else if (e->kind == KIND_RANGE)
		counts = e->subkind != RANGE_PROFILER;
	else
		counts = e->kind == KIND_API || e->kind == KIND_STEP || e->kind == KIND_JIT;
	if (!counts)
		return;
	if (!p->has_begun) {
		p->has_begun = true;
		p->is_stale = true;
		p->current =
			(struct phase_interval){ .begin_ns = e->begin_ns, .process = t->process };
	}
	if (e->end_ns > p->last_end_ns)
		p->last_end_ns = e->end_ns;
}

/* Both functions run for each event, and a call would cost as much as they do. */
#define HOT static inline __attribute__((always_inline)) enum status

HOT event_enter(struct context *c, struct host_process *p, struct host_thread *t, struct event *e,
		struct error *err)
{
	struct host_thread *host = host_thread(&c->host, t->host);

	e->step = e->path = e->phase = 0;
	process_extend(p, t, e);
	if (t->type == TRACK_STREAM)
		return ST_OK;
	if (p->now.until_ns < e->begin_ns)
		TRY(process_advance(c, p, e->begin_ns, err));
	if (event_may_be_mark(e) && host_is_mark(&c->host, e))
		TRY(enter_mark(c, p, e, err));
	e->path = host_path(&c->host, host, e->begin_ns);
	if (t->type != TRACK_THREAD || e->end_ns == e->begin_ns)
		return ST_OK;
	if (e->kind == KIND_API)
		host_enter_call(&c->host, p, t, e);
	if (e->kind != KIND_RANGE)
		return ST_OK;
	if (e->subkind == RANGE_OP || e->subkind == RANGE_PYTHON)
		autograd_enter(&c->host, p, t, e);
	return host_enter(&c->host, p, t, e, err);
}

/* Sets step and phase of the event at c->stamped in the queue. */
HOT event_stamp(struct context *c, struct host_process *p, struct host_thread *t, struct event *e,
		struct error *err)
{
	uint32_t taken = (uint32_t)c->queue.taken, number = taken + (uint32_t)c->stamped;
	uint64_t until_ns;
	uint8_t own;

	if (t->type == TRACK_STREAM)
		return ST_OK;
	if (p->is_stale || p->now.until_ns <= e->begin_ns)
		TRY(process_settle(c, p, e->begin_ns, err));
	t = host_thread(&c->host, t->host);
	own = thread_phase(t, e->begin_ns, &until_ns);
	e->step = p->current.step;
	if (own != PHASE_NONE)
		e->phase = own;
	else if (t->runs_autograd && t->host != p->step_thread)
		e->phase = PHASE_BACKWARD;
	else
		e->phase = p->now.phase;
	if (e->phase < PHASE_PENDING)
		return ST_OK;
	struct phase_pending *w = &p->pending[e->phase - PHASE_PENDING];

	if (w->count++)
		c->queue.tags[c->queue.head + (w->last - taken)] = number;
	else
		w->first = number;
	w->last = number;
	return ST_OK;
}

/* Finds the end of the next group.  Returns false if the group may still grow: it is complete when
 * a later event follows it, or when it is very long. */
static bool group_find(const struct context *c, const struct event *events, size_t *end)
{
	size_t count = queue_count(&c->queue), i = c->stamped;
	uint64_t begin_ns;

	if (i == count)
		return false;
	begin_ns = events[i++].begin_ns;
	while (i < count && events[i].begin_ns == begin_ns)
		i++;
	*end = i;
	return i < count || c->has_ended || count - c->stamped >= QUEUE_EVENTS;
}

enum status phase_run(struct context *c, struct error *err)
{
	const struct host *h = &c->host;
	struct event *events;
	size_t end;

	if (!queue_count(&c->queue))
		return ST_OK;
	events = queue_at(&c->queue, 0); /* valid because nothing is put into the queue meanwhile */
	while (group_find(c, events, &end)) {
		struct event *e = &events[c->stamped];
		struct host_thread *t = host_thread(h, e->track);
		struct host_process *p = &h->processes[t->process];

		if (end == c->stamped + 1) { /* most events begin alone */
			TRY(event_enter(c, p, t, e, err));
			TRY(event_stamp(c, p, t, e, err));
			c->stamped++;
			continue;
		}
		for (size_t i = c->stamped; i < end; i++) {
			t = host_thread(h, events[i].track);
			TRY(event_enter(c, &h->processes[t->process], t, &events[i], err));
		}
		for (; c->stamped < end; c->stamped++) {
			e = &events[c->stamped];
			t = host_thread(h, e->track);
			TRY(event_stamp(c, &h->processes[t->process], t, e, err));
		}
	}
	return ST_OK;
}

enum status phase_finish(struct context *c, struct error *err)
{
	TRY(phase_run(c, err));
	for (uint32_t i = 0; i <= c->host.process_count; i++) {
		struct host_process *p = &c->host.processes[i];

		if (!p->has_begun)
			continue;
		TRY(process_advance(c, p, p->last_end_ns, err));
		process_resolve(c, p, PHASE_GAP, PHASE_OTHER);
		process_resolve(c, p, PHASE_FORWARD_ONLY, PHASE_VALIDATION);
		TRY(process_close(c, p, p->last_end_ns, err));
	}
	return ST_OK;
}
