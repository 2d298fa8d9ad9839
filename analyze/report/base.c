/* SPDX-License-Identifier: Apache-2.0 */
/* What every run says: which inputs and ranks, what was lost, whether it is to be trusted. */
#include "analyze/engine/report.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { INPUT_PATH, INPUT_FORMAT, INPUT_EVENTS, INPUT_WHOLE, INPUT_UNREAD, INPUT_SYNTHETIC };
static const struct column input_columns[] = {
	{ "path", "input", CELL_TEXT, KEY, NULL, "as given" },
	{ "format", "format", CELL_TEXT, MAX, NULL, "what the input is" },
	{ "events", "events", CELL_U64, SUM, NULL, "events that it holds" },
	{ "whole", "whole", CELL_BOOL, MIN, NULL, "whether it says that it was closed properly" },
	{ "unread_bytes", "unread bytes", CELL_U64, SUM, NULL,
	  "bytes after the last whole block or event" },
	{ "synthetic", NULL, CELL_BOOL, MAX, NULL, "made by a generator" },
	{ "error", NULL, CELL_TEXT, MAX, NULL, "why it could not be read to its end" },
	{ .name = NULL },
};
static const struct table_type table_inputs = {
	.name = "inputs",
	.member = "inputs",
	.null_texts = "format error",
	.columns = input_columns,
};

enum { RANK_WORLD = RANK_KEYS, RANK_SPAN, RANK_EVENTS, RANK_STEPS, RANK_COUNTED, RANK_WALL };
static const struct column rank_columns[] = {
	RANK_COLUMNS,
	{ "world_size", "of", CELL_U64, MAX, NULL, "ranks in the job; 0: the file has none" },
	{ "span_ns", "span", CELL_U64, SUM, NULL,
	  "its windows added up: from the first host or GPU event, or the window's opening, to the "
	  "last step's end, the last GPU event, or the window's closing" },
	{ "events", "events", CELL_U64, SUM, NULL, "events read, after the cuts" },
	{ "step_count", "steps", CELL_U64, SUM, NULL, "steps, whole or not" },
	{ "complete_steps", "complete", CELL_U64, SUM, NULL,
	  "steps that shares and means are taken of" },
	{ "complete_wall_ns", "their wall", CELL_U64, SUM, NULL, "wall time of those steps" },
	{ .name = NULL },
};
const struct table_type table_ranks = {
	.name = "ranks",
	.member = "ranks",
	.columns = rank_columns,
};

enum { WINDOW_BEGIN = RANK_KEYS, WINDOW_END, WINDOW_SPEC, WINDOW_OWN, WINDOW_CUT };
static const struct column window_columns[] = {
	RANK_COLUMNS,
	{ "begin_ns", "begin", CELL_U64, KEY, NULL, "since the Unix epoch" },
	{ "end_ns", "end", CELL_U64, KEY, NULL, "since the Unix epoch" },
	{ "spec", "asked for", CELL_TEXT, MAX, NULL, "what was asked for" },
	{ "own_ns", "own cost", CELL_U64, SUM, NULL, "time that the collector took in it" },
	{ "cut_short", "cut short", CELL_BOOL, MAX, NULL, "ended before what was asked for" },
	{ .name = NULL },
};
static const struct table_type table_windows = {
	.name = "windows",
	.member = "windows",
	.under = &table_ranks,
	.null_texts = "spec",
	.columns = window_columns,
};

enum { LOSS_REASON = RANK_KEYS, LOSS_COUNT };
static const struct column loss_columns[] = {
	RANK_COLUMNS,
	{ "reason", "lost", CELL_TEXT, KEY, NULL, "why records are missing" },
	{ "count", "records", CELL_U64, SUM, NULL, "how many records" },
	{ .name = NULL },
};
static const struct table_type table_losses = {
	.name = "losses",
	.member = "losses",
	.under = &table_ranks,
	.nest = NEST_MAP,
	.columns = loss_columns,
};

