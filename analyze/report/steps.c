/* SPDX-License-Identifier: Apache-2.0 */
/* The report `steps` (DEFINITIONS.md 3), and what each GPU did in them by wall time. Which time
 * between marks belongs to the step before is known only at the end, so it is separate until then.
 */
#include "analyze/report/sparkline.h"
#include "analyze/report/report_list.h"

#include "analyze/engine/hist.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

#define STEP_COLUMNS(X)                                                                            \
	X(STEP_NUMBER = RANK_KEYS, "step", "step", U64, KEY, "number of the step")                 \
	X(STEP_BEGIN, "begin_ns", NULL, U64, KEY, "begin of the step since the Unix epoch")        \
	X(STEP_WALL, "wall_ns", "wall", U64, SUM,                                                  \
	  "time from its mark to the next mark, or to the end of its mark if the next is far")     \
	X(STEP_FLAGS, "flags", "flags", WORDS, MAX,                                                \
	  "settling: first step of a recorded window; cut_off: not completely in the window; "     \
	  "extra: not an Nth step, but one of the longest or the last")                            \
	X(STEP_COMPLETE, "complete", "complete", BOOL, MAX, "begin and end are in the window")     \
	X(STEP_COUNTED, "counted", "counted", BOOL, MAX, "shares and means are computed from it")  \
	X(STEP_INFERRED, "inferred", NULL, BOOL, MAX, "no step was marked: the step is the window")
/* The begin is a key too, because numbers may repeat. */
static RANK_TABLE(steps, &table_ranks, STEP_COLUMNS, .since = "begin_ns");

#define SUMMED_COLUMNS(X)                                                                          \
	X(SUMMED_STEPS = RANK_KEYS, "steps", "steps", U64, SUM,                                    \
	  "steps without a row, because the run is long")                                          \
	X(SUMMED_COUNTED, "counted", "counted", U64, SUM,                                          \
	  "steps without a row from which shares and means are computed")                          \
	X(SUMMED_SETTLING, "settling", "settling", U64, SUM, "first steps of windows")             \
	X(SUMMED_CUT, "cut_off", "cut off", U64, SUM,                                              \
	  "steps without a row that are not completely in the window")                             \
	X(SUMMED_SLOW, "slow", "slow", U64, SUM,                                                   \
	  "counted steps over 1.5 x the median of the input")                                      \
	X(SUMMED_WALL, "wall_ns", "wall", U64, SUM, "wall time of the counted steps")              \
	X(SUMMED_OVER, "over_ns", NULL, U64, SUM, "time of the slow steps above the median")       \
	X(SUMMED_MIN, "min_ns", "least", U64, MIN, "shortest wall time of counted steps")          \
	X(SUMMED_MAX, "max_ns", "most", U64, MAX, "longest wall time of counted steps")            \
	X(SUMMED_WALLS, "walls", NULL, HIST, HIST, "histogram of their wall times")
static RANK_TABLE(steps_summed, &table_ranks, SUMMED_COLUMNS, .nest = NEST_OBJECT,
		  .is_seldom = true);

enum { P90_FROM = 20, P99_FROM = 200 };
#define STATS_COLUMNS(X)                                                                           \
	X(STATS_COUNTED = RANK_KEYS, "counted", "counted", U64, DERIVED,                           \
	  "steps that the statistics cover")                                                       \
	X(STATS_SETTLING, "settling", "settling", U64, DERIVED,                                    \
	  "first steps of windows, left out")                                                      \
	X(STATS_CUT, "cut_off", "cut off", U64, DERIVED, "steps not completely in the window")     \
	X(STATS_SLOW, "slow", "slow", U64, DERIVED, "counted steps over 1.5 x their median")       \
	X(STATS_SUM, "sum_ns", NULL, U64, DERIVED, "sum of the wall times")                        \
	X(STATS_MEAN, "mean_ns", "mean", U64, DERIVED, "mean wall time, rounded down")             \
	X(STATS_MIN, "min_ns", "least", U64, DERIVED, "shortest wall time")                        \
	X(STATS_MEDIAN, "median_ns", "median", U64, DERIVED,                                       \
	  "median wall time; of an even count the mean of the middle two, rounded down; within 1 " \
	  "% where steps are summed")                                                              \
	X(STATS_P90, "p90_ns", "p90", U64, DERIVED,                                                \
	  "90th percentile of the wall time; from 20 steps on")                                    \
	X(STATS_P99, "p99_ns", "p99", U64, DERIVED,                                                \
	  "99th percentile of the wall time; from 200 steps on")                                   \
	X(STATS_MAX, "max_ns", "most", U64, DERIVED, "longest wall time")
