/* SPDX-License-Identifier: Apache-2.0 */
/* From a name to what it names. */
#include "analyze/explain/explain.h"

#include "analyze/report/check/check.h"
#include "analyze/report/report_list.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const default_phases[] = { "validation", "checkpoint",    "data",
					      "optimizer",  "backward",      "forward",
					      "other",      "before_window", "unattributed" };
static const struct {
	const char *name, *meaning;
} checks[] = {
#define X(name, meaning) { #name, meaning },
	CHECK_LIST(X)
#undef X
};

const char *figure_check(const char *name)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(checks[i].name, name))
			return checks[i].meaning;
	return NULL;
}

/* ---- everything that has a name --------------------------------------------------------- */

static const struct table_type *table_by(size_t *left)
{
	const struct report_type *const *all = report_types;
	size_t i, k;

	for (k = 0; report_base.tables[k]; k++)
		if (!(*left)--)
			return report_base.tables[k];
	for (i = 0; all[i]; i++)
		for (k = 0; all[i]->tables[k]; k++)
			if (!(*left)--)
				return all[i]->tables[k];
	return NULL;
}

/* Printed tables only, each once. */
static const struct table_type *table_number(size_t index)
{
	const struct table_type *t;
	size_t left, k;

	for (size_t at = 0; left = at, (t = table_by(&left)); at++) {
		for (k = 0; left = k, table_by(&left) != t; k++)
			;
		if (k == at && t->nest != NEST_NEVER && !index--)
			return t;
	}
	return NULL;
}

static const struct rule *rule_number(size_t index)
{
	static const struct rule *const all[] = { rules_gpu, rules_host, rules_ranks };
	size_t i, k;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (k = 0; all[i][k].name; k++)
			if (!index--)
				return &all[i][k];
	return NULL;
}

static const char *column_name(size_t *left)
{
	const struct table_type *t;

	for (size_t i = 0; (t = table_number(i)); i++)
		for (size_t k = 0; t->columns[k].name; k++)
			if (t->columns[k].cell != CELL_HIST && !(*left)--)
				return t->columns[k].name;
	return NULL;
}

const char *figure_name(size_t index)
{
	const struct table_type *t;
	const struct rule *r;
	const char *name = column_name(&index);

	if (name)
		return name;
	for (size_t i = 0; (t = table_number(i)); i++)
		if (!index--)
			return t->name;
	for (size_t i = 0; i < CAUSE_COUNT; i++)
		if (!index--)
			return cause_word((enum cause)i);
	for (size_t i = 0; (r = rule_number(i)); i++)
		if (!index--)
			return r->name;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!index--)
			return checks[i].name;
	return index < sizeof(default_phases) / sizeof(default_phases[0]) ? default_phases[index]
									  : NULL;
}

/* ---- matching --------------------------------------------------------------------------- */

struct found {
	struct figure *out;
	size_t count;
};

static void add(struct found *f, struct figure one, const char *name)
{
	if (f->count == FIGURES_MAX)
		return;
	snprintf(one.name, sizeof(one.name), "%s", name);
	f->out[f->count++] = one;
}

/* Small letters; blanks and dashes are underscores: as JSON writes names. */
static void plain_text(const char *text, char out[FIGURE_NAME])
{
	size_t i;

	for (i = 0; text[i] && i + 1 < FIGURE_NAME; i++)
		out[i] = text[i] == ' ' || text[i] == '-' ? '_'
							  : (char)tolower((unsigned char)text[i]);
	out[i] = '\0';
}

static bool matches(const struct column *c, const char *asked)
{
	static const char *const units[] = { "_ns", "_pct", "_bytes", "_ns_per_step" };
	char title[FIGURE_NAME];
	size_t len = strlen(asked), i;

	if (!strcmp(c->name, asked))
		return true;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strncmp(c->name, asked, len) && !strcmp(c->name + len, units[i]))
			return true;
	if (!c->title)
		return false;
	plain_text(c->title, title);
	return !strcmp(title, asked);
}

static void find_columns(struct found *f, const struct table_type *t, const char *asked)
{
	size_t i = t->under ? table_keys(t->under) : 0; /* the rest of its keys are theirs */

	for (; t->columns[i].name; i++)
		if (t->columns[i].cell != CELL_HIST && matches(&t->columns[i], asked))
			add(f,
			    (struct figure){
				    .type = FIGURE_COLUMN, .table = t, .column = &t->columns[i] },
			    t->columns[i].name);
}

static void find_cause(struct found *f, const char *asked)
{
	size_t len = strcspn(asked, ":");

	for (size_t i = 0; i < CAUSE_COUNT; i++) {
		const char *word = cause_word((enum cause)i);

		if (!strcmp(word, asked) || (i == CAUSE_HOST && asked[len] == ':' &&
					     len == strlen(word) && !strncmp(word, asked, len)))
			add(f, (struct figure){ .type = FIGURE_CAUSE }, asked);
	}
}

