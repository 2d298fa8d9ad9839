/* SPDX-License-Identifier: Apache-2.0 */
/* Computes verdicts about a recording from facts, trust, losses and windows of all inputs. */
#include "analyze/report/check/internal.h"
#include "analyze/engine/number.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const verdict_words[] = {
#define X(name, word) word,
	VERDICT_LIST(X)
#undef X
};

const struct check_type check_types[CHECKS] = {
#define X(name, meaning) { #name, meaning },
	CHECK_LIST(X)
#undef X
};

/* Returns a buffer for a figure. There are four in rotation, which is enough for one sentence. */
static char *figure_text(void)
{
	static _Thread_local char buffers[4][NUMBER_TEXT];
	static _Thread_local unsigned at;

	return buffers[at++ & 3];
}

static const char *num(uint64_t value)
{
	return count_text(figure_text(), value);
}

static const char *ms(uint64_t ns)
{
	return number_text(figure_text(), (double)ns / 1e6, 1);
}

uint64_t trusted(const struct judge *j, const char *column)
{
	return j->trust[table_column(tables_find(j->all, "trust"), column)].u64;
}

enum verdict conclude(struct judge *j, enum verdict v, uint64_t count, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(j->text, sizeof(j->text), fmt, args);
	va_end(args);
	j->count = count;
	return v;
}

/* Writes the row of a check for these rank keys from the sentence in *j. */
static enum status put_row(struct judge *j, const union value *rank, enum check_place check,
			   const char *of, enum verdict v)
{
	union value keys[RANK_KEYS + 2], *row;

	memcpy(keys, rank, RANK_KEYS * sizeof(*keys));
	keys[CHECK_NAME].text = check_types[check].name;
	keys[CHECK_OF].text = of;
	TRY(table_row(j->checks, keys, &row, j->err));
	row[CHECK_VERDICT].text = verdict_words[v];
	row[CHECK_COUNT].u64 = j->count;
	row[CHECK_TEXT].text = table_text(j->checks, j->text, j->err);
	row[CHECK_MEANING].text = table_text(j->checks, check_types[check].meaning, j->err);
	return row[CHECK_TEXT].text && row[CHECK_MEANING].text ? ST_OK : ST_CEILING;
}

/* ---- one sentence for each rank --------------------------------------------------------- */

static enum verdict judge_closed(struct judge *j)
{
	struct table *inputs = tables_find(j->all, "inputs");
	uint64_t open = fact(j, FACT_not_closed), files = fact(j, FACT_files);
	union value key = { .text = j->facts[FACT_PATH].text }, *row;
	const char *error = NULL;

	if (!open && files > 1)
		return good(j, "all %s inputs are complete", num(files));
	if (!open)
		return good(j, "the input is complete");
	if (key.text && table_have(inputs, &key, &row, NULL) == ST_OK)
		error = row[table_column(inputs, "error")].text;
	if (files > 1)
		return conclude(j, VERDICT_BAD, open, "%s of %s inputs are incomplete%s%.200s",
				num(open), num(files), error ? ": " : "", error ? error : "");
	return conclude(j, VERDICT_BAD, 1,
			error ? "incomplete: %.200s"
			      : "incomplete: the input was not closed, or parts of it are damaged "
				"or of a newer version",
			error);
}

static enum verdict judge_unread(struct judge *j)
{
	uint64_t bytes = fact(j, FACT_unread_bytes);

	if (bytes)
		return conclude(j, VERDICT_BAD, bytes,
				"%s bytes could not be read; no figure includes their events",
				num(bytes));
	if (fact(j, FACT_not_closed))
		return unknown(j, "the input has no end mark: it is unknown how much is missing");
	return good(j, "all bytes were read");
}

static enum verdict judge_sampled(struct judge *j)
{
	uint64_t ids = trusted(j, "ids"), range = trusted(j, "id_range");

