/* SPDX-License-Identifier: Apache-2.0 */
/* The tables over all ranks: communicators, waits, stragglers. */
#include "analyze/report/comm/comm.h"

TABLE_TYPE(groups, GROUPS_COLUMNS, .member = "communicators",
	   .null_texts = "index unmatched_because", .is_finished = true);

RANK_TABLE_TYPE(waits, &table_ranks, WAITS_COLUMNS, .nest = NEST_OBJECT, .by = "made_wait_ns",
		.is_finished = true);

TABLE_TYPE(stragglers, STRAGGLER_COLUMNS, .is_finished = true);

RANK_TABLE_TYPE(waits_for, &table_ranks, PAIR_COLUMNS, .by = "wait_ns", .is_finished = true);
