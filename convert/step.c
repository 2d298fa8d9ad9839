/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage itself: events come into a queue, go through it in groups that begin at the same
 * instant - first all are entered, then all are stamped with what holds at that instant - and
 * leave in order once none before them waits for its hole (step/host.h) to be decided.
 */
#include "convert/step/stage.h"

#include <stdlib.h>
#include <string.h>

enum {
	QUEUE_EVENTS = 65536,
	MANY = 64,      /* processes */
	CUT_EVENTS = 4, /* of each of many between pieces of a long stretch */
};
#define STEP_MAX (STEP_NEAR - 1)

/* --- stretches --------------------------------------------------------------------------- */

/* S goes on in another phase or step at t. */
static enum status process_close(struct step_stage *s, struct host_process *p, uint64_t t,
				 struct error *err)
{
	p->current.end_ns = t;
	p->current.phase = p->now.phase;
	p->current.inferred = p->now.inferred;
	if (p->current.begin_ns < t && p->thread) {
		if (p->now.phase == PHASE_PENDING && !p->pending_count++)
			p->pending_first = s->closed.count;
		TRY(stretches_add(&s->closed, &p->current, err));
	}
	p->current.begins_step &= p->current.begin_ns >= t;
	p->current.begin_ns = t;
	return ST_OK;
}

static uint32_t process_step(const struct host_process *p, uint64_t t)
{
	if (!p->mark_step)
		return 0;
	return p->mark_end_ns > t ? p->mark_step : p->mark_step | STEP_GAP;
}

static enum status process_turn(struct step_stage *s, struct host_process *p, uint64_t t,
				struct error *err)
{
	struct moment m = host_moment(&s->host, p, t);
	uint32_t step = process_step(p, t);

	if (m.phase != p->now.phase || m.inferred != p->now.inferred || step != p->current.step)
		TRY(process_close(s, p, t, err));
	p->now = m;
	p->current.step = step;
	return ST_OK;
}

/* What ends before t; what ends at t is seen together with what begins there. */
static enum status process_advance(struct step_stage *s, struct host_process *p, uint64_t t,
				   struct error *err)
{
	while (p->now.until_ns < t)
		TRY(process_turn(s, p, p->now.until_ns, err));
	return ST_OK;
}

static void waiting_resolve(struct step_stage *s, struct host_process *p, uint8_t phase)
{
	uint32_t taken = (uint32_t)s->queue.taken, number = p->waits_first;

	for (; p->waits; p->waits--) {
		queue_at(&s->queue, number - taken)->phase = phase;
		number = *queue_tag(&s->queue, number - taken);
	}
}

/* What waited for the end of S's hole or for its autograd threads is decided. */
static void process_resolve(struct step_stage *s, struct host_process *p, uint8_t phase)
{
	for (size_t i = p->pending_first; p->pending_count && i < s->closed.count; i++) {
		struct stretch *one = &s->closed.items[i];

		if (&s->host.processes[one->process] != p || one->phase != PHASE_PENDING)
			continue;
		one->phase = phase;
		one->inferred = phase == PHASE_BACKWARD;
		p->pending_count--;
	}
	waiting_resolve(s, p, phase);
	if (p->now.phase != PHASE_PENDING)
		return;
	p->now.phase = phase;
	p->now.inferred = phase == PHASE_BACKWARD;
}

/* All that begins at t is entered. */
static enum status process_settle(struct step_stage *s, struct host_process *p, uint64_t t,
				  struct error *err)
{
	if (p->busy_begins)
		process_resolve(s, p, PHASE_OTHER);
	else if (p->active_begins)
		process_resolve(s, p, PHASE_BACKWARD);
	p->busy_begins = p->active_begins = p->is_stale = false;
	return process_turn(s, p, t, err);
}

/* The queue is full: what is open of a hole counts as other, and a new hole begins. */
static enum status process_give_up(struct step_stage *s, struct host_process *p, uint64_t t,
				   struct error *err)
{
	TRY(process_advance(s, p, t, err));
	process_resolve(s, p, PHASE_OTHER);
	if (p->busy_until_ns < t)
		p->busy_until_ns = t;
	return process_turn(s, p, t, err);
}

