/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - shared by sweep.c (windows, host), gpu.c (running work) and host.c (what the host
 * did meanwhile). No other file includes it.
 */
#pragma once

#include "analyze/timeline/sweep.h"

#include "schemas/base/heap.h"
#include "schemas/model/event.h"
#include "schemas/model/trace.h"

#include <string.h>

/* A growing array of items of one type, used as an array or as a queue. */
struct span_queue {
	void *items;
	size_t count, cap;
	size_t head; /* index of the first item of a queue */
};

struct running_work { /* GPU work that runs or is about to, by its index in sweep.work */
	uint64_t begin_ns, end_ns, correlation, stream, order;
	uint64_t launch_begin_ns, launch_end_ns;
	uint32_t name, step, track;
	uint32_t launch_track, launch_name, launch_path;
	uint8_t phase, kind, subkind, class, origin;
	bool over; /* has ended, but is still in the list of its class */
};

struct span {
	uint64_t begin_ns, end_ns;
};

struct pending_time { /* time of a closed window in which the step thread's phase was not yet known
		       */
	uint64_t begin_ns, end_ns;
	struct phase_sums *total; /* the sums to which the time will be added */
};

struct gpu {
	uint32_t process, device, index; /* index in sweep.gpus */
	bool is_open;                    /* the current window has an event */
	bool in_span;                    /* work of the current window has begun to run */
	bool launch_seen;
	uint64_t at_ns;  /* segments are emitted up to here; at first the window's begin */
	uint64_t end_ns; /* latest end of work in the current window */
	uint64_t last_end_ns, last_correlation; /* of the work that ended last so far */
	uint64_t last_launch_ns; /* latest begin of a launch of work that has begun */
	uint8_t *has_begun;      /* bit set of names of kernels that have begun, in any window */
	size_t has_begun_size;
	struct span_queue group; /* u32: work that begins at group_ns and does not run yet */
	uint64_t group_ns;
	uint32_t alone; /* the only running work, which is in no list; NO_ID: none or several */
	struct span_queue running[CLASS_IDLE]; /* u32: work in owner order */
	size_t live[CLASS_IDLE];
	struct heap ends;               /* all running work, the first end on top */
	struct span_queue busy;         /* struct span: a queue, kept for later phase intervals */
	uint64_t host_ns;               /* the host's phases are added up to here */
	struct phase_sums during, held; /* held: may lie beyond the window */
	struct phase_sums total;        /* sums over closed windows */
	struct gpu_time time;
};

struct host { /* a process; members belong to the current window unless noted */
	uint32_t bounds_first, bounds_count; /* in sweep.bounds; none: one window */
	uint32_t bound;                      /* index of the current window, from bounds_first */
	bool is_open;                        /* its begin is known */
	bool has_host, has_gpu, has_mark;
	uint64_t begin_ns, host_begin_ns;              /* begins: of any event, of a host event */
	uint64_t host_end_ns, gpu_end_ns, mark_end_ns; /* latest so far, 0: none */
	uint64_t host_ns; /* the step thread's phases are added up to here */
	struct phase_sums wall, held;
	uint64_t early_ns; /* `host_ns`, `wall` and `held` between begin_ns and host_begin_ns */
	struct phase_sums early, early_held;
	struct span_queue intervals; /* struct phase_interval: a queue */
	struct span_queue pending;   /* struct pending_time */
	/* Members for all windows. */
	bool any_window, any_gpu, any_mark;
	uint64_t first_ns, last_ns, span_ns, events;
	uint64_t profiler_ns;           /* until then the host worked for the profiler */
	uint64_t instant_ns, before_ns; /* begin of the latest host events; host_end_ns then */
	struct phase_sums total;
};

enum { WAITS_MAX = 1 << 16 };
struct stream {                  /* launches and waits of a stream, in time order */
	struct span_queue waits; /* u64: begins of waits for events, about the last WAITS_MAX */
	uint64_t last_launch_ns; /* begin of the latest op's launch, or of the op if it has none */
	uint64_t id;             /* stream id, from the track */
};

struct bound {
	uint64_t begin_ns, end_ns; /* end 0: never closed */
	uint32_t process, window;  /* window: row of the trace's table */
};

struct sweep {
	struct trace *trace;
	const struct batch *batch; /* set only during sweep_put() */
	const struct name_rules *rules;
	size_t ceiling, held_bytes;
	struct host *hosts; /* by process id */
	uint32_t host_count;
	struct span_queue bounds; /* struct bound */
	uint64_t from_ns, to_ns;  /* bounds of the filter, to which `bounds` are clipped */
	bool is_by_step;          /* bounds only identify the window, events bound it */
	struct gpu **gpus;
	size_t gpu_count, gpu_cap;
	struct stream *streams; /* by track */
	uint32_t *gpu_of_track; /* index + 1; 0: unknown */
	uint32_t *process_of_track;
	uint32_t track_count;
	uint8_t *class_of_name; /* 0: not cached, else 1 + whether it communicates */
	/* cache by name of a Python function: 0: none, else 1 + whether it is the profiler's own
	 * work */
	uint8_t *is_profiler;
	uint32_t name_count;
	struct span_queue work, free_work; /* struct running_work, u32 */
	struct span_queue segments;        /* struct segment: emitted by this call */
	struct span_queue gaps;            /* struct idle_gap: emitted by this call */
	struct span_queue over;            /* struct sweep_window */
	uint64_t order;
};

enum status spans_grow(struct sweep *s, struct span_queue *v, size_t size, struct error *err);
/* Appends a copy of `item`, which has `size` bytes. */
static inline enum status spans_add(struct sweep *s, struct span_queue *v, const void *item,
				    size_t size, struct error *err)
{
	if (v->count == v->cap)
		TRY(spans_grow(s, v, size, err));
	memcpy((char *)v->items + v->count++ * size, item, size);
	return ST_OK;
}
void spans_release(struct span_queue *v);
/* Moves the queue to the front of the array when most of the array lies before `head`. */
void spans_compact(struct span_queue *v, size_t size);

/* Returns up to where the current window is known to reach, given the latest end of GPU work
 * in it. */
uint64_t host_certain_ns(const struct sweep *s, const struct host *h, uint64_t gpu_end_ns);

/* gpu.c */
enum status gpu_put(struct sweep *s, struct gpu *g, const struct event *e, struct error *err);
/* Emits segments up to `until_ns`, before which no further work begins. */
enum status gpu_advance(struct sweep *s, struct gpu *g, uint64_t until_ns, struct error *err);
/* Closes the current window: its tail ends at `end_ns`. */
enum status gpu_close(struct sweep *s, struct gpu *g, uint64_t end_ns, struct error *err);
void gpu_free(struct gpu *g);

/* host.c */
void sums_add(struct phase_sums *into, const struct phase_sums *from);
/* Accounts for phase intervals before `until_ns`. All GPU work that begins before must be known. */
enum status host_account(struct sweep *s, uint32_t process, uint64_t until_ns, struct error *err);
/* Closes the current window; *end_ns becomes its end. */
enum status host_close(struct sweep *s, uint32_t process, uint64_t *end_ns, struct error *err);
/* Call it after the last phase interval: assigns all pending time to no phase. */
void pending_settle(struct host *h);
void sums_move(struct phase_sums *into, struct phase_sums *held);
/* Adds what was held back, because the window reaches beyond it. */
static inline void sums_release(struct phase_sums *into, struct phase_sums *held)
{
	if (held->some)
		sums_move(into, held);
}
static inline void host_release(struct host *h)
{
	sums_release(&h->wall, &h->held);
	sums_release(&h->early, &h->early_held);
}
