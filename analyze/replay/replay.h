/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - how long the steps of one process would take if something in them were changed.
 *
 * The replay keeps, for every thread and every stream, when its latest point happened: as measured
 * and as it would have been under each set of edits (a state; state 0 is without any).  A point is
 * the begin or the end of a range or call on a thread, or of work on a stream.  A new point happens
 * when everything that it depends on has happened, and after the time that these dependencies do
 * not explain:
 *
 *	host        the point before on its thread, then the thread's own time
 *	wait        a call that synchronises also waits for the GPU work that ended inside it
 *	hand-over   a thread that was idle starts after the step thread's latest point, and the step
 *	            thread goes on after the burst of a thread that ran while it made no point
 *	GPU work    its launch plus the shortest launch latency seen, the work before it on its
 *	            stream plus the shortest gap seen, the work that its stream was made to wait for
 *
 * The unexplained rest (residual) is kept with the point, so state 0 gives back the measured times
 * exactly; replay_is_exact() says whether it did.  Edits scale own times, residuals of the host and
 * durations of GPU work.  Points come in measured time order, and all state is carried from step to
 * step, because a GPU may still work on the step before.
 *
 * What waits for what is the same in all states.  So points become moves once (struct replay), and
 * any number of runs of some states each follow these (struct replay_run).
 *
 * A replay is for one process of the trace.  Not thread-safe.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a thread does between two of its points: the innermost call or range that is open. */
enum replay_activity {
	REPLAY_OTHER,
	REPLAY_LAUNCH,
	REPLAY_SYNC, /* waits for all work of one stream, or of the device */
	REPLAY_COPY, /* may wait for its own work */
	REPLAY_ALLOCATOR,
	REPLAY_COMPILE,
	REPLAY_GC,
	REPLAY_ACTIVITIES,
};

enum {
	REPLAY_STATES = 32,                /* state 0 and up to 31 sets of edits */
	REPLAY_WAIT_OWN_NS = 2000,         /* own time at most of a call that waits */
	REPLAY_WAIT_TOLERANCE_NS = 100000, /* work may seem to end so much after its wait */
	REPLAY_STEPS_MAX = 1 << 16,        /* times of steps that are kept */
};

struct replay_host { /* a range or call on a thread */
	uint64_t begin_ns, end_ns;
	uint64_t correlation; /* of a call; 0: none */
	uint32_t thread;
	uint32_t kind, between; /* for edits: of its own time, and of time before it that lies in
				 * no other */
	uint8_t activity;       /* enum replay_activity */
	bool is_device_wide;    /* REPLAY_SYNC: of all streams */
	bool is_stream_wait;    /* the thread's next launch waits for the other streams' work */
	bool is_mark;           /* a step begins and ends with it */
	bool is_step_thread;
};
struct replay_work { /* on a GPU */
	uint64_t begin_ns, end_ns;
	uint64_t correlation, launch_ns; /* launch_ns: begin of the call; 0: none is known */
	uint32_t stream, kind;           /* kind: for edits */
	uint8_t work_class;              /* enum gpu_class */
};

struct edit_set;
struct edit_kinds;
struct replay_edits {                       /* borrowed, all of it */
	const struct edit_set *const *sets; /* of states 1 to `count` */
	size_t count;
	/* One more state, in which the residuals of GPU work and of waits for it are 0: how long
	 * the step takes by its known dependencies alone. */
	bool has_rest;
	const struct edit_kinds *kinds; /* of the points; may grow between runs */
};

/* What the points of a process wait for.  It does not depend on edits, so it is found once. */
struct replay;
enum status replay_open(struct replay **out, struct error *err);
void replay_close(struct replay *r); /* accepts NULL */
/* Points are put in the order of their begins, over both functions. */
enum status replay_put_host(struct replay *r, const struct replay_host *h, struct error *err);
enum status replay_put_work(struct replay *r, const struct replay_work *w, struct error *err);
/* Call it after the last point: ends all open ranges and calls. */
enum status replay_end(struct replay *r, struct error *err);
/* The size of the moves that further runs will read, in bytes. */
size_t replay_size(const struct replay *r);
/* Drops the moves, because all runs have followed them to the latest point. */
void replay_forget(struct replay *r);

/* When the points of a replay happen, in several states. */
struct replay_run;
/* `of` is borrowed. */
enum status replay_run_open(struct replay_run **out, const struct replay *of,
			    const struct replay_edits *edits, struct error *err);
void replay_run_close(struct replay_run *x); /* accepts NULL */
/* Runs through all points that were not dropped. */
enum status replay_run_go(struct replay_run *x, struct error *err);
/* Whether state 0 gave every point its measured time. */
bool replay_is_exact(const struct replay_run *x);

/*
 * When the begin or end of a mark, `at_ns` as measured, and all work launched before it had
 * happened, in ns after the first point, by state: a step ends then.  NULL: no mark begins or ends
 * there, or more than REPLAY_STEPS_MAX came before.
 */
const double *replay_at(const struct replay_run *x, uint64_t at_ns);
struct replay_step { /* as measured: from a begin of a mark to a begin or end */
	uint64_t begin_ns, end_ns;
};
/*
 * Writes the lengths of steps in a state to `out` and returns their number.  The first step is left
 * out, and so are those whose ends replay_at() does not know.  With launch=graph a step that
 * launches no GPU work keeps its length.  *changed_ns (may be NULL): how much own time and work of
 * each the edits removed.
 */
size_t replay_lengths(const struct replay_run *x, const struct replay_step *steps, size_t count,
		      size_t state, uint64_t *out, uint64_t *changed_ns);
/* The same from the begin or end of a mark to the last point; 0: no mark is there. */
double replay_changed(const struct replay_run *x, uint64_t since_ns, size_t state);
