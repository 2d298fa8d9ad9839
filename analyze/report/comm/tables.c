/* SPDX-License-Identifier: Apache-2.0 */
/* What is found over all ranks: communicators, waits, stragglers. */
#include "analyze/report/comm/comm.h"

static const struct column groups_columns[] = {
	{ "group", "communicator", CELL_TEXT, KEY, NULL,
	  "process group and its ranks, or NCCL's number; empty: the files do not say" },
	{ "operation", "operation", CELL_TEXT, KEY, NULL, "what was done" },
	{ "ranks", "ranks", CELL_U64, DERIVED, NULL, "of those that are given, that have it" },
	{ "group_size", "of", CELL_U64, DERIVED, NULL, "ranks in the communicator; 0: unknown" },
	{ "count", "calls", CELL_U64, DERIVED, NULL, "on all ranks together" },
	{ "matched", "matched", CELL_U64, DERIVED, NULL,
	  "of those, whose like was found on all of these ranks" },
	{ "index", "index", CELL_TEXT, DERIVED, NULL,
	  "seq: the number that the file gives; count: the place in a step that all have whole; "
	  "null: "
	  "none was kept to be matched" },
	{ "unmatched_because", "why not", CELL_TEXT, DERIVED, NULL,
	  "null: nothing speaks against it" },
	{ "transfer_ns", "transfer", CELL_U64, DERIVED, NULL,
	  "of matched calls: the shortest time over the ranks, summed over calls and ranks" },
	{ "wait_ns", "waiting", CELL_U64, DERIVED, NULL,
	  "of matched calls: own time - transfer, of all ranks" },
	{ "with_culprit", "with a last one", CELL_U64, DERIVED, NULL,
	  "of matched collectives, in which one rank came after all others by over 5 % and 5 us" },
	{ .name = NULL },
};
const struct table_type table_groups = {
	.name = "groups",
	.member = "communicators",
	.null_texts = "index unmatched_because",
	.is_finished = true,
	.columns = groups_columns,
};

static const struct column waits_columns[] = {
	RANK_COLUMNS,
	{ "collectives", "collectives", CELL_U64, DERIVED, NULL, "that began" },
	{ "matched", "matched", CELL_U64, DERIVED, NULL, "with the other ranks" },
	{ "transfer_ns", "transfer", CELL_U64, DERIVED, NULL,
	  "of matched ones: the shortest time over the ranks" },
	{ "wait_ns", "waits", CELL_U64, DERIVED, NULL, "of matched ones: own time - transfer" },
	{ "exposed_wait_ns", "exposed", CELL_U64, DERIVED, NULL, "of that, what was exposed" },
	{ "times_last", "last", CELL_U64, DERIVED, NULL,
	  "collectives in which it came later than all others by over 5 % and 5 us" },
	{ "late_ns", "late", CELL_U64, DERIVED, NULL,
	  "in those: how much later than the one before it" },
	{ "made_wait_ns", "makes wait", CELL_U64, DERIVED, NULL,
	  "in those: what all others waited together" },
	{ "saving_ns", "saves", CELL_U64, DERIVED, NULL,
	  "at most, had it come as early as the next: the least exposed_excess_ns of the others" },
	{ .name = NULL },
};
const struct table_type table_waits = {
	.name = "waits",
	.member = "waits",
	.under = &table_ranks,
	.nest = NEST_OBJECT,
	.by = "made_wait_ns",
	.is_finished = true,
	.columns = waits_columns,
};

static const struct column straggler_columns[] = {
	{ "step", "step", CELL_U64, KEY, NULL, "in which the last one launched it; null: in none" },
	{ "phase", "phase", CELL_TEXT, KEY, NULL, "in which the last one launched it" },
	{ "rank", "rank", CELL_U64, KEY, NULL, "that came last" },
	{ "host", NULL, CELL_TEXT, KEY, NULL, "its host" },
	{ "pid", NULL, CELL_U64, KEY, NULL, "its process" },
	{ "times_last", "last", CELL_U64, DERIVED, NULL, "matched collectives in which it did" },
	{ "late_ns", "late", CELL_U64, DERIVED, NULL, "how much later than the one before it" },
	{ "made_wait_ns", "makes wait", CELL_U64, DERIVED, NULL,
	  "what all others waited together" },
	{ .name = NULL },
};
const struct table_type table_stragglers = {
	.name = "stragglers",
	.member = "stragglers",
	.is_finished = true,
	.columns = straggler_columns,
};

static const struct column pair_columns[] = {
	RANK_COLUMNS,
	{ "for_rank", "for rank", CELL_U64, KEY, NULL, "that came last" },
	{ "for_host", NULL, CELL_TEXT, KEY, NULL, "its host" },
	{ "for_pid", NULL, CELL_U64, KEY, NULL, "its process" },
	{ "count", "collectives", CELL_U64, DERIVED, NULL, "in which it did" },
	{ "wait_ns", "waits", CELL_U64, DERIVED, NULL, "in those, for that one" },
	{ "exposed_excess_ns", "exposed more", CELL_U64, DERIVED, NULL,
	  "in those: exposed time beyond that of the one that came last" },
	{ .name = NULL },
};
const struct table_type table_waits_for = {
	.name = "waits_for",
	.member = "waits_for",
	.under = &table_ranks,
	.by = "wait_ns",
	.is_finished = true,
	.columns = pair_columns,
};