	if (!ids)
		return unknown(j, "no GPU event has a correlation id");
	if (trusted(j, "sampled") == 1)
		return conclude(j, VERDICT_BAD, range - ids,
				"the input is a sample: it contains %s of %s correlation ids, "
				"%.2f %%; the GPU may have been busy where it looks idle",
				num(ids), num(range), percent_of(ids, range));
	return good(j, "%s of %s correlation ids are present, %.1f %%", num(ids), num(range),
		    percent_of(ids, range));
}

static enum verdict judge_no_kernels(struct judge *j)
{
	uint64_t kernels = fact(j, FACT_kernels), launches = fact(j, FACT_kernel_launches);

	if (kernels)
		return good(j, "kernels: %s; calls that launch kernels: %s", num(kernels),
			    num(launches));
	if (!launches)
		return unknown(j, "there are no kernels and no calls that launch kernels");
	if (fact(j, FACT_unknown_kinds))
		return conclude(j, VERDICT_DOUBT, launches,
				"%s kernel launches, but no kernels, unless some are among the "
				"events of unknown kinds",
				num(launches));
	if (fact(j, FACT_is_cut))
		return unknown(j, "the filters exclude kernels");
	return conclude(j, VERDICT_BAD, launches,
			"%s kernel launches, but no kernels: the GPU was not recorded",
			num(launches));
}

/* Returns whether events are missing by a filter or a sample, which has its own row. */
bool is_part(const struct judge *j)
{
	return fact(j, FACT_is_cut) || trusted(j, "sampled") == 1;
}

static enum verdict judge_no_launch(struct judge *j)
{
	uint64_t all = trusted(j, "gpu_events"), without = all - trusted(j, "with_launch");

	if (!all)
		return unknown(j, "there are no GPU events");
	if (!without)
		return good(j, "all %s GPU events have a launch", num(all));
	return conclude(
		j, is_part(j) ? VERDICT_UNKNOWN : VERDICT_DOUBT, without,
		"%s of %s GPU events have no launch, %.1f %%; no step or phase includes them",
		num(without), num(all), percent_of(without, all));
}

static enum verdict judge_no_gpu_event(struct judge *j)
{
	uint64_t all = trusted(j, "launches"), without = trusted(j, "without_gpu_event");
	uint64_t fell = trusted(j, "fell_out");
	char more[96] = "";

	if (!all)
		return unknown(j, "there are no calls that launch GPU work");
	if (!without)
		return good(j, "all %s launches have a GPU event", num(all));
	if (fell)
		snprintf(more, sizeof(more),
			 "; %s of them were dropped from memory before their GPU event came",
			 num(fell));
	return conclude(j, is_part(j) ? VERDICT_UNKNOWN : VERDICT_DOUBT, without,
			"%s of %s launches have no GPU event, %.1f %%%s", num(without), num(all),
			percent_of(without, all), more);
}

static enum verdict judge_graphs(struct judge *j)
{
	uint64_t all = fact(j, FACT_graph_launches), few = fact(j, FACT_graphs_short);
	uint64_t missing = fact(j, FACT_graph_events_missing);
	uint64_t unchecked = fact(j, FACT_graphs_unchecked);

	if (!all)
		return unknown(j, "there are no CUDA graph launches with a record for each node");
	if (few)
		return conclude(j, is_part(j) ? VERDICT_UNKNOWN : VERDICT_DOUBT, few,
				"%s of %s graph launches have fewer GPU events than another launch "
				"of the same graph; %s events are missing",
				num(few), num(all), num(missing));
	if (unchecked)
		return unknown(j,
			       "%s graph launches are complete; %s events of further launches were "
			       "not compared",
			       num(all), num(unchecked));
	return good(j, "all %s graph launches have as many GPU events as others of the same graph",
		    num(all));
}

static enum verdict judge_silent(struct judge *j)
{
	union value *rank;
	uint64_t world, kernels = fact(j, FACT_kernels), collectives = fact(j, FACT_collectives);

