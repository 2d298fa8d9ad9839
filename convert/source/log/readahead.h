/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readahead.h - the blocks of a log opened in order, some of them ahead on other cores; inside of
 * the source.  What comes is the same at any number of threads.
 *
 * With threads, blocks are read, checked, inflated and decoded whole before they are due, as many
 * as there are threads and one more.  Without, a block is opened when it is asked for, and where
 * memory is short (`sparing`) with as few of its rows as possible.
 */
#ifndef CONVERT_SOURCE_LOG_READAHEAD_H
#define CONVERT_SOURCE_LOG_READAHEAD_H

#include "convert/source/log/index.h"

struct log_readahead;

/* `index` is borrowed until close, and its blocks are in the order in which they are opened. */
enum status log_readahead_open(struct log_readahead **out, const struct log_index *index,
			       unsigned threads, bool sparing, struct error *err);
void log_readahead_close(struct log_readahead *a); /* accepts NULL */

/* The cursor of the next block, which becomes the caller's unless it is NULL (ST_MEMORY).  The
 * status is that of log_cursor_open().  Not to be called after the last block. */
enum status log_readahead_next(struct log_readahead *a, struct log_cursor **out, struct error *err);
/* Takes a cursor back, to be used again while there are more blocks. */
void log_readahead_reuse(struct log_readahead *a, struct log_cursor *c);

#endif
