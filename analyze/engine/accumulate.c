/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/accumulate.h"

#include "schemas/base/vec.h"

#include <stdlib.h>

struct run {
	struct trace *trace;
	const struct pipeline *pipeline;
	const struct acc_request *how;
	struct sweep *sweep;
	struct causes *causes;
	struct step_list *steps; /* by process id */
	uint32_t process_count;
	uint32_t *process_of; /* by track */
	uint32_t track_count;
	struct accumulator *accs;
	size_t acc_count;
	size_t lost_count; /* spans of lost records that were applied, and the end of the last */
	uint64_t lost_end_ns;
	uint64_t from_ns, to_ns;          /* the filter's bounds in the batch before */
	struct phase_interval *intervals; /* of one batch, clipped to the filter's bounds */
	struct step_mark *marks;
	const struct event **events[BATCH_LISTS]; /* pointers to the events of one batch, by list */
	size_t interval_cap, mark_cap, event_caps[BATCH_LISTS];
};

const struct table_type **acc_tables(const struct report_type *const *reports_wanted)
{
	const struct table_type **all = NULL;
	size_t count = 0, cap = 0;

	for (size_t i = 0; reports_wanted[i]; i++)
		for (size_t k = 0; reports_wanted[i]->tables[k]; k++) {
			if (vec_reserve(&all, &cap, count + 2, NULL) != ST_OK) {
				free(all);
				return NULL;
			}
			all[count++] = reports_wanted[i]->tables[k]; /* the rest is NULL */
		}
	return all;
}

/* Returns whether all tracks with GPU work belong to one GPU. */
static bool is_one_gpu(const struct trace *trace)
{
	const struct track *first = NULL, *track;

	for (uint32_t i = 1; i <= trace_count(trace, TRACE_DESCS); i++) {
		const struct event_desc *desc = trace_get_desc(trace, i);

		if (desc->kind < KIND_KERNEL || desc->kind > KIND_GRAPH)
			continue;
		track = trace_get_track(trace, desc->track);
		first = first ? first : track;
		if (track->process != first->process || track->device != first->device)
			return false;
	}
	return true;
}

static enum status accs_open(struct run *r, struct tables *into, struct error *err)
{
	bool is_single = r->how->is_alone && is_one_gpu(r->trace);
	size_t count = 0, i;

	while (r->how->reports[count])
		count++;
	TRY(vec_new(&r->accs, count + 1, err));
	for (i = 0; i < count; i++) {
		struct accumulator *f = &r->accs[i];

		*f = (struct accumulator){
			.type = r->how->reports[i],
			.trace = r->trace,
			.context = r->pipeline->context,
			.rules = r->how->rules,
			.sweep = r->sweep,
			.steps = r->steps,
			.causes = r->causes,
			.process_of = r->process_of,
			.track_end = r->track_count + 1,
			.path = r->how->path,
			.per_step = r->how->per_step,
			.edits = r->how->edits,
			.peaks = r->how->peaks,
			.edit_count = r->how->edit_count,
			.tables = into,
			.filter = r->how->filter,
			.pictures = r->how->pictures,
			.is_single = is_single,
		};
		for (size_t k = 0; k < i && f->type->shares_state && !f->is_second; k++) {
			f->is_second = r->accs[k].type->put == f->type->put;
			f->state = f->is_second ? r->accs[k].state : NULL;
		}
		if (!f->is_second)
			f->state = calloc(1, f->type->state_size + 1);
		if (!f->state)
			return fail_memory(err);
		r->acc_count++;
		if (f->type->begin)
			TRY(f->type->begin(f, err));
	}
	return ST_OK;
}

/* Frees the state of a report, unless a later report shares it. */
static void acc_release(struct accumulator *f, const struct accumulator *end)
{
	const struct report_type *type = f->type;
	bool is_last = f->state != NULL;

	for (const struct accumulator *later = f + 1; later < end; later++)
		is_last &= later->state != f->state;
	if (is_last && type->release)
		type->release(f);
	for (size_t k = 0; is_last && type->owned && type->owned[k] != SIZE_MAX; k++)
		vec_release((char *)f->state + type->owned[k]);
	if (is_last)
		free(f->state);
	f->state = NULL;
}

static void run_release(struct run *r)
{
	for (size_t i = 0; i < r->acc_count; i++)
		acc_release(&r->accs[i], r->accs + r->acc_count);
	for (size_t i = 0; r->steps && i <= r->process_count; i++)
		steps_release(&r->steps[i]);
	free(r->accs);
	free(r->steps);
	free(r->process_of);
	free(r->intervals);
	free(r->marks);
	for (size_t i = 0; i < BATCH_LISTS; i++)
		free(r->events[i]);
	causes_close(r->causes);
	sweep_close(r->sweep);
}

