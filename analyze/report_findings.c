/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict (DEFINITIONS.md 8) and what to change first (rule.h).  Its fold counts kernels by
 * phase and by what they do; all else comes from the tables of the other reports.
 */
#include "analyze/rule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOUND_RULE = 1, FOUND_ABOUT, FOUND_SAVING, FOUND_SHARE, FOUND_EVIDENCE, FOUND_ADVICE, FOUND_BEHIND };
static const struct column finding_columns[] = {
	{ "place", NULL, CELL_U64, KEY, NULL, "1: the largest saving" },
	{ "rule", "rule", CELL_TEXT, KEY, NULL, "what was looked for; see --explain RULE" },
	{ "about", "about", CELL_TEXT, MAX, NULL, "the rule in a few words" },
	{ "saving_ns_per_step", "saving at most", CELL_U64, MAX, NULL,
	  "upper bound; savings overlap and do not add up; 0: no time, but memory" },
	{ "share_of_step", "%", CELL_F64, DERIVED, "step", "saving / mean wall of a step" },
	{ "evidence", "evidence", CELL_TEXT, MAX, NULL, "what was seen" },
	{ "advice", "advice", CELL_TEXT, MAX, NULL, "what to change" },
	{ "behind", NULL, CELL_WORDS, MAX, NULL, "keys of the figures that it rests on" },
	{ .name = NULL },
};
static const struct table_type table_findings = {
	.name = "findings", .member = "findings", .columns = finding_columns,
};

enum { VERDICT_BOUND = 1, VERDICT_NS, VERDICT_SHARE, VERDICT_SENTENCE, VERDICT_MORE };
static const struct column verdict_columns[] = {
	{ "of", NULL, CELL_TEXT, KEY, NULL, "the run" },
	{ "bound", "bound by", CELL_TEXT, MAX, NULL,
	  "INPUT, HOST, SYNC, COMPILE, COMM, COPY, COMPUTE, NO GPU, or NO VERDICT" },
	{ "ns_per_step", NULL, CELL_U64, MAX, NULL, "of the family that bounds it" },
	{ "share", "%", CELL_F64, DERIVED, "window", "that family's part of the window" },
	{ "sentence", "sentence", CELL_TEXT, MAX, NULL, "with its two figures" },
	{ "more", NULL, CELL_TEXT, MAX, NULL, "the next; null: nothing" },
	{ .name = NULL },
};
static const struct table_type table_verdict = {
	.name = "verdict", .member = "verdict", .nest = NEST_OBJECT, .columns = verdict_columns,
};

enum { WORK_PHASE = RANK_KEYS, WORK_WORK, WORK_COUNT_, WORK_NS, WORK_SHORT, WORK_SHORT_NS };
static const struct column work_columns[] = {
	RANK_COLUMNS,
	{ "phase", NULL, CELL_TEXT, KEY, NULL, "in which they were launched" },
	{ "work", NULL, CELL_TEXT, KEY, NULL, "what they do, by their names" },
	{ "count", NULL, CELL_U64, SUM, NULL, "kernels" },
	{ "ns", NULL, CELL_U64, SUM, NULL, "their time" },
	{ "short_count", NULL, CELL_U64, SUM, NULL,
	  "shorter than 10 us, communication than 50 us" },
	{ "short_ns", NULL, CELL_U64, SUM, NULL, "their time" },
	{ .name = NULL },
};
static const struct table_type table_work = {
	.name = "work", .member = "work", .under = &table_ranks, .nest = NEST_NEVER,
	.columns = work_columns,
};

/* ---- fold ------------------------------------------------------------------------------- */

struct sums {
	uint64_t count, ns, short_count, short_ns;
};
struct process_work {
	struct sums at[SWEEP_PHASES][WORK_COUNT];
};
struct findings {
	struct process_work **processes; /* by process id; NULL: no kernel */
	uint8_t *work_of_name;           /* work + 1; 0: not asked */
	uint32_t process_count, name_count;
};

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for findings");
}

