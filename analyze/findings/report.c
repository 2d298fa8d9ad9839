/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict (DEFINITIONS.md 8) and what to change first (rule.h). The accumulator counts kernels
 * by phase and kind of work; everything else comes from the tables of other reports. */
#include "analyze/findings/internal.h"
#include "analyze/report/shared.h"
#include "analyze/report/replay/log.h"
#include "analyze/report/report_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	FOUND_RULE = 1,
	FOUND_ABOUT,
	FOUND_SAVING,
	FOUND_MOST,
	FOUND_REPLAYED,
	FOUND_EDITS,
	FOUND_SHARE,
	FOUND_EVIDENCE,
	FOUND_ADVICE,
	FOUND_BEHIND,
	FOUND_WHERE,
	FOUND_BRIEF
};
#define FINDING_COLUMNS(X)                                                                         \
	X(FINDING_PLACE, "place", NULL, U64, KEY, "position in the list; 1: fix it first")         \
	X(FINDING_RULE, "rule", "rule", TEXT, KEY, "name of the rule; see --explain RULE")         \
	X(FINDING_ABOUT, "about", "about", TEXT, MAX, "subject of the rule in a few words")        \
	X(FINDING_SAVING_NS_PER_STEP, "saving_ns_per_step", "saving", U64, MAX,                    \
	  "saving per step of this finding alone, by replay; without a replay most_ns_per_step; "  \
	  "0: it saves memory, not time")                                                          \
	X(FINDING_MOST_NS_PER_STEP, "most_ns_per_step", "time", U64, MAX,                          \
	  "time per step that the finding is about; a change may save less or more than it")       \
	X(FINDING_REPLAYED, "is_replayed", NULL, BOOL, MAX, "the saving comes from a replay")      \
	X(FINDING_EDITS, "edits", NULL, TEXT, MAX, "replayed edits as in --what-if; null: none")   \
	X(FINDING_SHARE_OF_STEP, "share_of_step", "%", F64, DERIVED,                               \
	  "saving / mean wall time of a step", .of = "step")                                       \
	X(FINDING_EVIDENCE, "evidence", "evidence", TEXT, MAX, "what the recording shows")         \
	X(FINDING_ADVICE, "advice", "advice", TEXT, MAX, "what to change")                         \
	X(FINDING_BEHIND, "behind", NULL, WORDS, MAX, "keys of the figures that it uses")          \
	X(FINDING_WHERE, "where", "where", TEXT, MAX,                                              \
	  "places in the model that take most of the time; empty: unknown")                        \
	X(FINDING_BRIEF, "brief", NULL, TEXT, DERIVED, "the evidence in a few words")
static TABLE(findings, FINDING_COLUMNS, .null_texts = "edits", .is_finished = true);

#define WORK_COLUMNS(X)                                                                            \
	X(WORK_PHASE = RANK_KEYS, "phase", NULL, TEXT, KEY, "phase of the launches")               \
	X(WORK_WORK, "work", NULL, TEXT, KEY, "kind of work of the kernels, by their names")       \
	X(WORK_COUNT_, "count", NULL, U64, SUM, "number of kernels")                               \
	X(WORK_NS, "ns", NULL, U64, SUM, "total duration of the kernels")                          \
	X(WORK_SHORT, "short_count", NULL, U64, SUM,                                               \
	  "kernels shorter than 10 us, or 50 us if they communicate")                              \
	X(WORK_SHORT_NS, "short_ns", NULL, U64, SUM, "total duration of the short kernels")
static RANK_TABLE(work, &table_ranks, WORK_COLUMNS, .nest = NEST_NEVER);

