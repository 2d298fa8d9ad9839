/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - the rows of the table `paths` as trees, one for each rank. */
#pragma once

#include "analyze/engine/report.h"
#include "schemas/model/trace.h"

#define PATH_COLUMNS(X)                                                                            \
	X(PATH_NODE = RANK_KEYS, "node", NULL, U64, KEY, "a number of the path")                   \
	X(PATH_ABOVE, "above", NULL, U64, KEY, "the node that it is in; null: the rank's root")    \
	X(PATH_NAME, "name", NULL, TEXT, KEY, "of the range, GPU work or cause; null: a mark")     \
	X(PATH_CLASS, "class", NULL, TEXT, KEY, "what the node is")                                \
	X(PATH_GPU, "gpu_ns", NULL, U64, SUM, "GPU work, of a node gpu_work")                      \
	X(PATH_IDLE_NS, "idle_ns", NULL, U64, SUM, "idle time of GPUs, of a node idle")            \
	X(PATH_HOST, "host_ns", NULL, U64, SUM, "host threads, without ranges inside")             \
	X(PATH_BYTES, "alloc_bytes", NULL, U64, SUM, "taken there, without ranges inside")         \
	X(PATH_CALLS, "calls", NULL, U64, SUM, "ranges or GPU work that began")                    \
	X(PATH_FIRST, "first_ns", NULL, U64, MIN, "when the first of them began, since 1970")
enum { PATH_COLUMNS(COLUMN_PLACE) };

enum { TREE_DEPTH_MAX = 1 << 16 };
struct tree_node {
	const union value *row;  /* of the table; borrowed */
	struct tree_node *above; /* NULL: a root */
	uint32_t depth;          /* of a root: 0 */
};
struct tree {
	struct tree_node *nodes;  /* in the order of the table: those of a rank together */
	struct tree_node **order; /* the outer ones first */
	size_t count;
};
/* To be released also after a failure. */
enum status tree_take(struct tables *all, struct tree *t, struct error *err);
void tree_release(struct tree *t);
bool tree_is(const struct tree_node *n, enum path_class class);
/* Its name; "(backward)", "(recompute)", "(other)" of one without. */
const char *tree_frame(const struct tree_node *n);
