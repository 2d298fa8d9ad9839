/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step would take if something were changed (DEFINITIONS.md 8, replay): the sets of edits of
 * --what-if, or without it those of `usual`, replayed in the same pass.
 */
#include "analyze/engine/report.h"
#include "analyze/replay/edit.h"
#include "analyze/report/replay/ops.h"
#include "analyze/report/replay/tables.h"
#include "schemas/model/call.h"
#include "schemas/model/records.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

#define WHAT_IF_COLUMNS(X)                                                                         \
	X(WHAT_IF_STEPS = RANK_KEYS + 1, "steps", NULL, U64, SUM,                                  \
	  "that were replayed, without the first")                                                 \
	X(WHAT_IF_BASELINE, "baseline_step_ns", NULL, U64, MAX,                                    \
	  "the median step without edits: to the end of the GPU work that it launched")            \
	X(WHAT_IF_STEP, "step_ns", NULL, U64, MAX, "the median step with the edits")               \
	X(WHAT_IF_SAVES, "saves_ns", NULL, U64, DERIVED,                                           \
	  "baseline - step, 0 where the edits make it longer")                                     \
	X(WHAT_IF_PCT, "saves_pct", NULL, F64, DERIVED, "saves / baseline", .of = "step")          \
	X(WHAT_IF_EXACT, "is_exact", NULL, BOOL, MIN,                                              \
	  "the replay without edits gave back every measured time")                                \
	X(WHAT_IF_REST, "unexplained_ns", NULL, U64, MAX,                                          \
	  "of the baseline: time before GPU work and in waits that no dependency explains")
enum { WHAT_IF_EDITS = RANK_KEYS, WHAT_IF_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_what_if = {
	.name = "rank_what_if",
	.member = "what_if",
	.under = &table_ranks,
	.by = "saves_ns",
	.columns = COLUMNS(RANK_COLUMNS,
			   { "edits", NULL, CELL_TEXT, KEY, NULL, "the edits, as written" },
			   WHAT_IF_COLUMNS(COLUMN_ROW)),
};

static const char usual[] = "data=0;launch=graph;cause:sync=0;cause:allocator=0;copy=0;comm=0;"
			    "comm=overlap;kernel:*=0.67";

/* Ranks wait for each other in every step, so the job's step is the slowest rank's. */
#define JOB_COLUMNS(X)                                                                             \
	X(JOB_EDITS, "edits", "what if", TEXT, KEY, "the edits, as written")                       \
	X(JOB_RANKS, "ranks", "ranks", U64, SUM, "that were replayed, each for itself")            \
	X(JOB_BASELINE, "baseline_step_ns", "step", U64, MAX, "the slowest rank's median step")    \
	X(JOB_STEP, "step_ns", "would take", U64, MAX, "the slowest rank's with the edits")        \
	X(JOB_SAVES, "saves_ns", "saves", U64, DERIVED, "baseline - step, at least 0")             \
	X(JOB_PCT, "saves_pct", "%", F64, DERIVED, "saves / baseline", .of = "step")
enum { JOB_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_job_what_if = {
	.name = "what_if",
	.by = "saves_ns",
	.is_finished = true,
	.columns = COLUMNS(JOB_COLUMNS(COLUMN_ROW)),
};

struct replay_process {
	struct replay *replay;
	uint32_t step_thread;
};
struct replay_report {
	struct edit_set *sets; /* of the usual ones */
	const struct edit_set *edits;
	size_t edit_count;
	struct replay_edits asked;
	struct accumulator *accumulator;
	struct replay_process *processes; /* by id */
	uint32_t process_count;
	struct ops *ops; /* to be replayed with those of other ranks; NULL: it is alone */
	uint8_t *calls;  /* by name: 1 + what the call does, 0: not asked yet */
	size_t call_cap;
};

/* ---- edits: a state for each set, and one more without what is not explained -------------- */

static double host_factor(void *self, unsigned state, unsigned phase, unsigned activity,
			  bool is_step_thread)
{
	const struct replay_report *s = self;

	if (state > s->edit_count)
		return 1;
	return edit_host(&s->edits[state - 1], phase,
			 context_phase(s->accumulator->context, phase).name, activity,
			 is_step_thread);
}

static double work_factor(void *self, unsigned state, const struct replay_work *w)
{
	const struct replay_report *s = self;

	if (state > s->edit_count)
		return 1;
	return edit_work(&s->edits[state - 1], (enum gpu_class)w->work_class,
			 trace_text(s->accumulator->trace, w->name, NULL));
}

static bool overlaps(void *self, unsigned state)
{
	const struct replay_report *s = self;

	return state <= s->edit_count && edit_overlaps(&s->edits[state - 1]);
}

static bool drops_waits(void *self, unsigned state, unsigned activity)
{
	const struct replay_report *s = self;

	return state <= s->edit_count && edit_drops_waits(&s->edits[state - 1], activity);
}

static bool drops_rest(void *self, unsigned state)
{
	const struct replay_report *s = self;

	return state > s->edit_count;
}

static enum status replay_report_begin(struct accumulator *f, struct error *err)
{
	struct replay_report *s = f->state;

