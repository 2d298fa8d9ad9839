/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/cause/internal.h"

#include "schemas/base/vec.h"
#include "schemas/model/records.h"

#include <stdlib.h>
#include <string.h>

enum {
	KEEP = 1 << 17,           /* spans and ranges of a thread, phase intervals of a process */
	WAIT = 1 << 17,           /* gaps of a process that wait for phases of the step thread */
	WAIT_FOR_WORK = 512,      /* gaps that wait for work of calls, queued after other work */
	MEMORY_KIND_PAGEABLE = 1, /* CUPTI's value for pageable memory */
};

/* ---- tables of the trace ---------------------------------------------------------------- */

static bool desc_is_work(const struct event_desc *desc)
{
	return desc->kind >= KIND_KERNEL && desc->kind <= KIND_GRAPH;
}

/* Counts the GPUs with work of each process, so that host events are kept for the lead of a GPU
 * that begins late. */
static void expect(struct causes *c)
{
	const struct trace *t = c->how.trace;
	uint32_t i, k, count = trace_count(t, TRACE_TRACKS);
	uint8_t *works = calloc((size_t)count + 1, 1);

	if (!works)
		return; /* then the lead of such a GPU may be unknown */
	for (i = 1; i <= trace_count(t, TRACE_DESCS); i++)
		if (desc_is_work(trace_get_desc(t, i)) && trace_get_desc(t, i)->track <= count)
			works[trace_get_desc(t, i)->track] = 1;
	for (i = 1; i <= count; i++) {
		const struct track *one = trace_get_track(t, i);

		for (k = 1; works[i] && k < i; k++)
			if (works[k] && trace_get_track(t, k)->process == one->process &&
			    trace_get_track(t, k)->device == one->device)
				break;
		if (works[i] && k == i && one->process <= c->process_count)
			c->processes[one->process].expected++;
	}
	free(works);
}

enum status causes_open(struct causes **out, const struct cause_request *how, struct error *err)
{
	struct causes *c;

	*out = NULL;
	TRY(vec_new(&c, 1, err));
	c->how = *how;
	c->track_count = trace_count(how->trace, TRACE_TRACKS);
	c->process_count = trace_count(how->trace, TRACE_PROCESSES);
	c->name_count = trace_count(how->trace, TRACE_NAMES);
	c->schema_count = trace_count(how->trace, TRACE_SCHEMAS);
	c->threads = calloc((size_t)c->track_count + 1, sizeof(*c->threads));
	c->process_of_track = calloc((size_t)c->track_count + 1, sizeof(*c->process_of_track));
	c->processes = calloc((size_t)c->process_count + 1, sizeof(*c->processes));
	c->call_class = calloc((size_t)c->name_count + 1, 1);
	c->is_pageable = calloc((size_t)c->name_count + 1, 1);
	c->is_pageable_schema = calloc((size_t)c->schema_count + 1, 1);
	c->is_python = calloc((size_t)c->name_count + 1, 1);
	*out = c;
	if (!c->threads || !c->process_of_track || !c->processes || !c->call_class ||
	    !c->is_pageable || !c->is_pageable_schema || !c->is_python) {
		causes_close(c);
		*out = NULL;
		return fail_memory(err);
	}
	for (uint32_t i = 1; i <= c->track_count; i++) {
		uint32_t process = trace_get_track(how->trace, i)->process;

		c->process_of_track[i] = process <= c->process_count ? process : 0;
	}
	for (uint32_t i = 0; i <= c->process_count; i++) {
		c->processes[i].works_ns = UINT64_MAX;
		c->processes[i].keep.most = how->keep ? (uint32_t)how->keep : KEEP;
	}
	expect(c);
	/* Notes which names are of ranges or Python functions. If a filter has removed a launch,
	 * the name of its innermost range is all that is known about it. */
	const struct trace *t = c->how.trace;

	for (uint32_t i = 1; i <= trace_count(t, TRACE_DESCS); i++) {
		const struct event_desc *desc = trace_get_desc(t, i);

		if (desc->kind == KIND_RANGE && desc->name <= c->name_count)
			c->is_python[desc->name] |=
				(desc->subkind == RANGE_PYTHON ? 1 : 2) |
				4 * name_compiles(trace_text(t, desc->name, NULL));
	}
	return ST_OK;
}

