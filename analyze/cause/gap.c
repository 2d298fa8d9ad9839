/* SPDX-License-Identifier: Apache-2.0 */
/* Splits one gap into idle segments (DEFINITIONS.md 6). */
#include "analyze/cause/internal.h"

#include "schemas/base/vec.h"

#include <stdlib.h>

enum {
	PIECES_MAX = 1 << 24,       /* limit of idle segments of one call */
	BEGINS_WITHIN_NS = 1000000, /* an idle GPU begins launched work within this time */
};

enum layer {
	LAYER_PROFILER,
	LAYER_COMPILE,
	LAYER_THREAD,
	LAYER_SYNC,
	LAYER_BLOCKING_COPY,
	LAYER_ALLOCATOR,
	LAYER_GC,
	LAYER_PHASE
};

struct walk {
	struct causes *c;
	struct cause_process *p;
	const struct idle_gap *gap;
	uint32_t thread; /* the thread whose calls are looked up now */
	bool after_sync;
	struct idle_segment idle; /* not emitted yet; begin_ns == end_ns: none */
};

/* ---- idle segments --------------------------------------------------------------------- */

static bool is_launched(uint8_t cause)
{
	return cause >= CAUSE_GRAPH_INTERNAL && cause <= CAUSE_DISPATCH;
}

/* Sets the owner to where the launch was called from, which was stored at the launch. */
static void own_launch(const struct walk *w, const struct cause_thread *t,
		       struct idle_segment *idle)
{
	uint32_t owner = trace_owner(w->c->how.trace, w->gap->launch_path);

	idle->python = frames_find(&t->frames, w->gap->launch_begin_ns, w->gap->correlation);
	if (owner <= w->c->name_count && (w->c->is_python[owner] & 3) == 1)
		idle->python = owner;
	idle->range = owner == idle->python ? 0 : owner;
	idle->path = w->gap->launch_path;
}

static void own(const struct walk *w, struct idle_segment *idle)
{
	const struct cause_thread *t = cause_thread(w->c, idle->thread);

	if (!idle->thread || !w->c->how.owners)
		return;
	if (is_launched(idle->cause)) {
		own_launch(w, t, idle);
		return;
	}
	const struct range *named = ranges_find(&t->named, idle->begin_ns, idle->end_ns);
	const struct range *python = ranges_find(&t->python, idle->begin_ns, idle->end_ns);
	idle->range = named ? named->name : 0;
	idle->python = python ? python->name : 0;
	if (named && (!python || python->begin_ns < named->begin_ns))
		idle->path = named->node;
	else if (python)
		idle->path = python->node;
}

static enum status flush(struct walk *w, struct error *err)
{
	struct causes *c = w->c;

	if (w->idle.begin_ns == w->idle.end_ns)
		return ST_OK;
	if (c->idle_count == PIECES_MAX)
		return fail(err, ST_CEILING, NOWHERE, "too many idle gaps at once");
	TRY(vec_reserve(&c->idle, &c->idle_cap, c->idle_count + 1, err));
	own(w, &w->idle);
	c->idle[c->idle_count++] = w->idle;
	w->idle.begin_ns = w->idle.end_ns;
	return ST_OK;
}

struct reason {
	uint8_t cause, phase;
	bool is_forgotten;
	uint32_t thread, call;
};

static enum status add(struct walk *w, struct reason why, uint64_t begin_ns, uint64_t end_ns,
		       struct error *err)
{
	struct idle_segment *p = &w->idle;

	if (begin_ns >= end_ns)
		return ST_OK;
	if (p->begin_ns < p->end_ns && p->end_ns == begin_ns && p->cause == why.cause &&
	    p->phase == why.phase && p->thread == why.thread && p->call == why.call) {
		p->end_ns = end_ns;
		return ST_OK;
	}
	TRY(flush(w, err));
	*p = (struct idle_segment){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.gap_begin_ns = w->gap->begin_ns,
		.gap_end_ns = w->gap->end_ns,
		.gpu = w->gap->gpu,
		.thread = why.thread,
		.call = why.call,
		.cause = why.cause,
		.phase = why.phase,
		.after_sync = w->after_sync,
		.is_forgotten = why.is_forgotten,
		.part = w->gap->part,
	};
	return ST_OK;
}