enum {
	TRUST_SAMPLED = RANK_KEYS,
	TRUST_DENSITY,
	TRUST_GPU_EVENTS,
	TRUST_WITH_LAUNCH,
	TRUST_LAUNCHES,
	TRUST_WITHOUT_EVENT,
	TRUST_FELL_OUT,
	TRUST_COUNTS_LOSSES,
	TRUST_OWN_COST,
	TRUST_IDS,
	TRUST_ID_RANGE,
};
static const struct column trust_columns[] = {
	RANK_COLUMNS,
	{ "sampled", "sampled", CELL_BOOL, DERIVED, NULL,
	  "under 1 % of the correlation ids are there: idle time is not to be trusted" },
	{ "id_density", "id density", CELL_F64, DERIVED, NULL,
	  "distinct correlation ids / range of ids" },
	{ "gpu_events", "GPU events", CELL_U64, SUM, NULL, "kernels, copies, graphs" },
	{ "with_launch", "with launch", CELL_U64, SUM, NULL, "of those, whose launch is there" },
	{ "launches", "launches", CELL_U64, SUM, NULL, "calls that launch GPU work" },
	{ "without_gpu_event", "without GPU event", CELL_U64, SUM, NULL,
	  "of those, whose GPU work is not there" },
	{ "fell_out", NULL, CELL_U64, SUM, NULL,
	  "calls that were forgotten before any GPU work of theirs came" },
	{ "counts_losses", NULL, CELL_BOOL, MIN, NULL, "the source counts what it loses" },
	{ "own_cost_known", NULL, CELL_BOOL, MIN, NULL, "the source says what recording cost" },
	{ "ids", NULL, CELL_U64, SUM, NULL, "distinct correlation ids" },
	{ "id_range", NULL, CELL_U64, SUM, NULL, "highest id - lowest id + 1" },
	{ .name = NULL },
};
static const struct table_type table_trust = {
	.name = "trust",
	.member = "trust",
	.under = &table_ranks,
	.nest = NEST_OBJECT,
	.columns = trust_columns,
};

static enum status end_losses(struct accumulator *f, uint32_t process, struct error *err)
{
	static const struct {
		const char *name;
		enum loss why;
	} rows[] = {
#define X(name, number, text) { #name, LOSS_##name },
		LOSS_LIST(X)
#undef X
			{ "UNKNOWN", 0 }, /* reasons of a newer writer, as the log sums them */
	};
	union value keys[RANK_KEYS + 1], *row;
	char reason[32];
	size_t i, k;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t count = trace_lost(f->trace, process, rows[i].why);

		/* what the input lost as a whole stands with its first process */
		if (process == 1)
			count = trace_lost(f->trace, 0, rows[i].why);
		for (k = 2; process == 1 && k <= trace_count(f->trace, TRACE_PROCESSES); k++)
			count -= trace_lost(f->trace, (uint32_t)k, rows[i].why);
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

static enum status end_rank(struct accumulator *f, uint32_t process, struct error *err)
{
	struct sweep_process p = sweep_process(f->sweep, process);
	const struct step_list *steps = &f->steps[process];
	const struct process *of = trace_get_process(f->trace, process);
	union value keys[RANK_KEYS], *row;

	TRY(acc_row(f, "ranks", process, keys, &row, err));
	if (of->world_size > row[RANK_WORLD].u64)
		row[RANK_WORLD].u64 = of->world_size;
	row[RANK_SPAN].u64 += p.span_ns;
	row[RANK_EVENTS].u64 += p.events;
	for (size_t i = 0; i < steps->count; i++) {
		row[RANK_STEPS].u64 += !steps->rows[i].is_out;
		if (!steps->rows[i].is_counted)
			continue;
		row[RANK_COUNTED].u64++;
		row[RANK_WALL].u64 += steps->rows[i].end_ns - steps->rows[i].begin_ns;
	}
	TRY(end_losses(f, process, err));
	return end_trust(f, process, err);
}

static enum status base_end(struct accumulator *f, struct error *err)
{
	bool any = false;

	for (uint32_t i = 1; i <= trace_count(f->trace, TRACE_PROCESSES); i++) {
		if (!acc_wants(f, i))
			continue;
		TRY(end_rank(f, i, err));
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

static const struct table_type *const base_tables[] = {
	&table_inputs, &table_ranks, &table_losses, &table_windows, &table_trust, NULL,
};

const struct report_type report_base = {
	.name = "base",
	.help = "inputs, ranks, losses and trust; part of every report",
	.tables = base_tables,
	.end = base_end,
	.finish = base_finish,
};
