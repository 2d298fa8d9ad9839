/* SPDX-License-Identifier: Apache-2.0 */
/* What is found over all ranks: communicators, waits, stragglers. */
#include "analyze/report/comm/comm.h"

const struct table_type table_groups = {
	.name = "groups",
	.member = "communicators",
	.null_texts = "index unmatched_because",
	.is_finished = true,
	.columns = COLUMNS(GROUPS_COLUMNS(COLUMN_ROW)),
};

RANK_TABLE_TYPE(waits, &table_ranks, WAITS_COLUMNS, .nest = NEST_OBJECT, .by = "made_wait_ns",
		.is_finished = true);

const struct table_type table_stragglers = {
	.name = "stragglers",
	.is_finished = true,
	.columns = COLUMNS(STRAGGLER_COLUMNS(COLUMN_ROW)),
};

RANK_TABLE_TYPE(waits_for, &table_ranks, PAIR_COLUMNS, .by = "wait_ns", .is_finished = true);
