/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - shared by the reports about places in the model, and their interface for pages. */
#pragma once

#include "analyze/engine/report.h"
#include "convert/stage/path_sums.h"

/*
 * State of these reports: the sums by path over one input. Idle time is in leaves of class
 * PATH_IDLE below the path that makes the GPU wait (struct idle_segment). The name of a leaf is its
 * cause and phase.
 *
 * paths_put() and paths_release() are members of reports whose state begins with `struct
 * path_sums`.
 */
enum status paths_put(struct accumulator *f, const struct sorted_batch *w, struct error *err);
void paths_release(struct accumulator *f);

/* Returns the highest id of a node so far + 1. A parent has a lower id than its children. */
uint32_t paths_count(const struct accumulator *f);
/* Returns the sums of a node, or zeros. */
struct path_sum paths_at(const struct path_sums *s, uint32_t node);
/* Returns the process of each node, to be freed by the caller; NULL: out of memory. */
uint32_t *paths_processes(const struct accumulator *f);
/* Writes the text of a PATH_IDLE leaf: "launch", "host:forward". */
enum { IDLE_TEXT = 512 };
void paths_idle_text(const struct accumulator *f, const struct path_node *leaf,
		     char out[IDLE_TEXT]);

/* Positions of the boxes in the page's flame graphs. */
#define FLAME_COLUMNS(X)                                                                           \
	X(FLAME_KIND, "kind", NULL, TEXT, KEY, "flame graph: gpu or idle")                         \
	X(FLAME_DEPTH, "depth", NULL, U64, KEY, "depth of the frame; 0: the whole graph")          \
	X(FLAME_AT, "at_ns", NULL, U64, KEY, "begin of the frame in the whole graph")              \
	X(FLAME_NAME, "name", NULL, TEXT, KEY, "name of the frame")                                \
	X(FLAME_CLASS, "class", NULL, TEXT, KEY, "kind of frame, which sets its colour")           \
	X(FLAME_NS, "ns", NULL, U64, SUM, "duration including its children")
enum { FLAME_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_flame;

/* Makes the rows, if pictures are wanted. */
enum status flame_end(struct accumulator *f, const struct path_sums *sums, struct error *err);

/* The second leaves out Python functions: PyTorch 2.5 does not list them, 2.13 does. */
extern const struct report_type report_compat_pytorch, report_compat_pytorch_ops;
