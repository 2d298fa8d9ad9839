/* SPDX-License-Identifier: Apache-2.0 */
/* What removing each family would save of a step, and the edits for replaying a finding
 * (DEFINITIONS.md 8). This alone decides the verdict, and with it the order of the findings. */
#include "analyze/findings/internal.h"

#include "analyze/report/shared.h"

#include <math.h>
#include <stdio.h>

const char *const family_words[] = {
#define X(name, word) word,
	FAMILY_LIST(X)
#undef X
};

/* Families of idle time. A name that ends with a colon is a prefix. */
static const struct {
	const char *cause;
	enum family family;
} causes[] = {
	{ "data", FAMILY_INPUT },          { "host:", FAMILY_HOST },
	{ "launch", FAMILY_HOST },         { "dispatch", FAMILY_HOST },
	{ "allocator", FAMILY_HOST },      { "gc", FAMILY_HOST },
	{ "graph_internal", FAMILY_HOST }, { "stream_wait", FAMILY_HOST },
	{ "sync", FAMILY_SYNC },           { "compile", FAMILY_COMPILE },
	{ "blocking_copy", FAMILY_COPY },
};

enum family family_of_cause(const char *cause)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		size_t len = strlen(causes[i].cause);

		if (causes[i].cause[len - 1] == ':' ? !strncmp(causes[i].cause, cause, len)
						    : !strcmp(causes[i].cause, cause))
			return causes[i].family;
	}
	return FAMILY_NONE;
}

double facts_part(const struct facts *f, const char *part)
{
	double sum = 0;

	for (size_t i = 0; i < f->gap_count; i++)
		if (!strcmp(f->gaps[i].part, part) && family_of_cause(f->gaps[i].cause))
			sum += (double)f->gaps[i].ns;
	return facts_per_gpu(f, sum);
}

/* Ranks wait for each other only if they communicate. */
static double unbalanced_ns(const struct facts *f, const struct waiting *w, double per_rank)
{
	struct spread spread;
	double ns = 0;

	if (f->exposed_comm_ns <= 0)
		return 0;
	if (w->culprit && w->culprit[0].u64 != NO_U64)
		ns = w->most_excess_ns / per_rank;
	if (facts_spread(f, &spread) && spread.rank != NO_U64)
		ns = fmax(ns, spread.most_ns - spread.mean_ns);
	return ns;
}

/* ---- families ---------------------------------------------------------------------------- */

/* UNBALANCED has no edits: it depends on all ranks, and a replay has only one. */
static const char *const edits_of[FAMILY_COUNT] = {
	[FAMILY_INPUT] = "data=0",          [FAMILY_HOST] = "launch=graph",
	[FAMILY_SYNC] = "cause:sync=0",     [FAMILY_COMPILE] = "cause:compile=0",
	[FAMILY_COMM] = "comm=0",           [FAMILY_COPY] = "copy=0,cause:blocking_copy=0",
	[FAMILY_COMPUTE] = "kernel:*=0.67",
};

const char *family_edits(enum family family)
{
	return edits_of[family] ? edits_of[family] : "";
}

/* Returns idle time of a family that its edits do not remove. */
static double beyond_edits(const struct facts *f, enum family family)
{
	return family == FAMILY_HOST ? facts_cause(f, "dispatch") + facts_cause(f, "stream_wait") +
					       facts_cause(f, "graph_internal")
				     : 0;
}

/* Returns what a family saves in addition to the edits `before`. */
static double replayed_ns(const struct facts *f, const char *before, enum family family,
			  double most_ns)
{
	const char *edits = family_edits(family);
	char both[EDITS_TEXT];

	if (!*edits)
		return most_ns;
	snprintf(both, sizeof(both), "%s%s%s", before, *before ? "," : "", edits);
	struct replay_answer a = replayed_answer(f->replayed, both);
	struct replay_answer b = replayed_answer(f->replayed, before);
	if (!a.is_known || !b.is_known)
		return most_ns;
	double ns = b.step_ns - a.step_ns + beyond_edits(f, family);
	return fmax(fmin(most_ns, ns), 0);
}

