/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what sweep.c (windows, host), gpu.c (running work) and host.c (what the host did
 * meanwhile) share.  Nobody else includes it.
 */
#pragma once

#include "analyze/timeline/sweep.h"

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

#include <string.h>

/* An array that grows; `items` of one type, used through VEC_ROOM. */
struct span_queue {
	void *items;
	size_t count, cap;
	size_t head; /* of a queue: items before it are gone */
};

struct running_work { /* GPU work that runs or is about to; by index in sweep.work */
	uint64_t begin_ns, end_ns, correlation, stream, order;
	uint64_t launch_begin_ns, launch_end_ns;
	uint32_t name, step, track;
	uint32_t launch_track, launch_name, launch_path;
	uint8_t phase, kind, subkind, class, origin;
	bool over; /* ended, but still in the list of its class */
};

struct span {
	uint64_t begin_ns, end_ns;
};

struct owed { /* of a window that is over: S was in a phase that was not known then */
	uint64_t begin_ns, end_ns;
	struct phase_sums *total; /* where it goes */
};

struct gpu {
	uint32_t process, device, index; /* index: in sweep.gpus */
	bool is_open;                    /* an event of the present window has come */
	bool in_span;                    /* and has begun to run */
	bool launch_seen;
	uint64_t at_ns;  /* segments are out up to here; first, where the window begins */
	uint64_t end_ns; /* latest end of the present window's work */
	uint64_t last_end_ns, last_correlation; /* of what ended last of all that has begun */
	uint64_t asked_ns;  /* latest begin of a launch of anything that has begun */
	uint8_t *has_begun; /* a bit for each name of a kernel that has begun, in any window */
	size_t has_begun_size;
	struct span_queue group; /* u32: work that begin at group_ns, not yet sorted in */
	uint64_t group_ns;
	uint32_t alone; /* work of the only one that runs: it is in no list; NO_ID: none */
	struct span_queue running[CLASS_IDLE]; /* u32: work in owner order */
	size_t live[CLASS_IDLE];
	struct span_queue ends; /* u32: all running work, a heap by end */
	struct span_queue
		busy;     /* struct span: a queue, for phase intervals that have not come yet */
	uint64_t host_ns; /* the host is accounted for up to here */
	struct phase_sums during, held; /* held: counts once the window reaches beyond it */
	struct phase_sums total;        /* of windows that are over */
	struct gpu_time time;
};

struct host { /* a process; what is not said to be of all windows is of the present one */
	uint32_t bounds_first, bounds_count; /* its windows in sweep.bounds; none: all is one */
	uint32_t bound;                      /* the present one, counted from bounds_first */
	bool is_open;                        /* it has a begin */
	bool has_host, has_gpu, has_mark;
	uint64_t begin_ns, host_begin_ns;              /* of anything; of the host's own */
	uint64_t host_end_ns, gpu_end_ns, mark_end_ns; /* latest so far, 0: none */
	uint64_t host_ns; /* the step thread is accounted for up to here */
	struct phase_sums wall, held;
	uint64_t early_ns; /* the same of the time between the begins of anything and of the host's
			    */
	struct phase_sums early, early_held;
	struct span_queue intervals; /* struct phase_interval: a queue */
	struct span_queue owed;      /* struct owed */
	/* Of all windows. */
	bool any_window, any_gpu, any_mark;
	uint64_t first_ns, last_ns, span_ns, events;
	uint64_t profiler_ns;           /* until then the host worked for the profiler itself */
	uint64_t instant_ns, before_ns; /* when the host's latest events begin; host_end_ns then */
	struct phase_sums total;
};

enum { WAITS_MAX = 1 << 16 };
struct stream {                  /* what was asked of it, in time order */
	struct span_queue waits; /* u64: begins of waits for events, the last WAITS_MAX */
	uint64_t asked_ns;       /* begin of the launch of its latest op, or of that op itself */
	uint64_t id;             /* of the track */
};

struct bound {
	uint64_t begin_ns, end_ns; /* end 0: never closed */
	uint32_t process, window;  /* window: row of the trace */
};

struct sweep {
	struct trace *trace;
	const struct batch *batch; /* during sweep_put() */
	const struct name_rules *rules;
	size_t ceiling, held_bytes;
	struct host *hosts; /* by process id */
	uint32_t host_count;
	struct span_queue bounds; /* struct bound */
	uint64_t from_ns, to_ns;  /* the cut, by which bounds are clipped */
	bool is_by_step;          /* bounds say only which window it is */
	struct gpu **gpus;
	size_t gpu_count, gpu_cap;
	struct stream *streams; /* by track */
	uint32_t *gpu_of_track; /* index + 1, 0: none yet */
	uint32_t *process_of_track;
	uint32_t track_count;
	uint8_t *class_of_name; /* 0: not asked, else 1 + whether it communicates */
	uint8_t *is_profiler;   /* by name of a Python function, cached as well: the profiler's own
				   work */
	uint32_t name_count;
	struct span_queue work, free_work; /* struct running_work, u32 */
	struct span_queue segments;        /* struct segment: of this call */
	struct span_queue gaps;            /* struct idle_gap: of this call */
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
/* Drops what is before `head` when that is most of it. */
void spans_compact(struct span_queue *v, size_t size);

/* Where the present window is sure to reach, with the latest end of GPU work in it. */
uint64_t host_certain_ns(const struct sweep *s, const struct host *h, uint64_t gpu_end_ns);

/* gpu.c */
enum status gpu_put(struct sweep *s, struct gpu *g, const struct event *e, struct error *err);
/* Segments up to `until_ns`, before which no more work begins. */
enum status gpu_advance(struct sweep *s, struct gpu *g, uint64_t until_ns, struct error *err);
/* The present window is over: its tail reaches to `end_ns`. */
enum status gpu_close(struct sweep *s, struct gpu *g, uint64_t end_ns, struct error *err);
void gpu_free(struct gpu *g);

/* host.c */
void sums_add(struct phase_sums *into, const struct phase_sums *from);
/* The phase intervals before `until_ns`; all GPU work that begins before that is known. */
enum status host_account(struct sweep *s, uint32_t process, uint64_t until_ns, struct error *err);
/* The present window is over; *end_ns: where. */
enum status host_close(struct sweep *s, uint32_t process, uint64_t *end_ns, struct error *err);
/* No phase interval comes any more: what is owed was in no phase. */
void owed_settle(struct host *h);
void sums_move(struct phase_sums *into, struct phase_sums *held);
/* The window reaches beyond what was held back. */
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
