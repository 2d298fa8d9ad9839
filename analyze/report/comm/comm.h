/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - collectives of a rank as rows that can be matched with those of other ranks.
 *
 * A row of `comm_events` is one rank's collectives of a communicator, operation, step and phase:
 * a text of digits, six bits each, that merges and travels like any other figure.  What a
 * collective takes in it is some ten bytes, and what is kept of a job has a ceiling.
 */
#pragma once

#include "analyze/engine/report.h"
#include "convert/stage/step_list.h"
#include "schemas/base/buf.h"

#include <stdint.h>

#define EVENTS_COLUMNS(X)                                                                          \
	X(EVENTS_DEVICE = RANK_KEYS, "device", NULL, U64, KEY,                                     \
	  "the device's number in its process")                                                    \
	X(EVENTS_FROM, "from_ns", NULL, U64, KEY, "begin of the GPU's first: one input's rows")    \
	X(EVENTS_GROUP, "group", NULL, TEXT, KEY, "communicator")                                  \
	X(EVENTS_OPERATION, "operation", NULL, TEXT, KEY, "operation")                             \
	X(EVENTS_TYPE, "type", NULL, TEXT, KEY, "of the elements")                                 \
	X(EVENTS_STREAM, "stream", NULL, U64, KEY, "without a communicator")                       \
	X(EVENTS_STEP, "step", NULL, U64, KEY, "of the launch; null: none")                        \
	X(EVENTS_NTH, "nth", NULL, U64, KEY, "steps of this number before, in the input")          \
	X(EVENTS_PHASE, "phase", NULL, TEXT, KEY, "of the launch")                                 \
	X(EVENTS_BY_SEQ, "by_seq", NULL, BOOL, KEY,                                                \
	  "the index is Seq, else the place in the step")                                          \
	X(EVENTS_FIRST, "first_ns", NULL, U64, KEY, "begin of the first: no two rows are one")     \
	X(EVENTS_PACKED, "packed", NULL, TEXT, MAX,                                                \
	  "index, place, time, bytes, exposed parts of each")                                      \
	X(EVENTS_OF_STEP, "of_step", NULL, U64, SUM,                                               \
	  "of communicator and operation in this step, in whatever phase and type")                \
	X(EVENTS_WHOLE, "whole", NULL, BOOL, MAX, "the step is whole")                             \
	X(EVENTS_SETTLES, "settles", NULL, BOOL, MAX, "the step settles and does not count")       \
	X(EVENTS_TIMES, "times", NULL, U64, MAX, "steps of this number in the input")              \
	X(EVENTS_GPU, "gpu", NULL, TEXT, MAX, "name of the device")
enum { EVENTS_COLUMNS(COLUMN_PLACE) EVENTS_KEYS = EVENTS_PACKED };
extern const struct table_type table_comm_events;

#define COMM_COLUMNS(X)                                                                            \
	X(COMM_GROUP = RANK_KEYS, "group", "communicator", TEXT, KEY,                              \
	  "process group and its ranks, or NCCL's number; empty: unknown")                         \
	X(COMM_OPERATION, "operation", "operation", TEXT, KEY, "operation")                        \
	X(COMM_TYPE, "type", "type", TEXT, KEY, "of the elements; empty: unknown")                 \
	X(COMM_BYTES, "size_bytes", "size", U64, KEY,                                              \
	  "bytes of one collective: for gather and scatter all data; null: unknown, or several "   \
	  "sizes")                                                                                 \
	X(COMM_RANKS, "group_size", "ranks", U64, MAX, "in the communicator; 0: unknown")          \
	X(COMM_COUNT, "count", "calls", U64, SUM, "communication kernels that began")              \
	X(COMM_TOTAL, "total_ns", "total", U64, SUM, "total time, overlaps counted twice")         \
	X(COMM_MIN, "min_ns", "min", U64, MIN, "the shortest")                                     \
	X(COMM_MAX, "max_ns", "max", U64, MAX, "the longest")                                      \
	X(COMM_EXPOSED, "exposed_ns", "exposed", U64, SUM,                                         \
	  "no compute and no earlier communication at the time; adds up to exposed_comm_ns")       \
	X(COMM_HIDDEN, "hidden_ns", "hidden", U64, SUM, "total - exposed")                         \
	X(COMM_LEFT_OUT, "left_out", NULL, U64, SUM,                                               \
	  "calls that could not be kept for matching: the memory for them was full")               \
	X(COMM_MATCHED, "matched", "matched", U64, DERIVED,                                        \
	  "calls that were matched with the other ranks")                                          \
	X(COMM_TRANSFER, "transfer_ns", "transfer", U64, DERIVED,                                  \
	  "of matched calls: the shortest time over the ranks, which is that of the last rank")    \
	X(COMM_WAIT, "wait_ns", "waiting", U64, DERIVED, "of matched calls: own time - transfer")  \
	X(COMM_EXPOSED_WAIT, "exposed_wait_ns", "exposed waiting", U64, DERIVED,                   \
	  "exposed part of the waiting")                                                           \
	X(COMM_ALGORITHM, "algorithm_gb_per_s", "algorithm GB/s", F64, DERIVED,                    \
	  "bytes / transfer; where nothing is matched bytes / time, which is a lower bound")       \
	X(COMM_BUS, "bus_gb_per_s", "bus GB/s", F64, DERIVED,                                      \
	  "algorithm bandwidth x 2(n-1)/n for all_reduce, (n-1)/n for gather and scatter, 1 for "  \
	  "others")                                                                                \
	X(COMM_LINK, "link_gb_per_s", "link GB/s", F64, DERIVED,                                   \
	  "bandwidth of the GPU's links in one direction, by the GPU's name; null: unknown")
