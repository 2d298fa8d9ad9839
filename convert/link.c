/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/link_calls.h"

#include "convert/link_name.h"
#include "convert/step.h"
#include "convert/step/queue.h"

#include <stdlib.h>
#include <string.h>

enum {
	HELD_EVENTS = 1 << 16, /* read ahead at most, whatever the slack */
	BUCKETS_FIRST = 256,
};

struct link_stage {
	struct source source;
	struct source *below;
	struct trace *trace;
	struct calls *calls;     /* by process */
	uint32_t *process_of;    /* by track */
	uint8_t *starts;         /* by name: 0 not asked yet, 1 no, 2 launches */
	uint32_t process_count, track_count, name_count;
	uint32_t window;
	uint32_t buckets_first; /* of a process */
	uint64_t slack_ns;
	struct batch in; /* what is left of the last one from below */
	struct event_queue own, *queue; /* that of the stage `step`, where it stands below */
	size_t count;   /* of the queue: those that are final below */
	size_t entered; /* of the queue: calls up to here are in the table */
	size_t given;   /* of the queue: the last batch */
	const struct launch **found; /* by event of that: what was found for GPU work */
	size_t found_cap;
	uint16_t batch; /* its number, more or less */
	bool has_ended;
	enum status fault;
	struct error error;
};

static struct link_stage *link_of(const struct source *s)
{
	return (struct link_stage *)s;
}

static uint32_t link_process(const struct link_stage *s, uint32_t track)
{
	return s->process_of[track <= s->track_count ? track : 0];
}

static struct calls *link_calls(const struct link_stage *s, const struct event *e)
{
	return &s->calls[link_process(s, e->track)];
}

/* --- calls in ---------------------------------------------------------------------------- */

static bool name_starts(const struct link_stage *s, uint32_t name)
{
	size_t len;
	const char *text = trace_text(s->trace, name, &len);

	return launch_name(text, len);
}

static bool call_starts(struct link_stage *s, uint32_t name)
{
	if (name > s->name_count)
		return name_starts(s, name);
	if (!s->starts[name])
		s->starts[name] = name_starts(s, name) ? 2 : 1;
	return s->starts[name] == 2;
}

/* An event of this batch has the entry that must go: `old`, or the oldest. */
static bool is_needed(const struct link_stage *s, const struct calls *c, const struct launch *old)
{
	const struct launch *gone = old ? old : calls_oldest(c);

	return gone && gone->batch == s->batch;
}

/* `old`: what is there of the same id, or NULL. */
static enum status link_enter(struct link_stage *s, struct calls *c, const struct event *e,
			      struct launch *old, struct error *err)
{
	struct launch call = {
		.begin_ns = e->begin_ns, .end_ns = e->end_ns, .correlation = e->correlation,
		.track = e->track, .name = e->name, .owner = e->owner, .step = e->step,
		.phase = e->phase, .flags = LAUNCH_LIVE | LAUNCH_CALL,
	};

	if (old && (old->flags & LAUNCH_CALL) && e->begin_ns < old->end_ns)
		return ST_OK;
	if (old)
		calls_forget(c, old);
	if (call_starts(s, e->name)) {
		call.flags |= LAUNCH_STARTS;
		c->totals.launches++;
	}
	return calls_add(c, &call, s->buckets_first, &old, err);
}

/*
 * Enters the calls that begin by `until_ns`.  False before one that would push out a call which
 * an event of this batch has: link_launch() must find it as long as the batch is there.
 */
static bool link_enter_until(struct link_stage *s, uint64_t until_ns, enum status *status,
			     struct error *err)
{
	const struct event *e = queue_at(s->queue, s->entered);

	for (; *status == ST_OK && s->entered < s->count; s->entered++, e++) {
		struct launch *old;
		struct calls *c;

		if (e->begin_ns > until_ns)
			break;
		if (e->kind != KIND_API || !e->correlation)
			continue;
		c = link_calls(s, e);
		*status = calls_find(c, e->correlation, &old, err);
		if (*status != ST_OK)
			return true;
		if (is_needed(s, c, old))
			return false;
		*status = link_enter(s, c, e, old, err);
	}
	return true;
}

/* --- work out ---------------------------------------------------------------------------- */

static void link_count(struct calls *c, struct launch *l)
{
	struct link_totals *t = &c->totals;

	if (l->flags & LAUNCH_WORKED)
		return;
	l->flags |= LAUNCH_WORKED;
	c->worked += !!(l->flags & LAUNCH_STARTS);
	t->lowest_id = t->ids && t->lowest_id < l->correlation ? t->lowest_id : l->correlation;
	t->highest_id = t->highest_id > l->correlation ? t->highest_id : l->correlation;
	t->ids++;
}