static void savings_most(const struct facts *f, struct savings *s)
{
	struct waiting w = waiting_of(f->tables);
	double per_rank = f->ranks ? (double)f->settled_steps / (double)f->ranks : 1;

	for (size_t i = 0; i < f->gap_count; i++) {
		const struct gap_sum *g = &f->gaps[i];

		enum family family = family_of_cause(g->cause);

		/* Time outside of steps does not bound a step. Without marks the window may be a
		 * single step, which begins with its input. */
		if (facts_is_outside(f, g->part) &&
		    (f->has_steps || (family != FAMILY_INPUT && family != FAMILY_NONE)))
			continue;
		/* start-up of the driver and the profiler */
		if (!strcmp(g->part, "lead") &&
		    (family == FAMILY_COMPILE || !strcmp(g->cause, "profiler")))
			continue;
		s->most_ns[family] += facts_gap_per_gpu(f, g, g->ns);
	}
	s->unexplained_ns = s->most_ns[FAMILY_NONE];
	s->most_ns[FAMILY_NONE] = 0;
	s->most_ns[FAMILY_COPY] += f->exposed_copy_ns;
	s->most_ns[FAMILY_UNBALANCED] = unbalanced_ns(f, &w, per_rank);
	/* ranks wait for each other inside collectives: count that time only once */
	double waiting = w.mean_exposed_wait_ns > 0 ? w.mean_exposed_wait_ns / per_rank : INFINITY;
	s->most_ns[FAMILY_COMM] =
		fmax(f->exposed_comm_ns - fmin(waiting, s->most_ns[FAMILY_UNBALANCED]), 0);
	/* without communication that overlaps it */
	s->most_ns[FAMILY_COMPUTE] = (f->compute_ns - (f->comm_ns - f->exposed_comm_ns)) / 3;
}

struct savings savings_take(const struct facts *f)
{
	struct savings s = { .first = FAMILY_NONE };

	savings_most(f, &s);
	for (int i = 1; i < FAMILY_COUNT; i++) {
		s.ns[i] = replayed_ns(f, "", (enum family)i, s.most_ns[i]);
		if (s.ns[i] > s.ns[s.first])
			s.first = (enum family)i;
	}
	/* If no family saves anything alone, use the measured time. */
	for (int i = 1; i < FAMILY_COUNT && s.ns[s.first] <= 0; i++)
		if (s.most_ns[i] > s.most_ns[s.first])
			s.first = (enum family)i;
	const char *before = family_edits(s.first);
	for (int i = 1; i < FAMILY_COUNT; i++) {
		double ns = s.first && !*before
				    ? s.most_ns[i]
				    : replayed_ns(f, before, (enum family)i, s.most_ns[i]);

		ns = fmax(ns, s.ns[i]);
		if ((enum family)i == s.first || ns <= s.second_ns)
			continue;
		s.second = (enum family)i;
		s.second_ns = ns;
	}
	return s;
}

static enum status families_ask(const struct facts *f, const char *before, struct error *err)
{
	char sets[FAMILY_COUNT][EDITS_TEXT];
	const char *asked[FAMILY_COUNT + 1] = { before };
	size_t count = *before != '\0';

	for (int i = 1; i < FAMILY_COUNT; i++) {
		int len = snprintf(sets[i], EDITS_TEXT, "%s%s%s", before, *before ? "," : "",
				   family_edits((enum family)i));

		if (edits_of[i] && len < EDITS_TEXT)
			asked[count++] = sets[i];
	}
	return replayed_ask(f->replayed, asked, count, err);
}

enum status savings_replay(const struct facts *f, struct error *err)
{
	TRY(families_ask(f, "", err));
	const char *first = family_edits(savings_take(f).first);
	return *first ? families_ask(f, first, err) : ST_OK;
}

enum status savings_next(const struct facts *f, const char *before, enum family *next, double *ns,
			 struct error *err)
{
	struct savings s = { .first = FAMILY_NONE };

	*next = FAMILY_NONE;
	TRY(families_ask(f, before, err));
	struct replay_answer step = replayed_answer(f->replayed, before);
	if (!step.is_known)
		return ST_OK;
	savings_most(f, &s);
	if (strstr(before, "comm")) /* the remaining waiting between ranks is unknown */
		s.most_ns[FAMILY_UNBALANCED] = 0;
	*ns = NEXT_SHARE * step.step_ns;
	for (int i = 1; i < FAMILY_COUNT; i++) {
		double saved = replayed_ns(f, before, (enum family)i, s.most_ns[i]);

		if (saved < *ns)
			continue;
		*next = (enum family)i;
		*ns = saved;
	}
	return ST_OK;
}

/* ---- findings ---------------------------------------------------------------------------- */

