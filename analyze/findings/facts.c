/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/findings/internal.h"

#include <math.h>
#include <stdio.h>

const char *span_text(char out[SPAN_TEXT], double ns)
{
	return span_beside(out, ns, ns);
}

const char *span_beside(char out[SPAN_TEXT], double ns, double other_ns)
{
	struct time_unit unit = time_unit_of(fmax(ns, other_ns), 1);
	unsigned decimals = unit.ns < 1e9 && unit.decimals ? 1 : unit.decimals;
	char number[NUMBER_TEXT] = "0";

	/* a small figure gets two digits in the other's unit, with at most three decimals */
	if (decimals && ns < unit.ns)
		decimals = ns < unit.ns / 10 ? 3 : 2;
	if (ns > 0)
		number_text(number, ns / unit.ns, decimals);
	snprintf(out, SPAN_TEXT, "%.26s %s", number, unit.name);
	return out;
}

const char *round_text(char out[NUMBER_TEXT], double count)
{
	return count_text(out, (uint64_t)llround(fmax(count, 0)));
}

const char *many_text(char out[MANY_TEXT], double count, const char *one)
{
	bool whole = count >= 9.5 || fabs(count - round(count)) < 0.05;
	int len = (int)strlen(one);
	const char *end = one[len - 1] == 'y' ? "ies" : "s";

	char number[NUMBER_TEXT];

	if (whole)
		round_text(number, count);
	else
		snprintf(number, sizeof(number), "%.1f", count);
	if (!strcmp(number, "1"))
		snprintf(out, MANY_TEXT, "1 %s", one);
	else
		snprintf(out, MANY_TEXT, "%.30s %.*s%s", number, end[0] == 'i' ? len - 1 : len, one,
			 end);
	return out;
}

/* ---- means ------------------------------------------------------------------------------ */

static bool has_gpu(struct tables *all, const union value *rank)
{
	struct table *gpus = tables_find(all, "gpus");

	for (size_t i = 0; i < table_count(gpus); i++)
		if (!memcmp(table_at(gpus, i), rank, RANK_KEYS * sizeof(*rank)))
			return true;
	return false;
}

/* If there are settling steps, computes the classes of GPU time from the counted steps only. */
static void count_classes(struct facts *f, struct tables *all)
{
	static const struct {
		const char *column;
		size_t at;
	} classes[] = {
		{ "compute_ns", offsetof(struct facts, compute_ns) },
		{ "exposed_comm_ns", offsetof(struct facts, exposed_comm_ns) },
		{ "exposed_copy_ns", offsetof(struct facts, exposed_copy_ns) },
	};
	struct table *t = tables_find(all, "step_gpus"), *steps = tables_find(all, "steps");
	size_t counted = table_column(steps, "counted");
	double share = facts_per_gpu(f, 1) * (double)f->window_steps / (double)f->steps;
	double hidden_ns = f->comm_ns - f->exposed_comm_ns;
	union value *step;

	f->compute_ns = f->exposed_comm_ns = f->exposed_copy_ns = 0;
	for (size_t i = 0; i < table_count(t); i++) {
		const union value *row = table_at(t, i);

		if (table_have(steps, row, &step, NULL) != ST_OK || step[counted].u64 != 1)
			continue;
		for (size_t k = 0; k < sizeof(classes) / sizeof(classes[0]); k++)
			*(double *)(void *)((char *)f + classes[k].at) +=
				(double)row[table_column(t, classes[k].column)].u64 * share;
	}
	f->comm_ns = f->exposed_comm_ns + hidden_ns;
}

struct facts facts_take(struct tables *all)
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
	};
	struct table *ranks = tables_find(all, "ranks");
	struct facts f = { .tables = all, .gpus = table_count(tables_find(all, "gpus")) };
	size_t steps = table_column(ranks, "complete_steps");
	size_t held = table_column(ranks, "window_steps");
	size_t settling = table_column(ranks, "settling_steps");

	for (size_t i = 0; i < table_count(ranks); i++) {
		const union value *row = table_at(ranks, i);

		/* beside ranks with GPUs, one without adds nothing to their sums */
		if (f.gpus && !has_gpu(all, row))
			continue;
		f.ranks++;
		f.steps += row[steps].u64;
		f.window_steps += row[held].u64;
		f.settled_steps += row[held].u64 - row[settling].u64;
	}
	f.steps = f.steps ? f.steps : later(f.ranks, 1);
	f.window_steps = later(f.window_steps, f.steps);
	f.settled_steps = later(f.settled_steps, f.steps);
	double share = f.gpus ? facts_per_gpu(&f, 1) : 0;
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		*(double *)(void *)((char *)&f + sums[i].at) =
			(double)tables_sum(all, "gpus", sums[i].column) * share;
	/* a long run has no row for each step, and its first step matters little */
	if (f.settled_steps < f.window_steps && !tables_sum(all, "steps_summed", "steps"))
		count_classes(&f, all);
	f.launches = (double)tables_sum(all, "trust", "launches") / (double)f.window_steps;
	f.has_launches = tables_sum(all, "trust", "with_launch") > 0;
	f.is_sampled = tables_any(all, "trust", "sampled");
	f.is_damaged = tables_sum(all, "inputs", "unread_bytes") > 0;
	struct table *t = tables_find(f.tables, "steps");
	for (size_t k = 0; k < table_count(t) && !f.has_steps; k++) {
		const union value *row = table_at(t, k);

		f.has_steps = row[table_column(t, "counted")].u64 == 1 &&
			      row[table_column(t, "inferred")].u64 != 1;
	}
	uint64_t counted = tables_sum(all, "step_stats", "counted");
	f.step_ns = counted ? (double)tables_sum(all, "step_stats", "sum_ns") / (double)counted
			    : f.window_ns;
	return f;
}

