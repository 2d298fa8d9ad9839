/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log/window.h - the rows of a block that is not in order, a few at a time; inside of log/cursor.
 *
 * A row mostly is near its place: who knows the order needs, of all the rows, only those between
 * the first that was not given yet and the last that comes next.  They stand in a ring.
 */
#ifndef CONVERT_LOG_WINDOW_H
#define CONVERT_LOG_WINDOW_H

#include "schemas/log.h"

struct log_window;

/* Rows that are at hand at once when `count` rows are given in this order; at most `count`. */
uint32_t log_window_need(const uint16_t *order, uint32_t count);

/*
 * A ring for `need` rows and a chunk, filled with the first one, `chunk`, whose words that are the
 * same in all rows stay borrowed.  NULL: no memory.  free() ends it.
 */
struct log_window *log_window_new(const struct log_rows *chunk, uint32_t need);
void log_window_put(struct log_window *w, const struct log_rows *chunk);

const struct log_rows *log_window_rows(const struct log_window *w);
uint32_t log_window_mask(const struct log_window *w); /* of a row: its place in the ring */
uint32_t log_window_end(const struct log_window *w);  /* rows that were put */

#endif
