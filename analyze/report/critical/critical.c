/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report `critical`: the critical path (DEFINITIONS.md 8) of the median and the slowest step:
 * the work that would make the step shorter if it were shorter.
 *
 * Which steps these are is known only at the end, so the path of each step is summed when the step
 * ends, and earlier work and waits are dropped. A step beyond the memory ceiling is reported as too
 * long.
 */
#include "analyze/report/critical/internal.h"

#include "schemas/model/records.h"
#include "schemas/base/vec.h"
#include "schemas/base/sort.h"

#include <stdio.h>
#include <stdlib.h>

#define CRITICAL_COLUMNS(X)                                                                        \
	X(CRITICAL_WHICH = RANK_KEYS, "which", "which", TEXT, KEY,                                 \
	  "median or slowest step; refused: a step with too many events")                          \
	X(CRITICAL_STEP, "step", "step", U64, KEY, "number of the step")                           \
	X(CRITICAL_KIND, "kind", "kind", TEXT, KEY,                                                \
	  "host: the step thread; launch: from a call to its work; dispatch: behind other work; "  \
	  "stream_wait: behind another stream; compute, comm, copy: GPU work; unknown: no launch") \
	X(CRITICAL_NAME, "name", "name", TEXT, KEY, "name of the phase, call or GPU work")         \
	X(CRITICAL_NS, "ns", "on the path", U64, SUM, "time; rows of a step add up to its wall")   \
	X(CRITICAL_COUNT, "count", "times", U64, SUM, "number of path segments")                   \
	X(CRITICAL_PCT, "pct", "%", F64, DERIVED, "share of the step's wall time", .of = "step")
static RANK_TABLE(critical, &table_ranks, CRITICAL_COLUMNS, .by = "ns");

/* Limits for each kind of record; together at most about 200 MB. Parts of many steps are dropped
 * earlier. */
enum { RECORDS_MAX = 1 << 20, PARTS_MAX = 1 << 17 };

struct path_part { /* part of a step's path: segments of one kind and name */
	uint64_t ns;
	uint32_t process, row, id, count;
	uint32_t kind; /* enum path_kind; PATH_KINDS: the step is too large */
	bool with_gap; /* the path extends to the next mark, not to the end of its own mark */
};
struct critical_process {
	size_t row;                   /* the next row to walk */
	uint64_t phases_end_ns;       /* all phase intervals up to here were seen */
	bool is_refused;              /* that row is too large */
	bool any;                     /* an earlier row is within the filter */
	struct steps_dropped dropped; /* rows without parts */
};
struct critical {
	struct critical_graph graph;
	struct path_part *parts;
	/* drop_at: number of parts at which some are dropped */
	size_t part_count, part_cap, drop_at;
	struct path_segments walked; /* of one walk */
	struct critical_process *processes;
	uint64_t *keep_ns; /* by process id: what ended before is not needed */
	uint32_t *last;    /* by track; scratch space of critical_sort() */
	size_t tracks;
	uint32_t process_count;
	uint64_t arrival, from_ns, to_ns; /* from_ns, to_ns: bounds of the filter */
};

static enum status critical_begin(struct accumulator *f, struct error *err)
{
	struct critical *s = f->state;

	s->tracks = (size_t)trace_count(f->trace, TRACE_TRACKS) + 1;
	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	s->to_ns = UINT64_MAX;
	s->drop_at = PARTS_MAX;
	TRY(vec_new(&s->last, s->tracks, err));
	TRY(vec_new(&s->graph.launches, s->tracks, err));
	TRY(vec_new(&s->processes, (size_t)s->process_count + 1, err));
	return vec_new(&s->keep_ns, (size_t)s->process_count + 1, err);
}

static enum status sort_all(struct critical *s, struct error *err)
{
	free(s->graph.by_end);
	TRY(vec_new(&s->graph.by_end, s->graph.work_count + 1, err));
	critical_sort(&s->graph, s->last, s->tracks);
	return ST_OK;
}

/* Allocates space for one more item. */
static enum status reserve(struct critical *s, void *items, size_t *count, size_t *cap, size_t size,
			   struct error *err)
{
	if (*count == RECORDS_MAX) {
		/* The unfinished steps are too large: keep only what the next ones depend on. */
		TRY(sort_all(s, err));
		for (uint32_t i = 0; i <= s->process_count; i++) {
			s->processes[i].is_refused = true;
			s->keep_ns[i] = UINT64_MAX;
		}
		critical_forget(&s->graph, s->keep_ns, s->last, s->tracks);
		if (*count == RECORDS_MAX)
			return fail(err, ST_CEILING, NOWHERE,
				    "too many streams for critical paths");
	}
	return vec_grow(items, cap, *count + 1, size, err);
}
#define RESERVE(s, items, count, cap, err)                                                         \
	reserve(s, &(s)->graph.items, &(s)->graph.count, &(s)->graph.cap,                          \
		sizeof(*(s)->graph.items), err)

