/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - sorts events in bounded memory.
 *
 * Events that fit the budget are sorted and appended as one run to an unlinked scratch file;
 * reading merges the runs.  This is the only external sort:
 *
 *	an unsorted source      group 0 for all: time order
 *	sink tensorboard        one group for each line of a plane: line after line
 *
 * A spool that stays within its budget writes nothing to disk.  It uses half of budget->opening,
 * but at least SPOOL_LEAST, while events go in, a smaller share while they come out, and 40 bytes
 * for each group of each run.  Runs hold rows (runs.h) of about 40 bytes, not the log's column
 * blocks: a block has one layout, so a merge of runs would need memory for a cursor for each layout
 * of each run.
 */
#pragma once

#include "convert/source/source.h"

struct spool;

enum { SPOOL_LEAST = 256 * 1024 };

enum status spool_open(struct spool **out, const struct trace *trace, const struct budget *budget,
		       struct error *err);

/* Copies events with their argument values.  Returns ST_IO if the scratch folder is full. */
enum status spool_put(struct spool *s, uint32_t group, const struct event *events, size_t count,
		      struct error *err);

/*
 * Puts an event in group 0 whose end is not known yet.  `place`, a small number of the caller's
 * choice, identifies it until spool_finish() or spool_take_back().  Events that were begun in time
 * order need not be sorted, unlike in the order of their ends.
 */
enum status spool_begin(struct spool *s, const struct event *e, uint32_t place, struct error *err);
void spool_finish(struct spool *s, uint32_t place, uint64_t end_ns);
/*
 * Keeps an event without argument values that equals many others except for its times.  It is
 * stored once, and each of the others needs only a few bytes.  *shared is 0 if no more can be kept.
 */
enum status spool_share(struct spool *s, const struct event *e, uint32_t *shared,
			struct error *err);
const struct event *spool_shared(const struct spool *s, uint32_t shared); /* until spool_share() */
enum status spool_begin_shared(struct spool *s, uint32_t shared, uint64_t begin_ns, uint32_t place,
			       struct error *err);
/* Removes an event from the spool; *e borrows its argument values until the next call. */
enum status spool_take_back(struct spool *s, uint32_t place, struct event *e, struct error *err);

/* Returns the next batch, in the order of group, then of event.h; a batch has one group.  Must be
 * called after the last put, when no event is open. */
enum status spool_next(struct spool *s, uint32_t *group, struct batch *out, struct error *err);
void spool_close(struct spool *s); /* accepts NULL */

struct spool_totals {
	uint64_t events;
	uint64_t scratch_bytes; /* written so far, including runs that were merged early */
	size_t runs;            /* number of runs written so far; 0: all events stayed in memory */
	size_t peak_bytes;      /* most memory in use at any time */
};
struct spool_totals spool_totals(const struct spool *s);
