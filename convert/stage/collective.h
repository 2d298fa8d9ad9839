/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.h - finds the collective of a communication kernel: communicator, operation, size,
 * index.
 *
 * It comes from the kernel's arguments (PyTorch), or from the range around its launch
 * (record_param_comms of older PyTorch, NCCL's NVTX ranges, the name of "nccl:all_to_all");
 * otherwise only from the kernel's name, and the communicator is unknown.  Ranks mean the same
 * collective only if communicator, operation and index agree (analyze/DEFINITIONS.md 7).
 *
 * Callers pass events and ranges in order, because a launch comes after its range began.  Texts are
 * borrowed from the trace or the object, or constant.  An object belongs to one thread.
 */
#pragma once

#include "convert/stage/context/context.h"

/* Each row has a name, a word and a, b of the factor a * (n + b) / n, which turns algorithm into
 * bus bandwidth among n ranks. */
/* clang-format off */
#define OPERATION_LIST(X)                                                                          \
	X(OTHER, "other", 1, 0) X(ALL_REDUCE, "all_reduce", 2, -1)                                 \
	X(REDUCE_SCATTER, "reduce_scatter", 1, -1) X(ALL_GATHER, "all_gather", 1, -1)              \
	X(ALL_TO_ALL, "all_to_all", 1, -1) X(BROADCAST, "broadcast", 1, 0)                         \
	X(SEND_RECV, "send_recv", 1, 0) X(SEND, "send", 1, 0) X(RECV, "recv", 1, 0)                \
	X(BARRIER, "barrier", 0, 0) X(GATHER, "gather", 1, -1) X(SCATTER, "scatter", 1, -1)        \
	X(REDUCE, "reduce", 1, 0)
/* clang-format on */
enum operation {
#define X(name, word, a, b) OPERATION_##name,
	OPERATION_LIST(X)
#undef X
		OPERATION_COUNT,
};
const char *operation_word(enum operation operation);
/* Returns OPERATION_OTHER for an unknown word. */
enum operation operation_find(const char *word);
/* Returns bus bandwidth / algorithm bandwidth among `ranks`; 0: the operation has no such factor,
 * or `ranks` is 0 (unknown). */
double operation_factor(enum operation operation, uint64_t ranks);
/* Returns whether one rank sends to one other.  Then the order of calls does not show which ranks
 * exchanged data. */
bool operation_is_point(enum operation operation);

/* PyTorch's backends name host ranges such as "gloo:all_reduce".  Returns the part after the colon,
 * or NULL if the range has no such name. */
const char *backend_operation(const char *range);

enum { GROUP_TEXT = 160 };
/* Returns whether `group` of a `struct collective` names a pair of ranks, such as "pp 3>4". */
bool group_is_pair(const char *group);
struct collective {
	enum operation operation;
	char group[GROUP_TEXT]; /* the communicator; " 3>4" is appended for a pair; "": unknown */
	const char *type;       /* element type; "": unknown */
	uint64_t bytes;         /* UINT64_MAX: unknown */
	uint64_t ranks;         /* number of ranks in the communicator; 0: unknown */
	uint64_t seq;
	bool has_seq;
	bool is_pair; /* one rank sends to one other, and both are known */
};

struct collectives;
/* `trace` is borrowed, and its tables are complete. */
enum status collectives_new(struct collectives **out, struct trace *trace, struct error *err);
void collectives_free(struct collectives *c); /* accepts NULL */
/* Remembers a range that may describe a collective.  Call it for each range in order, before the
 * events launched in it. */
enum status collectives_note(struct collectives *c, const struct event *range, struct error *err);
/* Finds the collective of a communication kernel.  `launch` is the call that launched it, or NULL.
 */
void collectives_find(struct collectives *c, const struct event *kernel,
		      const struct launch *launch, struct collective *out);