/* Edits of each rule. `of`: what the factor is a share of, if it is filled in. */
enum share_of { ALL, OF_COMPUTE, OF_COMM, OF_GEMM_FP32, OF_CONV_FP32 };
static const struct {
	const char *rule, *edits;
	enum share_of of;
} rule_edits[] = {
	{ "data_wait", "data=0", ALL },
	{ "launch_bound", "launch=graph", ALL },
	{ "long_launches", "cause:launch=0", ALL },
	{ "unused_parameters", "place:*search_unused_parameters*=0", ALL },
	{ "zero_grad", "place:*zero_grad*=0", ALL },
	{ "optimizer_loop", "host:optimizer=0", ALL },
	{ "optimizer_host", "host:optimizer=0", ALL },
	{ "host_sync", "cause:sync=0", ALL },
	{ "blocking_copy", "cause:blocking_copy=0", ALL },
	{ "compile", "cause:compile=0", ALL },
	{ "allocator", "cause:allocator=0", ALL },
	{ "gc_pause", "cause:gc=0", ALL },
	{ "checkpoint", "host:checkpoint=0", ALL },
	{ "validation", "host:validation=0", ALL },
	{ "loop_overhead", "host:other=0", ALL },
	{ "exposed_comm", "comm=0", ALL },
	{ "small_collectives", "work:short_comm=0", ALL },
	{ "slow_link", "comm=%.3f", OF_COMM },
	{ "pageable_copy", "copy:*pageable*=0", ALL },
	{ "exposed_download", "copy:DtoH*=0", ALL },
	{ "device_copy", "copy:DtoD*=0", ALL },
	{ "peer_copy", "copy:PtoP*=0", ALL },
	{ "memset_fill", "copy:memset=0", ALL },
	{ "fp32_gemm", "work:gemm_fp32=%.3f", OF_GEMM_FP32 },
	{ "fp32_conv", "work:conv_fp32=%.3f", OF_CONV_FP32 },
	{ "fp8", "work:gemm=0.5,work:gemm_tf32=0.25", ALL },
	{ "misaligned_gemm", "work:gemm_unaligned=0", ALL },
	{ "unfused_attention", "work:softmax=0,work:batched=0", ALL },
	{ "layout", "work:layout=0", ALL },
	{ "short_kernels", "work:short=0", ALL },
	{ "elementwise", "work:elementwise=0,work:copy=0", ALL },
	{ "slow_kernels", "kernel:*=0.67", ALL },
	{ "clock_below_base", "kernel:*=%.3f", OF_COMPUTE },
	{ "throttled", "kernel:*=%.3f", OF_COMPUTE },
};

void finding_edits(const struct facts *f, const char *rule, double most_ns, char out[EDITS_TEXT])
{
	size_t i = 0, count = sizeof(rule_edits) / sizeof(rule_edits[0]);

	*out = '\0';
	if (!strcmp(rule, "exposed_upload")) {
		bool is_some = facts_copies(f, "HtoD", "pageable").count > 0;

		snprintf(out, EDITS_TEXT, "%s", is_some ? "copy:HtoD p[!a]*=0" : "copy:HtoD*=0");
		return;
	}
	if (!strcmp(rule, "slow_slot") && f->gpus == 1) {
		double whole = facts_copies(f, "HtoD", NULL).ns + facts_copies(f, "DtoH", NULL).ns;
		double left = fmax(1 - most_ns / whole, 0);

		snprintf(out, EDITS_TEXT, "copy:HtoD*=%.3f,copy:DtoH*=%.3f", left, left);
		return;
	}
	while (i < count && strcmp(rule_edits[i].rule, rule) != 0)
		i++;
	/* a replay changes all GPUs, and would also change those without that clock */
	if (i == count || (rule_edits[i].of == OF_COMPUTE && f->gpus != 1))
		return;
	const double wholes[] = {
		[ALL] = 0,
		[OF_COMPUTE] = f->compute_ns,
		[OF_COMM] = f->exposed_comm_ns,
		[OF_GEMM_FP32] = facts_work(f, WORK_GEMM_FP32, NULL).ns,
		[OF_CONV_FP32] = facts_work(f, WORK_CONV_FP32, NULL).ns,
	};
	double whole = wholes[rule_edits[i].of];
	const char *factor = strstr(rule_edits[i].edits, "%.3f");
	if (!factor)
		snprintf(out, EDITS_TEXT, "%s", rule_edits[i].edits);
	else if (whole > 0)
		snprintf(out, EDITS_TEXT, "%.*s%.3f", (int)(factor - rule_edits[i].edits),
			 rule_edits[i].edits, fmax(1 - most_ns / whole, 0));
}
