/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the moves, which replay.c makes from what points wait for, and which run.c follows
 * to compute when the points happen in each state.
 *
 * A slot holds an instant that others may wait for: the latest point of a thread, the end of work,
 * the begin of a launch. Slot 0 is the first point of all and stays 0.
 */
#pragma once

#include "analyze/replay/replay.h"
#include "schemas/base/heap.h"
#include "schemas/base/map.h"

enum {
	CALLS = 1 << 14, /* launches that are kept; a GPU's queue holds about 1,000 */
	DONE = 8,        /* latest work that is kept of each stream */
	/* Limits for damaged or strange traces. Beyond them, threads and streams share the last
	 * entry, calls are not opened, and a step does not wait for work that was launched more
	 * marks ago. */
	THREADS_MOST = 256,
	STREAMS_MOST = 256,
	DEPTH_MOST = 1024,
	MARKS_BACK = 256,
	/* Limits of the launch latency and of the gap between works, because a trace may begin with
	 * longer ones. */
	LATENCY_MOST_NS = 100000,
	GAP_MOST_NS = 20000,
	/* Gap that is assumed between queued works until the trace has one. */
	GAP_USUAL_NS = 1500,
};

enum move_type {
	MOVE_SET,    /* `to` happens `own` after `from` */
	MOVE_DEPEND, /* the next JOIN or WORK happens at least `own` after `from` */
	MOVE_OWN,    /* a thread advances by `own` */
	/* a thread advances by `own`, waits for its dependencies, and advances by `rest` */
	MOVE_JOIN,
	/* after its dependencies and `rest`, work takes `own` and ends in slot `from` */
	MOVE_WORK,
	/* points of a kind took `own` since the last move of this type, of which they waited `rest`
	 */
	MOVE_CHANGED,
	/* Marks from `to` to the latest wait for slot `from`: work that took `own`, ended there and
	 * was launched before these marks. */
	MOVE_WAITS,
	MOVE_MARK, /* the mark `to` happens at the latest point of the thread with slot `from` */
};
enum { MOVE_IS_FIRST = 1, MOVE_COMMUNICATES = 2, MOVE_WAITS_FOR_GPU = 4 };
struct move {
	double own, rest; /* ns; a negative `rest` is not scaled */
	double at;        /* measured time; for OWN, JOIN and WORK */
	uint32_t to, from, kind;
	uint8_t type, activity, flags;
};

struct instant {
	uint64_t ns; /* measured time */
	uint32_t slot;
};
struct open_call { /* a range or call that has not ended */
	struct replay_host host;
	uint64_t order; /* of calls with equal ends the one with the highest order ends first */
};
struct thread {
	uint32_t id;
	struct instant last; /* the latest point */
	uint64_t own_ns;     /* time of one kind up to there that no move contains yet */
	uint32_t own_kind;
	uint64_t burst_ns; /* last instant at which it became active after being idle */
	/* when a stream was made to wait after the last launch; 0: was not */
	uint64_t stream_wait_ns;
	uint32_t *open; /* indices of open calls; the innermost is last */
	size_t depth, open_cap;
	bool is_step_thread;
};
struct done { /* finished work of a stream */
	struct instant end;
	uint64_t launch_ns;
	bool communicates;
};
struct stream {
	uint32_t id;
	struct done done[DONE];
	uint64_t count; /* the latest one is done[(count - 1) % DONE] */
};
struct launched { /* a call that may launch work */
	struct instant begin, work_end;
	uint64_t correlation, stream_wait_ns;
	bool has_work;
};
struct mark {
	uint64_t ns;
	uint64_t works; /* number of works launched before */
};

struct spent { /* time of a kind's points; wait_ns: for the GPU or other threads */
	uint64_t ns, wait_ns;
	uint8_t activity;
};

struct replay {
	struct move *moves;
	struct mark *marks; /* in ascending order */
	size_t move_count, move_cap, mark_count, mark_cap;
	uint32_t slot_count;
	uint64_t origin_ns; /* time of the first point */
	bool has_origin;

	struct thread *threads;
	struct stream *streams;
	size_t thread_count, thread_cap, stream_count, stream_cap;
	uint32_t step_thread; /* index + 1; 0: none yet */

	struct open_call *calls;
	uint32_t *free_calls;
	size_t call_count, call_cap, free_count, free_cap;
	struct heap ends; /* heap of open calls by end */
	uint64_t order;

	struct launched *launched; /* ring of CALLS items */
	uint64_t launched_count;
	struct map by_correlation; /* correlation id to index in `launched` */

	/* from launch to work; between works of a stream */
	uint64_t shortest_launch_ns, shortest_gap_ns;
	bool has_gap;           /* shortest_gap_ns is from the trace, between queued works */
	uint64_t works;         /* number of works launched by calls */
	struct spent *spent_by; /* by kind, since the last mark */
	uint32_t *spent;        /* kinds with a sum that is not 0 */
	size_t spent_by_cap, spent_count, spent_cap;
};
