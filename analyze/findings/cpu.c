/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for jobs without a GPU, where the time of the step thread is the length of a step. */
#include "analyze/findings/internal.h"

#include "analyze/report/shared.h"
#include "convert/stage/collective.h"
#include "schemas/base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Least shares of a step: any loop has smaller ones. */
#define PHASE_LEAST 0.05
#define OTHER_LEAST 0.2
#define APART_LEAST 1.2 /* a rank with more than this times the mean is named */

static bool is_rank(const union value *a, const union value *b)
{
	return !memcmp(a, b, RANK_KEYS * sizeof(*a));
}

/* Returns the complete steps of a rank, or 0. */
static double steps_of(const struct facts *f, const union value *rank)
{
	struct table *t = tables_find(f->tables, "ranks");
	union value *row;

	return table_have(t, rank, &row, NULL) == ST_OK
		       ? (double)row[table_column(t, "complete_steps")].u64
		       : 0;
}

/* Returns the rank that spends most of a phase per step, and how much; NULL: unknown. */
static const union value *most_of(const struct facts *f, const char *name, double *most_ns)
{
	struct table *t = tables_find(f->tables, "phases");
	size_t wall = t ? table_column(t, "wall_ns") : 0;
	const union value *row, *most = NULL;

	*most_ns = 0;
	for (size_t i = 0; t && (row = table_at(t, i)); i++) {
		double ns = (double)row[wall].u64 / fmax(steps_of(f, row), 1);

		if (strcmp(row[RANK_KEYS].text, name) != 0 || row[0].u64 == NO_U64 ||
		    ns <= *most_ns)
			continue;
		most = row;
		*most_ns = ns;
	}
	return most;
}

/* Describes the time of a phase. If ranks differ, it names the one with most, because the others
 * wait for it. */
static bool phase(const struct facts *f, const char *name, double ns, const char *evidence,
		  double least, struct finding *out)
{
	double most_ns;
	const union value *most = most_of(f, name, &most_ns);
	char a[SPAN_TEXT], b[SPAN_TEXT], rank[32];

	if (ns < least * f->step_ns)
		return false;
	if (f->ranks > 1 && strcmp(name, "other") && most && most_ns > APART_LEAST * ns) {
		snprintf(rank, sizeof(rank), "rank %llu", (unsigned long long)most[0].u64);
		rule_tell(out,
			  "The step thread of %s %s for %s of a step, that of the average rank for "
			  "%s.",
			  rank, evidence, span_beside(a, most_ns, ns), span_beside(b, ns, most_ns));
		rule_brief(out, "%s of %s on %s", a, name, rank);
	} else {
		rule_tell(out, "The step thread %s for %s of a step.", evidence, span_text(a, ns));
		rule_brief(out, "%s of %s", a, name);
	}
	return rule_saves(out, ns);
}

static bool input(const struct facts *f, struct finding *out)
{
	const char *loader = facts_loader_advice(f);

	out->advice = loader ? loader : out->advice;
	return phase(f, "data", facts_wall(f, "data"), "waits for or prepares input", PHASE_LEAST,
		     out);
}

static bool validation(const struct facts *f, struct finding *out)
{
	return phase(f, "validation", facts_wall(f, "validation"),
		     "runs validation, or forward passes without gradients,", PHASE_LEAST, out);
}

static bool communicates(const char *name)
{
	return backend_operation(name) || !strcmp(name, "communication");
}

static bool checkpoint(const struct facts *f, struct finding *out)
{
	return phase(f, "checkpoint", facts_wall(f, "checkpoint"), "saves checkpoints", PHASE_LEAST,
		     out);
}

static double collections_of(const struct facts *f)
{
	return (double)tables_sum(f->tables, "host_time", "gc_ns") / (double)f->steps;
}

/* ---- operators -------------------------------------------------------------------------- */

#define SHORT_PIECE_NS 100e3 /* longer code between two operators is not overhead */

/* Returns the time of a step between operators if it is in many short pieces, otherwise 0. */
static double between_operators(const struct facts *f, struct amount all)
{
	double all_ns, exposed_ns = facts_host_comm(f, &all_ns);
	double ns = f->step_ns - all.ns - exposed_ns - collections_of(f) - facts_wall(f, "data") -
		    facts_wall(f, "validation") - facts_wall(f, "checkpoint");

	return ns < SHORT_PIECE_NS * all.count ? fmax(ns, 0) : 0;
}

