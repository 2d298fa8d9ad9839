/* SPDX-License-Identifier: Apache-2.0 */
/* FRONTIER: whose time the job's time was. */
#include "analyze/html/put.h"
#include "analyze/page/ranks.h"

#include <string.h>

/* "data", "host:forward": the cause names the phase. */
static bool is_said(const struct frontier_row *r)
{
	size_t phase = strlen(r->phase), kind = strlen(r->kind);

	return kind >= phase && !strcmp(r->kind + kind - phase, r->phase);
}

static void put_row(struct html *h, const struct frontier_row *r, double most,
		    const struct time_unit *unit)
{
	char text[NUMBER_TEXT];

	html_rawf(h, "<tr%s><td class=\"label\">", *r->kind ? "" : " class=\"rest\"");
	html_text(h, r->who);
	html_raw(h, "</td><td class=\"left\">");
	if (*r->kind && !is_said(r)) {
		html_text(h, r->phase);
		html_raw(h, " \xc2\xb7 ");
	}
	html_text(h, r->kind);
	html_raw(h, "</td>");
	html_cell(h, "", time_text(text, r->ns, unit));
	html_cell(h, "", percent_text(text, r->tenths));
	html_bar(h, "one", r->token == TOKEN_DIM ? TOKEN_OTHER : r->token,
		 *r->kind && most > 0 ? r->ns / most : 0);
	html_cell(h, "median", time_text(text, r->mean_ns, unit));
	html_cell(h, "median", frontier_over_text(text, r->ns - r->mean_ns, unit));
	html_raw(h, "</tr>\n");
}

void html_frontier(struct html *h)
{
	struct frontier_rows all;
	struct time_unit unit;
	char words[FRONTIER_TEXT];
	size_t i;

	frontier_rows_take(&h->page, &all);
	if (!all.count)
		return;
	unit = time_unit_of(all.step_ns, 2);
	html_section(h, "Frontier");
	html_section_note(h, "whose time the job&#39;s time was");
	html_section_body(h);
	html_raw(h, "<p>");
	html_text(h, frontier_text(&all, words));
	html_raw(h, "</p>\n");
	html_rawf(h, "<table><thead><tr><th></th><th></th><th>%s</th><th>%% of step</th>"
		     "<th class=\"one\"></th><th class=\"median\">mean rank</th>"
		     "<th class=\"median\">over mean</th></tr></thead><tbody>\n", unit.name);
	for (i = 0; i < all.count; i++)
		put_row(h, &all.rows[i], all.rows[0].ns, &unit);
	html_raw(h, "</tbody></table>\n");
	html_section_end(h);
}