static bool touches(const struct spans *spans, uint64_t begin_ns, uint64_t end_ns)
{
	size_t i = spans_find(spans, begin_ns);

	return i < spans->count && spans->items[i].begin_ns < end_ns;
}

/* ---- before the launch ------------------------------------------------------------------ */

static enum status descend(struct walk *w, enum layer layer, uint64_t begin_ns, uint64_t end_ns,
			   struct error *err);

/* Returns the index of the first phase interval that ends after an instant. The search starts at
 * the previous result, because gaps ascend.
 */
static size_t interval_find(struct cause_process *p, uint64_t at_ns)
{
	enum { NEAR = 8 };
	size_t low = 0, high = p->interval_count, at;

	if (p->interval_near <= high &&
	    (!p->interval_near || p->intervals[p->interval_near - 1].end_ns <= at_ns)) {
		low = p->interval_near;
		if (high - low > NEAR && p->intervals[low + NEAR].end_ns > at_ns)
			high = low + NEAR;
	}
	SEARCH(at, low, high, p->intervals[at].end_ns <= at_ns);
	p->interval_near = at;
	return at;
}

static enum status phases(struct walk *w, uint64_t begin_ns, uint64_t end_ns, struct error *err)
{
	const struct cause_process *p = w->p;
	struct reason why = { .thread = p->step_thread };
	size_t low = interval_find(w->p, begin_ns);
	uint64_t to_ns;

	for (; begin_ns < end_ns; begin_ns = to_ns) {
		bool is_in = low < p->interval_count && p->intervals[low].begin_ns <= begin_ns;

		to_ns = end_ns;
		if (low < p->interval_count)
			to_ns = earlier(end_ns, is_in ? p->intervals[low].end_ns
						      : p->intervals[low].begin_ns);
		why.phase = is_in ? p->intervals[low++].phase : PHASE_OTHER;
		why.cause = why.phase == PHASE_DATA ? CAUSE_DATA : CAUSE_HOST;
		TRY(add(w, why, begin_ns, to_ns, err));
	}
	return ST_OK;
}

/* Calls of the launching thread count, and those of the step thread while the launching one has
 * nothing open. */
static enum status threads(struct walk *w, uint64_t begin_ns, uint64_t end_ns, struct error *err)
{
	uint32_t launching = w->gap->launch_track, step = w->p->step_thread;
	const struct spans *cover = &cause_thread(w->c, launching)->cover;
	size_t i = spans_find(cover, begin_ns);

	w->thread = step;
	if (!launching || launching == step)
		return descend(w, LAYER_SYNC, begin_ns, end_ns, err);
	for (; i < cover->count && cover->items[i].begin_ns < end_ns; i++) {
		uint64_t from_ns = later(cover->items[i].begin_ns, begin_ns);
		uint64_t to_ns = earlier(cover->items[i].end_ns, end_ns);

		TRY(descend(w, LAYER_SYNC, begin_ns, from_ns, err));
		w->thread = launching;
		TRY(descend(w, LAYER_SYNC, from_ns, to_ns, err));
		w->thread = step;
		begin_ns = later(begin_ns, to_ns);
	}
	return descend(w, LAYER_SYNC, begin_ns, end_ns, err);
}