	s->accumulator = f;
	s->edits = f->edits;
	s->edit_count = f->edit_count;
	if (!s->edit_count) {
		TRY(edit_sets_parse(&s->sets, &s->edit_count, usual, err));
		s->edits = s->sets;
	}
	s->asked = (struct replay_edits){ .states = (unsigned)s->edit_count + 2,
					  .host = host_factor,
					  .work = work_factor,
					  .overlaps = overlaps,
					  .drops_waits = drops_waits,
					  .drops_rest = drops_rest,
					  .self = s };
	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	s->processes = calloc((size_t)s->process_count + 1, sizeof(*s->processes));
	if (!s->processes)
		return fail_memory(err);
	return f->is_single ? ST_OK : ops_begin(&s->ops, f, err);
}

/* ---- events ------------------------------------------------------------------------------ */

enum { CALL_ACTIVITY = 0x0f, CALL_DEVICE_WIDE = 0x10, CALL_STREAM_WAIT = 0x20 };

static enum status call_of(struct accumulator *f, uint32_t name, uint8_t *out, struct error *err)
{
	static const uint8_t activities[] = {
		[CALL_OTHER] = REPLAY_OTHER,        [CALL_KERNELS] = REPLAY_LAUNCH,
		[CALL_SYNC] = REPLAY_SYNC,          [CALL_COPY] = REPLAY_COPY,
		[CALL_BLOCKING_COPY] = REPLAY_COPY, [CALL_ALLOCATOR] = REPLAY_ALLOCATOR,
		[CALL_COMPILE] = REPLAY_COMPILE,
	};
	struct replay_report *s = f->state;

	TRY(vec_reserve(&s->calls, &s->call_cap, (size_t)name + 1, err));
	if (!s->calls[name]) {
		const char *text = trace_text(f->trace, name, NULL);
		unsigned call = activities[causes_call_class(f->causes, name)];

		if (strstr(text, "DeviceSynchronize") || strstr(text, "CtxSynchronize"))
			call |= CALL_DEVICE_WIDE;
		if (strstr(text, "StreamWaitEvent"))
			call |= CALL_STREAM_WAIT;
		s->calls[name] = (uint8_t)(call + 1);
	}
	*out = (uint8_t)(s->calls[name] - 1);
	return ST_OK;
}

static enum status replay_of(struct accumulator *f, uint32_t process, struct replay **out,
			     struct error *err)
{
	struct replay_report *s = f->state;
	struct replay_process *p = &s->processes[process];

	if (!p->replay) {
		TRY(replay_open(&p->replay, &s->asked, err));
		p->step_thread = context_step_thread(f->context, process);
	}
	*out = p->replay;
	return ST_OK;
}

static enum status put_host(struct accumulator *f, const struct event *e, struct error *err)
{
	const struct replay_report *s = f->state;
	uint32_t process = acc_process(f, e->track);
	struct replay *replay;
	uint8_t call = REPLAY_OTHER;

