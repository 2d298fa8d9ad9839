/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what each point waits for, and the residual that this does not explain. */
#include "analyze/replay/internal.h"
#include "convert/name/rules.h"

#include <stdlib.h>

enum status replay_open(struct replay **out, struct error *err)
{
	struct replay *r = *out = calloc(1, sizeof(*r));

	if (!r)
		return fail_memory(err);
	r->slot_count = 1;
	r->shortest_launch_ns = LATENCY_MOST_NS;
	r->shortest_gap_ns = GAP_USUAL_NS;
	r->launched = calloc(CALLS, sizeof(*r->launched));
	return r->launched ? ST_OK : fail_memory(err);
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->thread_count; i++)
		free(r->threads[i].open);
	map_release(&r->by_correlation);
	free(r->launched);
	free(r->threads);
	free(r->streams);
	free(r->calls);
	free(r->free_calls);
	free(r->ends.items);
	free(r->moves);
	free(r->marks);
	free(r->spent_by);
	free(r->spent);
	free(r);
}

size_t replay_size(const struct replay *r)
{
	return r->move_count * sizeof(*r->moves);
}

void replay_forget(struct replay *r)
{
	r->move_count = 0;
}

/* ---- moves ------------------------------------------------------------------------------- */

static enum status move_put(struct replay *r, struct move m, struct error *err)
{
	TRY(vec_reserve(&r->moves, &r->move_cap, r->move_count + 1, err));
	r->moves[r->move_count++] = m;
	return ST_OK;
}

static double since_origin(const struct replay *r, uint64_t ns)
{
	return (double)(int64_t)(ns - r->origin_ns);
}

/* Adds a move for the time up to the thread's latest point. */
static enum status thread_tell(struct replay *r, struct thread *t, struct error *err)
{
	struct move m = { .type = MOVE_OWN,
			  .to = t->last.slot,
			  .kind = t->own_kind,
			  .own = (double)t->own_ns,
			  .at = since_origin(r, t->last.ns) };

	if (!t->own_ns)
		return ST_OK;
	t->own_ns = 0;
	return move_put(r, m, err);
}

/* Adds to the time of a kind, from which runs compute what the edits removed from a step. */
static enum status spent_add(struct replay *r, uint32_t kind, uint8_t activity, uint64_t ns,
			     uint64_t wait_ns, struct error *err)
{
	TRY(vec_reserve(&r->spent_by, &r->spent_by_cap, (size_t)kind + 1, err));
	struct spent *s = &r->spent_by[kind];

	if (!s->ns && ns) {
		TRY(vec_reserve(&r->spent, &r->spent_cap, r->spent_count + 1, err));
		r->spent[r->spent_count++] = kind;
	}
	*s = (struct spent){ s->ns + ns, s->wait_ns + wait_ns, activity };
	return ST_OK;
}

static enum status spent_tell(struct replay *r, struct error *err)
{
	for (; r->spent_count; r->spent_count--) {
		uint32_t kind = r->spent[r->spent_count - 1];
		struct spent *s = &r->spent_by[kind];
		struct move m = { .type = MOVE_CHANGED,
				  .kind = kind,
				  .activity = s->activity,
				  .own = (double)s->ns,
				  .rest = (double)s->wait_ns };

		*s = (struct spent){ .ns = 0 };
		TRY(move_put(r, m, err));
	}
	return ST_OK;
}

/* ---- dependencies ------------------------------------------------------------------------ */

struct dependency {   /* what a point waits for */
	uint64_t ns;  /* the latest of its instants */
	size_t moves; /* index of the first move */
	bool any;
};

/* Adds a dependency: the point happens at least `after_ns` after `on`. */
static enum status depend(struct replay *r, struct dependency *d, const struct instant *on,
			  uint64_t after_ns, bool communicates, struct error *err)
{
	struct move m = { .type = MOVE_DEPEND, .from = on->slot, .own = (double)after_ns };

	m.flags = (d->any ? 0 : MOVE_IS_FIRST) | (communicates ? MOVE_COMMUNICATES : 0);
	if (!d->any)
		d->moves = r->move_count;
	d->ns = d->any && d->ns > on->ns + after_ns ? d->ns : on->ns + after_ns;
	d->any = true;
	return move_put(r, m, err);
}

static enum status depend_work(struct replay *r, struct dependency *d, const struct done *on,
			       struct error *err)
{
	return depend(r, d, &on->end, 0, on->communicates, err);
}

