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

const struct table_type table_waits = {
	.name = "waits",
	.under = &table_ranks,
	.nest = NEST_OBJECT,
	.by = "made_wait_ns",
	.is_finished = true,
	.columns = COLUMNS(RANK_COLUMNS, WAITS_COLUMNS(COLUMN_ROW)),
};

const struct table_type table_stragglers = {
	.name = "stragglers",
	.is_finished = true,
	.columns = COLUMNS(STRAGGLER_COLUMNS(COLUMN_ROW)),
};

const struct table_type table_waits_for = {
	.name = "waits_for",
	.under = &table_ranks,
	.by = "wait_ns",
	.is_finished = true,
	.columns = COLUMNS(RANK_COLUMNS, PAIR_COLUMNS(COLUMN_ROW)),
};
