/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/timeline/internal.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

static struct running_work *work_at(const struct sweep *s, uint32_t work)
{
	return (struct running_work *)s->work.items + work;
}

static uint32_t *ids(const struct span_queue *v)
{
	return v->items;
}

static enum status work_new(struct sweep *s, uint32_t *out, struct error *err)
{
	if (s->free_work.count) {
		*out = ids(&s->free_work)[--s->free_work.count];
		return ST_OK;
	}
	*out = (uint32_t)s->work.count;
	return spans_add(s, &s->work, &(struct running_work){ 0 }, sizeof(struct running_work),
			 err);
}

static enum status work_release(struct sweep *s, uint32_t work, struct error *err)
{
	return spans_add(s, &s->free_work, &work, sizeof(work), err);
}

/* Implements the owner rule of DEFINITIONS.md 2: the earlier begin, then the lower stream, then the
 * lower correlation. */
static bool owns_before(const struct running_work *a, const struct running_work *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	if (a->stream != b->stream)
		return a->stream < b->stream;
	if (a->correlation != b->correlation)
		return a->correlation < b->correlation;
	return a->order < b->order;
}

static int compare_work(const void *pa, const void *pb, void *self)
{
	const struct running_work *a = work_at(self, *(const uint32_t *)pa);
	const struct running_work *b = work_at(self, *(const uint32_t *)pb);

	return owns_before(a, b) ? -1 : owns_before(b, a) ? 1 : 0;
}

static bool ends_before(const void *sweep, uint32_t a, uint32_t b)
{
	return work_at(sweep, a)->end_ns < work_at(sweep, b)->end_ns;
}

static inline void time_add(struct gpu_time *t, const struct segment *seg, uint64_t ns)
{
	if (seg->part == PART_SPAN)
		t->span_ns[segment_phase(seg)][seg->busy] += ns;
	else if (seg->part == PART_LEAD)
		t->lead_ns += ns;
	else
		t->tail_ns += ns;
}

static inline bool goes_on(const struct segment *last, const struct gpu *g,
			   const struct running_work *of, uint8_t busy, uint8_t part)
{
	return last->order == of->order && last->end_ns == g->at_ns && last->busy == busy &&
	       last->gpu == g->index && last->part == part;
}

/* Emits a segment from g->at_ns to `end_ns` with owner `of`, or extends the last one. */
static inline enum status emit(struct sweep *s, struct gpu *g, const struct running_work *of,
			       uint8_t busy, uint8_t part, uint64_t end_ns, struct error *err)
{
	struct segment *last = s->segments.items, *seg;

	if (s->segments.count)
		last += s->segments.count - 1;
	if (s->segments.count && goes_on(last, g, of, busy, part)) {
		seg = last;
	} else {
		const struct segment added = { .begin_ns = g->at_ns,
					       .order = of->order,
					       .launch_begin_ns = of->launch_begin_ns,
					       .gpu = g->index,
					       .name = of->name,
					       .step = of->step,
					       .phase = of->phase,
					       .kind = of->kind,
					       .subkind = of->subkind,
					       .origin = of->origin,
					       .busy = busy,
					       .part = part };

		TRY(spans_add(s, &s->segments, &added, sizeof(added), err));
		seg = (struct segment *)s->segments.items + s->segments.count - 1;
	}
	seg->end_ns = end_ns;
	time_add(&g->time, seg, end_ns - g->at_ns);
	g->at_ns = end_ns;
	return ST_OK;
}

/* Keeps a busy interval for the host's phase intervals, which may come later. */
static inline enum status note_busy(struct sweep *s, struct gpu *g, uint64_t begin_ns,
				    uint64_t end_ns, struct error *err)
{
	struct span *busy = g->busy.items;

	if (g->busy.count > g->busy.head && busy[g->busy.count - 1].end_ns == begin_ns) {
		busy[g->busy.count - 1].end_ns = end_ns;
		return ST_OK;
	}
	return spans_add(s, &g->busy, &(struct span){ begin_ns, end_ns }, sizeof(*busy), err);
}

/* Removes work that has ended from the list of its class. */
static enum status class_sweep(struct sweep *s, struct span_queue *running, struct error *err)
{
	size_t from, to = 0;

	for (from = running->head; from < running->count; from++) {
		uint32_t work = ids(running)[from];

		if (work_at(s, work)->over)
			TRY(work_release(s, work, err));
		else
			ids(running)[to++] = work;
	}
	running->head = 0;
	running->count = to;
	return ST_OK;
}

/* Ends the work with the earliest end. */
static enum status one_ends(struct sweep *s, struct gpu *g, struct error *err)
{
	uint32_t work = heap_pop(&g->ends, ends_before);
	enum gpu_class class = work_at(s, work)->class;
	struct span_queue *running = &g->running[class];

	work_at(s, work)->over = true;
	g->live[class]--;
	while (running->head < running->count && work_at(s, ids(running)[running->head])->over)
		TRY(work_release(s, ids(running)[running->head++], err));
	if (running->count - running->head > 2 * g->live[class] + 64 || running->head > 4096)
		TRY(class_sweep(s, running, err));
	return ST_OK;
}

