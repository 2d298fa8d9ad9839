/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/timeline/internal.h"

void sums_add(struct phase_sums *into, const struct phase_sums *from)
{
	if (!from->some)
		return;
	into->some = true;
	for (size_t i = 0; i < SWEEP_PHASES; i++) {
		into->ns[i] += from->ns[i];
		into->inferred[i] |= from->inferred[i];
	}
}

void sums_move(struct phase_sums *into, struct phase_sums *held)
{
	sums_add(into, held);
	*held = (struct phase_sums){ 0 };
}

static void sums_put(struct phase_sums *sums, const struct phase_interval *st, uint64_t ns)
{
	if (!ns)
		return;
	sums->some = true;
	sums->ns[st->phase] += ns;
	sums->inferred[st->phase] |= st->inferred;
}

uint64_t host_certain_ns(const struct sweep *s, const struct host *h, uint64_t gpu_end_ns)
{
	const struct bound *bounds = s->bounds.items;
	uint64_t certain_ns = later(h->mark_end_ns, gpu_end_ns);

	if (h->bounds_count && !s->is_by_step)
		certain_ns = later(certain_ns,
				   earlier(bounds[h->bounds_first + h->bound].end_ns, s->to_ns));
	return certain_ns;
}

/* Returns how long the GPU was idle in [begin, end). Drops busy intervals that end by then. */
static uint64_t idle_within(struct gpu *g, uint64_t begin_ns, uint64_t end_ns)
{
	struct span *busy = g->busy.items;
	uint64_t idle_ns = end_ns - begin_ns;

	while (g->busy.head < g->busy.count) {
		struct span *i = &busy[g->busy.head];
		uint64_t from = later(i->begin_ns, begin_ns), to = earlier(i->end_ns, end_ns);

		if (i->begin_ns >= end_ns)
			break;
		if (to > from)
			idle_ns -= to - from;
		if (i->end_ns > end_ns)
			break;
		g->busy.head++;
	}
	spans_compact(&g->busy, sizeof(struct span));
	return idle_ns;
}

static void gpu_meanwhile(const struct sweep *s, const struct host *h, struct gpu *g,
			  const struct phase_interval *st)
{
	uint64_t certain_ns = host_certain_ns(s, h, g->end_ns);
	uint64_t begin_ns = later(st->begin_ns, g->host_ns), beyond_ns, idle_ns;
	struct phase_interval gap = { .phase = PHASE_OTHER,
				      .begin_ns = g->host_ns,
				      .end_ns = begin_ns };

	if (begin_ns > g->host_ns)
		gpu_meanwhile(s, h, g, &gap);
	if (st->end_ns <= begin_ns)
		return;
	idle_ns = idle_within(g, begin_ns, st->end_ns);
	beyond_ns = st->end_ns > certain_ns ? st->end_ns - later(begin_ns, certain_ns) : 0;
	sums_put(&g->during, st, idle_ns - beyond_ns); /* after its last work the GPU is not busy */
	sums_put(&g->held, st, beyond_ns);
	g->host_ns = st->end_ns;
}

/* Adds a phase interval from *at_ns on to `sums` and advances *at_ns. Time that may lie beyond the
 * window goes to `held`. */
static void time_put(struct phase_sums *sums, struct phase_sums *held, uint64_t *at_ns,
		     uint64_t certain_ns, const struct phase_interval *st)
{
	uint64_t begin_ns = later(st->begin_ns, *at_ns), beyond_ns;
	struct phase_interval gap = { .phase = PHASE_OTHER,
				      .begin_ns = *at_ns,
				      .end_ns = begin_ns };

	if (begin_ns > *at_ns)
		time_put(sums, held, at_ns, certain_ns, &gap);
	if (st->end_ns <= begin_ns)
		return;
	beyond_ns = st->end_ns > certain_ns ? st->end_ns - later(begin_ns, certain_ns) : 0;
	sums_put(sums, st, st->end_ns - begin_ns - beyond_ns);
	sums_put(held, st, beyond_ns);
	*at_ns = st->end_ns;
}

/* Accounts for the step thread before the host's first event. It can be known there: a filter may
 * leave only GPU work of that time. */
static void early_put(const struct sweep *s, struct host *h, struct phase_interval st)
{
	if (h->has_host)
		st.end_ns = earlier(st.end_ns, h->host_begin_ns);
	if (st.begin_ns < st.end_ns)
		time_put(&h->early, &h->early_held, &h->early_ns,
			 host_certain_ns(s, h, h->gpu_end_ns), &st);
}

static void wall_put(const struct sweep *s, struct host *h, const struct phase_interval *st)
{
	time_put(&h->wall, &h->held, &h->host_ns, host_certain_ns(s, h, h->gpu_end_ns), st);
}

/* Assigns pending time to a phase interval. Intervals come in time order, so what lies before this
 * one is in no phase. */
