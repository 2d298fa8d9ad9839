/* SPDX-License-Identifier: Apache-2.0 */
/* Prints definitions from the tables of columns, causes, rules and checks. */
#include "analyze/explain/explain.h"

#include "analyze/report/report_list.h"

/* The section and the evidence of tables, by a prefix of the table's name. */
static const struct table_of {
	const char *prefix, *section;
	enum evidence evidence; /* EVIDENCE_COUNT: no events */
} tables_of[] = {
	{ "inputs", "9", EVIDENCE_COUNT },   { "windows", "1", EVIDENCE_COUNT },
	{ "gpus", "1 and 2", EVIDENCE_GPU }, { "ranks", "1 and 8", EVIDENCE_COUNT },
	{ "step", "3", EVIDENCE_STEP },      { "slow", "3", EVIDENCE_STEP },
	{ "phases", "4", EVIDENCE_HOST },    { "ranges", "4", EVIDENCE_HOST },
	{ "cells", "5", EVIDENCE_GPU },      { "idle", "6", EVIDENCE_NOT_BUSY },
	{ "launch", "6", EVIDENCE_LAUNCH },  { "comm", "7", EVIDENCE_COMM },
	{ "coll", "7", EVIDENCE_COMM },      { "straggler", "7", EVIDENCE_COUNT },
	{ "frontier", "7", EVIDENCE_COMM },  { "waits", "7", EVIDENCE_COMM },
	{ "groups", "7", EVIDENCE_COMM },    { "kernels", "8", EVIDENCE_KERNEL },
	{ "copies", "8", EVIDENCE_COPY },    { "memory", "8", EVIDENCE_MEMORY },
	{ "", "8", EVIDENCE_COUNT },
};

static const struct table_of *table_of(const struct figure *f)
{
	const struct table_of *t = tables_of;

	while (!f->table || strncmp(f->table->name, t->prefix, strlen(t->prefix)) != 0)
		if (!*t++->prefix)
			return t - 1;
	return t;
}

const char *figure_section(const struct figure *f)
{
	return f->type == FIGURE_CAUSE ? "6" : f->type == FIGURE_PHASE ? "4" : table_of(f)->section;
}

enum evidence figure_table_evidence(const struct figure *f)
{
	return table_of(f)->evidence;
}

struct block_words *explain_line(struct blocks *b, const char *label, const char *text)
{
	struct block_words *w =
		add_labelled(b, EXPLAIN_TEXT_AT, EXPLAIN_LABEL_AT, TOKEN_DIM, label);

	add_span(b, w, TOKEN_TEXT, text);
	return w;
}

static const char *unit_of(const struct column *c, struct blocks *b)
{
	if (c->of)
		return blocks_text(b,
				   name_ends_in(c->name, "_ns")
					   ? "nanoseconds; shown as a share of %s"
					   : "percent of %s",
				   c->of);
	if (column_is_time(c))
		return "nanoseconds";
	if (strstr(c->name, "bytes"))
		return "bytes";
	return c->cell == CELL_BOOL ? "yes or no" : column_is_text(c) ? "text" : "a number";
}

static const char *combine_of(const struct column *c)
{
	static const char *const words[] = {
		[KEY] = "names the row",
		[SUM] = "added up",
		[MIN] = "the least of all",
		[MAX] = "the greatest of all",
		[HIST] = "histograms added up",
		[DERIVED] = "computed once, from the merged figures",
	};

	return words[c->combine];
}

/* Names the first report with the table. The summary is skipped: it shows tables of all reports. */
static void add_report_of(struct blocks *b, const struct table_type *t)
{
	for (const struct report_type *const *r = report_types; *r; r++)
		for (const struct table_type *const *i = (*r)->tables; i && *i; i++)
			if (*i == t && strcmp((*r)->name, "summary") != 0) {
				explain_line(b, "shown by",
					     blocks_text(b, "--report %s", (*r)->name));
				return;
			}
}

static void add_report(struct blocks *b, const struct figure *f)
{
	explain_line(b, "is", f->report->help);
	explain_line(b, "shown by", blocks_text(b, "--report %s", f->report->name));
}

static void add_column(struct blocks *b, const struct figure *f)
{
	const struct table_type *t = f->table;

	explain_line(b, "is", f->column->meaning);
	explain_line(b, "unit", unit_of(f->column, b));
	explain_line(b, "in JSON",
		     blocks_text(b, "%s%s%s%s", t->under ? table_member(t->under) : "",
				 t->under ? "[]." : "", table_member(t),
				 t->nest == NEST_ARRAY ? "[]" : ""));
	explain_line(b, "inputs", combine_of(f->column));
	add_report_of(b, t);
}

