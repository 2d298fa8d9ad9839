/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/replay/internal.h"

#include "convert/name/rules.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t scaled(uint64_t ns, double factor)
{
	return factor == 1 ? ns : (uint64_t)llround((double)ns * factor);
}

static uint64_t difference(uint64_t ns, double factor)
{
	uint64_t then_ns = scaled(ns, factor);

	return ns > then_ns ? ns - then_ns : then_ns - ns;
}

/* ---- dependencies ------------------------------------------------------------------------ */

/* `after_ns` is how long after the instant at the earliest. */
static void depend(const struct replay *r, struct dependency *d, const struct instant *on,
		   uint64_t after_ns)
{
	if (!d->any)
		memset(d->at, 0, sizeof(d->at));
	d->any = true;
	d->ns = on->ns + after_ns > d->ns ? on->ns + after_ns : d->ns;
	for (unsigned k = 0; k < r->states; k++)
		d->at[k] = on->at[k] + after_ns > d->at[k] ? on->at[k] + after_ns : d->at[k];
}

/* The same of work, which nothing waits for in some states. */
static void depend_work(const struct replay *r, struct dependency *d, const struct done *on)
{
	if (!d->any)
		memset(d->at, 0, sizeof(d->at));
	d->any = true;
	d->ns = on->end.ns > d->ns ? on->end.ns : d->ns;
	for (unsigned k = 0; k < r->states; k++)
		if (on->end.at[k] > d->at[k] && !(r->overlaps[k] && on->communicates))
			d->at[k] = on->end.at[k];
}

/* The latest work of a stream that was launched and had ended by then; NULL: none is remembered. */
static const struct done *done_by(const struct stream *s, uint64_t launched_by_ns,
				  uint64_t ended_by_ns)
{
	for (uint64_t i = s->count; i && i + DONE > s->count; i--) {
		const struct done *d = &s->done[(i - 1) % DONE];

		if (d->launch_ns && d->launch_ns <= launched_by_ns && d->end.ns <= ended_by_ns)
			return d;
	}
	return NULL;
}

/* ---- steps ------------------------------------------------------------------------------- */

static enum status step_put(struct replay *r, const struct thread *t, struct error *err)
{
	bool is_same = r->step_count && r->step_ns[r->step_count - 1] == t->last.ns;

	if (r->step_count == REPLAY_STEPS_MAX && !is_same)
		return ST_OK;
	TRY(vec_reserve(&r->step_ns, &r->step_cap, r->step_count + 1, err));
	TRY(vec_reserve(&r->step_at, &r->step_at_cap, (r->step_count + 1) * r->states, err));
	TRY(vec_reserve(&r->step_launches, &r->step_launches_cap, r->step_count + 1, err));
	TRY(vec_reserve(&r->step_changed, &r->step_changed_cap, (r->step_count + 1) * r->states,
			err));
	r->step_count += !is_same;
	r->step_ns[r->step_count - 1] = t->last.ns;
	r->step_launches[r->step_count - 1] = r->launches;
	uint64_t *at = r->step_at + (r->step_count - 1) * r->states;
	memcpy(r->step_changed + (r->step_count - 1) * r->states, r->changed,
	       r->states * sizeof(*r->changed));
	for (unsigned k = 0; k < r->states; k++) {
		uint64_t end = t->last.at[k] > r->last_end[k] ? t->last.at[k] : r->last_end[k];

		at[k] = !is_same || end > at[k] ? end : at[k];
	}
	return ST_OK;
}

/* Work that was launched before a step's end keeps it from ending. */
static void steps_wait(struct replay *r, const struct done *d)
{
	size_t from = r->step_count > MARKS_BACK ? r->step_count - MARKS_BACK : 0;

	for (size_t i = r->step_count; i > from && r->step_ns[i - 1] >= d->launch_ns; i--) {
		uint64_t *at = r->step_at + (i - 1) * r->states;

		for (unsigned k = 0; k < r->states; k++)
			at[k] = d->end.at[k] > at[k] ? d->end.at[k] : at[k];
	}
}

