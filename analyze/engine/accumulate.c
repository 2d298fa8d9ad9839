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
	size_t lost_count; /* stretches that miss records, known already; the end of the last */
	uint64_t lost_end_ns;
	uint64_t from_ns, to_ns;          /* of the batch before */
	struct phase_interval *intervals; /* of one batch, clipped */
	struct step_mark *marks;
	const struct event **events[BATCH_LISTS]; /* room for those of one pull each */
	size_t interval_cap, mark_cap, event_cap;
};

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for a report");
}

const struct table_type **acc_tables(const struct report_type *const *reports_wanted)
{
	size_t count = 0, i, k;
	const struct table_type **all;

	for (i = 0; reports_wanted[i]; i++)
		for (k = 0; reports_wanted[i]->tables[k]; k++)
			count++;
	all = calloc(count + 1, sizeof(*all));
	if (!all)
		return NULL;
	count = 0;
	for (i = 0; reports_wanted[i]; i++)
		for (k = 0; reports_wanted[i]->tables[k]; k++)
			all[count++] = reports_wanted[i]->tables[k];
	return all;
}

/* Whether all GPU work that the tables promise is of one GPU. */
static bool is_one_gpu(const struct trace *trace)
{
	const struct track *first = NULL, *track;
	uint32_t i;

	for (i = 1; i <= trace_count(trace, TRACE_DESCS); i++) {
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
	r->accs = calloc(count + 1, sizeof(*r->accs));
	if (!r->accs)
		return no_memory(err);
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
			.tables = into,
			.filter = r->how->filter,
			.pictures = r->how->pictures,
			.is_single = is_single,
		};
		f->state = calloc(1, f->type->state_size + 1);
		if (!f->state)
			return no_memory(err);
		r->acc_count++;
		if (f->type->begin)
			TRY(f->type->begin(f, err));
	}
	return ST_OK;
}

static void run_release(struct run *r)
{
	size_t i;

	for (i = 0; i < r->acc_count; i++) {
		if (r->accs[i].type->release)
			r->accs[i].type->release(&r->accs[i]);
		free(r->accs[i].state);
	}
	for (i = 0; r->steps && i <= r->process_count; i++)
		steps_release(&r->steps[i]);
	free(r->accs);
	free(r->steps);
	free(r->process_of);
	free(r->intervals);
	free(r->marks);
	for (i = 0; i < BATCH_LISTS; i++)
		free(r->events[i]);
	causes_close(r->causes);
	sweep_close(r->sweep);
}

static enum status run_causes(struct run *r, struct error *err)
{
	struct cause_request how = {
		.trace = r->trace,
		.context = r->pipeline->context,
		.sweep = r->sweep,
		.is_partial =
			r->how->filter && (r->how->filter->kinds_mask || r->how->filter->names),
	};
	size_t i;

	for (i = 0; r->how->reports[i]; i++)
		how.owners |= r->how->reports[i]->needs_owners;
	return causes_open(&r->causes, &how, err);
}

static enum status run_open(struct run *r, struct tables *into, struct error *err)
{
	uint32_t i;

	r->process_count = trace_count(r->trace, TRACE_PROCESSES);
	r->track_count = trace_count(r->trace, TRACE_TRACKS);
	r->steps = calloc((size_t)r->process_count + 1, sizeof(*r->steps));
	r->process_of = calloc((size_t)r->track_count + 1, sizeof(*r->process_of));
	if (!r->steps || !r->process_of)
		return no_memory(err);
	for (i = 1; i <= r->track_count; i++)
		r->process_of[i] = trace_get_track(r->trace, i)->process;
	TRY(sweep_open(&r->sweep, r->trace, r->how->rules,
		       r->how->filter && r->how->filter->has_steps, r->how->ceiling, err));
	TRY(run_causes(r, err));
	return accs_open(r, into, err);
}