void causes_close(struct causes *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->threads && i <= c->track_count; i++) {
		for (uint32_t k = 0; k < OF_THREAD; k++)
			free(c->threads[i].spans[k].items);
		free(c->threads[i].cover.items);
		free(c->threads[i].named.items);
		free(c->threads[i].python.items);
		free(c->threads[i].frames.items);
	}
	for (uint32_t i = 0; c->processes && i <= c->process_count; i++) {
		for (uint32_t k = 0; k < OF_PROCESS; k++)
			free(c->processes[i].spans[k].items);
		free(c->processes[i].kernel_calls.items);
		free(c->processes[i].intervals);
		free(c->processes[i].gaps);
	}
	free(c->threads);
	free(c->process_of_track);
	free(c->processes);
	free(c->call_class);
	free(c->is_pageable);
	free(c->is_pageable_schema);
	free(c->is_python);
	free(c->idle);
	free(c);
}

/* ---- names ------------------------------------------------------------------------------ */

static const char *text_of(const struct causes *c, uint32_t name)
{
	return trace_text(c->how.trace, name, NULL);
}

enum call_class causes_call_class(struct causes *c, uint32_t name)
{
	if (name > c->name_count)
		return cause_call_class(text_of(c, name));
	if (!c->call_class[name])
		c->call_class[name] = (uint8_t)(1 + cause_call_class(text_of(c, name)));
	return c->call_class[name] - 1;
}

static bool schema_is_pageable(const struct causes *c, uint32_t schema)
{
	static const char *const keys[] = { "src_kind", "dst_kind" };

	for (size_t i = 0; i < 2; i++) {
		const struct attr *a = trace_find_attr(c->how.trace, schema, keys[i]);

		if (a && a->type == ATTR_U64 && a->bits == MEMORY_KIND_PAGEABLE)
			return true;
	}
	return false;
}

static bool is_pageable(struct causes *c, const struct event *copy)
{
	uint32_t name = copy->name <= c->name_count ? copy->name : 0;
	uint32_t schema = copy->schema <= c->schema_count ? copy->schema : 0;

	if (!c->is_pageable[name])
		c->is_pageable[name] = 1 + !!strstr(text_of(c, name), "Pageable");
	if (!c->is_pageable_schema[schema])
		c->is_pageable_schema[schema] = 1 + schema_is_pageable(c, schema);
	return c->is_pageable[name] == 2 || c->is_pageable_schema[schema] == 2;
}

/* ---- what threads do -------------------------------------------------------------------- */

static struct cause_process *process_of(const struct causes *c, uint32_t track)
{
	return &c->processes[c->process_of_track[track <= c->track_count ? track : 0]];
}

static struct span span_of(const struct event *e)
{
	return (struct span){
		.begin_ns = e->begin_ns, .end_ns = e->end_ns, .name = e->name, .track = e->track
	};
}

/* Notes that the thread has something open. Touching intervals are joined. */
static enum status cover(struct cause_process *p, struct cause_thread *t, const struct event *e,
			 struct error *err)
{
	struct span *last = t->cover.count ? &t->cover.items[t->cover.count - 1] : NULL;

	if (e->track == p->step_thread || e->begin_ns == e->end_ns)
		return ST_OK;
	if (last && last->end_ns >= e->begin_ns) {
		if (last->end_ns < e->end_ns)
			last->end_ns = last->reach_ns = e->end_ns;
		return ST_OK;
	}
	struct span one = span_of(e);
	return spans_put(&t->cover, &one, &p->keep, err);
}

/* Notes a call that launches kernels. Of nested calls the outer one is the launch. If a process has
 * several GPUs, it is unknown on which of them a kernel is missing. */
static enum status kernels_put(struct causes *c, struct cause_process *p, const struct event *e,
			       struct error *err)
{
	struct cause_thread *t = cause_thread(c, e->track);
	struct kernel_call one = { .begin_ns = e->begin_ns,
				   .end_ns = e->end_ns,
				   .correlation = e->correlation,
				   .name = e->name,
				   .track = e->track };

	if (c->how.is_partial || p->expected > 1 || !e->correlation ||
	    (e->flags & EVENT_BEGAN_EARLIER) || e->begin_ns < t->calls_until_ns)
		return ST_OK;
	t->calls_until_ns = e->end_ns;
	return kernel_calls_put(&p->kernel_calls, &one, err);
}

