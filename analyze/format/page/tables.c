/* SPDX-License-Identifier: Apache-2.0 */
/* Shows any table as it is, and phases in the terms of other tools. */
#include "analyze/format/page/internal.h"

#include <ctype.h>
#include <math.h>

enum { MD_ROWS = 50, ACTION_WIDTH = 29, GRAPHS_WIDE = 130 };

/* Returns whether a column is shown. In a terminal the rank is only a column if there are several;
 * Markdown has exact values. */
static bool is_wanted(const struct page *p, const struct column *c)
{
	if (!c->title)
		return false;
	if (p->medium == MEDIUM_MD)
		return true;
	return c->cell != CELL_HIST && (strcmp(c->name, "rank") != 0 || p->ranks.count > 1);
}

struct brief { /* the short name of a row */
	const char *text, *name;
	size_t row;
};

/* Returns the short names by row. If several names have the same short name, all but the first end
 * in a number, which is the same for a name on all ranks. */
static const char **short_names(const struct view *v, struct blocks *b)
{
	const char **texts = blocks_take(b, v->count, sizeof(*texts));
	struct brief *all = blocks_take(b, v->count, sizeof(*all));
	unsigned number = 1;

	if (!texts || !all)
		return NULL;
	for (size_t i = 0; i < v->count; i++)
		all[i] = (struct brief){ view_text(v, i, "short"), view_text(v, i, "name"), i };
	SORT_BY(all, v->count, UP(struct brief, text), UP(struct brief, name),
		UP(struct brief, row));
	for (size_t i = 0; i < v->count; i++) {
		if (!i || strcmp(all[i].text, all[i - 1].text) != 0)
			number = 1;
		else if (strcmp(all[i].name, all[i - 1].name) != 0)
			number++;
		texts[all[i].row] =
			number == 1 ? all[i].text : blocks_text(b, "%s #%u", all[i].text, number);
	}
	return texts;
}

/* Returns the text of a cell. `unit` NULL: not a time. */
static const char *value_text(const struct page *p, struct blocks *b, const struct column *c,
			      union value v, const struct time_unit *unit)
{
	if (column_is_text(c) && is_text(p)) /* more does not fit in any line */
		return blocks_text(b, "%.1023s", v.text ? v.text : "");
	if (column_is_text(c))
		return v.text ? v.text : "";
	/* Shares are percentages, but ratios near 1 need more than one decimal. */
	unsigned decimals = name_ends_in(c->name, "slowdown") ? 3 : 1;
	if (c->cell == CELL_F64 && isfinite(v.f64) && v.f64 < 0)
		return blocks_text(b, "-%s", show_number(b, -v.f64, decimals));
	if (c->cell == CELL_F64)
		return isfinite(v.f64) ? show_number(b, v.f64, decimals) : "";
	if (v.u64 == NO_U64 || c->cell == CELL_HIST)
		return "";
	if (c->cell == CELL_BOOL)
		return v.u64 ? "yes" : "no";
	return unit ? show_time(b, (double)v.u64, unit) : show_count(b, v.u64);
}

static const char *title_text(struct blocks *b, const struct column *c,
			      const struct time_unit *unit)
{
	if (unit)
		return blocks_text(b, "%s %s", c->title, unit->name);
	return c->of && !strcmp(c->title, "%") ? blocks_text(b, "%% of %s", c->of) : c->title;
}

/* Adds a heading: "step_stats" becomes "STEP STATS" or "Step stats"; Markdown keeps the name of
 * --report and JSON. */
static struct block *add_heading(const struct page *p, const struct view *v, struct blocks *b)
{
	char title[64];
	size_t i;

	for (i = 0; v->type->name[i] && i + 1 < sizeof(title); i++)
		title[i] =
			v->type->name[i] == '_' && p->medium != MEDIUM_MD ? ' ' : v->type->name[i];
	title[i] = '\0';
	if (p->medium == MEDIUM_HTML)
		title[0] = (char)toupper((unsigned char)title[0]);
	return add_section(b, blocks_text(b, "%s", title), NULL);
}

