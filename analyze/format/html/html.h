/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h - blocks as one file for a browser: no script, nothing is fetched.
 *
 * Markup goes out by html_raw() and html_rawf(), whose words are the program's own; every text of
 * an input goes out by html_text().
 */
#pragma once

#include "analyze/format/page/block.h"
#include "schemas/base/buf.h"

extern const char html_style[]; /* the style sheet: colours by token, light and dark */

void html_raw(struct buf *out, const char *markup);
/* No text of an input among the arguments. */
void html_rawf(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_text(struct buf *out, const char *text);
/* The class of a token in the style sheet: "compute", "forward" ... */
const char *html_token(enum token token);

/* A whole file with this title.  The page of a report has hatches and a last line on --explain with
 * a figure as example; NULL: another page. */
void html_draw(struct buf *out, const char *title, const struct blocks *b, const char *figure);
/* Kinds of blocks that are charts. */
void html_timelines(struct buf *out, const struct block *b);
void html_curve(struct buf *out, const struct curve *c);
void html_flame(struct buf *out, const struct block *b);
void html_heat(struct buf *out, const struct heat *h);
void html_roofline(struct buf *out, const struct block *b);