static enum status findings_begin(struct fold *f, struct error *err)
{
	struct findings *s = f->state;

	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	s->name_count = trace_count(f->trace, TRACE_NAMES);
	s->processes = calloc((size_t)s->process_count + 1, sizeof(*s->processes));
	s->work_of_name = calloc((size_t)s->name_count + 1, 1);
	return s->processes && s->work_of_name ? ST_OK : no_memory(err);
}

static void findings_release(struct fold *f)
{
	struct findings *s = f->state;
	uint32_t i;

	for (i = 0; s->processes && i <= s->process_count; i++)
		free(s->processes[i]);
	free(s->processes);
	free(s->work_of_name);
}

static enum work work_of_event(struct fold *f, const struct event *e)
{
	struct findings *s = f->state;
	uint8_t *known = e->name <= s->name_count ? &s->work_of_name[e->name] : NULL;
	enum work work;

	if (e->kind == KIND_GRAPH)
		return WORK_GRAPH;
	if (known && *known)
		return (enum work)(*known - 1);
	work = sweep_communicates(f->sweep, e->name)
		       ? WORK_COMM
		       : work_of(trace_text(f->trace, e->name, NULL));
	if (known)
		*known = (uint8_t)(work + 1);
	return work;
}

static enum status put_kernel(struct fold *f, const struct event *e, struct error *err)
{
	struct findings *s = f->state;
	uint32_t process = trace_get_track(f->trace, e->track)->process;
	uint64_t ns = e->end_ns - e->begin_ns;
	enum work work = work_of_event(f, e);
	struct sums *at;

	if (process > s->process_count || !fold_wants(f, process))
		return ST_OK;
	if (!s->processes[process])
		s->processes[process] = calloc(1, sizeof(*s->processes[process]));
	if (!s->processes[process])
		return no_memory(err);
	at = &s->processes[process]->at[e->phase][work];
	at->count++;
	at->ns += ns;
	if (ns >= (work == WORK_COMM ? 5 : 1) * SHORT_KERNEL_NS)
		return ST_OK;
	at->short_count++;
	at->short_ns += ns;
	return ST_OK;
}

static enum status findings_put(struct fold *f, const struct warm *w, struct error *err)
{
	size_t i;

	for (i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		if ((e->kind == KIND_KERNEL || e->kind == KIND_GRAPH) &&
		    !(e->flags & EVENT_BEGAN_EARLIER))
			TRY(put_kernel(f, e, err));
	}
	return ST_OK;
}

static enum status end_process(struct fold *f, uint32_t process, struct error *err)
{
	struct findings *s = f->state;
	unsigned phases = step_phase_count(f->step), phase, work;
	union value keys[WORK_WORK + 1], *row;

	for (phase = 0; phase < phases && phase < SWEEP_PHASES; phase++)
		for (work = 0; work < WORK_COUNT; work++) {
			const struct sums *at = &s->processes[process]->at[phase][work];

			if (!at->count)
				continue;
			keys[WORK_PHASE].text = step_phase(f->step, phase).name;
			keys[WORK_WORK].text = work_word((enum work)work);
			TRY(fold_row(f, "work", process, keys, &row, err));
			row[WORK_COUNT_].u64 += at->count;
			row[WORK_NS].u64 += at->ns;
			row[WORK_SHORT].u64 += at->short_count;
			row[WORK_SHORT_NS].u64 += at->short_ns;
		}
	return ST_OK;
}

static enum status findings_end(struct fold *f, struct error *err)
{
	struct findings *s = f->state;
	uint32_t i;

	for (i = 1; i <= s->process_count; i++)
		if (s->processes[i])
			TRY(end_process(f, i, err));
	return ST_OK;
}

/* ---- facts ------------------------------------------------------------------------------ */

static double column_sum(struct tables *all, const char *table, const char *column)
{
	struct table *t = tables_find(all, table);
	size_t count = t ? table_count(t) : 0, at = t ? table_column(t, column) : 0, i;
	double sum = 0;

	for (i = 0; i < count; i++)
		sum += (double)table_at(t, i)[at].u64;
	return sum;
}

