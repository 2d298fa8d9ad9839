/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - what the reports that ask where in the model have in common, and for pages. */
#pragma once

#include "analyze/engine/report.h"
#include "convert/stage/path_sums.h"

/*
 * Sums by path of one input: the state of these reports.  Idle time is at leaves of class PATH_IDLE
 * below the path that makes the GPU wait (struct idle_segment); the name of a leaf is its cause and
 * phase.
 */
/* Members of a report whose state begins with `struct path_sums`. */
enum status paths_put(struct accumulator *f, const struct sorted_batch *w, struct error *err);
void paths_release(struct accumulator *f);

/* Nodes so far, whose ids ascend from a parent to its children: one more than the highest id. */
uint32_t paths_count(const struct accumulator *f);
/* What is at a node; zeros where nothing is. */
struct path_sum paths_at(const struct path_sums *s, uint32_t node);
/* The process of each node, to be freed; NULL: no memory. */
uint32_t *paths_processes(const struct accumulator *f);
/* The text of a leaf of class PATH_IDLE: "launch", "host:forward". */
enum { IDLE_TEXT = 512 };
void paths_idle_text(const struct accumulator *f, const struct path_node *leaf,
		     char out[IDLE_TEXT]);

/* Where the boxes of the page's flame graphs lie. */
#define FLAME_COLUMNS(X)                                                                           \
	X(FLAME_KIND, "kind", NULL, TEXT, KEY, "gpu or idle")                                      \
	X(FLAME_DEPTH, "depth", NULL, U64, KEY, "0: the whole; 1: the outermost frames")           \
	X(FLAME_AT, "at_ns", NULL, U64, KEY, "where it begins in the whole")                       \
	X(FLAME_NAME, "name", NULL, TEXT, KEY, "of the frame")                                     \
	X(FLAME_CLASS, "class", NULL, TEXT, KEY, "what the frame is: its colour")                  \
	X(FLAME_NS, "ns", NULL, U64, SUM, "its length, with all that is in it")
enum { FLAME_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_flame;

/* Makes the rows, where the run wants pictures. */
enum status flame_end(struct accumulator *f, const struct path_sums *sums, struct error *err);

/* The second leaves Python functions out: PyTorch 2.5 knows none there, 2.13 does. */
extern const struct report_type report_compat_pytorch, report_compat_pytorch_ops;
