/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_owned.h - who owns each nanosecond of a window (DEFINITIONS.md 2): what --diff compares.
 * Its rows add up to window_ns of each GPU, exactly.  Not printed by itself.
 */
#ifndef ANALYZE_REPORT_OWNED_H
#define ANALYZE_REPORT_OWNED_H

#include "analyze/report.h"

enum { OWNED_DEVICE = RANK_KEYS, OWNED_CLASS, OWNED_PHASE, OWNED_NAME, OWNED_NS };
extern const struct table_type table_owned;
extern const struct report_type report_owned;

#endif
