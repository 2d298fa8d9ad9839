/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the page - what was read, the verdict, distrust - and TRUST, its last section. */
#include "analyze/html/put.h"
#include "analyze/page/fix.h"
#include "analyze/page/talk.h"

#include <string.h>

struct html_talk {
	struct talk talk;
	struct html *html;
};

static void put_words(struct talk *talk, enum token token, const char *words)
{
	struct html *h = ((struct html_talk *)talk)->html;
	const char *style = token == TOKEN_DIM ? "dim" : token == TOKEN_WARN ? "distrust" : "";

	html_rawf(h, "<span class=\"%s\">", style);
	html_text(h, words);
	html_raw(h, "</span>");
}

static void end_line(struct talk *talk)
{
	html_raw(((struct html_talk *)talk)->html, "<br>\n");
}

static void put_distrust(struct talk *talk, const char *word, const char *first,
			 const char *second)
{
	struct html *h = ((struct html_talk *)talk)->html;

	html_rawf(h, "<p class=\"distrust\"><b>! %s</b>", word);
	html_text(h, first);
	if (second)
		html_raw(h, " ");
	html_text(h, second);
	html_raw(h, "</p>\n");
}

static struct html_talk talk_to(struct html *h)
{
	return (struct html_talk){
		.talk = { .words = put_words, .end = end_line, .distrust = put_distrust },
		.html = h,
	};
}

static void put_verdict(struct html *h)
{
	struct page *p = &h->page;
	struct page_verdict v = verdict_take(p);
	char text[NUMBER_TEXT];
	double window = 0, compute = 0;
	int tenths[2];

	if (!v.words[0])
		return;
	html_rawf(h, "<p class=\"bound\">%s</p>\n<h1>", v.words);
	html_text(h, v.sentence);
	html_raw(h, "</h1>\n<p class=\"more\">");
	html_text(h, v.more);
	if (!p->gpus.count || strstr(v.sentence, " computes ")) {
		html_raw(h, "</p>\n");
		return;
	}
	window = (double)page_sum(&p->gpus, "window_ns");
	compute = (double)page_sum(&p->gpus, "compute_ns");
	percents((double[]){ compute, window - compute }, 2, window, 2, tenths);
	html_rawf(h, "%sThe GPU%s %s %s %% of the window.</p>\n", v.more ? " " : "",
		  p->gpus.count > 1 ? "s" : "", p->gpus.count > 1 ? "compute" : "computes",
		  percent_text(text, tenths[0]));
}

void html_head(struct html *h)
{
	struct page *p = &h->page;
	struct view inputs = page_view(p, "inputs");
	struct html_talk t = talk_to(h);

	html_raw(h, "<p class=\"input\"><b>");
	html_text(h, inputs.count ? view_cell(&inputs, 0, "path").text : "?");
	html_raw(h, "</b>");
	if (inputs.count > 1)
		html_rawf(h, " and %zu more", inputs.count - 1);
	html_raw(h, " \xc2\xb7 ");
	talk_head(p, &t.talk);
	html_raw(h, "</p>\n");
	talk_distrust(p, &t.talk);
	put_verdict(h);
}

void html_trust(struct html *h)
{
	struct html_talk t = talk_to(h);

	html_section(h, "Trust");
	html_section_body(h);
	talk_trust(&h->page, &t.talk);
	html_section_end(h);
}