static void find_phase(struct found *f, const char *asked, struct tables *tables)
{
	struct table *t = tables ? tables_find(tables, "phases") : NULL;
	size_t at = t ? table_column(t, "name") : 0;
	bool known = false;

	for (size_t i = 0; i < sizeof(default_phases) / sizeof(default_phases[0]); i++)
		known |= !strcmp(default_phases[i], asked);
	for (size_t i = 0; t && i < table_count(t); i++)
		known |= table_at(t, i)[at].text && !strcmp(table_at(t, i)[at].text, asked);
	if (known)
		add(f, (struct figure){ .type = FIGURE_PHASE }, asked);
}

/* "gpus.idle_ns", "idle_causes.data", "phases.data.wall_ns": as findings name what is behind. */
static void find_path(struct found *f, const char *asked, struct tables *tables)
{
	const char *rest = strchr(asked, '.'), *last = strrchr(asked, '.');
	const struct table_type *t;
	char middle[FIGURE_NAME];
	size_t len = (size_t)(rest - asked), before = f->count;

	for (size_t i = 0; (t = table_number(i)); i++)
		if ((strlen(t->name) == len && !strncmp(t->name, asked, len)) ||
		    (strlen(t->member) == len && !strncmp(t->member, asked, len)))
			find_columns(f, t, last + 1);
	snprintf(middle, sizeof(middle), "%.*s",
		 last > rest ? (int)(last - rest - 1) : (int)strlen(rest + 1), rest + 1);
	if (!strncmp(asked, "idle_causes.", 12))
		find_cause(f, middle);
	if (!strncmp(asked, "phases.", 7) && (last > rest || f->count == before))
		find_phase(f, middle, tables);
}

size_t figures_find(const char *text, struct tables *tables, struct figure out[FIGURES_MAX])
{
	struct found f = { .out = out };
	const struct table_type *t;
	const struct rule *r;
	char asked[FIGURE_NAME];

	plain_text(text, asked);
	for (size_t i = 0; (t = table_number(i)); i++)
		find_columns(&f, t, asked);
	for (size_t i = 0; (t = table_number(i)); i++)
		if (!strcmp(t->name, asked))
			add(&f, (struct figure){ .type = FIGURE_TABLE, .table = t }, t->name);
	find_cause(&f, asked);
	find_phase(&f, asked, tables);
	if (!f.count)
		find_phase(&f, text, tables); /* names of annotations are as the user wrote them */
	for (size_t i = 0; (r = rule_number(i)); i++)
		if (!strcmp(r->name, asked))
			add(&f, (struct figure){ .type = FIGURE_RULE, .rule = r }, r->name);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(checks[i].name, asked))
			add(&f, (struct figure){ .type = FIGURE_CHECK }, checks[i].name);
	if (!f.count && strchr(asked, '.'))
		find_path(&f, asked, tables);
	return f.count;
}

/* ---- the nearest names ------------------------------------------------------------------ */

/* Letters to change, add or take away; at most 64 of each. */
static size_t distance(const char *a, const char *b)
{
	size_t row[65], n = strnlen(b, 64);

	for (size_t k = 0; k <= n; k++)
		row[k] = k;
	for (size_t i = 0; i < 64 && a[i]; i++) {
		size_t corner = row[0]++;
		for (size_t k = 1; k <= n; k++) {
			size_t up = row[k];
			row[k] = corner + (a[i] != b[k - 1]);
			if (up + 1 < row[k])
				row[k] = up + 1;
			if (row[k - 1] + 1 < row[k])
				row[k] = row[k - 1] + 1;
			corner = up;
		}
	}
	return row[n];
}

/* A beginning of the name may have been meant. */
static size_t distance_to(const char *asked, const char *name)
{
	char begin[FIGURE_NAME];
	size_t whole = distance(asked, name);

	snprintf(begin, sizeof(begin), "%.*s", (int)strlen(asked) + 1, name);
	size_t part = distance(asked, begin);
	if (strlen(asked) > 2 && strstr(name, asked))
		return 0;
	return 1 + (whole < part + 1 ? whole : part + 1);
}

enum { NEAR = 3 };

static void near_take(const char *names[NEAR], size_t far[NEAR], const char *name, size_t how_far)
{
	size_t i;

	for (i = 0; i < NEAR; i++)
		if (names[i] && !strcmp(names[i], name))
			return;
	for (i = 0; i < NEAR && names[i] && far[i] <= how_far; i++)
		;
	if (i == NEAR)
		return;
	for (size_t k = NEAR - 1; k > i; k--) {
		names[k] = names[k - 1];
		far[k] = far[k - 1];
	}
	names[i] = name;
	far[i] = how_far;
}

enum status figure_unknown(const char *text, struct error *err)
{
	const char *names[NEAR] = { NULL }, *name;
	size_t far[NEAR] = { 0 };
	char asked[FIGURE_NAME];

	plain_text(text, asked);
	for (size_t i = 0; (name = figure_name(i)); i++)
		near_take(names, far, name, distance_to(asked, name));
	return fail(err, ST_USAGE, NOWHERE,
		    "--explain %.40s: no such figure; near: %.40s, %.40s, "
		    "%.40s",
		    text, names[0], names[1], names[2]);
}