/* Whether the mark is the first in a window that we recorded, and whether it leaves that. */
static void mark_in_window(const struct run *r, const struct step_list *l, struct step_row *row,
			   uint32_t process)
{
	const struct window *best = NULL;
	uint32_t i;

	for (i = 1; i <= trace_count(r->trace, TRACE_WINDOWS); i++) {
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

/* Events of other ranks are cut out, but the stage below has seen them. */
static bool is_wanted(const struct run *r, uint32_t process)
{
	return !r->how->filter ||
	       filter_wants_rank(r->how->filter, trace_get_process(r->trace, process)->rank);
}

static bool mark_is_out(const struct run *r, const struct step_mark *m)
{
	const struct filter *filter = r->how->filter;

	return filter && filter->has_steps &&
	       (m->number < filter->first_step || m->number >= filter->end_step);
}

/* False: nothing of it is left. */
static bool mark_clip(struct step_mark *m, uint64_t from_ns, uint64_t to_ns)
{
	if (m->begin_ns >= to_ns || (m->begin_ns < from_ns && m->end_ns <= from_ns))
		return false;
	if (m->begin_ns < from_ns) {
		m->begin_ns = from_ns;
		m->flags |= EVENT_BEGAN_EARLIER;
	}
	if (m->end_ns > to_ns) {
		m->end_ns = to_ns;
		m->flags |= EVENT_NEVER_ENDED;
	}
	return true;
}

static bool span_touches(const struct lost_span *span, const struct step_row *row)
{
	return span->begin_ns < row->mark_end_ns && span->end_ns > row->begin_ns;
}

static bool mark_is_lost(const struct run *r, const struct step_row *row)
{
	const struct lost_span *all;
	size_t i = 0, count = trace_lost_spans(r->trace, &all);

	while (i < count && !span_touches(&all[i], row))
		i++;
	return i < count;
}

/* Records are missing that belong to steps whose marks have come. */
static void losses_take(struct run *r)
{
	const struct lost_span *all;
	size_t count = trace_lost_spans(r->trace, &all), i, k;
	uint32_t process;

	if (!count || (count == r->lost_count && all[count - 1].end_ns == r->lost_end_ns))
		return;
	for (i = r->lost_count ? r->lost_count - 1 : 0; i < count; i++)
		for (process = 1; process <= r->process_count; process++)
			for (k = 0; k < r->steps[process].count; k++)
				r->steps[process].rows[k].is_cut |=
					span_touches(&all[i], &r->steps[process].rows[k]);
	r->lost_count = count;
	r->lost_end_ns = all[count - 1].end_ns;
}

/* The steps of all marks, and the marks that are asked for in place of those of the batch. */
static enum status marks_take(struct run *r, struct batch *in, struct error *err)
{
	size_t kept = 0;

	TRY(vec_reserve(&r->marks, &r->mark_cap, in->mark_count, err));
	for (size_t i = 0; i < in->mark_count; i++) {
		struct step_mark m = in->marks[i];
		struct step_row *row;

		if (!is_wanted(r, m.process))
			continue;
		TRY(steps_put(&r->steps[m.process], &m, &row, err));
		mark_in_window(r, &r->steps[m.process], row, m.process);
		row->is_cut |= mark_is_lost(r, row);
		row->is_out = !mark_clip(&m, in->from_ns, in->to_ns) || mark_is_out(r, &m);
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

static enum status events_reach(struct run *r, size_t count, struct error *err)
{
	size_t i;

	if (count <= r->event_cap)
		return ST_OK;
	for (i = 0; i < BATCH_LISTS; i++) {
		free(r->events[i]);
		r->events[i] = malloc(count * sizeof(struct event *));
		if (!r->events[i])
			return no_memory(err);
	}
	r->event_cap = count;
	return ST_OK;
}

static void range_sort(struct run *r, size_t *counts, const struct event *e)
{
	bool annotates = e->subkind == RANGE_PHASE || e->subkind == RANGE_ANNOTATION ||
			 e->subkind == RANGE_NVTX;

	if (annotates)
		r->events[BATCH_ANNOTATIONS][counts[BATCH_ANNOTATIONS]++] = e;
	if (annotates || e->schema)
		r->events[BATCH_SHAPED][counts[BATCH_SHAPED]++] = e;
}

static void work_sort(struct run *r, size_t *counts, const struct event *e)
{
	if (e->flags & EVENT_BEGAN_EARLIER)
		return;
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET) {
		r->events[BATCH_COPIES][counts[BATCH_COPIES]++] = e;
		return;
	}
	r->events[BATCH_KERNELS][counts[BATCH_KERNELS]++] = e;
	if (sweep_class(r->sweep, e) == CLASS_COMM)
		r->events[BATCH_COLLECTIVES][counts[BATCH_COLLECTIVES]++] = e;
}

/* The lists of a pull, each in its order. */
static enum status events_sort(struct run *r, struct sorted_batch *w, struct error *err)
{
	size_t counts[BATCH_LISTS] = { 0 }, i;

	TRY(events_reach(r, w->in->count, err));
	for (i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		switch (e->kind) {
		case KIND_KERNEL:
		case KIND_MEMCPY:
		case KIND_MEMSET:
		case KIND_GRAPH:
			work_sort(r, counts, e);
			break;
		case KIND_API:
			r->events[BATCH_CALLS][counts[BATCH_CALLS]++] = e;
			break;
		case KIND_RANGE:
			range_sort(r, counts, e);
			break;
		case KIND_ALLOC:
		case KIND_FREE:
		case KIND_COUNTER:
			r->events[BATCH_MEMORY][counts[BATCH_MEMORY]++] = e;
			break;
		default:
			break;
		}
	}
	for (i = 0; i < BATCH_LISTS; i++)
		w->by[i] = (struct batch_events){ r->events[i], counts[i] };
	return ST_OK;
}

static enum status accs_put(struct run *r, const struct sorted_batch *w, struct error *err)
{
	size_t i;

	for (i = 0; i < r->acc_count; i++) {
		r->accs[i].batch = w->in;
		if (r->accs[i].type->put)
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
	TRY(causes_put(r->causes, &in, &w.pieces, &w.piece_count, err));
	TRY(events_sort(r, &w, err));
	return accs_put(r, &w, err);
}

static enum status run_end(struct run *r, struct error *err)
{
	struct batch nothing = { 0 };
	struct sorted_batch w = { .in = &nothing };
	uint32_t i;
	size_t k;

	losses_take(r);
	TRY(sweep_end(r->sweep, &w.segments, &w.segment_count, err));
	TRY(causes_end(r->causes, &w.pieces, &w.piece_count, err));
	TRY(accs_put(r, &w, err));
	for (i = 1; i <= r->process_count; i++) {
		struct sweep_process p = sweep_process(r->sweep, i);

		TRY(steps_resolve(&r->steps[i], err));
		steps_clip(&r->steps[i], r->from_ns, r->to_ns);
		if (r->steps[i].count && r->how->filter && r->how->filter->has_steps)
			continue; /* no step of those asked for */
		TRY(steps_infer(&r->steps[i], p.begin_ns, p.begin_ns + p.span_ns, err));
	}
	for (k = 0; k < r->acc_count; k++)
		if (r->accs[k].type->end)
			TRY(r->accs[k].type->end(&r->accs[k], err));
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