/* Typical of models made of many small tensors, and of Python loops over elements. */
static bool small_operators(const struct facts *f, struct finding *out)
{
	struct amount all = facts_operators(f, NULL);
	double between = between_operators(f, all);
	char a[SPAN_TEXT], b[SPAN_TEXT], n[MANY_TEXT];

	if (all.short_count < all.count / 2 || all.short_ns + between < OTHER_LEAST * f->step_ns)
		return false;
	rule_tell(out,
		  "%s a step take less than 20 \xc2\xb5s each, %s in total; the code between "
		  "operators takes %s of a step.",
		  many_text(n, all.short_count, "operator"), span_beside(a, all.short_ns, between),
		  span_beside(b, between, all.short_ns));
	rule_brief(out, "%s, %s between", n, b);
	if (facts_has(f, TRAIT_COMPILED))
		out->advice = "avoid graph breaks (TORCH_LOGS=graph_breaks), write loops over "
			      "elements as one operator, or use a larger batch";
	return rule_saves(out, all.short_ns + between);
}

/* Advice by what the operators compute. */
static const struct {
	const char *category, *words, *advice;
} kinds[] = {
	{ "convolution", "Convolutions",
	  "use channels_last (memory_format), bf16 (torch.autocast('cpu')) and one thread a core "
	  "(torch.set_num_threads); else a GPU" },
	{ "gemm", "Matrix products",
	  "use bf16 (torch.autocast('cpu')), a larger batch and one thread a core "
	  "(torch.set_num_threads); else a GPU" },
	{ "attention", "Attention",
	  "use scaled_dot_product_attention, bf16 and one thread a core (torch.set_num_threads)" },
	{ "optimizer", "The optimizer's operators", "use fused=True or foreach=True" },
	{ "random", "Random numbers",
	  "draw them once before the loop, or fewer of them; fuse dropout (torch.compile)" },
	{ "copy", "Copies",
	  "avoid .contiguous(), cat() and changes of type or layout in the loop" },
	{ "indexing", "Indexing and sorting", "index whole tensors once, not in a loop" },
	{ "embedding", "Embeddings",
	  "use sparse=True, or EmbeddingBag in place of Embedding and sum" },
	{ "compiled", "Compiled functions",
	  "avoid graph breaks (TORCH_LOGS=graph_breaks), try mode='max-autotune', bf16 "
	  "(torch.autocast('cpu')) or a larger batch" },
	{ NULL, "Operators of one kind",
	  "fuse them (torch.compile); use bf16 (torch.autocast('cpu')) and one thread a core "
	  "(torch.set_num_threads)" },
};

struct operator_time {
	const char *name;
	double ns; /* per step */
};

/* Returns the two names with most time over all ranks; false: none has this category, or no
 * memory. */
static bool longest_two(const struct facts *f, const char *category, struct operator_time *out)
{
	struct table *t = tables_find(f->tables, "host_operators");
	size_t time = t ? table_column(t, "ns") : 0, count = 0, names = 0;
	RELEASED_BY(vec_release) struct operator_time *all = NULL;
	const union value *row;

	if (vec_new(&all, table_count(t), NULL) != ST_OK)
		return false;
	for (size_t i = 0; (row = table_at(t, i)); i++)
		if (!strcmp(operator_category(row[RANK_KEYS].text), category))
			all[count++] =
				(struct operator_time){ row[RANK_KEYS].text,
							(double)row[time].u64 / (double)f->steps };
	SORT_BY(all, count, UP(struct operator_time, name), DOWN(struct operator_time, ns));
	for (size_t i = 0; i < count; i++)
		if (names && !strcmp(all[names - 1].name, all[i].name))
			all[names - 1].ns += all[i].ns;
		else
			all[names++] = all[i];
	SORT_BY(all, names, DOWN(struct operator_time, ns), UP(struct operator_time, name));
	for (size_t i = 0; i < 2; i++)
		out[i] = i < names ? all[i] : (struct operator_time){ NULL, 0 };
	return names > 0;
}

