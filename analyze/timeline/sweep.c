/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/timeline/internal.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"
#include "schemas/model/records.h"

#include <stdlib.h>

enum status spans_grow(struct sweep *s, struct span_queue *v, size_t size, struct error *err)
{
	size_t cap = v->cap ? v->cap * 2 : 64;
	void *wider;

	if ((cap - v->cap) * size > s->ceiling - s->held_bytes)
		return fail(err, ST_CEILING, NOWHERE,
			    "running GPU work and its gaps exceed the memory");
	wider = realloc(v->items, cap * size);
	if (!wider)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for running GPU work");
	s->held_bytes += (cap - v->cap) * size;
	v->items = wider;
	v->cap = cap;
	return ST_OK;
}

void spans_release(struct span_queue *v)
{
	free(v->items);
	*v = (struct span_queue){ 0 };
}

void spans_compact(struct span_queue *v, size_t size)
{
	if (v->head < v->count && (v->head < 1024 || v->head < v->count / 2))
		return;
	if (v->head < v->count)
		memmove(v->items, (char *)v->items + v->head * size, (v->count - v->head) * size);
	v->count -= v->head;
	v->head = 0;
}

static enum status bounds_take(struct sweep *s, struct error *err)
{
	uint32_t i, count = trace_count(s->trace, TRACE_WINDOWS);

	for (i = 1; i <= count; i++) {
		const struct window *w = trace_get_window(s->trace, i);

		if (!w->process || w->process > s->host_count)
			continue;
		struct bound bound = { w->begin_ns, w->end_ns, w->process, i };
		TRY(spans_add(s, &s->bounds, &bound, sizeof(bound), err));
		s->hosts[w->process].bounds_count++;
	}
	struct bound *b = s->bounds.items;
	SORT_BY(b, s->bounds.count, UP(struct bound, process), UP(struct bound, begin_ns));
	/* a window ends at the latest when the next one opens, so that windows do not overlap */
	for (i = 1; i < s->bounds.count; i++)
		if (b[i - 1].process == b[i].process && b[i - 1].end_ns > b[i].begin_ns)
			b[i - 1].end_ns = b[i].begin_ns;
	for (i = (uint32_t)s->bounds.count; i; i--)
		s->hosts[b[i - 1].process].bounds_first = i - 1;
	return ST_OK;
}

enum status sweep_open(struct sweep **out, struct trace *trace, const struct name_rules *rules,
		       bool is_by_step, size_t ceiling, struct error *err)
{
	struct sweep *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to sweep a trace");
	*s = (struct sweep){ .trace = trace,
			     .rules = rules,
			     .is_by_step = is_by_step,
			     .ceiling = ceiling,
			     .to_ns = UINT64_MAX };
	s->host_count = trace_count(trace, TRACE_PROCESSES);
	s->track_count = trace_count(trace, TRACE_TRACKS);
	s->name_count = trace_count(trace, TRACE_NAMES);
	s->hosts = calloc(s->host_count + 1, sizeof(*s->hosts));
	s->gpu_of_track = calloc(s->track_count + 1, sizeof(*s->gpu_of_track));
	s->process_of_track = calloc(s->track_count + 1, sizeof(*s->process_of_track));
	s->streams = calloc(s->track_count + 1, sizeof(*s->streams));
	s->class_of_name = calloc(s->name_count + 1, 1);
	s->is_profiler = calloc(s->name_count + 1, 1);
	if (!s->hosts || !s->gpu_of_track || !s->process_of_track || !s->streams ||
	    !s->class_of_name || !s->is_profiler) {
		sweep_close(s);
		return fail(err, ST_MEMORY, NOWHERE, "no memory to sweep a trace");
	}
	for (uint32_t i = 1; i <= s->track_count; i++) {
		s->process_of_track[i] = trace_get_track(trace, i)->process;
		s->streams[i].id = trace_get_track(trace, i)->id;
	}
	enum status status = bounds_take(s, err);
	if (status != ST_OK) {
		sweep_close(s);
		return status;
	}
	*out = s;
	return ST_OK;
}

