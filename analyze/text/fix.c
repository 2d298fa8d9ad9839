/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict, above all blocks, and FIX FIRST, next to the prompt. */
#include "analyze/page/fix.h"
#include "analyze/rule.h"

#include <stdio.h>
#include <string.h>

enum { FIX_LINES = 5, RULE_AT = 13, BRIEF_AT = 28 };

void page_verdict(struct page *p)
{
	struct page_verdict v = verdict_take(p);
	unsigned left = 14;

	if (!v.words[0])
		return;
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, v.words);
	text_wrap(&p->text, left, left, TOKEN_BOLD, v.sentence);
	text_end(&p->text);
	if (!v.more)
		return;
	text_wrap(&p->text, left, left, TOKEN_TEXT, v.more);
	text_end(&p->text);
}

/* Where evidence begins: behind the longest rule's name of those shown. */
static unsigned brief_at(const struct view *v)
{
	unsigned at = BRIEF_AT;

	for (size_t i = 0; i < v->count && i < FIX_LINES; i++) {
		unsigned end = RULE_AT + (unsigned)strlen(view_cell(v, i, "rule").text) + 1;

		at = end > at ? end : at;
	}
	return at;
}

static void put_fix(struct page *p, const struct view *v, size_t i, const struct time_unit *unit)
{
	unsigned brief = brief_at(v);
	double saving_ns = (double)view_cell(v, i, "saving_ns_per_step").u64;
	char text[NUMBER_TEXT];
	const char *advice;
	unsigned column;

	text_atf(&p->text, 0, TOKEN_TEXT, "%zu", i + 1);
	if (saving_ns > 0)
		text_at(&p->text, 3, TOKEN_BOLD, "\xe2\x89\xa4");
	if (saving_ns > 0)
		text_right(&p->text, 11, TOKEN_BOLD, time_text(text, saving_ns, unit));
	text_at(&p->text, RULE_AT, TOKEN_TEXT, view_cell(v, i, "rule").text);
	column = text_cut(&p->text, brief, BRIEF_WIDTH, TOKEN_TEXT,
			  view_cell(v, i, "brief").text);
	column = text_at(&p->text, column + 1, TOKEN_DIM, "\xe2\x86\x92 ");
	advice = view_cell(v, i, "advice").text;
	if (column + 8 < p->text.width && strcspn(advice, " ") + column < p->text.width)
		text_clip(&p->text, column, p->text.width - column, TOKEN_TEXT, advice);
	else if (column + 8 < p->text.width)
		text_cut(&p->text, column, p->text.width - column, TOKEN_TEXT, advice);
	text_end(&p->text);
}

void page_fix(struct page *p)
{
	struct view v = page_view(p, "findings");
	struct time_unit unit;
	size_t i;

	if (!v.count)
		return;
	unit = time_unit_of((double)view_cell(&v, 0, "saving_ns_per_step").u64, 1);
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "FIX FIRST");
	text_atf(&p->text, 14, TOKEN_DIM, "saving at most, %s%s; the savings overlap, do not add them up",
		 unit.name, p->has_steps ? " per step" : "");
	text_end(&p->text);
	for (i = 0; i < v.count && i < FIX_LINES; i++)
		put_fix(p, &v, i, &unit);
	if (v.count <= FIX_LINES)
		return;
	text_atf(&p->text, 0, TOKEN_DIM, "%zu more: --report findings", v.count - FIX_LINES);
	text_end(&p->text);
}

/* ---- the report of this name: each with its evidence and all of its advice --------------- */

static void put_finding(struct page *p, const struct view *v, size_t i,
			const struct time_unit *unit)
{
	double saving_ns = (double)view_cell(v, i, "saving_ns_per_step").u64;
	unsigned left;
	char text[NUMBER_TEXT];

	text_end(&p->text);
	text_atf(&p->text, 0, TOKEN_TEXT, "%zu", i + 1);
	if (saving_ns > 0) {
		text_at(&p->text, 3, TOKEN_BOLD, "\xe2\x89\xa4");
		text_right(&p->text, 11, TOKEN_BOLD, time_text(text, saving_ns, unit));
	}
	left = text_at(&p->text, RULE_AT, TOKEN_BOLD, view_cell(v, i, "rule").text);
	if (saving_ns > 0)
		text_atf(&p->text, left, TOKEN_DIM, ", %.1f %% of %s",
			 view_cell(v, i, "share_of_step").f64,
			 p->has_steps ? "a step" : "the window");
	text_end(&p->text);
	text_wrap(&p->text, RULE_AT, RULE_AT, TOKEN_TEXT, view_cell(v, i, "evidence").text);
	text_end(&p->text);
	text_at(&p->text, RULE_AT, TOKEN_DIM, "\xe2\x86\x92 ");
	text_wrap(&p->text, RULE_AT + 2, RULE_AT + 2, TOKEN_TEXT, view_cell(v, i, "advice").text);
	text_end(&p->text);
}

void page_findings(struct page *p)
{
	struct view v = page_view(p, "findings");
	struct time_unit unit;
	size_t i;

	page_head(p, "findings");
	page_verdict(p);
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "FINDINGS");
	if (!v.count) {
		text_at(&p->text, RULE_AT, TOKEN_TEXT, "none: nothing of 0.5 % of a step or more");
		text_end(&p->text);
		return;
	}
	unit = time_unit_of((double)view_cell(&v, 0, "saving_ns_per_step").u64, 1);
	text_atf(&p->text, RULE_AT, TOKEN_DIM,
		 "saving at most, %s%s; the savings overlap, do not add them up", unit.name,
		 p->has_steps ? " per step" : "");
	text_end(&p->text);
	for (i = 0; i < v.count; i++)
		put_finding(p, &v, i, &unit);
}
