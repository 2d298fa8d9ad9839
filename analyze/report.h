/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - reports: a fold over one input, then a finish over all.
 *
 *	input 0 -> pump -> sweep -> fold \
 *	input 1 -> pump -> sweep -> fold  > tables, merged by key -> finish -> format
 *	input n -> pump -> sweep -> fold /
 *
 * Inputs (ranks, windows of a rank) are folded one by one, on as many cores as there are, and
 * never merged as streams: idle time between two windows does not exist, clocks of hosts are not
 * needed, and a thousand ranks cost a thousand times one.
 *
 * All reports of a run share one pass, one sweep and one link stage; none includes another.  A
 * report keeps what fits a ceiling, and says in its notes what it left out.
 *
 * To add a report: write report_NAME.c that exports `const struct report_type report_NAME`, add
 * X(NAME) to REPORT_LIST, its oracle in tests/oracle/.  To add a format: see format.h.
 */
#ifndef ANALYZE_REPORT_H
#define ANALYZE_REPORT_H

#include "analyze/sweep.h" /* and with it event, trace, step, link */
#include "analyze/table.h"
#include "convert/pump.h"

struct fold { /* one report over one input; one thread */
	const struct report_type *type;
	struct trace *trace;        /* of this input; borrowed */
	const struct source *step;  /* stage: phases' names, step thread; borrowed */
	const struct source *link;  /* stage: totals; borrowed */
	const struct name_rules *rules;
	const struct cut *cut;
	const char *path;           /* of the input */
	struct tables *tables;      /* where results go; borrowed */
	void *state;                /* type->state_size bytes, zeroed; freed by the engine */
};

struct report_type {
	const char *name; /* as in --report NAME */
	const char *help; /* one line */
	const struct table_type *const *tables; /* what it fills; ends with NULL */
	unsigned needs;    /* enum need */
	size_t state_size;

	/* Slots of the fold; each optional (NULL: not interested). */
	enum status (*begin)(struct fold *f, struct error *err);
	enum status (*events)(struct fold *f, const struct event *events, size_t count,
			      struct error *err);
	enum status (*segments)(struct fold *f, const struct segment *segments, size_t count,
				struct error *err);
	enum status (*stretches)(struct fold *f, const struct stretch *stretches, size_t count,
				 struct error *err);
	enum status (*marks)(struct fold *f, const struct step_mark *marks, size_t count,
			     struct error *err);
	enum status (*end)(struct fold *f, struct error *err); /* also frees what state holds */

	/* Once, over all inputs: fills DERIVED columns, reads other reports' tables if there. */
	enum status (*finish)(struct tables *all, struct error *err);
};

#define REPORT_LIST(X) X(summary) X(phases) X(steps) X(kernels) X(copies)
#define X(name) extern const struct report_type report_##name;
REPORT_LIST(X)
#undef X

#endif
