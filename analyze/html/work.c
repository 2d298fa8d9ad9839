/* SPDX-License-Identifier: Apache-2.0 */
/* KERNELS and COPIES. */
#include "analyze/html/put.h"
#include "analyze/page/work.h"

#include <stdio.h>
#include <string.h>

enum { KERNEL_ROWS = 10, NAME_WIDTH = 58, COPY_ROWS = 16 };

static void put_calls(struct html *h, double calls)
{
	char text[NUMBER_TEXT];

	html_cell(h, "", number_text(text, calls, 0));
}

static void put_micro(struct html *h, const char *class, uint64_t ns)
{
	struct time_unit unit = { 1e3, 0, "" };
	char text[NUMBER_TEXT];

	html_cell(h, class, ns == NO_U64 ? "" : time_text(text, (double)ns, &unit));
}

static void put_kernel(struct html *h, const struct kernel_rows *all, size_t i, int tenths,
		       const struct time_unit *unit)
{
	const struct kernel_row *r = &all->rows[i];
	double per_step = 1.0 / (double)h->page.steps, ns = (double)r->total_ns;
	bool comm = !strcmp(r->class, "comm");
	char text[NUMBER_TEXT], name[KERNEL_NAME];

	kernel_name(all->rows, i, NAME_WIDTH, name);
	html_raw(h, "<tr><td class=\"name\" title=\"");
	html_text(h, r->name);
	html_raw(h, "\">");
	html_text(h, name);
	html_raw(h, "</td>");
	put_calls(h, (double)r->calls * per_step);
	html_cell(h, "", time_text(text, ns * per_step, unit));
	html_cell(h, "", percent_text(text, tenths));
	html_bar(h, "one", comm ? TOKEN_COMM : TOKEN_COMPUTE,
		 ns / (double)all->rows[0].total_ns);
	put_micro(h, "median", r->median_ns);
	put_micro(h, "median", r->max_ns);
	html_raw(h, "</tr>\n");
}

static void put_sums(struct html *h, const char *class, const char *label,
		     const struct kernel_sums *sums, int tenths, const struct time_unit *unit)
{
	double per_step = 1.0 / (double)h->page.steps;
	char text[NUMBER_TEXT];

	html_rawf(h, "<tr class=\"%s\">", class);
	html_cell(h, "label", label);
	put_calls(h, (double)sums->calls * per_step);
	html_cell(h, "", time_text(text, (double)sums->total_ns * per_step, unit));
	html_cell(h, "", percent_text(text, tenths));
	html_raw(h, "<td class=\"one\"></td><td class=\"median\"></td><td class=\"median\"></td>"
		    "</tr>\n");
}

static void put_kernels(struct html *h, const struct kernel_rows *v)
{
	size_t shown = v->count <= KERNEL_ROWS + 1 ? v->count : KERNEL_ROWS, i;
	struct kernel_sums all = kernel_sums_of(v, 0), rest = kernel_sums_of(v, shown);
	double parts[KERNEL_ROWS + 2];
	int tenths[KERNEL_ROWS + 2];
	struct time_unit unit;
	char left[NUMBER_TEXT], more[NUMBER_TEXT + 8];

	for (i = 0; i < shown; i++)
		parts[i] = (double)v->rows[i].total_ns;
	parts[shown] = (double)rest.total_ns;
	unit = time_unit_of(parts[0] / (double)h->page.steps, 2);
	percents(parts, shown < v->count ? shown + 1 : shown, (double)all.total_ns,
		 shown < v->count ? shown : shown - 1, tenths);
	html_rawf(h, "<table class=\"kernels\"><thead><tr><th></th><th>calls</th><th>%s</th><th>%% of kernel<br>"
		     "time</th><th class=\"one\"></th><th class=\"median\">median \xc2\xb5s</th>"
		     "<th class=\"median\">max \xc2\xb5s</th></tr></thead><tbody>\n", unit.name);
	for (i = 0; i < shown; i++)
		put_kernel(h, v, i, tenths[i], &unit);
	if (shown < v->count) {
		snprintf(more, sizeof(more), "%s more", count_text(left, v->count - shown));
		put_sums(h, "rest", more, &rest, tenths[shown], &unit);
	}
	put_sums(h, "sum", "sum", &all, 1000, &unit);
	html_raw(h, "</tbody></table>\n");
}

enum status html_kernels(struct html *h, struct error *err)
{
	struct kernel_rows rows;
	enum status status = kernel_rows_take(&h->page, &rows, err);
	struct kernel_sums all;
	char names[NUMBER_TEXT], calls[NUMBER_TEXT];

	if (status != ST_OK || !rows.count)
		goto out;
	all = kernel_sums_of(&rows, 0);
	html_section(h, "Kernels");
	html_section_note(h, "%s names, %s calls. Calls and time are per %s%s.",
			  count_text(names, rows.count), count_text(calls, all.calls),
			  h->page.has_steps ? "step" : "window",
			  h->page.ranks.count > 1 ? ", mean of the ranks" : "");
	html_section_body(h);
	put_kernels(h, &rows);
	html_section_end(h);
out:
	kernel_rows_release(&rows);
	return status;
}

static void put_copy(struct html *h, const struct copy_row *r)
{
	struct time_unit unit = { 1e6, 2, "ms" };
	double per_step = 1.0 / (double)h->page.steps;
	char text[NUMBER_TEXT], label[COPY_LABEL];
	bool is_copy = strcmp(r->direction, "memset") != 0;

	html_raw(h, "<tr>");
	html_cell(h, "label", copy_row_label(r, label));
	put_calls(h, (double)r->count * per_step);
	html_cell(h, "", time_text(text, (double)r->total_ns * per_step, &unit));
	html_cell(h, "", time_text(text, (double)r->exposed_ns * per_step, &unit));
	html_cell(h, "", number_text(text, (double)r->bytes * per_step / 1048576, 1));
	html_cell(h, "", is_copy && r->total_ns
				 ? number_text(text, (double)r->bytes / (double)r->total_ns, 1)
				 : DASH);
	html_raw(h, "</tr>\n");
}

void html_copies(struct html *h)
{
	struct copy_row rows[COPY_ROWS];
	struct view v = page_view(&h->page, "copies");
	size_t count = copy_rows_take(&v, rows, COPY_ROWS), i;

	if (!count)
		return;
	html_section(h, "Copies");
	html_section_note(h, "Mean per %s. Exposed: the GPU does nothing else meanwhile.",
			  h->page.has_steps ? "step" : "window");
	html_section_body(h);
	html_raw(h, "<table><thead><tr><th></th><th>calls</th><th>ms</th><th>exposed ms</th>"
		    "<th>MiB</th><th>GB/s</th></tr></thead><tbody>\n");
	for (i = 0; i < count; i++)
		put_copy(h, &rows[i]);
	html_raw(h, "</tbody></table>\n");
	html_section_end(h);
}
