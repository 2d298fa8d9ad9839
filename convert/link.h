/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - the stage that joins GPU work to the call that launched it.
 *
 * One forward pass: calls begin before what they launch, so a ring of recent calls by (process,
 * correlation) is enough.  The ring grows to `window` calls (2^20 per process, some 25 MB); what
 * falls out before its work came is counted as unlinked, never guessed.  Many events may share one
 * call (CUDA graphs).  A device clock may be microseconds ahead of the host's, and a call and its
 * work may begin in the same tick, so the stage reads `slack_ns` ahead (default 50 us): calls are
 * entered before work is handed on.
 *
 * When a runtime call and the driver call inside it have the same id, the outer one is the launch.
 * An id that comes again later, in a call apart from the first, is another call's from then on.
 *
 * It stands above `step`, which has set step, phase and owner of the call; it copies them to the
 * work.  Work without a call keeps step 0, phase 0.
 */
#ifndef CONVERT_LINK_H
#define CONVERT_LINK_H

#include "convert/source.h"

#define LINK_WINDOW ((size_t)1 << 20)
#define LINK_SLACK_NS 50000u

struct launch {
	uint64_t begin_ns, end_ns; /* of the call */
	uint64_t correlation;
	uint32_t track, name, owner, step;
	uint8_t phase;
	uint8_t flags; /* this and what follows: link.c's own */
	uint16_t batch;
};
struct link_totals { /* of one process, so far */
	uint64_t gpu_events, with_launch;
	uint64_t launches, without_gpu_event; /* calls that launch by their name (link.c) */
	uint64_t fell_out;                    /* calls that left the ring before any work came */
	uint64_t lowest_id, highest_id, ids;  /* of GPU events, different ones: for their density */
};

/* Owns `below` from here on, even on failure. */
enum status link_open(struct source **out, struct source *below, struct trace *trace,
		      size_t window, uint64_t slack_ns, struct error *err);

/* The call behind GPU work or a sync; NULL: unknown.  Valid while the batch is. */
const struct launch *link_launch(const struct source *s, const struct event *e);
struct link_totals link_totals(const struct source *s, uint32_t process);

#endif
