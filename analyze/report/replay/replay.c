/* SPDX-License-Identifier: Apache-2.0 */
/* The report `replay`: how long a step would take with changes (DEFINITIONS.md 8, replay): the sets
 * of edits of --what-if, by default those of `usual`, replayed in the same pass. */
#include "analyze/report/replay/ops.h"
#include "analyze/report/replay/points.h"
#include "analyze/report/replay/tables.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

#define WHAT_IF_COLUMNS(X)                                                                         \
	X(WHAT_IF_STEPS = RANK_KEYS + 1, "steps", NULL, U64, SUM,                                  \
	  "number of replayed steps, without the first")                                           \
	X(WHAT_IF_BASELINE, "baseline_step_ns", NULL, U64, MAX,                                    \
	  "median step without edits, to the end of the GPU work that it launched")                \
	X(WHAT_IF_STEP, "step_ns", NULL, U64, MAX, "median step with the edits")                   \
	X(WHAT_IF_SAVES, "saves_ns", NULL, U64, DERIVED,                                           \
	  "baseline - step; 0 if the edits make it longer")                                        \
	X(WHAT_IF_PCT, "saves_pct", NULL, F64, DERIVED, "saves / baseline", .of = "step")          \
	X(WHAT_IF_EXACT, "is_exact", NULL, BOOL, MIN,                                              \
	  "the replay without edits gave back every measured time")                                \
	X(WHAT_IF_REST, "unexplained_ns", NULL, U64, MAX,                                          \
	  "part of the baseline: time before GPU work and in waits that no dependency explains")
enum { WHAT_IF_EDITS = RANK_KEYS, WHAT_IF_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_what_if = {
	.name = "rank_what_if",
	.member = "what_if",
	.under = &table_ranks,
	.by = "saves_ns",
	.columns = COLUMNS(RANK_COLUMNS, { "edits", NULL, CELL_TEXT, KEY, NULL, "edits, as given" },
			   WHAT_IF_COLUMNS(COLUMN_ROW)),
};

static const char usual[] = "data=0;launch=graph;cause:sync=0;cause:allocator=0;copy=0;comm=0;"
			    "comm=overlap;kernel:*=0.67";

/* Ranks wait for each other in every step, so the job's step is that of the slowest rank. */
#define JOB_COLUMNS(X)                                                                             \
	X(JOB_EDITS, "edits", "what if", TEXT, KEY, "edits, as given")                             \
	X(JOB_RANKS, "ranks", "ranks", U64, SUM, "number of ranks, each replayed on its own")      \
	X(JOB_BASELINE, "baseline_step_ns", "step", U64, MAX, "median step of the slowest rank")   \
	X(JOB_STEP, "step_ns", "would take", U64, MAX, "slowest rank's median step with edits")    \
	X(JOB_SAVES, "saves_ns", "saves", U64, DERIVED, "baseline - step, at least 0")             \
	X(JOB_PCT, "saves_pct", "%", F64, DERIVED, "saves / baseline", .of = "step")               \
	X(JOB_NEXT, "next", "then bound by", TEXT, MAX,                                            \
	  "family that would save most beside the edits of --what-if; null: none saves 1 %")       \
	X(JOB_NEXT_SAVES, "next_saves_ns", "saves", U64, MAX, "saving of the family in next")
enum { JOB_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_job_what_if = {
	.name = "what_if",
	.by = "saves_ns",
	.null_texts = "next",
	.is_finished = true,
	.columns = COLUMNS(JOB_COLUMNS(COLUMN_ROW)),
};

struct process_replay {
	struct replay *replay;
	struct replay_run *run;
};
struct replay_report {
	struct edit_set *edits;
	const struct edit_set *sets[EDIT_SETS_MAX];
	size_t edit_count;
	const char *globs[EDIT_PLACES];
	struct replay_edits asked;
	struct points *points;
	struct process_replay *replays; /* by process id */
	uint32_t process_count;
	struct ops *ops; /* for the replay over all ranks; NULL: a single GPU */
};

static enum status replay_report_begin(struct accumulator *f, struct error *err)
{
	struct replay_report *s = f->state;

	if (f->edit_count) {
		TRY(vec_new(&s->edits, f->edit_count, err));
		memcpy(s->edits, f->edits, f->edit_count * sizeof(*s->edits));
		s->edit_count = f->edit_count;
	} else {
		TRY(edit_sets_parse(&s->edits, &s->edit_count, usual, err));
	}
	TRY(points_open(&s->points, f, s->globs, edit_places(s->edits, s->edit_count, s->globs, 0),
			err));
	for (size_t i = 0; i < s->edit_count; i++)
		s->sets[i] = &s->edits[i];
	s->asked = (struct replay_edits){ .sets = s->sets,
					  .count = s->edit_count,
					  .has_rest = true,
					  .kinds = points_kinds(s->points) };
	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	TRY(vec_new(&s->replays, (size_t)s->process_count + 1, err));
	return f->is_single ? ST_OK : ops_begin(&s->ops, f, err);
}

/* ---- events ------------------------------------------------------------------------------ */

/* Lets all runs follow the points of a batch, which are then dropped. */
static enum status replays_go(const struct replay_report *s, struct error *err)
{
	for (uint32_t i = 1; i <= s->process_count; i++)
		if (s->replays[i].run) {
			TRY(replay_run_go(s->replays[i].run, err));
			replay_forget(s->replays[i].replay);
		}
	return ST_OK;
}

static enum status replay_report_put(struct accumulator *f, const struct sorted_batch *w,
				     struct error *err)
{
	struct replay_report *s = f->state;
	struct point point;