	if (table_have(tables_find(j->all, "ranks"), j->facts, &rank, j->err) != ST_OK)
		return unknown(j, "the input has no ranks");
	world = rank[table_column(tables_find(j->all, "ranks"), "world_size")].u64;
	if (!world || !kernels)
		return unknown(j, kernels ? "the input does not state the number of ranks"
					  : "there are no kernels");
	if (world == 1)
		return good(j, "a single rank does not communicate");
	if (collectives)
		return good(j, "this is one of %s ranks; it has %s communication kernels",
			    num(world), num(collectives));
	return conclude(j, is_part(j) ? VERDICT_UNKNOWN : VERDICT_DOUBT, kernels,
			"this is one of %s ranks, but none of its kernels is known to communicate; "
			"if one does, its time counts as compute, and --phases can name it",
			num(world));
}

static enum verdict judge_clock(struct judge *j)
{
	uint64_t anchors = fact(j, FACT_anchors), steps = fact(j, FACT_clock_steps);

	if (anchors < 2)
		return unknown(j, "the input has no clock anchors to compare");
	if (steps)
		return conclude(j, VERDICT_DOUBT, steps,
				"the wall clock was set: %s of %s anchors differ, by at most "
				"%s ms; do not compare hosts by time",
				num(steps), num(anchors), ms(fact(j, FACT_clock_most_ns)));
	return good(j, "the wall clock was never set, according to %s anchors", num(anchors));
}

static enum verdict judge_bounds(struct judge *j)
{
	uint64_t outside = fact(j, FACT_outside);

	if (!fact(j, FACT_windows))
		return unknown(j, "the input does not list its windows");
	if (outside)
		return conclude(j, VERDICT_DOUBT, outside,
				"host events that begin outside their window: %s, by at most %s "
				"ms; a clock may have been set",
				num(outside), ms(fact(j, FACT_outside_most_ns)));
	return good(j, "all host events begin inside their window");
}

/* Returns by how many percent the recorder's steps are longer than those around them. */
static double slower_steps(struct judge *j, char *more, size_t cap)
{
	uint64_t around = fact(j, FACT_steps_around), recorded = fact(j, FACT_steps_recorded);

	if (!around || !recorded)
		return 0;
	uint64_t around_ns = fact(j, FACT_steps_around_ns) / around;
	uint64_t recorded_ns = fact(j, FACT_steps_recorded_ns) / recorded;
	double percent = around_ns ? 100.0 * ((double)recorded_ns / (double)around_ns - 1) : 0;
	snprintf(more, cap,
		 "; the median step took %s ms inside the window and %s ms around it, %+.1f %%, "
		 "over %s and %s steps",
		 number_text((char[NUMBER_TEXT]){ 0 }, (double)recorded_ns / 1e6, 3),
		 number_text((char[NUMBER_TEXT]){ 0 }, (double)around_ns / 1e6, 3), percent,
		 num(recorded), num(around));
	return percent;
}

static enum verdict judge_own_cost(struct judge *j)
{
	enum { DOUBT_FROM = 1, BAD_FROM = 10, SLOWER = 10 }; /* percent of the window; of a step */
	uint64_t window = fact(j, FACT_window_ns), own = fact(j, FACT_own_ns);
	double percent = percent_of(own, window), slower;
	char more[128] = "", steps[192] = "";

	if (fact(j, FACT_tracer_events))
		snprintf(more, sizeof(more), "; the tracer wrote %s overhead records of %s ms",
			 num(fact(j, FACT_tracer_events)), ms(fact(j, FACT_tracer_ns)));
	if (trusted(j, "own_cost_known") != 1)
		return unknown(
			j,
			"the input does not state the cost of recording%s; host times may be too "
			"high",
			more);
	slower = slower_steps(j, steps, sizeof(steps));
	return conclude(j,
			percent >= BAD_FROM                         ? VERDICT_BAD
			: percent >= DOUBT_FROM || slower >= SLOWER ? VERDICT_DOUBT
								    : VERDICT_GOOD,
			own, "recording used %s ms of %s ms, %.2f %%%s%s", ms(own), ms(window),
			percent, steps, more);
}

static enum verdict judge_unknown_kinds(struct judge *j)
{
	uint64_t events = fact(j, FACT_unknown_kinds), newer = fact(j, FACT_newer);

	if (events + newer)
		return conclude(j, VERDICT_DOUBT, events + newer,
				"this version does not know the kinds of %s events and %s other "
				"records; no figure includes them",
				num(events), num(newer));
	return good(j, "all records are of known kinds");
}