static bool operators(const struct facts *f, struct finding *out)
{
	const char *category = NULL;
	double most = facts_most_operators(f, &category);
	struct operator_time by_time[2];
	char a[SPAN_TEXT], b[SPAN_TEXT], c[SPAN_TEXT], name[CUT_TEXT];
	size_t kind = 0;

	if (most < OTHER_LEAST * f->step_ns || !longest_two(f, category, by_time))
		return false;
	while (kinds[kind].category && strcmp(kinds[kind].category, category) != 0)
		kind++;
	rule_tell(out, "%s take %s of a step, %.0f %% of it, on the CPU: %s %s", kinds[kind].words,
		  span_text(a, most), 100 * fmin(most / f->step_ns, 1),
		  cut_text(name, by_time[0].name, 60), span_beside(b, by_time[0].ns, most));
	if (by_time[1].name && by_time[1].ns >= 0.1 * most)
		rule_tell(out, ", %s %s", cut_text(name, by_time[1].name, 60),
			  span_beside(c, by_time[1].ns, most));
	rule_tell(out, ".");
	rule_brief(out, "%s in %s", a, cut_text(name, by_time[0].name, 27));
	snprintf(out->operators, OPERATORS_TEXT, OPERATORS_PREFIX "%s", category);
	out->operators_ns = most;
	out->advice = kinds[kind].advice;
	if (!kinds[kind].category && facts_has(f, TRAIT_COMPILED))
		out->advice = "move them into the compiled code (fewer graph breaks); use bf16 "
			      "(torch.autocast('cpu')) and one thread a core "
			      "(torch.set_num_threads)";
	if (!strcmp(category, "random") && !strstr(by_time[0].name, "dropout") &&
	    (facts_has(f, TRAIT_LOADER_ALONE) || facts_has(f, TRAIT_LOADER_WORKERS)))
		out->advice = "draw them once before the loop, or in the loader's workers";
	/* assumed: optimized operators take two thirds of the time */
	return rule_saves(out, most / 3);
}

/* Waiting for collectives outside of phases has its own finding, so it is subtracted here. */
static bool loop(const struct facts *f, struct finding *out)
{
	struct table *t = tables_find(f->tables, "phases");
	size_t wall = t ? table_column(t, "wall_ns") : 0;
	double all, comm_ns = facts_host_comm(f, &all);
	const union value *row;

	strcpy(out->operators, OPERATORS_PREFIX "code");
	/* a memory snapshot has no times of the host */
	if (between_operators(f, facts_operators(f, NULL)) > 0 ||
	    tables_sum(f->tables, "snapshot", "segments"))
		return false;
	for (size_t i = 0; (row = table_at(t, i)); i++)
		if (communicates(row[RANK_KEYS].text))
			comm_ns -= (double)row[wall].u64 / (double)f->steps;
	if (facts_has(f, TRAIT_FRAMES))
		out->advice = "shorten it, do it less often, or on another thread";
	out->operators_ns = facts_wall(f, "other") - fmax(comm_ns, 0) - collections_of(f);
	return phase(f, "other", out->operators_ns, "runs code outside of all phases", OTHER_LEAST,
		     out);
}

static bool collections(const struct facts *f, struct finding *out)
{
	double ns = collections_of(f);
	char a[SPAN_TEXT];

	rule_tell(out, "Python's garbage collector stops the process for %s of a step.",
		  span_text(a, ns));
	rule_brief(out, "%s of collections", a);
	return rule_saves(out, ns);
}

/* ---- a slow rank ------------------------------------------------------------------------ */

/* Returns the phase, except communication, in which the rank exceeds the others' mean by most. */
static const char *phase_over(const struct facts *f, const union value *rank, double *over_ns)
{
	struct table *t = tables_find(f->tables, "phases");
	size_t wall = t ? table_column(t, "wall_ns") : 0, count = table_count(t);
	const char *most = NULL;

	*over_ns = 0;
	for (size_t i = 0; i < count; i++) {
		const union value *own = table_at(t, i);
		const char *name = own[RANK_KEYS].text;
		double others = 0;

		if (!is_rank(own, rank) || communicates(name))
			continue;
		for (size_t k = 0; k < count; k++) {
			const union value *row = table_at(t, k);

			if (!is_rank(row, rank) && !strcmp(row[RANK_KEYS].text, name))
				others += (double)row[wall].u64 / fmax(steps_of(f, row), 1);
		}
		double over = (double)own[wall].u64 / fmax(steps_of(f, own), 1) -
			      others / (double)(f->ranks - 1);
		if (over <= *over_ns)
			continue;
		*over_ns = over;
		most = name;
	}
	return most;
}

/* The rank that communicates least is the one for which the others wait. */
static bool straggler(const struct facts *f, struct finding *out)
{
	struct table *t = tables_find(f->tables, "host_time");
	double least = INFINITY, next = INFINITY, over;
	const union value *row, *culprit = NULL;
	char own[SPAN_TEXT], others[SPAN_TEXT], more[SPAN_TEXT];

	if (f->ranks < 2 || table_count(t) < f->ranks)
		return false;
	for (size_t i = 0; (row = table_at(t, i)); i++) {
		double steps = steps_of(f, row), ns = (double)row[HOST_COMM].u64 / steps;

		if (!row[HOST_COMM_COUNT].u64 || steps <= 0 || row[0].u64 == NO_U64)
			return false;
		if (ns >= least) {
			next = fmin(next, ns);
			continue;
		}
		next = least;
		least = ns;
		culprit = row;
	}
	if (!culprit)
		return false;
	rule_tell(out,
		  "Rank %llu communicates for %s a step on the host, every other rank for %s or "
		  "more, so the others wait for it.",
		  (unsigned long long)culprit[0].u64, span_beside(own, least, next),
		  span_text(others, next));
	rule_brief(out, "rank %llu communicates %s, others %s", (unsigned long long)culprit[0].u64,
		   own, others);
	const char *name = phase_over(f, culprit, &over);
	if (name && over >= 1000)
		rule_tell(out,
			  " Compared with the mean of the others it spends most extra time in "
			  "%.60s: %s a step.",
			  name, span_text(more, over));
	return rule_saves(out, next - least);
}

