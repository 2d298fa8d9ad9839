/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the moves between replay.c, which finds what points wait for, and run.c, which says
 * when they then happen.
 *
 * A slot holds an instant that others may wait for: the latest point of a thread, the end of work,
 * the begin of a launch.  Slot 0 is the first point of all and stays 0.
 */
#pragma once

#include "analyze/replay/replay.h"
#include "schemas/base/heap.h"
#include "schemas/base/map.h"

enum {
	CALLS = 1 << 14, /* launches that are remembered; a GPU's queue holds some 1,000 */
	DONE = 8,        /* latest work of a stream that is remembered */
	/* What damaged or strange traces may cost: further threads are taken for the last one, and
	 * further streams; deeper calls are not open; a step does not wait for work that was
	 * launched so many marks before. */
	THREADS_MOST = 256,
	STREAMS_MOST = 256,
	DEPTH_MOST = 1024,
	MARKS_BACK = 256,
	/* From a launch to its work, and between works: a trace may begin with longer ones. */
	LATENCY_MOST_NS = 100000,
	GAP_MOST_NS = 20000,
	/* Assumed between queued works until the trace has shown some. */
	GAP_USUAL_NS = 1500,
};

enum move_type {
	MOVE_SET,    /* `to` happens `own` after `from` */
	MOVE_DEPEND, /* the next JOIN or WORK happens no sooner than `own` after `from` */
	MOVE_OWN,    /* a thread spends `own` */
	MOVE_JOIN,   /* a thread spends `own`, waits for what it depends on, and spends `rest` */
	MOVE_WORK,   /* what it depends on, then `rest`, then it takes `own`; `from` ends with it */
	/* `own` is what points of the kind took since the last of these; `rest` of it they waited
	 */
	MOVE_CHANGED,
	/* Marks from `to` to the latest wait for `from`, the end of work that took `own` and was
	 * launched before them. */
	MOVE_WAITS,
	MOVE_MARK, /* the mark `to` is where the thread `from` is */
};
enum { MOVE_IS_FIRST = 1, MOVE_COMMUNICATES = 2, MOVE_WAITS_FOR_GPU = 4 };
struct move {
	double own, rest; /* ns; rest: not scaled where it is negative */
	double at;        /* measured; of OWN, JOIN and WORK */
	uint32_t to, from, kind;
	uint8_t type, activity, flags;
};

struct instant {
	uint64_t ns; /* measured */
	uint32_t slot;
};
struct open_call { /* a range or call that goes on */
	struct replay_host host;
	uint64_t order; /* of equal ends the one that began last ends first */
};
struct thread {
	uint32_t id;
	struct instant last; /* its latest point */
	uint64_t own_ns;     /* until then, of one kind, that no move tells yet */
	uint32_t own_kind;
	uint64_t burst_ns;       /* when it was idle last and began again */
	uint64_t stream_wait_ns; /* a stream was made to wait since its last launch; 0: none was */
	uint32_t *open;          /* calls that go on, by number; the innermost last */
	size_t depth, open_cap;
	bool is_step_thread;
};
struct done { /* work of a stream */
	struct instant end;
	uint64_t launch_ns;
	bool communicates;
};
struct stream {
	uint32_t id;
	struct done done[DONE];
	uint64_t count; /* the latest is done[(count - 1) % DONE] */
};
struct launched { /* a call that may launch work */
	struct instant begin, work_end;
	uint64_t correlation, stream_wait_ns;
	bool has_work;
};
struct mark {
	uint64_t ns;
	uint64_t works; /* launched until then */
};

struct spent { /* by points of a kind; wait_ns of it for the GPU or other threads */
	uint64_t ns, wait_ns;
	uint8_t activity;
};

struct replay {
	struct move *moves;
	struct mark *marks; /* ascending */
	size_t move_count, move_cap, mark_count, mark_cap;
	uint32_t slot_count;
	uint64_t origin_ns; /* of the first point */
	bool has_origin;

	struct thread *threads;
	struct stream *streams;
	size_t thread_count, thread_cap, stream_count, stream_cap;
	uint32_t step_thread; /* index + 1; 0: none yet */

	struct open_call *calls;
	uint32_t *free_calls;
	size_t call_count, call_cap, free_count, free_cap;
	struct heap ends; /* of the open calls */
	uint64_t order;

	struct launched *launched; /* CALLS of them */
	uint64_t launched_count;
	struct map by_correlation; /* to places in `launched` */

	uint64_t shortest_launch_ns, shortest_gap_ns; /* launch to work, work to work on a stream */
	bool has_gap;           /* shortest_gap_ns was seen between queued works */
	uint64_t works;         /* that calls launched */
	struct spent *spent_by; /* by kind, since the last mark */
	uint32_t *spent;        /* the kinds of which that is not 0 */
	size_t spent_by_cap, spent_count, spent_cap;
};
