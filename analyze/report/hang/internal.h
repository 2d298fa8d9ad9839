/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - shared by calls.c (latest calls of one rank) and hang.c (comparison of all
 * ranks). */
#pragma once

#include "analyze/engine/report.h"

enum { STATE_SCHEDULED, STATE_STARTED, STATE_COMPLETED, STATE_ENDED };
enum { KEPT = 128 /* latest collectives that are kept of a group and rank */, TEXT_BYTES = 512 };

#define CALL_COLUMNS(X)                                                                            \
	X(CALL_GROUP = RANK_KEYS, "group", NULL, TEXT, KEY, "process group and its ranks")         \
	X(CALL_SEQ, "seq", NULL, U64, KEY, "number of the collective in the group")                \
	X(CALL_OPERATION, "operation", NULL, TEXT, KEY, "requested operation")                     \
	X(CALL_STATE, "state", NULL, U64, MAX,                                                     \
	  "0 scheduled, 1 started, 2 completed, 3 ended (gloo does not report how)")               \
	X(CALL_CREATED, "created_ns", NULL, U64, MAX, "request's time since the Unix epoch")       \
	X(CALL_SIZES, "sizes", NULL, TEXT, MAX, "sizes of the inputs, as JSON")                    \
	X(CALL_TYPES, "types", NULL, TEXT, MAX, "types of the inputs, as JSON")                    \
	X(CALL_MEMBERS, "members", NULL, TEXT, MAX, "ranks of the group, as in the file")          \
	X(CALL_WORLD, "world_size", NULL, U64, MAX, "size of the default group; 0: unknown")       \
	X(CALL_ABOUT, "description", NULL, TEXT, MAX, "description of the group")                  \
	X(CALL_WHERE, "where", NULL, TEXT, MAX, "functions that requested it")
enum { CALL_COLUMNS(COLUMN_PLACE) };

extern const struct table_type table_hang_calls;

struct call;
struct hang { /* state for one input */
	struct call *calls;
	size_t count, cap;
};
enum status hang_put(struct accumulator *f, const struct sorted_batch *w, struct error *err);
enum status hang_end(struct accumulator *f, struct error *err);