void sweep_close(struct sweep *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->gpu_count; i++)
		gpu_free(s->gpus[i]);
	for (size_t i = 0; s->hosts && i <= s->host_count; i++) {
		spans_release(&s->hosts[i].intervals);
		spans_release(&s->hosts[i].pending);
	}
	for (size_t i = 0; s->streams && i <= s->track_count; i++)
		spans_release(&s->streams[i].waits);
	free(s->streams);
	free(s->gpus);
	free(s->hosts);
	free(s->gpu_of_track);
	free(s->process_of_track);
	free(s->class_of_name);
	free(s->is_profiler);
	spans_release(&s->bounds);
	spans_release(&s->work);
	spans_release(&s->free_work);
	spans_release(&s->segments);
	spans_release(&s->gaps);
	spans_release(&s->over);
	free(s);
}

bool sweep_communicates(struct sweep *s, uint32_t name)
{
	if (name <= s->name_count && s->class_of_name[name])
		return s->class_of_name[name] - 1;
	bool yes = name_rules_communicates(s->rules, trace_text(s->trace, name, NULL));
	if (name <= s->name_count)
		s->class_of_name[name] = (uint8_t)(1 + yes);
	return yes;
}

enum gpu_class sweep_class(struct sweep *s, const struct event *work)
{
	uint32_t name = work->name;

	/* A kernel whose arguments name a collective communicates, whatever it is called. */
	if (work->kind == KIND_KERNEL && name <= s->name_count && !s->class_of_name[name] &&
	    trace_find_attr(s->trace, work->schema, "collective"))
		s->class_of_name[name] = 2;
	return event_class(work, work->kind == KIND_KERNEL && sweep_communicates(s, work->name));
}

static enum status gpu_add(struct sweep *s, uint32_t process, uint32_t device, size_t *out,
			   struct error *err)
{
	struct gpu *g;

	if (s->gpu_count >= 4096)
		return fail(err, ST_CEILING, NOWHERE, "more than 4096 GPUs in one input");
	TRY(vec_reserve(&s->gpus, &s->gpu_cap, s->gpu_count + 1, err));
	TRY(vec_new(&g, 1, err));
	g->process = process;
	g->device = device;
	g->index = (uint32_t)s->gpu_count;
	g->alone = NO_ID;
	g->ends.self = s;
	*out = s->gpu_count++;
	s->gpus[*out] = g;
	return ST_OK;
}

/* Finds or adds the GPU of a track without a cached GPU. */
static enum status gpu_find(struct sweep *s, uint32_t track, uint32_t *out, struct error *err)
{
	size_t i;

	const struct track *t = trace_get_track(s->trace, track);
	for (i = 0; i < s->gpu_count; i++)
		if (s->gpus[i]->process == t->process && s->gpus[i]->device == t->device)
			break;
	if (i == s->gpu_count)
		TRY(gpu_add(s, t->process, t->device, &i, err));
	if (track <= s->track_count)
		s->gpu_of_track[track] = (uint32_t)i + 1;
	*out = (uint32_t)i;
	return ST_OK;
}

uint32_t sweep_gpu_of(const struct sweep *s, uint32_t track)
{
	if (track > s->track_count || !s->gpu_of_track[track])
		return NO_ID;
	return s->gpu_of_track[track] - 1;
}

/* Returns whether an event bounds the host's side of a window (DEFINITIONS.md 1). */
static bool is_host(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return e->subkind != RANGE_OTHER && e->subkind != RANGE_GPU_ANNOTATION &&
		       e->subkind != RANGE_PROFILER;
	return e->kind == KIND_API || e->kind == KIND_STEP || e->kind == KIND_JIT;
}

static bool is_profiler(struct sweep *s, uint32_t name)
{
	uint8_t *known = &s->is_profiler[name <= s->name_count ? name : 0];

	if (!*known || !name)
		*known = (uint8_t)(1 + name_is_profiler(trace_text(s->trace, name, NULL)));
	return *known == 2;
}

