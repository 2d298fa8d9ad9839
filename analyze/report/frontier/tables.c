/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed of the frontier. */
#include "analyze/report/frontier/frontier.h"

const struct table_type table_frontier = {
	.name = "frontier",
	.by = "ns",
	.null_texts = "host",
	.is_finished = true,
	.columns = COLUMNS(CULPRIT_COLUMNS(COLUMN_ROW) FRONTIER_COLUMNS(COLUMN_ROW)),
};

const struct table_type table_frontier_steps = {
	.name = "frontier_steps",
	.is_finished = true,
	.columns = COLUMNS(FRONTIER_STEP_COLUMNS(COLUMN_ROW)),
};

const struct table_type table_frontier_parts = {
	.name = "frontier_pieces",
	.member = "pieces",
	.under = &table_frontier_steps,
	.by = "ns",
	.null_texts = "host",
	.is_finished = true,
	.columns = COLUMNS(FRONTIER_PART_STEP(COLUMN_ROW) CULPRIT_COLUMNS(COLUMN_ROW)
				   FRONTIER_PART_COLUMNS(COLUMN_ROW)),
};

const struct table_type table_frontier_total = {
	.name = "frontier_total",
	.nest = NEST_OBJECT,
	.is_finished = true,
	.columns = COLUMNS(FRONTIER_TOTAL_COLUMNS(COLUMN_ROW)),
};
