/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h - the time of each GPU, cut into segments in which nothing changes.
 *
 * The segments of a GPU tile its window: sorted, no hole, no overlap, each nanosecond in exactly
 * one, with one owner (DEFINITIONS.md 2).  So every share that is a sum over segments adds to 100 %
 * by construction - for the span, for lead and tail, for every (step, phase) cell - in integers:
 *
 *	compute = BUSY_COMPUTE set         exposed_copy = only BUSY_COPY
 *	exposed_comm = BUSY_COMM, no COMPUTE             idle = 0
 *
 * The mask also has what overlaps; such time is reported beside these sums, never in them.
 *
 * A segment is returned when it is final; an idle one when its gap ends, because the event that
 * ends the gap is its owner.  What the step thread did while a GPU was idle is a second tiling of
 * the same time.  It is summed per phase as phase intervals come (sweep_gpu().during), because an
 * interval may become final long after the gap, or the gap long after the interval.
 *
 * State is bounded: GPU work that still runs, and busy and phase intervals that wait for each
 * other.
 */
#pragma once

#include "convert/name/rules.h"
#include "convert/stage/context/context.h"

static inline uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

enum busy { BUSY_COMPUTE = 1, BUSY_COMM = 2, BUSY_COPY = 4 };
/* Returns the class of a segment's owner, which is the first class of all running work. */
static inline enum gpu_class owner_class(unsigned busy)
{
	return busy & BUSY_COMPUTE ? CLASS_COMPUTE
	       : busy & BUSY_COMM  ? CLASS_COMM
	       : busy & BUSY_COPY  ? CLASS_COPY
				   : CLASS_IDLE;
}
enum part { PART_LEAD, PART_SPAN, PART_TAIL };
enum origin { /* whether the owner's launch is known */
	      ORIGIN_LAUNCH,
	      ORIGIN_BEFORE,  /* no launch known, nor for any earlier work on this GPU */
	      ORIGIN_UNKNOWN, /* no launch known, but for some earlier work */
};

struct segment {
	uint64_t begin_ns, end_ns; /* begin < end */
	uint64_t order;            /* the owner's number, unique in a run */
	uint64_t launch_begin_ns;  /* of the owner's launch; 0: none is known */
	uint32_t gpu;              /* index, as in sweep_gpu() */
	uint32_t name, step;       /* name and step of the owner; its step and phase are the cell */
	uint8_t phase, kind, subkind, origin;
	uint8_t busy; /* mask; 0: idle */
	uint8_t part; /* in PART_TAIL no event ends the gap: kind is KIND_UNKNOWN */
};

/* A time in which a GPU is idle, one for each idle segment. The event E ends it, which the call L
 * launched (DEFINITIONS.md 6). */
struct idle_gap {
	uint64_t begin_ns, end_ns;
	uint64_t launch_begin_ns, launch_end_ns; /* the whole call L, even if filtered */
	uint64_t correlation;                    /* of E and L */
	uint64_t last_launch_ns; /* latest begin of a launch of work that began before E */
	uint32_t gpu;
	uint32_t launch_track, launch_name, launch_path; /* of L; 0: none */
	uint8_t part, origin;                            /* in PART_TAIL no event ends the gap */
	uint8_t phase;                                   /* phase of E's cell */
	bool is_graph_internal; /* the work that ended last before E has the same correlation */
	bool is_first_of_name;  /* E is a kernel, and the first of its name on this GPU */
	bool is_in_step;        /* L began in a marked step */
	bool has_waited;        /* E's stream has been made to wait since its op before E */
};

enum { SWEEP_PHASES = 256 };
struct phase_sums {
	bool some; /* whether any sum is not 0 */
	uint64_t ns[SWEEP_PHASES];
	bool inferred[SWEEP_PHASES]; /* some of it by rules 3 or 4 of DEFINITIONS.md 4 */
};
enum { /* phases of cells for work without a launch, after the phases */
       PHASE_BEFORE_WINDOW = SWEEP_PHASES,
       PHASE_UNATTRIBUTED,
       CELL_PHASES,
       BUSY_MASKS = 8,
};
/* Returns the phase of a segment's cell (DEFINITIONS.md 5). */
static inline unsigned segment_phase(const struct segment *s)
{
	return s->origin == ORIGIN_LAUNCH   ? s->phase
	       : s->origin == ORIGIN_BEFORE ? PHASE_BEFORE_WINDOW
					    : PHASE_UNATTRIBUTED;
}
/* Sums over all segments of a GPU, for reports that do not need single segments. */
struct gpu_time {
	uint64_t span_ns[CELL_PHASES][BUSY_MASKS]; /* by phase of the cell and by busy mask */
	uint64_t lead_ns, tail_ns;
};
struct sweep_gpu { /* complete after sweep_end() */
	uint32_t process, device;
	const struct gpu_time *time;
	const struct phase_sums *during; /* the step thread during lead, idle and tail */
};
struct sweep_process {             /* complete after sweep_end() */
	uint64_t begin_ns, end_ns; /* from the first window's begin to the last one's end */
	uint64_t span_ns;          /* sum of all windows */
	uint64_t events;
	bool has_gpu, has_mark;
	const struct phase_sums *wall; /* phases of the step thread inside the windows */
};
struct sweep_window {             /* a closed window of a process */
	uint32_t process, window; /* window: a row of the trace, 0: the whole input */
	uint64_t begin_ns, end_ns;
};

struct sweep;
/* `trace` and `rules` are borrowed. `is_by_step`: the filter selects steps, so a window reaches
 * only as far as its events. ST_CEILING: running work and waiting intervals take more than
 * `ceiling` bytes. */
enum status sweep_open(struct sweep **out, struct trace *trace, const struct name_rules *rules,
		       bool is_by_step, size_t ceiling, struct error *err);
/* The batch must contain host events too, because they bound the windows, and intervals and marks
 * clipped to its bounds. Returns the segments that became final, borrowed until the next call. */
enum status sweep_put(struct sweep *s, const struct batch *in, const struct segment **segments,
		      size_t *count, struct error *err);
/* Call it at the end of the input; returns the last segments of every GPU. */
enum status sweep_end(struct sweep *s, const struct segment **segments, size_t *count,
		      struct error *err);
void sweep_close(struct sweep *s); /* accepts NULL */

/* Returns the gaps that the last sweep_put() or sweep_end() found, in time order per GPU; borrowed
 * until the next call. */
size_t sweep_gaps(const struct sweep *s, const struct idle_gap **out);
/* Returns the time from which on host events may still matter to a gap of the process's GPUs, of
 * which there are `expected` in all. */
uint64_t sweep_unsettled_ns(const struct sweep *s, uint32_t process, size_t expected);

size_t sweep_gpu_count(const struct sweep *s);
struct sweep_gpu sweep_gpu(const struct sweep *s, size_t gpu);
struct sweep_process sweep_process(const struct sweep *s, uint32_t process);
size_t sweep_windows(const struct sweep *s, const struct sweep_window **out);
/* Returns whether kernels of this name communicate, judged by the name or by the first event with
 * it. */
bool sweep_communicates(struct sweep *s, uint32_t name);
/* Returns the class of GPU work. */
enum gpu_class sweep_class(struct sweep *s, const struct event *work);
/* Returns the index of a track's GPU; NO_ID: no work of the track was put yet. */
uint32_t sweep_gpu_of(const struct sweep *s, uint32_t track);