/* Returns whether the host works for the profiler itself. Such an event does not bound a window,
 * unless the input contains the bounds of its windows. */
static bool is_for_profiler(struct sweep *s, struct host *h, const struct event *e)
{
	if (h->bounds_count)
		return false;
	if (e->begin_ns != h->instant_ns) {
		h->instant_ns = e->begin_ns;
		h->before_ns = h->host_end_ns;
	}
	if (e->kind != KIND_RANGE || e->subkind != RANGE_PYTHON || e->end_ns <= h->profiler_ns ||
	    e->end_ns == e->begin_ns || !is_profiler(s, e->name))
		return e->begin_ns < h->profiler_ns;
	h->profiler_ns = e->end_ns;
	h->host_end_ns = h->before_ns; /* frames around this one may have come before it */
	if (h->has_host && h->host_begin_ns == e->begin_ns && !h->has_mark) {
		h->has_host = false;
		h->is_open = h->has_gpu;
	}
	return true;
}

static void host_open(struct sweep *s, struct host *h, uint64_t begin_ns)
{
	const struct bound *bounds = s->bounds.items;
	const struct bound *b = h->bounds_count ? &bounds[h->bounds_first + h->bound] : NULL;

	if (h->is_open)
		return;
	h->is_open = true;
	h->early_ns = h->begin_ns = begin_ns;
	if (!b || s->is_by_step)
		return;
	if (b->begin_ns < begin_ns)
		h->begin_ns = b->begin_ns < s->from_ns ? s->from_ns : b->begin_ns;
	h->has_host = true; /* the begin of a recorded window counts as a host event */
	h->host_ns = h->host_begin_ns = h->begin_ns;
}

/* Closes the current window of a process. */
static enum status window_close(struct sweep *s, uint32_t process, uint64_t until_ns,
				struct error *err)
{
	struct host *h = &s->hosts[process];
	const struct bound *bounds = s->bounds.items;
	uint64_t end_ns;

	if (!h->is_open)
		return ST_OK;
	if (!h->has_gpu && !h->has_mark) {
		h->mark_end_ns = h->host_end_ns; /* nothing else ends the window */
		host_release(h);
	}
	for (size_t i = 0; i < s->gpu_count; i++)
		if (s->gpus[i]->process == process && s->gpus[i]->is_open)
			TRY(gpu_advance(s, s->gpus[i], UINT64_MAX, err));
	TRY(host_account(s, process, until_ns, err));
	TRY(host_close(s, process, &end_ns, err));
	struct sweep_window over = { process, 0, h->begin_ns, end_ns };
	if (h->bounds_count)
		over.window = bounds[h->bounds_first + h->bound].window;
	TRY(spans_add(s, &s->over, &over, sizeof(over), err));
	if (!h->any_window || h->begin_ns < h->first_ns)
		h->first_ns = h->begin_ns;
	h->last_ns = later(h->last_ns, end_ns);
	h->span_ns += end_ns - h->begin_ns;
	h->any_window = true;
	h->any_gpu |= h->has_gpu;
	h->any_mark |= h->has_mark;
	h->is_open = h->has_host = h->has_gpu = h->has_mark = false;
	h->host_end_ns = h->gpu_end_ns = h->mark_end_ns = h->host_ns = 0;
	h->wall = h->held = h->early = h->early_held = (struct phase_sums){ 0 };
	return ST_OK;
}

/* Advances to the window that contains an instant. */
static enum status window_reach(struct sweep *s, uint32_t process, uint64_t at_ns,
				struct error *err)
{
	struct host *h = &s->hosts[process];
	const struct bound *bounds = s->bounds.items;

	while (h->bound + 1 < h->bounds_count &&
	       at_ns >= bounds[h->bounds_first + h->bound + 1].begin_ns) {
		TRY(window_close(s, process, bounds[h->bounds_first + h->bound + 1].begin_ns, err));
		h->bound++;
	}
	return ST_OK;
}

static void host_begin(struct host *h, uint64_t begin_ns)
{
	if (h->has_host)
		return;
	h->has_host = true;
	h->host_ns = h->host_begin_ns = begin_ns;
}