#define GAP_COLUMNS(X)                                                                             \
	X(GAP_CAUSE = RANK_KEYS, "cause", NULL, TEXT, KEY, "idle cause, as in idle_causes")        \
	X(GAP_PHASE, "phase", NULL, TEXT, KEY, "phase of the launched work; null: not launched")   \
	X(GAP_PART, "part", NULL, TEXT, KEY,                                                       \
	  "lead: before the first mark; tail: after the last mark; span: between them")            \
	X(GAP_KIND, "kind", NULL, TEXT, KEY,                                                       \
	  "zero: fills with zeros; search: for unused parameters; long: call over 1 ms; plain")    \
	X(GAP_NS, "ns", NULL, U64, SUM, "time in which the GPU is not busy")                       \
	X(GAP_COUNT, "count", NULL, U64, SUM, "number of idle segments")
static RANK_TABLE(gaps, &table_ranks, GAP_COLUMNS, .nest = NEST_NEVER, .null_texts = "phase");

/* ---- accumulator ------------------------------------------------------------------------ */

struct sums {
	uint64_t count, ns, short_count, short_ns;
};
struct process_work {
	struct sums at[2][SWEEP_PHASES][WORK_COUNT + 1]; /* [1]: settling; the last: BATCHED_WORK */
	size_t row;                                      /* cursor into step_list */
};

enum { PART_SETTLING = PART_TAIL + 1, PARTS, CAUSE_ROWS = CAUSE_COUNT * SWEEP_PHASES };
enum gap_kind { GAP_PLAIN, GAP_ZERO, GAP_SEARCH, GAP_LONG, GAP_KINDS };
struct gap_sums {
	uint64_t ns, count;
};
struct process_gaps {
	struct gap_sums at[CAUSE_ROWS][PARTS][GAP_KINDS];
	size_t row; /* cursor into step_list */
};
struct findings {
	struct process_work **processes; /* by process id; NULL: no kernels */
	struct process_gaps **gaps;      /* by process id; NULL: no gaps */
	uint8_t *kind_of_range;          /* by name of a range: 0: not cached, else 1 + gap_kind */
	struct points *points;
	struct log *logs; /* by process id */
	uint32_t process_count, name_count;
};

static enum status findings_begin(struct accumulator *f, struct error *err)
{
	struct findings *s = f->state;

	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	s->name_count = trace_count(f->trace, TRACE_NAMES);
	s->processes = calloc((size_t)s->process_count + 1, sizeof(*s->processes));
	s->gaps = calloc((size_t)s->process_count + 1, sizeof(*s->gaps));
	s->kind_of_range = calloc((size_t)s->name_count + 1, 1);
	if (!s->processes || !s->gaps || !s->kind_of_range)
		return fail_memory(err);
	TRY(logs_open(&s->logs, f, err));
	return points_open(&s->points, f, replayed_places, REPLAYED_PLACES, err);
}

static void findings_release(struct accumulator *f)
{
	struct findings *s = f->state;

	for (uint32_t i = 0; s->processes && i <= s->process_count; i++)
		free(s->processes[i]);
	for (uint32_t i = 0; s->gaps && i <= s->process_count; i++)
		free(s->gaps[i]);
	free(s->processes);
	free(s->gaps);
	free(s->kind_of_range);
	logs_close(s->logs);
	points_close(s->points);
}

/* Returns whether an instant lies in a settling step or outside of steps, if there are settling
 * steps. */
static bool is_apart(const struct step_list *steps, size_t *cursor, uint64_t at_ns)
{
	if (!steps->rows || !steps->count || !steps->rows[0].is_settling)
		return false;
	size_t row = steps_at(steps, at_ns, cursor);

	return row == steps->count || steps->rows[row].is_settling ||
	       at_ns >= steps->rows[row].mark_end_ns;
}

/* Classifies annotations and operators that zero gradients, and DDP's search for unused
 * parameters. */
static enum gap_kind kind_of_range(struct accumulator *f, uint32_t name)
{
	static const struct {
		const char *part;
		enum gap_kind kind;
	} parts[] = {
		{ "zero_grad", GAP_ZERO },
		{ "aten::fill_", GAP_ZERO },
		{ "aten::zero_", GAP_ZERO },
		{ "_foreach_zero_", GAP_ZERO },
		{ "search_unused_parameters", GAP_SEARCH },
	};
	struct findings *s = f->state;
	size_t i = 0, count = sizeof(parts) / sizeof(parts[0]);