static const uint64_t *step_find(const struct replay *r, uint64_t at_ns)
{
	return r->step_count
		       ? bsearch(&at_ns, r->step_ns, r->step_count, sizeof(at_ns), compare_u64)
		       : NULL;
}

const uint64_t *replay_at(const struct replay *r, uint64_t at_ns)
{
	const uint64_t *found = step_find(r, at_ns);

	return found ? r->step_at + (size_t)(found - r->step_ns) * r->states : NULL;
}

size_t replay_lengths(const struct replay *r, const struct replay_step *steps, size_t count,
		      unsigned state, bool is_graph, uint64_t *out, uint64_t *changed_ns)
{
	bool is_first = true;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t *begin = replay_at(r, steps[i].begin_ns);
		const uint64_t *end = replay_at(r, steps[i].end_ns);

		if (!begin || !end)
			continue;
		size_t from = (size_t)(begin - r->step_at) / r->states;
		size_t to = (size_t)(end - r->step_at) / r->states;
		/* Where nothing is launched there is nothing to put into a graph. */
		bool is_kept = is_graph && r->step_launches[from] == r->step_launches[to];
		size_t of = is_kept ? 0 : state;

		if (!is_first) {
			if (changed_ns)
				changed_ns[kept] = r->step_changed[to * r->states + of] -
						   r->step_changed[from * r->states + of];
			out[kept++] = end[of] > begin[of] ? end[of] - begin[of] : 0;
		}
		is_first = false;
	}
	return kept;
}

/* ---- host -------------------------------------------------------------------------------- */

static bool ends_before(const void *self, uint32_t a, uint32_t b)
{
	const struct open_call *calls = self;

	if (calls[a].host.end_ns != calls[b].host.end_ns)
		return calls[a].host.end_ns < calls[b].host.end_ns;
	return calls[a].order > calls[b].order;
}

static enum status thread_of(struct replay *r, const struct replay_host *h, uint32_t *out,
			     struct error *err)
{
	for (*out = 0; *out < r->thread_count; ++*out)
		if (r->threads[*out].id == h->thread)
			return ST_OK;
	if (*out == THREADS_MOST) {
		--*out;
		return ST_OK;
	}
	TRY(vec_reserve(&r->threads, &r->thread_cap, r->thread_count + 1, err));
	r->threads[r->thread_count] =
		(struct thread){ .id = h->thread, .is_step_thread = h->is_step_thread };
	TRY(instant_new(r, &r->threads[r->thread_count].last, err));
	if (h->is_step_thread)
		r->step_thread = (uint32_t)r->thread_count + 1;
	r->thread_count++;
	return ST_OK;
}

/* The thread's next point, after all of `d`; `waits`: for the GPU, among it. */
static enum status thread_point(struct replay *r, struct thread *t, uint64_t now_ns,
				const struct replay_host *inner, const struct dependency *d,
				bool waits, struct error *err)
{
	unsigned activity = inner->activity;
	const double *f = factors_of(r, inner->kind, err);
	uint64_t before_ns = t->last.ns, own = now_ns - before_ns, rest = 0, ahead = 0, met;

	if (!f)
		return ST_MEMORY;
	if (d->any) {
		/* What a waiting call does itself is short; its residual is what is left. */
		uint64_t least = own < REPLAY_WAIT_OWN_NS ? own : REPLAY_WAIT_OWN_NS;
		met = t->last.ns + least > d->ns ? t->last.ns + least : d->ns;
		rest = now_ns > met ? now_ns - met : 0;
		ahead = met > now_ns ? met - now_ns : 0;
		own = least;
	}
	for (unsigned k = 0; k < r->states; k++) {
		uint64_t at = t->last.at[k] + scaled(own, f[k]);

		if (d->any && !r->drops_waits[activity][k])
			at = (at > d->at[k] ? at : d->at[k]) - ahead;
		t->last.at[k] = at + (waits && r->drops_rest[k] ? 0 : scaled(rest, f[k]));
		if (f[k] != 1)
			r->changed[k] += difference(now_ns - before_ns, f[k]);
	}
	t->last.ns = now_ns;
	r->is_inexact |= t->last.at[0] != now_ns;
	return ST_OK;
}

