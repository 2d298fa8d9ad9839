/* SPDX-License-Identifier: Apache-2.0 */
/* COMMUNICATION and RANKS: collectives, who waits for whom. */
#include "analyze/html/put.h"
#include "analyze/page/ranks.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMM_ROWS = 8 };

/* ---- collectives ------------------------------------------------------------------------ */

static void put_rate(struct html *h, const char *class, double value, bool is_matched)
{
	char text[NUMBER_TEXT], number[NUMBER_TEXT];

	snprintf(text, sizeof(text), "%s%.40s", value > 0 && !is_matched ? "\xe2\x89\xa5 " : "",
		 value > 0 ? number_text(number, value, 1) : "");
	html_cell(h, class, text);
}

static void put_comm(struct html *h, const struct comm_row *r, const struct comm_row *most,
		     const struct time_unit *unit)
{
	double per = 1.0 / (double)h->page.steps;
	char text[NUMBER_TEXT];

	html_raw(h, "<tr><td class=\"name\" title=\"");
	html_text(h, r->group);
	html_raw(h, "\">");
	html_text(h, r->operation);
	html_raw(h, " ");
	html_text(h, r->type);
	html_raw(h, "</td>");
	html_cell(h, "", comm_size_text(text, r->bytes));
	html_cell(h, "", number_text(text, (double)r->calls * per, 0));
	html_cell(h, "", time_text(text, (double)r->total_ns * per, unit));
	html_cell(h, "", time_text(text, (double)r->exposed_ns * per, unit));
	html_cell(h, "", r->matched ? time_text(text, r->wait_ns * per, unit) : "?");
	html_bar(h, "one", TOKEN_COMM, (double)r->total_ns / (double)most->total_ns);
	put_rate(h, "median", r->bus, r->matched > 0);
	html_raw(h, "</tr>\n");
}

static void put_comm_rows(struct html *h, const struct comm_rows *all)
{
	struct time_unit unit =
		time_unit_of((double)all->rows[0].total_ns / (double)h->page.steps, 2);
	size_t i;

	html_section(h, "Communication");
	html_section_note(h, "%s per %s, mean of the ranks", unit.name,
			  h->page.has_steps ? "step" : "window");
	html_section_body(h);
	html_raw(h, "<table class=\"kernels five\"><thead><tr><th></th><th>size</th><th>calls</th>"
		    "<th>total</th><th>exposed</th><th>waiting</th><th class=\"one\"></th>"
		    "<th class=\"median\">bus GB/s</th></tr></thead><tbody>\n");
	for (i = 0; i < all->count && i < COMM_ROWS; i++)
		put_comm(h, &all->rows[i], &all->rows[0], &unit);
	html_raw(h, "</tbody></table>\n");
	if (all->count > COMM_ROWS)
		html_rawf(h, "<p class=\"note\">%zu more: <code>--report comm</code></p>\n",
			  all->count - COMM_ROWS);
	html_section_end(h);
}

enum status html_comm(struct html *h, struct error *err)
{
	struct comm_rows all = { NULL, 0 };
	enum status status = comm_rows_take(&h->page, &all, err);

	if (status == ST_OK && all.count)
		put_comm_rows(h, &all);
	free(all.rows);
	return status;
}

/* ---- ranks ------------------------------------------------------------------------------ */

static void put_wait(struct html *h, const struct wait_row *r, double most,
		     const struct time_unit *unit)
{
	char text[NUMBER_TEXT];

	html_raw(h, "<tr><td class=\"label\">");
	html_text(h, rank_text(&h->page, r->rank, text));
	html_raw(h, "</td>");
	html_cell(h, "", time_text(text, r->wait_ns, unit));
	html_bar(h, "one", TOKEN_COMM, most > 0 ? r->wait_ns / most : 0);
	html_cell(h, "", time_text(text, r->exposed_ns, unit));
	html_cell(h, "", count_text(text, r->last));
	html_cell(h, "", time_text(text, r->late_ns, unit));
	if (r->for_rank == NO_U64)
		text[0] = '\0';
	else
		snprintf(text, sizeof(text), "rank %llu", (unsigned long long)r->for_rank);
	html_cell(h, "median", text);
	html_raw(h, "</tr>\n");
}

static void put_waits(struct html *h, const struct wait_rows *all)
{
	struct time_unit unit = time_unit_of(all->most_ns, 2);
	size_t i;

	html_rawf(h, "<table><thead><tr><th>%s per step</th><th>waits</th><th class=\"one\"></th>"
		     "<th>exposed</th><th>last</th><th>late</th><th class=\"median\">waits for</th>"
		     "</tr></thead><tbody>\n", unit.name);
	for (i = 0; i < all->shown; i++)
		put_wait(h, &all->rows[i], all->most_ns, &unit);
	html_raw(h, "</tbody></table>\n");
	if (all->count > all->shown)
		html_rawf(h, "<p class=\"note\">%zu more ranks: <code>--report ranks</code></p>\n",
			  all->count - all->shown);
}

static void put_ranks(struct html *h, const struct wait_rows *all)
{
	char words[LATE_TEXT];

	html_section(h, "Ranks");
	html_section_note(h, "who waits for whom in the same collectives");
	html_section_body(h);
	if (late_text(&h->page, all, words)) {
		html_raw(h, "<p><b>");
		html_text(h, words);
		html_raw(h, "</b></p>\n");
	}
	if (all->matched)
		put_waits(h, all);
	if (matched_text(all, words)) {
		html_raw(h, "<p class=\"note\">");
		html_text(h, words);
		html_raw(h, "</p>\n");
	}
	html_section_end(h);
}

enum status html_ranks(struct html *h, struct error *err)
{
	struct wait_rows all = { .rows = NULL };
	enum status status = ST_OK;

	if (h->page.ranks.count > 1)
		status = wait_rows_take(&h->page, &all, err);
	if (status == ST_OK && all.count)
		put_ranks(h, &all);
	free(all.rows);
	return status;
}