static bool any_true(struct tables *all, const char *table, const char *column)
{
	struct table *t = tables_find(all, table);
	size_t count = t ? table_count(t) : 0, at = t ? table_column(t, column) : 0, i;

	for (i = 0; i < count; i++)
		if (table_at(t, i)[at].u64 == 1)
			return true;
	return false;
}

static void take_steps(struct facts *f)
{
	struct table *t = tables_find(f->tables, "steps");
	size_t i, counted = 0;
	double wall = 0;

	for (i = 0; i < table_count(t); i++) {
		const union value *row = table_at(t, i);

		if (row[table_column(t, "counted")].u64 != 1)
			continue;
		counted++;
		wall += (double)row[table_column(t, "wall_ns")].u64;
		f->has_steps |= row[table_column(t, "inferred")].u64 != 1;
	}
	f->step_ns = counted ? wall / (double)counted : f->window_ns;
}

static struct facts facts_take(struct tables *all)
{
	static const struct {
		const char *column;
		size_t at;
	} sums[] = {
		{ "window_ns", offsetof(struct facts, window_ns) },
		{ "compute_ns", offsetof(struct facts, compute_ns) },
		{ "comm_ns", offsetof(struct facts, comm_ns) },
		{ "exposed_comm_ns", offsetof(struct facts, exposed_comm_ns) },
		{ "exposed_copy_ns", offsetof(struct facts, exposed_copy_ns) },
		{ "idle_ns", offsetof(struct facts, idle_ns) },
		{ "not_busy_ns", offsetof(struct facts, not_busy_ns) },
		{ "lead_ns", offsetof(struct facts, lead_ns) },
		{ "tail_ns", offsetof(struct facts, tail_ns) },
	};
	struct facts f = { .tables = all, .ranks = table_count(tables_find(all, "ranks")),
			   .gpus = table_count(tables_find(all, "gpus")) };
	double share;
	size_t i;