/* ---- rows ------------------------------------------------------------------------------- */

struct rows {
	struct table *table;
	size_t count, known;
	struct {
		const char *name; /* a literal, compared by address */
		size_t at;
	} columns[8]; /* cache of the columns used so far */
};

static struct rows rows_of(const struct facts *f, const char *name)
{
	struct rows r = { .table = tables_find(f->tables, name), .known = 0 };

	r.count = r.table ? table_count(r.table) : 0;
	return r;
}

static union value cell(struct rows *r, size_t row, const char *column)
{
	size_t i = 0;

	while (i < r->known && r->columns[i].name != column)
		i++;
	if (i == sizeof(r->columns) / sizeof(r->columns[0]))
		return table_at(r->table, row)[table_column(r->table, column)];
	if (i == r->known) {
		r->columns[i].name = column;
		r->columns[r->known++].at = table_column(r->table, column);
	}
	return table_at(r->table, row)[r->columns[i].at];
}

double facts_per_gpu(const struct facts *f, double sum)
{
	double gpus = f->gpus && f->ranks ? (double)f->gpus / (double)f->ranks : 1;

	return sum / (double)f->window_steps / gpus;
}

/* Like facts_per_gpu(), for a sum without settling steps. */
static double per_settled(const struct facts *f, uint64_t sum)
{
	return facts_per_gpu(f, (double)sum) * (double)f->window_steps / (double)f->settled_steps;
}

double facts_gap_per_gpu(const struct facts *f, const struct gap_sum *g, uint64_t sum)
{
	return strcmp(g->part, "span") ? facts_per_gpu(f, (double)sum) : per_settled(f, sum);
}

static bool has(const char *text, const char *word)
{
	return text && strcasestr(text, word);
}

static bool fits(const char *asked, const char *text)
{
	return !asked || (text && !strcmp(asked, text));
}

static bool is_same_gap(const struct gap_sum *a, const struct gap_sum *b)
{
	return a->cause == b->cause && a->phase == b->phase && a->part == b->part &&
	       a->kind == b->kind;
}

/* Adds up the gaps of all ranks: few rows, one for each combination of names. */
enum status facts_gaps_take(struct facts *f, struct error *err)
{
	struct rows r = rows_of(f, "gaps");
	size_t k;

	for (size_t i = 0; i < r.count; i++) {
		struct gap_sum one = { .cause = cell(&r, i, "cause").text,
				       .phase = cell(&r, i, "phase").text,
				       .part = cell(&r, i, "part").text,
				       .kind = cell(&r, i, "kind").text };

		for (k = 0; k < f->gap_count && !is_same_gap(&f->gaps[k], &one); k++)
			;
		if (k == f->gap_count) {
			TRY(vec_reserve(&f->gaps, &f->gap_cap, k + 1, err));
			f->gaps[f->gap_count++] = one;
		}
		f->gaps[k].ns += cell(&r, i, "ns").u64;
		f->gaps[k].count += cell(&r, i, "count").u64;
	}
	return ST_OK;
}

struct amount facts_gaps(const struct facts *f, struct gap_query which)
{
	struct amount sum = { 0, 0, 0, 0, 0 };

	for (size_t i = 0; i < f->gap_count; i++) {
		const struct gap_sum *g = &f->gaps[i];

		if (!fits(which.cause, g->cause) || !fits(which.phase, g->phase) ||
		    !fits(which.part, g->part) || !fits(which.kind, g->kind))
			continue;
		sum.ns += facts_gap_per_gpu(f, g, g->ns);
		sum.count += facts_gap_per_gpu(f, g, g->count);
	}
	return sum;
}

