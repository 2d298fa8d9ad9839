/* SPDX-License-Identifier: Apache-2.0 */
/* GPU TIME: the identity of one GPU in full, of several in a line each. */
#include "analyze/html/put.h"
#include "analyze/page/gpus.h"

#include <stdio.h>
#include <string.h>

/* A label has its place above the bar where its part is as wide as its words, in the wide page. */
static bool fits_above(const char *label, double share)
{
	return share >= 0.05 + 0.009 * (double)strlen(label);
}

struct parts {
	double ns[CLASS_ROWS], window_ns;
	int tenths[CLASS_ROWS];
};

static struct parts parts_take(const struct page *p, size_t gpu)
{
	struct parts parts;

	gpu_parts(&p->gpus, gpu, parts.ns);
	parts.window_ns = (double)view_cell(&p->gpus, gpu, "window_ns").u64;
	percents(parts.ns, CLASS_ROWS, parts.window_ns, CLASS_IDLE_ROW, parts.tenths);
	return parts;
}

static const char *label_of(const struct page *p, size_t class)
{
	return p->is_sampled && class == CLASS_IDLE_ROW ? "nothing seen"
							: gpu_classes[class].label;
}

/* In the order of the clock at both ends: lead first, tail last. */
static void put_stack(struct html *h, const struct parts *parts, const char *thin)
{
	size_t i;

	html_rawf(h, "<div class=\"stack %s\">", thin);
	for (i = 0; i < CLASS_ROWS; i++)
		if (parts->ns[i] > 0)
			html_rawf(h, "<i class=\"%s\" style=\"width:%.3f%%\"></i>",
				  html_class_name(gpu_class_letter(&h->page, i)),
				  100 * parts->ns[i] / parts->window_ns);
	html_raw(h, "</div>\n");
}

static void put_label(struct html *h, const struct parts *parts, size_t class, double at,
		      bool is_end)
{
	char text[NUMBER_TEXT];

	html_rawf(h, "<span class=\"%s\" style=\"left:%.2f%%\"><b>%s</b> %s %%</span>",
		  is_end ? "end" : "", 100 * at, label_of(&h->page, class),
		  percent_text(text, parts->tenths[class]));
}

/* Above the bar what is wide enough, below it the largest of the others. */
static void put_labels(struct html *h, const struct parts *parts, bool above)
{
	double at = 0, share, best_at = 0, best = 0.003;
	size_t i, best_class = CLASS_ROWS;

	html_raw(h, "<div class=\"labels\">");
	for (i = 0; i < CLASS_ROWS; i++, at += share) {
		share = parts->ns[i] / parts->window_ns;
		if (above && fits_above(label_of(&h->page, i), share))
			put_label(h, parts, i, at, false);
		if (!fits_above(label_of(&h->page, i), share) && share > best) {
			best = share;
			best_at = at;
			best_class = i;
		}
	}
	if (!above && best_class < CLASS_ROWS)
		put_label(h, parts, best_class, best_at > 0.6 ? best_at + best : best_at,
			  best_at > 0.6);
	html_raw(h, "</div>\n");
}

static void put_row(struct html *h, const char *mark, const char *label, const char *value,
		    const char *percent, const char *class)
{
	html_rawf(h, "<tr class=\"%s\"><td class=\"label\">", class);
	if (mark)
		html_mark(h, mark);
	html_text(h, label);
	html_raw(h, "</td>");
	html_cell(h, "", value);
	html_cell(h, "", percent);
	html_raw(h, "</tr>\n");
}

static void put_classes(struct html *h, const struct parts *parts)
{
	struct time_unit unit = time_unit_of(parts->window_ns, 1);
	char text[NUMBER_TEXT], percent[NUMBER_TEXT], title[GPU_LABEL];
	size_t i;

	html_raw(h, "<table><thead><tr>");
	html_head_cell(h, "", gpu_label(&h->page, 0, title));
	html_head_cell(h, "", unit.name);
	html_raw(h, "<th>% of window</th></tr></thead><tbody>\n");
	for (i = 0; i < CLASS_ROWS; i++)
		if (gpu_classes[i].always || parts->ns[i] > 0)
			put_row(h, html_class_name(gpu_class_letter(&h->page, i)),
				label_of(&h->page, i), time_text(text, parts->ns[i], &unit),
				percent_text(percent, parts->tenths[i]), "");
	put_row(h, NULL, "window", time_text(text, parts->window_ns, &unit), "100.0", "sum");
	html_raw(h, "</tbody></table>\n");
}

/* Tenths of what is neither computed, communicated nor copied. */
static int not_busy_tenths(const struct parts *parts)
{
	int left = 1000;
	size_t i;

	for (i = 0; i < CLASS_IDLE_ROW; i++)
		left -= parts->tenths[i] > 0 ? parts->tenths[i] : 0;
	return left;
}

static void put_cause(struct html *h, const struct cause_line *l, double most_ns,
		      const struct time_unit *unit)
{
	char text[NUMBER_TEXT];

	html_raw(h, "<tr>");
	html_cell(h, "label", l->name);
	html_cell(h, "", time_text(text, l->ns, unit));
	html_cell(h, "", percent_text(text, l->tenths));
	html_bar(h, "one", l->token, most_ns > 0 ? l->ns / most_ns : 0);
	html_raw(h, "</tr>\n");
}

