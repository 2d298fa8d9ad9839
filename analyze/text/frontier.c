/* SPDX-License-Identifier: Apache-2.0 */
/* FRONTIER: whose time the job's time was. */
#include "analyze/page/ranks.h"

#include <stdio.h>

enum { PHASE_AT = 25, PHASE_WIDTH = 16, KIND_AT = 42, KIND_WIDTH = 18 };
static const unsigned ends[] = { 66, 78, 89, 100 };

static void put_over(struct page *p, const struct frontier_row *r, const struct time_unit *unit)
{
	double over = r->ns - r->mean_ns;
	char text[NUMBER_TEXT];

	frontier_over_text(text, over, unit);
	text_right(&p->text, ends[3], TOKEN_TEXT, text);
}

static void put_row(struct page *p, const struct frontier_row *r, const struct time_unit *unit)
{
	enum token token = *r->kind ? TOKEN_TEXT : TOKEN_DIM;
	char text[NUMBER_TEXT];

	text_at(&p->text, 14, token, r->who);
	text_cut(&p->text, PHASE_AT, PHASE_WIDTH, token, r->phase);
	text_cut(&p->text, KIND_AT, KIND_WIDTH, r->token == TOKEN_COMPUTE ? token : r->token, r->kind);
	text_right(&p->text, ends[0], token, time_text(text, r->ns, unit));
	text_right(&p->text, ends[1], token, percent_text(text, r->tenths));
	text_right(&p->text, ends[2], token, time_text(text, r->mean_ns, unit));
	put_over(p, r, unit);
	text_end(&p->text);
}

void page_frontier(struct page *p)
{
	struct frontier_rows all;
	struct time_unit unit;
	char words[FRONTIER_TEXT];
	size_t i;

	frontier_rows_take(p, &all);
	if (!all.count)
		return;
	unit = time_unit_of(all.step_ns, 2);
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "FRONTIER");
	text_wrap(&p->text, 14, 14, TOKEN_TEXT, frontier_text(&all, words));
	text_end(&p->text);
	text_at(&p->text, 14, TOKEN_DIM, "last");
	text_at(&p->text, PHASE_AT, TOKEN_DIM, "phase");
	text_at(&p->text, KIND_AT, TOKEN_DIM, "what");
	text_right(&p->text, ends[0], TOKEN_DIM, unit.name);
	text_right(&p->text, ends[1], TOKEN_DIM, "% of step");
	text_right(&p->text, ends[2], TOKEN_DIM, "mean rank");
	text_right(&p->text, ends[3], TOKEN_DIM, "over mean");
	text_end(&p->text);
	for (i = 0; i < all.count; i++)
		put_row(p, &all.rows[i], &unit);
}