	TRY(replay_of(f, process, &replay, err));
	if (e->kind == KIND_API)
		TRY(call_of(f, e->name, &call, err));
	else if (e->kind == KIND_JIT)
		call = REPLAY_COMPILE;
	else if (e->kind == KIND_RANGE && e->subkind == RANGE_GC)
		call = REPLAY_GC;
	bool is_step_thread = e->track == s->processes[process].step_thread;
	struct replay_host h = {
		.begin_ns = e->begin_ns,
		.end_ns = e->end_ns,
		.correlation = e->kind == KIND_API ? e->correlation : 0,
		.thread = e->track,
		.phase = e->phase,
		.activity = call & CALL_ACTIVITY,
		.is_device_wide = call & CALL_DEVICE_WIDE,
		.is_stream_wait = call & CALL_STREAM_WAIT,
		.is_mark = is_step_thread && context_is_mark(f->context, e),
		.is_step_thread = is_step_thread,
	};
	return replay_put_host(replay, &h, err);
}

static enum status put_work(struct accumulator *f, const struct event *e, struct error *err)
{
	const struct launch *l = batch_launch(f->batch, e);
	struct replay *replay;

	TRY(replay_of(f, acc_process(f, e->track), &replay, err));
	return replay_put_work(replay,
			       &(struct replay_work){
				       .begin_ns = e->begin_ns,
				       .end_ns = e->end_ns,
				       .correlation = e->correlation,
				       .launch_ns = l ? l->begin_ns : 0,
				       .stream = e->track,
				       .name = e->name,
				       .work_class = (uint8_t)sweep_class(f->sweep, e),
			       },
			       err);
}

static bool is_host(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return e->subkind != RANGE_GPU_ANNOTATION && e->subkind != RANGE_PROFILER;
	return e->kind == KIND_API || e->kind == KIND_JIT || e->kind == KIND_STEP;
}

static enum status replay_report_put(struct accumulator *f, const struct sorted_batch *w,
				     struct error *err)
{
	const struct replay_report *s = f->state;

	if (s->ops)
		TRY(ops_put(s->ops, f, w, err));
	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		if (!acc_wants(f, acc_process(f, e->track)))
			continue;
		if (event_is_gpu_work(e))
			TRY(put_work(f, e, err));
		else if (is_host(e))
			TRY(put_host(f, e, err));
	}
	return ST_OK;
}

/* ---- end --------------------------------------------------------------------------------- */

/* Lengths of the counted steps but the first in one state; returns how many. */
static size_t step_lengths(const struct replay_report *s, const struct replay *r,
			   const struct step_list *l, size_t state, uint64_t *out)
{
	bool is_graph = state && state <= s->edit_count && edit_is_graph(&s->edits[state - 1]);
	size_t count = 0;
	bool is_first = true;

	for (size_t i = 0; i < l->count; i++) {
		const struct step_row *row = &l->rows[i];
		const uint64_t *begin = replay_at(r, row->begin_ns);
		const uint64_t *end = replay_at(r, row->end_ns);

		if (!row->is_counted || row->is_out || !begin || !end)
			continue;
		/* Where nothing is launched there is nothing to put into a graph. */
		bool is_kept = is_graph &&
			       replay_launches(r, row->begin_ns) == replay_launches(r, row->end_ns);
		size_t of = is_kept ? 0 : state;

		if (!is_first)
			out[count++] = end[of] > begin[of] ? end[of] - begin[of] : 0;
		is_first = false;
	}
	return count;
}

static enum status put_rows(struct accumulator *f, uint32_t process, uint64_t *lengths,
			    struct error *err)
{
	const struct replay_report *s = f->state;
	const struct replay *r = s->processes[process].replay;
	const struct step_list *l = &f->steps[process];
	size_t count = step_lengths(s, r, l, 0, lengths);
	uint64_t baseline = (uint64_t)median_u64(lengths, count);

