/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions, from the tables of columns, causes, rules and checks. */
#include "analyze/explain/explain.h"

#include <string.h>

static const struct {
	const char *prefix, *section;
} sections[] = {
	{ "inputs", "9" }, { "windows", "1" },   { "gpus", "1 and 2" }, { "ranks", "1 and 8" },
	{ "step", "3" },   { "slow", "3" },      { "phases", "4" },     { "ranges", "4" },
	{ "cells", "5" },  { "idle", "6" },      { "launch", "6" },     { "comm", "7" },
	{ "coll", "7" },   { "straggler", "7" }, { "frontier", "7" },   { "waits", "7" },
	{ "groups", "7" },
};

const char *figure_section(const struct figure *f)
{
	if (f->type == FIGURE_CAUSE)
		return "6";
	if (f->type == FIGURE_PHASE)
		return "4";
	for (size_t i = 0; f->table && i < sizeof(sections) / sizeof(sections[0]); i++)
		if (!strncmp(f->table->name, sections[i].prefix, strlen(sections[i].prefix)))
			return sections[i].section;
	return "8";
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
}

static void add_columns(struct blocks *b, const struct figure *f)
{
	for (const struct column *c = f->table->columns; c->name; c++) {
		if (c->cell == CELL_HIST || !c->meaning)
			continue;
		add_sentencef(b, ROLE_TEXT, EXPLAIN_LABEL_AT + 2, "%s: %s", c->name, c->meaning);
		b->last->words.is_hanging = true;
	}
}

static void add_cause(struct blocks *b, const struct figure *f)
{
	size_t len = strcspn(f->name, ":");

	for (size_t i = 0; i < CAUSE_COUNT; i++)
		if (strlen(cause_word((enum cause)i)) == len &&
		    !strncmp(cause_word((enum cause)i), f->name, len))
			explain_line(b, "is", cause_meaning((enum cause)i));
	explain_line(b, "of",
		     "time in which a GPU is not busy: lead, idle and tail; each nanosecond "
		     "has one cause");
}

static void add_phase(struct blocks *b, const struct figure *f)
{
	explain_line(
		b, "is",
		!strcmp(f->name, "other") ? "what the step thread did when nothing named it"
		: !strcmp(f->name, "before_window")
			? "GPU work launched before anything that was recorded"
		: !strcmp(f->name, "unattributed")
			? "GPU work whose launch is not in the file"
			: "time of the step thread in ranges of this phase, by the rules of names "
			  "(--phases); GPU time by the phase of its launch");
}

static void add_rule(struct blocks *b, const struct figure *f)
{
	explain_line(b, "looks for", f->rule->help);
	explain_line(b, "advice", f->rule->advice);
	explain_line(b, "rests on", f->rule->figures);
	explain_line(b, "saving", "an upper bound; savings of findings overlap and do not add up");
}

static void add_check(struct blocks *b, const struct figure *f)
{
	explain_line(b, "asks", figure_check(f->name));
}

static void add_definition(struct blocks *b, const struct figure *f)
{
	static const struct {
		const char *word;
		void (*add)(struct blocks *b, const struct figure *f);
	} types[] = {
		[FIGURE_COLUMN] = { "figure", add_column },
		[FIGURE_TABLE] = { "table", add_columns },
		[FIGURE_CAUSE] = { "idle cause", add_cause },
		[FIGURE_PHASE] = { "phase", add_phase },
		[FIGURE_RULE] = { "finding", add_rule },
		[FIGURE_CHECK] = { "check", add_check },
	};
	struct block_words *w = add_words(b, ROLE_TEXT, 0);

	w->flow = FLOW_CROP;
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
	enum status status;
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
	status = blocks_status(&b, err);
	blocks_release(&b);
	return status == ST_OK ? buf_status(out, err) : status;
}