/* Returns the begin of the whole call, even if a filter has cut it. */
static uint64_t asked_of(struct accumulator *f, const struct event *e)
{
	const struct launch *l = NULL;

	if ((e->flags & EVENT_BEGAN_EARLIER) && e->correlation)
		l = batch_launch(f->batch, e);
	return l && l->track == e->track && l->name == e->name ? l->begin_ns : e->begin_ns;
}

static enum status put_event(struct accumulator *f, const struct event *e, struct error *err)
{
	static const uint8_t kinds[] = {
		[CLASS_COMPUTE] = PATH_COMPUTE, [CLASS_COMM] = PATH_COMM, [CLASS_COPY] = PATH_COPY
	};
	struct critical *s = f->state;

	if (event_is_gpu_work(e)) {
		const struct launch *l = batch_launch(f->batch, e);
		const struct track *t = trace_get_track(f->trace, e->track);
		TRY(RESERVE(s, work, work_count, work_cap, err));
		struct work_node *to = &s->graph.work[s->graph.work_count];
		*to = (struct work_node){
			.begin_ns = e->begin_ns,
			.end_ns = e->end_ns,
			.correlation = e->correlation,
			.stream = t->id,
			.arrival = s->arrival++,
			.track = e->track,
			.gpu = sweep_gpu_of(f->sweep, e->track),
			.process = t->process,
			.name = e->name,
			.class = kinds[sweep_class(f->sweep, e)],
			.has_launch = l != NULL,
		};
		s->graph.work_count++;
		if (!l)
			return ST_OK;
		to->launch_begin_ns = l->begin_ns;
		to->launch_track = l->track;
		to->launch_name = l->name;
		if (l->track < s->tracks)
			s->graph.launches[l->track] = 1;
		return ST_OK;
	}
	if (e->kind == KIND_API) {
		enum call_class class = causes_class_of(f->causes, e);
		bool is_copy = class == CALL_COPY || class == CALL_BLOCKING_COPY;
		if (class != CALL_SYNC && !is_copy)
			return ST_OK;
		TRY(RESERVE(s, waits, wait_count, wait_cap, err));
		if (trace_launches(f->trace, e->track) && e->track < s->tracks)
			s->graph.launches[e->track] = 1;
		s->graph.waits[s->graph.wait_count++] = (struct wait_node){
			.begin_ns = e->begin_ns,
			.end_ns = e->end_ns,
			.correlation = e->correlation,
			.track = e->track,
			.process = trace_get_track(f->trace, e->track)->process,
			.asked_ns = is_copy ? asked_of(f, e) : e->begin_ns,
			.is_copy = is_copy,
		};
		return ST_OK;
	}
	if (e->kind != KIND_SYNC || e->subkind != SYNC_STREAM_WAIT)
		return ST_OK;
	TRY(RESERVE(s, stream_waits, stream_count, stream_cap, err));
	s->graph.stream_waits[s->graph.stream_count++] =
		(struct stream_wait){ e->begin_ns, e->track };
	return ST_OK;
}

/* ---- the path of a step ------------------------------------------------------------------ */

static enum status part_add(struct critical *s, const struct path_part *one, struct error *err)
{
	TRY(vec_reserve(&s->parts, &s->part_cap, s->part_count + 1, err));
	s->parts[s->part_count++] = *one;
	return ST_OK;
}

static enum status walk(struct critical *s, const struct path_part *step, uint64_t begin_ns,
			uint64_t end_ns, struct error *err)
{
	static const struct sort_key by_kind[] = { UP(struct path_segment, kind),
						   UP(struct path_segment, id),
						   { .type = SORT_NONE } };
	struct path_segments *walked = &s->walked;
	struct path_part part = *step;

	part.kind = PATH_KINDS;
	if (s->processes[step->process].is_refused || s->part_count >= RECORDS_MAX)
		return part_add(s, &part, err);
	walked->count = 0;
	TRY(critical_path_find(&s->graph, step->process, later(begin_ns, s->from_ns),
			       earlier(end_ns, s->to_ns), walked, err));
	/* Sum up the segments of a walk by kind and name. */
	sort_rows(walked->items, walked->count, sizeof(*walked->items), by_kind);
	for (size_t i = 0; i < walked->count; i++) {
		const struct path_segment *one = &walked->items[i];
		bool is_last = i + 1 == walked->count || sort_compare(one, one + 1, by_kind);

		part.ns += one->ns;
		part.count++;
		if (!is_last)
			continue;
		part.kind = one->kind;
		part.id = one->id;
		TRY(part_add(s, &part, err));
		part.ns = part.count = 0;
	}
	return ST_OK;
}

