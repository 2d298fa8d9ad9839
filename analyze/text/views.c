/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `steps`, and phases in the words of other tools. */
#include "analyze/text/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status page_steps(struct page *p, struct error *err)
{
	static const char *const tables[] = { "step_stats", "slow_steps", "steps", "step_gpus" };
	size_t i;
	bool any = false;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct view v = page_view(p, tables[i]);

		if (!v.count)
			continue;
		if (any)
			text_end(&p->text);
		page_table(p, &v);
		any = true;
	}
	return ST_OK;
}

/* ---- actions ---------------------------------------------------------------------------- */

struct action { /* of one or several ranks */
	const char *name;
	uint64_t count, total_ns;
	bool is_inferred;
};

static int compare_names(const void *pa, const void *pb)
{
	const struct action *a = pa, *b = pb;

	return strcmp(a->name, b->name);
}

static int compare_totals(const void *pa, const void *pb)
{
	const struct action *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

/* Ranges by their whole length; a phase that no range names by its time, once for each step. */
static struct action action_of(const struct page *p, const struct view *v, size_t row)
{
	struct action a = { .name = view_cell(v, row, "name").text };

	a.count = view_cell(v, row, "count").u64;
	a.total_ns = view_cell(v, row, "inclusive_ns").u64;
	if (a.count)
		return a;
	a.total_ns = view_cell(v, row, "wall_ns").u64;
	a.count = a.total_ns ? p->steps : 0;
	a.is_inferred = true;
	return a;
}

/* Several ranks' rows of one name become one. */
static size_t actions_join(struct action *all, size_t count)
{
	size_t i, kept = 0;

	qsort(all, count, sizeof(*all), compare_names);
	for (i = 0; i < count; i++) {
		if (!all[i].count)
			continue;
		if (!kept || strcmp(all[kept - 1].name, all[i].name)) {
			all[kept++] = all[i];
			continue;
		}
		all[kept - 1].total_ns += all[i].total_ns;
		all[kept - 1].is_inferred |= all[i].is_inferred;
		if (!all[i].is_inferred)
			all[kept - 1].count += all[i].count;
	}
	qsort(all, kept, sizeof(*all), compare_totals);
	return kept;
}

static void put_metrics(struct page *p, const struct action *all, size_t count)
{
	size_t i;

	text_atf(&p->text, 0, TOKEN_TEXT, "--- Profiling Metrics (Step %llu) ---",
		 (unsigned long long)p->steps);
	text_end(&p->text);
	for (i = 0; i < count; i++) {
		text_atf(&p->text, 0, TOKEN_TEXT, "%.48s: avg=%.4fs, total=%.2fs, count=%llu",
			 all[i].name, (double)all[i].total_ns / (double)all[i].count / 1e9,
			 (double)all[i].total_ns / 1e9, (unsigned long long)all[i].count);
		text_end(&p->text);
	}
}

static void put_action(struct page *p, const char *name, const char *mean, const char *calls,
		       const char *total, const char *percent)
{
	text_at(&p->text, 0, TOKEN_TEXT, "|");
	text_cut(&p->text, 3, 29, TOKEN_TEXT, name);
	text_at(&p->text, 33, TOKEN_TEXT, "|");
	text_at(&p->text, 36, TOKEN_TEXT, mean);
	text_at(&p->text, 54, TOKEN_TEXT, "|");
	text_at(&p->text, 57, TOKEN_TEXT, calls);
	text_at(&p->text, 67, TOKEN_TEXT, "|");
	text_at(&p->text, 70, TOKEN_TEXT, total);
	text_at(&p->text, 85, TOKEN_TEXT, "|");
	text_at(&p->text, 86, TOKEN_TEXT, percent);
	text_at(&p->text, 99, TOKEN_TEXT, "|");
	text_end(&p->text);
}

static void put_rule(struct page *p)
{
	text_fill(&p->text, 0, LINE_WIDTH, TOKEN_TEXT, '-');
	text_end(&p->text);
}

static void put_row(struct page *p, const struct action *a, double whole_ns)
{
	char mean[NUMBER_TEXT], calls[NUMBER_TEXT], total[NUMBER_TEXT], percent[NUMBER_TEXT];

	snprintf(mean, sizeof(mean), "%.5g", (double)a->total_ns / (double)a->count / 1e9);
	snprintf(calls, sizeof(calls), "%llu", (unsigned long long)a->count);
	snprintf(total, sizeof(total), "%.5g", (double)a->total_ns / 1e9);
	snprintf(percent, sizeof(percent), "%.5g", (double)a->total_ns / whole_ns * 100);
	put_action(p, a->name, mean, calls, total, percent);
}

static void put_lightning(struct page *p, const struct action *all, size_t count)
{
	struct action whole = { .name = "Total", .count = p->steps };
	size_t i;

	whole.total_ns = page_sum(&p->ranks, "complete_wall_ns");
	text_at(&p->text, 0, TOKEN_TEXT, "Profiler Report");
	text_end(&p->text);
	text_end(&p->text);
	put_rule(p);
	put_action(p, "Action", "Mean duration (s)", "Num calls", "Total time (s)", "Percentage %");
	put_rule(p);
	if (whole.total_ns)
		put_row(p, &whole, (double)whole.total_ns);
	put_rule(p);
	for (i = 0; i < count && whole.total_ns; i++)
		put_row(p, &all[i], (double)whole.total_ns);
	put_rule(p);
	text_at(&p->text, 0, TOKEN_TEXT, "100 % = wall time of complete steps; nested actions "
		"count in each of those around them");
	text_end(&p->text);
}

enum status page_phases_view(struct page *p, struct error *err)
{
	struct view v = page_view(p, "phases");
	struct action *all = calloc(v.count + 1, sizeof(*all));
	size_t i, count;

	if (!all)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < v.count; i++)
		all[i] = action_of(p, &v, i);
	count = actions_join(all, v.count);
	if (p->view == VIEW_METRICS)
		put_metrics(p, all, count);
	else
		put_lightning(p, all, count);
	free(all);
	return ST_OK;
}