	f.steps = (uint64_t)column_sum(all, "ranks", "complete_steps");
	f.steps = f.steps ? f.steps : f.ranks ? f.ranks : 1;
	share = f.gpus ? (double)f.ranks / (double)f.gpus / (double)f.steps : 0;
	for (i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		*(double *)(void *)((char *)&f + sums[i].at) =
			column_sum(all, "gpus", sums[i].column) * share;
	f.launches = column_sum(all, "trust", "launches") / (double)f.steps;
	f.is_sampled = any_true(all, "trust", "sampled");
	f.is_damaged = column_sum(all, "inputs", "unread_bytes") > 0;
	take_steps(&f);
	return f;
}

/* ---- verdict ---------------------------------------------------------------------------- */

#define BOUND_SHARE 0.1

struct family {
	const char *bound, *sentence;
	double ns;
};

static enum status put_verdict(struct table *t, const char *bound, double ns, double share,
			       const char *sentence, const char *more, struct error *err)
{
	union value key = { .text = "run" }, *row;

	TRY(table_row(t, &key, &row, err));
	row[VERDICT_NS].u64 = ns > 0 ? (uint64_t)llround(ns) : 0;
	row[VERDICT_SHARE].f64 = share;
	row[VERDICT_BOUND].text = table_text(t, bound, err);
	row[VERDICT_SENTENCE].text = table_text(t, sentence, err);
	row[VERDICT_MORE].text = more && more[0] ? table_text(t, more, err) : NULL;
	return row[VERDICT_BOUND].text && row[VERDICT_SENTENCE].text ? ST_OK : ST_CEILING;
}

static void take_families(const struct facts *f, struct family families[6])
{
	double host = facts_host(f) + facts_cause(f, "launch") + facts_cause(f, "dispatch") +
		      facts_cause(f, "allocator") + facts_cause(f, "gc");
	struct family all[6] = {
		{ "INPUT", "waits for the data loader %s of every %s step.", facts_cause(f, "data") },
		{ "HOST", "waits %s of every %s step because launches come too late.", host },
		{ "SYNC", "waits %s of every %s step because the host waited for it.",
		  facts_cause(f, "sync") },
		{ "COMPILE", "waits %s of every %s step for compilation.",
		  facts_cause(f, "compile") },
		{ "COMM", "communicates %s of every %s step with no compute beside it.",
		  f->exposed_comm_ns },
		{ "COPY", "copies %s of every %s step with no compute beside it.",
		  f->exposed_copy_ns + facts_cause(f, "blocking_copy") },
	};

	memcpy(families, all, sizeof(all));
}

static const char *subject(const struct facts *f, char out[32])
{
	struct table *t = tables_find(f->tables, "gpus");
	uint64_t device = table_at(t, 0)[RANK_KEYS].u64;

	if (f->gpus > 1)
		snprintf(out, 32, "A GPU");
	else if (device && device != NO_U64)
		snprintf(out, 32, "GPU %llu", (unsigned long long)device);
	else
		snprintf(out, 32, "The GPU");
	return out;
}

static void tell(const struct facts *f, const struct family *one, char out[FINDING_TEXT])
{
	char a[SPAN_TEXT], b[SPAN_TEXT], who[32], what[300], step[96];
	const char *end = strstr(one->sentence, "%s of every %s step");

	span_text(a, one->ns);
	span_text(b, f->step_ns);
	/* lead and tail may be longer than the steps: then the window is the whole */
	snprintf(step, sizeof(step), "%s of every %s step", a, b);
	if (!f->has_steps || one->ns > f->step_ns)
		snprintf(step, sizeof(step), "%s of the window's %s%s", a,
			 span_text(b, f->window_ns), f->has_steps ? " a step" : "");
	snprintf(what, sizeof(what), "%.*s%s%s", (int)(end - one->sentence), one->sentence, step,
		 end + strlen("%s of every %s step"));
	snprintf(out, FINDING_TEXT, "%s %s", subject(f, who), what);
}

static enum status judge(struct facts *f, struct error *err)
{
	struct table *t = tables_find(f->tables, "verdict");
	struct family families[6];
	char sentence[FINDING_TEXT], more[FINDING_TEXT] = "";
	size_t i, best = 0, next = 6;

