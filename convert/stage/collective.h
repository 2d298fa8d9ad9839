/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.h - which collective a communication kernel is: communicator, operation, size, index.
 *
 * A kernel may say it itself (PyTorch's arguments), or the range says it in whose call it was
 * launched (record_param_comms of older PyTorch, NCCL's NVTX ranges; of "nccl:all_to_all" the name
 * says the operation); otherwise only its name speaks, and the communicator is unknown.  Ranks mean
 * the same collective only if communicator, operation and index agree (analyze/DEFINITIONS.md 7).
 *
 * Events are shown in order, ranges too, because a launch comes after its range began.  Texts are
 * the trace's, the object's own, or of the program; of one thread.
 */
#pragma once

#include "convert/stage/context/context.h"

/* Name, word, factor of the bus bandwidth: a * (n + b) / n. */
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
/* OPERATION_OTHER: a word that is unknown here. */
enum operation operation_find(const char *word);
/* Bus bandwidth / algorithm bandwidth among `ranks`; 0: it has none, or `ranks` is unknown. */
double operation_factor(enum operation operation, uint64_t ranks);
/* Sent from one to one: order says nothing about who met whom. */
bool operation_is_point(enum operation operation);

/* PyTorch's backends name a range of the host "gloo:all_reduce": what stands behind the backend;
 * NULL: it is no such name. */
const char *backend_operation(const char *range);

enum { GROUP_TEXT = 160 };
/* Whether what `struct collective` says of a communicator is of a pair: "pp 3>4". */
bool group_is_pair(const char *group);
struct collective {
	enum operation operation;
	char group[GROUP_TEXT]; /* the communicator, of a pair with " 3>4"; "": unknown */
	const char *type;       /* of elements; "": unknown */
	uint64_t bytes;         /* UINT64_MAX: unknown */
	uint64_t ranks;         /* in the communicator; 0: unknown */
	uint64_t seq;
	bool has_seq;
	bool is_pair; /* sent from one to one, and it is known who they are */
};

struct collectives;
/* The tables of `trace` are complete; it is borrowed. */
enum status collectives_new(struct collectives **out, struct trace *trace, struct error *err);
void collectives_free(struct collectives *c); /* accepts NULL */
/* Each range, in order, before what is launched in it. */
enum status collectives_note(struct collectives *c, const struct event *range, struct error *err);
/* The collective of a kernel that communicates; `launch` is its call, or NULL. */
void collectives_find(struct collectives *c, const struct event *kernel,
		      const struct launch *launch, struct collective *out);
