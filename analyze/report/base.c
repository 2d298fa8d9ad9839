/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of every run: its inputs and ranks, what was lost, and whether the run can be
 * trusted. */
#include "analyze/engine/runs.h"

#include <ctype.h>
#include <math.h>

#define INPUT_COLUMNS(X)                                                                           \
	X(INPUT_PATH, "path", "input", TEXT, KEY, "path of the input, as given")                   \
	X(INPUT_FORMAT, "format", "format", TEXT, MAX, "format of the input")                      \
	X(INPUT_EVENTS, "events", "events", U64, SUM, "number of events in the input")             \
	X(INPUT_WHOLE, "whole", "whole", BOOL, MIN,                                                \
	  "the input states that it was closed properly")                                          \
	X(INPUT_UNREAD, "unread_bytes", "unread bytes", U64, SUM,                                  \
	  "bytes after the last complete block or event")                                          \
	X(INPUT_SYNTHETIC, "synthetic", NULL, BOOL, MAX, "the input was made by a generator")      \
	X(INPUT_ERROR, "error", NULL, TEXT, MAX, "why the input could not be read completely")
static TABLE(inputs, INPUT_COLUMNS, .null_texts = "format error");

#define OF_RANK_COLUMNS(X)                                                                         \
	X(RANK_WORLD = RANK_KEYS, "world_size", "of", U64, MAX,                                    \
	  "number of ranks in the job; 0: the file has none")                                      \
	X(RANK_SPAN, "span_ns", "span", U64, SUM,                                                  \
	  "sum of its windows, each from the opening or first host or GPU event to the closing "   \
	  "or the end of the last step or GPU event")                                              \
	X(RANK_EVENTS, "events", "events", U64, SUM, "events that were read, after filtering")     \
	X(RANK_STEPS, "step_count", "steps", U64, SUM, "number of steps, complete or not")         \
	X(RANK_COUNTED, "complete_steps", "complete", U64, SUM,                                    \
	  "complete steps, from which shares and means are computed")                              \
	X(RANK_WALL, "complete_wall_ns", "their wall", U64, SUM, "wall time of complete steps")    \
	X(RANK_HELD, "window_steps", "in windows", U64, SUM,                                       \
	  "steps in the windows, cut ones by their part: divisor of sums over windows")            \
	X(RANK_SETTLING, "settling_steps", "settling", U64, SUM,                                   \
	  "steps of window_steps that are the first of a window and do not count")                 \
	X(RANK_RUN, "run_id", NULL, TEXT, MAX,                                                     \
	  "id of the run, which tells runs in one folder apart; null: not recorded")
enum { OF_RANK_COLUMNS(COLUMN_PLACE) };
const struct table_type table_ranks = {
	.name = "ranks",
	.null_texts = "run_id",
	.columns = COLUMNS(RANK_COLUMNS, OF_RANK_COLUMNS(COLUMN_ROW)),
};

#define WINDOW_COLUMNS(X)                                                                          \
	X(WINDOW_BEGIN = RANK_KEYS, "begin_ns", "begin", U64, KEY, "begin since the Unix epoch")   \
	X(WINDOW_END, "end_ns", "end", U64, KEY, "end since the Unix epoch")                       \
	X(WINDOW_SPEC, "spec", "asked for", TEXT, MAX, "window as requested; null: unknown")       \
	X(WINDOW_OWN, "own_ns", "own cost", U64, SUM,                                              \
	  "time that the collector used in the window")                                            \
	X(WINDOW_CUT, "cut_short", "cut short", BOOL, MAX,                                         \
	  "the window ended earlier than requested")
static RANK_TABLE(windows, &table_ranks, WINDOW_COLUMNS, .null_texts = "spec");

#define LOSS_COLUMNS(X)                                                                            \
	X(LOSS_REASON = RANK_KEYS, "reason", "lost", TEXT, KEY, "why records are missing")         \
	X(LOSS_COUNT, "count", "records", U64, SUM, "number of missing records")
static RANK_TABLE(losses, &table_ranks, LOSS_COLUMNS, .nest = NEST_MAP);