static bool is_first_use(const struct causes *c, const struct cause_process *p,
			 const struct event *e, enum call_class class)
{
	uint64_t ns = e->end_ns - e->begin_ns;
	bool is_in_step = e->step && !(e->step & STEP_GAP);

	if (class == CALL_SETUP)
		return is_long_for_use(ns, is_in_step);
	if (class == CALL_ALLOCATOR && p->works_ns < e->begin_ns)
		return ns > FIRST_ALLOCATION_NS;
	/* pinning host memory takes long, but the process's first call initializes the driver */
	return class == CALL_ALLOCATOR && ns > FIRST_USE_IN_STEP_NS &&
	       ((!p->has_called && !is_in_step) || !strstr(text_of(c, e->name), "Host"));
}

static enum status call_put(struct causes *c, struct cause_process *p, const struct event *e,
			    struct error *err)
{
	struct cause_thread *t = cause_thread(c, e->track);
	enum call_class class = causes_class_of(c, e);
	const struct range *frame;
	struct span one;

	TRY(cover(p, t, e, err));
	if (t->python.cap && e->correlation) {
		frame = ranges_find(&t->python, e->begin_ns, e->begin_ns + 1);
		TRY(frames_put(&t->frames,
			       &(struct call_frame){ e->begin_ns, e->correlation,
						     frame ? frame->name : 0 },
			       err));
	}
	if (class == CALL_OTHER)
		return ST_OK;
	one = span_of(e);
	if (is_first_use(c, p, e, class))
		class = CALL_COMPILE;
	p->has_called = true;
	switch (class) {
	case CALL_KERNELS:
		return kernels_put(c, p, e, err);
	case CALL_SYNC:
		return spans_put(&t->spans[OF_SYNC], &one, &p->keep, err);
	case CALL_BLOCKING_COPY:
		return spans_put(&t->spans[OF_BLOCKING_COPY], &one, &p->keep, err);
	case CALL_ALLOCATOR:
		return spans_put(&t->spans[OF_ALLOCATOR], &one, &p->keep, err);
	case CALL_COMPILE:
		return spans_put(&p->spans[OF_COMPILE], &one, &p->keep, err);
	case CALL_SETUP:
	case CALL_OTHER:
	case CALL_COPY:
		return ST_OK;
	}
	return ST_OK;
}

static enum status range_put(struct causes *c, struct cause_process *p, const struct event *e,
			     struct error *err)
{
	struct cause_thread *t = cause_thread(c, e->track);
	struct span one = span_of(e);

	switch (e->subkind) {
	case RANGE_OTHER:
	case RANGE_GPU_ANNOTATION:
	case RANGE_PROFILER:
		return ST_OK;
	case RANGE_GC:
		return spans_put(&p->spans[OF_GC], &one, &p->keep, err);
	case RANGE_ANNOTATION:
	case RANGE_NVTX:
		if (context_is_step_name(c->how.context, e->name))
			return ST_OK;
		break;
	default:
		break;
	}
	if (e->name <= c->name_count && c->is_python[e->name] & 4 && e->end_ns > e->begin_ns)
		TRY(spans_put(&p->spans[OF_COMPILE], &one, &p->keep, err));
	if (e->track != p->step_thread)
		TRY(cover(p, t, e, err));
	if (!c->how.owners)
		return ST_OK;
	struct range range = {
		.begin_ns = e->begin_ns,
		.end_ns = e->end_ns,
		.name = e->name,
		.node = trace_path(c->how.trace, e->path, e->name, e->subkind),
	};
	return ranges_put(e->subkind == RANGE_PYTHON ? &t->python : &t->named, range, &p->keep,
			  err);
}

static enum status overhead_put(struct causes *c, struct cause_process *p, const struct event *e,
				struct error *err)
{
	enum cause cause =
		e->kind == KIND_JIT ? CAUSE_COMPILE : cause_overhead(text_of(c, e->name));
	struct span one = span_of(e);

	if (cause == CAUSE_COUNT)
		return ST_OK;
	return spans_put(&p->spans[cause == CAUSE_COMPILE ? OF_COMPILE : OF_PROFILER], &one,
			 &p->keep, err);
}

/* Notes a wait. Its thread is that of its call; inside a copy the copy is what blocks. */
static enum status sync_put(struct causes *c, struct cause_process *p, const struct event *e,
			    struct error *err)
{
	const struct launch *l = batch_launch(c->batch, e);
	struct span one = span_of(e);

