/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the figures with a name. */
#include "analyze/explain/explain.h"

#include "analyze/report/check/check.h"
#include "analyze/report/report_list.h"

#include <ctype.h>
#include <stdio.h>

static const char *const default_phases[] = { "validation", "checkpoint",    "data",
					      "optimizer",  "backward",      "forward",
					      "other",      "before_window", "unattributed" };

static const struct {
	const char *name, *is;
} verdicts[] = {
	{ "input_bound", "GPUs wait while the step thread waits for or prepares input" },
	{ "host_bound", "GPUs wait for the host: launches, operators, optimizer, allocator" },
	{ "sync_bound",
	  "the host waits for GPUs, which then have nothing to do until it launches" },
	{ "compile_bound", "GPUs wait while code is compiled" },
	{ "comm_bound", "communication runs and no compute" },
	{ "copy_bound", "copies run and no compute, or the host waits for copies" },
	{ "compute_bound",
	  "GPUs are busy with kernels; a change is assumed to save a third of that time" },
	{ "unbalanced", "ranks wait in collectives for other ranks" },
	{ "no_verdict", "time without a known cause exceeds what the best change saves" },
	{ "no_gpu", "the file has no GPU work with times" },
};

const char *figure_verdict(const char *name)
{
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		if (!strcmp(verdicts[i].name, name))
			return verdicts[i].is;
	return NULL;
}

const char *figure_check(const char *name)
{
	for (size_t i = 0; i < CHECKS; i++)
		if (!strcmp(check_types[i].name, name))
			return check_types[i].meaning;
	return NULL;
}

/* ---- everything that has a name --------------------------------------------------------- */

void figures_visit(visit_figure *visit, void *self)
{
	static const struct rule *const rules[] = { rules_gpu, rules_host, rules_ranks, rules_cpu,
						    rules_health };
	const struct table_type *tables[REPORT_TABLES_MAX];
	size_t count = report_tables(tables);

	for (const struct report_type *const *r = report_types; *r; r++)
		visit(self,
		      &(struct figure){
			      .type = FIGURE_REPORT,
			      .report = *r,
			      .table = (*r)->tables ? (*r)->tables[0] : NULL,
		      },
		      (*r)->name);
	for (size_t i = 0; i < count; i++)
		for (const struct column *c = tables[i]->columns; c->name; c++)
			if (c->cell != CELL_HIST)
				visit(self,
				      &(struct figure){ .type = FIGURE_COLUMN,
							.table = tables[i],
							.column = c },
				      c->name);
	for (size_t i = 0; i < count; i++)
		visit(self, &(struct figure){ .type = FIGURE_TABLE, .table = tables[i] },
		      tables[i]->name);
	for (size_t i = 0; i < CAUSE_COUNT; i++)
		visit(self, &(struct figure){ .type = FIGURE_CAUSE }, cause_types[i].word);
	for (size_t i = 0; i < sizeof(default_phases) / sizeof(default_phases[0]); i++)
		visit(self, &(struct figure){ .type = FIGURE_PHASE }, default_phases[i]);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		for (const struct rule *r = rules[i]; r->name; r++)
			visit(self, &(struct figure){ .type = FIGURE_RULE, .rule = r }, r->name);
	for (size_t i = 0; i < CHECKS; i++)
		visit(self, &(struct figure){ .type = FIGURE_CHECK }, check_types[i].name);
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		visit(self, &(struct figure){ .type = FIGURE_VERDICT }, verdicts[i].name);
}

/* ---- matching --------------------------------------------------------------------------- */

struct search {
	const char *asked; /* the name */
	const char *table; /* prefix of the table's name, with its length; NULL: any table */
	size_t table_len;
	unsigned types; /* bit set of enum figure_type */
	struct figure *out;
	size_t count;
};

static void add(struct search *s, const struct figure *one, const char *name)
{
	if (s->count == FIGURES_MAX)
		return;
	s->out[s->count] = *one;
	snprintf(s->out[s->count++].name, FIGURE_NAME, "%s", name);
}

/* Converts to the spelling of JSON: small letters, underscores for blanks and dashes. */
static void plain_text(const char *text, char out[FIGURE_NAME])
{
	size_t i;

	for (i = 0; text[i] && i + 1 < FIGURE_NAME; i++)
		out[i] = text[i] == ' ' || text[i] == '-' ? '_'
							  : (char)tolower((unsigned char)text[i]);
	out[i] = '\0';
}

static bool is_prefix(const char *name, const char *begin, size_t len)
{
	return strlen(name) == len && !strncmp(name, begin, len);
}