#define TRUST_COLUMNS(X)                                                                           \
	X(TRUST_SAMPLED = RANK_KEYS, "sampled", "sampled", BOOL, DERIVED,                          \
	  "under 1 % of the correlation ids are present: idle time is not reliable")               \
	X(TRUST_DENSITY, "id_density", "id density", F64, DERIVED,                                 \
	  "distinct correlation ids / range of ids")                                               \
	X(TRUST_GPU_EVENTS, "gpu_events", "GPU events", U64, SUM, "kernels, copies and graphs")    \
	X(TRUST_WITH_LAUNCH, "with_launch", "with launch", U64, SUM,                               \
	  "GPU events with a launch in the input")                                                 \
	X(TRUST_LAUNCHES, "launches", "launches", U64, SUM, "calls that launch GPU work")          \
	X(TRUST_WITHOUT_EVENT, "without_gpu_event", "without GPU event", U64, SUM,                 \
	  "launches without a GPU event in the input")                                             \
	X(TRUST_FELL_OUT, "fell_out", NULL, U64, SUM,                                              \
	  "calls that were dropped from memory before their GPU work came")                        \
	X(TRUST_COUNTS_LOSSES, "counts_losses", NULL, BOOL, MIN, "the input counts lost records")  \
	X(TRUST_OWN_COST, "own_cost_known", NULL, BOOL, MIN,                                       \
	  "the input states the cost of recording")                                                \
	X(TRUST_IDS, "ids", NULL, U64, SUM, "distinct correlation ids")                            \
	X(TRUST_ID_RANGE, "id_range", NULL, U64, SUM, "highest id - lowest id + 1")
static RANK_TABLE(trust, &table_ranks, TRUST_COLUMNS, .nest = NEST_OBJECT);

static enum status end_losses(struct accumulator *f, uint32_t process, bool is_first,
			      struct error *err)
{
	static const struct {
		const char *name;
		enum loss why;
	} rows[] = {
#define X(name, number, text) { #name, LOSS_##name },
		LOSS_LIST(X)
#undef X
			{ "UNKNOWN", 0 }, /* sum over reasons that this version does not define */
	};
	union value keys[RANK_KEYS + 1], *row;
	char reason[32];
	size_t i, k;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t count = trace_lost(f->trace, process, rows[i].why);

		/* losses of the input as a whole are added to its first process */
		if (is_first)
			count = trace_lost(f->trace, 0, rows[i].why);
		for (k = 1; is_first && k <= trace_count(f->trace, TRACE_PROCESSES); k++)
			count -= k == process ? 0 : trace_lost(f->trace, (uint32_t)k, rows[i].why);
		if (!count)
			continue;
		for (k = 0; rows[i].name[k] && k + 1 < sizeof(reason); k++)
			reason[k] = (char)tolower((unsigned char)rows[i].name[k]);
		reason[k] = '\0';
		keys[LOSS_REASON].text = reason;
		TRY(acc_row(f, "losses", process, keys, &row, err));
		row[LOSS_COUNT].u64 += count;
	}
	return ST_OK;
}

static bool was_recorded(const struct accumulator *f, uint32_t process)
{
	for (uint32_t i = 1; i <= trace_count(f->trace, TRACE_WINDOWS); i++)
		if (trace_get_window(f->trace, i)->process == process)
			return true;
	return false;
}

static enum status end_trust(struct accumulator *f, uint32_t process, struct error *err)
{
	struct launch_totals totals = context_launch_totals(f->context, process);
	union value keys[RANK_KEYS], *row;

	TRY(acc_row(f, "trust", process, keys, &row, err));
	row[TRUST_GPU_EVENTS].u64 = totals.gpu_events;
	row[TRUST_WITH_LAUNCH].u64 = totals.with_launch;
	row[TRUST_LAUNCHES].u64 = totals.launches;
	row[TRUST_WITHOUT_EVENT].u64 = totals.without_gpu_event;
	row[TRUST_FELL_OUT].u64 = totals.fell_out;
	row[TRUST_IDS].u64 = totals.ids;
	row[TRUST_ID_RANGE].u64 = totals.id_range;
	row[TRUST_COUNTS_LOSSES].u64 = was_recorded(f, process);
	row[TRUST_OWN_COST].u64 = was_recorded(f, process);
	return ST_OK;
}

static enum status end_windows(struct accumulator *f, struct error *err)
{
	const struct sweep_window *w;
	union value keys[RANK_KEYS + 2], *row;
	size_t count = sweep_windows(f->sweep, &w);

	for (size_t i = 0; i < count; i++) {
		const struct window *of = trace_get_window(f->trace, w[i].window);

		keys[WINDOW_BEGIN].u64 = w[i].begin_ns;
		keys[WINDOW_END].u64 = w[i].end_ns;
		TRY(acc_row(f, "windows", w[i].process, keys, &row, err));
		if (of->spec)
			TRY(acc_text(f, "windows", &row[WINDOW_SPEC],
				     trace_text(f->trace, of->spec, NULL), err));
		row[WINDOW_OWN].u64 += of->own_ns;
		row[WINDOW_CUT].u64 |= of->cut_short;
	}
	return ST_OK;
}