static inline enum status emit_busy(struct sweep *s, struct gpu *g,
				    const struct running_work *owner, uint8_t busy, uint64_t end_ns,
				    struct error *err)
{
	if (g->at_ns >= end_ns)
		return ST_OK;
	TRY(note_busy(s, g, g->at_ns, end_ns, err));
	return emit(s, g, owner, busy, PART_SPAN, end_ns, err);
}

static const uint8_t busy_bits[CLASS_IDLE] = { BUSY_COMPUTE, BUSY_COMM, BUSY_COPY };

/* Emits a segment while several run: the first work of the first class is the owner. */
static enum status emit_many(struct sweep *s, struct gpu *g, uint64_t end_ns, struct error *err)
{
	const struct span_queue *running = g->running;
	uint8_t mask = 0;

	for (int class = CLASS_IDLE - 1; class >= 0; class --) {
		if (!g->live[class])
			continue;
		mask |= busy_bits[class];
		running = &g->running[class];
	}
	return emit_busy(s, g, work_at(s, ids(running)[running->head]), mask, end_ns, err);
}

static enum status run_alone(struct sweep *s, struct gpu *g, uint64_t until_ns, struct error *err)
{
	const struct running_work *work = work_at(s, g->alone);
	uint64_t end_ns = work->end_ns < until_ns ? work->end_ns : until_ns;
	uint32_t over = g->alone;

	TRY(emit_busy(s, g, work, busy_bits[work->class], end_ns, err));
	if (work->end_ns > until_ns)
		return ST_OK;
	g->alone = NO_ID;
	return work_release(s, over, err);
}

/* Runs work up to an instant before which no other work begins. */
static enum status run_until(struct sweep *s, struct gpu *g, uint64_t until_ns, struct error *err)
{
	uint64_t end_ns;

	if (g->alone != NO_ID)
		return run_alone(s, g, until_ns, err);
	while (g->ends.count) {
		end_ns = work_at(s, g->ends.items[0])->end_ns;
		if (end_ns > until_ns)
			return emit_many(s, g, until_ns, err);
		TRY(emit_many(s, g, end_ns, err));
		TRY(one_ends(s, g, err));
	}
	return ST_OK;
}

/* Adds work to the lists that are used while several run. */
static enum status start_beside(struct sweep *s, struct gpu *g, uint32_t work, struct error *err)
{
	enum gpu_class class = work_at(s, work)->class;

	TRY(spans_add(s, &g->running[class], &work, sizeof(work), err));
	g->live[class]++;
	TRY(heap_push(&g->ends, work, ends_before, err));
	return ST_OK;
}

static enum status start(struct sweep *s, struct gpu *g, uint32_t work, struct error *err)
{
	uint32_t before = g->alone;

	if (work_at(s, work)->begin_ns == work_at(s, work)->end_ns)
		return work_release(s, work, err); /* it never runs, but may have ended a gap */
	if (before == NO_ID && !g->ends.count) {
		g->alone = work;
		return ST_OK;
	}
	g->alone = NO_ID;
	if (before != NO_ID)
		TRY(start_beside(s, g, before, err));
	return start_beside(s, g, work, err);
}

/* Classifies work without a launch in owner order (DEFINITIONS.md 5). */
static inline void work_origin(struct gpu *g, struct running_work *work)
{
	if (work->origin == ORIGIN_LAUNCH)
		g->launch_seen = true;
	else
		work->origin = g->launch_seen ? ORIGIN_UNKNOWN : ORIGIN_BEFORE;
}

/* Returns whether the stream of `e` was made to wait between the launch of its previous op and that
 * of `e`. */
static bool has_waited(const struct sweep *s, const struct running_work *e)
{
	const struct stream *stream = &s->streams[e->track <= s->track_count ? e->track : 0];
	const uint64_t *waits = stream->waits.items;
	size_t at;

	if (!stream->waits.count || e->origin != ORIGIN_LAUNCH)
		return false;
	SEARCH(at, 0, stream->waits.count, waits[at] <= e->launch_begin_ns);
	return at && waits[at - 1] >= stream->last_launch_ns;
}

static bool is_first_of_name(const struct gpu *g, const struct running_work *e)
{
	size_t at = e->name / 8;

	return e->kind == KIND_KERNEL &&
	       !(at < g->has_begun_size && g->has_begun[at] >> e->name % 8 & 1);
}

static enum status gap_end(struct sweep *s, const struct gpu *g, const struct running_work *e,
			   uint8_t part, struct error *err)
{
	const struct idle_gap gap = {
		.begin_ns = g->at_ns,
		.end_ns = e->begin_ns,
		.launch_begin_ns = e->launch_begin_ns,
		.launch_end_ns = e->launch_end_ns,
		.correlation = e->correlation,
		.last_launch_ns = g->last_launch_ns,
		.gpu = g->index,
		.launch_track = e->launch_track,
		.launch_name = e->launch_name,
		.launch_path = e->launch_path,
		.part = part,
		.origin = e->origin,
		.phase = e->phase,
		.is_graph_internal = e->correlation && e->correlation == g->last_correlation,
		.is_first_of_name = is_first_of_name(g, e),
		.is_in_step = e->step && !(e->step & STEP_GAP),
		.has_waited = has_waited(s, e),
	};

	return spans_add(s, &s->gaps, &gap, sizeof(gap), err);
}

