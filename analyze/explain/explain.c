/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions, from the tables of columns, causes, rules and checks. */
#include "analyze/explain/explain.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = 2, LABEL = 13 };

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

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len >= end_len && !strcmp(name + len - end_len, end);
}

static void put_line(struct text *t, const char *label, const char *words)
{
	unsigned column = text_at(t, LEFT, TOKEN_DIM, label);

	text_wrap(t, column < LABEL ? LABEL : column + 1, LABEL, TOKEN_TEXT, words);
	text_end(t);
}

static const char *unit_of(const struct column *c, char out[FIGURE_NAME])
{
	if (c->of)
		snprintf(out, FIGURE_NAME,
			 ends_in(c->name, "_ns") ? "nanoseconds; shown as a share of %s"
						 : "percent of %s",
			 c->of);
	else if (ends_in(c->name, "_ns") || !strcmp(c->name, "ns") ||
		 ends_in(c->name, "_ns_per_step"))
		snprintf(out, FIGURE_NAME, "nanoseconds");
	else if (strstr(c->name, "bytes"))
		snprintf(out, FIGURE_NAME, "bytes");
	else if (c->cell == CELL_BOOL)
		snprintf(out, FIGURE_NAME, "yes or no");
	else if (c->cell == CELL_TEXT || c->cell == CELL_WORDS)
		snprintf(out, FIGURE_NAME, "text");
	else
		snprintf(out, FIGURE_NAME, "a number");
	return out;
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

static void put_column(struct text *t, const struct figure *f)
{
	char words[4 * FIGURE_NAME], unit[FIGURE_NAME];

	put_line(t, "is", f->column->meaning ? f->column->meaning : "");
	put_line(t, "unit", unit_of(f->column, unit));
	snprintf(words, sizeof(words), "%s%s%s%s", f->table->under ? f->table->under->member : "",
		 f->table->under ? "[]." : "", f->table->member,
		 f->table->nest == NEST_ARRAY ? "[]" : "");
	put_line(t, "in JSON", words);
	put_line(t, "inputs", combine_of(f->column));
}

static void put_table(struct text *t, const struct figure *f)
{
	char words[512];

	for (const struct column *c = f->table->columns; c->name; c++) {
		if (c->cell == CELL_HIST || !c->meaning)
			continue;
		snprintf(words, sizeof(words), "%s: %s", c->name, c->meaning);
		text_wrap(t, LEFT, LEFT + 2, TOKEN_TEXT, words);
		text_end(t);
	}
}

static void put_cause(struct text *t, const struct figure *f)
{
	size_t len = strcspn(f->name, ":");

	for (size_t i = 0; i < CAUSE_COUNT; i++)
		if (strlen(cause_word((enum cause)i)) == len &&
		    !strncmp(cause_word((enum cause)i), f->name, len))
			put_line(t, "is", cause_meaning((enum cause)i));
	put_line(t, "of",
		 "time in which a GPU is not busy: lead, idle and tail; each nanosecond "
		 "has one cause");
}

static void put_phase(struct text *t, const struct figure *f)
{
	if (!strcmp(f->name, "other"))
		put_line(t, "is", "what the step thread did when nothing named it");
	else if (!strcmp(f->name, "before_window"))
		put_line(t, "is", "GPU work launched before anything that was recorded");
	else if (!strcmp(f->name, "unattributed"))
		put_line(t, "is", "GPU work whose launch is not in the file");
	else
		put_line(t, "is",
			 "time of the step thread in ranges of this phase, by the rules "
			 "of names (--phases); GPU time by the phase of its launch");
}

static void put_rule(struct text *t, const struct figure *f)
{
	put_line(t, "looks for", f->rule->help);
	put_line(t, "advice", f->rule->advice ? f->rule->advice : "");
	put_line(t, "rests on", f->rule->figures ? f->rule->figures : "");
	put_line(t, "saving", "an upper bound; savings of findings overlap and do not add up");
}

static void put_check(struct text *t, const struct figure *f)
{
	put_line(t, "asks", figure_check(f->name));
}

static void put_definition(struct text *t, const struct figure *f)
{
	static const struct {
		const char *word;
		void (*put)(struct text *t, const struct figure *f);
	} types[] = {
		[FIGURE_COLUMN] = { "figure", put_column },
		[FIGURE_TABLE] = { "table", put_table },
		[FIGURE_CAUSE] = { "idle cause", put_cause },
		[FIGURE_PHASE] = { "phase", put_phase },
		[FIGURE_RULE] = { "finding", put_rule },
		[FIGURE_CHECK] = { "check", put_check },
	};
	unsigned column = text_at(t, 0, TOKEN_BOLD, f->name);
	char words[FIGURE_NAME];

	text_at(t, column + 2, TOKEN_DIM, types[f->type].word);
	if (f->type == FIGURE_COLUMN)
		text_atf(t, column + 3 + (unsigned)strlen(types[f->type].word), TOKEN_DIM, "of %s",
			 f->table->name);
	text_end(t);
	types[f->type].put(t, f);
	snprintf(words, sizeof(words), "analyze/DEFINITIONS.md, section %s", figure_section(f));
	put_line(t, "more", words);
}

enum status explain_put(const struct figure *figures, size_t count, struct tables *tables,
			const struct format_request *how, struct buf *out, struct error *err)
{
	struct text t;

	text_init(&t, how, out);
	for (size_t i = 0; i < count; i++) {
		if (i)
			text_end(&t);
		put_definition(&t, &figures[i]);
		if (!tables)
			continue;
		TRY(explain_values(&t, &figures[i], tables, err));
		TRY(explain_events(&t, &figures[i], tables, err));
	}
	return buf_status(out, err);
}
