/* SPDX-License-Identifier: Apache-2.0 */
/* report_list.h - the registry of reports, in the order of --help. */
#pragma once

#include "analyze/engine/report.h"

/* clang-format off */
#define REPORT_LIST(X)                                                                             \
	X(summary) X(phases) X(steps) X(kernels) X(copies) X(slow) X(idle) X(launches)             \
	X(memory) X(comm) X(ranks) X(findings) X(critical) X(operators) X(roofline)                \
	X(modules) X(stacks) X(nvtx) X(replay) X(health) X(serving) X(hang) X(snapshot)      \
	X(check)
/* clang-format on */

#define X(name) extern const struct report_type report_##name;
REPORT_LIST(X)
#undef X

/* A part of the findings that is not selected by name. */
extern const struct report_type report_places;

extern const struct report_type *const report_types[]; /* ends with NULL */
/* Reports in a partial result: all of these, and what --diff compares besides. */
extern const struct report_type *const report_parts[];
const struct report_type *report_find(const char *name, size_t len); /* NULL: no such report */

/* Lists the tables of JSON and csv, each once, those of every run first; returns their number. */
enum { REPORT_TABLES_MAX = 256 };
size_t report_tables(const struct table_type *out[REPORT_TABLES_MAX]);
