/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - collectives of a rank as rows that can be matched with those of other ranks.
 *
 * A row of `comm_events` has one rank's collectives of a communicator, operation, step and phase as
 * a text of digits, six bits each, which merges and is stored like any other figure. A collective
 * takes about ten bytes in it, and the total for a job has a ceiling.
 */
#pragma once

#include "analyze/engine/report.h"
#include "convert/stage/step_list.h"
#include "schemas/base/buf.h"

#include <stdint.h>

#define EVENTS_COLUMNS(X)                                                                          \
	X(EVENTS_DEVICE = RANK_KEYS, "device", NULL, U64, KEY,                                     \
	  "the device's number in its process")                                                    \
	X(EVENTS_FROM, "from_ns", NULL, U64, KEY, "begin of the GPU's first; tells inputs apart")  \
	X(EVENTS_GROUP, "group", NULL, TEXT, KEY, "communicator, as in comm")                      \
	X(EVENTS_OPERATION, "operation", NULL, TEXT, KEY, "operation of the collectives")          \
	X(EVENTS_TYPE, "type", NULL, TEXT, KEY, "type of the elements")                            \
	X(EVENTS_STREAM, "stream", NULL, U64, KEY, "stream; null: the communicator is known")      \
	X(EVENTS_STEP, "step", NULL, U64, KEY, "step of the launches; null: none")                 \
	X(EVENTS_NTH, "nth", NULL, U64, KEY, "earlier steps of this number in the input")          \
	X(EVENTS_PHASE, "phase", NULL, TEXT, KEY, "phase of the launches")                         \
	X(EVENTS_BY_SEQ, "by_seq", NULL, BOOL, KEY,                                                \
	  "the index is Seq, otherwise the position in the step")                                  \
	X(EVENTS_FIRST, "first_ns", NULL, U64, KEY, "begin of the row's first; keeps rows apart")  \
	X(EVENTS_PACKED, "packed", NULL, TEXT, MAX,                                                \
	  "packed index, place, time, bytes and exposed parts of each collective")                 \
	X(EVENTS_OF_STEP, "of_step", NULL, U64, SUM,                                               \
	  "collectives of the communicator and operation in the step, in all phases and types")    \
	X(EVENTS_WHOLE, "whole", NULL, BOOL, MAX, "the step is complete")                          \
	X(EVENTS_SETTLES, "settles", NULL, BOOL, MAX, "the step is settling and does not count")   \
	X(EVENTS_TIMES, "times", NULL, U64, MAX, "steps with this number in the input")            \
	X(EVENTS_GPU, "gpu", NULL, TEXT, MAX, "name of the device")
enum { EVENTS_COLUMNS(COLUMN_PLACE) EVENTS_KEYS = EVENTS_PACKED };
extern const struct table_type table_comm_events;

#define COMM_COLUMNS(X)                                                                            \
	X(COMM_GROUP = RANK_KEYS, "group", "communicator", TEXT, KEY,                              \
	  "process group and its ranks, or NCCL's number; empty: unknown")                         \
	X(COMM_OPERATION, "operation", "operation", TEXT, KEY, "operation, such as all_reduce")    \
	X(COMM_TYPE, "type", "type", TEXT, KEY, "type of the elements; empty: unknown")            \
	X(COMM_BYTES, "size_bytes", "size", U64, KEY,                                              \
	  "bytes that a rank contributes to one collective, for gather and scatter all data; "     \
	  "null: unknown, or several sizes")                                                       \
	X(COMM_RANKS, "group_size", "ranks", U64, MAX, "ranks of the communicator; 0: unknown")    \
	X(COMM_COUNT, "count", "calls", U64, SUM, "communication kernels that began")              \
	X(COMM_TOTAL, "total_ns", "total", U64, SUM, "total duration, overlaps counted twice")     \
	X(COMM_MIN, "min_ns", "min", U64, MIN, "duration of the shortest call")                    \
	X(COMM_MAX, "max_ns", "max", U64, MAX, "duration of the longest call")                     \
	X(COMM_EXPOSED, "exposed_ns", "exposed", U64, SUM,                                         \
	  "time beside which no compute or earlier communication ran; adds up to exposed_comm_ns") \
	X(COMM_HIDDEN, "hidden_ns", "hidden", U64, SUM, "total - exposed")                         \
	X(COMM_LEFT_OUT, "left_out", NULL, U64, SUM,                                               \
	  "calls that were not kept for matching because the memory for them was full")            \
	X(COMM_MATCHED, "matched", "matched", U64, DERIVED,                                        \
	  "calls that were matched with the other ranks")                                          \
	X(COMM_TRANSFER, "transfer_ns", "transfer", U64, DERIVED,                                  \
	  "matched calls: shortest duration over the ranks, which is that of the last rank")       \
	X(COMM_WAIT, "wait_ns", "waiting", U64, DERIVED, "matched calls: own duration - transfer") \
	X(COMM_EXPOSED_WAIT, "exposed_wait_ns", "exposed waiting", U64, DERIVED,                   \
	  "exposed part of the waiting time")                                                      \
	X(COMM_ALGORITHM, "algorithm_gb_per_s", "algorithm GB/s", F64, DERIVED,                    \
	  "bytes / transfer; if nothing is matched bytes / total, which is a lower bound")         \
	X(COMM_BUS, "bus_gb_per_s", "bus GB/s", F64, DERIVED,                                      \
	  "algorithm bandwidth x 2(n-1)/n for all_reduce, (n-1)/n for gather and scatter, 1 for "  \
	  "others")                                                                                \
	X(COMM_LINK, "link_gb_per_s", "link GB/s", F64, DERIVED,                                   \
	  "bandwidth of the GPU's links in one direction, by the GPU's name; null: unknown")
