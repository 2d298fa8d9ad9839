/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - shared by critical.c (events and rows) and path.c (the path of one step, from its
 * end to its begin). No other file includes it.
 */
#pragma once

#include "analyze/engine/report.h"

struct work_node { /* GPU work in owner order (DEFINITIONS.md 2), of equal ones the shorter first */
	uint64_t begin_ns, end_ns, launch_begin_ns, correlation, stream, arrival;
	uint32_t track, gpu, process, name, launch_track, launch_name;
	uint32_t before; /* previous work on the stream; NO_ID: none */
	uint8_t class;   /* enum path_kind */
	bool has_launch;
	bool is_kept; /* scratch for critical_forget() */
};
struct wait_node { /* a call that returned when or after `work` ended */
	uint64_t begin_ns, end_ns, correlation;
	uint64_t asked_ns;             /* begin of the whole copy call, even if filtered */
	uint32_t track, process, work; /* NO_ID: did not wait */
	bool is_copy;                  /* waits only for its own work */
	bool launches;                 /* its thread launches work */
};
struct stream_wait { /* a stream waits for an event */
	uint64_t at_ns;
	uint32_t track;
};
struct critical_graph { /* unfinished and future work; sorted by critical_sort() */
	struct work_node *work;
	uint32_t *by_end;        /* indices of work, in the order of ends */
	struct wait_node *waits; /* by the end of the work that they wait for */
	struct stream_wait *stream_waits;
	struct phase_interval *intervals;
	size_t work_count, work_cap, wait_count, wait_cap, stream_count, stream_cap;
	size_t interval_count, interval_cap;
	uint8_t *launches; /* by track: whether the thread launches work */
};

enum path_kind {
	PATH_COMPUTE,
	PATH_COMM,
	PATH_COPY,
	PATH_LAUNCH,
	PATH_DISPATCH,
	PATH_STREAM_WAIT,
	PATH_UNKNOWN,
	PATH_HOST,
	PATH_KINDS
};

/* Segments of a path, which cover it without gaps. id: a name; for PATH_HOST a phase. */
struct path_segment {
	uint64_t ns;
	uint32_t kind, id; /* kind: enum path_kind */
};
struct path_segments {
	struct path_segment *items;
	size_t count, cap;
};

/* Sorts everything, links work on each stream, and finds what calls waited for. by_end has space
 * for all work, `last` for all tracks. */
void critical_sort(struct critical_graph *g, uint32_t *last, size_t tracks);
/* Drops what ended before keep_ns[process], except what later work may depend on. Call it after
 * critical_sort(), and critical_sort() again after it. */
void critical_forget(struct critical_graph *g, const uint64_t *keep_ns, uint32_t *last,
		     size_t tracks);
/* Appends the path from `end_ns` back to `begin_ns` to `out`. */
enum status critical_path_find(const struct critical_graph *g, uint32_t process, uint64_t begin_ns,
			       uint64_t end_ns, struct path_segments *out, struct error *err);