static const struct spans *layer_spans(const struct walk *w, enum layer layer, uint8_t *cause)
{
	static const struct {
		uint8_t of, cause;
		bool of_thread;
	} rows[] = {
		[LAYER_PROFILER] = { OF_PROFILER, CAUSE_PROFILER, false },
		[LAYER_COMPILE] = { OF_COMPILE, CAUSE_COMPILE, false },
		[LAYER_SYNC] = { OF_SYNC, CAUSE_SYNC, true },
		[LAYER_BLOCKING_COPY] = { OF_BLOCKING_COPY, CAUSE_BLOCKING_COPY, true },
		[LAYER_ALLOCATOR] = { OF_ALLOCATOR, CAUSE_ALLOCATOR, true },
		[LAYER_GC] = { OF_GC, CAUSE_GC, false },
	};

	*cause = rows[layer].cause;
	if (rows[layer].of_thread)
		return &cause_thread(w->c, w->thread)->spans[rows[layer].of];
	return &w->p->spans[rows[layer].of];
}

/* Assigns the time that spans of a layer cover, and leaves the rest to the layers below. */
static enum status layer_cut(struct walk *w, enum layer layer, struct reason why,
			     const struct spans *spans, uint64_t begin_ns, uint64_t end_ns,
			     struct error *err)
{
	for (size_t i = spans_find(spans, begin_ns); i < spans->count; i++) {
		const struct span *one = &spans->items[i];
		uint64_t from_ns = later(one->begin_ns, begin_ns);
		uint64_t to_ns = earlier(one->end_ns, end_ns);

		if (one->begin_ns >= end_ns)
			break;
		if (to_ns <= begin_ns || one->since_ns > w->gap->end_ns)
			continue;
		TRY(descend(w, layer + 1, begin_ns, from_ns, err));
		why.thread = one->track;
		why.call = one->name;
		TRY(add(w, why, from_ns, to_ns, err));
		begin_ns = to_ns;
	}
	return descend(w, layer + 1, begin_ns, end_ns, err);
}

static enum status descend(struct walk *w, enum layer layer, uint64_t begin_ns, uint64_t end_ns,
			   struct error *err)
{
	struct reason why = { 0 };

	if (begin_ns >= end_ns)
		return ST_OK;
	for (; layer < LAYER_PHASE; layer++) {
		if (layer == LAYER_THREAD)
			return threads(w, begin_ns, end_ns, err);
		const struct spans *spans = layer_spans(w, layer, &why.cause);
		if (touches(spans, begin_ns, end_ns))
			return layer_cut(w, layer, why, spans, begin_ns, end_ns, err);
	}
	return phases(w, begin_ns, end_ns, err);
}

/* ---- a gap ------------------------------------------------------------------------------ */

static bool is_open(const struct spans *spans, uint64_t at_ns)
{
	size_t i = spans_find(spans, at_ns);

	for (; i < spans->count && spans->items[i].begin_ns <= at_ns; i++)
		if (spans->items[i].end_ns > at_ns)
			return true;
	return false;
}

static bool began_in_sync(const struct walk *w)
{
	uint32_t thread = w->gap->launch_track;

	if (w->gap->begin_ns < w->p->keep.forgotten_ns)
		return false;
	if (!thread || (thread != w->p->step_thread &&
			!is_open(&cause_thread(w->c, thread)->cover, w->gap->begin_ns)))
		thread = w->p->step_thread;
	return is_open(&cause_thread(w->c, thread)->spans[OF_SYNC], w->gap->begin_ns);
}

/* Splits the time before the launch, by what the host did. */
static enum status before(struct walk *w, uint64_t begin_ns, uint64_t end_ns, struct error *err)
{
	struct reason unknown = { .cause = CAUSE_UNKNOWN, .is_forgotten = true };
	uint64_t known_ns = earlier(later(begin_ns, w->p->keep.forgotten_ns), end_ns);

	if (begin_ns >= end_ns)
		return ST_OK;
	TRY(add(w, unknown, begin_ns, known_ns, err));
	return descend(w, LAYER_PROFILER, known_ns, end_ns, err);
}

