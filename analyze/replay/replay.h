/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - how long the steps of one process would take if something in them were changed.
 *
 * The replay keeps, for every thread and every stream, when its latest point happened: as measured
 * and as it would have been under each set of edits (a state; state 0 has no edits). A point is the
 * begin or the end of a range or call on a thread, or of work on a stream. A new point happens when
 * everything that it depends on has happened, and after the time that these dependencies do not
 * explain:
 *
 * 	host        the point before on its thread, then the thread's own time
 * 	wait        a call that synchronizes also waits for the GPU work that ended inside it
 * 	hand-over   a thread that was idle starts after the step thread's latest point, and the step
 * 	            thread continues after the burst of a thread that ran while it made no point
 * 	GPU work    its launch plus the shortest launch latency seen, the work before it on its
 * 	            stream plus the shortest gap seen, the work that its stream was made to wait for
 *
 * The unexplained rest (residual) is kept with the point, so state 0 reproduces the measured times
 * exactly; replay_is_exact() checks that it did. Edits scale own times, residuals of the host and
 * durations of GPU work. Points come in measured time order, and all state is carried from step to
 * step, because a GPU may still work on the step before.
 *
 * Dependencies are the same in all states. So points become moves once (struct replay), and any
 * number of runs of some states each follow these (struct replay_run).
 *
 * A replay is for one process of the trace. Not thread-safe.
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
	REPLAY_STATES = 32,        /* state 0 and up to 31 sets of edits */
	REPLAY_WAIT_OWN_NS = 2000, /* most own time of a call that waits */
	/* work may seem to end so much later than the wait for it */
	REPLAY_WAIT_TOLERANCE_NS = 100000,
	REPLAY_STEPS_MAX = 1 << 16, /* limit of kept times of steps */
};

struct replay_host { /* a range or call on a thread */
	uint64_t begin_ns, end_ns;
	uint64_t correlation; /* of a call; 0: none */
	uint32_t thread;
	/* kinds for edits: of its own time, and of the time before it that is in no range or
	 * call */
	uint32_t kind, between;
	uint8_t activity;    /* enum replay_activity */
	bool is_device_wide; /* REPLAY_SYNC: waits for all streams */
	bool is_stream_wait; /* the thread's next launch waits for other streams' work */
	bool is_mark;        /* a step mark */
	bool is_step_thread;
};
struct replay_work { /* work on a GPU */
	uint64_t begin_ns, end_ns;
	uint64_t correlation, launch_ns; /* launch_ns: begin of the launch call; 0: unknown */
	uint32_t stream, kind;           /* kind: for edits */
	uint8_t work_class;              /* enum gpu_class */
};

struct edit_set;
struct edit_kinds;
struct replay_edits {                       /* everything is borrowed */
	const struct edit_set *const *sets; /* edits of states 1 to `count` */
	size_t count;
	/* Adds a state in which the residuals of GPU work and of waits for it are 0: how long the
	 * step takes by its known dependencies alone. */
	bool has_rest;
	const struct edit_kinds *kinds; /* kinds of the points; may grow between runs */
};

/* The dependencies of a process's points. They do not depend on edits, so they are found once. */
struct replay;
enum status replay_open(struct replay **out, struct error *err);
void replay_close(struct replay *r); /* accepts NULL */
/* Put points in the order of their begins, over both functions. */
enum status replay_put_host(struct replay *r, const struct replay_host *h, struct error *err);
enum status replay_put_work(struct replay *r, const struct replay_work *w, struct error *err);
/* Call it after the last point: ends all open ranges and calls. */
enum status replay_end(struct replay *r, struct error *err);
/* Returns the size in bytes of the moves that further runs will read. */
size_t replay_size(const struct replay *r);
/* Drops the moves, once all runs have followed them to the latest point. */
void replay_forget(struct replay *r);

/* The times of a replay's points in several states. */
struct replay_run;
/* `of` is borrowed. */
enum status replay_run_open(struct replay_run **out, const struct replay *of,
			    const struct replay_edits *edits, struct error *err);
void replay_run_close(struct replay_run *x); /* accepts NULL */
/* Follows all moves that were not dropped. */
enum status replay_run_go(struct replay_run *x, struct error *err);
/* Returns whether state 0 gave every point its measured time. */
bool replay_is_exact(const struct replay_run *x);

/* Returns when a mark's begin or end, measured at `at_ns`, and all work launched before it had
 * happened: the end of a step. The array has the ns since the first point in each state. NULL: no
 * mark begins or ends there, or it is beyond REPLAY_STEPS_MAX. */
const double *replay_at(const struct replay_run *x, uint64_t at_ns);
struct replay_step { /* measured: from the begin of a mark to a begin or end */
	uint64_t begin_ns, end_ns;
};
/* Writes the lengths of steps in a state to `out` and returns their number. It leaves out the first
 * step and those for whose ends replay_at() returns NULL. With launch=graph a step that launches no
 * GPU work keeps its length. *changed_ns (may be NULL) becomes how much own time and work the edits
 * removed from each. */
size_t replay_lengths(const struct replay_run *x, const struct replay_step *steps, size_t count,
		      size_t state, uint64_t *out, uint64_t *changed_ns);
/* Returns what the edits removed from the begin or end of a mark to the last point; 0: no mark is
 * there. */
double replay_changed(const struct replay_run *x, uint64_t since_ns, size_t state);
