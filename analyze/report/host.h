/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - a report for rules alone: how long the threads of a rank communicate, and how long
 * Python's garbage collector runs (DEFINITIONS.md 7).
 *
 * Its table `host_time` is in no output.
 */
#ifndef ANALYZE_REPORT_HOST_H
#define ANALYZE_REPORT_HOST_H

#include "analyze/engine/report.h"

/* Instants in counted steps at which it happens on any thread of the rank. */
#define HOST_COLUMNS(X)                                                                            \
	X(HOST_COMM = RANK_KEYS, "comm_ns", NULL, U64, SUM, "a collective of the host is open")    \
	X(HOST_COMM_COUNT, "comm_count", NULL, U64, SUM, "such collectives, in steps or not")      \
	X(HOST_EXPOSED, "exposed_ns", NULL, U64, SUM, "that, and no other operator is open")       \
	X(HOST_GC, "gc_ns", NULL, U64, SUM, "the collector runs")
enum { HOST_COLUMNS(COLUMN_PLACE) };
extern const struct report_type report_host;

#endif
