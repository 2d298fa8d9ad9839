/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions.h - a report for views and scalars alone: ranges of the host by their own names, in steps
 * or not.
 *
 * Lightning's profiler and accumulated timers have such rows.  Phases (DEFINITIONS.md 4) are of
 * complete steps, and map names.  The table `actions` is in no output as it is.
 */
#ifndef ANALYZE_REPORT_ACTIONS_H
#define ANALYZE_REPORT_ACTIONS_H

#include "analyze/engine/report.h"

#define ACTION_COLUMNS(X)                                                                          \
	X(ACTION_NAME = RANK_KEYS, "name", NULL, TEXT, KEY, "as the program has it")               \
	X(ACTION_COUNT, "count", NULL, U64, SUM, "ranges that began, also in each other")          \
	X(ACTION_TOTAL, "total_ns", NULL, U64, SUM, "their length, what is in them included")      \
	X(ACTION_FIRST, "first_end_ns", NULL, U64, MIN, "when the first of them ended")
enum { ACTION_COLUMNS(COLUMN_PLACE) };
extern const struct report_type report_actions;

#endif