static enum status process_finish(struct step_stage *s, struct host_process *p,
				  struct error *err)
{
	TRY(process_advance(s, p, p->last_end_ns, err));
	process_resolve(s, p, PHASE_OTHER);
	return process_close(s, p, p->last_end_ns, err);
}

/* --- events ------------------------------------------------------------------------------ */

static enum status step_mark(struct step_stage *s, struct host_process *p, const struct event *e,
			     struct error *err)
{
	struct step_mark mark = { e->begin_ns, e->end_ns, e->number,
				  host_thread(&s->host, e->track)->process, e->flags };

	host_decide(&s->host, e);
	if (e->track != p->thread)
		return ST_OK;
	if (e->kind == KIND_RANGE)
		host_name_is_step(&s->host, e->name, &mark.number);
	if (mark.number == UINT64_MAX)
		mark.number = p->next_number;
	p->next_number = mark.number + 1;
	TRY(process_close(s, p, e->begin_ns, err));
	p->current.begins_step = true;
	p->mark_end_ns = e->end_ns;
	p->near_ns = e->end_ns + (e->end_ns - e->begin_ns) / 100;
	p->mark_step = mark.number < STEP_MAX ? (uint32_t)mark.number + 1 : STEP_MAX;
	p->is_stale = true;
	return marks_add(&s->marks, &mark, err);
}

/* `t` and `p` are those of the event's track.  A call of each would cost as much as they do. */
#define STAGE static inline __attribute__((always_inline)) enum status

STAGE step_enter(struct step_stage *s, struct host_process *p, struct host_thread *t,
		 struct event *e, struct error *err)
{
	e->step = e->owner = e->phase = 0;
	host_extend(p, t, e);
	if (t->home == HOME_STREAM)
		return ST_OK;
	if (p->now.until_ns < e->begin_ns)
		TRY(process_advance(s, p, e->begin_ns, err));
	if (event_may_be_mark(e) && host_is_mark(&s->host, e))
		TRY(step_mark(s, p, e, err));
	e->owner = thread_owner(host_thread(&s->host, t->host), e->begin_ns);
	if (t->home != HOME_THREAD || e->end_ns == e->begin_ns)
		return ST_OK;
	if (e->kind == KIND_API)
		host_work(p, t, e);
	return e->kind == KIND_RANGE ? host_enter(&s->host, p, t, e, err) : ST_OK;
}

static void event_wait(struct step_stage *s, struct host_process *p, size_t i)
{
	uint32_t taken = (uint32_t)s->queue.taken, number = taken + (uint32_t)i;

	if (p->waits++)
		*queue_tag(&s->queue, p->waits_last - taken) = number;
	else
		p->waits_first = number;
	p->waits_last = number;
}

/* The event of the queue that is next. */
STAGE step_stamp(struct step_stage *s, struct host_process *p, struct host_thread *t,
		 struct event *e, struct error *err)
{
	uint64_t until_ns;
	uint8_t own;

	if (t->home == HOME_STREAM)
		return ST_OK;
	if (p->is_stale || p->now.until_ns <= e->begin_ns)
		TRY(process_settle(s, p, e->begin_ns, err));
	t = host_thread(&s->host, t->host);
	own = thread_phase(t, e->begin_ns, &until_ns);
	e->step = p->current.step;
	if (s->tells_near && (e->step & STEP_GAP) && e->begin_ns <= p->near_ns)
		e->step |= STEP_NEAR;
	if (own != PHASE_NONE)
		e->phase = own;
	else if (t->runs_autograd && t->host != p->thread)
		e->phase = PHASE_BACKWARD;
	else
		e->phase = p->now.phase;
	if (e->phase == PHASE_PENDING)
		event_wait(s, p, s->stamped);
	return ST_OK;
}

/* A group is whole when something later follows; a very long one is not waited for. */
static bool group_find(const struct step_stage *s, const struct event *events, size_t *end)
{
	size_t count = queue_count(&s->queue), i = s->stamped;
	uint64_t begin_ns;

	if (i == count)
		return false;
	begin_ns = events[i++].begin_ns;
	while (i < count && events[i].begin_ns == begin_ns)
		i++;
	*end = i;
	return i < count || s->has_ended || count - s->stamped >= QUEUE_EVENTS;
}

