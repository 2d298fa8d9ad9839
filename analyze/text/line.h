/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text/line.h - lines of a terminal page: cells with a glyph and a colour token, put anywhere in a
 * line and written out once.  The one place that knows colours, glyphs without UTF-8, bars.
 *
 * Texts may hold any bytes: what is no UTF-8, and what a terminal would obey, becomes `?`.
 */
#ifndef ANALYZE_TEXT_LINE_H
#define ANALYZE_TEXT_LINE_H

#include "analyze/format.h"

enum { LINE_WIDTH = 100 };

/* What a colour means: one meaning everywhere. */
enum token {
	TOKEN_TEXT, TOKEN_BOLD, TOKEN_DIM, TOKEN_WARN, TOKEN_COMPUTE, TOKEN_COMM, TOKEN_DATA,
	TOKEN_IDLE, TOKEN_UNSEEN, TOKEN_FORWARD, TOKEN_BACKWARD, TOKEN_OPTIMIZER, TOKEN_ASIDE,
	TOKEN_OTHER, TOKEN_COUNT,
};

struct line_cell {
	uint32_t c; /* 0: nothing; LINE_WIDE: right half of the glyph before */
	uint8_t token;
};
struct text {
	struct buf *out;
	enum colour colour;
	bool is_utf8;
	unsigned width;                    /* at most LINE_WIDTH; what is beyond is not written */
	struct line_cell cells[LINE_WIDTH]; /* of the line that is being made */
};

void text_init(struct text *t, const struct format_request *how, struct buf *out);
/* Columns count from 0; each returns the column after what it put. */
unsigned text_at(struct text *t, unsigned column, enum token token, const char *words);
unsigned text_atf(struct text *t, unsigned column, enum token token, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same, but a word that does not fit goes to column `left` of the next line. */
unsigned text_wrap(struct text *t, unsigned column, unsigned left, enum token token,
		   const char *words);
/* Ends before `end`. */
void text_right(struct text *t, unsigned end, enum token token, const char *words);
/* At most `width` columns; a longer one loses its middle, 3 : 2. */
unsigned text_cut(struct text *t, unsigned column, unsigned width, enum token token,
		  const char *words);
/* At most `width` columns; of a longer one whole words, then an ellipsis. */
unsigned text_clip(struct text *t, unsigned column, unsigned width, enum token token,
		   const char *words);
/* `count` times the same glyph. */
unsigned text_fill(struct text *t, unsigned column, unsigned count, enum token token, uint32_t c);
/* A bar of `cells` columns, in eighths; above zero at least one. */
void text_bar(struct text *t, unsigned column, enum token token, double cells);
/* Writes the line and begins the next. */
void text_end(struct text *t);
unsigned text_width(const char *words); /* columns */

/* Of a class of GPU time: STRIP_GPU_LETTERS, and 'u' for time in which nothing was seen. */
uint32_t glyph_of(char letter);
enum token token_of(char letter);
/* The token of a phase by its name. */
enum token token_of_phase(const char *name);

/*
 * Shares `total` columns out to the parts, by largest remainder; a part that is not nothing may
 * still get none.
 */
void share_out(const double *parts, size_t count, unsigned total, unsigned *columns);

#endif
