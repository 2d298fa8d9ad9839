/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - the figures of `ranks` and `comm` that rules speak of. */
#ifndef ANALYZE_REPORT_RANKS_H
#define ANALYZE_REPORT_RANKS_H

#include "analyze/engine/report.h"

/* Of matched collectives, ns of the windows. */
struct waiting {
	size_t ranks;               /* that communicate */
	uint64_t matched;           /* of a rank */
	double exposed_wait_ns;     /* of all ranks */
	const union value *culprit; /* the row of `waits` of the rank that was latest; NULL: none */
	double late_ns;             /* of that one: later than the one before it */
	uint64_t times_last;
};
struct waiting waiting_of(struct tables *all);

#endif
