/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - what a figure means, its value in an input, and the events behind it.
 *
 * A figure is anything that a page or JSON shows: a column (by its name with or without the unit,
 * by its title, or as TABLE.COLUMN), a report, a table, a cause, a phase, a rule of findings, a
 * check, a verdict.  If a name matches several figures, all are explained.
 */
#pragma once

#include "analyze/report/evidence.h"
#include "analyze/findings/rule.h"
#include "analyze/format/text/line.h"

enum figure_type {
	FIGURE_REPORT,
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
	const struct table_type *table; /* the table, also for columns */
	const struct column *column;
	const struct rule *rule;
	const struct report_type *report;
	char name[FIGURE_NAME]; /* its name in JSON */
};

/* Finds all figures with a name. Without an input `tables` is NULL, and only default phases are
 * found. */
size_t figures_find(const char *asked, struct tables *tables, struct figure out[FIGURES_MAX]);
/* Returns ST_USAGE, with a sentence that suggests the nearest name. */
enum status figure_unknown(const char *asked, struct error *err);
/* Calls `visit` for every name that figures_find() finds without an input. */
typedef void visit_figure(void *self, const struct figure *f, const char *name);
void figures_visit(visit_figure *visit, void *self);

/* Returns in `selection` which events of report_evidence belong to a figure; false: none do. */
bool figure_selection(const struct figure *f, char selection[FIGURE_NAME]);
/* Returns the question that a check answers; NULL: there is no such check. */
const char *figure_check(const char *name);
/* Returns what a verdict, the first word of a page, means; NULL: there is no such verdict. */
const char *figure_verdict(const char *name);
/* Returns the events for the figure's table; EVIDENCE_COUNT: there are none. */
enum evidence figure_table_evidence(const struct figure *f);
/* Returns the section of analyze/DEFINITIONS.md that defines the figure. */
const char *figure_section(const struct figure *f);

enum status explain_put(const struct figure *figures, size_t count, struct tables *tables,
			const struct format_request *how, struct buf *out, struct error *err);
/* Adds the part of the page that needs an input: values, and the events that explain them. */
void explain_input(struct blocks *b, const struct figure *f, struct tables *tables, unsigned width);
enum { EXPLAIN_LABEL_AT = 2, EXPLAIN_TEXT_AT = 13 /* columns at which lines of the page begin */ };
struct block_words *explain_line(struct blocks *b, const char *label, const char *text);
