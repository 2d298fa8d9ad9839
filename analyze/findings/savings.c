/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the removal of each family would save of a step (DEFINITIONS.md 8).  The verdict, and with
 * it the order of the findings, comes from this table alone.
 */
#include "analyze/findings/rule.h"

#include "analyze/report/ranks.h"

#include <math.h>
#include <string.h>

const char *family_word(enum family family)
{
	static const char *const words[] = {
#define X(name, word) word,
		FAMILY_LIST(X)
#undef X
	};

	return words[family];
}

/* Of time that is not busy.  A name that ends with a colon stands for all that begin with it. */
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

/* Ranks wait for each other only where they communicate. */
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

struct savings savings_take(const struct facts *f)
{
	struct savings s = { .compute_ns = f->compute_ns - (f->comm_ns - f->exposed_comm_ns) };
	struct waiting w = waiting_of(f->tables);
	double per_rank = f->ranks ? (double)f->steps / (double)f->ranks : 1;

	for (size_t i = 0; i < f->gap_count; i++) {
		const struct gap_sum *g = &f->gaps[i];

		enum family family = family_of_cause(g->cause);

		if (f->has_steps && strcmp(g->part, "span") != 0)
			continue; /* outside of steps */
		if (family == FAMILY_COMPILE && !strcmp(g->part, "lead"))
			continue; /* the driver starts, once */
		s.ns[family] += facts_per_gpu(f, (double)g->ns);
	}
	s.unexplained_ns = s.ns[FAMILY_NONE];
	s.ns[FAMILY_NONE] = 0;
	s.ns[FAMILY_COPY] += f->exposed_copy_ns;
	s.ns[FAMILY_UNBALANCED] = unbalanced_ns(f, &w, per_rank);
	/* what ranks wait for each other lies in their collectives, and is saved only once */
	double waiting = w.mean_exposed_wait_ns > 0 ? w.mean_exposed_wait_ns / per_rank : INFINITY;
	s.ns[FAMILY_COMM] = fmax(f->exposed_comm_ns - fmin(waiting, s.ns[FAMILY_UNBALANCED]), 0);
	s.ns[FAMILY_COMPUTE] = s.compute_ns / 3;
	for (int i = 1; i < FAMILY_COUNT; i++)
		if (s.ns[i] > s.ns[s.first])
			s.first = (enum family)i;
	for (int i = 1; i < FAMILY_COUNT; i++)
		if ((enum family)i != s.first && s.ns[i] > s.ns[s.second])
			s.second = (enum family)i;
	return s;
}