	if (s->ops)
		TRY(ops_put(s->ops, f, w, err));
	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];
		struct process_replay *of = &s->replays[acc_process(f, e->track)];

		if (!acc_wants(f, acc_process(f, e->track)))
			continue;
		TRY(points_take(s->points, f, e, &point, err));
		if (point.type == POINT_NONE)
			continue;
		if (!of->replay)
			TRY(replay_open(&of->replay, err));
		if (!of->run)
			TRY(replay_run_open(&of->run, of->replay, &s->asked, err));
		if (point.type == POINT_WORK)
			TRY(replay_put_work(of->replay, &point.work, err));
		else
			TRY(replay_put_host(of->replay, &point.host, err));
	}
	return replays_go(s, err);
}

/* ---- end --------------------------------------------------------------------------------- */

static uint64_t median_step(const struct replay_run *r, const struct replay_step *steps,
			    size_t count, size_t state, uint64_t *lengths)
{
	return (uint64_t)median_u64(lengths, replay_lengths(r, steps, count, state, lengths, NULL));
}

static enum status put_rows(struct accumulator *f, uint32_t process, struct replay_step *steps,
			    uint64_t *lengths, struct error *err)
{
	const struct replay_report *s = f->state;
	const struct replay_run *r = s->replays[process].run;
	const struct step_list *l = &f->steps[process];
	size_t of = 0;

	for (size_t i = 0; i < l->count; i++)
		if (l->rows[i].is_counted && !l->rows[i].is_out)
			steps[of++] =
				(struct replay_step){ l->rows[i].begin_ns, l->rows[i].end_ns };
	size_t count = replay_lengths(r, steps, of, 0, lengths, NULL);
	uint64_t baseline = (uint64_t)median_u64(lengths, count);
	uint64_t explained = median_step(r, steps, of, s->edit_count + 1, lengths);

	for (size_t i = 0; count && i < s->edit_count; i++) {
		union value keys[WHAT_IF_EDITS + 1], *row;

		keys[WHAT_IF_EDITS].text = s->edits[i].text;
		TRY(acc_row(f, "rank_what_if", process, keys, &row, err));
		row[WHAT_IF_STEPS].u64 += count;
		cell_raise(&row[WHAT_IF_BASELINE], baseline);
		cell_raise(&row[WHAT_IF_STEP], median_step(r, steps, of, i + 1, lengths));
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
		if (!s->replays[i].run)
			continue;
		TRY(replay_end(s->replays[i].replay, err));
		TRY(replays_go(s, err));
		size_t count = f->steps[i].count + 1;
		RELEASED_BY(vec_release) struct replay_step *steps = NULL;
		RELEASED_BY(vec_release) uint64_t *lengths = NULL;
		TRY(vec_new(&steps, count, err));
		TRY(vec_new(&lengths, count, err));
		TRY(put_rows(f, i, steps, lengths, err));
	}
	return ST_OK;
}

static void replay_report_release(struct accumulator *f)
{
	struct replay_report *s = f->state;

	for (uint32_t i = 0; s->replays && i <= s->process_count; i++) {
		replay_run_close(s->replays[i].run);
		replay_close(s->replays[i].replay);
	}
	ops_free(s->ops);
	points_close(s->points);
	free(s->replays);
	free(s->edits);
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
	struct rank_edits of_ranks[EDIT_SETS_MAX];
	union value *row, *sum, *sums[EDIT_SETS_MAX];
	size_t count = 0;

	for (size_t i = 0; (row = table_at(ranks, i)); i++) {
		finish_saves(row, row[WHAT_IF_BASELINE].u64, row[WHAT_IF_STEP].u64, WHAT_IF_SAVES,
			     WHAT_IF_PCT);
		TRY(table_row(job, &row[WHAT_IF_EDITS], &sum, err));
		sum[JOB_RANKS].u64++;
		cell_raise(&sum[JOB_BASELINE], row[WHAT_IF_BASELINE].u64);
		cell_raise(&sum[JOB_STEP], row[WHAT_IF_STEP].u64);
	}
	for (size_t i = 0; (sum = table_at(job, i)) && count < EDIT_SETS_MAX; i++) {
		if (strncmp(sum[JOB_EDITS].text, "rank:", 5) != 0)
			continue;
		of_ranks[count] = (struct rank_edits){ .edits = sum[JOB_EDITS].text };
		sums[count++] = sum;
	}
	TRY(job_replay(all, of_ranks, count, err));
	for (size_t i = 0; i < count; i++) {
		if (!of_ranks[i].baseline_ns)
			return fail(err, ST_USAGE, NOWHERE,
				    "--what-if %s: no step of several ranks is in the inputs",
				    of_ranks[i].edits);
		sums[i][JOB_BASELINE].u64 = of_ranks[i].baseline_ns;
		sums[i][JOB_STEP].u64 = of_ranks[i].step_ns;
	}
	for (size_t i = 0; (sum = table_at(job, i)); i++)
		finish_saves(sum, sum[JOB_BASELINE].u64, sum[JOB_STEP].u64, JOB_SAVES, JOB_PCT);
	return ST_OK;
}

const struct report_type report_replay = {
	.name = "replay",
	.help = "predicted step time after changes (--what-if)",
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
