/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm/meet.h - which collectives of the ranks are one (DEFINITIONS.md 7).
 *
 * Per communicator and operation, twice over the packed rows of all ranks: first the shortest time
 * of each index and whose it is, then each rank's own.  Memory is one entry for each index of one
 * communicator and operation, not for each rank's.
 *
 * One thread; borrows from the tables, which stay as they are.
 */
#ifndef ANALYZE_REPORT_COMM_MEET_H
#define ANALYZE_REPORT_COMM_MEET_H

#include "analyze/report_comm.h"

struct ref { /* a packed row */
	const union value *row;
	const char *group, *operation; /* of the tables: equal ones are one */
	uint32_t member;               /* a GPU of a rank */
	uint32_t stretch;              /* that of one input */
	uint32_t nth, times; /* of the step's number on this member: before, and in all */
	bool is_even;        /* all inputs that have the number have it as often */
};
struct meet { /* an index of a communicator and operation; what the ranks have of it */
	uint64_t step, index, of_step; /* step: NO_U64 with Seq */
	uint32_t nth, times;           /* as of its refs; 0 with Seq */
	uint64_t least_ns, second_ns;
	uint32_t count, last, least; /* members */
	uint32_t number;             /* unique over all communicators */
	bool twice, used;
};
struct meets { /* zeroed but `all` */
	struct tables *all;
	const union value **members, **stretches; /* a row of each: its first keys */
	size_t member_count, stretch_count;
	struct ref *refs; /* by communicator and operation */
	size_t ref_count;
	struct meet *slots; /* open hash */
	size_t slot_cap, slot_count;
	uint32_t numbers; /* of meets, so far */
};
enum status meets_open(struct meets *m, struct tables *all, struct error *err);
void meets_release(struct meets *m); /* also one that is zeroed */

struct meet_range { /* zeroed: before the first */
	size_t first, end;   /* refs of one communicator and operation */
	size_t members;      /* that have anything of this communicator */
	const char *why;     /* they cannot be matched; NULL: they can, and the hash is filled */
};
/* *more false: past the last. */
enum status meets_next(struct meets *m, struct meet_range *range, bool *more, struct error *err);

struct met_of { /* a matched collective of one rank */
	const struct ref *ref;
	const struct met *met;
	const struct meet *meet;
};
typedef enum status (*met_visit)(void *self, const struct met_of *one, struct error *err);
enum status meets_each(struct meets *m, const struct meet_range *range, met_visit visit,
		       void *self, struct error *err);

/* The member that came last, NO_ID: within the noise. */
uint32_t meet_culprit(const struct meet *at);

#endif