	if (name <= s->name_count && s->kind_of_range[name])
		return (enum gap_kind)(s->kind_of_range[name] - 1);
	const char *text = trace_text(f->trace, name, NULL);
	while (i < count && !strstr(text, parts[i].part))
		i++;
	enum gap_kind kind = i < count ? parts[i].kind : GAP_PLAIN;
	if (name <= s->name_count)
		s->kind_of_range[name] = (uint8_t)(kind + 1);
	return kind;
}

static enum gap_kind kind_of(struct accumulator *f, const struct idle_segment *p)
{
	bool launched = p->cause == CAUSE_LAUNCH || p->cause == CAUSE_DISPATCH;

	if ((launched || p->cause == CAUSE_HOST) && p->range) {
		enum gap_kind kind = kind_of_range(f, p->range);

		if (kind == GAP_SEARCH || (kind == GAP_ZERO && p->phase == PHASE_OPTIMIZER))
			return kind;
	}
	bool calls = p->cause == CAUSE_LAUNCH || p->cause == CAUSE_ALLOCATOR;

	return calls && p->end_ns - p->begin_ns >= LONG_CALL_NS ? GAP_LONG : GAP_PLAIN;
}

/* Splits an idle segment at the bounds of marks into lead, tail, steps and settling steps. Lead is
 * before the first mark and tail after the last one of a window; time between marks belongs to the
 * step before. A mark is known once it has begun. */
static void cut_gap(const struct step_list *steps, const struct idle_segment *p, size_t *row,
		    uint64_t ns[PARTS])
{
	for (uint64_t from_ns = p->begin_ns, to_ns; from_ns < p->end_ns; from_ns = to_ns) {
		size_t i = steps->rows ? steps_at(steps, from_ns, row) : 0;
		bool is_in = steps->rows && i < steps->count;
		const struct step_row none = { .begin_ns = 0 },
				      *step = is_in ? &steps->rows[i] : &none;
		size_t next = is_in ? i + 1 : 0;
		size_t part = step->is_settling && !step->is_out ? PART_SETTLING : PART_SPAN;

		to_ns = steps->rows && next < steps->count ? steps->rows[next].begin_ns
							   : UINT64_MAX;
		bool is_between = p->part == PART_LEAD ? is_in && step->begin_ns >= p->gap_begin_ns
						       : to_ns < p->gap_end_ns;
		if (step->mark_end_ns > from_ns)
			to_ns = earlier(to_ns, step->mark_end_ns);
		else if (p->part != PART_SPAN && !is_between)
			part = p->part;
		to_ns = earlier(to_ns, p->end_ns);
		ns[part] += to_ns - from_ns;
	}
}

static enum status put_gap(struct accumulator *f, const struct idle_segment *p, struct error *err)
{
	struct findings *s = f->state;
	uint32_t process = sweep_gpu(f->sweep, p->gpu).process;
	size_t row = (size_t)p->cause * SWEEP_PHASES + p->phase;
	uint64_t ns[PARTS] = { 0 };

	if (process > s->process_count || !acc_wants(f, process))
		return ST_OK;
	if (!s->gaps[process])
		s->gaps[process] = calloc(1, sizeof(*s->gaps[process]));
	if (!s->gaps[process])
		return fail_memory(err);
	struct gap_sums(*parts)[GAP_KINDS] = s->gaps[process]->at[row];
	enum gap_kind kind = kind_of(f, p);
	cut_gap(&f->steps[process], p, &s->gaps[process]->row, ns);
	for (size_t i = 0; i < PARTS; i++) {
		parts[i][kind].ns += ns[i];
		parts[i][kind].count += ns[i] > 0;
	}
	return ST_OK;
}

static enum status findings_put(struct accumulator *f, const struct sorted_batch *w,
				struct error *err)
{
	struct findings *s = f->state;
	const struct batch_events *kernels = &w->by[BATCH_KERNELS];
	struct point point;