double facts_cause(const struct facts *f, const char *cause)
{
	return facts_gaps(f, (struct gap_query){ .cause = cause }).ns;
}

bool facts_is_outside(const struct facts *f, const char *part)
{
	if (!strcmp(part, "lead"))
		return f->has_steps || f->lead_ns >= LATE_SHARE * f->window_ns;
	if (strcmp(part, "tail") != 0)
		return false;
	return f->has_steps || f->tail_ns >= LATE_SHARE * f->window_ns;
}

struct amount facts_wait(const struct facts *f, struct gap_query which)
{
	static const char *const all[] = { "lead", "span", "tail" };
	struct amount sum = { 0, 0, 0, 0, 0 }, one;

	for (size_t i = 0; i < 3; i++) {
		which.part = all[i];
		if (facts_is_outside(f, all[i]))
			continue;
		one = facts_gaps(f, which);
		sum.ns += one.ns;
		sum.count += one.count;
	}
	return sum;
}

static const char *host_phase(const struct gap_sum *g)
{
	return g->cause && !strncmp(g->cause, "host:", 5) ? g->cause + 5 : NULL;
}

static bool is_known_phase(const char *name)
{
	static const char *const known[] = {
		"forward", "backward", "optimizer", "data", "checkpoint", "validation", "other",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i]))
			return true;
	return false;
}

bool cause_is_own(const char *cause)
{
	return !strncmp(cause, "host:", 5) && !is_known_phase(cause + 5);
}

