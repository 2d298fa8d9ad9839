/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - where the columns of a table stand in a terminal of some width. */
#ifndef ANALYZE_FORMAT_TEXT_LAYOUT_H
#define ANALYZE_FORMAT_TEXT_LAYOUT_H

#include "analyze/format/page/block.h"

enum {
	NAME_LEAST = 24,   /* columns; with fewer a name is hard to know */
	LEFT_OUT = 1 << 8, /* in block_column.hidden: the terminal is too narrow for it */
	GAP = 2,           /* blanks at least between columns */
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

#endif
