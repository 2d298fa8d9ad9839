/* SPDX-License-Identifier: Apache-2.0 */
/* FIX FIRST: what to change, by what it saves at most. */
#include "analyze/html/put.h"

#include <string.h>

enum { FIX_ROWS = 8 };

/* What one would type is set as code: words with _ ( = or a capital after a lower case letter. */
static bool is_code(const char *word, size_t len)
{
	size_t i;

	for (i = 0; len > 1 && i < len; i++)
		if (strchr("_(=:", word[i]) && (word[i] != ':' || i + 1 < len))
			return true;
	return false;
}

/* Parentheses around words are no part of them; those of a call are. */
static size_t word_length(const char *text)
{
	size_t len = strcspn(text, " ,;"), open = strcspn(text, "(");

	if (open >= len)
		len = strcspn(text, " ,;)");
	return len && open ? len : 1;
}

static void put_advice(struct html *h, const char *text)
{
	char word[FINDING_WORD];
	size_t len;

	for (; *text; text += len) {
		len = word_length(text);
		len = len < sizeof(word) ? len : sizeof(word) - 1;
		memcpy(word, text, len);
		word[len] = '\0';
		html_raw(h, is_code(word, len) ? "<code>" : "");
		html_text(h, word);
		html_raw(h, is_code(word, len) ? "</code>" : "");
	}
}

static void put_saving(struct html *h, const struct view *v, size_t i,
		       const struct time_unit *unit)
{
	double saving_ns = (double)view_cell(v, i, "saving_ns_per_step").u64;
	double share = view_cell(v, i, "share_of_step").f64;
	char text[NUMBER_TEXT];

	html_raw(h, "<div class=\"saving\">");
	if (saving_ns > 0)
		html_rawf(h, "<b>\xe2\x89\xa4 %s %s</b><span>%.1f %% of %s</span>"
			     "<div class=\"track\"><i style=\"width:%.1f%%\"></i></div>",
			  time_text(text, saving_ns, unit), unit->name, share,
			  h->page.has_steps ? "a step" : "the window", share);
	else
		html_raw(h, "<b>memory</b>");
	html_raw(h, "</div>");
}

static void put_finding(struct html *h, const struct view *v, size_t i,
			const struct time_unit *unit)
{
	html_rawf(h, "<div class=\"rank\">%zu</div>", i + 1);
	put_saving(h, v, i, unit);
	html_raw(h, "<div class=\"what\">");
	html_text(h, view_cell(v, i, "evidence").text);
	html_raw(h, "<br>\xe2\x86\x92 ");
	put_advice(h, view_cell(v, i, "advice").text);
	html_raw(h, "</div><code class=\"rule\">");
	html_text(h, view_cell(v, i, "rule").text);
	html_raw(h, "</code>\n");
}

void html_fix(struct html *h)
{
	struct view v = page_view(&h->page, "findings");
	struct time_unit unit;
	size_t i;

	if (!v.count)
		return;
	unit = time_unit_of((double)view_cell(&v, 0, "saving_ns_per_step").u64, 1);
	html_section(h, "Fix first");
	html_section_note(h, "Most that can be saved per %s. Savings overlap: do not add them.",
			  h->page.has_steps ? "step" : "window");
	html_section_body(h);
	html_raw(h, "<div class=\"fix\">\n");
	for (i = 0; i < v.count && i < FIX_ROWS; i++)
		put_finding(h, &v, i, &unit);
	html_raw(h, "</div>\n");
	if (v.count > FIX_ROWS)
		html_rawf(h, "<p class=\"note\">%zu more: <code>--report findings</code></p>\n",
			  v.count - FIX_ROWS);
	html_section_end(h);
}