static enum status run_open(struct run *r, struct tables *into, struct error *err)
{
	r->process_count = trace_count(r->trace, TRACE_PROCESSES);
	r->track_count = trace_count(r->trace, TRACE_TRACKS);
	r->steps = calloc((size_t)r->process_count + 1, sizeof(*r->steps));
	r->process_of = calloc((size_t)r->track_count + 1, sizeof(*r->process_of));
	if (!r->steps || !r->process_of)
		return fail_memory(err);
	for (uint32_t i = 1; i <= r->track_count; i++)
		r->process_of[i] = trace_get_track(r->trace, i)->process;
	TRY(sweep_open(&r->sweep, r->trace, r->how->rules,
		       r->how->filter && r->how->filter->has_steps, r->how->ceiling, err));
	struct cause_request causes = {
		.trace = r->trace,
		.context = r->pipeline->context,
		.sweep = r->sweep,
	};
	for (uint32_t i = 0; r->how->reports[i]; i++)
		causes.owners |= r->how->reports[i]->needs_owners;
	TRY(causes_open(&r->causes, &causes, err));
	return accs_open(r, into, err);
}

/* Notes whether a step mark is the first in a recorded window, and whether it reaches beyond that
 * window. */
static void mark_in_window(const struct run *r, const struct step_list *l, struct step_row *row,
			   uint32_t process)
{
	const struct window *best = NULL;

	for (uint32_t i = 1; i <= trace_count(r->trace, TRACE_WINDOWS); i++) {
		const struct window *w = trace_get_window(r->trace, i);

		if (w->process == process && w->begin_ns <= row->begin_ns &&
		    (!best || w->begin_ns >= best->begin_ns))
			best = w;
	}
	if (!best)
		return;
	row->is_settling = l->count == 1 || row[-1].begin_ns < best->begin_ns;
	if (best->end_ns && row->mark_end_ns > best->end_ns)
		row->is_cut = true;
}

static bool span_touches(const struct lost_span *span, const struct step_row *row)
{
	return span->begin_ns < row->mark_end_ns && span->end_ns > row->begin_ns;
}

/* Marks the steps of which records were lost as cut. Losses may become known after the marks. */
static void losses_take(struct run *r)
{
	const struct lost_span *all;
	size_t count = trace_lost_spans(r->trace, &all);

	if (!count || (count == r->lost_count && all[count - 1].end_ns == r->lost_end_ns))
		return;
	for (size_t i = r->lost_count ? r->lost_count - 1 : 0; i < count; i++)
		for (uint32_t process = 1; process <= r->process_count; process++)
			for (size_t k = 0; k < r->steps[process].count; k++)
				r->steps[process].rows[k].is_cut |=
					span_touches(&all[i], &r->steps[process].rows[k]);
	r->lost_count = count;
	r->lost_end_ns = all[count - 1].end_ns;
}

/* Adds the steps of all marks, and replaces the marks of the batch by those that the filter
 * keeps. */
static enum status marks_take(struct run *r, struct batch *in, struct error *err)
{
	const struct filter *filter = r->how->filter;
	const struct lost_span *lost;
	size_t kept = 0, lost_count = trace_lost_spans(r->trace, &lost);

	TRY(vec_reserve(&r->marks, &r->mark_cap, in->mark_count, err));
	for (size_t i = 0; i < in->mark_count; i++) {
		struct step_mark m = in->marks[i];
		struct step_row *row;

		/* the filter removes events of other ranks, but the context stage below it has read
		 * their marks */
		if (filter &&
		    !filter_wants_rank(filter, trace_get_process(r->trace, m.process)->rank))
			continue;
		TRY(steps_put(&r->steps[m.process], &m, &row, err));
		mark_in_window(r, &r->steps[m.process], row, m.process);
		for (size_t k = 0; k < lost_count && !row->is_cut; k++)
			row->is_cut = span_touches(&lost[k], row);
		bool is_left = m.begin_ns < in->to_ns &&
			       (m.begin_ns >= in->from_ns || m.end_ns > in->from_ns);
		row->is_out = !is_left ||
			      (filter && filter->has_steps &&
			       (m.number < filter->first_step || m.number >= filter->end_step));
		if (is_left && m.begin_ns < in->from_ns) {
			m.begin_ns = in->from_ns;
			m.flags |= EVENT_BEGAN_EARLIER;
		}
		if (is_left && m.end_ns > in->to_ns) {
			m.end_ns = in->to_ns;
			m.flags |= EVENT_NEVER_ENDED;
		}
		row->is_cut |= (m.flags & (EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED)) != 0;
		if (!row->is_out)
			r->marks[kept++] = m;
	}
	in->marks = r->marks;
	in->mark_count = kept;
	return ST_OK;
}

static enum status intervals_clip(struct run *r, struct batch *in, struct error *err)
{
	size_t kept = 0;

	if (!in->from_ns && in->to_ns == UINT64_MAX)
		return ST_OK;
	TRY(vec_reserve(&r->intervals, &r->interval_cap, in->interval_count, err));
	for (size_t i = 0; i < in->interval_count; i++) {
		struct phase_interval one = in->intervals[i];

		one.begin_ns = one.begin_ns < in->from_ns ? in->from_ns : one.begin_ns;
		one.end_ns = one.end_ns > in->to_ns ? in->to_ns : one.end_ns;
		if (one.begin_ns < one.end_ns)
			r->intervals[kept++] = one;
	}
	in->intervals = r->intervals;
	in->interval_count = kept;
	return ST_OK;
}

