/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/context/internal.h"

#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
	INTERVALS_MAX = 65536, /* in a list without shortest_ns; only a filter collects so many */
	INTERVALS_MERGED_MAX = 1 << 20, /* in a list that merges short intervals */
	MANY_PROCESSES = 64,
	SPLIT_EVENTS = 4, /* events per process between two parts of a long interval */
};

static bool interval_continues(const struct phase_interval *a, const struct phase_interval *b,
			       uint64_t shortest_ns)
{
	return a->end_ns == b->begin_ns && a->process == b->process && a->step == b->step &&
	       !b->begins_step &&
	       ((a->phase == b->phase && a->inferred == b->inferred) ||
		b->end_ns - b->begin_ns < shortest_ns);
}

enum status interval_list_add(struct interval_list *l, const struct phase_interval *one,
			      uint64_t shortest_ns, struct error *err)
{
	struct phase_interval *last = l->count ? &l->items[l->count - 1] : NULL;

	if (last && interval_continues(last, one, shortest_ns)) {
		last->end_ns = one->end_ns;
		return ST_OK;
	}
	if (l->count == (shortest_ns ? INTERVALS_MERGED_MAX : INTERVALS_MAX)) {
		size_t gone = l->count / 2;

		l->count -= gone;
		memmove(l->items, l->items + gone, l->count * sizeof(*l->items));
	}
	TRY(vec_reserve(&l->items, &l->cap, l->count + 1, err));
	l->items[l->count++] = *one;
	return ST_OK;
}

/* ---- the source ---- */

/* Chooses the step thread of undecided processes without marks.  Processes with marks stay
 * undecided, because their first mark may still come. */
static void decide_all(struct host *h)
{
	for (uint32_t i = 1; h->undecided && i <= h->thread_count; i++) {
		struct host_thread *t = &h->threads[i];
		struct host_process *p = &h->processes[t->process];
		struct host_thread *best = host_thread(h, p->step_thread);

		if (!t->is_candidate || !p->is_undecided || !t->events)
			continue;
		if (t->open_ns != best->open_ns ? t->open_ns > best->open_ns
		    : t->events != best->events ? t->events > best->events
						: t->order < best->order)
			p->step_thread = i;
	}
	for (uint32_t i = 1; h->undecided && i <= h->process_count; i++) {
		struct host_process *p = &h->processes[i];

		if (p->marks == MARKS_NONE && p->is_undecided) {
			p->is_undecided = false;
			h->undecided--;
		}
	}
}

/* Pulls events into the queue.  An error of the source below is stored, and reported after all
 * events that came before it. */
static enum status context_pull(struct context *c, struct error *err)
{
	size_t before = queue_count(&c->queue);
	enum status status = ST_OK;

	if (!c->in.count)
		status = source_next(c->below, &c->in, &c->error);
	if (status != ST_OK) {
		c->has_ended = true;
		c->fault = status;
		decide_all(&c->host);
		return phase_finish(c, err);
	}
	TRY(queue_put(&c->queue, c->host.trace, &c->in, err));
	for (size_t i = before; c->host.undecided && i < queue_count(&c->queue); i++)
		host_decide(&c->host, queue_at(&c->queue, i));
	if (c->host.undecided && queue_count(&c->queue) - c->final < QUEUE_EVENTS)
		return ST_OK;
	decide_all(&c->host);
	return phase_run(c, err);
}

/* Makes at least one more event final, unless all events are. */
static enum status context_extend(struct context *c, struct error *err)
{
	size_t before = c->final;

	for (;;) {
		while (c->final < c->stamped &&
		       queue_at(&c->queue, c->final)->phase < PHASE_PENDING)
			c->final++;
		if (c->final > before)
			return ST_OK;
		if (c->has_ended) {
			c->is_exhausted = true;
			return ST_OK;
		}
		if (c->stamped - before >= QUEUE_EVENTS)
			TRY(phase_give_up(c, err));
		else
			TRY(context_pull(c, err));
	}
}

/* Splits long intervals at `limit_ns`.  With many processes a batch has about one event of each, so
 * their intervals are split less often. */
static enum status context_split(struct context *c, uint64_t limit_ns, struct error *err)
{
	uint64_t events = c->queue.taken + c->final;

	if (c->whole_intervals || c->has_ended || events < c->split_at || !c->queue.taken)
		return ST_OK;
	if (c->host.process_count > MANY_PROCESSES)
		c->split_at = events + (uint64_t)c->host.process_count * SPLIT_EVENTS;
	return phase_split(c, limit_ns, err);
}

/* Moves the intervals that are final and end by `limit_ns` to `out`; those of each process stay in
 * order. */
static enum status context_give(struct context *c, uint64_t limit_ns, struct batch *out,
				struct error *err)
{
	size_t kept = 0;