/* Returns the share of cut, uncounted steps that lies in the windows, as steps, estimated from the
 * mean wall time of the counted ones. */
static uint64_t cut_steps(const struct step_list *steps, uint64_t counted, uint64_t wall_ns)
{
	double mean_ns = counted ? (double)wall_ns / (double)counted : 0, sum = 0;

	for (size_t i = 0; i < steps->count; i++) {
		const struct step_row *row = &steps->rows[i];

		if (row->is_cut && !row->is_counted && !row->is_out && !row->is_settling &&
		    mean_ns > 0)
			sum += fmin((double)(row->end_ns - row->begin_ns) / mean_ns, 1);
	}
	return (uint64_t)llround(sum);
}

static enum status end_rank(struct accumulator *f, uint32_t process, bool is_first,
			    struct error *err)
{
	struct sweep_process p = sweep_process(f->sweep, process);
	const struct step_list *steps = &f->steps[process];
	const struct process *of = trace_get_process(f->trace, process);
	union value keys[RANK_KEYS], *row;
	uint64_t counted = 0, wall_ns = 0;

	TRY(acc_row(f, "ranks", process, keys, &row, err));
	row[RANK_WORLD].u64 = later(row[RANK_WORLD].u64, of->world_size);
	row[RANK_SPAN].u64 += p.span_ns;
	row[RANK_EVENTS].u64 += p.events;
	for (size_t i = 0; i < steps->count; i++) {
		const struct step_row *one = &steps->rows[i];

		row[RANK_STEPS].u64 += !one->is_out;
		row[RANK_HELD].u64 += !one->is_out && (one->is_counted || !one->is_cut);
		row[RANK_SETTLING].u64 +=
			!one->is_out && !one->is_counted && !one->is_cut && one->is_settling;
		if (!one->is_counted)
			continue;
		counted++;
		wall_ns += one->end_ns - one->begin_ns;
	}
	row[RANK_COUNTED].u64 += counted;
	row[RANK_WALL].u64 += wall_ns;
	row[RANK_HELD].u64 += cut_steps(steps, counted, wall_ns);
	const char *id = trace_attr_text(f->trace, of->schema, "run_id");
	if (id)
		TRY(acc_text(f, "ranks", &row[RANK_RUN], id, err));
	TRY(end_losses(f, process, is_first, err));
	return end_trust(f, process, err);
}

static enum status base_end(struct accumulator *f, struct error *err)
{
	uint32_t first = 1;
	bool any = false;

	while (first < trace_count(f->trace, TRACE_PROCESSES) && acc_is_helper(f, first))
		first++;
	for (uint32_t i = 1; i <= trace_count(f->trace, TRACE_PROCESSES); i++) {
		if (!acc_wants(f, i) || acc_is_helper(f, i))
			continue;
		TRY(end_rank(f, i, i == first, err));
		any = true;
	}
	if (!any)
		return ST_OK;
	const struct provenance *p = trace_provenance(f->trace);
	union value key = { .text = f->path }, *row;
	TRY(table_row(tables_find(f->tables, "inputs"), &key, &row, err));
	TRY(acc_text(f, "inputs", &row[INPUT_FORMAT], trace_text(f->trace, p->format, NULL), err));
	row[INPUT_EVENTS].u64 = p->events;
	row[INPUT_WHOLE].u64 = p->is_whole;
	row[INPUT_UNREAD].u64 = p->unread_bytes;
	row[INPUT_SYNTHETIC].u64 = p->is_synthetic;
	return end_windows(f, err);
}

enum { SAMPLED_BELOW_PERCENT = 1 }; /* DEFINITIONS.md 8 */

static enum status base_finish(struct tables *all, struct error *err)
{
	struct table *trust = tables_find(all, "trust");
	union value *row;

	for (size_t i = 0; (row = table_at(trust, i)); i++) {
		row[TRUST_SAMPLED].u64 =
			row[TRUST_IDS].u64 &&
			row[TRUST_IDS].u64 * 100 < row[TRUST_ID_RANGE].u64 * SAMPLED_BELOW_PERCENT;
		row[TRUST_DENSITY].f64 =
			row[TRUST_IDS].u64
				? (double)row[TRUST_IDS].u64 / (double)row[TRUST_ID_RANGE].u64
				: NAN;
	}
	return ST_OK;
}

const struct report_type report_base = {
	.name = "base",
	.help = "inputs, ranks, losses and trust; part of every report",
	.tables = TABLES(&table_inputs, &table_ranks, &table_losses, &table_windows, &table_trust,
			 &table_runs),
	.end = base_end,
	.finish = base_finish,
};