enum { COMM_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_comm;

/* Part of a collective in which nothing computes: [at, at + span) from its begin, with `exposed` ns
 * exposed. */
struct exposed_interval {
	uint64_t at_ns, span_ns, exposed_ns;
};
enum {
	EXPOSED_MOST =
		6 /* further ones are added to the last, whose exposed part is then spread evenly */
};
struct rank_call {      /* one collective of one rank */
	uint64_t index; /* Seq, or the place among those of its step */
	uint64_t place; /* place among all collectives of its GPU, by begin */
	uint64_t ns, bytes;
	struct exposed_interval exposed[EXPOSED_MOST];
	size_t exposed_count;
};
struct packed_last { /* the collective before; all zero: none */
	uint64_t index, place;
};
void call_pack(struct buf *out, const struct rank_call *m, struct packed_last *last);
/* Reads the next collective; false: there are no more. */
bool call_unpack(const char **packed, struct rank_call *m, struct packed_last *last);
/* Write and read numbers in texts, with six bits in a letter. */
void packed_put(struct buf *out, uint64_t value);
uint64_t packed_take(const char **at);
/* false: the text ends or has other letters there, or the number has more than 64 bits. */
bool packed_next(const char **at, uint64_t *value);
/* Returns the exposed time within the first `wait_ns` of a collective. */
uint64_t call_exposed_ns(const struct rank_call *m, uint64_t wait_ns);

/* The join() of the report. */
enum status comm_join(struct tables *all, struct error *err);
/* Fills the columns that need all ranks, in `comm`, `groups`, `waits`, `stragglers`, `gpus`. */
enum status comm_match(struct tables *all, struct error *err);
/* Columns of tables over all ranks. */
#define GROUPS_COLUMNS(X)                                                                          \
	X(GROUPS_GROUP, "group", "communicator", TEXT, KEY,                                        \
	  "process group and its ranks, or NCCL's number; empty: unknown")                         \
	X(GROUPS_OPERATION, "operation", "operation", TEXT, KEY, "operation, such as all_reduce")  \
	X(GROUPS_RANKS, "ranks", "ranks", U64, DERIVED, "ranks of the communicator in the inputs") \
	X(GROUPS_SIZE, "group_size", "of", U64, DERIVED, "ranks of the communicator; 0: unknown")  \
	X(GROUPS_CALLS, "count", "calls", U64, DERIVED, "calls on all ranks together")             \
	X(GROUPS_MATCHED, "matched", "matched", U64, DERIVED,                                      \
	  "collectives matched on all of these ranks")                                             \
	X(GROUPS_BY, "index", "index", TEXT, DERIVED,                                              \
	  "how collectives are matched: seq, by the number in the file; count, by the position "   \
	  "in a step that is complete on all ranks; null: none was kept")                          \
	X(GROUPS_WHY, "unmatched_because", "why not", TEXT, DERIVED,                               \
	  "why collectives were not matched; null: no reason")                                     \
	X(GROUPS_TRANSFER, "transfer_ns", "transfer", U64, DERIVED,                                \
	  "matched calls: shortest duration over the ranks, summed over calls and ranks")          \
	X(GROUPS_WAIT, "wait_ns", "waiting", U64, DERIVED,                                         \
	  "matched calls: own duration - transfer, summed over all ranks")                         \
	X(GROUPS_NAMED, "with_culprit", "with a last one", U64, DERIVED,                           \
	  "matched collectives to which one rank came last, by over 5 % and 5 us")
enum { GROUPS_COLUMNS(COLUMN_PLACE) };
#define WAITS_COLUMNS(X)                                                                           \
	X(WAITS_CALLS = RANK_KEYS, "collectives", "collectives", U64, DERIVED,                     \
	  "collectives of the rank that began")                                                    \
	X(WAITS_MATCHED, "matched", "matched", U64, DERIVED, "calls matched with the other ranks") \
	X(WAITS_TRANSFER, "transfer_ns", "transfer", U64, DERIVED,                                 \
	  "matched calls: shortest duration over the ranks; from here on without settling steps")  \
	X(WAITS_WAIT, "wait_ns", "waits", U64, DERIVED, "matched calls: own duration - transfer")  \
	X(WAITS_EXPOSED, "exposed_wait_ns", "exposed", U64, DERIVED, "exposed part of wait_ns")    \
	X(WAITS_ALL_EXPOSED, "exposed_ns", NULL, U64, DERIVED, "exposed time of matched calls")    \
	X(WAITS_AFTER, "after_next_ns", NULL, U64, DERIVED,                                        \
	  "delay behind the rank before it, summed over all collectives in which it came last")    \
	X(WAITS_LAST, "times_last", "last", U64, DERIVED,                                          \
	  "collectives in which this rank came last, by over 5 % and 5 us")                        \
	X(WAITS_LATE, "late_ns", "late", U64, DERIVED,                                             \
	  "delay behind the rank before it, in the collectives of times_last")                     \
	X(WAITS_MADE, "made_wait_ns", "makes wait", U64, DERIVED,                                  \
	  "total waiting time of all other ranks, in the collectives of times_last")               \
	X(WAITS_SAVING, "saving_ns", "saves", U64, DERIVED,                                        \
	  "upper bound of the saving if it came as early as the next rank: the least "             \
	  "exposed_excess_ns of those that wait for it, or after_next_ns")
enum { WAITS_COLUMNS(COLUMN_PLACE) };
#define STRAGGLER_COLUMNS(X)                                                                       \
	X(STRAGGLER_STEP, "step", "step", U64, KEY,                                                \
	  "step in which the last rank launched the collectives; null: in none")                   \
	X(STRAGGLER_PHASE, "phase", "phase", TEXT, KEY, "phase in which the last rank launched")   \
	X(STRAGGLER_RANK, "rank", "rank", U64, KEY, "rank that came last")                         \
	X(STRAGGLER_HOST, "host", NULL, TEXT, KEY, "host of the rank that came last")              \
	X(STRAGGLER_PID, "pid", NULL, U64, KEY, "process id of the rank that came last")           \
	X(STRAGGLER_LAST, "times_last", "last", U64, DERIVED,                                      \
	  "matched collectives in which the rank came last")                                       \
	X(STRAGGLER_LATE, "late_ns", "late", U64, DERIVED, "delay behind the rank before it")      \
	X(STRAGGLER_MADE, "made_wait_ns", "makes wait", U64, DERIVED,                              \
	  "total waiting time of all other ranks")
enum { STRAGGLER_COLUMNS(COLUMN_PLACE) STRAGGLER_KEYS = STRAGGLER_LAST };
#define PAIR_COLUMNS(X)                                                                            \
	X(PAIR_RANK = RANK_KEYS, "for_rank", "for rank", U64, KEY, "rank that came last")          \
	X(PAIR_HOST, "for_host", NULL, TEXT, KEY, "host of the rank that came last")               \
	X(PAIR_PID, "for_pid", NULL, U64, KEY, "process id of the rank that came last")            \
	X(PAIR_CALLS, "count", "collectives", U64, DERIVED, "collectives with that rank last")     \
	X(PAIR_WAIT, "wait_ns", "waits", U64, DERIVED, "time waited for that rank")                \
	X(PAIR_EXCESS, "exposed_excess_ns", "exposed more", U64, DERIVED,                          \
	  "exposed time beyond that of the rank that came last, in these collectives or in all")
enum { PAIR_COLUMNS(COLUMN_PLACE) PAIR_KEYS = PAIR_CALLS };
extern const struct table_type table_groups, table_waits, table_waits_for, table_stragglers;

/* Returns the bandwidth of the GPU's links in GB/s in one direction between `ranks` GPUs of this
 * name (NULL: unknown), by DEFINITIONS.md 7. `group` contains the communicator's ranks, "0 [0, 1]",
 * if known; ranks are assumed to fill servers in order. 0: unknown. */
double link_gb_per_s(const char *gpu, const char *group, uint64_t ranks);

/*
 * Steps whose numbers repeat: a second epoch, or a loop that starts again.
 *
 * Two marks with one number are two steps. If ranks are matched by step numbers, the place among
 * the steps of this number distinguishes them.
 */

struct step_repeat {         /* repetition of a step's number */
	uint32_t nth, times; /* steps of this number before it, and in total */
};
/* Returns an array with an item for each row, which the caller frees; NULL: no number repeats. */
enum status step_repeats_find(const struct step_list *steps, struct step_repeat **out,
			      struct error *err);
/* Returns the item of row - 1. Row 0 is no step and has none. */
struct step_repeat step_repeat_at(const struct step_repeat *all, uint32_t row);
