/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the replay of ranks. */
#include "analyze/report/replay/tables.h"

TABLE_TYPE(replay, JOB_REPLAY_COLUMNS, .nest = NEST_OBJECT, .is_finished = true, .is_seldom = true);

#define STEPS_KEY                                                                                  \
	{                                                                                          \
		"steps", NULL, CELL_U64, KEY, NULL, "steps that are complete on all ranks"         \
	}
#define SLOWDOWN                                                                                   \
	{                                                                                          \
		"slowdown", "S", CELL_F64, DERIVED, NULL,                                          \
			"mean step if only these operations kept their own times / ideal"          \
	}
#define BY_TABLE(variable, key, text, type, nulls, meaning)                                        \
	const struct table_type variable = {                                                       \
		.name = "replay_" key,                                                             \
		.member = "by_" key,                                                               \
		.under = &table_replay,                                                            \
		.by = "slowdown",                                                                  \
		.null_texts = nulls,                                                               \
		.is_finished = true,                                                               \
		.is_seldom = true,                                                                 \
		.columns =                                                                         \
			COLUMNS(STEPS_KEY, { key, text, type, KEY, NULL, meaning }, SLOWDOWN, ),   \
	}
BY_TABLE(table_replay_class, "class", "operation", CELL_TEXT, NULL, "name of the operations");
BY_TABLE(table_replay_host, "host", "host", CELL_TEXT, NULL, "host of the ranks");
BY_TABLE(table_replay_dp, "dp", "data-parallel rank", CELL_U64, NULL, "coordinate of the ranks");
BY_TABLE(table_replay_stage, "stage", "stage", CELL_U64, NULL, "pipeline stage of the ranks");

const struct table_type table_replay_step = {
	.name = "replay_step",
	.member = "by_step",
	.under = &table_replay,
	.is_finished = true,
	.is_seldom = true,
	.columns = COLUMNS(STEPS_KEY, STEP_SLOWDOWN_COLUMNS(COLUMN_ROW)),
};

#define WORKER_COLUMNS                                                                             \
	STEPS_KEY, RANK_COLUMNS,                                                                   \
	{                                                                                          \
		"device", NULL, CELL_U64, KEY, NULL, "device number in its process"                \
	}
const struct table_type table_replay_rank = {
	.name = "replay_rank",
	.member = "by_rank",
	.under = &table_replay,
	.by = "slowdown",
	.null_texts = "host",
	.is_finished = true,
	.is_seldom = true,
	.columns = COLUMNS(WORKER_COLUMNS,
			   { "dp", "data-parallel rank", CELL_U64, DERIVED, NULL,
			     "data-parallel coordinate; null: the file has none" },
			   { "stage", "stage", CELL_U64, DERIVED, NULL,
			     "pipeline stage; null: the file has none" },
			   SLOWDOWN, ),
};
const struct table_type table_replay_rank_step = {
	.name = "replay_rank_step",
	.member = "steps",
	.under = &table_replay_rank,
	.is_finished = true,
	.is_seldom = true,
	.columns = COLUMNS(WORKER_COLUMNS, { "step", NULL, CELL_U64, KEY, NULL, "step number" },
			   { "nth", NULL, CELL_U64, KEY, NULL, "earlier steps with this number" },
			   { "slowdown", NULL, CELL_F64, DERIVED, NULL,
			     "the step if only this rank kept its own times / ideal" }, ),
};