static void add_columns(struct blocks *b, const struct figure *f)
{
	for (const struct column *c = f->table->columns; c->name; c++) {
		if (c->cell == CELL_HIST || !c->meaning)
			continue;
		add_sentencef(b, ROLE_TEXT, EXPLAIN_LABEL_AT + 2, "%s: %s", c->name, c->meaning);
		b->last->words.is_hanging = true;
	}
	add_report_of(b, f->table);
}

static void add_cause(struct blocks *b, const struct figure *f)
{
	size_t len = strcspn(f->name, ":");

	for (size_t i = 0; i < CAUSE_COUNT; i++)
		if (strlen(cause_types[i].word) == len &&
		    !strncmp(cause_types[i].word, f->name, len))
			explain_line(b, "is", cause_types[i].meaning);
	explain_line(b, "of",
		     "time in which a GPU is not busy: lead, idle and tail; each nanosecond has "
		     "one cause");
}

static void add_phase(struct blocks *b, const struct figure *f)
{
	explain_line(b, "is",
		     !strcmp(f->name, "other") ? "time of the step thread that no range, operator "
						 "or call assigns to a phase"
		     : !strcmp(f->name, "before_window")
			     ? "GPU work that was launched before the recording began"
		     : !strcmp(f->name, "unattributed")
			     ? "GPU work whose launch is not in the file"
			     : "time of the step thread in ranges of this phase, by the rules of "
			       "names (--phases); GPU time by the phase of its launch");
}

static void add_rule(struct blocks *b, const struct figure *f)
{
	explain_line(b, "looks for", f->rule->help);
	explain_line(b, "advice", f->rule->advice);
	explain_line(b, "figures", f->rule->figures);
	explain_line(
		b, "saving",
		"predicted by a replay, or otherwise the time that the finding is about; savings "
		"overlap and do not add up");
}

static void add_check(struct blocks *b, const struct figure *f)
{
	explain_line(b, "question", figure_check(f->name));
}

static void add_verdict(struct blocks *b, const struct figure *f)
{
	explain_line(b, "is", figure_verdict(f->name));
	explain_line(b, "rule",
		     "the first word is the family of findings whose change saves most of a step");
}

static void add_definition(struct blocks *b, const struct figure *f)
{
	static const struct {
		const char *word;
		void (*add)(struct blocks *b, const struct figure *f);
	} types[] = {
		[FIGURE_REPORT] = { "report", add_report },
		[FIGURE_COLUMN] = { "figure", add_column },
		[FIGURE_TABLE] = { "table", add_columns },
		[FIGURE_CAUSE] = { "idle cause", add_cause },
		[FIGURE_PHASE] = { "phase", add_phase },
		[FIGURE_RULE] = { "finding", add_rule },
		[FIGURE_CHECK] = { "check", add_check },
		[FIGURE_VERDICT] = { "verdict", add_verdict },
	};
	struct block_words *w = add_words(b, ROLE_TEXT, 0);

	w->flow = FLOW_CLIP;
	add_span(b, w, TOKEN_BOLD, f->name);
	add_span(b, w, TOKEN_DIM, "  ");
	add_span(b, w, TOKEN_DIM, types[f->type].word);
	if (f->type == FIGURE_COLUMN)
		add_spanf(b, w, TOKEN_DIM, " of %s", f->table->name);
	types[f->type].add(b, f);
	explain_line(b, "more",
		     blocks_text(b, "analyze/DEFINITIONS.md, section %s", figure_section(f)));
}

enum status explain_put(const struct figure *figures, size_t count, struct tables *tables,
			const struct format_request *how, struct buf *out, struct error *err)
{
	struct blocks b;
	struct text t;

	text_init(&t, how, out);
	blocks_init(&b);
	for (size_t i = 0; i < count; i++) {
		if (i)
			add_sentence(&b, ROLE_TEXT, 0, "");
		add_definition(&b, &figures[i]);
		if (tables)
			explain_input(&b, &figures[i], tables, t.width);
	}
	text_draw(&t, &b);
	enum status status = blocks_status(&b, err);
	blocks_release(&b);
	return status == ST_OK ? buf_status(out, err) : status;
}