double facts_host_comm(const struct facts *f, double *all_ns)
{
	struct table *t = tables_find(f->tables, "host_time");
	double exposed = INFINITY;
	const union value *row;

	for (size_t i = 0; (row = table_at(t, i)); i++) {
		double steps = steps_of(f, row), ns = (double)row[HOST_EXPOSED].u64 / steps;

		if (!row[HOST_COMM_COUNT].u64 || steps <= 0 || ns >= exposed)
			continue;
		exposed = ns;
		*all_ns = (double)row[HOST_COMM].u64 / steps;
	}
	return exposed == INFINITY ? 0 : exposed;
}

void facts_tell_host_comm(const struct facts *f, char out[FINDING_TEXT])
{
	double all = 0, exposed = facts_host_comm(f, &all);
	char a[SPAN_TEXT], b[SPAN_TEXT];
	bool is_whole = !strcmp(span_text(a, all), span_beside(b, exposed, all));

	snprintf(out, FINDING_TEXT, "Host collectives take %s%s; no operator overlaps %s%s.", a,
		 f->has_steps ? " of a step" : "", is_whole ? "them" : b,
		 is_whole ? "" : " of that");
}

static bool communication(const struct facts *f, struct finding *out)
{
	double all = 0, exposed = facts_host_comm(f, &all);
	char a[SPAN_TEXT], b[SPAN_TEXT];

	span_text(a, all);
	span_beside(b, exposed, all);
	facts_tell_host_comm(f, out->evidence);
	if (strcmp(a, b) != 0)
		rule_brief(out, "%s of %s exposed", b, a);
	else
		rule_brief(out, "%s, all exposed", a);
	return rule_saves(out, exposed);
}

const struct rule rules_cpu[] = {
	{ "cpu_straggler", "the others wait for one rank, on the host", "phases.wall_ns", straggler,
	  "check that rank's work and its host: other jobs, NUMA binding, input, GC",
	  .family = FAMILY_UNBALANCED },
	{ "cpu_comm", "exposed host communication", "phases.wall_ns", communication,
	  "overlap it with backward (DistributedDataParallel's buckets); use fewer, larger calls, "
	  "fewer bytes (bf16) and several interfaces (GLOO_SOCKET_IFNAME)",
	  .family = FAMILY_COMM },
	{ "cpu_input", "the step waits for input", "phases.data.wall_ns", input,
	  "set num_workers to 4 or more and prefetch_factor; preprocess offline",
	  .family = FAMILY_INPUT },
	{ "cpu_validation", "validation is part of the steps", "phases.validation.wall_ns",
	  validation, "use larger validation batches and a prefetching loader; validate less often",
	  .family = FAMILY_HOST },
	{ "cpu_checkpoint", "checkpoints are part of the steps", "phases.checkpoint.wall_ns",
	  checkpoint, "save asynchronously from a copy in memory, or less often",
	  .family = FAMILY_HOST },
	{ "cpu_operators", "operators take most of a step, without a GPU", "operators.host_ns",
	  operators, "use lower precision, one thread a core, fusion or a GPU",
	  .family = FAMILY_COMPUTE },
	{ "cpu_small_ops", "many small operators, without a GPU", "operators.calls",
	  small_operators,
	  "use torch.compile, write loops over elements as one operator, or use a larger batch",
	  .family = FAMILY_HOST },
	{ "cpu_loop", "loop code outside any phase, without a GPU", "phases.other.wall_ns", loop,
	  "name this code (tacho.phase, record_function); --report stacks shows it in a trace with "
	  "with_stack=True",
	  .family = FAMILY_HOST },
	{ "cpu_gc", "Python's garbage collector stops a process without a GPU", "phases.wall_ns",
	  collections,
	  "call gc.disable() in the loop and gc.collect() every N steps, or gc.freeze()",
	  .family = FAMILY_HOST },
	{ .name = NULL },
};
