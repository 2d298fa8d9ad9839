/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h - the time of each GPU, cut into segments in which nothing changes.
 *
 * The segments of a GPU tile its window: sorted, no hole, no overlap, each nanosecond in exactly
 * one, with one owner (DEFINITIONS 2).  So every share that is a sum over segments adds to 100 %
 * by construction - for the span, for lead and tail, for every (step, phase) cell - in integers:
 *
 *	compute = BUSY_COMPUTE set         exposed_copy = only BUSY_COPY
 *	exposed_comm = BUSY_COMM, no COMPUTE             idle = 0
 *
 * What overlaps is in the mask too and stands beside, never inside.
 *
 * State is bounded: GPU work still running, stretches of the host inside the open gap.  A segment
 * comes when it is final; an idle one when its gap ends, for the event that ends it is its owner.
 * Where nothing runs, segments are also split where the step thread's phase changes (step.h), so
 * that "idle meanwhile" is a sum over segments too.
 */
#ifndef ANALYZE_SWEEP_H
#define ANALYZE_SWEEP_H

#include "convert/link.h"
#include "convert/name_rules.h"
#include "convert/step.h"

enum busy { BUSY_COMPUTE = 1, BUSY_COMM = 2, BUSY_COPY = 4 };
enum part { PART_LEAD, PART_SPAN, PART_TAIL };

struct segment {
	uint64_t begin_ns, end_ns; /* begin < end */
	uint32_t process, device;
	uint32_t window;           /* its number in this process, from 0 */
	struct event owner;        /* a copy: its step and phase are the cell; vary is NULL.
	                            * In PART_TAIL nothing ends the gap: kind is KIND_UNKNOWN */
	struct launch launch;      /* of the owner, when has_launch */
	bool has_launch;
	bool before_window;        /* no launch, and none was recorded for anything before it */
	uint8_t busy;              /* mask; 0: nothing runs */
	uint8_t part;
	uint8_t host_phase;        /* where nothing runs: of the step thread, an id of step.h */
	uint32_t host_step;        /* likewise, as event.step */
};

struct sweep;
/* `link` and `step` are stages of the pipeline; borrowed.  Work over `ceiling` bytes of running
 * events is ST_CEILING. */
enum status sweep_open(struct sweep **out, struct trace *trace, const struct source *step,
		       const struct source *link, const struct name_rules *rules, size_t ceiling,
		       struct error *err);
/*
 * Events in order in (all of a batch, host events too: they bound the window), with the stretches
 * and marks that the step stage gave with it; segments that became final out, borrowed until the
 * next call.
 */
enum status sweep_put(struct sweep *s, const struct event *events, size_t count,
		      const struct segment **segments, size_t *segment_count, struct error *err);
/* The input is over: the last segments of every GPU. */
enum status sweep_end(struct sweep *s, const struct segment **segments, size_t *segment_count,
		      struct error *err);
void sweep_close(struct sweep *s); /* accepts NULL */

#endif