static enum status depend_thread(struct replay *r, struct dependency *d, struct thread *on,
				 uint64_t after_ns, struct error *err)
{
	TRY(thread_tell(r, on, err));
	return depend(r, d, &on->last, after_ns, false, err);
}

/* Returns the latest work of a stream that was launched and had ended by then; NULL: none is
 * kept. */
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

static enum status mark_put(struct replay *r, struct thread *t, struct error *err)
{
	bool is_same = r->mark_count && r->marks[r->mark_count - 1].ns == t->last.ns;

	if (r->mark_count == REPLAY_STEPS_MAX && !is_same)
		return ST_OK;
	TRY(vec_reserve(&r->marks, &r->mark_cap, r->mark_count + 1, err));
	r->mark_count += !is_same;
	uint32_t number = (uint32_t)r->mark_count - 1;
	r->marks[number] = (struct mark){ t->last.ns, r->works };
	TRY(spent_tell(r, err));
	TRY(thread_tell(r, t, err));
	return move_put(r,
			(struct move){ .type = MOVE_MARK,
				       .to = number,
				       .from = t->last.slot,
				       .flags = is_same ? 0 : MOVE_IS_FIRST },
			err);
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
	r->threads[r->thread_count].last.slot = r->slot_count++;
	if (h->is_step_thread)
		r->step_thread = (uint32_t)r->thread_count + 1;
	r->thread_count++;
	return ST_OK;
}

/* Puts the thread's next point, which follows everything in `d`; `waits`: that includes GPU
 * work. */
static enum status thread_point(struct replay *r, struct thread *t, uint64_t now_ns,
				const struct replay_host *inner, const struct dependency *d,
				bool waits, struct error *err)
{
	uint64_t own = now_ns - t->last.ns;

	/* A waiting call has little own time; the residual is the rest. */
	uint64_t least = own < REPLAY_WAIT_OWN_NS ? own : REPLAY_WAIT_OWN_NS;
	uint64_t ready = t->last.ns + least > d->ns ? t->last.ns + least : d->ns;
	uint64_t rest = now_ns > ready ? now_ns - ready : 0;

	TRY(spent_add(r, inner->kind, inner->activity, own, d->any ? own - least - rest : 0, err));
	if (d->any || t->own_kind != inner->kind)
		TRY(thread_tell(r, t, err));
	if (!d->any) {
		t->own_kind = inner->kind;
		t->own_ns += own;
		t->last.ns = now_ns;
		return ST_OK;
	}
	struct move m = { .type = MOVE_JOIN,
			  .to = t->last.slot,
			  .kind = inner->kind,
			  .activity = inner->activity,
			  .flags = waits ? MOVE_WAITS_FOR_GPU : 0,
			  .own = (double)least,
			  .rest = (double)(int64_t)(now_ns - ready),
			  .at = since_origin(r, now_ns) };

	t->last.ns = now_ns;
	return move_put(r, m, err);
}

static struct thread *step_thread(const struct replay *r)
{
	return r->step_thread ? &r->threads[r->step_thread - 1] : NULL;
}

/* Adds the dependencies between threads for a point of `t`. */
static enum status hand_over(struct replay *r, const struct thread *t, uint64_t now_ns,
			     struct dependency *d, struct error *err)
{
	struct thread *step = step_thread(r);

	if (step && step != t && !t->depth && step->last.ns > t->last.ns)
		return depend_thread(r, d, step, 0, err);
	for (size_t i = 0; t == step && i < r->thread_count; i++) {
		struct thread *u = &r->threads[i];

		if (u != t && !u->depth && u->burst_ns > t->last.ns && u->last.ns <= now_ns)
			TRY(depend_thread(r, d, u, 0, err));
	}
	return ST_OK;
}

/* Returns which of two works a call waited for: the one that ended last inside it. If both had
 * ended before, the call waits only if edits make them later; then it is that of the stream used
 * last. */
static bool waited_longer(const struct done *a, const struct done *b, uint64_t begin_ns)
{
	if (a->end.ns > begin_ns || b->end.ns > begin_ns)
		return a->end.ns > b->end.ns;
	return a->launch_ns > b->launch_ns;
}

/* Adds the GPU work that a call waits for, or would wait for if the work took longer. */
static enum status wait_for_gpu(struct replay *r, const struct replay_host *h, struct dependency *d,
				struct error *err)
{
	uint64_t latest_ns = h->end_ns + REPLAY_WAIT_TOLERANCE_NS;
	const struct done *last = NULL;

