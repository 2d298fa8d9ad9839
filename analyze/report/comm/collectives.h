/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.h - which collectives of the ranks are one (DEFINITIONS.md 7).
 *
 * Per communicator and operation, twice over the packed rows of all ranks: first the shortest time
 * of each index and whose it is, then each rank's own.  Memory is one entry for each index of one
 * communicator and operation, not for each rank's.
 *
 * One thread; borrows from the tables, which stay as they are.
 */
#pragma once

#include "analyze/report/comm/comm.h"
#include "schemas/base/map.h"

struct ref { /* a packed row */
	const union value *row;
	uint64_t place;                /* of the row in the table */
	const char *group, *operation; /* of the tables: equal ones are one */
	uint32_t member;               /* a GPU of a rank */
	uint32_t interval;             /* that of one input */
	uint32_t nth, times;           /* of the step's number on this member: before, and in all */
	bool is_even;                  /* all inputs that have the number have it as often */
};
struct coll_match { /* an index of a communicator and operation; what the ranks have of it */
	uint64_t step, index, of_step; /* step: NO_U64 with Seq */
	uint32_t nth, times;           /* as of its refs; 0 with Seq; the last of the key */
	uint64_t least_ns, second_ns;
	uint64_t least_exposed_ns;   /* of the one with the shortest time */
	uint64_t place, bytes;       /* of the first that came */
	const char *type;            /* of the first that came */
	uint32_t count, last, least; /* members */
	uint32_t number;             /* unique over all communicators */
	bool twice;                  /* on one rank, or not alike */
	bool settles;                /* on any rank its step settles and does not count */
};
struct coll_matches { /* zeroed but `all` */
	struct tables *all;
	const union value **members, **intervals; /* a row of each: its first keys */
	size_t member_count, interval_count;
	struct ref *refs; /* by communicator and operation */
	size_t ref_count;
	struct coll_match *items;
	size_t count, cap;
	struct hash_index index; /* of items */
	uint32_t numbers;        /* of matches, so far */
};
enum status matches_open(struct coll_matches *m, struct tables *all, struct error *err);
void matches_release(struct coll_matches *m); /* also one that is zeroed */

struct match_range {       /* zeroed: before the first */
	size_t first, end; /* refs of one communicator and operation */
	size_t members;    /* that have anything of this communicator */
	const char *why;   /* they cannot be matched; NULL: they can, and the hash is filled */
};
/* *more false: past the last. */
enum status matches_next(struct coll_matches *m, struct match_range *range, bool *more,
			 struct error *err);

struct matched_call { /* a matched collective of one rank */
	const struct ref *ref;
	const struct rank_call *call;
	const struct coll_match *match;
};
typedef enum status (*matched_call_fn)(void *self, const struct matched_call *one,
				       struct error *err);
enum status matches_each(struct coll_matches *m, const struct match_range *range,
			 matched_call_fn visit, void *self, struct error *err);

/* The member that came last, NO_ID: within the noise. */
uint32_t match_culprit(const struct coll_match *at);
