/* SPDX-License-Identifier: Apache-2.0 */
/* width.h - how many columns of a terminal texts and shares take. */
#ifndef ANALYZE_FORMAT_PAGE_WIDTH_H
#define ANALYZE_FORMAT_PAGE_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_WIDTH = 100 /* the widest line of a page */ };

/* East Asian wide characters and emoji, coarsely: few names of kernels and phases hold them. */
bool utf8_is_wide(uint32_t c);
/* What a terminal would interpret, and marks that take no column. */
bool utf8_is_unprintable(uint32_t c);
unsigned text_width(const char *words);

/*
 * Shares `total` columns out to the parts, by largest remainder; a part that is not nothing may
 * still get none.
 */
void share_out(const double *parts, size_t count, unsigned total, unsigned *columns);

#endif
