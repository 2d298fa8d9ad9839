/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_fast.h - records of GPU work and of calls, straight into the columns of their open block.
 *
 * A training loop repeats itself, so the descriptor of a record is predicted from the record
 * before it instead of being looked up by hash.  What is not as predicted (a new descriptor or
 * layout, a block that gets full, a time of another clock epoch) or of another kind ends a run,
 * and rows.c puts that record the plain way.  Writer thread only.
 */
#ifndef COLLECTOR_PROBE_CUPTI_ROWS_FAST_H
#define COLLECTOR_PROBE_CUPTI_ROWS_FAST_H

#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/layout.h"
#include "schemas/log/writer.h"

/* The state of putting one buffer. */
struct cupti_run {
	struct writer *w;
	struct log_places places; /* void after a row was put through the writer */
	uint64_t completed_ns, warmup_ns, begin_ns;
	struct cupti_epoch epoch;
	uint64_t lost[LOSS_END], rows, nodes;
	bool correlations; /* some calls have an external id, or CUDA events wait for their call */
};

/*
 * Puts records from `at` on, which lie one behind the other as far as `end`.  Returns the first
 * that was not put, which may be `at` or `end`.
 */
const uint8_t *cupti_run_put(struct cupti_run *r, const uint8_t *at, const uint8_t *end);
/* Row `row` of the cache was found for this record the plain way: predictions learn it. */
void cupti_run_learn(const struct cupti_layout *p, const uint8_t *record, uint32_t row);

#endif
