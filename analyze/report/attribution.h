/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attribution.h - who owns each nanosecond of a window (DEFINITIONS.md 2): what --diff compares.
 * Its rows add up to window_ns of each GPU, exactly.  Not printed by itself.
 */
#ifndef ANALYZE_REPORT_ATTRIBUTION_H
#define ANALYZE_REPORT_ATTRIBUTION_H

#include "analyze/engine/report.h"

#define ATTRIBUTION_COLUMNS(X)                                                                     \
	X(ATTRIBUTION_DEVICE = RANK_KEYS, "device", NULL, U64, KEY,                                \
	  "the device's number in its process")                                                    \
	X(ATTRIBUTION_CLASS, "class", NULL, TEXT, KEY,                                             \
	  "compute, exposed_comm, exposed_copy, idle, lead or tail")                               \
	X(ATTRIBUTION_PHASE, "phase", NULL, TEXT, KEY,                                             \
	  "of the owner's launch; empty where nothing runs")                                       \
	X(ATTRIBUTION_NAME, "name", NULL, TEXT, KEY,                                               \
	  "of the owner; where nothing runs, the cause")                                           \
	X(ATTRIBUTION_NS, "ns", NULL, U64, SUM, "that it owns")
enum { ATTRIBUTION_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_owned;
extern const struct report_type report_attribution;

#endif
