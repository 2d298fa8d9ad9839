/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what critical.c (events and rows) and path.c (the path of one step, from its end
 * to its begin) share.  Nobody else includes it.
 */
#pragma once

#include "analyze/engine/report.h"

struct work_node { /* GPU work, in the order of owners (DEFINITIONS.md 2), of equals the shorter */
	uint64_t begin_ns, end_ns, launch_begin_ns, correlation, stream, arrival;
	uint32_t track, gpu, process, name, launch_track, launch_name;
	uint32_t before; /* on its stream; NO_ID: none */
	uint8_t class;   /* enum path_kind */
	bool has_launch;
	bool is_kept; /* critical_forget() */
};
struct wait_node { /* a call that returned no sooner than `work` ended */
	uint64_t begin_ns, end_ns, correlation;
	uint64_t asked_ns;             /* begin of a copy's whole call, of which the rest is left */
	uint32_t track, process, work; /* NO_ID: nothing was waited for */
	bool is_copy;                  /* waits for its own work alone */
	bool launches;                 /* its thread does */
};
struct stream_wait { /* of a stream for an event */
	uint64_t at_ns;
	uint32_t track;
};
struct critical_graph { /* of what goes on and is yet to come; sorted by critical_sort() */
	struct work_node *work;
	uint32_t *by_end;        /* work, in the order of its ends */
	struct wait_node *waits; /* by the end of what they wait for */
	struct stream_wait *stream_waits;
	struct phase_interval *intervals;
	size_t work_count, work_cap, wait_count, wait_cap, stream_count, stream_cap;
	size_t interval_count, interval_cap;
	uint8_t *launches; /* by track: a thread that launches */
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

/* Segments of a path, which tile it.  id: a name, of PATH_HOST a phase. */
struct path_segment {
	uint64_t ns;
	uint32_t kind, id; /* kind: enum path_kind */
};
struct path_segments {
	struct path_segment *items;
	size_t count, cap;
};

/* Sorts, links work on its stream, and finds what calls waited for.  by_end holds all work; `last`
 * has a place for each track. */
void critical_sort(struct critical_graph *g, uint32_t *last, size_t tracks);
/* Of each process what ended before keep_ns[process], but for what later work may have to look back
 * at.  After critical_sort(), which is to be called again. */
void critical_forget(struct critical_graph *g, const uint64_t *keep_ns, uint32_t *last,
		     size_t tracks);
/* The path from `end_ns` back to `begin_ns`, appended to `out`. */
enum status critical_walk(const struct critical_graph *g, uint32_t process, uint64_t begin_ns,
			  uint64_t end_ns, struct path_segments *out, struct error *err);