static void list_put(struct run *r, struct sorted_batch *w, enum batch_list list,
		     const struct event *e)
{
	r->events[list][w->by[list].count++] = e;
}

static void range_sort(struct run *r, struct sorted_batch *w, const struct event *e)
{
	bool annotates = e->subkind == RANGE_PHASE || e->subkind == RANGE_ANNOTATION ||
			 e->subkind == RANGE_NVTX;

	if (annotates)
		list_put(r, w, BATCH_ANNOTATIONS, e);
	if (annotates || e->schema)
		list_put(r, w, BATCH_SHAPED, e);
}

static void work_sort(struct run *r, struct sorted_batch *w, const struct event *e)
{
	bool is_copy = e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET;

	if (e->flags & EVENT_BEGAN_EARLIER)
		return;
	list_put(r, w, is_copy ? BATCH_COPIES : BATCH_KERNELS, e);
	if (!is_copy && sweep_class(r->sweep, e) == CLASS_COMM)
		list_put(r, w, BATCH_COLLECTIVES, e);
}

/* Sorts the events of a batch into one list for each kind, which keeps their order. */
static enum status events_sort(struct run *r, struct sorted_batch *w, struct error *err)
{
	for (size_t i = 0; i < BATCH_LISTS; i++) {
		TRY(vec_reserve(&r->events[i], &r->event_caps[i], w->in->count, err));
		w->by[i] = (struct batch_events){ r->events[i], 0 };
	}
	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		if (event_is_gpu_work(e))
			work_sort(r, w, e);
		else if (e->kind == KIND_API)
			list_put(r, w, BATCH_CALLS, e);
		else if (e->kind == KIND_RANGE)
			range_sort(r, w, e);
		else if (e->kind == KIND_ALLOC || e->kind == KIND_FREE || e->kind == KIND_COUNTER)
			list_put(r, w, BATCH_MEMORY, e);
	}
	return ST_OK;
}

static enum status accs_put(struct run *r, const struct sorted_batch *w, struct error *err)
{
	for (size_t i = 0; i < r->acc_count; i++) {
		r->accs[i].batch = w->in;
		if (r->accs[i].type->put && !r->accs[i].is_second)
			TRY(r->accs[i].type->put(&r->accs[i], w, err));
	}
	return ST_OK;
}

static enum status run_put(void *self, const struct batch *batch, struct error *err)
{
	struct run *r = self;
	struct batch in = *batch;
	struct sorted_batch w = { .in = &in };

	if (!in.to_ns)
		in.to_ns = UINT64_MAX;
	r->from_ns = in.from_ns;
	r->to_ns = in.to_ns;
	losses_take(r);
	TRY(marks_take(r, &in, err));
	TRY(intervals_clip(r, &in, err));
	TRY(sweep_put(r->sweep, &in, &w.segments, &w.segment_count, err));
	TRY(causes_put(r->causes, &in, &w.idle, &w.idle_count, err));
	TRY(events_sort(r, &w, err));
	return accs_put(r, &w, err);
}

static enum status run_end(struct run *r, struct error *err)
{
	struct batch nothing = { 0 };
	struct sorted_batch w = { .in = &nothing };

	losses_take(r);
	TRY(sweep_end(r->sweep, &w.segments, &w.segment_count, err));
	TRY(causes_end(r->causes, &w.idle, &w.idle_count, err));
	TRY(accs_put(r, &w, err));
	for (uint32_t i = 1; i <= r->process_count; i++) {
		struct sweep_process p = sweep_process(r->sweep, i);

		TRY(steps_resolve(&r->steps[i], err));
		steps_clip(&r->steps[i], r->from_ns, r->to_ns);
		/* no marked step is left, or none was asked for by number: infer the steps */
		if (!r->steps[i].count || !r->how->filter || !r->how->filter->has_steps)
			TRY(steps_infer(&r->steps[i], p.begin_ns, p.begin_ns + p.span_ns, err));
		TRY(steps_keep(&r->steps[i], err));
	}
	for (size_t k = 0; k < r->acc_count; k++) {
		if (r->accs[k].type->end)
			TRY(r->accs[k].type->end(&r->accs[k], err));
		/* The tables of the next report may use the memory that this state had. */
		acc_release(&r->accs[k], r->accs + r->acc_count);
	}
	return ST_OK;
}

enum status acc_run(struct tables *into, struct trace *trace, const struct pipeline *p,
		    const struct acc_request *how, bool *source_failed, struct error *err)
{
	struct run r = { .trace = trace, .pipeline = p, .how = how };
	struct consumer consumer = { .put = run_put, .self = &r };
	struct error own = { 0 };
	enum status status, ended;

	*source_failed = false;
	status = run_open(&r, into, err);
	if (status == ST_OK)
		status = pump(p->top, &consumer, 1, how->progress, how->progress_self,
			      source_failed, err);
	if (status == ST_OK || *source_failed) {
		ended = run_end(&r, &own);
		if (ended != ST_OK) {
			*source_failed = false;
			status = fail(err, ended, own.at, "%s", own.text);
		}
	}
	run_release(&r);
	return status;
}
