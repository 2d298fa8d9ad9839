/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/run.h - records of work and of calls, straight into the columns of their block.
 *
 * What is the same for many is looked up once.  What is not as in the records before (a new row, a
 * new layout, a block that gets full, a time of another era) or of another kind ends the run, and
 * is for cupti/rows.c to deal with, slowly and one by one.  The writer's thread only.
 */
#ifndef COLLECTOR_CUPTI_RUN_H
#define COLLECTOR_CUPTI_RUN_H

#include "collector/cupti/clock.h"
#include "collector/cupti/plan.h"
#include "schemas/log_writer.h"

/* What one buffer brings with it. */
struct cupti_run {
	struct writer *w;
	struct log_places places; /* to be asked for again when a row was put by the writer */
	uint64_t completed_ns, warm_ns, begin_ns;
	struct cupti_era era;
	uint64_t lost[LOSS_END], rows, nodes;
	bool joins; /* some calls have an external id, or events wait for their call */
};

/*
 * Records from `at` on, one behind the other as far as `end`.  Returns the first that was not put,
 * which may be `at` or `end`.
 */
const uint8_t *cupti_run_put(struct cupti_run *r, const uint8_t *at, const uint8_t *end);

#endif