static void link_copy(struct link_stage *s, struct event *e, struct launch *l)
{
	e->step = e->owner = e->phase = 0;
	if (!l)
		return;
	l->batch = s->batch;
	if (!(l->flags & LAUNCH_CALL))
		return;
	e->step = l->step;
	e->owner = l->owner;
	e->phase = l->phase;
}

/* Work without a call: its id is noted, so that it counts once, if nothing in use must go. */
static enum status link_note(struct link_stage *s, struct calls *c, const struct event *e,
			     struct launch **out, struct error *err)
{
	struct launch unknown = { .correlation = e->correlation, .flags = LAUNCH_LIVE };

	if (!e->correlation || is_needed(s, c, NULL))
		return ST_OK;
	return calls_add(c, &unknown, s->buckets_first, out, err);
}

static enum status link_work(struct link_stage *s, struct event *e, const struct launch **found,
			     struct error *err)
{
	struct calls *c = link_calls(s, e);
	struct launch *l;

	TRY(calls_find(c, e->correlation, &l, err));
	*found = l;
	link_copy(s, e, l);
	if (!event_is_gpu_work(e))
		return ST_OK;
	c->totals.gpu_events++;
	if (!l)
		TRY(link_note(s, c, e, &l, err));
	if (!l)
		return ST_OK;
	link_count(c, l);
	c->totals.with_launch += !!(l->flags & LAUNCH_CALL);
	return ST_OK;
}

/* --- the source -------------------------------------------------------------------------- */

static enum status link_copy_in(struct link_stage *s, struct error *err)
{
	struct batch b;

	if (!s->in.count)
		TRY(source_next(s->below, &s->in, err));
	TRY(queue_put(s->queue, s->trace, &s->in, &b, err));
	s->count += b.count;
	return ST_OK;
}

/* A fault below is told after all that came before it has been given. */
static void link_pull(struct link_stage *s)
{
	enum status status = s->queue == &s->own ? link_copy_in(s, &s->error)
						 : step_extend(s->below, &s->count, &s->error);

	if (status == ST_OK)
		return;
	s->has_ended = true;
	s->fault = status;
}