	for (size_t i = 0; i < w->idle_count; i++)
		TRY(put_gap(f, &w->idle[i], err));
	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		TRY(points_take(s->points, f, e, &point, err));
		if (point.type != POINT_NONE && acc_wants(f, acc_process(f, e->track)))
			TRY(logs_put(s->logs, f, s->points, e, &point, err));
	}
	for (size_t i = 0; i < kernels->count; i++) {
		const struct event *e = kernels->items[i];
		uint32_t process = acc_process(f, e->track);
		uint64_t ns = e->end_ns - e->begin_ns;
		bool is_batched;
		enum work work = points_work(s->points, f, e, &is_batched);

		if (process > s->process_count || !acc_wants(f, process))
			continue;
		if (!s->processes[process])
			s->processes[process] = calloc(1, sizeof(*s->processes[process]));
		if (!s->processes[process])
			return fail_memory(err);
		bool apart = is_apart(&f->steps[process], &s->processes[process]->row, e->begin_ns);
		struct sums *all = s->processes[process]->at[apart][e->phase], *at = &all[work];
		at->count++;
		at->ns += ns;
		if (is_batched) {
			all[WORK_COUNT].count++;
			all[WORK_COUNT].ns += ns;
		}
		if (ns >= (work == WORK_COMM ? 5 : 1) * SHORT_KERNEL_NS)
			continue;
		at->short_count++;
		at->short_ns += ns;
	}
	return ST_OK;
}

static enum status end_process(struct accumulator *f, uint32_t process, bool apart,
			       struct error *err)
{
	struct findings *s = f->state;
	unsigned phases = context_phase_count(f->context);
	union value keys[WORK_WORK + 1], *row;

	for (unsigned phase = 0; phase < phases && phase < SWEEP_PHASES; phase++)
		for (unsigned work = 0; work <= WORK_COUNT; work++) {
			const struct sums *at = &s->processes[process]->at[apart][phase][work];

			if (!at->count)
				continue;
			keys[WORK_PHASE].text = context_phase(f->context, phase).name;
			keys[WORK_WORK].text = work < WORK_COUNT ? work_words[work] : BATCHED_WORK;
			TRY(acc_row(f, "work", process, keys, &row, err));
			row[WORK_COUNT_].u64 += at->count;
			row[WORK_NS].u64 += at->ns;
			row[WORK_SHORT].u64 += at->short_count;
			row[WORK_SHORT_NS].u64 += at->short_ns;
		}
	return ST_OK;
}

static bool settling_counts(const struct step_list *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		if (steps->rows[i].is_settling && steps->rows[i].is_counted)
			return true;
	return steps->is_inferred;
}

static enum status end_gap(struct accumulator *f, uint32_t process, size_t at, bool counts,
			   struct error *err)
{
	static const char *const parts[] = { "lead", "span", "tail", "span" };
	static const char *const kinds[] = { "plain", "zero", "search", "long" };
	struct findings *s = f->state;
	enum cause cause = (enum cause)(at / SWEEP_PHASES);
	unsigned phase = (unsigned)(at % SWEEP_PHASES), part, kind;
	bool launched = cause >= CAUSE_GRAPH_INTERNAL && cause <= CAUSE_DISPATCH;
	union value keys[GAP_KIND + 1], *row;
	char text[512];

	for (part = 0; part < PARTS; part++)
		for (kind = 0; kind < GAP_KINDS; kind++) {
			const struct gap_sums *sums = &s->gaps[process]->at[at][part][kind];

			if (!sums->count || (part == PART_SETTLING && !counts))
				continue;
			cause_text(f, cause, phase, text, sizeof(text));
			keys[GAP_CAUSE].text = text;
			keys[GAP_PHASE].text =
				launched ? context_phase(f->context, phase).name : NULL;
			keys[GAP_PART].text = parts[part];
			keys[GAP_KIND].text = kinds[kind];
			TRY(acc_row(f, "gaps", process, keys, &row, err));
			row[GAP_NS].u64 += sums->ns;
			row[GAP_COUNT].u64 += sums->count;
		}
	return ST_OK;
}

