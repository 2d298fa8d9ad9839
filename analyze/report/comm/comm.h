/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - collectives of a rank as rows that can be matched with those of other ranks.
 *
 * A row of `comm_events` is one rank's collectives of a communicator, operation, step and phase:
 * a text of digits, six bits each, that merges and travels like any other figure.  What a
 * collective takes in it is some ten bytes, and what is kept of a job has a ceiling.
 */
#ifndef ANALYZE_REPORT_COMM_COMM_H
#define ANALYZE_REPORT_COMM_COMM_H

#include "analyze/engine/report.h"
#include "schemas/base/buf.h"

enum {
	EVENTS_DEVICE = RANK_KEYS,
	EVENTS_FROM,
	EVENTS_GROUP,
	EVENTS_OPERATION,
	EVENTS_TYPE,
	EVENTS_STREAM,
	EVENTS_STEP,
	EVENTS_NTH,
	EVENTS_PHASE,
	EVENTS_BY_SEQ,
	EVENTS_FIRST,
	EVENTS_KEYS,
	EVENTS_PACKED = EVENTS_KEYS,
	EVENTS_OF_STEP,
	EVENTS_WHOLE,
	EVENTS_TIMES,
	EVENTS_GPU,
};
extern const struct table_type table_comm_events;

enum {
	COMM_GROUP = RANK_KEYS,
	COMM_OPERATION,
	COMM_TYPE,
	COMM_BYTES,
	COMM_RANKS,
	COMM_COUNT,
	COMM_TOTAL,
	COMM_MIN,
	COMM_MAX,
	COMM_EXPOSED,
	COMM_HIDDEN,
	COMM_LEFT_OUT,
	COMM_MATCHED,
	COMM_TRANSFER,
	COMM_WAIT,
	COMM_EXPOSED_WAIT,
	COMM_ALGORITHM,
	COMM_BUS,
	COMM_LINK,
};
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
/* Its exposed time within the first `wait_ns`. */
uint64_t call_exposed_ns(const struct rank_call *m, uint64_t wait_ns);

/* Fills what needs all ranks: in `comm`, `groups`, `waits`, `stragglers`, `gpus`. */
enum status comm_match(struct tables *all, struct error *err);
/* Columns of what is found over all ranks. */
enum {
	GROUPS_RANKS = 2,
	GROUPS_SIZE,
	GROUPS_CALLS,
	GROUPS_MATCHED,
	GROUPS_BY,
	GROUPS_WHY,
	GROUPS_TRANSFER,
	GROUPS_WAIT,
	GROUPS_NAMED
};
enum {
	WAITS_CALLS = RANK_KEYS,
	WAITS_MATCHED,
	WAITS_TRANSFER,
	WAITS_WAIT,
	WAITS_EXPOSED,
	WAITS_LAST,
	WAITS_LATE,
	WAITS_MADE,
	WAITS_SAVING
};
enum {
	STRAGGLER_STEP,
	STRAGGLER_PHASE,
	STRAGGLER_RANK,
	STRAGGLER_HOST,
	STRAGGLER_PID,
	STRAGGLER_KEYS,
	STRAGGLER_LAST = STRAGGLER_KEYS,
	STRAGGLER_LATE,
	STRAGGLER_MADE
};
enum {
	PAIR_RANK = RANK_KEYS,
	PAIR_HOST,
	PAIR_PID,
	PAIR_KEYS,
	PAIR_CALLS = PAIR_KEYS,
	PAIR_WAIT,
	PAIR_EXCESS
};
extern const struct table_type table_groups, table_waits, table_waits_for, table_stragglers;

#endif
