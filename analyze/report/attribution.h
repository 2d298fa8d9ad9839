/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attribution.h - who owns each nanosecond of a window (DEFINITIONS.md 2): what --diff compares.
 * Its rows add up to window_ns of each GPU, exactly.  Not printed by itself.
 */
#ifndef ANALYZE_REPORT_ATTRIBUTION_H
#define ANALYZE_REPORT_ATTRIBUTION_H

#include "analyze/engine/report.h"

enum {
	ATTRIBUTION_DEVICE = RANK_KEYS,
	ATTRIBUTION_CLASS,
	ATTRIBUTION_PHASE,
	ATTRIBUTION_NAME,
	ATTRIBUTION_NS
};
extern const struct table_type table_attribution;
extern const struct report_type report_attribution;

#endif