/* How many of the oldest have all their calls behind them. */
static size_t link_ready(const struct link_stage *s)
{
	const struct event *events = s->count ? queue_at(s->queue, 0) : NULL;
	size_t low = 0, high = s->count, middle;
	uint64_t last_ns;

	if (!s->count || s->has_ended)
		return s->count;
	last_ns = events[s->count - 1].begin_ns;
	while (low < high) { /* they are in order */
		middle = low + (high - low) / 2;
		if (last_ns - events[middle].begin_ns > s->slack_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return !low && s->count >= HELD_EVENTS ? s->count / 2 : low;
}

static uint64_t sum_ns(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The calls of `e` are entered; false: it is for the next batch. */
static bool link_enter_for(struct link_stage *s, const struct event *e, bool is_first,
			   enum status *status, struct error *err)
{
	uint64_t until_ns = sum_ns(e->begin_ns, s->slack_ns);

	while (!link_enter_until(s, until_ns, status, err)) {
		if (!is_first)
			return false;
		s->batch++; /* an old batch had the same number */
	}
	return true;
}

static enum status found_room(struct link_stage *s, size_t count, struct error *err)
{
	if (count <= s->found_cap)
		return ST_OK;
	free(s->found);
	s->found = calloc(count, sizeof(*s->found));
	s->found_cap = s->found ? count : 0;
	return s->found ? ST_OK : fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
}

static enum status link_give(struct link_stage *s, size_t ready, struct batch *out,
			     struct error *err)
{
	struct event *e = queue_at(s->queue, 0);
	enum status status = ST_OK;
	size_t i = 0;

	TRY(found_room(s, ready, err));
	for (uint32_t p = 0; p <= s->process_count; p++)
		calls_settle(&s->calls[p]);
	for (s->batch++; i < ready; i++, e++) {
		if (!link_enter_for(s, e, i == 0, &status, err))
			break;
		TRY(status);
		s->found[i] = NULL;
		if (event_is_gpu_work(e) || e->kind == KIND_SYNC)
			TRY(link_work(s, e, &s->found[i], err));
	}
	s->given = i;
	*out = queue_lend(s->queue, i);
	return ST_OK;
}

static enum status link_hold(struct link_stage *s, const struct batch *given, struct error *err)
{
	uint64_t begin_ns = UINT64_MAX;

	if (!step_is(s->below))
		return ST_OK;
	if (given->count < s->count)
		begin_ns = queue_at(s->queue, given->count)->begin_ns;
	else if (!s->has_ended)
		begin_ns = given->events[given->count - 1].begin_ns;
	return step_hold(s->below, begin_ns, err);
}

static enum status link_end(struct link_stage *s, struct error *err)
{
	enum status fault = s->fault;

	if (step_is(s->below))
		TRY(step_hold(s->below, UINT64_MAX, err));
	s->fault = ST_END; /* a fault is told once */
	if (fault != ST_END && err)
		*err = s->error;
	return fault;
}

static enum status link_next(struct source *source, struct batch *out, struct error *err)
{
	struct link_stage *s = link_of(source);
	size_t ready;

	if (s->queue == &s->own)
		queue_drop(s->queue);
	else
		step_drop(s->below);
	s->entered -= s->given;
	s->count -= s->given;
	s->given = 0;
	while (!(ready = link_ready(s))) {
		if (s->has_ended)
			return link_end(s, err);
		link_pull(s);
	}
	TRY(link_give(s, ready, out, err));
	return link_hold(s, out, err);
}

static void link_close(struct source *source)
{
	struct link_stage *s = link_of(source);

	source_close(s->below);
	for (uint32_t i = 0; s->calls && i <= s->process_count; i++)
		calls_release(&s->calls[i]);
	free(s->calls);
	free(s->found);
	free(s->process_of);
	free(s->starts);
	queue_release(&s->own);
	free(s);
}

static const struct source_type link_type = {
	.name = "link",
	.help = "GPU work and the calls that launched it",
	.next = link_next,
	.close = link_close,
};

/* A third or so of all events are calls; a table that has to grow is filled anew each time. */
static uint32_t buckets_first(const struct link_stage *s)
{
	uint64_t processes = s->process_count ? s->process_count : 1;
	uint64_t events = trace_provenance(s->trace)->events / processes / 3;
	uint32_t count = BUCKETS_FIRST;

	while (count < events && count < s->window)
		count *= 2;
	return count;
}

static enum status link_init(struct link_stage *s, struct error *err)
{
	s->process_count = trace_count(s->trace, TRACE_PROCESSES);
	s->track_count = trace_count(s->trace, TRACE_TRACKS);
	s->name_count = trace_count(s->trace, TRACE_NAMES);
	s->calls = calloc(s->process_count + 1, sizeof(*s->calls));
	s->process_of = calloc(s->track_count + 1, sizeof(*s->process_of));
	s->starts = calloc(s->name_count + 1, 1);
	s->buckets_first = buckets_first(s);
	for (uint32_t i = 0; s->calls && i <= s->process_count; i++)
		s->calls[i].window = s->window;
	if (!s->calls || !s->process_of || !s->starts)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
	for (uint32_t i = 1; i <= s->track_count; i++) {
		uint32_t process = trace_get_track(s->trace, i)->process;

		s->process_of[i] = process <= s->process_count ? process : 0;
	}
	return step_is(s->below) ? step_hold(s->below, 0, err) : ST_OK;
}

enum status link_open(struct source **out, struct source *below, struct trace *trace,
		      size_t window, uint64_t slack_ns, struct error *err)
{
	struct link_stage *s = calloc(1, sizeof(*s));
	enum status status;

	*out = NULL;
	if (!s) {
		source_close(below);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
	}
	s->source.type = &link_type;
	s->below = below;
	s->queue = step_is(below) ? step_queue(below) : &s->own;
	s->trace = trace;
	s->window = window < 1 ? 1 : window > LINK_WINDOW ? (uint32_t)LINK_WINDOW
							  : (uint32_t)window;
	s->slack_ns = slack_ns;
	status = link_init(s, err);
	if (status != ST_OK) {
		link_close(&s->source);
		return status;
	}
	*out = &s->source;
	return ST_OK;
}

/* What was found for the event at this place, unless a stage above has moved events. */
static const struct launch *link_recall(const struct link_stage *s, const struct event *e)
{
	size_t at = ((uintptr_t)e - (uintptr_t)queue_at(s->queue, 0)) / sizeof(*e);
	const struct launch *l = at < s->given ? s->found[at] : NULL;

	return l && l->correlation == e->correlation &&
	       link_process(s, l->track) == link_process(s, e->track) ? l : NULL;
}

const struct launch *link_launch(const struct source *source, const struct event *e)
{
	const struct link_stage *s = link_of(source);
	const struct launch *l = link_recall(s, e);

	if (!l)
		l = calls_look(link_calls(s, e), e->correlation);
	return l && (l->flags & LAUNCH_CALL) ? l : NULL;
}

struct link_totals link_totals(const struct source *source, uint32_t process)
{
	const struct link_stage *s = link_of(source);
	struct calls *c = &s->calls[process <= s->process_count ? process : 0];
	struct link_totals totals = c->totals;

	totals.without_gpu_event = totals.launches - c->worked;
	return totals;
}