	if (!f->gpus || f->window_ns <= 0)
		return put_verdict(t, "NO GPU", 0, NAN,
				   "No GPU event in this file: host phases only.", NULL, err);
	if (f->is_sampled || f->is_damaged)
		return put_verdict(t, "NO VERDICT", 0, NAN,
				   f->is_sampled ? "The file is a sample: what looks idle may be busy."
						 : "The file is damaged: what is missing may decide.",
				   NULL, err);
	take_families(f, families);
	for (i = 1; i < 6; i++)
		best = families[i].ns > families[best].ns ? i : best;
	for (i = 0; i < 6; i++)
		if (i != best && families[i].ns >= BOUND_SHARE * f->window_ns &&
		    (next == 6 || families[i].ns > families[next].ns))
			next = i;
	if (families[best].ns < BOUND_SHARE * f->window_ns) {
		char who[32];

		snprintf(sentence, sizeof(sentence), "%s computes %.1f %% of the window.",
			 subject(f, who), 100 * f->compute_ns / f->window_ns);
		return put_verdict(t, "COMPUTE", f->compute_ns, 100 * f->compute_ns / f->window_ns,
				   sentence, NULL, err);
	}
	tell(f, &families[best], sentence);
	if (next < 6)
		tell(f, &families[next], more);
	return put_verdict(t, families[best].bound, families[best].ns,
			   100 * families[best].ns / f->window_ns, sentence, more, err);
}

/* ---- findings --------------------------------------------------------------------------- */

#define SHARE_LEAST 0.005 /* of a step: below nobody should spend a day on it */
enum { FOUND_MAX = 64 };

struct found {
	const struct rule *rule;
	struct finding finding;
};

static size_t look(const struct facts *f, const struct rule *rules, struct found *all,
		   size_t count)
{
	for (; rules->name && count < FOUND_MAX; rules++) {
		struct found *one = &all[count];

		one->rule = rules;
		one->finding = (struct finding){ .advice = rules->advice };
		if (rules->needs_trust && (f->is_sampled || f->is_damaged))
			continue;
		if (!rules->look(f, &one->finding))
			continue;
		if (one->finding.saving_ns > 0 &&
		    one->finding.saving_ns < SHARE_LEAST * f->step_ns)
			continue;
		count++;
	}
	return count;
}

static int compare_found(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;

	if (a->finding.saving_ns != b->finding.saving_ns)
		return a->finding.saving_ns > b->finding.saving_ns ? -1 : 1;
	return strcmp(a->rule->name, b->rule->name);
}

/* Without marked steps the window is the whole that a sentence speaks of. */
static void tell_whole(const struct facts *f, const char *said, char out[FINDING_TEXT])
{
	static const char per[] = " a step";
	const char *at;
	size_t len = 0;

	while (!f->has_steps && (at = strstr(said, per)) && len + (size_t)(at - said) + 16 <
		FINDING_TEXT) {
		bool of = at - said >= 3 && !memcmp(at - 3, " of", 3);

		len += (size_t)snprintf(out + len, FINDING_TEXT - len, "%.*s%s", (int)(at - said),
					said, of ? " the window" : " in the window");
		said = at + sizeof(per) - 1;
	}
	snprintf(out + len, FINDING_TEXT - len, "%s", said);
}

static enum status put_found(const struct facts *f, const struct found *one, size_t place,
			     struct error *err)
{
	struct table *t = tables_find(f->tables, "findings");
	union value keys[2] = { { .u64 = place }, { .text = one->rule->name } }, *row;
	char evidence[FINDING_TEXT];

	TRY(table_row(t, keys, &row, err));
	row[FOUND_SAVING].u64 = (uint64_t)llround(one->finding.saving_ns);
	row[FOUND_SHARE].f64 = 100 * fmin(one->finding.saving_ns / f->step_ns, 1);
	row[FOUND_ABOUT].text = table_text(t, one->rule->help, err);
	tell_whole(f, one->finding.evidence, evidence);
	row[FOUND_EVIDENCE].text = table_text(t, evidence, err);
	row[FOUND_ADVICE].text = table_text(t, one->finding.advice, err);
	row[FOUND_BEHIND].text = table_text(t, one->rule->behind, err);
	return row[FOUND_BEHIND].text ? ST_OK : ST_CEILING;
}

static enum status findings_finish(struct tables *all, struct error *err)
{
	struct facts f = facts_take(all);
	struct found *found = calloc(FOUND_MAX, sizeof(*found));
	enum status status;
	size_t count, i;

	if (!found)
		return no_memory(err);
	status = judge(&f, err);
	count = f.gpus ? look(&f, rules_host, found, 0) : 0;
	count = f.gpus ? look(&f, rules_gpu, found, count) : 0;
	count = f.gpus ? look(&f, rules_ranks, found, count) : 0;
	qsort(found, count, sizeof(*found), compare_found);
	for (i = 0; i < count && status == ST_OK; i++)
		status = put_found(&f, &found[i], i + 1, err);
	free(found);
	return status;
}

static const struct table_type *const findings_tables[] = {
	&table_findings, &table_verdict, &table_work, NULL,
};
static const struct report_type *const findings_with[] = {
	&report_summary, &report_phases, &report_steps, &report_kernels, &report_copies,
	&report_idle, &report_memory, NULL,
};

const struct report_type report_findings = {
	.name = "findings",
	.help = "what bounds the run, and what to change first",
	.tables = findings_tables,
	.with = findings_with,
	.state_size = sizeof(struct findings),
	.begin = findings_begin,
	.put = findings_put,
	.end = findings_end,
	.release = findings_release,
	.finish = findings_finish,
};
