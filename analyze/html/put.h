/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html/put.h - pieces of the HTML page: text that is escaped, sections, bars, charts.
 *
 * Markup goes out by html_raw() and html_rawf(), whose words are the program's own; every text of
 * an input goes out by html_text().  A chart is an <svg> without viewBox, so that what is written
 * in it keeps its size; places are percent of its width.
 */
#ifndef ANALYZE_HTML_PUT_H
#define ANALYZE_HTML_PUT_H

#include "analyze/text/page.h"

struct html {
	struct page page;
	struct buf *out;
};

extern const char html_style[]; /* the style sheet: colours by token, light and dark */

void html_raw(struct html *h, const char *markup);
/* No text of an input among the arguments. */
void html_rawf(struct html *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_text(struct html *h, const char *text);

/* `note` stands small below the title; html_section_end() closes. */
void html_section(struct html *h, const char *title);
void html_section_note(struct html *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void html_section_body(struct html *h);
void html_section_end(struct html *h);

/* "<td class=...>text</td>": a figure at the right, in a class of its own for what leaves. */
void html_cell(struct html *h, const char *class, const char *text);
void html_head_cell(struct html *h, const char *class, const char *title);
/* The name of a colour: "compute", "forward" ... */
const char *html_token(enum token token);
/* A bar of `share` (0..1) of its column; above zero it is seen. */
void html_bar(struct html *h, const char *class, enum token token, double share);
/* A square of a token's colour, or of a class of GPU time by its letter. */
void html_mark(struct html *h, const char *name);
const char *html_class_name(char letter);

enum { FINDING_WORD = 128 };

/* The blocks; each writes its section, or nothing when there is nothing to say. */
void html_head(struct html *h);
enum status html_gpus(struct html *h, struct error *err);
void html_fix(struct html *h);
enum status html_steps(struct html *h, struct error *err);
enum status html_phases(struct html *h, struct error *err);
enum status html_memory(struct html *h, struct error *err);
enum status html_kernels(struct html *h, struct error *err);
enum status html_comm(struct html *h, struct error *err);
enum status html_ranks(struct html *h, struct error *err);
void html_frontier(struct html *h);
void html_copies(struct html *h);
void html_trust(struct html *h);

#endif