	if (h->activity == REPLAY_COPY && h->correlation) {
		const uint64_t *place = map_find(&r->by_correlation, h->correlation);
		const struct launched *l = place ? &r->launched[*place] : NULL;

		if (l && l->has_work && l->begin.ns == h->begin_ns && l->work_end.ns <= latest_ns &&
		    l->work_end.ns > h->begin_ns)
			return depend(r, d, &l->work_end, 0, false, err);
		return ST_OK;
	}
	if (h->activity != REPLAY_SYNC)
		return ST_OK;
	for (size_t i = 0; i < r->stream_count; i++) {
		const struct done *one = done_by(&r->streams[i], h->begin_ns, latest_ns);

		if (one && h->is_device_wide)
			TRY(depend_work(r, d, one, err));
		if (one && (!last || waited_longer(one, last, h->begin_ns)))
			last = one;
	}
	return last ? depend_work(r, d, last, err) : ST_OK;
}

static enum status call_ends(struct replay *r, uint32_t number, struct error *err)
{
	struct replay_host h = r->calls[number].host;
	struct dependency d = { .any = false };
	uint32_t index;

	TRY(thread_of(r, &h, &index, err));
	struct thread *t = &r->threads[index];
	TRY(wait_for_gpu(r, &h, &d, err));
	bool waits = d.any && d.ns > h.begin_ns;
	TRY(hand_over(r, t, h.end_ns, &d, err));
	/* The time until here belongs to the innermost open call, which may be another one. */
	const struct replay_host *inner = &r->calls[t->open[t->depth - 1]].host;
	TRY(thread_point(r, t, h.end_ns, inner, &d, waits, err));
	for (size_t i = t->depth; i; i--)
		if (t->open[i - 1] == number) {
			memmove(&t->open[i - 1], &t->open[i], (t->depth - i) * sizeof(*t->open));
			t->depth--;
			break;
		}
	if (h.is_mark)
		TRY(mark_put(r, t, err));
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

/* Keeps the begin of a call for the work that it may launch. */
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
	if (!l->begin.slot) {
		l->begin.slot = r->slot_count++;
		l->work_end.slot = r->slot_count++;
	} else if (l->correlation != h->correlation) {
		const uint64_t *old = map_find(&r->by_correlation, l->correlation);

		if (old && *old == place)
			map_remove(&r->by_correlation, l->correlation);
	}
	r->launched_count++;
	l->correlation = h->correlation;
	l->has_work = false;
	l->begin.ns = h->begin_ns;
	l->stream_wait_ns = t->stream_wait_ns;
	if (h->activity == REPLAY_LAUNCH || h->activity == REPLAY_COPY)
		t->stream_wait_ns = 0;
	TRY(thread_tell(r, t, err));
	return move_put(
		r, (struct move){ .type = MOVE_SET, .to = l->begin.slot, .from = t->last.slot },
		err);
}

static void origin_set(struct replay *r, uint64_t ns)
{
	if (!r->has_origin)
		r->origin_ns = ns;
	r->has_origin = true;
}

enum status replay_put_host(struct replay *r, const struct replay_host *h, struct error *err)
{
	struct dependency d = { .any = false };
	uint32_t index;

	origin_set(r, h->begin_ns);
	TRY(calls_end_by(r, h->begin_ns, err));
	TRY(thread_of(r, h, &index, err));
	struct thread *t = &r->threads[index];
	if (!t->last.ns) {
		/* Puts a thread's first point, relative to the step thread's latest point. */
		struct thread *step = step_thread(r);
		struct move m = { .type = MOVE_SET,
				  .to = t->last.slot,
				  .own = since_origin(r, h->begin_ns) };

		if (step && step != t) {
			TRY(thread_tell(r, step, err));
			m.from = step->last.slot;
			m.own = (double)(int64_t)(h->begin_ns - step->last.ns);
		}
		t->last.ns = t->burst_ns = h->begin_ns;
		TRY(move_put(r, m, err));
	} else {
		/* Time between two outermost calls has the kind that the next one specifies. */
		struct replay_host inner = { .kind = h->between };

		if (t->depth)
			inner = r->calls[t->open[t->depth - 1]].host;
		else
			t->burst_ns = h->begin_ns;
		TRY(hand_over(r, t, h->begin_ns, &d, err));
		TRY(thread_point(r, t, h->begin_ns, &inner, &d, false, err));
	}
	if (h->is_mark)
		TRY(mark_put(r, t, err));
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
		(*out)->done[i].end.slot = r->slot_count++;
	return ST_OK;
}