static enum status findings_end(struct accumulator *f, struct error *err)
{
	struct findings *s = f->state;

	bool offloads = false;

	for (uint32_t i = 1; i <= s->process_count; i++) {
		bool counts = settling_counts(&f->steps[i]);

		offloads |= points_offload(s->points, i);
		for (int apart = 0; s->processes[i] && apart < (counts ? 2 : 1); apart++)
			TRY(end_process(f, i, apart, err));
		for (size_t at = 0; s->gaps[i] && at < CAUSE_ROWS; at++)
			TRY(end_gap(f, i, at, counts, err));
	}
	TRY(logs_end(s->logs, f, err));
	return traits_end(f, offloads, err);
}

/* ---- findings --------------------------------------------------------------------------- */

static bool has_bound(const struct facts *f, const struct found *all, size_t count)
{
	while (count && all[count - 1].finding.family != f->bound)
		count--;
	return count > 0;
}

static size_t look(const struct facts *f, const struct rule *rules_of, struct found *all,
		   size_t count)
{
	for (const struct rule *rules = rules_of; rules->name && count < FOUND_MAX; rules++) {
		struct found *one = &all[count];

		one->rule = rules;
		one->finding = (struct finding){ .advice = rules->advice, .family = rules->family };
		if (!f->gpus && rules_of != rules_cpu && !rules->needs_no_gpu)
			continue;
		if (rules->needs_trust && (f->is_sampled || f->is_damaged))
			continue;
		if (rules->is_last && (f->bound != rules->family || has_bound(f, all, count)))
			continue;
		if (!rule_look(f, rules, &one->finding))
			continue;
		if (one->finding.saving_ns > 0 && one->finding.saving_ns < SHARE_LEAST * f->step_ns)
			continue;
		/* no change inside of steps saves more than a step */
		if (f->has_steps && one->finding.family != FAMILY_NONE)
			one->finding.saving_ns = fmin(one->finding.saving_ns, f->step_ns);
		count++;
	}
	return count;
}

static int compare_found(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;

	if (a->saving_ns != b->saving_ns)
		return a->saving_ns > b->saving_ns ? -1 : 1;
	if (a->finding.saving_ns != b->finding.saving_ns)
		return a->finding.saving_ns > b->finding.saving_ns ? -1 : 1;
	return strcmp(a->rule->name, b->rule->name);
}

/* Sorts by savings, except that the first one belongs to the verdict's family. Savings that differ
 * by less than 1 % of a step, the error of a replay, are ordered by the time they are about. */
static void sort_found(const struct facts *f, struct found *all, size_t count)
{
	const struct found *first = NULL;

	qsort(all, count, sizeof(*all), compare_found);
	for (size_t i = 0, most = count; f->bound != FAMILY_NONE && i < count; i++) {
		if (all[i].finding.family != f->bound)
			continue;
		if (most == count)
			most = i;
		if (all[most].saving_ns - all[i].saving_ns <= 0.01 * found_of(f, &all[i]) &&
		    (!first || all[i].finding.saving_ns > first->finding.saving_ns))
			first = &all[i];
	}
	if (!first)
		return;
	struct found moved = *first;
	memmove(all + 1, all, (size_t)(first - all) * sizeof(*all));
	all[0] = moved;
}

/* Returns the unit for all savings and places on a page: that of the step they are shares of. */
static struct time_unit unit_of(const struct facts *f, const struct found *all, size_t count)
{
	double whole_ns = 0;

	for (size_t i = 0; i < count; i++)
		if (all[i].saving_ns > 0)
			whole_ns = fmax(whole_ns, fmax(all[i].saving_ns, found_of(f, &all[i])));
	return time_unit_of(whole_ns > 0 ? whole_ns : f->step_ns, 1);
}