static enum verdict judge_epoch(struct judge *j)
{
	uint64_t count = fact(j, FACT_no_epoch);

	if (count)
		return conclude(j, VERDICT_DOUBT, count,
				"times do not count from the Unix epoch: do not compare them with "
				"other inputs");
	return good(j, "times count from the Unix epoch");
}

static enum verdict judge_synthetic(struct judge *j)
{
	uint64_t count = fact(j, FACT_synthetic);

	if (count)
		return conclude(j, VERDICT_DOUBT, count,
				"the input was made by a generator: its figures were not measured");
	return good(j, "the input is not marked as generated");
}

/* These have one row for each window, reason or attribute, or depend on another report. */
#define judge_windows  NULL
#define judge_losses   NULL
#define judge_models   NULL
#define judge_recorder NULL
static enum verdict (*const judges[CHECKS])(struct judge *j) = {
#define X(name, meaning) judge_##name,
	CHECK_LIST(X)
#undef X
};

/* ---- windows ---------------------------------------------------------------------------- */

static enum verdict judge_window(struct judge *j, const union value *window,
				 const union value *span)
{
	struct table *windows = tables_find(j->all, "windows");
	const char *spec = window[table_column(windows, "spec")].text;
	bool is_short = window[table_column(windows, "cut_short")].u64 == 1;
	uint64_t steps = span[SPAN_STEPS].u64;
	char got[NUMBER_TEXT * 2];
	const char *took = ms(span[SPAN_END].u64 - span[SPAN_BEGIN].u64);

	if (steps)
		snprintf(got, sizeof(got), "%s step%s, %s ms", num(steps), steps == 1 ? "" : "s",
			 took);
	else
		snprintf(got, sizeof(got), "no marked step, %s ms", took);
	spec = spec && spec[0] ? spec : "an unknown window";
	if (!fact(j, FACT_windows))
		return unknown(j, "the input does not state the requested window; recorded: %s",
			       got);
	if (span[SPAN_OPEN].u64)
		return conclude(j, VERDICT_DOUBT, 1,
				"requested: %.80s; recorded: %s, and the window was not closed",
				spec, got);
	if (is_short)
		return conclude(j, VERDICT_DOUBT, 1,
				"requested: %.80s; recorded: %s, because the window was cut short",
				spec, got);
	return good(j, "requested: %.80s; recorded: %s", spec, got);
}

/* Writes a row for each window. `of` counts the windows of a rank from 1. */
static enum status judge_all_windows(struct judge *j)
{
	struct table *windows = tables_find(j->all, "windows");
	struct table *spans = tables_find(j->all, "check_windows");
	struct table *facts = tables_find(j->all, "check_facts");
	union value *window, *span, *row, *last = NULL;
	char of[NUMBER_TEXT];
	uint64_t number = 0;

	for (size_t i = 0; (window = table_at(windows, i)); i++) {
		TRY(table_have(spans, window, &span, j->err));
		TRY(table_have(facts, window, &row, j->err));
		number = row == last ? number + 1 : 1;
		last = row;
		row[FACT_windows_held].u64++;
		j->facts = row;
		snprintf(of, sizeof(of), "%04u", (unsigned)number);
		TRY(put_row(j, window, OF_windows, of, judge_window(j, window, span)));
	}
	return ST_OK;
}

/* ---- losses ----------------------------------------------------------------------------- */