enum { COMM_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_comm;

/* Where nothing computes while it runs: [at, at + span) from its begin, `exposed` of it. */
struct exposed_interval {
	uint64_t at_ns, span_ns, exposed_ns;
};
enum { EXPOSED_MOST = 6 /* more are summed up with the one before: the wait in it is a share */ };
struct rank_call {      /* one collective of one rank */
	uint64_t index; /* its Seq, or its place among those of its step */
	uint64_t place; /* among all of its GPU, by begin */
	uint64_t ns, bytes;
	struct exposed_interval exposed[EXPOSED_MOST];
	size_t exposed_count;
};
struct packed_last { /* of the one before; zeroed: none */
	uint64_t index, place;
};
void call_pack(struct buf *out, const struct rank_call *m, struct packed_last *last);
/* false: there is no more. */
bool call_unpack(const char **packed, struct rank_call *m, struct packed_last *last);
/* Numbers as texts hold them: six bits a letter. */
void packed_put(struct buf *out, uint64_t value);
uint64_t packed_take(const char **at);
/* false: the text is cut or holds something else there, or more than 64 bits. */
bool packed_next(const char **at, uint64_t *value);
/* Its exposed time within the first `wait_ns`. */
uint64_t call_exposed_ns(const struct rank_call *m, uint64_t wait_ns);

/* The report's join(). */
enum status comm_join(struct tables *all, struct error *err);
/* Fills what needs all ranks: in `comm`, `groups`, `waits`, `stragglers`, `gpus`. */
enum status comm_match(struct tables *all, struct error *err);
/* Columns of what is found over all ranks. */
#define GROUPS_COLUMNS(X)                                                                          \
	X(GROUPS_GROUP, "group", "communicator", TEXT, KEY,                                        \
	  "process group and its ranks, or NCCL's number; empty: unknown")                         \
	X(GROUPS_OPERATION, "operation", "operation", TEXT, KEY, "operation")                      \
	X(GROUPS_RANKS, "ranks", "ranks", U64, DERIVED, "given ranks that have the group")         \
	X(GROUPS_SIZE, "group_size", "of", U64, DERIVED, "ranks in the communicator; 0: unknown")  \
	X(GROUPS_CALLS, "count", "calls", U64, DERIVED, "on all ranks together")                   \
	X(GROUPS_MATCHED, "matched", "matched", U64, DERIVED,                                      \
	  "collectives matched on all of these ranks")                                             \
	X(GROUPS_BY, "index", "index", TEXT, DERIVED,                                              \
	  "seq: the number in the file; count: the position in a step that is complete on all "    \
	  "ranks; null: none was kept for matching")                                               \
	X(GROUPS_WHY, "unmatched_because", "why not", TEXT, DERIVED,                               \
	  "why collectives were not matched; null: no reason")                                     \
	X(GROUPS_TRANSFER, "transfer_ns", "transfer", U64, DERIVED,                                \
	  "of matched calls: the shortest time over the ranks, summed over calls and ranks")       \
	X(GROUPS_WAIT, "wait_ns", "waiting", U64, DERIVED,                                         \
	  "of matched calls: own time - transfer, over all ranks")                                 \
	X(GROUPS_NAMED, "with_culprit", "with a last one", U64, DERIVED,                           \
	  "of matched collectives, in which one rank came after all others by over 5 % and 5 us")
enum { GROUPS_COLUMNS(COLUMN_PLACE) };
#define WAITS_COLUMNS(X)                                                                           \
	X(WAITS_CALLS = RANK_KEYS, "collectives", "collectives", U64, DERIVED, "that began")       \
	X(WAITS_MATCHED, "matched", "matched", U64, DERIVED, "with the other ranks")               \
	X(WAITS_TRANSFER, "transfer_ns", "transfer", U64, DERIVED,                                 \
	  "of matched ones, from here on but for steps that settle: the shortest time over the "   \
	  "ranks")                                                                                 \
	X(WAITS_WAIT, "wait_ns", "waits", U64, DERIVED, "of matched ones: own time - transfer")    \
	X(WAITS_EXPOSED, "exposed_wait_ns", "exposed", U64, DERIVED, "exposed part of it")         \
	X(WAITS_ALL_EXPOSED, "exposed_ns", NULL, U64, DERIVED, "exposed time of matched ones")     \
	X(WAITS_AFTER, "after_next_ns", NULL, U64, DERIVED,                                        \
	  "over all collectives in which it came last: delay behind the rank before it")           \
	X(WAITS_LAST, "times_last", "last", U64, DERIVED,                                          \
	  "collectives in which it came later than all others by over 5 % and 5 us")               \
	X(WAITS_LATE, "late_ns", "late", U64, DERIVED,                                             \
	  "in these: delay behind the rank before it")                                             \
	X(WAITS_MADE, "made_wait_ns", "makes wait", U64, DERIVED,                                  \
	  "in these: total waiting time of all others")                                            \
	X(WAITS_SAVING, "saving_ns", "saves", U64, DERIVED,                                        \
	  "upper bound of the saving if it came as early as the next rank: the least "             \
	  "exposed_excess_ns, or after_next_ns")
enum { WAITS_COLUMNS(COLUMN_PLACE) };
#define STRAGGLER_COLUMNS(X)                                                                       \
	X(STRAGGLER_STEP, "step", "step", U64, KEY,                                                \
	  "step in which the last rank launched it; null: in none")                                \
	X(STRAGGLER_PHASE, "phase", "phase", TEXT, KEY, "in which the last one launched it")       \
	X(STRAGGLER_RANK, "rank", "rank", U64, KEY, "rank that came last")                         \
	X(STRAGGLER_HOST, "host", NULL, TEXT, KEY, "its host")                                     \
	X(STRAGGLER_PID, "pid", NULL, U64, KEY, "its process")                                     \
	X(STRAGGLER_LAST, "times_last", "last", U64, DERIVED,                                      \
	  "matched collectives in which it came last")                                             \
	X(STRAGGLER_LATE, "late_ns", "late", U64, DERIVED, "delay behind the rank before it")      \
	X(STRAGGLER_MADE, "made_wait_ns", "makes wait", U64, DERIVED,                              \
	  "total waiting time of all others")
enum { STRAGGLER_COLUMNS(COLUMN_PLACE) STRAGGLER_KEYS = STRAGGLER_LAST };
#define PAIR_COLUMNS(X)                                                                            \
	X(PAIR_RANK = RANK_KEYS, "for_rank", "for rank", U64, KEY, "rank that came last")          \
	X(PAIR_HOST, "for_host", NULL, TEXT, KEY, "its host")                                      \
	X(PAIR_PID, "for_pid", NULL, U64, KEY, "its process")                                      \
	X(PAIR_CALLS, "count", "collectives", U64, DERIVED, "collectives in which it came last")   \
	X(PAIR_WAIT, "wait_ns", "waits", U64, DERIVED, "time waited for that rank in these")       \
	X(PAIR_EXCESS, "exposed_excess_ns", "exposed more", U64, DERIVED,                          \
	  "in these, or in all: exposed time beyond that of the last rank")
enum { PAIR_COLUMNS(COLUMN_PLACE) PAIR_KEYS = PAIR_CALLS };
extern const struct table_type table_groups, table_waits, table_waits_for, table_stragglers;

/* What the links of a GPU can carry, by its name (DEFINITIONS.md 7). */

/* GB/s in one direction between `ranks` GPUs of this name, NULL: unknown.  `group` names the ranks
 * of the communicator, "0 [0, 1]", where it is known: ranks stand on servers in the order of their
 * numbers.  0: unknown. */
double link_gb_per_s(const char *gpu, const char *group, uint64_t ranks);

/*
 * Steps whose numbers come again: a second epoch, a loop that was begun anew.
 *
 * Two marks of one number are two steps.  Where ranks are matched by the number of a step, its
 * place among the steps of this number tells them apart.
 */

struct step_repeat {         /* of a step */
	uint32_t nth, times; /* of its number: how many came before, and how many there are */
};
/* One for each row, to be freed; NULL: no number comes twice. */
enum status step_repeats_find(const struct step_list *steps, struct step_repeat **out,
			      struct error *err);
/* Of row - 1; of row 0, which is none, nothing. */
struct step_repeat step_repeat_at(const struct step_repeat *all, uint32_t row);