static enum status put_causes(struct html *h, const struct parts *parts, struct error *err)
{
	struct time_unit unit = time_unit_of(parts->window_ns, 1);
	int whole = not_busy_tenths(parts);
	struct cause_lines causes;
	char text[NUMBER_TEXT];
	double most_ns = 0, sum = 0;
	size_t i;

	TRY(page_causes(&h->page, CAUSE_LINES, parts->window_ns, whole, &causes, err));
	html_rawf(h, "<table><thead><tr><th>Not busy, by cause</th><th>%s</th><th>%% of window</th>"
		     "<th class=\"one\"></th></tr></thead><tbody>\n", unit.name);
	if (causes.instead)
		html_rawf(h, "<tr><td colspan=\"4\">%s</td></tr>", causes.instead);
	for (i = 0; i < causes.count; i++) {
		most_ns = causes.lines[i].ns > most_ns ? causes.lines[i].ns : most_ns;
		sum += causes.lines[i].ns;
	}
	for (i = 0; i < causes.count; i++)
		put_cause(h, &causes.lines[i], most_ns, &unit);
	if (causes.count)
		put_row(h, NULL, "idle + lead + tail", time_text(text, sum, &unit),
			percent_text((char[NUMBER_TEXT]){ 0 }, whole), "sum");
	html_raw(h, "</tbody></table>\n");
	return ST_OK;
}

static enum status put_one(struct html *h, struct error *err)
{
	struct parts parts = parts_take(&h->page, 0);
	struct time_unit unit = time_unit_of(parts.window_ns, 1);
	char text[NUMBER_TEXT];

	html_section_note(h, "100 %% = window, %s %s", time_text(text, parts.window_ns, &unit),
			  unit.name);
	html_section_body(h);
	put_labels(h, &parts, true);
	put_stack(h, &parts, "");
	put_labels(h, &parts, false);
	html_raw(h, "<div class=\"pair\">");
	put_classes(h, &parts);
	TRY(put_causes(h, &parts, err));
	html_raw(h, "</div>\n");
	return ST_OK;
}

static void put_gpu(struct html *h, size_t gpu, const struct time_unit *unit)
{
	static const size_t shown[] = { 0, 1, 2 };
	struct parts parts = parts_take(&h->page, gpu);
	double four[4];
	char text[NUMBER_TEXT], label[GPU_LABEL];
	int tenths[4];
	size_t i;

	for (i = 0; i < 3; i++)
		four[i] = parts.ns[shown[i]];
	four[3] = parts.ns[CLASS_IDLE_ROW] + parts.ns[CLASS_LEAD_ROW] + parts.ns[CLASS_TAIL_ROW];
	percents(four, 4, parts.window_ns, 3, tenths);
	html_raw(h, "<tr>");
	html_cell(h, "label", gpu_label(&h->page, gpu, label));
	html_raw(h, "<td class=\"one\" style=\"width:40%\">");
	put_stack(h, &parts, "thin");
	html_raw(h, "</td>");
	for (i = 0; i < 4; i++)
		html_cell(h, "", percent_text(text, tenths[i]));
	html_cell(h, "", time_text(text, parts.window_ns, unit));
	html_cell(h, "median", time_text(
		text, (double)view_cell(&h->page.gpus, gpu, "comm_ns").u64, unit));
	html_raw(h, "</tr>\n");
}

static void put_many(struct html *h)
{
	struct page *p = &h->page;
	size_t chosen[RANK_LINES], count = gpus_choose(p, chosen), i;
	struct time_unit unit = { 1, 0, "" };
	double most = 0, window;
	char title[64];

	for (i = 0; i < p->gpus.count; i++) {
		window = (double)view_cell(&p->gpus, i, "window_ns").u64;
		most = window > most ? window : most;
	}
	unit = time_unit_of(most, 1);
	html_section_note(h, "100 %% = window of the %s%s", p->ranks.count == 1 ? "GPU" : "rank",
			  count < p->gpus.count ? "; least, median and worst not busy" : "");
	html_section_body(h);
	html_raw(h, "<table><thead><tr><th></th><th class=\"one\"></th>");
	html_raw(h, "<th>compute</th><th>exposed comm</th><th>exposed copy</th>");
	html_head_cell(h, "", p->is_sampled ? "nothing seen" : "not busy");
	snprintf(title, sizeof(title), "window %s", unit.name);
	html_head_cell(h, "", title);
	snprintf(title, sizeof(title), "comm %s", unit.name);
	html_head_cell(h, "median", title);
	html_raw(h, "</tr></thead><tbody>\n");
	for (i = 0; i < count; i++)
		put_gpu(h, chosen[i], &unit);
	html_raw(h, "</tbody></table>\n<p class=\"note\">Classes are percent of the window.</p>");
}

enum status html_gpus(struct html *h, struct error *err)
{
	enum status status = ST_OK;

	if (!h->page.gpus.count)
		return ST_OK;
	html_section(h, h->page.is_sampled ? "GPU time seen" : "GPU time");
	if (h->page.gpus.count == 1)
		status = put_one(h, err);
	else
		put_many(h);
	html_section_end(h);
	return status;
}
