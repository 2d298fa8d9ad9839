/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the state of a replay: replay.c moves it on with each point, state.c makes it, frees
 * it and keeps the factors of the edits.
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
};

/* When something happened: measured, and in each state. */
struct instant {
	uint64_t ns;
	uint64_t *at;
};

struct open_call { /* a range or call that goes on */
	struct replay_host host;
	uint64_t order; /* of equal ends the one that began last ends first */
};
struct thread {
	uint32_t id;
	struct instant last;     /* its latest point */
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
struct dependency { /* the latest of all that a point waits for */
	uint64_t ns;
	uint64_t at[REPLAY_STATES];
	bool any;
};

struct replay {
	const struct replay_edits *edits;
	unsigned states;
	bool overlaps[REPLAY_STATES];
	bool drops_rest[REPLAY_STATES];
	bool drops_waits[REPLAY_ACTIVITIES][REPLAY_STATES];
	double **factors; /* by kind */
	size_t factor_cap;

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
	uint64_t last_end[REPLAY_STATES];             /* of all work so far */
	uint64_t *step_ns;                            /* measured instants of marks, ascending */
	uint64_t *step_at;                            /* `states` for each */
	uint64_t *step_launches;                      /* calls that launch work, until then */
	uint64_t launches;
	uint64_t changed[REPLAY_STATES]; /* time that edits have taken away or added */
	uint64_t *step_changed;          /* `states` for each, until then */
	size_t step_count, step_cap, step_at_cap, step_launches_cap, step_changed_cap;

	bool is_inexact;
};

enum status instant_new(const struct replay *r, struct instant *out, struct error *err);
/* `states` factors, the first is 1; NULL: no memory. */
const double *factors_of(struct replay *r, uint32_t kind, struct error *err);
