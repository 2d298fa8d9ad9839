/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier.h - frontier accounting: which rank determined the job's time (DEFINITIONS.md 7).
 *
 * The accumulator handles one rank: what its GPUs did between one collective and the next, by phase
 * and by class or cause. Over all ranks the longest path through matched collectives is found, and
 * each segment of it is the time of the rank that came last at its end. Clocks are not compared.
 */
#pragma once

#include "analyze/report/comm/collectives.h"

#define SPANS_COLUMNS(X)                                                                           \
	X(SPANS_DEVICE = RANK_KEYS, "device", NULL, U64, KEY,                                      \
	  "the device's number in its process")                                                    \
	X(SPANS_FROM, "from_ns", NULL, U64, KEY, "begin of the GPU's first; tells inputs apart")   \
	X(SPANS_PHASE, "phase", NULL, TEXT, KEY,                                                   \
	  "phase of the owner's launch; for causes on the host that of the step thread")           \
	X(SPANS_KIND, "kind", NULL, TEXT, KEY, "class or idle cause; empty: row of windows")       \
	X(SPANS_PACKED, "packed", NULL, TEXT, MAX, "packed ns before the end of each collective")
enum { SPANS_COLUMNS(COLUMN_PLACE) };
/* A row of time; the row of windows has an empty phase and kind. */
extern const struct table_type table_frontier_spans;

/* The state of the accumulator, and its functions. */
struct frontier {
	struct gpu_times **gpus; /* by the sweep's index */
	size_t gpu_count;
	bool any; /* a collective was seen */
};
enum status frontier_put(struct accumulator *f, const struct sorted_batch *w, struct error *err);
enum status frontier_end(struct accumulator *f, struct error *err);
void frontier_release(struct accumulator *f);

enum { FRONTIER_PLACES = 1 << 14 /* limit for a GPU; later ones are not kept */ };
/* A list with a number for each place. Zeros at the end need not be written. */
struct packed_list {
	uint64_t last, zeros;
};
void list_put(struct buf *out, struct packed_list *l, uint64_t value);
/* Reads the next number; false: the rest is zeros. */
bool list_take(const char **packed, struct packed_list *l, uint64_t *value);

#define CULPRIT_COLUMNS(X)                                                                         \
	X(FRONTIER_RANK, "rank", "rank", U64, KEY,                                                 \
	  "rank that came last at the end of the path segment; null: the ranks came together")     \
	X(FRONTIER_HOST, "host", NULL, TEXT, KEY, "host of the rank")                              \
	X(FRONTIER_PID, "pid", NULL, U64, KEY, "process id of the rank")                           \
	X(FRONTIER_PHASE, "phase", "phase", TEXT, KEY,                                             \
	  "phase of the launch of the work that ran or came next; for data and host: phase of "    \
	  "the step thread")                                                                       \
	X(FRONTIER_KIND, "kind", "what", TEXT, KEY,                                                \
	  "class of work (compute, exposed_comm, exposed_copy) or cause of idle time")
#define FRONTIER_COLUMNS(X)                                                                        \
	X(FRONTIER_NS, "ns", NULL, U64, DERIVED,                                                   \
	  "time of the job that this rank spent in path segments at whose end it came last")       \
	X(FRONTIER_PER_STEP, "ns_per_step", "ms/step", U64, DERIVED, "ns / steps of the frontier") \
	X(FRONTIER_SHARE, "share_of_step", "%", F64, DERIVED,                                      \
	  "share of the time along the frontier", .of = "job's step")                              \
	X(FRONTIER_MEAN, "mean_ns_per_step", "mean of the ranks", U64, DERIVED,                    \
	  "mean time of the ranks for the same kind in the same path segments")
enum { CULPRIT_COLUMNS(COLUMN_PLACE) FRONTIER_COLUMNS(COLUMN_PLACE) FRONTIER_KEYS = FRONTIER_NS };
#define FRONTIER_STEP_COLUMNS(X)                                                                   \
	X(FRONTIER_STEP_NUMBER, "step", "step", U64, KEY,                                          \
	  "step in which the last rank launched the collectives; null: in none")                   \
	X(FRONTIER_STEP_SYNC_POINTS, "meetings", "meetings", U64, DERIVED,                         \
	  "matched collectives on the frontier")                                                   \
	X(FRONTIER_STEP_NS, "ns", "ms", U64, DERIVED,                                              \
	  "time of the job from the last collective of the previous step to the last of this one")
enum { FRONTIER_STEP_COLUMNS(COLUMN_PLACE) };
/* The keys of a step's rows are the step's number, then those of the whole. */
#define FRONTIER_PART_STEP(X) X(FRONTIER_PART_NUMBER, "step", "step", U64, KEY, "step of the job")
#define FRONTIER_PART_COLUMNS(X)                                                                   \
	X(FRONTIER_PART_NS, "ns", "ms", U64, DERIVED,                                              \
	  "part of the step's time; all rows of a step add up to its ns")
enum {
	FRONTIER_PART_STEP(COLUMN_PLACE) FRONTIER_PART_RANK,
	FRONTIER_PART_PHASE = FRONTIER_PART_RANK + RANK_KEYS,
	FRONTIER_PART_KIND,
	FRONTIER_PART_COLUMNS(COLUMN_PLACE)
};
#define FRONTIER_TOTAL_COLUMNS(X)                                                                  \
	X(FRONTIER_TOTAL_STEPS, "steps", "steps", U64, KEY,                                        \
	  "steps that lie completely on the frontier")                                             \
	X(FRONTIER_TOTAL_SYNC_POINTS, "meetings", "meetings", U64, DERIVED,                        \
	  "matched collectives on the frontier")                                                   \
	X(FRONTIER_TOTAL_NS, "ns", NULL, U64, DERIVED, "time of the job along the frontier")       \
	X(FRONTIER_TOTAL_PER_STEP, "ns_per_step", "ms/step", U64, DERIVED, "ns / steps")           \
	X(FRONTIER_TOTAL_NAMED, "named_ns", NULL, U64, DERIVED,                                    \
	  "part of ns in path segments at whose end one rank came last by over 5 % and 5 us")      \
	X(FRONTIER_TOTAL_LEFT_OUT, "left_out", NULL, U64, DERIVED,                                 \
	  "matched collectives left out because of a memory limit")
enum { FRONTIER_TOTAL_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_frontier, table_frontier_steps, table_frontier_parts,
	table_frontier_total;
/* Fills these four tables. */
enum status frontier_finish(struct tables *all, struct error *err);
