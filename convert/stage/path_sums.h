/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_sums.h - sums by node of the calling-context tree (schemas/model/trace.h).
 *
 * Each nanosecond, byte and call counts at one node, so the sum over all nodes is the total:
 *
 *	gpu_ns   lengths of GPU work, at a leaf of class PATH_WORK below the path of its launch
 *	host_ns  time of host threads at the innermost range that is open
 *	bytes    memory taken, at the path of the thread that took it
 *	calls    ranges that begin, and GPU work
 *
 * An owner that knows idle time adds it.  An empty one is zeroed except for `context`.
 */
#pragma once

#include "convert/stage/context/context.h"
#include "schemas/base/buf.h"
#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct path_sum {
	uint64_t gpu_ns, idle_ns, bytes, calls;
	int64_t host_ns;
	uint64_t first_ns; /* begin of its first range or work; 0: it has none */
};
struct path_sums {
	const struct context *context; /* for names that mark steps and so are no nodes; or NULL */
	struct path_sum *items;        /* by node; nodes past `cap` have sums of zero */
	size_t cap;
	struct path_thread *threads; /* by track */
	size_t thread_count;
};
/* Takes events in order and counts ranges, GPU work and allocations. */
enum status path_sums_put(struct path_sums *s, struct trace *t, const struct event *e,
			  struct error *err);
/* Returns the sums of the leaf below `path`, or of `path` itself if there is no room for a leaf. */
enum status path_sums_leaf(struct path_sums *s, struct trace *t, uint32_t path, uint32_t name,
			   unsigned class, struct path_sum **out, struct error *err);
void path_sums_release(struct path_sums *s);

/* Returns whether the event is a range that has a node: an operator, annotation, Python function,
 * phase or NVTX range. */
static inline bool path_has_range(const struct event *e)
{
	return e->kind == KIND_RANGE && e->end_ns > e->begin_ns &&
	       (e->subkind == RANGE_OP || e->subkind == RANGE_ANNOTATION ||
		e->subkind == RANGE_PYTHON || e->subkind == RANGE_PHASE ||
		e->subkind == RANGE_NVTX);
}
/* Returns whether outputs write the path as an argument.  Viewers show the path of a range by its
 * row, but not that of GPU work and memory. */
static inline bool path_is_argument(const struct trace *t, const struct event *e)
{
	return (event_is_gpu_work(e) || e->kind == KIND_ALLOC) &&
	       trace_get_path(t, e->path)->parent;
}
/* Appends the text of one node, such as "aten::mm", "(backward)" or "rank 3". */
void path_frame(const struct trace *t, const struct path_node *node, struct buf *out);
/* Returns PyTorch's name of the module that the node runs, such as "Linear_3", or NULL. */
const char *path_module(const struct trace *t, const struct path_node *node);
/* Makes "resnet.py:91" from "models/resnet.py(91): forward".  Returns false if the function belongs
 * to a framework or its line is unknown. */
enum { PATH_LINE_TEXT = 120 };
bool path_line(const char *function, char out[PATH_LINE_TEXT]);
/* Returns whether the node is a Python function that belongs to a framework or whose line is
 * unknown. */
bool path_is_framework(const struct trace *t, const struct path_node *node);

enum path_text {
	PATH_WITH_PROCESS = 1, /* the process is the outermost frame */
	PATH_FOR_PEOPLE = 2,   /* " > " between frames; Python frames of frameworks are left out */
};
/* Appends the frames from the outermost to the node's own, with semicolons between them. Semicolons
 * and control characters in names are replaced. */
void path_put_text(const struct trace *t, uint32_t path, unsigned flags, struct buf *out);