enum { LOSS_BAD_PERCENT = 1 };
/* Reasons with another text than "missing". */
static const struct {
	const char *reason;
	enum verdict verdict;
	const char *text;
} loss_rows[] = {
	{ "derived", VERDICT_GOOD, "of flows that only repeat correlation ids were omitted" },
	{ "cut_out", VERDICT_GOOD, "omitted because of an option" },
	{ "unread", VERDICT_GOOD, "of tables that this version does not read" },
	{ "order", VERDICT_DOUBT, "moved, because they were out of time order" },
	{ "summed", VERDICT_DOUBT, "merged because of --max-size" },
	{ "disk", VERDICT_BAD, "not written: the disk was full or --max-disk was reached" },
	{ "damaged", VERDICT_BAD, "damaged" },
	{ "no_time", VERDICT_DOUBT, "omitted, because their times are not usable" },
	{ "cupti", VERDICT_DOUBT, "dropped by CUPTI" },
	{ "ring", VERDICT_DOUBT, "lost, because the ring of a thread was full" },
	{ "buffer", VERDICT_DOUBT, "lost, because no buffer was free" },
	{ "ceiling", VERDICT_DOUBT, "lost, because a memory limit was reached" },
	{ "death", VERDICT_DOUBT,
	  "or more of the GPU's last second are missing: CUPTI held them when the process died" },
};

static enum verdict judge_loss(struct judge *j, const char *reason, uint64_t count)
{
	uint64_t events = j->ranks[table_column(tables_find(j->all, "ranks"), "events")].u64;
	double percent = percent_of(count, events + count);
	size_t i, rows = sizeof(loss_rows) / sizeof(loss_rows[0]);

	for (i = 0; i < rows && strcmp(loss_rows[i].reason, reason) != 0; i++)
		;
	if (i == rows)
		return conclude(j, VERDICT_DOUBT, count, "%s record%s missing: %s", num(count),
				count == 1 ? "" : "s", reason);
	/* after a death the number is unknown, and so is its share */
	if (loss_rows[i].verdict == VERDICT_GOOD || !strcmp(reason, "death"))
		return conclude(j, loss_rows[i].verdict, count, "%s record%s %s", num(count),
				count == 1 ? "" : "s", loss_rows[i].text);
	return conclude(j, percent >= LOSS_BAD_PERCENT ? VERDICT_BAD : loss_rows[i].verdict, count,
			"%s record%s %s; %s%.2f %% of all", num(count), count == 1 ? "" : "s",
			loss_rows[i].text, percent < 0.005 ? "<" : "",
			percent < 0.005 ? 0.01 : percent);
}

static enum status judge_losses_of(struct judge *j)
{
	struct table *losses = tables_find(j->all, "losses");
	struct table *facts = tables_find(j->all, "check_facts");
	struct table *ranks = tables_find(j->all, "ranks");
	size_t reason = table_column(losses, "reason"), count = table_column(losses, "count");
	union value *loss, *row;

	for (size_t i = 0; (loss = table_at(losses, i)); i++) {
		TRY(table_have(facts, loss, &row, j->err));
		j->facts = row;
		TRY(table_have(ranks, loss, &row, j->err));
		j->ranks = row;
		enum verdict v = judge_loss(j, loss[reason].text, loss[count].u64);
		TRY(put_row(j, loss, OF_losses, loss[reason].text, v));
		TRY(table_have(facts, loss, &row, j->err));
		row[FACT_lost].u64 += v != VERDICT_GOOD;
	}
	return ST_OK;
}

/* ---- the recorder's own words ----------------------------------------------------------- */

static const struct metadata {
	const char *key;
	enum verdict verdict;
	const char *before, *after;
} metadata_rows[] = {
	{ "cupti_problem", VERDICT_BAD, "the GPU could not be recorded: ", "" },
	{ "cupti_absent", VERDICT_GOOD, "no GPU was recorded: ", "" },
	{ "cupti_doubts", VERDICT_DOUBT, "", "" },
	{ "cupti_warnings", VERDICT_DOUBT, "known problems of this CUPTI version: ", "" },
	{ "ignored_calls", VERDICT_DOUBT, "",
	  " calls were ignored: ends without a begin, repeated begins, samples outside a window, "
	  "or steps while the recorder did not respond" },
	{ "hang", VERDICT_DOUBT, "hung: ", " (--report hang)" },
	{ "recorder_took", VERDICT_GOOD, "the recorder process used ", "" },
	{ "nvtx_note", VERDICT_GOOD, "", "" },
	{ "saved_why", VERDICT_GOOD, "flight recorder: ", "" },
	{ "saved_tail", VERDICT_DOUBT, "", "" },
};

