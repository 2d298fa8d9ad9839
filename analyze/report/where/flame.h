/* SPDX-License-Identifier: Apache-2.0 */
/* flame.h - where the boxes of the page's flame graphs lie. */
#pragma once

#include "analyze/report/where/paths.h"

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
