/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - what a figure means, what it is in an input, and the events behind it.
 *
 * A figure is anything that stands on a page or in JSON: a column (with or without its unit, as it
 * is titled, or as TABLE.COLUMN), a table, a cause, a phase, a rule of findings, a check, a
 * verdict.  One name may be several; all are explained.
 */
#pragma once

#include "analyze/report/evidence.h"
#include "analyze/findings/rule.h"
#include "analyze/format/text/line.h"

enum figure_type {
	FIGURE_COLUMN,
	FIGURE_TABLE,
	FIGURE_CAUSE,
	FIGURE_PHASE,
	FIGURE_RULE,
	FIGURE_CHECK,
	FIGURE_VERDICT,
};
enum { FIGURES_MAX = 64, FIGURE_NAME = 96 };
struct figure {
	enum figure_type type;
	const struct table_type *table; /* of a column or table */
	const struct column *column;
	const struct rule *rule;
	char name[FIGURE_NAME]; /* as it is written in JSON */
};

/* All that `asked` names; `tables` NULL: no input, so only the default phases are found. */
size_t figures_find(const char *asked, struct tables *tables, struct figure out[FIGURES_MAX]);
/* ST_USAGE: a sentence with the nearest name. */
enum status figure_unknown(const char *asked, struct error *err);
/* Calls `visit` for every name that figures_find() knows without an input. */
typedef void visit_figure(void *self, const struct figure *f, const char *name);
void figures_visit(visit_figure *visit, void *self);

/* Into *selection: what report_evidence calls the events behind it; false: there are none. */
bool figure_selection(const struct figure *f, char selection[FIGURE_NAME]);
/* What a check asks; NULL: there is none of this name. */
const char *figure_check(const char *name);
/* What the first word of a page means; NULL: it is none. */
const char *figure_verdict(const char *name);
/* Of the table that it is of; EVIDENCE_COUNT: there are no events. */
enum evidence figure_table_evidence(const struct figure *f);
/* Section of analyze/DEFINITIONS.md. */
const char *figure_section(const struct figure *f);

enum status explain_put(const struct figure *figures, size_t count, struct tables *tables,
			const struct format_request *how, struct buf *out, struct error *err);
/* The part of it that looks at an input: values, and the events behind them. */
void explain_input(struct blocks *b, const struct figure *f, struct tables *tables, unsigned width);
enum { EXPLAIN_LABEL_AT = 2, EXPLAIN_TEXT_AT = 13 /* where lines of the page begin */ };
struct block_words *explain_line(struct blocks *b, const char *label, const char *text);