static enum status after(struct walk *w, uint64_t begin_ns, uint64_t end_ns, struct error *err)
{
	const struct idle_gap *g = w->gap;
	struct reason why = { .thread = g->launch_track,
			      .call = g->launch_name,
			      .phase = g->phase };
	uint64_t call_end_ns = earlier(later(g->launch_end_ns, begin_ns), end_ns);

	if (g->is_graph_internal || g->has_waited) {
		why.cause = g->is_graph_internal ? CAUSE_GRAPH_INTERNAL : CAUSE_STREAM_WAIT;
		return add(w, why, begin_ns, end_ns, err);
	}
	why.cause = g->is_first_of_name && is_long_for_use(g->launch_end_ns - g->launch_begin_ns,
							   g->is_in_step)
			    ? CAUSE_COMPILE
			    : CAUSE_LAUNCH;
	TRY(add(w, why, begin_ns, call_end_ns, err));
	why.cause = CAUSE_DISPATCH;
	return add(w, why, call_end_ns, end_ns, err);
}

/* Returns when the gap begins to be caused by work that is not in the file: from then on either
 * launched work does not begin for long, or work of an earlier call does not begin at all. Returns
 * the gap's end if there is no such time. *call becomes the name of that launch. */
static uint64_t unrecorded_since(const struct walk *w, uint32_t *call)
{
	const struct idle_gap *g = w->gap;
	bool is_launched = g->part != PART_TAIL,
	     is_explained = g->is_graph_internal || g->has_waited;
	const struct kernel_call *lost;
	const struct kernel_call *early =
		kernel_calls_find(&w->p->kernel_calls, g->last_launch_ns,
				  is_launched ? g->launch_begin_ns : UINT64_MAX, &lost);
	uint64_t since_ns = g->end_ns;

	if (is_launched && !is_explained) {
		since_ns = g->launch_end_ns;
		*call = g->launch_name;
	}
	if (early && early->end_ns < since_ns) {
		since_ns = early->end_ns;
		*call = early->name;
	}
	since_ns = later(since_ns, g->begin_ns);
	if (since_ns < g->end_ns && g->end_ns - since_ns > BEGINS_WITHIN_NS)
		return since_ns;
	if (!is_launched || !lost)
		return g->end_ns;
	*call = lost->name;
	return earlier(later(lost->end_ns, g->begin_ns), g->end_ns);
}

enum status cause_split(struct causes *c, struct cause_process *p, const struct idle_gap *gap,
			struct error *err)
{
	struct walk w = { .c = c, .p = p, .gap = gap, .after_sync = false };
	struct reason why = { .cause = CAUSE_LOST };
	uint64_t launch_ns = gap->end_ns, end_ns;

	w.after_sync = began_in_sync(&w);
	if (gap->part != PART_TAIL && gap->origin != ORIGIN_LAUNCH)
		why.cause = gap->origin == ORIGIN_BEFORE ? CAUSE_BEFORE_WINDOW : CAUSE_UNKNOWN;
	if (touches(&p->spans[OF_LOST], gap->begin_ns, gap->end_ns))
		why.cause = CAUSE_LOST;
	else if (gap->part == PART_TAIL || gap->origin == ORIGIN_LAUNCH)
		why.cause = CAUSE_COUNT;
	if (why.cause != CAUSE_COUNT) {
		TRY(add(&w, why, gap->begin_ns, gap->end_ns, err));
		return flush(&w, err);
	}
	if (gap->part != PART_TAIL)
		launch_ns = later(gap->launch_begin_ns, gap->begin_ns);
	why = (struct reason){ .cause = CAUSE_UNRECORDED };
	end_ns = unrecorded_since(&w, &why.call);
	launch_ns = earlier(launch_ns, end_ns);
	TRY(before(&w, gap->begin_ns, launch_ns, err));
	if (launch_ns < end_ns)
		TRY(after(&w, launch_ns, end_ns, err));
	TRY(add(&w, why, end_ns, gap->end_ns, err));
	return flush(&w, err);
}
