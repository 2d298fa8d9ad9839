/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - lines of a terminal: cells with a glyph and a colour token, put anywhere in a line and
 * written once. Only this module handles colours, glyphs without UTF-8 and bars of glyphs.
 *
 * Texts may contain any bytes: invalid UTF-8 and what a terminal would interpret becomes `?`.
 */
#pragma once

#include "analyze/format/format.h"
#include "analyze/format/page/block.h"
#include "analyze/format/page/page.h"

struct line_cell {
	uint32_t c; /* 0: empty; UINT32_MAX: right half of the previous glyph */
	uint8_t token;
};
struct text {
	struct buf *out;
	enum colour colour;
	bool is_utf8;
	bool is_open;   /* the line has a title, and the next block may continue in it */
	unsigned used;  /* columns of that title */
	unsigned width; /* at most LINE_MOST; an ellipsis replaces the rest */
	/* the current line; the last cell only marks that the line is too long */
	struct line_cell cells[LINE_MOST + 1];
};

void text_init(struct text *t, const struct format_request *how, struct buf *out);
/* Puts a text. Columns count from 0; each function returns the column after its text. */
unsigned text_at(struct text *t, unsigned column, enum token token, const char *words);
/* Like text_at(), but moves a word that does not fit to column `left` of the next line, or further
 * to the left if it is too long. What follows the last word without a blank needs `after` columns.
 */
unsigned text_wrap(struct text *t, unsigned column, unsigned left, enum token token,
		   const char *words, unsigned after);
/* Puts a text that ends before column `end`. */
void text_right(struct text *t, unsigned end, enum token token, const char *words);
/* Shortens a text to at most `width` columns by cutting its middle, 3 : 2. If `seen`, which points
 * into the text, begins in the cut part, the end of that part is kept; NULL: not needed. */
enum { TEXT_CUT = 4 * LINE_MOST + 8 /* bytes */ };
void text_cut(char out[TEXT_CUT], const char *words, unsigned width, const char *seen);
unsigned text_shorten(struct text *t, unsigned column, unsigned width, enum token token,
		      const char *words);
/* Returns the end of a longer text, which text_shorten() keeps. */
const char *text_tail(const char *words, unsigned width);
/* Returns the byte at which two texts differ that text_shorten() would make equal; 0: it would
 * not. */
size_t text_alike(const char *a, const char *b, unsigned width);
/* Puts at most `width` columns; a longer text is cut between words, with an ellipsis. */
unsigned text_clip(struct text *t, unsigned column, unsigned width, enum token token,
		   const char *words);
/* Puts the same glyph `count` times. */
unsigned text_fill(struct text *t, unsigned column, unsigned count, enum token token, uint32_t c);
/* Puts a bar of `cells` columns, in eighths; a bar above zero has at least one eighth. */
void text_bar(struct text *t, unsigned column, enum token token, double cells);
/* Writes the line and begins the next one. */
void text_end(struct text *t);

/* Draws a page, starting at the current line. */
void text_draw(struct text *t, const struct blocks *b);

enum {
	NAME_LEAST = 24, /* least columns of a recognizable name */
	GAP = 2,         /* least number of blanks between columns */
};

/* Returns whether a cell may extend over the next one, which is empty. */
bool cell_is_over_next(const struct block_table *table, const struct block_row *r, size_t i);
/* Returns whether a title may extend over the next column, which has none. */
bool title_is_over_next(const struct block_table *table, size_t i);
/*
 * Sets `at`, `width`, `end` of the columns of a table and of the one beside it (NULL: none), hides
 * columns that do not fit, and sets in cells what a shortened name must show. `others` are the
 * blocks after the table, some of which may be aligned with it.
 *
 * In a shortened name `seen` is the byte at which it differs from another one that would look
 * alike, and `number` distinguishes it from those that still look alike.
 */
void columns_place(struct block_table *table, struct block_table *beside,
		   const struct block *others, unsigned width);