static void gpu_open(struct host *h, struct gpu *g, uint64_t begin_ns)
{
	g->is_open = true;
	g->at_ns = h->has_host ? h->host_begin_ns : begin_ns;
	g->host_ns = begin_ns;
	g->end_ns = 0;
	if (!h->has_host)
		return;
	/* until now this GPU was idle, so the host's sums apply to it */
	g->host_ns = h->host_ns;
	g->during = h->wall;
	sums_add(&g->during, &h->held);
}

static enum status work_release(struct sweep *s, struct host *h, const struct event *e,
				struct error *err)
{
	uint32_t gpu = sweep_gpu_of(s, e->track);

	if (gpu == NO_ID)
		TRY(gpu_find(s, e->track, &gpu, err));
	struct gpu *g = s->gpus[gpu];
	if (!g->is_open)
		gpu_open(h, g, e->begin_ns);
	h->has_gpu = true;
	h->gpu_end_ns = later(h->gpu_end_ns, e->end_ns);
	host_release(h);
	sums_release(&g->during, &g->held);
	return gpu_put(s, g, e, err);
}

/* Returns whether the last window has begun, so that host events only move its end. */
static inline bool host_is_settled(const struct host *h)
{
	return h->is_open && h->has_host && h->bound + 1 >= h->bounds_count;
}

static enum status event_put(struct sweep *s, const struct event *e, struct error *err)
{
	uint32_t process = s->process_of_track[e->track <= s->track_count ? e->track : 0];
	struct host *h = &s->hosts[process <= s->host_count ? process : 0];
	bool is_work = event_is_gpu_work(e);

	h->events++;
	if (e->kind == KIND_SYNC && e->subkind == SYNC_STREAM_WAIT) {
		/* Notes that a call makes a stream wait for an event. */
		struct span_queue *waits =
			&s->streams[e->track <= s->track_count ? e->track : 0].waits;

		if (waits->count == WAITS_MAX) {
			waits->head = WAITS_MAX / 2;
			spans_compact(waits, sizeof(e->begin_ns));
		}
		return spans_add(s, waits, &e->begin_ns, sizeof(e->begin_ns), err);
	}
	if (!is_work && (!is_host(e) || is_for_profiler(s, h, e)))
		return ST_OK;
	if (is_work || !host_is_settled(h)) {
		if (h->bounds_count)
			TRY(window_reach(s, process, e->begin_ns, err));
		host_open(s, h, e->begin_ns);
		if (is_work)
			return work_release(s, h, e, err);
		host_begin(h, e->begin_ns);
	}
	h->host_end_ns = later(h->host_end_ns, e->end_ns);
	return ST_OK;
}

static enum status intervals_put(struct sweep *s, const struct phase_interval *st, size_t count,
				 struct error *err)
{
	for (size_t i = 0; i < count; i++)
		TRY(spans_add(s, &s->hosts[st[i].process].intervals, &st[i], sizeof(st[i]), err));
	return ST_OK;
}

/* Puts the marks up to `until_ns`. *next_ns becomes the begin of the next one. */
static enum status marks_put(struct sweep *s, const struct batch *in, size_t *at, uint64_t until_ns,
			     uint64_t *next_ns, struct error *err)
{
	for (; *at < in->mark_count && in->marks[*at].begin_ns <= until_ns; (*at)++) {
		TRY(window_reach(s, in->marks[*at].process, in->marks[*at].begin_ns, err));
		const struct step_mark *m = &in->marks[*at];
		struct host *h = &s->hosts[m->process];

		host_open(s, h, m->begin_ns);
		host_begin(h, m->begin_ns);
		h->has_mark = true;
		h->mark_end_ns = later(h->mark_end_ns, m->end_ns);
		host_release(h);
		for (size_t i = 0; i < s->gpu_count; i++)
			if (s->gpus[i]->process == m->process)
				sums_release(&s->gpus[i]->during, &s->gpus[i]->held);
	}
	*next_ns = *at < in->mark_count ? in->marks[*at].begin_ns : UINT64_MAX;
	return ST_OK;
}

