/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h - sums by path of one input: the state of the reports that ask where in the model.
 *
 * Idle time is at leaves of class PATH_IDLE below the path that makes the GPU wait (struct
 * idle_segment); the name of a leaf is its cause and phase.
 */
#pragma once

#include "analyze/engine/report.h"
#include "convert/stage/path_sums.h"

enum status paths_take(struct path_sums *s, struct accumulator *f, const struct sorted_batch *w,
		       struct error *err);
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