/* A thread makes its first point: it is as late as the step thread is. */
static void thread_begin(const struct replay *r, struct thread *t, uint64_t now_ns)
{
	const struct thread *step = r->step_thread ? &r->threads[r->step_thread - 1] : NULL;

	for (unsigned k = 0; k < r->states; k++)
		t->last.at[k] =
			step && step != t ? now_ns - step->last.ns + step->last.at[k] : now_ns;
	t->last.ns = t->burst_ns = now_ns;
}

/* What threads wait for each other for, at a point of `t`. */
static void hand_over(const struct replay *r, const struct thread *t, uint64_t now_ns,
		      struct dependency *d)
{
	const struct thread *step = r->step_thread ? &r->threads[r->step_thread - 1] : NULL;

	if (step && step != t && !t->depth && step->last.ns > t->last.ns) {
		depend(r, d, &step->last, 0);
		return;
	}
	for (size_t i = 0; t == step && i < r->thread_count; i++) {
		const struct thread *u = &r->threads[i];

		if (u != t && !u->depth && u->burst_ns > t->last.ns && u->last.ns <= now_ns)
			depend(r, d, &u->last, 0);
	}
}

/* What a call that ends has waited for on the GPU. */
static void wait_for_gpu(const struct replay *r, const struct replay_host *h, struct dependency *d)
{
	uint64_t latest_ns = h->end_ns + REPLAY_WAIT_TOLERANCE_NS;
	const struct done *last = NULL;

	if (h->activity == REPLAY_COPY && h->correlation) {
		const uint64_t *place = map_find(&r->by_correlation, h->correlation);
		const struct launched *l = place ? &r->launched[*place] : NULL;

		if (l && l->has_work && l->begin.ns == h->begin_ns && l->work_end.ns <= latest_ns &&
		    l->work_end.ns > h->begin_ns)
			depend(r, d, &l->work_end, 0);
		return;
	}
	if (h->activity != REPLAY_SYNC)
		return;
	for (size_t i = 0; i < r->stream_count; i++) {
		const struct done *one = done_by(&r->streams[i], h->begin_ns, latest_ns);

		if (one && (!last || one->end.ns > last->end.ns))
			last = one;
		if (one && h->is_device_wide)
			depend_work(r, d, one);
	}
	if (last && last->end.ns > h->begin_ns)
		depend_work(r, d, last);
	else
		d->any &= !h->is_device_wide;
}

static enum status call_ends(struct replay *r, uint32_t number, struct error *err)
{
	struct replay_host h = r->calls[number].host;
	struct dependency d = { .any = false };
	uint32_t index;

	TRY(thread_of(r, &h, &index, err));
	struct thread *t = &r->threads[index];
	wait_for_gpu(r, &h, &d);
	bool waits = d.any;
	hand_over(r, t, h.end_ns, &d);
	/* Until here the innermost call that is open went on, which need not be this one. */
	const struct replay_host *inner = &r->calls[t->open[t->depth - 1]].host;
	TRY(thread_point(r, t, h.end_ns, inner, &d, waits, err));
	for (size_t i = t->depth; i; i--)
		if (t->open[i - 1] == number) {
			memmove(&t->open[i - 1], &t->open[i], (t->depth - i) * sizeof(*t->open));
			t->depth--;
			break;
		}
	if (h.is_mark)
		TRY(step_put(r, t, err));
	TRY(vec_reserve(&r->free_calls, &r->free_cap, r->free_count + 1, err));
	r->free_calls[r->free_count++] = number;
	return ST_OK;
}

static enum status calls_end_by(struct replay *r, uint64_t now_ns, struct error *err)
{
	r->ends.self = r->calls;
	while (r->ends.count && r->calls[r->ends.items[0]].host.end_ns <= now_ns)
		TRY(call_ends(r, heap_pop(&r->ends, ends_before), err));
	return ST_OK;
}