void build_table(const struct page *p, const struct view *v, struct blocks *b)
{
	struct block_column columns[COLUMNS_MAX];
	struct time_unit units[COLUMNS_MAX];
	bool is_time[COLUMNS_MAX] = { false }, has_graphs = false;
	size_t places[COLUMNS_MAX], count = 0, rows = v->count;
	size_t most = p->medium == MEDIUM_MD ? COLUMNS_MAX : 24, brief = COLUMNS_MAX;
	const char **briefs = NULL;

	if (v->type->is_seldom && !v->count)
		return;
	struct block *head = add_heading(p, v, b);
	if (!view_is_shown(v) || (!v->count && p->medium != MEDIUM_MD)) {
		const char *words =
			v->count ? blocks_text(b, "%zu rows: --format json", v->count) : "none";

		unsigned behind = (unsigned)strlen(head->section.title) + 2;
		if (behind > head->section.note_at)
			head->section.note_at = behind;
		if (is_text(p))
			head->section.note = words;
		else
			add_sentence(b, ROLE_NOTE, 0, words);
		return;
	}
	for (size_t i = 0; v->type->columns[i].name && count < most; i++) {
		const struct column *c = &v->type->columns[i];
		double longest = 0;

		if (!is_wanted(p, c))
			continue;
		is_time[count] = p->medium != MEDIUM_MD && name_ends_in(c->name, "_ns");
		for (size_t k = 0; is_time[count] && k < v->count; k++)
			if (v->rows[k][i].u64 != NO_U64 && (double)v->rows[k][i].u64 > longest)
				longest = (double)v->rows[k][i].u64;
		bool is_of_graphs = is_text(p) && !strncmp(c->name, "capture_", 8);

		if (is_of_graphs && !(longest > 0))
			continue; /* no captures were given */
		has_graphs |= is_of_graphs;
		units[count] = time_unit_of(longest, 2);
		places[count] = i;
		if (c->cell == CELL_TEXT && !strcmp(c->name, "short"))
			brief = count;
		const char *title = title_text(b, c, is_time[count] ? &units[count] : NULL);
		columns[count++] = (struct block_column){
			.title = title,
			.md = c->name,
			.class = column_is_text(c) ? "left" : NULL,
			.is_left =
				p->medium == MEDIUM_MD ? c->cell == CELL_TEXT : column_is_text(c),
		};
	}
	/* With captures, the work of replayed graphs is most important, so host times give way to
	 * it.
	 */
	for (size_t i = 0; has_graphs && p->width < GRAPHS_WIDE && i < count; i++)
		if (!strncmp(columns[i].md, "host_", 5) || !strcmp(columns[i].md, "gpu_calls") ||
		    !strcmp(columns[i].md, "gpu_self_pct"))
			columns[i].hidden = IN(MEDIUM_TEXT) | LEFT_OUT;
	struct block_table *t = add_table(b, columns, count);
	t->is_fitted = true;
	if (is_text(p) && brief < count)
		briefs = short_names(v, b);
	if (p->medium != MEDIUM_TEXT && rows > MD_ROWS)
		rows = MD_ROWS;
	for (size_t k = 0; k < rows; k++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		for (size_t i = 0; i < count; i++)
			add_cell(r, briefs && i == brief
					    ? briefs[k]
					    : value_text(p, b, &v->type->columns[places[i]],
							 v->rows[k][places[i]],
							 is_time[i] ? &units[i] : NULL));
	}
	if (rows < v->count)
		add_sentencef(b, ROLE_NOTE, 0, "%zu more rows", v->count - rows);
}

/* ---- actions, or phases if the program has none ----------------------------------------- */

struct action { /* an action of one or several ranks */
	const char *name;
	uint64_t count, total_ns, first_end_ns;
	bool is_inferred;
};

/* Adds up the rows of a name over ranks. */
static size_t merge_actions(struct action *all, size_t count)
{
	size_t kept = 0;

	SORT_BY(all, count, UP(struct action, name));
	for (size_t i = 0; i < count; i++) {
		if (!all[i].count)
			continue;
		if (!kept || strcmp(all[kept - 1].name, all[i].name) != 0) {
			all[kept++] = all[i];
			continue;
		}
		all[kept - 1].total_ns += all[i].total_ns;
		all[kept - 1].is_inferred |= all[i].is_inferred;
		all[kept - 1].first_end_ns =
			earlier(all[kept - 1].first_end_ns, all[i].first_end_ns);
		if (!all[i].is_inferred)
			all[kept - 1].count += all[i].count;
	}
	return kept;
}

static void add_line(struct blocks *b, const char *words)
{
	add_sentence(b, ROLE_TEXT, 0, words);
	b->last->words.flow = FLOW_CLIP;
}

static void add_rule(struct blocks *b)
{
	char rule[LINE_WIDTH + 1];

	memset(rule, '-', LINE_WIDTH);
	rule[LINE_WIDTH] = '\0';
	add_line(b, blocks_text(b, "%s", rule));
}

/* Adds a table of one row in Lightning's frame. */
static void add_action(struct blocks *b, const char *const cells[5])
{
	static const unsigned at[] = { 3, 36, 57, 70, 86 }, bars[] = { 0, 33, 54, 67, 85, 99 };
	struct block_column columns[11];

	for (size_t i = 0; i < 6; i++)
		columns[i] = (struct block_column){ .at = bars[i] };
	for (size_t i = 0; i < 5; i++)
		columns[6 + i] =
			(struct block_column){ .at = at[i], .width = i ? 0 : ACTION_WIDTH };
	struct block_table *t = ADD_TABLE(b, columns);
	t->has_no_titles = t->is_framed = true;
	struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
	for (size_t i = 0; i < 6; i++)
		add_cell(r, "|");
	for (size_t i = 0; i < 5; i++)
		add_cell(r, cells[i]);
}

