/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_calls.h - the recent calls of one process: a ring of slots, found by correlation id.
 *
 * The newest are kept as they are; what is far behind them is packed, some ten bytes a call, and
 * unpacked again when its work comes after all.  Ids are in a table of their own, so that looking
 * for one unpacks nothing but the chunk that has it.
 */
#ifndef CONVERT_LINK_CALLS_H
#define CONVERT_LINK_CALLS_H

#include "convert/link.h"

enum launch_flag {
	LAUNCH_LIVE = 1,   /* in the table; else its id was given to another call */
	LAUNCH_CALL = 2,   /* a recorded call; else an id that only GPU work has shown */
	LAUNCH_STARTS = 4, /* launches by its name */
	LAUNCH_WORKED = 8, /* GPU work came */
};

struct call_chunk;
struct calls { /* zeroed, but for its window */
	struct call_chunk **chunks;
	uint32_t chunk_count;
	uint32_t window;   /* slots at most, > 0 */
	uint32_t *buckets; /* slot + 1; 0 none */
	uint32_t bucket_count;
	uint32_t used, oldest;   /* slots; the oldest one once all are used */
	uint64_t begun, settled; /* chunks since the start; of those, no longer among the newest */
	struct call_chunk *again; /* unpacked ones that are not among the newest */
	uint64_t highest;         /* of all ids so far: most calls have one that is higher */
	uint64_t worked;          /* launches that have work */
	struct link_totals totals;
};

void calls_release(struct calls *c);

/* Packs what is old.  Pointers to launches end here, and only here. */
void calls_settle(struct calls *c);

/* *out is NULL when there is none. */
enum status calls_find(struct calls *c, uint64_t correlation, struct launch **out,
		       struct error *err);
/* What calls_find() or calls_add() gave since calls_settle(); else it may be NULL.  Any thread. */
const struct launch *calls_look(const struct calls *c, uint64_t correlation);
/* What goes when one more comes; NULL: nothing, or what was not asked for since calls_settle(). */
const struct launch *calls_oldest(const struct calls *c);

/* A new entry, the oldest making room for it.  Its id must not be in the table. */
enum status calls_add(struct calls *c, const struct launch *l, uint32_t buckets_first,
		      struct launch **out, struct error *err);
/* Of calls_find(): its id may be used again. */
void calls_forget(struct calls *c, struct launch *l);

#endif
