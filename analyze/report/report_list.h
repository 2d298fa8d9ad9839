/* SPDX-License-Identifier: Apache-2.0 */
/* report_list.h - the registry of reports that can be asked for, in the order of --help. */
#ifndef ANALYZE_REPORT_REPORT_LIST_H
#define ANALYZE_REPORT_REPORT_LIST_H

#include "analyze/engine/report.h"

/* clang-format off */
#define REPORT_LIST(X)                                                                             \
	X(summary) X(phases) X(steps) X(kernels) X(copies) X(slow) X(idle) X(launches)             \
	X(memory) X(comm) X(ranks) X(findings) X(critical) X(operators) X(replay) X(check)
/* clang-format on */

#define X(name) extern const struct report_type report_##name;
REPORT_LIST(X)
#undef X

extern const struct report_type *const report_types[];               /* ends with NULL */
const struct report_type *report_find(const char *name, size_t len); /* NULL: there is none */

/* Tables that JSON and csv show, each once, those of every run first; returns how many. */
enum { REPORT_TABLES_MAX = 256 };
size_t report_tables(const struct table_type *out[REPORT_TABLES_MAX]);

#endif