static enum status put_found(const struct facts *f, const struct found *one, size_t place,
			     struct error *err)
{
	struct table *t = tables_find(f->tables, "findings");
	union value keys[2] = { { .u64 = place }, { .text = one->rule->name } }, *row;
	char evidence[FINDING_TEXT], where[WHERE_TEXT];

	TRY(table_row(t, keys, &row, err));
	row[FOUND_SAVING].u64 = (uint64_t)llround(one->saving_ns);
	row[FOUND_MOST].u64 = (uint64_t)llround(one->finding.saving_ns);
	row[FOUND_REPLAYED].u64 = one->is_replayed;
	row[FOUND_EDITS].text = *one->edits ? table_text(t, one->edits, err) : NULL;
	row[FOUND_SHARE].f64 = 100 * fmin(one->saving_ns / found_of(f, one), 1);
	row[FOUND_ABOUT].text = table_text(t, one->rule->help, err);
	/* Without marked steps the sentences refer to the window, not to a step. */
	const char *said = one->finding.evidence;
	static const char per[] = " a step";
	const char *at;
	size_t len = 0;

	while (!f->has_steps && (at = strstr(said, per)) &&
	       len + (size_t)(at - said) + 16 < FINDING_TEXT) {
		bool of = at - said >= 3 && !memcmp(at - 3, " of", 3);

		len += (size_t)snprintf(evidence + len, FINDING_TEXT - len, "%.*s%s",
					(int)(at - said), said,
					of ? " the window" : " in the window");
		said = at + sizeof(per) - 1;
	}
	snprintf(evidence + len, FINDING_TEXT - len, "%s", said);
	row[FOUND_EVIDENCE].text = table_text(t, evidence, err);
	row[FOUND_ADVICE].text = table_text(t, one->finding.advice, err);
	row[FOUND_BEHIND].text = table_text(t, one->rule->figures, err);
	TRY(places_text(f, one->rule, &one->finding, where, err));
	row[FOUND_WHERE].text = table_text(t, where, err);
	row[FOUND_BRIEF].text = table_text(t, one->finding.brief, err);
	return row[FOUND_BRIEF].text ? ST_OK : ST_CEILING;
}

static void facts_release(struct facts *f)
{
	replayed_close(f->replayed);
	free(f->gaps);
}

static enum status findings_finish(struct tables *all, struct error *err)
{
	RELEASED_BY(facts_release) struct facts f = facts_take(all);
	RELEASED_BY(vec_release) struct found *found = NULL;
	size_t count;

	TRY(vec_new(&found, FOUND_MAX, err));
	TRY(facts_gaps_take(&f, err));
	TRY(replayed_open(&f.replayed, all, err));
	f.lead_ns = facts_part(&f, "lead");
	f.tail_ns = facts_part(&f, "tail");
	TRY(verdict_put(&f, err));
	count = look(&f, f.gpus ? rules_host : rules_cpu, found, 0);
	count = look(&f, rules_ranks, found, count);
	count = look(&f, rules_gpu, found, count);
	count = look(&f, rules_health, found, count);
	TRY(found_replay(&f, found, count, err));
	if (!f.gpus)
		f.bound = verdict_of_cpu(found, count, FAMILY_NONE, NULL);
	sort_found(&f, found, count);
	f.unit = unit_of(&f, found, count);
	TRY(together_put(&f, found, count, err));
	TRY(what_if_next(&f, err));
	for (size_t i = 0; i < count; i++)
		TRY(put_found(&f, &found[i], i + 1, err));
	return f.gpus ? ST_OK : verdict_tell_cpu(&f, found, count, err);
}

static const struct table_type *const findings_tables[] = {
	&table_findings, &table_together,   &table_verdict,
	&table_families, &table_work,       &table_gaps,
	&table_traits,   &table_replay_log, NULL,
};
static const struct report_type *const findings_with[] = {
	&report_summary, &report_phases, &report_steps, &report_kernels, &report_copies,
	&report_idle,    &report_memory, &report_comm,  &report_ranks,   &report_host,
	&report_places,  &report_health, NULL,
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