static void shorten(uint64_t *shortest, uint64_t ns)
{
	*shortest = ns < *shortest ? ns : *shortest;
}

/* Adds what work waits for, except dependencies that its measured begin contradicts. */
static enum status work_waits(struct replay *r, const struct replay_work *w,
			      const struct launched *l, const struct stream *s,
			      struct dependency *d, struct error *err)
{
	const struct done *before = s->count ? &s->done[(s->count - 1) % DONE] : NULL;
	const struct instant origin = { .ns = r->origin_ns };
	struct thread *step = step_thread(r);

	if (l && l->begin.ns <= w->begin_ns) {
		shorten(&r->shortest_launch_ns, w->begin_ns - l->begin.ns);
		TRY(depend(r, d, &l->begin, r->shortest_launch_ns, false, err));
	}
	if (before && before->end.ns <= w->begin_ns) {
		uint64_t gap_ns = w->begin_ns - before->end.ns;
		bool was_queued = l && l->begin.ns + r->shortest_launch_ns <= before->end.ns;

		if (was_queued && gap_ns <= GAP_MOST_NS && !r->has_gap) {
			r->has_gap = true;
			r->shortest_gap_ns = gap_ns;
		}
		shorten(&r->shortest_gap_ns, gap_ns);
		TRY(depend(r, d, &before->end, r->shortest_gap_ns, false, err));
	}
	if (l && l->has_work && l->work_end.ns <= w->begin_ns) /* of the same graph launch */
		TRY(depend(r, d, &l->work_end, 0, false, err));
	for (size_t i = 0; l && l->stream_wait_ns && i < r->stream_count; i++) {
		const struct done *other =
			&r->streams[i] == s
				? NULL
				: done_by(&r->streams[i], l->stream_wait_ns, w->begin_ns);
		if (other)
			TRY(depend_work(r, d, other, err));
	}
	if (d->any)
		return ST_OK;
	/* No dependency is known: place it relative to the step thread. */
	if (step)
		return depend_thread(r, d, step, w->begin_ns - step->last.ns, err);
	return depend(r, d, &origin, w->begin_ns - r->origin_ns, false, err);
}

enum status replay_put_work(struct replay *r, const struct replay_work *w, struct error *err)
{
	struct dependency d = { .any = false };
	struct launched *l = NULL;
	struct stream *s;

	origin_set(r, w->begin_ns);
	TRY(calls_end_by(r, w->begin_ns, err));
	TRY(stream_of(r, w->stream, &s, err));
	const uint64_t *place = w->launch_ns ? map_find(&r->by_correlation, w->correlation) : NULL;
	if (place && r->launched[*place].begin.ns == w->launch_ns)
		l = &r->launched[*place];
	TRY(work_waits(r, w, l, s, &d, err));
	struct done *done = &s->done[s->count++ % DONE];
	struct move m = { .type = MOVE_WORK,
			  .to = done->end.slot,
			  .kind = w->kind,
			  .own = (double)(w->end_ns - w->begin_ns),
			  .rest = (double)(w->begin_ns - d.ns),
			  .at = since_origin(r, w->end_ns) };
	done->end.ns = w->end_ns;
	done->launch_ns = w->launch_ns;
	done->communicates = w->work_class == CLASS_COMM;
	if (l && (!l->has_work || w->end_ns > l->work_end.ns)) {
		l->has_work = true;
		l->work_end.ns = w->end_ns;
		m.from = l->work_end.slot;
	}
	TRY(move_put(r, m, err));
	/* A step ends no earlier than work that was launched before its end, and which belongs to
	 * it. */
	size_t least = r->mark_count > MARKS_BACK ? r->mark_count - MARKS_BACK : 0;
	size_t from = r->mark_count;
	uint64_t ns = w->end_ns - w->begin_ns;

	r->works += w->launch_ns != 0;
	for (; w->launch_ns && from > least && r->marks[from - 1].ns >= w->launch_ns; from--)
		r->marks[from - 1].works++;
	if (from == r->mark_count)
		return spent_add(r, w->kind, REPLAY_OTHER, ns, 0, err);
	return move_put(r,
			(struct move){ .type = MOVE_WAITS,
				       .to = (uint32_t)from,
				       .from = done->end.slot,
				       .kind = w->kind,
				       .own = (double)ns },
			err);
}

enum status replay_end(struct replay *r, struct error *err)
{
	TRY(calls_end_by(r, UINT64_MAX, err));
	return spent_tell(r, err);
}