static bool matches_column(const struct search *s, const struct table_type *t,
			   const struct column *c)
{
	static const char *const units[] = { "", "_ns", "_pct", "_bytes", "_ns_per_step" };
	size_t keys = t->under ? table_keys(t->under) : 0, len = strlen(s->asked);
	char title[FIGURE_NAME];

	if ((size_t)(c - t->columns) < keys) /* keys of the parent table */
		return false;
	if (s->table && !is_prefix(t->name, s->table, s->table_len) &&
	    !is_prefix(table_member(t), s->table, s->table_len))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strncmp(c->name, s->asked, len) && !strcmp(c->name + len, units[i]))
			return true;
	plain_text(c->title ? c->title : "", title);
	return c->title && !strcmp(title, s->asked);
}

static void match(void *self, const struct figure *f, const char *name)
{
	struct search *s = self;
	size_t len = strcspn(s->asked, ":");

	if (!(s->types & 1u << f->type))
		return;
	if (f->type == FIGURE_COLUMN ? matches_column(s, f->table, f->column)
				     : !strcmp(name, s->asked))
		add(s, f, name);
	else if (f->type == FIGURE_CAUSE && s->asked[len] && is_prefix(name, s->asked, len) &&
		 !strcmp(name, cause_types[CAUSE_HOST].word))
		add(s, f, s->asked);
}

static void search_for(struct search *s, const char *asked, unsigned types)
{
	s->asked = asked;
	s->types = types;
	figures_visit(match, s);
}

/* Finds a phase of the input that is not one of the defaults. */
static void search_phases(struct search *s, const char *asked, struct tables *tables)
{
	struct table *t = tables ? tables_find(tables, "phases") : NULL;
	size_t at = t ? table_column(t, "name") : 0;

	for (size_t i = 0; t && i < table_count(t); i++)
		if (table_at(t, i)[at].text && !strcmp(table_at(t, i)[at].text, asked)) {
			add(s, &(struct figure){ .type = FIGURE_PHASE }, asked);
			return;
		}
}

static bool has_phase(const struct search *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->out[i].type == FIGURE_PHASE)
			return true;
	return false;
}

/* Finds "gpus.idle_ns", "idle_causes.data", "phases.data.wall_ns", which findings use for their
 * figures. */
static void search_path(struct search *s, const char *asked, struct tables *tables)
{
	const char *rest = strchr(asked, '.'), *last = strrchr(asked, '.');
	char middle[FIGURE_NAME];

	s->table = asked;
	s->table_len = (size_t)(rest - asked);
	search_for(s, last + 1, 1u << FIGURE_COLUMN);
	snprintf(middle, sizeof(middle), "%.*s",
		 last > rest ? (int)(last - rest - 1) : (int)strlen(rest + 1), rest + 1);
	if (is_prefix("idle_causes", asked, s->table_len))
		search_for(s, middle, 1u << FIGURE_CAUSE);
	if (!is_prefix("phases", asked, s->table_len) || (last == rest && s->count))
		return;
	search_for(s, middle, 1u << FIGURE_PHASE);
	if (!has_phase(s))
		search_phases(s, middle, tables);
}

size_t figures_find(const char *text, struct tables *tables, struct figure out[FIGURES_MAX])
{
	static const char *const titles[][2] = { { "fix_first", "findings" },
						 { "gpu_time", "gpus" } };
	struct search s = { .out = out };
	char asked[FIGURE_NAME];

	plain_text(text, asked);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (!strcmp(asked, titles[i][0])) /* title of a section of the page */
			snprintf(asked, sizeof(asked), "%s", titles[i][1]);
	search_for(&s, asked, ~0u);
	if (!has_phase(&s))
		search_phases(&s, asked, tables);
	if (!s.count)
		search_phases(&s, text, tables); /* annotations keep the user's spelling */
	if (!s.count && strchr(asked, '.'))
		search_path(&s, asked, tables);
	return s.count;
}

static void try_similar(void *self, const struct figure *f, const char *name)
{
	similar_try(self, name);
}

enum status figure_unknown(const char *text, struct error *err)
{
	char asked[FIGURE_NAME];
	struct similar s = { .name = asked };

	plain_text(text, asked);
	s.len = strlen(asked);
	figures_visit(try_similar, &s);
	return fail(err, ST_USAGE, NOWHERE, "--explain %.40s: no such figure%s%.40s%s", text,
		    s.best ? "; did you mean " : "", s.best ? s.best : "", s.best ? "?" : "");
}
