/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - shared by calls.c (latest calls of one rank), open.c (what was open in a rank of a
 * Tacho log) and hang.c (comparison of all ranks). */
#pragma once

#include "analyze/engine/report.h"

/* A call that NCCL's profiler plugin recorded is only known to have been made. */
enum { STATE_CALLED, STATE_SCHEDULED, STATE_STARTED, STATE_COMPLETED, STATE_ENDED };
enum { KEPT = 128 /* latest collectives that are kept of a group and rank */, TEXT_BYTES = 512 };

#define CALL_COLUMNS(X)                                                                            \
	X(CALL_GROUP = RANK_KEYS, "group", NULL, TEXT, KEY, "process group and its ranks")         \
	X(CALL_SEQ, "seq", NULL, U64, KEY, "number of the collective in the group")                \
	X(CALL_OPERATION, "operation", NULL, TEXT, KEY, "requested operation")                     \
	X(CALL_STATE, "state", NULL, U64, MAX,                                                     \
	  "0 called, 1 scheduled, 2 started, 3 completed, 4 ended (gloo does not report how)")     \
	X(CALL_CREATED, "created_ns", NULL, U64, MAX, "request's time since the Unix epoch")       \
	X(CALL_SIZES, "sizes", NULL, TEXT, MAX, "sizes of the inputs, as JSON")                    \
	X(CALL_TYPES, "types", NULL, TEXT, MAX, "types of the inputs, as JSON")                    \
	X(CALL_MEMBERS, "members", NULL, TEXT, MAX, "ranks of the group, as in the file")          \
	X(CALL_WORLD, "world_size", NULL, U64, MAX, "size of the default group; 0: unknown")       \
	X(CALL_ABOUT, "description", NULL, TEXT, MAX, "description of the group")                  \
	X(CALL_WHERE, "where", NULL, TEXT, MAX, "functions that requested it")
enum { CALL_COLUMNS(COLUMN_PLACE) };

extern const struct table_type table_hang_calls;

struct rank_list { /* a list of ranks as text; zeroed: empty */
	char text[TEXT_BYTES];
	size_t count;
	uint64_t first, last; /* range of ranks at the end */
};
/* Appends a rank.  Ranks come in ascending order. */
void rank_list_add(struct rank_list *l, uint64_t rank);
/* Returns the text, such as "0, 2-5".  Nothing can be appended after it. */
const char *rank_list_text(struct rank_list *l);

#define OPEN_COLUMNS(X)                                                                            \
	X(OPEN_STEP = RANK_KEYS, "step", "step", U64, MAX, "number of the last step")              \
	X(OPEN_NS, "open_ns", "open for", U64, MAX,                                                \
	  "how long that step was open when the recording broke off; 0: it did not hang then")     \
	X(OPEN_USUAL, "usual_ns", "usually", U64, MAX, "median length of complete steps")          \
	X(OPEN_INSIDE, "inside", "inside", TEXT, MAX,                                              \
	  "phases and ranges that were open, the outermost first; null: none")                     \
	X(OPEN_COLLECTIVE, "collective", "collective", TEXT, MAX,                                  \
	  "collective that was open; null: none")                                                  \
	X(OPEN_RECORDER, "recorder", NULL, TEXT, MAX,                                              \
	  "what the recorder reported during the hang (--save-on hang=TIME); null: nothing")       \
	X(OPEN_STACKS, "stacks", "Python stacks", TEXT, MAX,                                       \
	  "Python stacks during the hang, of the main thread first; null: none")                   \
	X(OPEN_SENTENCE, "sentence", NULL, TEXT, DERIVED, "the hang of this rank as a sentence")
enum { OPEN_COLUMNS(COLUMN_PLACE) };
extern const struct table_type table_hang_open;

struct call;
struct open_range;
struct hang { /* state for one input */
	struct call *calls;
	size_t count, cap, kept; /* `kept` of them are left since older ones were dropped */
	uint8_t *sort_of_schema; /* enum sort of calls.c */
	size_t sort_cap;
	struct open_range *ranges; /* that were open at the end of a window */
	size_t range_count, range_cap;
};
enum status hang_put(struct accumulator *f, const struct sorted_batch *w, struct error *err);
enum status hang_end(struct accumulator *f, struct error *err);
/* Keeps a range that was open at the end of a window. */
enum status hang_open_put(struct hang *s, const struct event *e, struct error *err);
/* Adds the ranks that hung to the table hang_open. */
enum status hang_open_end(struct accumulator *f, struct error *err);
/* Returns whether a process is in the table hang_open. */
bool hang_is_open(const struct accumulator *f, uint32_t process);
/* Writes the sentences of the ranks, which name each other. */
enum status hang_open_finish(struct tables *all, struct error *err);