static enum status call_begins(struct replay *r, struct thread *t, const struct replay_host *h,
			       struct error *err)
{
	uint32_t number = (uint32_t)r->call_count;

	if (t->depth == DEPTH_MOST)
		return ST_OK;
	if (r->free_count) {
		number = r->free_calls[--r->free_count];
	} else {
		TRY(vec_reserve(&r->calls, &r->call_cap, r->call_count + 1, err));
		r->call_count++;
	}
	r->calls[number] = (struct open_call){ *h, r->order++ };
	r->ends.self = r->calls;
	TRY(vec_reserve(&t->open, &t->open_cap, t->depth + 1, err));
	t->open[t->depth++] = number;
	return heap_push(&r->ends, number, ends_before, err);
}

/* Remembers when the call began, for its work. */
static enum status launch_put(struct replay *r, struct thread *t, const struct replay_host *h,
			      struct error *err)
{
	uint64_t place = r->launched_count % CALLS;
	struct launched *l = &r->launched[place];
	bool is_new;

	uint64_t *found = map_put(&r->by_correlation, h->correlation, &is_new);
	if (!found)
		return fail_memory(err);
	if (!is_new && r->launched[*found].begin.ns + REPLAY_WAIT_TOLERANCE_NS > h->begin_ns)
		return ST_OK; /* a driver call within its runtime call */
	*found = place;
	if (!l->begin.at) {
		TRY(instant_new(r, &l->begin, err));
		TRY(instant_new(r, &l->work_end, err));
	} else if (l->correlation != h->correlation) {
		const uint64_t *old = map_find(&r->by_correlation, l->correlation);

		if (old && *old == place)
			map_remove(&r->by_correlation, l->correlation);
	}
	r->launched_count++;
	l->correlation = h->correlation;
	l->has_work = false;
	l->begin.ns = h->begin_ns;
	memcpy(l->begin.at, t->last.at, r->states * sizeof(*l->begin.at));
	l->stream_wait_ns = t->stream_wait_ns;
	if (h->activity == REPLAY_LAUNCH || h->activity == REPLAY_COPY)
		t->stream_wait_ns = 0;
	return ST_OK;
}

enum status replay_put_host(struct replay *r, const struct replay_host *h, struct error *err)
{
	struct dependency d = { .any = false };
	uint32_t index;

	TRY(calls_end_by(r, h->begin_ns, err));
	TRY(thread_of(r, h, &index, err));
	r->launches += h->activity == REPLAY_LAUNCH || h->activity == REPLAY_COPY;
	struct thread *t = &r->threads[index];
	if (!t->last.ns) {
		thread_begin(r, t, h->begin_ns);
	} else {
		/* Between two outermost calls a thread does what the next one's phase is for. */
		struct replay_host inner = { .kind = h->between };

		if (t->depth)
			inner = r->calls[t->open[t->depth - 1]].host;
		else
			t->burst_ns = h->begin_ns;
		hand_over(r, t, h->begin_ns, &d);
		TRY(thread_point(r, t, h->begin_ns, &inner, &d, false, err));
	}
	if (h->is_mark)
		TRY(step_put(r, t, err));
	if (h->is_stream_wait)
		t->stream_wait_ns = h->begin_ns;
	else if (h->correlation)
		TRY(launch_put(r, t, h, err));
	return call_begins(r, t, h, err);
}

/* ---- work -------------------------------------------------------------------------------- */

static enum status stream_of(struct replay *r, uint32_t id, struct stream **out, struct error *err)
{
	for (size_t i = 0; i < r->stream_count; i++)
		if (r->streams[i].id == id) {
			*out = &r->streams[i];
			return ST_OK;
		}
	if (r->stream_count == STREAMS_MOST) {
		*out = &r->streams[STREAMS_MOST - 1];
		return ST_OK;
	}
	TRY(vec_reserve(&r->streams, &r->stream_cap, r->stream_count + 1, err));
	*out = &r->streams[r->stream_count++];
	**out = (struct stream){ .id = id };
	for (size_t i = 0; i < DONE; i++)
		TRY(instant_new(r, &(*out)->done[i].end, err));
	return ST_OK;
}

