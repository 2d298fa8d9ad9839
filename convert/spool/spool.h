/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - events go in in any order and come out in order, in bounded memory.
 *
 * What fits the budget is sorted and appended as one run to an unlinked scratch file; reading
 * merges the runs.  It is the only external sort:
 *
 *	an unsorted source      group 0 for all: time order
 *	sink tensorboard        one group for each line of a plane: line after line
 *
 * A spool that never passes its budget touches no disk.  It uses half of budget->opening, but
 * never less than SPOOL_LEAST, while events go in and, with a smaller share, while they come out;
 * and 40 bytes for each group of each run.  Runs hold rows (runs.h), not the log's column blocks: a
 * block has one layout, so a run of blocks would need a cursor for each layout, and a merge of many
 * runs the memory of all those cursors.  A row takes some 30 bytes.
 */
#pragma once

#include "convert/source/source.h"

struct spool;

enum { SPOOL_LEAST = 256 * 1024 };

enum status spool_open(struct spool **out, const struct trace *trace, const struct budget *budget,
		       struct error *err);

/* Events are copied, with their argument values.  ST_IO when the scratch folder is full. */
enum status spool_put(struct spool *s, uint32_t group, const struct event *events, size_t count,
		      struct error *err);

/* After the last put: group ascending, then the order of event.h.  A batch is of one group. */
enum status spool_next(struct spool *s, uint32_t *group, struct batch *out, struct error *err);
void spool_close(struct spool *s); /* accepts NULL */

struct spool_totals {
	uint64_t events;
	uint64_t scratch_bytes; /* written so far, runs that were merged early included */
	size_t runs;            /* written so far; 0: everything stayed in memory */
	size_t peak_bytes;      /* the most memory that it had at any time */
};
struct spool_totals spool_totals(const struct spool *s);
