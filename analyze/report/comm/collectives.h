/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.h - matches the collectives of ranks (DEFINITIONS.md 7).
 *
 * For each communicator and operation, the packed rows of all ranks are read twice: first to find
 * the shortest time of each index and its rank, then for each rank's own time. Memory is one entry
 * for each index of one communicator and operation, not for each rank.
 *
 * One thread; borrows from the tables, which do not change.
 */
#pragma once

#include "analyze/report/comm/comm.h"
#include "schemas/base/map.h"

struct ref { /* a packed row */
	const union value *row;
	uint64_t place; /* index of the row in the table */
	/* owned by the tables, so equal texts have equal addresses */
	const char *group, *operation;
	uint32_t member;   /* index of a GPU of a rank */
	uint32_t interval; /* index of one input of a member */
	/* steps of this number on the member: before this one, and in total */
	uint32_t nth, times;
	/* all inputs with this number have equally many such steps */
	bool is_even;
};
struct coll_match { /* one index of a communicator and operation, with what the ranks have of it */
	uint64_t step, index, of_step; /* step: NO_U64 with Seq */
	uint32_t nth, times;           /* as in its refs, 0 with Seq; the key ends here */
	uint64_t least_ns, second_ns;
	uint64_t least_exposed_ns; /* exposed time of the shortest one */
	uint64_t place, bytes;     /* of the first one seen */
	const char *type;          /* of the first one seen */
	/* number of members; last: the last one seen; least: the one with the shortest time */
	uint32_t count, last, least;
	uint32_t number; /* unique over all communicators */
	bool twice;      /* twice on one rank, or not alike */
	/* on some rank its step is a settling one that does not count */
	bool settles;
};
struct coll_matches { /* all members zero but `all` */
	struct tables *all;
	const union value **members, **intervals; /* one row of each, for its first keys */
	size_t member_count, interval_count;
	struct ref *refs; /* sorted by communicator and operation */
	size_t ref_count;
	struct coll_match *items;
	size_t count, cap;
	struct hash_index index; /* hash table of `items` */
	uint32_t numbers;        /* number of matches so far */
};
enum status matches_open(struct coll_matches *m, struct tables *all, struct error *err);
void matches_release(struct coll_matches *m); /* accepts a zeroed one */

struct match_range {       /* all zero: before the first range */
	size_t first, end; /* refs of one communicator and operation */
	size_t members;    /* members with any collective of this communicator */
	/* why they cannot be matched; NULL: matched, and the hash table is filled */
	const char *why;
};
/* Advances to the next range; *more is false after the last one. */
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

/* Returns the member that came last; NO_ID: the difference is within the noise. */
uint32_t match_culprit(const struct coll_match *at);