static enum status name_note(struct gpu *g, const struct running_work *work, struct error *err)
{
	size_t at = work->name / 8;

	if (work->kind != KIND_KERNEL)
		return ST_OK;
	TRY(vec_reserve(&g->has_begun, &g->has_begun_size, at + 1, err));
	g->has_begun[at] |= (uint8_t)(1 << work->name % 8);
	return ST_OK;
}

/* Notes what later gaps need about work that begins now. */
static inline void work_note(struct sweep *s, struct gpu *g, const struct running_work *work)
{
	s->streams[work->track <= s->track_count ? work->track : 0].last_launch_ns =
		work->origin == ORIGIN_LAUNCH ? work->launch_begin_ns : work->begin_ns;
	g->last_launch_ns = later(g->last_launch_ns, work->launch_begin_ns);
	if (work->end_ns < g->last_end_ns)
		return;
	g->last_end_ns = work->end_ns;
	g->last_correlation = work->correlation;
}

/* Handles all work that begins at one instant, once it is complete: ends the gap before it and
 * starts to run it. */
static enum status group_start(struct sweep *s, struct gpu *g, struct error *err)
{
	uint8_t part = g->in_span ? PART_SPAN : PART_LEAD;
	struct running_work *work;

	if (g->group.count > 1)
		qsort_r(g->group.items, g->group.count, sizeof(uint32_t), compare_work, s);
	TRY(run_until(s, g, g->group_ns, err));
	g->in_span = true;
	for (size_t i = 0; i < g->group.count; i++) {
		work = work_at(s, ids(&g->group)[i]);
		work_origin(g, work);
		if (g->at_ns < g->group_ns) {
			TRY(gap_end(s, g, work, part, err));
			TRY(emit(s, g, work, 0, part, g->group_ns, err));
		}
		work_note(s, g, work);
		TRY(name_note(g, work, err));
		TRY(start(s, g, ids(&g->group)[i], err));
	}
	g->group.count = 0;
	return ST_OK;
}

static void work_fill(struct sweep *s, struct running_work *work, const struct event *e,
		      const struct launch *launch)
{
	static const struct launch none;

	work->begin_ns = e->begin_ns;
	work->end_ns = e->end_ns;
	work->correlation = e->correlation;
	work->stream = s->streams[e->track <= s->track_count ? e->track : 0].id;
	work->order = ++s->order;
	work->name = e->name;
	work->step = e->step;
	work->track = e->track;
	work->phase = e->phase;
	work->kind = e->kind;
	work->subkind = e->subkind;
	work->class = (uint8_t)sweep_class(s, e);
	work->origin = launch ? ORIGIN_LAUNCH : ORIGIN_UNKNOWN;
	work->over = false;
	if (!launch)
		launch = &none;
	work->launch_begin_ns = launch->begin_ns;
	work->launch_end_ns = launch->end_ns;
	work->launch_track = launch->track;
	work->launch_name = launch->name;
	work->launch_path = launch->path;
}

enum status gpu_put(struct sweep *s, struct gpu *g, const struct event *e, struct error *err)
{
	uint32_t work;

	if (g->group.count && g->group_ns != e->begin_ns)
		TRY(group_start(s, g, err));
	TRY(work_new(s, &work, err));
	work_fill(s, work_at(s, work), e, batch_launch(s->batch, e));
	TRY(spans_add(s, &g->group, &work, sizeof(work), err));
	g->group_ns = e->begin_ns;
	g->end_ns = later(g->end_ns, e->end_ns);
	return ST_OK;
}

enum status gpu_advance(struct sweep *s, struct gpu *g, uint64_t until_ns, struct error *err)
{
	if (g->group.count && g->group_ns < until_ns)
		TRY(group_start(s, g, err));
	return run_until(s, g, until_ns, err);
}

enum status gpu_close(struct sweep *s, struct gpu *g, uint64_t end_ns, struct error *err)
{
	static const struct running_work nobody;
	const struct idle_gap tail = { .begin_ns = g->at_ns,
				       .end_ns = end_ns,
				       .last_launch_ns = g->last_launch_ns,
				       .gpu = g->index,
				       .part = PART_TAIL };

	if (g->at_ns < end_ns) {
		TRY(spans_add(s, &s->gaps, &tail, sizeof(tail), err));
		TRY(emit(s, g, &nobody, 0, PART_TAIL, end_ns, err));
	}
	g->last_end_ns = g->last_correlation = 0;
	g->is_open = g->in_span = false;
	return ST_OK;
}

void gpu_free(struct gpu *g)
{
	if (!g)
		return;
	spans_release(&g->group);
	free(g->ends.items);
	spans_release(&g->busy);
	for (int class = 0; class < CLASS_IDLE; class ++)
		spans_release(&g->running[class]);
	free(g->has_begun);
	free(g);
}
