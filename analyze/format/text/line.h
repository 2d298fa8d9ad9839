/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - lines of a terminal: cells with a glyph and a colour token, put anywhere in a line and
 * written out once.  Only this module knows colours, glyphs without UTF-8 and bars of glyphs.
 *
 * Texts may hold any bytes: what is no UTF-8, and what a terminal would interpret, becomes `?`.
 */
#ifndef ANALYZE_FORMAT_TEXT_LINE_H
#define ANALYZE_FORMAT_TEXT_LINE_H

#include "analyze/format/format.h"
#include "analyze/format/page/page.h"

enum { LINE_MOST = 240 /* columns; sentences of more are hard to read */ };

struct line_cell {
	uint32_t c; /* 0: nothing; LINE_WIDE: right half of the glyph before */
	uint8_t token;
};
struct text {
	struct buf *out;
	enum colour colour;
	bool is_utf8;
	bool is_open;   /* the line has a title, and what follows may go on in it */
	unsigned used;  /* columns of that title */
	unsigned width; /* at most LINE_MOST; what is beyond is not written */
	struct line_cell cells[LINE_MOST]; /* of the line that is being made */
};

void text_init(struct text *t, const struct format_request *how, struct buf *out);
/* Columns count from 0; each function returns the column after what it put. */
unsigned text_at(struct text *t, unsigned column, enum token token, const char *words);
/* The same, but a word that does not fit goes to column `left` of the next line. */
unsigned text_wrap(struct text *t, unsigned column, unsigned left, enum token token,
		   const char *words);
/* Ends before `end`. */
void text_right(struct text *t, unsigned end, enum token token, const char *words);
/*
 * At most `width` columns; a longer text loses its middle, 3 : 2.  What begins at `seen`, which
 * points into it, is shown for its end if that middle has it; NULL: nothing has to be.
 */
unsigned text_shorten(struct text *t, unsigned column, unsigned width, enum token token,
		      const char *words, const char *seen);
/* Where two texts differ that text_shorten() would make one of, in bytes; 0: it would not. */
size_t text_alike(const char *a, const char *b, unsigned width);
/* At most `width` columns; of a longer text whole words, then an ellipsis. */
unsigned text_clip(struct text *t, unsigned column, unsigned width, enum token token,
		   const char *words);
/* `count` times the same glyph. */
unsigned text_fill(struct text *t, unsigned column, unsigned count, enum token token, uint32_t c);
/* A bar of `cells` columns, in eighths; above zero at least one. */
void text_bar(struct text *t, unsigned column, enum token token, double cells);
/* Writes the line and begins the next. */
void text_end(struct text *t);

/* Draws a page at the current line. */
void text_draw(struct text *t, const struct blocks *b);

#endif
