/* SPDX-License-Identifier: Apache-2.0 */
/* width.h - how many columns of a terminal texts and shares take. */
#ifndef ANALYZE_FORMAT_PAGE_WIDTH_H
#define ANALYZE_FORMAT_PAGE_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LINE_WIDTH = 100, /* that pages are designed for */
	LINE_MOST = 200,  /* what a terminal has beyond is not used: such lines are hard to read */
};

/*
 * Columns that a terminal of the process's locale takes for a character: 1 for what it does not
 * show or obeys, as a question mark stands there.
 */
unsigned utf8_columns(uint32_t c);
unsigned text_width(const char *words);
/* What stands for a character where the locale has no UTF-8; "?" for most. */
const char *plain_glyph(uint32_t c);

/*
 * Shares `total` columns out to the parts, by largest remainder; a part that is not nothing may
 * still get none.
 */
void share_out(const double *parts, size_t count, unsigned total, unsigned *columns);

#endif