/* Returns the end of a long name, which distinguishes the actions of a class. */
static const char *name_end(struct blocks *b, const char *name)
{
	size_t len = strlen(name);
	const char *from = name + (len > ACTION_WIDTH ? len - ACTION_WIDTH + 1 : 0);

	while ((*from & 0xc0) == 0x80) /* not inside of a character */
		from++;
	return from == name ? name : blocks_text(b, "…%s", from);
}

/* Adds Lightning's report, the longest first. `whole_ns` is 100 %, and `words` describe it. */
static void add_lightning(const struct page *p, struct blocks *b, struct action *all, size_t count,
			  uint64_t whole_ns, const char *words)
{
	static const char *const titles[] = { "Action", "Mean duration (s)", "Num calls",
					      "Total time (s)", "Percentage %" };
	struct action whole = { .name = "Total", .count = p->steps, .total_ns = whole_ns };

	SORT_BY(all, count, DOWN(struct action, total_ns), UP(struct action, name));
	add_line(b, "Profiler Report");
	add_line(b, "");
	add_rule(b);
	add_action(b, titles);
	add_rule(b);
	for (size_t i = 0; i <= count; i++) {
		const struct action *a = i ? &all[i - 1] : &whole;

		if (whole_ns && a->count)
			add_action(
				b,
				(const char *const[]){
					name_end(b, a->name),
					blocks_text(b, "%.5g",
						    (double)a->total_ns / (double)a->count / 1e9),
					blocks_text(b, "%llu", (unsigned long long)a->count),
					blocks_text(b, "%.5g", (double)a->total_ns / 1e9),
					blocks_text(b, "%.5g",
						    (double)a->total_ns / (double)whole_ns * 100),
				});
		if (!i)
			add_rule(b);
	}
	add_rule(b);
	add_line(b, blocks_text(b, "100 %% = %s; nested actions count in each of those around them",
				words));
}

/* Adds the metrics in the order in which they first ended, as a profiler adds them. */
static void add_metrics(const struct page *p, struct blocks *b, struct action *all, size_t count)
{
	SORT_BY(all, count, UP(struct action, first_end_ns), DOWN(struct action, total_ns),
		UP(struct action, name));
	add_line(b, blocks_text(b, "--- Profiling Metrics (Step %llu) ---",
				(unsigned long long)p->steps));
	for (size_t i = 0; i < count; i++)
		add_line(b, blocks_text(b, "%.96s: avg=%.4fs, total=%.2fs, count=%llu", all[i].name,
					(double)all[i].total_ns / (double)all[i].count / 1e9,
					(double)all[i].total_ns / 1e9,
					(unsigned long long)all[i].count));
}

/* Returns a phase as an action: ranges by their whole length; a phase without ranges by its time,
 * once per step. */
static struct action phase_action(const struct page *p, const struct view *v, size_t i)
{
	struct action a = { .name = view_cell(v, i, "name").text,
			    .count = view_u64(v, i, "count"),
			    .total_ns = view_u64(v, i, "inclusive_ns") };

	if (a.count)
		return a;
	a.total_ns = view_u64(v, i, "wall_ns");
	a.count = a.total_ns ? p->steps : 0;
	a.is_inferred = true;
	return a;
}

void build_phases_view(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "actions");
	bool has_own = v.count > 0;
	struct block *before = b->last;
	struct action *all;

	if (!has_own)
		v = page_view(p, "phases");
	all = blocks_take(b, v.count, sizeof(*all));
	if (!all)
		return;
	for (size_t i = 0; i < v.count; i++)
		all[i] = !has_own ? phase_action(p, &v, i)
				  : (struct action){
					    .name = view_cell(&v, i, "name").text,
					    .count = view_u64(&v, i, "count"),
					    .total_ns = view_u64(&v, i, "total_ns"),
					    .first_end_ns = view_u64(&v, i, "first_end_ns"),
				    };
	size_t count = merge_actions(all, v.count);
	if (p->how->view == VIEW_METRICS)
		add_metrics(p, b, all, count);
	else if (has_own)
		add_lightning(p, b, all, count, page_sum(&p->ranks, "span_ns"),
			      "all that was recorded");
	else
		add_lightning(p, b, all, count, page_sum(&p->ranks, "complete_wall_ns"),
			      "wall time of complete steps");
	(before ? before->next : b->first)->has_gap = true;
}
