/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed of the frontier. */
#include "analyze/report/frontier/frontier.h"

#define CULPRIT_COLUMNS                                                                             \
	{                                                                                           \
		"rank",   "rank",                                                                   \
		CELL_U64, KEY,                                                                      \
		NULL,     "that came last at the end of the stretch; null: the ranks came together" \
	},                                                                                          \
		{ "host", NULL, CELL_TEXT, KEY, NULL, "its host" },                                 \
		{ "pid", NULL, CELL_U64, KEY, NULL, "its process" },                                \
		{ "phase",                                                                          \
		  "phase",                                                                          \
		  CELL_TEXT,                                                                        \
		  KEY,                                                                              \
		  NULL,                                                                             \
		  "of the launch of what ran or came next; of data and host: the step thread's" },  \
	{                                                                                           \
		"kind", "what", CELL_TEXT, KEY, NULL,                                               \
			"compute, exposed_comm, exposed_copy or the cause of idle time"             \
	}

static const struct column frontier_columns[] = {
	CULPRIT_COLUMNS,
	{ "ns", NULL, CELL_U64, DERIVED, NULL,
	  "of the job's time: this rank's own in stretches at whose end it came last" },
	{ "ns_per_step", "ms/step", CELL_U64, DERIVED, NULL, "that / steps of the frontier" },
	{ "share_of_step", "%", CELL_F64, DERIVED, "job's step", "of the time along the frontier" },
	{ "mean_ns_per_step", "mean of the ranks", CELL_U64, DERIVED, NULL,
	  "what the ranks have of the same kind in the same stretches, on average" },
	{ .name = NULL },
};
const struct table_type table_frontier = {
	.name = "frontier",
	.member = "frontier",
	.by = "ns",
	.null_texts = "host",
	.is_finished = true,
	.columns = frontier_columns,
};

static const struct column step_columns[] = {
	{ "step", "step", CELL_U64, KEY, NULL, "in which the last one launched; null: in none" },
	{ "meetings", "meetings", CELL_U64, DERIVED, NULL,
	  "matched collectives that the frontier passes" },
	{ "ns", "ms", CELL_U64, DERIVED, NULL,
	  "of the job: from the step before's last meeting to this one's" },
	{ .name = NULL },
};
const struct table_type table_frontier_steps = {
	.name = "frontier_steps",
	.member = "frontier_steps",
	.is_finished = true,
	.columns = step_columns,
};

static const struct column part_columns[] = {
	{ "step", "step", CELL_U64, KEY, NULL, "of the job" },
	CULPRIT_COLUMNS,
	{ "ns", "ms", CELL_U64, DERIVED, NULL, "of the step; all rows of a step make its ns" },
	{ .name = NULL },
};
const struct table_type table_frontier_parts = {
	.name = "frontier_pieces",
	.member = "pieces",
	.under = &table_frontier_steps,
	.by = "ns",
	.null_texts = "host",
	.is_finished = true,
	.columns = part_columns,
};

static const struct column total_columns[] = {
	{ "steps", "steps", CELL_U64, KEY, NULL,
	  "that the frontier has whole: the first of a window begins before it" },
	{ "meetings", "meetings", CELL_U64, DERIVED, NULL, "matched collectives that it passes" },
	{ "ns", NULL, CELL_U64, DERIVED, NULL, "the job's time along the frontier" },
	{ "ns_per_step", "ms/step", CELL_U64, DERIVED, NULL, "that / steps" },
	{ "named_ns", NULL, CELL_U64, DERIVED, NULL,
	  "of it in stretches at whose end one rank came after all others by over 5 % and 5 us" },
	{ "left_out", NULL, CELL_U64, DERIVED, NULL,
	  "matched collectives that were not looked at: what lies between has a ceiling" },
	{ .name = NULL },
};
const struct table_type table_frontier_total = {
	.name = "frontier_total",
	.member = "frontier_total",
	.nest = NEST_OBJECT,
	.is_finished = true,
	.columns = total_columns,
};
