/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h - draws blocks as one HTML file without scripts or external resources.
 *
 * html_raw() and html_rawf() write markup, which contains only texts of the program. Texts of an
 * input must be written with html_text().
 */
#pragma once

#include "analyze/format/page/block.h"
#include "schemas/base/buf.h"

extern const char html_style[]; /* the style sheet: colours by token, light and dark */

void html_raw(struct buf *out, const char *markup);
/* The arguments must not contain texts of an input. */
void html_rawf(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_text(struct buf *out, const char *text);
/* Writes a text with markup on both sides. */
void html_between(struct buf *out, const char *before, const char *text, const char *after);
/* Returns the class of a token in the style sheet: "compute", "forward" ... */
const char *html_token(enum token token);

/* Writes a whole file with this title. The page of a report has hatch patterns and a last line
 * about --explain with `figure` as an example; NULL: another page. */
void html_draw(struct buf *out, const char *title, const struct blocks *b, const char *figure);
/* These draw the blocks that are charts. */
void html_timelines(struct buf *out, const struct block *b);
void html_curve(struct buf *out, const struct curve *c);
void html_flame(struct buf *out, const struct block *b);
void html_heat(struct buf *out, const struct heat *h);
void html_roofline(struct buf *out, const struct block *b);