enum { METADATA_ROWS = sizeof(metadata_rows) / sizeof(metadata_rows[0]) };

const char *check_metadata_key(size_t index)
{
	return index < METADATA_ROWS ? metadata_rows[index].key : NULL;
}

/* ---- all -------------------------------------------------------------------------------- */

/* More FLOPs than the GPU's peak show that the operator's model is wrong. */
static enum status judge_operators(struct judge *j)
{
	struct table *t = tables_find(j->all, "operator_shapes");
	uint64_t over = 0, modelled = 0;
	const char *name = "";
	union value *row;

	for (size_t i = 0; t && (row = table_at(t, i)); i++) {
		uint64_t peak_ps = row[table_column(t, "compute_ps")].u64;

		if (memcmp(row, j->facts, RANK_KEYS * sizeof(*row)) != 0 || !peak_ps)
			continue;
		modelled++;
		if (peak_ps / 1000 > row[table_column(t, "gpu_ns")].u64) {
			over++;
			name = row[table_column(t, "name")].text;
		}
	}
	if (!modelled)
		return ST_OK;
	return put_row(j, j->facts, OF_models, "",
		       over ? conclude(j, VERDICT_DOUBT, over,
				       "%s of %s operators exceed the GPU's peak, for example "
				       "%.100s: their FLOP model or the peak is wrong",
				       num(over), num(modelled), name)
			    : good(j, "no operator exceeds the GPU's peak"));
}

static enum status judge_rank(struct judge *j)
{
	union value *row;

	TRY(table_have(tables_find(j->all, "trust"), j->facts, &row, j->err));
	j->trust = row;
	for (size_t i = 0; i < CHECKS; i++)
		if (judges[i])
			TRY(put_row(j, j->facts, (enum check_place)i, "", judges[i](j)));
	TRY(judge_operators(j));
	/* Windows without events are in no other table. */
	uint64_t named = fact(j, FACT_windows), held = fact(j, FACT_windows_held);
	if (held < named && !fact(j, FACT_is_cut)) {
		TRY(put_row(j, j->facts, OF_windows, "empty",
			    conclude(j, VERDICT_DOUBT, named - held,
				     "%s of %s windows have no events", num(named - held),
				     num(named))));
	}
	if (fact(j, FACT_lost))
		return ST_OK;
	enum verdict v =
		trusted(j, "counts_losses") == 1
			? good(j, "the recorder counted no losses")
			: unknown(j, "the input does not state the losses of its recorder");
	return put_row(j, j->facts, OF_losses, "", v);
}

enum status check_judge(struct tables *all, struct error *err)
{
	struct judge j = { .all = all, .checks = tables_find(all, "checks"), .err = err };
	struct table *facts = tables_find(all, "check_facts");

	TRY(judge_losses_of(&j));
	TRY(judge_all_windows(&j));
	struct table *metadata = tables_find(j.all, "check_told");
	const union value *row;
	for (size_t i = 0; (row = table_at(metadata, i)); i++) {
		const struct metadata *of = &metadata_rows[0];
		const struct metadata other = { NULL, VERDICT_DOUBT, "",
						"" }; /* from a newer Tacho */

		while (of < metadata_rows + METADATA_ROWS &&
		       strcmp(of->key, row[METADATA_KEY].text) != 0)
			of++;
		of = of < metadata_rows + METADATA_ROWS ? of : &other;
		TRY(put_row(&j, row, OF_recorder, row[METADATA_KEY].text,
			    conclude(&j, of->verdict, of->verdict != VERDICT_GOOD, "%s%.800s%s",
				     of->before, row[METADATA_TEXT].text, of->after)));
	}
	for (size_t i = 0; i < table_count(facts); i++) {
		j.facts = table_at(facts, i);
		TRY(judge_rank(&j));
	}
	return ST_OK;
}

uint64_t check_bad(const struct tables *all)
{
	struct table *rows = tables_find(all, "checks");
	uint64_t bad = 0;

	for (size_t i = 0; rows && i < table_count(rows); i++)
		bad += table_at(rows, i)[CHECK_VERDICT].text == verdict_words[VERDICT_BAD];
	return bad;
}