static RANK_TABLE(step_stats, &table_ranks, STATS_COLUMNS, .nest = NEST_OBJECT,
		  .is_finished = true);

#define STEP_GPU_COLUMNS(X)                                                                        \
	X(STEP_GPU_STEP = RANK_KEYS, "step", "step", U64, KEY, "number of the step")               \
	X(STEP_GPU_BEGIN, "begin_ns", NULL, U64, KEY, "begin of the step since the Unix epoch")    \
	X(STEP_GPU_DEVICE, "device", "GPU", U64, KEY, "the device's number in its process")        \
	X(STEP_GPU_COMPUTE, "compute_ns", "compute", U64, SUM, "compute time within the step")     \
	X(STEP_GPU_EXPOSED_COMM, "exposed_comm_ns", "exposed comm", U64, SUM,                      \
	  "exposed communication time between the step's begin and end")                           \
	X(STEP_GPU_EXPOSED_COPY, "exposed_copy_ns", "exposed copy", U64, SUM,                      \
	  "exposed copy time between the step's begin and end")                                    \
	X(STEP_GPU_COMM_COUNT, "comm_count", "comm kernels", U64, SUM,                             \
	  "communication kernels that began in the step")                                          \
	X(STEP_GPU_IDLE, "idle_ns", "not busy", U64, SUM, "rest of the step's wall time")
static RANK_TABLE(step_gpus, &table_steps, STEP_GPU_COLUMNS, .member = "gpus");

#define SPARKLINE_COLUMNS(X)                                                                       \
	X(SPARKLINE_STEP = RANK_KEYS, "step", NULL, U64, KEY, "number of the step")                \
	X(SPARKLINE_BEGIN, "begin_ns", NULL, U64, KEY, "begin of the step since the Unix epoch")   \
	X(SPARKLINE_HOST, "host_cells", NULL, TEXT, MAX,                                           \
	  "letter of the phase with most time, for each equal part of the step")                   \
	X(SPARKLINE_GPU, "gpu_cells", NULL, TEXT, MAX,                                             \
	  "letter of the class with most time, for each equal part of the step")                   \
	X(SPARKLINE_HOST_BINS, "host_bins", NULL, TEXT, MAX, "like host_cells, in shorter parts")  \
	X(SPARKLINE_GPU_BINS, "gpu_bins", NULL, TEXT, MAX, "shares of classes in shorter parts")
static RANK_TABLE(strips, &table_steps, SPARKLINE_COLUMNS, .nest = NEST_NEVER,
		  .null_texts = "host_cells gpu_cells host_bins gpu_bins", .is_picture = true);

enum { AT_COMM_COUNT = CLASS_IDLE, AT_COUNT }; /* after the classes of work */
struct by_clock {
	uint64_t in_mark[AT_COUNT], in_gap[AT_COUNT];
};
struct gpu_steps {
	struct by_clock *rows; /* by step row */
	size_t cap;
	uint64_t comm_count;   /* of the window, for an inferred step */
	size_t row, event_row; /* cursors into step_list */
	uint32_t process;
	/* Cache: segments within [from_ns, to_ns) belong to `row` while the number of marks is
	 * `marks`. Their time is added to the row when that changes. */
	uint64_t from_ns, to_ns, here_ns[CLASS_COUNT];
	size_t marks;
	bool in_mark;
};
struct steps_state {
	struct gpu_steps *gpus; /* by the sweep's index */
	size_t gpu_count;
	struct sparklines *sparklines; /* by process id */
	size_t *interval_row;          /* cursors into step_list, by process id */
	uint32_t process_count;
};

static enum status steps_begin(struct accumulator *f, struct error *err)
{
	struct steps_state *s = f->state;

	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	TRY(vec_new(&s->sparklines, (size_t)s->process_count + 1, err));
	TRY(vec_new(&s->interval_row, (size_t)s->process_count + 1, err));
	for (size_t i = 0; i <= s->process_count; i++)
		s->sparklines[i].bins = f->pictures == PICTURES_FINE;
	return ST_OK;
}