	if (e->subkind == SYNC_STREAM_WAIT || !l)
		return ST_OK;
	enum call_class class = causes_call_class(c, l->name);
	if (class == CALL_COPY || class == CALL_BLOCKING_COPY)
		return ST_OK;
	one.track = l->track;
	one.name = l->name;
	return spans_put(&cause_thread(c, l->track)->spans[OF_SYNC], &one, &p->keep, err);
}

/* Notes that an asynchronous copy of pageable memory blocked its call, which only the copy's record
 * shows. */
static enum status copy_put(struct causes *c, struct cause_process *p, const struct event *e,
			    struct error *err)
{
	const struct launch *l = batch_launch(c->batch, e);
	enum call_class class = l ? causes_call_class(c, l->name) : CALL_OTHER;

	/* API_OF_ASYNC_COPY does not tell which class the call has */
	if ((class != CALL_COPY && class != CALL_BLOCKING_COPY) || !is_pageable(c, e))
		return ST_OK;
	struct span one = { .begin_ns = l->begin_ns,
			    .end_ns = l->end_ns,
			    .name = l->name,
			    .track = l->track,
			    .since_ns = e->begin_ns };
	return spans_put(&cause_thread(c, l->track)->spans[OF_BLOCKING_COPY], &one, &p->keep, err);
}

static enum status event_put(struct causes *c, const struct event *e, struct error *err)
{
	struct cause_process *p;

	if (e->kind > KIND_OVERHEAD)
		return ST_OK;
	p = process_of(c, e->track);
	if (event_is_gpu_work(e)) {
		const struct launch *l = p->kernel_calls.count ? batch_launch(c->batch, e) : NULL;

		p->works_ns = earlier(p->works_ns, e->begin_ns);
		if (l)
			kernel_calls_note_work(&p->kernel_calls, l->begin_ns, l->track,
					       l->correlation);
	}
	switch (e->kind) {
	case KIND_API:
		return call_put(c, p, e, err);
	case KIND_RANGE:
		return range_put(c, p, e, err);
	case KIND_MEMCPY:
		return copy_put(c, p, e, err);
	case KIND_SYNC:
		return sync_put(c, p, e, err);
	case KIND_OVERHEAD:
	case KIND_JIT:
		return overhead_put(c, p, e, err);
	default:
		return ST_OK;
	}
}

/* ---- the step thread -------------------------------------------------------------------- */

static enum status interval_reserve(struct cause_process *p, struct error *err)
{
	size_t gone = 0;

	if (p->interval_count < p->interval_cap)
		return ST_OK;
	while (gone < p->interval_count && p->intervals[gone].end_ns <= p->keep.unsettled_ns)
		gone++;
	if (gone <= p->interval_cap / 2 && p->interval_cap < p->keep.most) {
		TRY(vec_reserve(&p->intervals, &p->interval_cap, p->interval_cap + 1, err));
	} else if (!gone) {
		gone = p->interval_count / 2;
		p->keep.forgotten_ns = later(p->keep.forgotten_ns, p->intervals[gone - 1].end_ns);
	}
	p->interval_count -= gone;
	memmove(p->intervals, p->intervals + gone, p->interval_count * sizeof(*p->intervals));
	return ST_OK;
}

/* ---- gaps ------------------------------------------------------------------------------- */

static bool is_final(struct cause_process *p, const struct idle_gap *gap)
{
	uint64_t need_ns = gap->end_ns;

	if (gap->part != PART_TAIL && gap->origin != ORIGIN_LAUNCH)
		return true;
	if (gap->part != PART_TAIL && p->gap_count - p->gap_head < WAIT_FOR_WORK) {
		const struct kernel_call *lost;

		kernel_calls_find(&p->kernel_calls, gap->last_launch_ns, gap->launch_begin_ns,
				  &lost);
		if (lost)
			return false; /* the work of the call `lost` may still come */
	}
	if (gap->part != PART_TAIL && gap->launch_begin_ns < need_ns)
		need_ns = gap->launch_begin_ns;
	return need_ns <= gap->begin_ns || need_ns <= p->front_ns;
}

/* Resolves the gaps that are final, or all of them. WAIT gaps are queued only if the phases of the
 * step thread stay unknown for very long; then the oldest is resolved with what is known. */