static void pending_assign(struct host *h, const struct phase_interval *st)
{
	const struct phase_interval none = { .phase = PHASE_OTHER };
	struct pending_time *all = h->pending.items;
	size_t i, kept = 0;

	for (i = 0; i < h->pending.count; i++) {
		struct pending_time *o = &all[i];
		uint64_t from_ns = earlier(later(o->begin_ns, st->begin_ns), o->end_ns);
		uint64_t to_ns = later(earlier(o->end_ns, st->end_ns), from_ns);

		sums_put(o->total, &none, from_ns - o->begin_ns);
		sums_put(o->total, st, to_ns - from_ns);
		o->begin_ns = to_ns;
		if (o->begin_ns < o->end_ns)
			all[kept++] = *o;
	}
	h->pending.count = kept;
}

void pending_settle(struct host *h)
{
	const struct phase_interval end = { .begin_ns = UINT64_MAX, .end_ns = UINT64_MAX };

	pending_assign(h, &end);
}

/* Notes the rest of a window whose phases are not known yet: a host gap of the step thread may
 * continue into the next window, and is classified there. */
static enum status pending_add(struct sweep *s, uint32_t process, struct phase_sums *total,
			       const struct span *rest, struct error *err)
{
	const struct pending_time one = { rest->begin_ns, rest->end_ns, total };

	if (rest->begin_ns >= rest->end_ns)
		return ST_OK;
	return spans_add(s, &s->hosts[process].pending, &one, sizeof(one), err);
}

static void account(struct sweep *s, uint32_t process, const struct phase_interval *st)
{
	struct host *h = &s->hosts[process];

	if (h->pending.count)
		pending_assign(h, st);
	if (!h->is_open)
		return; /* the window has not begun */
	for (size_t i = 0; i < s->gpu_count; i++)
		if (s->gpus[i]->process == process && s->gpus[i]->is_open)
			gpu_meanwhile(s, h, s->gpus[i], st);
	early_put(s, h, *st);
	if (h->has_host)
		wall_put(s, h, st);
}

enum status host_account(struct sweep *s, uint32_t process, uint64_t until_ns, struct error *err)
{
	struct host *h = &s->hosts[process];
	struct phase_interval *queue = h->intervals.items, part;

	if (h->intervals.head == h->intervals.count ||
	    queue[h->intervals.head].begin_ns >= until_ns)
		return ST_OK;
	for (size_t i = 0; i < s->gpu_count; i++)
		if (s->gpus[i]->process == process && s->gpus[i]->is_open)
			TRY(gpu_advance(s, s->gpus[i], until_ns, err));
	while (h->intervals.head < h->intervals.count) {
		struct phase_interval *st = &queue[h->intervals.head];

		if (st->begin_ns >= until_ns)
			break;
		part = *st;
		part.end_ns = earlier(st->end_ns, until_ns);
		account(s, process, &part);
		if (st->end_ns > until_ns) {
			st->begin_ns = until_ns;
			break;
		}
		h->intervals.head++;
	}
	spans_compact(&h->intervals, sizeof(struct phase_interval));
	return ST_OK;
}

static enum status gpu_window_close(struct sweep *s, const struct host *h, struct gpu *g,
				    struct error *err)
{
	uint64_t end_ns = host_certain_ns(s, h, g->end_ns);

	const struct span *busy = g->busy.items;
	struct span rest = { g->host_ns, end_ns };

	for (size_t i = g->busy.head; i < g->busy.count && rest.begin_ns < end_ns; i++) {
		rest.end_ns = earlier(busy[i].begin_ns, end_ns);
		TRY(pending_add(s, g->process, &g->total, &rest, err));
		rest.begin_ns = later(rest.begin_ns, busy[i].end_ns);
	}
	rest.end_ns = end_ns;
	TRY(pending_add(s, g->process, &g->total, &rest, err));
	sums_add(&g->total, &g->during);
	g->during = g->held = (struct phase_sums){ 0 };
	g->busy.head = g->busy.count = 0;
	return gpu_close(s, g, end_ns, err);
}

enum status host_close(struct sweep *s, uint32_t process, uint64_t *end_ns, struct error *err)
{
	struct host *h = &s->hosts[process];

	for (size_t i = 0; i < s->gpu_count; i++)
		if (s->gpus[i]->process == process && s->gpus[i]->is_open)
			TRY(gpu_window_close(s, h, s->gpus[i], err));
	*end_ns = host_certain_ns(s, h, h->gpu_end_ns);
	struct span rest = { h->early_ns, *end_ns };
	if (h->has_host)
		rest.end_ns = earlier(*end_ns, h->host_begin_ns);
	TRY(pending_add(s, process, &h->total, &rest, err));
	rest = (struct span){ h->host_ns, *end_ns };
	if (h->has_host)
		TRY(pending_add(s, process, &h->total, &rest, err));
	sums_add(&h->total, &h->early);
	sums_add(&h->total, &h->wall);
	*end_ns = later(*end_ns, h->begin_ns);
	return ST_OK;
}