static void steps_state_release(struct accumulator *f)
{
	struct steps_state *s = f->state;

	for (size_t i = 0; s->sparklines && i <= s->process_count; i++)
		sparklines_release(&s->sparklines[i]);
	for (size_t i = 0; i < s->gpu_count; i++)
		free(s->gpus[i].rows);
}

static enum status gpus_reach(struct accumulator *f, struct error *err)
{
	struct steps_state *s = f->state;
	size_t i = s->gpu_count;

	TRY(acc_gpus(f, &s->gpus, &s->gpu_count, sizeof(*s->gpus), err));
	for (; i < s->gpu_count; i++)
		s->gpus[i].process = sweep_gpu(f->sweep, i).process;
	return ST_OK;
}

/* Adds the cached time to its row and clears the cache. */
static void row_leave(struct gpu_steps *g)
{
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		if (i != CLASS_IDLE && g->here_ns[i])
			(g->in_mark ? g->rows[g->row].in_mark : g->rows[g->row].in_gap)[i] +=
				g->here_ns[i];
		g->here_ns[i] = 0;
	}
	g->from_ns = g->to_ns = 0;
}

/* Adds [at_ns, to_ns) of a segment, which lies in one row. */
static inline enum status put_part(struct accumulator *f, struct gpu_steps *g,
				   const struct segment *seg, uint64_t at_ns, uint64_t to_ns,
				   struct error *err)
{
	struct steps_state *s = f->state;

	g->here_ns[owner_class(seg->busy)] += to_ns - at_ns;
	if (f->pictures == PICTURES_NONE)
		return ST_OK;
	return sparklines_segment(&s->sparklines[g->process], &f->steps[g->process], g->row, seg,
				  at_ns, to_ns, err);
}

/* Splits a segment at the bounds of marks. */
static enum status put_cut(struct accumulator *f, struct gpu_steps *g, const struct segment *seg,
			   struct error *err)
{
	const struct step_list *steps = &f->steps[g->process];
	uint64_t at_ns = seg->begin_ns, to_ns;

	if (!steps->count || seg->end_ns <= steps->rows[0].begin_ns)
		return ST_OK;
	at_ns = later(at_ns, steps->rows[0].begin_ns);
	for (; at_ns < seg->end_ns; at_ns = to_ns) {
		if (at_ns < g->from_ns || at_ns >= g->to_ns) {
			/* Find the mark, or the gap after it, that contains the instant. */
			row_leave(g);
			size_t row = steps_at(steps, at_ns, &g->row);
			g->in_mark = at_ns < steps->rows[row].mark_end_ns;
			g->from_ns = g->in_mark ? steps->rows[row].begin_ns
						: steps->rows[row].mark_end_ns;
			g->to_ns = g->in_mark ? steps->rows[row].mark_end_ns : UINT64_MAX;
			if (row + 1 < steps->count && steps->rows[row + 1].begin_ns < g->to_ns)
				g->to_ns = steps->rows[row + 1].begin_ns;
			TRY(vec_reserve(&g->rows, &g->cap, row + 1, err));
		}
		to_ns = seg->end_ns < g->to_ns ? seg->end_ns : g->to_ns;
		TRY(put_part(f, g, seg, at_ns, to_ns, err));
	}
	return ST_OK;
}

static enum status steps_report_put(struct accumulator *f, const struct sorted_batch *w,
				    struct error *err)
{
	TRY(gpus_reach(f, err));
	for (size_t i = 0; f->pictures != PICTURES_NONE && i < w->in->interval_count; i++) {
		const struct phase_interval *st = &w->in->intervals[i];
		struct steps_state *s = f->state;
		const struct step_list *steps = &f->steps[st->process];
		size_t row = steps_at(steps, st->begin_ns, &s->interval_row[st->process]);

		if (row == steps->count)
			continue;
		TRY(sparklines_interval(&s->sparklines[st->process], steps, row, st, err));
	}
	struct steps_state *s = f->state;
	for (size_t i = 0; i < s->gpu_count; i++) {
		struct gpu_steps *g = &s->gpus[i];

		if (g->marks != f->steps[g->process].count)
			row_leave(g);
		g->marks = f->steps[g->process].count;
	}
	for (size_t i = 0; i < w->segment_count; i++) {
		const struct segment *seg = &w->segments[i];
		struct gpu_steps *g = &s->gpus[seg->gpu];

		if (seg->begin_ns >= g->from_ns && seg->end_ns <= g->to_ns)
			TRY(put_part(f, g, seg, seg->begin_ns, seg->end_ns, err));
		else
			TRY(put_cut(f, g, seg, err));
	}
	for (size_t i = 0; i < w->by[BATCH_COLLECTIVES].count; i++) {
		const struct event *e = w->by[BATCH_COLLECTIVES].items[i];
		uint32_t gpu = sweep_gpu_of(f->sweep, e->track);

		if (gpu >= s->gpu_count)
			continue;
		struct gpu_steps *g = &s->gpus[gpu];
		g->comm_count++;
		const struct step_list *steps = &f->steps[sweep_gpu(f->sweep, gpu).process];
		size_t row = steps_at(steps, e->begin_ns, &g->event_row);
		if (row == steps->count)
			continue;
		TRY(vec_reserve(&g->rows, &g->cap, row + 1, err));
		if (e->begin_ns < steps->rows[row].mark_end_ns)
			g->rows[row].in_mark[AT_COMM_COUNT]++;
		else
			g->rows[row].in_gap[AT_COMM_COUNT]++;
	}
	return ST_OK;
}

