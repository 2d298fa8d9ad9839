/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reorder.h - the rows of a block that is not in order, a few at a time; inside of cursor.c.
 *
 * Most rows are near their place.  When the order is known, only the rows between the first that
 * was not given yet and the last that was given are needed in memory.  They are kept in a ring.
 */
#ifndef CONVERT_SOURCE_LOG_REORDER_H
#define CONVERT_SOURCE_LOG_REORDER_H

#include "schemas/log/log.h"

struct log_window;

/* How many rows must be in memory at once when `count` rows are given in this order. */
uint32_t log_window_need(const uint16_t *order, uint32_t count);

/*
 * A ring with place for `need` rows, which include those of a chunk, filled with the first chunk.
 * Words that are the same in all rows stay borrowed from it.  NULL: no memory.  Freed by free().
 */
struct log_window *log_window_new(const struct log_rows *chunk, uint32_t need);
void log_window_put(struct log_window *w, const struct log_rows *chunk);

const struct log_rows *log_window_rows(const struct log_window *w);
uint32_t log_window_mask(const struct log_window *w); /* a row stands at its number & mask */
uint32_t log_window_end(const struct log_window *w);  /* rows that were put so far */

#endif