/* Returns up to where phases may be accounted for. Without GPU events and marks a window may end
 * with the host's last event, so later intervals wait. */
static uint64_t host_until(const struct sweep *s, const struct host *h, uint64_t until_ns)
{
	uint64_t certain_ns = host_certain_ns(s, h, 0);

	if (!h->is_open || h->has_gpu || h->has_mark)
		return until_ns;
	certain_ns = certain_ns > h->host_end_ns ? certain_ns : h->host_end_ns;
	return until_ns < certain_ns ? until_ns : certain_ns;
}

enum status sweep_put(struct sweep *s, const struct batch *in, const struct segment **segments,
		      size_t *count, struct error *err)
{
	uint64_t mark_ns = in->mark_count ? in->marks[0].begin_ns : UINT64_MAX;
	const struct event *e = in->events;
	size_t i, mark = 0;

	s->from_ns = in->from_ns;
	s->to_ns = in->to_ns ? in->to_ns : UINT64_MAX;
	s->batch = in;
	s->segments.count = s->gaps.count = 0;
	TRY(intervals_put(s, in->intervals, in->interval_count, err));
	for (i = 0; i < in->count; i++, e++) {
		if (mark_ns <= e->begin_ns)
			TRY(marks_put(s, in, &mark, e->begin_ns, &mark_ns, err));
		TRY(event_put(s, e, err));
	}
	TRY(marks_put(s, in, &mark, UINT64_MAX, &mark_ns, err));
	for (i = 1; in->count && i <= s->host_count; i++) {
		uint64_t until_ns = in->events[in->count - 1].begin_ns;

		TRY(host_account(s, (uint32_t)i, host_until(s, &s->hosts[i], until_ns), err));
	}
	*segments = s->segments.items;
	*count = s->segments.count;
	return ST_OK;
}

enum status sweep_end(struct sweep *s, const struct segment **segments, size_t *count,
		      struct error *err)
{
	s->segments.count = s->gaps.count = 0;
	for (uint32_t i = 1; i <= s->host_count; i++) {
		TRY(window_close(s, i, UINT64_MAX, err));
		pending_settle(&s->hosts[i]);
	}
	*segments = s->segments.items;
	*count = s->segments.count;
	return ST_OK;
}

size_t sweep_gaps(const struct sweep *s, const struct idle_gap **out)
{
	*out = s->gaps.items;
	return s->gaps.count;
}

uint64_t sweep_unsettled_ns(const struct sweep *s, uint32_t process, size_t expected)
{
	const struct host *h = &s->hosts[process <= s->host_count ? process : 0];
	uint64_t least_ns = UINT64_MAX;
	size_t i, open = 0;

	for (i = 0; i < s->gpu_count; i++) {
		if (s->gpus[i]->process != process || !s->gpus[i]->is_open)
			continue;
		open++;
		least_ns = earlier(least_ns, s->gpus[i]->at_ns);
	}
	if (!open || open < expected)
		least_ns = h->is_open ? h->begin_ns : 0;
	return least_ns;
}

size_t sweep_gpu_count(const struct sweep *s)
{
	return s->gpu_count;
}

struct sweep_gpu sweep_gpu(const struct sweep *s, size_t gpu)
{
	const struct gpu *g = s->gpus[gpu];

	return (struct sweep_gpu){ g->process, g->device, &g->time, &g->total };
}

struct sweep_process sweep_process(const struct sweep *s, uint32_t process)
{
	const struct host *h = &s->hosts[process <= s->host_count ? process : 0];

	return (struct sweep_process){
		.begin_ns = h->first_ns,
		.end_ns = h->last_ns,
		.span_ns = h->span_ns,
		.events = h->events,
		.has_gpu = h->any_gpu,
		.has_mark = h->any_mark,
		.wall = &h->total,
	};
}

size_t sweep_windows(const struct sweep *s, const struct sweep_window **out)
{
	*out = s->over.items;
	return s->over.count;
}