/* Returns the time of a class on a GPU in all windows. */
static uint64_t all_ns(const struct accumulator *f, size_t gpu, enum gpu_class class)
{
	const struct gpu_time *time = sweep_gpu(f->sweep, gpu).time;
	uint64_t sum = 0;

	for (size_t phase = 0; phase < CELL_PHASES; phase++)
		for (unsigned busy = 0; busy < BUSY_MASKS; busy++)
			if (owner_class(busy) == class)
				sum += time->span_ns[phase][busy];
	return sum;
}

static enum status end_gpu(struct accumulator *f, uint32_t process, size_t gpu, size_t row,
			   union value *keys, struct error *err)
{
	static const struct by_clock nothing;
	struct steps_state *s = f->state;
	const struct step_row *step = &f->steps[process].rows[row];
	const struct gpu_steps *g = &s->gpus[gpu];
	const struct by_clock *at = row < g->cap ? &g->rows[row] : &nothing;
	uint32_t device = sweep_gpu(f->sweep, gpu).device;
	uint64_t busy_ns = 0;
	union value *cells;

	keys[STEP_GPU_DEVICE].u64 = device == NO_ID ? NO_U64 : device;
	TRY(acc_row(f, "step_gpus", process, keys, &cells, err));
	for (size_t i = 0; i < AT_COUNT; i++) {
		uint64_t sum = at->in_mark[i] + (step->joins ? at->in_gap[i] : 0);

		if (f->steps[process].is_inferred)
			sum = i == AT_COMM_COUNT ? g->comm_count : all_ns(f, gpu, i);
		cells[STEP_GPU_COMPUTE + i].u64 += sum;
		busy_ns += i == AT_COMM_COUNT ? 0 : sum;
	}
	cells[STEP_GPU_COMPUTE + AT_COUNT].u64 += step->end_ns - step->begin_ns - busy_ns;
	return ST_OK;
}

static enum status end_sparkline(struct accumulator *f, uint32_t process, size_t row,
				 union value *keys, struct error *err)
{
	struct steps_state *s = f->state;
	const struct sparklines *sparklines = &s->sparklines[process];
	union value *cells;

	if (row >= sparklines->count || !sparklines->rows[row].host[0])
		return ST_OK;
	const struct sparkline_row *sparkline = &sparklines->rows[row];
	TRY(acc_row(f, "strips", process, keys, &cells, err));
	TRY(acc_text(f, "strips", &cells[SPARKLINE_HOST], sparkline->host, err));
	TRY(acc_text(f, "strips", &cells[SPARKLINE_HOST_BINS], sparkline->host_bins, err));
	if (!sparklines->has_gpu)
		return ST_OK;
	TRY(acc_text(f, "strips", &cells[SPARKLINE_GPU], sparkline->gpu, err));
	return acc_text(f, "strips", &cells[SPARKLINE_GPU_BINS], sparkline->gpu_bins, err);
}

static enum status end_step(struct accumulator *f, uint32_t process, size_t row, struct error *err)
{
	const struct step_row *step = &f->steps[process].rows[row];
	union value keys[RANK_KEYS + 3], *cells;
	char flags[32];

