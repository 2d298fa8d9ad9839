/* SPDX-License-Identifier: Apache-2.0 */
/* The page of --diff for a browser, in the style of the other page: no script, nothing fetched. */
#include "analyze/diff.h"

#include "analyze/html/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HTML_OWNERS = 40, HTML_PARTS = 60, NAME_WIDTH = 60 };

static const char page_begin[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
	"style-src 'unsafe-inline'\">\n<title>Diff \xc2\xb7 Tacho</title>\n<style>";

static enum token token_of_class(const char *class, const char *of)
{
	if (!strcmp(class, "compute"))
		return TOKEN_COMPUTE;
	if (!strcmp(class, "exposed_comm"))
		return TOKEN_COMM;
	if (!strcmp(class, "exposed_copy") || (of && !strcmp(of, "data")))
		return TOKEN_DATA;
	return of && !strncmp(of, "host:", 5) ? token_of_phase(of + 5) : TOKEN_OTHER;
}

/* Where B takes less the bar is thin. */
static void put_amounts(struct html *h, const struct diff_amount *ns, const struct time_unit *unit,
			int64_t most_ns, enum token token)
{
	char text[NUMBER_TEXT];
	int64_t size = llabs(ns->difference_ns);

	html_cell(h, "", diff_amount_text(text, ns->a_ns, unit));
	html_cell(h, "median", diff_amount_text(text, ns->b_ns, unit));
	html_cell(h, "", diff_signed_text(text, ns->difference_ns, unit));
	html_bar(h, ns->difference_ns < 0 ? "one less" : "one", token,
		 most_ns ? (double)size / (double)most_ns : 0);
	html_raw(h, "</tr>\n");
}

static void put_head(struct html *h, const char *class, const char *first, const char *second,
		     const struct time_unit *unit)
{
	html_rawf(h, "<table class=\"%s\"><thead><tr><th>%s</th><th class=\"left\">%s</th><th>A %s</th>"
		  "<th class=\"median\">B %s</th><th>B \xe2\x88\x92 A</th><th class=\"one\"></th></tr></thead><tbody>\n",
		  class, first, second, unit->name, unit->name);
}

static int64_t most_of(const struct diff *d)
{
	int64_t most = 0;
	size_t i;

	for (i = 0; i < d->part_count; i++)
		if (llabs(d->parts[i].ns.difference_ns) > most)
			most = llabs(d->parts[i].ns.difference_ns);
	return most;
}

static void put_sum(struct html *h, const char *class, const char *label,
		    const struct diff_amount *ns, const struct time_unit *unit)
{
	html_rawf(h, "<tr class=\"%s\"><td>%s</td><td></td>", class, label);
	put_amounts(h, ns, unit, 0, TOKEN_OTHER);
}

static void put_parts(struct html *h, const struct diff *d, const struct time_unit *unit)
{
	size_t last = d->part_count - 1, shown = last < HTML_PARTS ? last : HTML_PARTS, i;
	struct diff_amount rest = { 0, 0, 0 }, all = { 0, 0, 0 };

	put_head(h, "", "class", "phase or cause", unit);
	for (i = 0; i < d->part_count; i++) {
		const struct diff_part *p = &d->parts[i];

		diff_amount_add(&all, &p->ns);
		if (i >= shown && i < last)
			diff_amount_add(&rest, &p->ns);
		if (i >= shown)
			continue;
		html_raw(h, "<tr>");
		html_cell(h, "label", p->class);
		html_cell(h, "left", p->phase ? p->phase : p->cause);
		put_amounts(h, &p->ns, unit, most_of(d),
			    token_of_class(p->class, p->phase ? p->phase : p->cause));
	}
	if (shown < last)
		put_sum(h, "rest", "more", &rest, unit);
	put_sum(h, "rest", "outside of the steps counted", &d->parts[last].ns, unit);
	put_sum(h, "sum", "mean step", &all, unit);
	html_raw(h, "</tbody></table>\n");
}

static void put_owners(struct html *h, const struct diff *d, const struct time_unit *unit)
{
	char name[4 * (NAME_WIDTH + 1)];
	size_t i;

	put_head(h, "kernels", "", "phase", unit);
	for (i = 0; i < d->owner_count && i < HTML_OWNERS; i++) {
		const struct diff_owner *o = &d->owners[i];

		name_short(o->name, NAME_WIDTH, name, sizeof(name));
		html_raw(h, "<tr><td class=\"name\" title=\"");
		html_text(h, o->name);
		html_raw(h, "\">");
		html_text(h, name);
		html_raw(h, "</td>");
		html_cell(h, "left", o->phase);
		put_amounts(h, &o->ns, unit, most_of(d), token_of_class(o->class, NULL));
	}
	html_raw(h, "</tbody></table>\n");
}

static void put_side(struct html *h, const char *letter, const struct diff_side *s)
{
	html_rawf(h, "<p class=\"input\"><b>%s</b> ", letter);
	html_text(h, s->path);
	html_rawf(h, " \xc2\xb7 %zu step%s \xc2\xb7 %llu rank%s \xc2\xb7 %llu GPU%s%s</p>\n",
		  s->series.count, s->series.count == 1 ? "" : "s", (unsigned long long)s->ranks,
		  s->ranks == 1 ? "" : "s", (unsigned long long)s->gpus, s->gpus == 1 ? "" : "s",
		  s->sampled ? " \xc2\xb7 <span class=\"distrust\">! a sample</span>" :
		  s->damaged ? " \xc2\xb7 <span class=\"distrust\">! damaged</span>" : "");
}

void diff_put_html(const struct diff *d, struct buf *out)
{
	struct html h = { .out = out };
	struct time_unit unit = time_unit_of((double)(d->a.mean_ns > d->b.mean_ns ? d->a.mean_ns
									   : d->b.mean_ns), 3);
	char sentence[DIFF_SENTENCE];

	diff_sentence(d, sentence);
	html_raw(&h, page_begin);
	html_raw(&h, html_style);
	html_raw(&h, "</style></head><body>\n<main>\n");
	put_side(&h, "A", &d->a);
	put_side(&h, "B", &d->b);
	html_raw(&h, "<p class=\"bound\">Diff</p>\n<h1>");
	html_text(&h, sentence);
	html_rawf(&h, "</h1>\n<p class=\"more\">--fail-over %.3g %%, interval of 95 %%. A's %zu "
		  "steps count as %.0f, B's %zu as %.0f.</p>\n", 100 * d->fail_over, d->a.series.count,
		  d->a.effective_steps, d->b.series.count, d->b.effective_steps);
	html_section(&h, "Where it went");
	html_section_note(&h, "Per step and GPU. All rows make the mean step, exactly. "
			      "A thin bar: B takes less.");
	html_section_body(&h);
	put_parts(&h, d, &unit);
	html_section_end(&h);
	html_section(&h, "Kernels and copies");
	html_section_note(&h, "Time that they own, of %zu.", d->owner_count);
	html_section_body(&h);
	put_owners(&h, d, &unit);
	html_section_end(&h);
	html_raw(&h, "</main></body></html>\n");
}