static enum status group_run(struct step_stage *s, struct event *events, size_t end,
			     struct error *err)
{
	struct host_thread *t;

	for (size_t i = s->stamped; i < end; i++) {
		t = host_thread(&s->host, events[i].track);
		TRY(step_enter(s, &s->host.processes[t->process], t, &events[i], err));
	}
	for (; s->stamped < end; s->stamped++) {
		t = host_thread(&s->host, events[s->stamped].track);
		TRY(step_stamp(s, &s->host.processes[t->process], t, &events[s->stamped], err));
	}
	return ST_OK;
}

/* Most events begin alone. */
static enum status one_run(struct step_stage *s, struct event *e, struct error *err)
{
	struct host_thread *t = host_thread(&s->host, e->track);
	struct host_process *p = &s->host.processes[t->process];

	TRY(step_enter(s, p, t, e, err));
	TRY(step_stamp(s, p, t, e, err));
	s->stamped++;
	return ST_OK;
}

static enum status step_run(struct step_stage *s, struct error *err)
{
	struct event *events;
	size_t end;

	if (!queue_count(&s->queue))
		return ST_OK;
	events = queue_at(&s->queue, 0); /* nothing is put meanwhile */
	while (group_find(s, events, &end)) {
		if (end == s->stamped + 1)
			TRY(one_run(s, &events[s->stamped], err));
		else
			TRY(group_run(s, events, end, err));
	}
	return ST_OK;
}

/* --- the source -------------------------------------------------------------------------- */

static enum status step_finish(struct step_stage *s, struct error *err)
{
	TRY(step_run(s, err));
	for (uint32_t i = 0; i <= s->host.process_count; i++)
		if (s->host.processes[i].has_begun)
			TRY(process_finish(s, &s->host.processes[i], err));
	return ST_OK;
}

/* A fault below is told after all that came before it has been given. */
static enum status step_pull(struct step_stage *s, struct error *err)
{
	enum status status = ST_OK;
	struct batch b;

	if (!s->in.count)
		status = source_next(s->below, &s->in, &s->error);
	if (status != ST_OK) {
		s->has_ended = true;
		s->fault = status;
		host_settle(&s->host);
		return step_finish(s, err);
	}
	TRY(queue_put(&s->queue, s->host.trace, &s->in, &b, err));
	for (size_t i = 0; s->host.undecided && i < b.count; i++)
		host_decide(&s->host, &b.events[i]);
	if (s->host.undecided && queue_count(&s->queue) - s->given < QUEUE_EVENTS)
		return ST_OK;
	host_settle(&s->host);
	return step_run(s, err);
}

static size_t step_ready(const struct step_stage *s)
{
	size_t i = s->given;

	while (i < s->stamped && queue_at(&s->queue, i)->phase != PHASE_PENDING)
		i++;
	return i;
}

static enum status step_give_up(struct step_stage *s, struct error *err)
{
	const struct event *first = queue_at(&s->queue, s->given);
	const struct event *last = queue_at(&s->queue, s->stamped - 1);
	uint32_t process = host_thread(&s->host, first->track)->process;

	return process_give_up(s, &s->host.processes[process], last->begin_ns, err);
}

/* So that a consumer need not wait for the end of a long phase.  Of very many processes a batch is
 * a part of an event each: they wait for more. */
static enum status step_cut_current(struct step_stage *s, uint64_t limit_ns, struct error *err)
{
	uint64_t events = s->queue.taken + s->given;

	if (events < s->cut_at)
		return ST_OK;
	if (s->host.process_count > MANY)
		s->cut_at = events + (uint64_t)s->host.process_count * CUT_EVENTS;
	for (uint32_t i = 0; i <= s->host.process_count; i++) {
		struct host_process *p = &s->host.processes[i];
		uint64_t end_ns = limit_ns < p->last_end_ns ? limit_ns : p->last_end_ns;

		if (!p->has_begun || p->current.begin_ns >= end_ns)
			continue;
		TRY(process_advance(s, p, end_ns, err));
		if (p->now.phase != PHASE_PENDING && p->current.begin_ns < end_ns)
			TRY(process_close(s, p, end_ns, err));
	}
	return ST_OK;
}