	keys[STEP_NUMBER].u64 = step->number;
	keys[STEP_BEGIN].u64 = step->begin_ns;
	TRY(acc_row(f, "steps", process, keys, &cells, err));
	cells[STEP_WALL].u64 += step->end_ns - step->begin_ns;
	snprintf(flags, sizeof(flags), "%s%s%s", step->is_settling ? " settling" : "",
		 step->is_cut ? " cut_off" : "", step->is_extra ? " extra" : "");
	TRY(acc_text(f, "steps", &cells[STEP_FLAGS], flags + (flags[0] == ' '), err));
	cells[STEP_COMPLETE].u64 |= !step->is_cut;
	cells[STEP_COUNTED].u64 |= step->is_counted;
	cells[STEP_INFERRED].u64 |= f->steps[process].is_inferred;
	for (size_t i = 0; i < sweep_gpu_count(f->sweep); i++)
		if (sweep_gpu(f->sweep, i).process == process)
			TRY(end_gpu(f, process, i, row, keys, err));
	return end_sparkline(f, process, row, keys, err);
}

/* Adds up the steps without a row. */
static enum status end_summed(struct accumulator *f, uint32_t process, struct error *err)
{
	const struct step_list *l = &f->steps[process];
	union value keys[RANK_KEYS], *cells;
	uint64_t *walls;
	size_t count = 0;

	TRY(vec_new(&walls, l->count, err));
	for (size_t i = 0; i < l->count; i++)
		if (l->rows[i].is_counted)
			walls[count++] = l->rows[i].end_ns - l->rows[i].begin_ns;
	double median = median_u64(walls, count);
	free(walls);
	TRY(acc_row(f, "steps_summed", process, keys, &cells, err));
	if (!cells[SUMMED_WALLS].hist)
		cells[SUMMED_WALLS].hist = table_hist(tables_find(f->tables, "steps_summed"), err);
	if (!cells[SUMMED_WALLS].hist)
		return ST_MEMORY;
	for (size_t i = 0; i < l->count; i++) {
		const struct step_row *row = &l->rows[i];
		uint64_t wall_ns = row->end_ns - row->begin_ns;

		if (row->is_out || row->is_kept)
			continue;
		cells[SUMMED_STEPS].u64++;
		cells[SUMMED_SETTLING].u64 += row->is_settling;
		cells[SUMMED_CUT].u64 += row->is_cut;
		if (!row->is_counted)
			continue;
		cells[SUMMED_COUNTED].u64++;
		cells[SUMMED_WALL].u64 += wall_ns;
		if ((double)wall_ns > 1.5 * median) {
			cells[SUMMED_SLOW].u64++;
			cells[SUMMED_OVER].u64 += wall_ns - (uint64_t)median;
		}
		cells[SUMMED_MIN].u64 = earlier(cells[SUMMED_MIN].u64, wall_ns);
		cell_raise(&cells[SUMMED_MAX], wall_ns);
		TRY(hist_put(cells[SUMMED_WALLS].hist, wall_ns, err));
	}
	return ST_OK;
}

static enum status steps_end(struct accumulator *f, struct error *err)
{
	struct steps_state *s = f->state;

	TRY(gpus_reach(f, err));
	for (size_t i = 0; i < s->gpu_count; i++)
		row_leave(&s->gpus[i]);
	for (uint32_t process = 1; process <= s->process_count; process++) {
		TRY(sparklines_end(&s->sparklines[process], &f->steps[process], err));
		for (size_t row = 0; row < f->steps[process].count; row++)
			if (f->steps[process].rows[row].is_kept)
				TRY(end_step(f, process, row, err));
		if (f->steps[process].stride > 1)
			TRY(end_summed(f, process, err));
	}
	return ST_OK;
}

/* ---- over all steps of a rank ----------------------------------------------------------- */

/* Returns the row for the rank's steps without a row of their own; NULL: there are none. */
static const union value *summed_of(struct tables *all, const union value *rank)
{
	struct table *t = tables_find(all, "steps_summed");

	for (size_t i = 0; i < table_count(t); i++)
		if (!memcmp(table_at(t, i), rank, RANK_KEYS * sizeof(*rank)))
			return table_at(t, i);
	return NULL;
}

/* Returns the percentile of all step lengths: the least length that so many percent do not
 * exceed. */
static uint64_t percentile(const uint64_t *walls, const struct hist *all, uint64_t count,
			   unsigned percent)
{
	uint64_t at = (count * percent + 99) / 100 - 1;

	return all ? hist_at(all, at) : walls[at];
}

