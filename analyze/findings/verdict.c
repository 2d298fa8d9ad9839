/* SPDX-License-Identifier: Apache-2.0 */
/* What bounds the run (DEFINITIONS.md 8). */
#include "analyze/findings/rule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VERDICT_BOUND = 1, VERDICT_NS, VERDICT_SHARE, VERDICT_SENTENCE, VERDICT_MORE };
static const struct column verdict_columns[] = {
	{ "of", NULL, CELL_TEXT, KEY, NULL, "the run" },
	{ "bound", "bound by", CELL_TEXT, MAX, NULL,
	  "INPUT, HOST, SYNC, COMPILE, COMM, COPY, COMPUTE, UNBALANCED, NO GPU, or NO VERDICT" },
	{ "ns_per_step", NULL, CELL_U64, MAX, NULL, "of the family that bounds it" },
	{ "share", "%", CELL_F64, DERIVED, "window", "that family's part of the window" },
	{ "sentence", "sentence", CELL_TEXT, MAX, NULL, "with its two figures" },
	{ "more", NULL, CELL_TEXT, MAX, NULL, "the next; null: nothing" },
	{ .name = NULL },
};
const struct table_type table_verdict = {
	.name = "verdict",
	.member = "verdict",
	.nest = NEST_OBJECT,
	.null_texts = "more",
	.is_finished = true,
	.columns = verdict_columns,
};

#define BOUND_SHARE 0.1

struct family {
	const char *bound, *sentence;
	double ns;
};

static enum status put(struct table *t, const char *bound, double ns, double share,
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

static const char *host_sentence(const struct facts *f, double host_ns)
{
	if (!f->has_launches)
		return "does nothing for %s of every %s step; the file has no launch to say why.";
	if (facts_cause(f, "dispatch") > host_ns / 2) /* launched long ago: the host is not late */
		return "waits %s of every %s step for work that was launched and did not begin.";
	return "waits %s of every %s step because launches come too late.";
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

#define UNBALANCED_SHARE 0.05 /* of a step: what the ranks' own kernels differ */

/* Of a sample only what the same kernels take can be said. */
static bool tell_spread(const struct facts *f, const struct spread *s, char out[FINDING_TEXT])
{
	struct table *ranks = tables_find(f->tables, "ranks");
	char a[SPAN_TEXT];
	size_t i;

	if (f->ranks > 2) {
		snprintf(out, FINDING_TEXT,
			 "Rank %llu computes %s a step longer than the ranks on average in the "
			 "same %zu kernels.",
			 (unsigned long long)s->rank, span_text(a, s->most_ns - s->mean_ns),
			 s->names);
		return true;
	}
	for (i = 0; i < f->ranks; i++)
		if (table_at(ranks, i)[0].u64 != s->rank)
			break;
	if (i == f->ranks)
		return false;
	snprintf(out, FINDING_TEXT,
		 "Rank %llu computes %s per step longer than rank %llu in the same %zu kernels.",
		 (unsigned long long)s->rank, span_text(a, s->most_ns - s->least_ns),
		 (unsigned long long)table_at(ranks, i)[0].u64, s->names);
	return true;
}

/* Whether ranks differ by so much that this is the thing to say. */
static bool is_unbalanced(const struct facts *f, double of_ns, double share, struct spread *s)
{
	return facts_spread(f, s) && s->rank != NO_U64 && s->most_ns - s->mean_ns >= share * of_ns;
}

static enum status judge_blind(const struct facts *f, struct table *t, struct error *err)
{
	struct spread s;
	char sentence[FINDING_TEXT];

	if (f->is_sampled && !f->is_damaged &&
	    is_unbalanced(f, f->step_ns, UNBALANCED_SHARE / 2, &s) && tell_spread(f, &s, sentence))
		return put(t, "UNBALANCED", s.most_ns - s.mean_ns, NAN, sentence,
			   "What bounds a step cannot be said from a sample.", err);
	return put(t, "NO VERDICT", 0, NAN,
		   f->is_sampled ? "The file is a sample: what looks idle may be busy."
				 : "The file is damaged: what is missing may decide.",
		   NULL, err);
}

static enum status put_compute(const struct facts *f, struct table *t, struct error *err)
{
	char sentence[FINDING_TEXT], who[32];

	snprintf(sentence, sizeof(sentence), "%s computes %.1f %% of the window.", subject(f, who),
		 100 * f->compute_ns / f->window_ns);
	return put(t, "COMPUTE", f->compute_ns, 100 * f->compute_ns / f->window_ns, sentence, NULL,
		   err);
}

/* The largest; the next of at least BOUND_SHARE, 6: there is none. */
static size_t rank_families(const struct facts *f, const struct family families[6], size_t *next)
{
	size_t best = 0;

	*next = 6;
	for (size_t i = 1; i < 6; i++)
		best = families[i].ns > families[best].ns ? i : best;
	for (size_t i = 0; i < 6; i++)
		if (i != best && families[i].ns >= BOUND_SHARE * f->window_ns &&
		    (*next == 6 || families[i].ns > families[*next].ns))
			*next = i;
	return best;
}

enum status verdict_put(const struct facts *f, struct error *err)
{
	struct table *t = tables_find(f->tables, "verdict");
	struct family families[6];
	struct spread spread;
	char sentence[FINDING_TEXT], more[FINDING_TEXT] = "";
	size_t next;

	if (!f->gpus || f->window_ns <= 0)
		return put(t, "NO GPU", 0, NAN,
			   f->gpus ? "No GPU event here has a length: host phases only."
				   : "No GPU event in this file: host phases only.",
			   NULL, err);
	if (f->is_sampled || f->is_damaged)
		return judge_blind(f, t, err);
	double host = facts_host(f) + facts_cause(f, "launch") + facts_cause(f, "dispatch") +
		      facts_cause(f, "allocator") + facts_cause(f, "gc");
	struct family all[6] = {
		{ "INPUT", "waits for the data loader %s of every %s step.",
		  facts_cause(f, "data") },
		{ "HOST", host_sentence(f, host), host },
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
	size_t best = rank_families(f, families, &next);
	if (families[best].ns < BOUND_SHARE * f->window_ns)
		return put_compute(f, t, err);
	tell(f, &families[best], sentence);
	if (next < 6)
		tell(f, &families[next], more);
	/* who communicates long may only wait for a rank that computes long */
	if (!strcmp(families[best].bound, "COMM") &&
	    is_unbalanced(f, families[best].ns, 0.5, &spread) && tell_spread(f, &spread, more))
		return put(t, "UNBALANCED", spread.most_ns - spread.mean_ns,
			   100 * (spread.most_ns - spread.mean_ns) / f->window_ns, more, sentence,
			   err);
	return put(t, families[best].bound, families[best].ns,
		   100 * families[best].ns / f->window_ns, sentence, more, err);
}
