/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.h - the stage that finds the context of each event: its step, its phase, the path of
 * ranges that were open on its thread and, for GPU work, the call that launched it.
 *
 * The stage finds the step thread of each process and follows the ranges that are open on it and on
 * the threads that launch.  It sets step, phase and path of each host event as they are when the
 * event begins, so a range is not in its own path; analyze/DEFINITIONS.md 3 and 4 define them.  If
 * launches are wanted, it also finds the call of each GPU event by (process, correlation) and
 * copies the call's context to the event.  GPU work without a known call keeps step 0 and phase 0.
 *
 * Two facts become known late, so copies of the events wait in a queue until both are settled.
 * First, whether a host gap of the step thread is backward is known only when the autograd threads
 * run again or the gap ends; in practice that takes microseconds of trace.  If QUEUE_EVENTS events
 * wait, the gap counts as `other`.  Second, a device clock may be ahead of the host's by
 * microseconds, and a call and its work may begin in the same tick.  So calls are entered up to
 * `slack_ns` past an event before its launch is looked up.
 *
 * A batch carries the phase intervals and step marks that became final with it (struct batch).  All
 * events that begin before the end of an interval came with it or earlier.  The batch of ST_END, or
 * of an error, has no events but carries the last intervals and marks.
 */
#pragma once

#include "convert/name/rules.h"
#include "convert/source/source.h"

/* The step thread of `process` is in this phase and step from begin to end; begin < end. */
struct phase_interval {
	uint64_t begin_ns, end_ns;
	uint32_t process;
	uint32_t step; /* as event.step: 0, number + 1, with STEP_GAP between two marks */
	uint8_t phase;
	bool inferred;    /* found by rules 3 and 4 of DEFINITIONS.md 4, not by a name */
	bool begins_step; /* starts together with a mark: tells steps with one number apart */
};

/* Extends `open` by `next` and returns true, if `next` continues the same phase of the same step.
 */
static inline bool phase_interval_extend(struct phase_interval *open,
					 const struct phase_interval *next)
{
	if (open->end_ns != next->begin_ns || open->phase != next->phase ||
	    open->step != next->step || next->begins_step)
		return false;
	open->end_ns = next->end_ns;
	return true;
}

/* A step mark on the step thread. */
struct step_mark {
	uint64_t begin_ns, end_ns, number;
	uint32_t process, name;
	uint8_t flags; /* enum event_flag of the mark */
};

/* The call that launched GPU work or that a synchronisation belongs to. */
struct launch {
	uint64_t begin_ns, end_ns; /* begin and end of the call */
	uint64_t correlation;
	uint32_t track, name, path, step;
	uint8_t phase;
	uint8_t flags; /* private to context/launch.c */
};

/* Counts of one process so far. */
struct launch_totals {
	uint64_t gpu_events, with_launch;
	uint64_t launches, without_gpu_event; /* calls that launch, judged by their name */
	uint64_t fell_out; /* launching calls that left the window before any work came */
	/* The number of distinct correlations of calls or of GPU events, whichever is greater, and
	 * the range of these ids (DEFINITIONS.md 8). */
	uint64_t ids, id_range;
};

#define LAUNCH_WINDOW       ((size_t)1 << 20)
#define LAUNCH_WINDOW_LEAST ((size_t)1 << 17)
#define LAUNCH_BYTES        25 /* approximate memory of a remembered call */
#define LAUNCH_SLACK_NS     50000u

struct context_request {
	const struct name_rules *rules; /* borrowed */
	bool wants_launches;
	/* Number of calls that are remembered per process, from 1 to LAUNCH_WINDOW; 0 means
	 * LAUNCH_WINDOW.  Each call needs LAUNCH_BYTES.  GPU work of an older call gets no launch.
	 */
	size_t window;
	uint64_t slack_ns;
	/* Return each interval only once it is over.  Otherwise a long interval comes in several
	 * parts, so that consumers need not wait for its end. */
	bool whole_intervals;
};

struct context;
/* Opens the stage, which owns `below`, even on failure.  It is closed with
 * source_close(context_source()). */
enum status context_open(struct context **out, struct source *below, struct trace *trace,
			 const struct context_request *how, struct error *err);
struct source *context_source(struct context *c);

/* Phase ids are those of the rules, followed by one for each name of an outermost annotation that
 * no rule maps, up to 254; all further names share the last id.  They are added as events come, so
 * their number is final after ST_END. */
struct context_phase {
	const char *name;   /* borrowed until close */
	bool is_annotation; /* the phase is an unmapped annotation with this name */
};
unsigned context_phase_count(const struct context *c);
struct context_phase context_phase(const struct context *c, unsigned id);

/* Returns the track of a process's step thread, or 0 if it has no host thread.  If several threads
 * could be it, the result is valid from the first batch on. */
uint32_t context_step_thread(const struct context *c, uint32_t process);
/* Returns whether the event marks a step of its process, even if it was clipped. */
bool context_is_mark(const struct context *c, const struct event *e);
/* Returns whether a range with this name only marks a step and so is not a row of its own. */
bool context_is_step_name(const struct context *c, uint32_t name);
struct launch_totals context_launch_totals(const struct context *c, uint32_t process);

/* Intervals that a stage keeps until it can return them with events.  Zeroed: empty.  The owner
 * frees `items`. */
struct interval_list {
	struct phase_interval *items;
	size_t count, cap;
};
/*
 * Appends an interval, or extends the last one if the interval continues it.  An interval shorter
 * than `shortest_ns` is added to the one before it.  A list that grows very long loses its older
 * half.
 */
enum status interval_list_add(struct interval_list *l, const struct phase_interval *one,
			      uint64_t shortest_ns, struct error *err);