/* `summed` NULL: there are no other steps than the `kept` ones in `walls`, at least one. */
static enum status stats_put(union value *row, uint64_t *walls, size_t kept,
			     const union value *summed, struct error *err)
{
	uint64_t low, high, count = kept + (summed ? summed[SUMMED_COUNTED].u64 : 0);
	enum status status = ST_OK;
	struct hist *all = NULL;

	if (summed) {
		TRY(hist_new(&all, err));
		if (summed[SUMMED_WALLS].hist)
			status = hist_merge(all, summed[SUMMED_WALLS].hist, err);
	}
	for (size_t i = 0; all && i < kept && status == ST_OK; i++)
		status = hist_put(all, walls[i], err);
	qsort(walls, kept, sizeof(*walls), compare_u64);
	low = all ? hist_at(all, (count - 1) / 2) : walls[(kept - 1) / 2];
	high = all ? hist_at(all, count / 2) : walls[kept / 2];
	row[STATS_SUM].u64 = summed ? summed[SUMMED_WALL].u64 : 0;
	row[STATS_SLOW].u64 = summed ? summed[SUMMED_SLOW].u64 : 0;
	for (size_t i = 0; i < kept; i++) {
		row[STATS_SUM].u64 += walls[i];
		row[STATS_SLOW].u64 += 4 * walls[i] > 3 * (low + high);
	}
	row[STATS_COUNTED].u64 = count;
	row[STATS_MIN].u64 = walls[0];
	row[STATS_MAX].u64 = walls[kept - 1];
	if (summed && summed[SUMMED_MIN].u64 < row[STATS_MIN].u64)
		row[STATS_MIN].u64 = summed[SUMMED_MIN].u64;
	if (summed && summed[SUMMED_MAX].u64 > row[STATS_MAX].u64)
		row[STATS_MAX].u64 = summed[SUMMED_MAX].u64;
	row[STATS_MEAN].u64 = row[STATS_SUM].u64 / count;
	row[STATS_MEDIAN].u64 = low / 2 + high / 2 + (low % 2 + high % 2) / 2;
	if (count >= P90_FROM)
		row[STATS_P90].u64 = percentile(walls, all, count, 90);
	if (count >= P99_FROM)
		row[STATS_P99].u64 = percentile(walls, all, count, 99);
	hist_free(all);
	return status;
}

static enum status steps_finish(struct tables *all, struct error *err)
{
	struct table *steps = tables_find(all, "steps"), *stats = tables_find(all, "step_stats");
	RELEASED_BY(vec_release) uint64_t *walls = NULL;
	size_t i = 0, count, end;
	const union value *first, *summed;
	union value *row;

	TRY(vec_new(&walls, table_count(steps), err));
	while ((first = table_at(steps, i))) {
		TRY(table_row(stats, first, &row, err));
		summed = summed_of(all, first);
		row[STATS_SLOW].u64 = 0;
		row[STATS_SETTLING].u64 = summed ? summed[SUMMED_SETTLING].u64 : 0;
		row[STATS_CUT].u64 = summed ? summed[SUMMED_CUT].u64 : 0;
		end = table_group_end(steps, i, RANK_KEYS);
		for (count = 0; i < end; i++) {
			const union value *at = table_at(steps, i);

			if (at[STEP_COUNTED].u64 == 1)
				walls[count++] = at[STEP_WALL].u64;
			row[STATS_CUT].u64 += at[STEP_COMPLETE].u64 != 1;
			row[STATS_SETTLING].u64 +=
				at[STEP_FLAGS].text && strstr(at[STEP_FLAGS].text, "settling");
		}
		if (count)
			TRY(stats_put(row, walls, count, summed, err));
	}
	return ST_OK;
}

const struct report_type report_steps = {
	.name = "steps",
	.help = "wall time of each step, and what the GPUs did during it",
	.tables = TABLES(&table_steps, &table_step_gpus, &table_strips, &table_steps_summed,
			 &table_step_stats),
	.with = REPORTS(&report_slow),
	.state_size = sizeof(struct steps_state),
	.owned = OWNED(offsetof(struct steps_state, sparklines),
		       offsetof(struct steps_state, interval_row),
		       offsetof(struct steps_state, gpus)),
	.begin = steps_begin,
	.put = steps_report_put,
	.end = steps_end,
	.release = steps_state_release,
	.finish = steps_finish,
};
