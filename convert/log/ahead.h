/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log/ahead.h - the blocks of a log opened in order, some of them ahead on other cores; inside of
 * source_log.  What comes is the same at any number of threads.
 *
 * With threads, blocks are read, checked, inflated and decoded whole before they are due, as many
 * as there are threads and one more; without, each when it is asked for, `sparing` with as few of
 * its rows as can be.
 */
#ifndef CONVERT_LOG_AHEAD_H
#define CONVERT_LOG_AHEAD_H

#include "convert/log/walk.h"

struct log_ahead;

/* `has` is borrowed until close, and its blocks are in the order in which they are opened. */
enum status log_ahead_open(struct log_ahead **out, const struct log_has *has, unsigned threads,
			   bool sparing, struct error *err);
void log_ahead_close(struct log_ahead *a); /* accepts NULL */

/* The cursor of the next block, the caller's in any case but ST_MEMORY; the status is that of
 * log_cursor_open(), its number the block's, from 1 on.  Not behind the last one. */
enum status log_ahead_next(struct log_ahead *a, struct log_cursor **out, struct error *err);
/* A cursor comes back, to be used again while there are more blocks. */
void log_ahead_spare(struct log_ahead *a, struct log_cursor *c);

#endif