/* Walks the path of a step with and without the gap after its mark; the end decides whether the gap
 * belongs to it. */
static enum status walk_step(struct accumulator *f, uint32_t process, struct error *err)
{
	struct critical *s = f->state;
	const struct step_list *l = &f->steps[process];
	struct critical_process *p = &s->processes[process];
	const struct step_row *row = &l->rows[p->row];
	struct path_part step = { .process = process, .row = (uint32_t)p->row, .with_gap = true };
	bool is_last = p->row + 1 == l->count;

	if (s->part_count >= s->drop_at) {
		/* Keep only parts of steps that may be the median or the slowest one. */
		size_t kept = 0;

		for (uint32_t i = 1; i <= s->process_count; i++)
			TRY(steps_drop(&f->steps[i], &s->processes[i].dropped, err));
		for (size_t i = 0; i < s->part_count; i++)
			if (!steps_is_dropped(&s->processes[s->parts[i].process].dropped,
					      s->parts[i].row))
				s->parts[kept++] = s->parts[i];
		s->part_count = kept;
		s->drop_at = kept > PARTS_MAX / 2 ? 2 * kept : PARTS_MAX;
	}
	p->any |= !row->is_out;
	if (!row->is_out) {
		if (!is_last)
			TRY(walk(s, &step, row->begin_ns, row[1].begin_ns, err));
		step.with_gap = false;
		if (is_last || row[1].begin_ns > row->mark_end_ns)
			TRY(walk(s, &step, row->begin_ns, row->mark_end_ns, err));
	}
	p->row++;
	p->is_refused = false;
	return ST_OK;
}

/* Returns whether everything that may matter to the path of the next row has come. */
static bool is_due(const struct critical *s, const struct step_list *l, uint32_t process,
		   uint64_t given_ns)
{
	const struct critical_process *p = &s->processes[process];

	if (p->row + 1 >= l->count)
		return false;
	uint64_t end_ns = later(l->rows[p->row].mark_end_ns, l->rows[p->row + 1].begin_ns);
	end_ns = earlier(end_ns, s->to_ns);
	return l->rows[p->row].is_out || (given_ns > end_ns && p->phases_end_ns >= end_ns);
}

/* Returns from when on events are needed. If a filter by time leaves no mark, the whole input is
 * one step, which is walked at the end. */
static uint64_t needed_ns(const struct accumulator *f, uint32_t process)
{
	const struct critical *s = f->state;
	const struct critical_process *p = &s->processes[process];
	const struct step_list *l = &f->steps[process];
	bool may_infer = !f->filter || !f->filter->has_steps;

	if (!l->count || (may_infer && !p->any && l->rows[p->row].is_out))
		return 0;
	return l->rows[p->row].begin_ns;
}

static enum status critical_put(struct accumulator *f, const struct sorted_batch *w,
				struct error *err)
{
	struct critical *s = f->state;

	if (w->in->to_ns) {
		s->from_ns = w->in->from_ns;
		s->to_ns = w->in->to_ns;
	}
	for (size_t i = 0; i < w->in->count; i++)
		TRY(put_event(f, &w->in->events[i], err));
	for (size_t i = 0; i < w->in->interval_count; i++) {
		const struct phase_interval *st = &w->in->intervals[i];

		TRY(RESERVE(s, intervals, interval_count, interval_cap, err));
		s->graph.intervals[s->graph.interval_count++] = *st;
		if (st->process <= s->process_count)
			s->processes[st->process].phases_end_ns = st->end_ns;
	}
	if (!w->in->count)
		return ST_OK;
	uint64_t given_ns = w->in->events[w->in->count - 1].begin_ns;
	bool any = false;

	for (uint32_t i = 1; i <= s->process_count; i++)
		any |= is_due(s, &f->steps[i], i, given_ns);
	if (!any)
		return ST_OK;
	TRY(sort_all(s, err));
	for (uint32_t i = 1; i <= s->process_count; i++) {
		while (is_due(s, &f->steps[i], i, given_ns))
			TRY(walk_step(f, i, err));
		s->keep_ns[i] = needed_ns(f, i);
	}
	critical_forget(&s->graph, s->keep_ns, s->last, s->tracks);
	return ST_OK;
}

/* ---- end -------------------------------------------------------------------------------- */