static void step_clear(struct step_stage *s)
{
	struct marks *m = &s->marks;

	s->was_looked_at = false;
	s->out.count = 0;
	m->count -= m->given;
	if (m->count)
		memmove(m->items, m->items + m->given, m->count * sizeof(*m->items));
	m->given = 0;
}

/* Moves what is final to `out`, in order for each process. */
static enum status step_give(struct step_stage *s, struct error *err)
{
	uint64_t limit_ns = s->given_ns < s->held_ns ? s->given_ns : s->held_ns;
	size_t kept = 0;

	if (s->was_looked_at)
		step_clear(s);
	if (s->has_reader && !s->has_ended)
		TRY(step_cut_current(s, limit_ns, err));
	s->pass++;
	for (size_t i = 0; i < s->closed.count; i++) {
		struct stretch one = s->closed.items[i];
		struct host_process *p = &s->host.processes[one.process];

		if (p->pass == s->pass || one.end_ns > limit_ns || one.phase == PHASE_PENDING) {
			p->pass = s->pass;
			if (i == p->pending_first)
				p->pending_first = kept;
			s->closed.items[kept++] = one;
		} else {
			TRY(stretches_give(&s->out, &one, s->shortest_ns, err));
		}
	}
	s->closed.count = kept;
	while (s->marks.given < s->marks.count &&
	       s->marks.items[s->marks.given].begin_ns < limit_ns)
		s->marks.given++;
	return ST_OK;
}

static enum status step_end(struct step_stage *s, struct error *err)
{
	enum status fault = s->fault;

	s->given_ns = UINT64_MAX;
	TRY(step_give(s, err));
	s->fault = ST_END; /* a fault is told once */
	if (fault != ST_END && err)
		*err = s->error;
	return fault;
}

enum status step_extend(struct source *source, size_t *ready, struct error *err)
{
	struct step_stage *s = step_of(source);
	size_t before = s->given;

	while ((*ready = step_ready(s)) == before) {
		if (s->has_ended)
			return step_end(s, err);
		if (s->stamped - before >= QUEUE_EVENTS)
			TRY(step_give_up(s, err));
		else
			TRY(step_pull(s, err));
	}
	s->given = *ready;
	if (s->given < queue_count(&s->queue))
		s->given_ns = queue_at(&s->queue, s->given)->begin_ns;
	else
		s->given_ns = s->has_ended ? UINT64_MAX
					   : queue_at(&s->queue, s->given - 1)->begin_ns;
	return step_give(s, err);
}

void step_drop(struct source *source)
{
	struct step_stage *s = step_of(source);

	s->stamped -= s->queue.lent;
	s->given -= s->queue.lent;
	queue_drop(&s->queue);
}

struct event_queue *step_queue(struct source *source)
{
	return &step_of(source)->queue;
}

static enum status step_next(struct source *source, struct batch *out, struct error *err)
{
	size_t ready;

	step_drop(source);
	TRY(step_extend(source, &ready, err));
	*out = queue_lend(step_queue(source), ready);
	return ST_OK;
}

static void step_close(struct source *source)
{
	struct step_stage *s = step_of(source);

	source_close(s->below);
	host_release(&s->host);
	queue_release(&s->queue);
	free(s->closed.items);
	free(s->out.items);
	free(s->marks.items);
	free(s);
}

static const struct source_type step_type = {
	.name = "step",
	.help = "steps and phases of the host",
	.next = step_next,
	.close = step_close,
};

enum status step_open(struct source **out, struct source *below, struct trace *trace,
		      const struct name_rules *rules, struct error *err)
{
	struct step_stage *s = calloc(1, sizeof(*s));
	enum status status;

	*out = NULL;
	if (!s) {
		source_close(below);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for steps");
	}
	s->source.type = &step_type;
	s->below = below;
	s->held_ns = UINT64_MAX;
	status = host_init(&s->host, trace, rules, err);
	if (status != ST_OK) {
		step_close(&s->source);
		return status;
	}
	*out = &s->source;
	return ST_OK;
}

bool step_is(const struct source *s)
{
	return s->type == &step_type;
}

enum status step_hold(struct source *source, uint64_t begin_ns, struct error *err)
{
	struct step_stage *s = step_of(source);

	s->held_ns = begin_ns;
	return step_give(s, err);
}