	step_lengths(s, r, l, s->edit_count + 1, lengths);
	uint64_t explained = (uint64_t)median_u64(lengths, count);

	for (size_t i = 0; count && i < s->edit_count; i++) {
		union value keys[WHAT_IF_EDITS + 1], *row;

		keys[WHAT_IF_EDITS].text = s->edits[i].text;
		TRY(acc_row(f, "rank_what_if", process, keys, &row, err));
		step_lengths(s, r, l, i + 1, lengths);
		row[WHAT_IF_STEPS].u64 += count;
		cell_raise(&row[WHAT_IF_BASELINE], baseline);
		cell_raise(&row[WHAT_IF_STEP], (uint64_t)median_u64(lengths, count));
		cell_raise(&row[WHAT_IF_REST], baseline > explained ? baseline - explained : 0);
		if (row[WHAT_IF_EXACT].u64 == NO_U64 || !replay_is_exact(r))
			row[WHAT_IF_EXACT].u64 = replay_is_exact(r);
	}
	return ST_OK;
}

static enum status replay_report_end(struct accumulator *f, struct error *err)
{
	const struct replay_report *s = f->state;

	if (s->ops)
		TRY(ops_end(s->ops, f, err));
	for (uint32_t i = 1; i <= s->process_count; i++) {
		struct replay *r = s->processes[i].replay;

		if (!r)
			continue;
		TRY(replay_end(r, err));
		uint64_t *lengths = calloc(f->steps[i].count + 1, sizeof(*lengths));
		if (!lengths)
			return fail_memory(err);
		enum status status = put_rows(f, i, lengths, err);
		free(lengths);
		TRY(status);
	}
	return ST_OK;
}

static void replay_report_release(struct accumulator *f)
{
	struct replay_report *s = f->state;

	for (uint32_t i = 0; s->processes && i <= s->process_count; i++)
		replay_close(s->processes[i].replay);
	ops_free(s->ops);
	free(s->processes);
	free(s->calls);
	free(s->sets);
}

static void finish_saves(union value *row, uint64_t before, uint64_t after, size_t saves,
			 size_t share)
{
	row[saves].u64 = before > after ? before - after : 0;
	row[share].f64 = percent_of(row[saves].u64, before);
}

static enum status replay_report_finish(struct tables *all, struct error *err)
{
	struct table *ranks = tables_find(all, "rank_what_if"), *job = tables_find(all, "what_if");
	union value *row, *sum;

	for (size_t i = 0; (row = table_at(ranks, i)); i++) {
		finish_saves(row, row[WHAT_IF_BASELINE].u64, row[WHAT_IF_STEP].u64, WHAT_IF_SAVES,
			     WHAT_IF_PCT);
		TRY(table_row(job, &row[WHAT_IF_EDITS], &sum, err));
		sum[JOB_RANKS].u64++;
		cell_raise(&sum[JOB_BASELINE], row[WHAT_IF_BASELINE].u64);
		cell_raise(&sum[JOB_STEP], row[WHAT_IF_STEP].u64);
	}
	for (size_t i = 0; (sum = table_at(job, i)); i++)
		finish_saves(sum, sum[JOB_BASELINE].u64, sum[JOB_STEP].u64, JOB_SAVES, JOB_PCT);
	return job_replay(all, err);
}

const struct report_type report_replay = {
	.name = "replay",
	.help = "what a step would take if something were changed (--what-if)",
	.tables = TABLES(&table_what_if, &table_job_what_if, &table_replay, &table_replay_class,
			 &table_replay_rank, &table_replay_rank_step, &table_replay_host,
			 &table_replay_dp, &table_replay_stage, &table_replay_step,
			 &table_replay_ops, &table_replay_steps),
	.state_size = sizeof(struct replay_report),
	.begin = replay_report_begin,
	.put = replay_report_put,
	.end = replay_report_end,
	.release = replay_report_release,
	.finish = replay_report_finish,
};
