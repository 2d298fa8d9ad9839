/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/explain/explain.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

struct pages {
	size_t count, unknown, empty, wide;
};

static void explain_one(void *self, const struct figure *of, const char *name)
{
	struct figure figures[FIGURES_MAX];
	struct format_request how = { .width = 100, .is_utf8 = true };
	struct error err = { 0 };
	struct pages *p = self;
	size_t count = figures_find(name, NULL, figures);
	struct buf page;

	(void)of;
	p->count++;
	p->unknown += count == 0;
	buf_init(&page, 1 << 20);
	CHECK_OK(explain_put(figures, count, NULL, &how, &page, &err), &err);
	p->empty += !strstr(buf_text(&page), "DEFINITIONS.md, section ");
	for (const char *line = buf_text(&page); line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		p->wide += strcspn(line, "\n") > 100 && !memchr(line, '\xe2', 100);
	}
	buf_release(&page);
}

/* Every name that is offered is found, and its page is no wider than a terminal. */
void test_explain_names(void)
{
	struct pages p = { 0 };

	figures_visit(explain_one, &p);
	CHECK(p.count > 300);
	CHECK_U64(p.unknown, 0);
	CHECK_U64(p.empty, 0);
	CHECK_U64(p.wide, 0);
}

static bool has(const char *asked, enum figure_type type, const char *table)
{
	struct figure f[FIGURES_MAX];
	size_t count = figures_find(asked, NULL, f), i;

	for (i = 0; i < count; i++)
		if (f[i].type == type &&
		    (!table || (f[i].table && !strcmp(f[i].table->name, table))))
			return true;
	return false;
}

void test_explain_find(void)
{
	CHECK(has("exposed_comm_ns", FIGURE_COLUMN, "gpus"));
	CHECK(has("exposed_comm", FIGURE_COLUMN, "gpus")); /* without its unit */
	CHECK(has("Exposed comm", FIGURE_COLUMN, "gpus")); /* as it is titled */
	CHECK(has("gpus.idle_ns", FIGURE_COLUMN, "gpus"));
	CHECK(!has("gpus.idle_ns", FIGURE_COLUMN, "cells"));
	CHECK(has("kernels", FIGURE_TABLE, "kernels"));
	CHECK(has("host:forward", FIGURE_CAUSE, NULL));
	CHECK(has("idle_causes.host:forward", FIGURE_CAUSE, NULL));
	CHECK(has("data", FIGURE_CAUSE, NULL) && has("data", FIGURE_PHASE, NULL));
	CHECK(has("phases.data.wall_ns", FIGURE_COLUMN, "phases"));
	CHECK(has("launch_bound", FIGURE_RULE, NULL));
	CHECK(has("sampled", FIGURE_CHECK, NULL));
	CHECK(!has("rank", FIGURE_COLUMN, "kernels")); /* once, not for each table below ranks */
	CHECK(has("rank", FIGURE_COLUMN, "ranks"));
	CHECK(!has("", FIGURE_COLUMN, NULL) && !has("exposd", FIGURE_COLUMN, NULL));
}

void test_explain_unknown(void)
{
	struct error err = { 0 };

	CHECK(figure_unknown("exposd_com", &err) == ST_USAGE);
	CHECK(strstr(err.text, "exposed_comm") != NULL);
	figure_unknown("sinc", &err);
	CHECK(strstr(err.text, "sync") != NULL);
	figure_unknown("", &err);
	figure_unknown("a very long name of something that nobody ever gave to any figure at all, "
		       "and that goes on and on beyond all sense and every buffer made for it",
		       &err);
	CHECK(strstr(err.text, "no such figure") != NULL);
}

/* What findings say that they rest on is explained. */
void test_explain_rules(void)
{
	static const struct rule *const all[] = { rules_gpu, rules_host, rules_ranks, rules_cpu,
						  rules_health };
	struct figure f[FIGURES_MAX];
	size_t i, k, len, missing = 0, checked = 0;
	char one[FIGURE_NAME];

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (k = 0; all[i][k].name; k++) {
			const char *at = all[i][k].figures;

			for (; at && *at; at += len + (at[len] == ' ')) {
				len = strcspn(at, " ");
				snprintf(one, sizeof(one), "%.*s", (int)len, at);
				checked++;
				if (figures_find(one, NULL, f))
					continue;
				missing++;
				fprintf(stderr, "# %s rests on %s, which is no figure\n",
					all[i][k].name, one);
			}
		}
	CHECK(checked > 30);
	CHECK_U64(missing, 0);
}

void test_explain_selections(void)
{
	struct figure f[FIGURES_MAX];
	char selection[FIGURE_NAME] = "";

	CHECK(figures_find("gpus.exposed_comm_ns", NULL, f) && figure_selection(&f[0], selection));
	CHECK_STR(selection, "exposed_comm");
	CHECK(figures_find("stream_wait", NULL, f) && figure_selection(&f[0], selection));
	CHECK_STR(selection, "cause:stream_wait");
	CHECK(figures_find("late_start", NULL, f) && figure_selection(&f[0], selection));
	CHECK_STR(selection, "lead");
	CHECK(figures_find("own_cost", NULL, f) && !figure_selection(&f[0], selection));
}
