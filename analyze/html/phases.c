/* SPDX-License-Identifier: Apache-2.0 */
/* PHASES: the host's time beside the GPU's, on one scale. */
#include "analyze/html/put.h"
#include "analyze/page/phases.h"

#include <stdio.h>
#include <stdlib.h>

static void put_gpu_bar(struct html *h, const struct phase_row *r, double most_ns)
{
	static const char letters[PARTS] = { 'c', 'm', 'd', 'i' };
	size_t i;

	html_raw(h, "<td class=\"bar two\">");
	for (i = 0; i < PARTS; i++) {
		char letter = h->page.is_sampled && i == PART_DURING ? 'u' : letters[i];

		if (r->gpu_ns[i] > 0)
			html_rawf(h, "<i class=\"%s\" style=\"width:%.2f%%\"></i>",
				  html_class_name(letter), 100 * r->gpu_ns[i] / most_ns);
	}
	html_raw(h, "</td>");
}

static void put_row(struct html *h, const struct phase_rows *all, size_t i, int tenths,
		    const struct time_unit *unit)
{
	const struct phase_row *r = &all->rows[i];
	double most_ns = phase_rows_most_ns(all);
	char text[NUMBER_TEXT];

	html_raw(h, "<tr><td class=\"label\">");
	html_mark(h, html_token(token_of_phase(r->name)));
	html_text(h, r->label);
	html_raw(h, "</td>");
	html_cell(h, "", time_text(text, r->wall_ns, unit));
	html_cell(h, "", percent_text(text, tenths));
	html_bar(h, "one", token_of_phase(r->name), r->wall_ns / most_ns);
	if (all->has_gpu) {
		html_cell(h, "", time_text(text, phase_row_gpu_ns(r), unit));
		html_cell(h, "", time_text(text, r->gpu_ns[PART_DURING], unit));
		put_gpu_bar(h, r, most_ns);
	}
	html_raw(h, "</tr>\n");
}

static void put_sum(struct html *h, const struct phase_rows *all, const struct time_unit *unit)
{
	const struct phase_row *sum = &all->sum;
	double gpu_ns = phase_row_gpu_ns(sum);
	char text[NUMBER_TEXT];

	html_raw(h, "<tr class=\"sum\"><td>sum</td>");
	html_cell(h, "", time_text(text, sum->wall_ns, unit));
	html_raw(h, "<td>100.0</td><td class=\"one\"></td>");
	if (all->has_gpu) {
		html_cell(h, "", time_text(text, gpu_ns, unit));
		html_cell(h, "", time_text(text, sum->gpu_ns[PART_DURING], unit));
		html_rawf(h, "<td class=\"two\">= %s %s, the window / %llu</td>",
			  time_text(text, gpu_ns + sum->gpu_ns[PART_DURING], unit), unit->name,
			  (unsigned long long)h->page.steps);
	}
	html_raw(h, "</tr>\n");
}

static void put_table(struct html *h, const struct phase_rows *all, const int *tenths)
{
	struct time_unit unit = time_unit_of(all->sum.wall_ns, 1);
	size_t i;

	html_rawf(h, "<table><thead><tr><th></th><th>host %s</th><th>%s</th><th class=\"one\">"
		     "</th>", unit.name, h->page.has_steps ? "% of step" : "% of window");
	if (all->has_gpu)
		html_rawf(h, "<th>GPU busy<br>for it, %s</th><th>%s<br>meanwhile, %s</th>"
			     "<th class=\"two\"></th>", unit.name,
			  h->page.is_sampled ? "nothing seen" : "GPU idle", unit.name);
	html_raw(h, "</tr></thead><tbody>\n");
	for (i = 0; i < all->count; i++)
		put_row(h, all, i, tenths[i], &unit);
	put_sum(h, all, &unit);
	html_raw(h, "</tbody></table>\n");
}

enum status html_phases(struct html *h, struct error *err)
{
	struct phase_rows all;
	int *tenths = NULL;
	enum status status = phase_rows_take(&h->page, &all, err);

	if (status == ST_OK && all.count)
		status = phase_rows_percents(&all, &tenths, err);
	if (status != ST_OK || !all.count)
		goto out;
	html_section(h, "Phases");
	html_section_note(h, "Host and GPU side by side, mean per %s%s. ~ marks a phase that is "
			     "inferred, not annotated.",
			  h->page.has_steps ? "step" : "window",
			  h->page.ranks.count > 1 ? ", mean of the ranks" : "");
	html_section_body(h);
	put_table(h, &all, tenths);
	html_section_end(h);
out:
	free(tenths);
	phase_rows_release(&all);
	return status;
}