static void shorten(uint64_t *shortest, uint64_t ns)
{
	*shortest = ns < *shortest ? ns : *shortest;
}

/* What the work waited for; edges that its begin contradicts are left out. */
static void work_waits(struct replay *r, const struct replay_work *w, const struct launched *l,
		       const struct stream *s, struct dependency *d)
{
	const struct done *before = s->count ? &s->done[(s->count - 1) % DONE] : NULL;

	if (l && l->begin.ns <= w->begin_ns) {
		shorten(&r->shortest_launch_ns, w->begin_ns - l->begin.ns);
		depend(r, d, &l->begin, r->shortest_launch_ns);
	}
	if (before && before->end.ns <= w->begin_ns) {
		shorten(&r->shortest_gap_ns, w->begin_ns - before->end.ns);
		depend(r, d, &before->end, r->shortest_gap_ns);
	}
	if (l && l->has_work && l->work_end.ns <= w->begin_ns)
		depend(r, d, &l->work_end, 0); /* a node of the same graph launch */
	for (size_t i = 0; l && l->stream_wait_ns && i < r->stream_count; i++) {
		const struct done *other =
			&r->streams[i] == s
				? NULL
				: done_by(&r->streams[i], l->stream_wait_ns, w->begin_ns);
		if (other)
			depend_work(r, d, other);
	}
	if (!d->any && r->step_thread) {
		/* Nothing is known of it: as late as the step thread is. */
		const struct instant *last = &r->threads[r->step_thread - 1].last;

		d->any = true;
		d->ns = w->begin_ns;
		for (unsigned k = 0; k < r->states; k++)
			d->at[k] = last->at[k] + w->begin_ns - last->ns;
	}
}

enum status replay_put_work(struct replay *r, const struct replay_work *w, struct error *err)
{
	struct dependency d = { .any = false };
	struct launched *l = NULL;
	struct stream *s;

	TRY(calls_end_by(r, w->begin_ns, err));
	TRY(stream_of(r, w->stream, &s, err));
	const double *f = factors_of(r, w->kind, err);
	const uint64_t *place = w->launch_ns ? map_find(&r->by_correlation, w->correlation) : NULL;
	if (!f)
		return ST_MEMORY;
	if (place && r->launched[*place].begin.ns == w->launch_ns)
		l = &r->launched[*place];
	work_waits(r, w, l, s, &d);
	struct done *done = &s->done[s->count++ % DONE];
	uint64_t rest = d.any ? w->begin_ns - d.ns : 0, ns = w->end_ns - w->begin_ns;
	for (unsigned k = 0; k < r->states; k++) {
		done->end.at[k] = (d.any ? d.at[k] : w->begin_ns) + (r->drops_rest[k] ? 0 : rest) +
				  scaled(ns, f[k]);
		if (done->end.at[k] > r->last_end[k])
			r->last_end[k] = done->end.at[k];
		if (f[k] != 1)
			r->changed[k] += difference(ns, f[k]);
	}
	done->end.ns = w->end_ns;
	done->launch_ns = w->launch_ns;
	done->communicates = w->work_class == CLASS_COMM;
	r->is_inexact |= done->end.at[0] != w->end_ns;
	if (l && (!l->has_work || w->end_ns > l->work_end.ns)) {
		l->has_work = true;
		l->work_end.ns = w->end_ns;
		memcpy(l->work_end.at, done->end.at, r->states * sizeof(*done->end.at));
	}
	if (w->launch_ns)
		steps_wait(r, done);
	return ST_OK;
}

enum status replay_end(struct replay *r, struct error *err)
{
	return calls_end_by(r, UINT64_MAX, err);
}

bool replay_is_exact(const struct replay *r)
{
	return !r->is_inexact;
}