	TRY(context_split(c, limit_ns, err));
	c->pass++;
	for (size_t i = 0; i < c->closed.count; i++) {
		struct phase_interval one = c->closed.items[i];
		struct host_process *p = &c->host.processes[one.process];

		if (p->pass == c->pass || one.end_ns > limit_ns || one.phase >= PHASE_PENDING) {
			p->pass = c->pass;
			for (size_t k = 0; k < 2; k++)
				if (i == p->pending[k].interval)
					p->pending[k].interval = kept;
			c->closed.items[kept++] = one;
		} else {
			TRY(interval_list_add(&c->out, &one, 0, err));
		}
	}
	c->closed.count = kept;
	while (c->marks_out < c->mark_count && c->marks[c->marks_out].begin_ns < limit_ns)
		c->marks_out++;
	out->intervals = c->out.items;
	out->interval_count = c->out.count;
	out->marks = c->marks;
	out->mark_count = c->marks_out;
	return ST_OK;
}

/* Drops the events, intervals and marks of the last batch. */
static void context_drop(struct context *c)
{
	c->stamped -= c->queue.lent;
	c->final -= c->queue.lent;
	c->launch.entered -= c->launch.tables ? c->queue.lent : 0;
	queue_drop(&c->queue);
	c->out.count = 0;
	c->mark_count -= c->marks_out;
	if (c->marks_out && c->mark_count)
		memmove(c->marks, c->marks + c->marks_out, c->mark_count * sizeof(*c->marks));
	c->marks_out = 0;
}

static enum status context_next(struct source *source, struct batch *out, struct error *err)
{
	struct context *c = (struct context *)source;
	uint64_t limit_ns = UINT64_MAX;
	enum status fault = c->fault;
	size_t ready;

	context_drop(c);
	while (!(ready = c->launch.tables ? launch_ready(c) : c->final) && !c->is_exhausted) {
		TRY(context_extend(c, err));
		if (c->launch.tables) /* a pending gap may have been resolved since */
			TRY(context_split(c, c->limit_ns, err));
	}
	if (!ready) {
		fault = c->fault;
		TRY(context_give(c, UINT64_MAX, out, err));
		c->fault = ST_END; /* an error is reported once */
		if (fault != ST_END && err)
			*err = c->error;
		return fault;
	}
	if (c->launch.tables) {
		TRY(launch_find(c, ready, err));
		out->launches = c->launch.found;
	}
	if (ready < (c->launch.tables ? c->final : queue_count(&c->queue)))
		limit_ns = queue_at(&c->queue, ready)->begin_ns;
	else if (c->launch.tables ? !c->is_exhausted : !c->has_ended)
		limit_ns = queue_at(&c->queue, ready - 1)->begin_ns;
	out->events = queue_lend(&c->queue, ready);
	out->count = ready;
	c->limit_ns = limit_ns;
	return context_give(c, limit_ns, out, err);
}

static void context_close(struct source *source)
{
	struct context *c = (struct context *)source;

	source_close(c->below);
	launch_release(c);
	host_release(&c->host);
	queue_release(&c->queue);
	free(c->closed.items);
	free(c->out.items);
	free(c->marks);
	free(c);
}

static const struct source_type context_type = {
	.name = "context",
	.help = "steps, phases and launches",
	.next = context_next,
	.close = context_close,
};

enum status context_open(struct context **out, struct source *below, struct trace *trace,
			 const struct context_request *how, struct error *err)
{
	struct context *c = calloc(1, sizeof(*c));
	enum status status;

	*out = NULL;
	if (!c) {
		source_close(below);
		return fail_memory(err);
	}
	c->source.type = &context_type;
	c->below = below;
	c->whole_intervals = how->whole_intervals;
	status = host_init(&c->host, trace, how->rules, err);
	if (status == ST_OK && how->wants_launches)
		status = launch_init(c, how, err);
	if (status != ST_OK) {
		context_close(&c->source);
		return status;
	}
	*out = c;
	return ST_OK;
}

struct source *context_source(struct context *c)
{
	return &c->source;
}

/* ---- queries ---- */

unsigned context_phase_count(const struct context *c)
{
	return c->host.phase_count;
}

struct context_phase context_phase(const struct context *c, unsigned id)
{
	const struct host *h = &c->host;

	if (id < name_rules_phase_count(h->rules))
		return (struct context_phase){ name_rules_phase_name(h->rules, id), false };
	if (id >= h->phase_count)
		return (struct context_phase){ "", false };
	if (!h->phase_names[id])
		return (struct context_phase){ "more annotations", true };
	return (struct context_phase){ trace_text(h->trace, h->phase_names[id], NULL), true };
}

uint32_t context_step_thread(const struct context *c, uint32_t process)
{
	return process <= c->host.process_count ? c->host.processes[process].step_thread : 0;
}

/* Results about names are cached in the host, so the queries below write to it. */
static struct host *host_of(const struct context *c)
{
	return (struct host *)&c->host;
}

bool context_is_mark(const struct context *c, const struct event *e)
{
	struct host *h = host_of(c);

	return event_may_be_mark(e) && host_is_mark(h, e) &&
	       e->track == h->processes[host_thread(h, e->track)->process].step_thread;
}

bool context_is_step_name(const struct context *c, uint32_t name)
{
	return host_name_only_marks(host_of(c), name);
}