double facts_own(const struct facts *f, const char **longest)
{
	double sum = 0, most = 0;

	*longest = "";
	for (size_t i = 0; i < f->gap_count; i++) {
		const char *name = host_phase(&f->gaps[i]);
		if (!name || is_known_phase(name) || strcmp(f->gaps[i].kind, "plain") != 0 ||
		    facts_is_outside(f, f->gaps[i].part))
			continue;
		double ns = facts_gap_per_gpu(f, &f->gaps[i], f->gaps[i].ns);
		sum += ns;
		if (ns > most) {
			most = ns;
			*longest = name;
		}
	}
	return sum;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

struct facts_owner facts_owner(const struct facts *f, const char *cause)
{
	struct rows r = rows_of(f, "idle");
	struct facts_owner best = { "", "", "", "", 0, 0 };
	double all = facts_wait(f, (struct gap_query){ .cause = cause }).ns;

	for (size_t i = 0; i < r.count; i++) {
		double ns = facts_per_gpu(f, (double)cell(&r, i, "ns").u64);

		/* more than all time that counts: it lies in the lead or the tail */
		if (strcmp(cell(&r, i, "cause").text, cause) != 0 || ns <= best.ns || ns > all + 1)
			continue;
		best = (struct facts_owner){
			.range = or_empty(cell(&r, i, "range").text),
			.python = or_empty(cell(&r, i, "python").text),
			.call = or_empty(cell(&r, i, "call").text),
			.thread = or_empty(cell(&r, i, "thread").text),
			.ns = ns,
			.count = facts_per_gpu(f, (double)cell(&r, i, "count").u64),
		};
	}
	return best;
}

struct amount facts_operators(const struct facts *f, const char *category)
{
	struct rows r = rows_of(f, "host_operators");
	struct amount sum = { 0, 0, 0, 0, 0 };

	for (size_t i = 0; i < r.count; i++) {
		double count = (double)cell(&r, i, "count").u64 / (double)f->steps;
		double ns = (double)cell(&r, i, "ns").u64 / (double)f->steps;

		if (!fits(category, operator_category(cell(&r, i, "name").text)))
			continue;
		sum.count += count;
		sum.ns += ns;
		if (ns >= count * SHORT_OPERATOR_NS)
			continue;
		sum.short_count += count;
		sum.short_ns += ns;
	}
	return sum;
}

double facts_most_operators(const struct facts *f, const char **category)
{
	struct rows r = rows_of(f, "host_operators");
	struct {
		const char *category;
		double ns;
	} sums[64]; /* more than the categories of operator_category() */
	size_t count = 0, most = 0, k;

	for (size_t i = 0; i < r.count; i++) {
		const char *one = operator_category(cell(&r, i, "name").text);

		if (!strcmp(one, "communication"))
			continue;
		for (k = 0; k < count && strcmp(sums[k].category, one) != 0; k++)
			;
		if (k == sizeof(sums) / sizeof(sums[0]))
			continue;
		if (k == count) {
			sums[count].category = one;
			sums[count++].ns = 0;
		}
		sums[k].ns += (double)cell(&r, i, "ns").u64 / (double)f->steps;
	}
	for (k = 1; k < count; k++)
		most = sums[k].ns > sums[most].ns ? k : most;
	*category = count ? sums[most].category : NULL;
	return count ? sums[most].ns : 0;
}

static struct amount take_work(const struct facts *f, const char *work, const char *phase)
{
	struct rows r = rows_of(f, "work");
	struct amount sum = { 0, 0, 0, 0, 0 };

	for (size_t i = 0; i < r.count; i++) {
		const char *of = cell(&r, i, "work").text;

		if (work ? strcmp(of, work) != 0 : !strcmp(of, BATCHED_WORK))
			continue;
		if (phase && strcmp(cell(&r, i, "phase").text, phase) != 0)
			continue;
		sum.count += per_settled(f, cell(&r, i, "count").u64);
		sum.ns += per_settled(f, cell(&r, i, "ns").u64);
		sum.short_count += per_settled(f, cell(&r, i, "short_count").u64);
		sum.short_ns += per_settled(f, cell(&r, i, "short_ns").u64);
	}
	return sum;
}

struct amount facts_work(const struct facts *f, enum work work, const char *phase)
{
	return take_work(f, work_words[work], phase);
}

struct amount facts_batched(const struct facts *f)
{
	return take_work(f, BATCHED_WORK, NULL);
}

const char *facts_operation(const struct facts *f, double *exposed_ns)
{
	struct rows r = rows_of(f, "comm");
	const char *best = "";

	*exposed_ns = 0;
	for (size_t i = 0; i < r.count; i++) {
		const char *operation = cell(&r, i, "operation").text;
		double sum = 0;

		for (size_t k = 0; k < r.count; k++)
			if (!strcmp(cell(&r, k, "operation").text, operation))
				sum += facts_per_gpu(f, (double)cell(&r, k, "exposed_ns").u64);
		if (sum <= *exposed_ns)
			continue;
		*exposed_ns = sum;
		best = operation;
	}
	return best;
}

struct amount facts_kernels(const struct facts *f, const char *phase)
{
	return take_work(f, NULL, phase);
}

struct facts_kernel facts_top_kernel(const struct facts *f)
{
	struct rows r = rows_of(f, "kernels");
	struct facts_kernel top = { .name = "", .short_name = "" };

	for (size_t i = 0; i < r.count; i++) {
		const char *class = cell(&r, i, "class").text;
		double ns = facts_per_gpu(f, (double)cell(&r, i, "total_ns").u64);

		if (ns <= top.amount.ns || (class && !strcmp(class, "comm")))
			continue;
		top.name = or_empty(cell(&r, i, "name").text);
		top.short_name = or_empty(cell(&r, i, "short").text);
		top.amount.ns = ns;
		top.amount.count = facts_per_gpu(f, (double)cell(&r, i, "count").u64);
	}
	/* the row is of one rank: extrapolate to all */
	top.amount.ns *= f->ranks > 1 ? (double)f->ranks : 1;
	top.amount.count *= f->ranks > 1 ? (double)f->ranks : 1;
	return top;
}

struct amount facts_copies(const struct facts *f, const char *direction, const char *memory)
{
	struct rows r = rows_of(f, "copies");
	struct amount sum = { 0, 0, 0, 0, 0 };

	for (size_t i = 0; i < r.count; i++) {
		const char *from = cell(&r, i, "from").text, *to = cell(&r, i, "to").text;

		if (strcmp(cell(&r, i, "direction").text, direction) != 0)
			continue;
		if (memory && !has(from, memory) && !has(to, memory))
			continue;
		sum.count += facts_per_gpu(f, (double)cell(&r, i, "count").u64);
		sum.ns += facts_per_gpu(f, (double)cell(&r, i, "exposed_ns").u64);
		sum.bytes += facts_per_gpu(f, (double)cell(&r, i, "bytes").u64);
	}
	return sum;
}

double facts_wall(const struct facts *f, const char *phase)
{
	struct rows r = rows_of(f, "phases");
	double sum = 0;

	for (size_t i = 0; i < r.count; i++)
		if (!strcmp(cell(&r, i, "name").text, phase))
			sum += (double)cell(&r, i, "wall_ns").u64;
	return sum / (double)f->steps;
}

bool facts_gpu_is(const struct facts *f, const char *const *words)
{
	struct rows r = rows_of(f, "gpus");

	for (; r.count && *words; words++)
		if (has(cell(&r, 0, "name").text, *words))
			return true;
	return false;
}

const struct peaks *facts_peaks(const struct facts *f)
{
	struct rows r = rows_of(f, "gpus");
	const char *name = r.count ? cell(&r, 0, "name").text : NULL;

	return name ? peaks_find(NULL, &(struct peaks_device){ .name = name }) : NULL;
}

bool owner_has(const struct facts_owner *o, const char *const *words)
{
	for (; *words; words++)
		if (has(o->range, *words) || has(o->call, *words) || has(o->python, *words))
			return true;
	return false;
}