static enum status put_part(struct accumulator *f, const struct path_part *p, const char *which,
			    uint64_t step, struct error *err)
{
	static const char *const words[PATH_KINDS] = {
		[PATH_COMPUTE] = "compute",   [PATH_COMM] = "comm",
		[PATH_COPY] = "copy",         [PATH_LAUNCH] = "launch",
		[PATH_DISPATCH] = "dispatch", [PATH_STREAM_WAIT] = "stream_wait",
		[PATH_UNKNOWN] = "unknown",   [PATH_HOST] = "host",
	};
	union value keys[CRITICAL_NAME + 1], *row;
	char text[128];

	keys[CRITICAL_STEP].u64 = step;
	if (p->kind == PATH_KINDS) {
		snprintf(text, sizeof(text),
			 "this step has more than %d GPU events, waiting calls or phase intervals",
			 RECORDS_MAX);
		keys[CRITICAL_WHICH].text = "refused";
		keys[CRITICAL_KIND].text = "unknown";
		keys[CRITICAL_NAME].text = text;
		return acc_row(f, "critical", p->process, keys, &row, err);
	}
	keys[CRITICAL_WHICH].text = which;
	keys[CRITICAL_KIND].text = words[p->kind];
	keys[CRITICAL_NAME].text = p->kind == PATH_HOST ? context_phase(f->context, p->id).name
							: trace_text(f->trace, p->id, NULL);
	TRY(acc_row(f, "critical", p->process, keys, &row, err));
	row[CRITICAL_NS].u64 += p->ns;
	row[CRITICAL_COUNT].u64 += p->count;
	return ST_OK;
}

static uint64_t wall_of(const struct step_row *row)
{
	return row->end_ns - row->begin_ns;
}

static enum status end_process(struct accumulator *f, uint32_t process, struct error *err)
{
	static const char *const which[] = { "median", "slowest" };
	struct critical *s = f->state;
	const struct step_list *l = &f->steps[process];
	const struct step_row *steps[2];

	/* Walk the remaining steps; a window without marks is one step. */
	if (l->is_inferred) {
		struct path_part step = { .process = process, .row = (uint32_t)l->count - 1 };

		TRY(walk(s, &step, l->rows[step.row].begin_ns, l->rows[step.row].end_ns, err));
	}
	while (!l->is_inferred && s->processes[process].row < l->count)
		TRY(walk_step(f, process, err));
	/* Find the counted step nearest to the median, of two the later, and the slowest, of two
	 * the earlier. */
	uint64_t *walls;
	size_t count = 0;
	double best = 0;
	steps[0] = steps[1] = NULL;
	TRY(vec_new(&walls, l->count, err));
	for (size_t j = 0; j < l->count; j++)
		if (l->rows[j].is_counted && !l->rows[j].is_out)
			walls[count++] = wall_of(&l->rows[j]);
	double middle = median_u64(walls, count);
	free(walls);
	for (size_t j = 0; j < l->count; j++) {
		const struct step_row *row = &l->rows[j];
		double apart = (double)wall_of(row) - middle;

		if (!row->is_counted || row->is_out ||
		    steps_is_dropped(&s->processes[process].dropped, j))
			continue;
		apart = apart < 0 ? -apart : apart;
		if (!steps[0] || apart <= best) {
			steps[0] = row;
			best = apart;
		}
		if (!steps[1] || wall_of(row) > wall_of(steps[1]))
			steps[1] = row;
	}
	for (size_t i = 0; i < 2 && steps[i]; i++)
		for (size_t k = 0; k < s->part_count; k++) {
			const struct path_part *p = &s->parts[k];

			if (p->process == process && &l->rows[p->row] == steps[i] &&
			    p->with_gap == steps[i]->joins)
				TRY(put_part(f, p, which[i], steps[i]->number, err));
		}
	return ST_OK;
}

static enum status critical_end(struct accumulator *f, struct error *err)
{
	struct critical *s = f->state;

	TRY(sort_all(s, err));
	for (uint32_t i = 1; i <= s->process_count; i++)
		if (sweep_process(f->sweep, i).has_gpu && acc_wants(f, i))
			TRY(end_process(f, i, err));
	return ST_OK;
}

static void critical_release(struct accumulator *f)
{
	struct critical *s = f->state;

	for (size_t i = 0; s->processes && i <= s->process_count; i++)
		free(s->processes[i].dropped.rows);
}

static enum status critical_finish(struct tables *all, struct error *err)
{
	finish_shares(all, "critical", CRITICAL_KIND, CRITICAL_NS, CRITICAL_PCT);
	return ST_OK;
}

const struct report_type report_critical = {
	.name = "critical",
	.help = "critical path of the median and the slowest step",
	.tables = TABLES(&table_critical),
	.state_size = sizeof(struct critical),
	.owned = OWNED(
		offsetof(struct critical, graph.work), offsetof(struct critical, graph.by_end),
		offsetof(struct critical, graph.waits),
		offsetof(struct critical, graph.stream_waits),
		offsetof(struct critical, graph.intervals),
		offsetof(struct critical, graph.launches), offsetof(struct critical, parts),
		offsetof(struct critical, walked.items), offsetof(struct critical, processes),
		offsetof(struct critical, keep_ns), offsetof(struct critical, last)),
	.begin = critical_begin,
	.put = critical_put,
	.end = critical_end,
	.release = critical_release,
	.finish = critical_finish,
};
