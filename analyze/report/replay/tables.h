/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h - indices of cells in the tables of the replay of ranks. */
#pragma once

#include "analyze/engine/report.h"

#define JOB_REPLAY_COLUMNS(X)                                                                      \
	X(JOB_REPLAY_STEPS, "steps", "steps", U64, KEY, "steps that are complete on all ranks")    \
	X(JOB_REPLAY_RANKS, "ranks", "ranks", U64, DERIVED, "GPUs whose operations are replayed")  \
	X(JOB_REPLAY_SLOWDOWN, "slowdown", "S", F64, DERIVED,                                      \
	  "baseline / ideal: 1 where all ranks are alike")                                         \
	X(JOB_REPLAY_IDEAL, "ideal_ns", "ideal", U64, DERIVED,                                     \
	  "mean step if each operation took the mean (computation) or median (transfer) of its "   \
	  "peers")                                                                                 \
	X(JOB_REPLAY_BASELINE, "baseline_ns", "step", U64, DERIVED,                                \
	  "mean step of the replay with the operations' own times")                                \
	X(JOB_REPLAY_MEASURED, "measured_ns", "measured", U64, DERIVED,                            \
	  "mean over the steps of the longest measured time of a rank from its first operation "   \
	  "to its last")                                                                           \
	X(JOB_REPLAY_LAUNCH, "launch_slowdown", NULL, F64, DERIVED,                                \
	  "measured / baseline: what time between operations adds, which the replay leaves out")   \
	X(JOB_REPLAY_MW, "mw", "M_W", F64, DERIVED,                                                \
	  "share of the slowdown that the worst 3 % of the ranks explain; null: no slowdown")      \
	X(JOB_REPLAY_MS, "ms", "M_S", F64, DERIVED,                                                \
	  "share of the slowdown that the last pipeline stage explains; null: unknown")            \
	X(JOB_REPLAY_OPS, "operations", NULL, U64, DERIVED, "operations in the replayed steps")    \
	X(JOB_REPLAY_UNMET, "unmet", NULL, U64, DERIVED,                                           \
	  "collectives with missing records, in which the replay could not wait for all members")
enum { JOB_REPLAY_COLUMNS(COLUMN_PLACE) };
#define STEP_SLOWDOWN_COLUMNS(X)                                                                   \
	X(STEP_NUMBER = 1, "step", "step", U64, KEY, "number of the step")                         \
	X(STEP_NTH, "nth", NULL, U64, KEY, "earlier steps with this number")                       \
	X(STEP_SLOWDOWN, "slowdown", "S", F64, DERIVED, "slowdown of this step alone")             \
	X(STEP_BASELINE, "baseline_ns", "step time", U64, DERIVED,                                 \
	  "duration of the step in the replay with the operations' own times")
enum { STEP_SLOWDOWN_COLUMNS(COLUMN_PLACE) };
enum { BY_KEY = 1, BY_SLOWDOWN };
enum { WORKER_KEYS = 1 + RANK_KEYS + 1, WORKER_DP = WORKER_KEYS, WORKER_STAGE, WORKER_SLOWDOWN };
enum {
	RANK_STEP_NUMBER = WORKER_KEYS,
	RANK_STEP_NTH,
	RANK_STEP_KEYS,
	RANK_STEP_SLOWDOWN = RANK_STEP_KEYS
};

extern const struct table_type table_replay, table_replay_class, table_replay_rank,
	table_replay_host, table_replay_dp, table_replay_stage, table_replay_step,
	table_replay_rank_step;
