/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - lines of a terminal: cells with a glyph and a colour token, put anywhere in a line and
 * written out once.  Only this module knows colours, glyphs without UTF-8 and bars of glyphs.
 *
 * Texts may hold any bytes: what is no UTF-8, and what a terminal would interpret, becomes `?`.
 */
#pragma once

#include "analyze/format/format.h"
#include "analyze/format/page/block.h"
#include "analyze/format/page/page.h"

struct line_cell {
	uint32_t c; /* 0: nothing; UINT32_MAX: right half of the glyph before */
	uint8_t token;
};
struct text {
	struct buf *out;
	enum colour colour;
	bool is_utf8;
	bool is_open;   /* the line has a title, and what follows may go on in it */
	unsigned used;  /* columns of that title */
	unsigned width; /* at most LINE_MOST; an ellipsis stands for what is beyond */
	struct line_cell cells[LINE_MOST + 1]; /* of the line that is being made; the last one only
						* says that there is more */
};

void text_init(struct text *t, const struct format_request *how, struct buf *out);
/* Columns count from 0; each function returns the column after what it put. */
unsigned text_at(struct text *t, unsigned column, enum token token, const char *words);
/*
 * The same, but a word that does not fit goes to column `left` of the next line, or further to the
 * left if it is too long for that.  What will follow the last word without a blank needs `after`
 * columns.
 */
unsigned text_wrap(struct text *t, unsigned column, unsigned left, enum token token,
		   const char *words, unsigned after);
/* Ends before `end`. */
void text_right(struct text *t, unsigned end, enum token token, const char *words);
/*
 * A text in at most `width` columns; a longer one loses its middle, 3 : 2.  What begins at `seen`,
 * which points into it, is shown for its end if that middle has it; NULL: nothing has to be.
 */
enum { TEXT_CUT = 4 * LINE_MOST + 8 /* bytes */ };
void text_cut(char out[TEXT_CUT], const char *words, unsigned width, const char *seen);
unsigned text_shorten(struct text *t, unsigned column, unsigned width, enum token token,
		      const char *words);
/* The end of a longer text, which text_shorten() keeps. */
const char *text_tail(const char *words, unsigned width);
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

/* Where the columns of a table stand in a terminal of some width. */

enum {
	NAME_LEAST = 24, /* columns; with fewer a name is hard to know */
	GAP = 2,         /* blanks at least between columns */
};

/* Whether a cell may go on over the next, which is empty. */
bool cell_is_over_next(const struct block_table *table, const struct block_row *r, size_t i);
/* Whether the title of a column may go on over the next, which has none. */
bool title_is_over_next(const struct block_table *table, size_t i);
/*
 * Sets `at`, `width`, `end` of the columns of a table and of the one beside it (NULL: none), hides
 * those that do not fit, and marks in the cells what a cut name has to show.  `others` are the
 * blocks after the table, of which some may be like it.
 *
 * Of a name that is cut, `seen` is then where (in bytes) it differs from another that would read
 * alike, and `number` tells it from those that read alike all the same.
 */
void columns_place(struct block_table *table, struct block_table *beside,
		   const struct block *others, unsigned width);