static enum status gaps_resolve(struct causes *c, struct cause_process *p, bool all,
				struct error *err)
{
	for (; p->gap_head < p->gap_count; p->gap_head++) {
		const struct idle_gap *gap = &p->gaps[p->gap_head];

		if (!all && !is_final(p, gap) && p->gap_count - p->gap_head < WAIT)
			break;
		TRY(cause_split(c, p, gap, err));
	}
	return ST_OK;
}

/* Takes new gaps from the sweep. A gap that is final and has none before it is resolved without the
 * queue. */
static enum status gaps_take(struct causes *c, struct error *err)
{
	const struct idle_gap *gaps;
	size_t i, count = sweep_gaps(c->how.sweep, &gaps);

	for (i = 0; i < count; i++) {
		struct cause_process *p =
			&c->processes[sweep_gpu(c->how.sweep, gaps[i].gpu).process];

		if (p->gap_head == p->gap_count && is_final(p, &gaps[i])) {
			TRY(cause_split(c, p, &gaps[i], err));
		} else {
			if (p->gap_head == p->gap_count)
				p->gap_head = p->gap_count = 0;
			if (p->gap_count == p->gap_cap && p->gap_head > p->gap_cap / 2) {
				p->gap_count -= p->gap_head;
				memmove(p->gaps, p->gaps + p->gap_head,
					p->gap_count * sizeof(*p->gaps));
				p->gap_head = 0;
			}
			TRY(vec_reserve(&p->gaps, &p->gap_cap, p->gap_count + 1, err));
			p->gaps[p->gap_count++] = gaps[i];
		}
	}
	return ST_OK;
}

/* Adds new intervals with lost records to every process. */
static enum status lost_take(struct causes *c, struct error *err)
{
	const struct lost_span *all;
	size_t count = trace_lost_spans(c->how.trace, &all), i = c->lost_count;

	if (!count || (i == count && all[count - 1].end_ns == c->lost_end_ns))
		return ST_OK;
	for (i = i == count ? count - 1 : i; i < count; i++) {
		struct span one = { .begin_ns = all[i].begin_ns, .end_ns = all[i].end_ns };

		for (uint32_t process = 0; process <= c->process_count; process++)
			TRY(spans_put(&c->processes[process].spans[OF_LOST], &one,
				      &c->processes[process].keep, err));
	}
	c->lost_count = count;
	c->lost_end_ns = all[count - 1].end_ns;
	return ST_OK;
}

enum status causes_put(struct causes *c, const struct batch *in, const struct idle_segment **idle,
		       size_t *count, struct error *err)
{
	c->batch = in;
	c->idle_count = 0;
	for (uint32_t process = 1; process <= c->process_count; process++)
		c->processes[process].step_thread = context_step_thread(c->how.context, process);
	for (size_t i = 0; i < in->interval_count; i++) {
		const struct phase_interval *st = &in->intervals[i];
		struct cause_process *p =
			&c->processes[st->process <= c->process_count ? st->process : 0];
		struct phase_interval *last =
			p->interval_count ? &p->intervals[p->interval_count - 1] : NULL;

		p->front_ns = st->end_ns;
		if (last && last->end_ns == st->begin_ns && last->phase == st->phase) {
			last->end_ns = st->end_ns;
			continue;
		}
		TRY(interval_reserve(p, err));
		p->intervals[p->interval_count++] = *st;
	}
	for (size_t i = 0; i < in->count; i++)
		TRY(event_put(c, &in->events[i], err));
	TRY(lost_take(c, err));
	TRY(gaps_take(c, err));
	for (uint32_t process = 1; process <= c->process_count; process++) {
		TRY(gaps_resolve(c, &c->processes[process], false, err));
		struct cause_process *p = &c->processes[process];
		uint64_t least_ns = sweep_unsettled_ns(c->how.sweep, process, p->expected);

		for (size_t i = p->gap_head; i < p->gap_count; i++)
			least_ns = earlier(least_ns, p->gaps[i].begin_ns);
		p->keep.unsettled_ns = least_ns;
	}
	*idle = c->idle;
	*count = c->idle_count;
	return ST_OK;
}

enum status causes_end(struct causes *c, const struct idle_segment **idle, size_t *count,
		       struct error *err)
{
	c->idle_count = 0;
	TRY(lost_take(c, err));
	TRY(gaps_take(c, err));
	for (uint32_t process = 0; process <= c->process_count; process++)
		TRY(gaps_resolve(c, &c->processes[process], true, err));
	*idle = c->idle;
	*count = c->idle_count;
	return ST_OK;
}
