/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - the figures of `ranks` and `comm` that rules speak of. */
#ifndef ANALYZE_REPORT_RANKS_H
#define ANALYZE_REPORT_RANKS_H

#include "analyze/engine/report.h"

/*
 * Of matched collectives, ns of the windows; of a step: / steps of a rank.  A rank that came last
 * is named where the next one came earlier by more than noise.
 */
struct waiting {
	size_t ranks;                /* that communicate */
	uint64_t matched;            /* of a rank */
	double wait_ns;              /* of all ranks, for whomever */
	double mean_exposed_wait_ns; /* over the ranks, for whomever */
	double most_excess_ns; /* exposed_excess_ns of the rank that has most: what the job would
				* gain, at most, were all as early as that one */
	/* The rank whose coming with the next one would save most; NULL: nobody is named. */
	const union value *culprit; /* its row of `waits` */
	double saving_ns;           /* what the job would gain by that, at most */
	double late_ns, made_wait_ns;
	uint64_t times_last;
};
struct waiting waiting_of(struct tables *all);

#endif
