/* SPDX-License-Identifier: Apache-2.0 */
/*
 * captures.h - operators of CUDA graphs (DEFINITIONS.md 8), part of the report `operators`.
 *
 * GPU work of a replayed graph belongs to the operator that replays it. The operators that captured
 * it are also known if the capture was recorded, in the same input or in one of --capture. The
 * accumulator keeps the calls of each capture with the operators around them, and the work of
 * replays by its place in the launch; finish() joins the two.
 */
#pragma once

#include "analyze/engine/report.h"
#include "schemas/base/buf.h"
#include "schemas/base/map.h"

#define CAPTURED_COLUMNS(X, prefix, where)                                                         \
	X(prefix##_KERNELS = where, "capture_kernels", NULL, U64, DERIVED,                         \
	  "work of replayed graphs captured while it was the innermost operator; null: none")      \
	X(prefix##_CAPTURE_SELF, "capture_gpu_self_ns", "graph self", U64, DERIVED,                \
	  "duration of the work in capture_kernels")                                               \
	X(prefix##_CAPTURE_GPU, "capture_gpu_ns", "graph", U64, DERIVED,                           \
	  "duration of the work of replayed graphs that was captured in its calls")

/* End markers in texts of operators around a call, which have a name, shapes and types each. */
enum { OPERATOR_END = '\x1e', FIELD_END = '\x1f' };

#define GRAPH_COLUMNS(X)                                                                           \
	X(GRAPH_KERNELS = RANK_KEYS, "gpu_events", "GPU work", U64, SUM, "GPU events of the rank") \
	X(GRAPH_LAUNCHES, "launches", "graph launches", U64, SUM, "graph launches with GPU work")  \
	X(GRAPH_WORK, "replayed", "replayed", U64, SUM, "GPU events of graph launches")            \
	X(GRAPH_NS, "replayed_gpu_ns", "replayed", U64, SUM, "GPU time, overlaps counted twice")   \
	X(GRAPH_FOUND, "attributed", "attributed", U64, DERIVED,                                   \
	  "replayed events whose capture is known, in this input or in one of --capture")          \
	X(GRAPH_FOUND_NS, "attributed_gpu_ns", "attributed", U64, DERIVED, "attributed GPU time")  \
	X(GRAPH_PCT, "attributed_pct", "%", F64, DERIVED, "attributed / replayed", .of = "replayed")
enum { GRAPH_COLUMNS(COLUMN_PLACE) };

#define NODE_COLUMNS(X)                                                                            \
	X(NODE_CAPTURE = RANK_KEYS, "capture", NULL, U64, KEY, "begin of the capture, Unix epoch") \
	X(NODE_SIZE, "size", NULL, U64, KEY, "requests or tokens of the graph; null: unknown")     \
	X(NODE_INDEX, "index", NULL, U64, KEY, "position of the call in the capture")              \
	X(NODE_KERNEL, "kernel", NULL, TEXT, KEY, "kernel that the call adds; null: unknown")      \
	X(NODE_OPERATORS, "operators", NULL, TEXT, KEY, "operators around it, innermost first")    \
	X(NODE_MODULE, "module", NULL, TEXT, KEY, "modules around it, outermost first")            \
	X(NODE_SEEN, "seen", NULL, U64, SUM, "number of inputs with this call")
enum { NODE_COLUMNS(COLUMN_PLACE) };

#define REPLAYED_COLUMNS(X)                                                                        \
	X(REPLAYED_BATCH = RANK_KEYS, "batch", NULL, U64, KEY, "batch of the step; null: unknown") \
	X(REPLAYED_TOKENS, "tokens", NULL, U64, KEY, "tokens of the step; null: unknown")          \
	X(REPLAYED_PLACE, "place", NULL, U64, KEY, "position of the launch in its step")           \
	X(REPLAYED_SEQUENCE, "sequence", NULL, U64, KEY, "hash of the names of all work")          \
	X(REPLAYED_INDEX, "index", NULL, U64, KEY, "position of the work in the launch")           \
	X(REPLAYED_NAME, "name", NULL, TEXT, KEY, "name of the work")                              \
	X(REPLAYED_COUNT, "count", NULL, U64, SUM, "number of launches")                           \
	X(REPLAYED_NS, "gpu_ns", NULL, U64, SUM, "total duration of the work")
enum { REPLAYED_COLUMNS(COLUMN_PLACE) };

struct replay { /* work of one graph launch, until later launches overwrite it */
	uint64_t correlation, batch, tokens, place;
	uint32_t process;
	struct replayed {
		uint64_t node, ns; /* node: its number in the graph; 0: unknown */
		uint32_t name, order;
	} * items;
	size_t count, cap;
};
struct captured {               /* a call that adds a node to a graph */
	uint64_t capture, size; /* when the capture began; the size in the annotation around it */
	uint32_t process, name;
	size_t operators, module; /* offsets in `texts` */
	bool has_work;            /* its stream was not captured, so it has work */
};
enum { REPLAYS = 16 };
struct captures { /* all zero: empty; release it with captures_release() */
	struct captured *calls;
	size_t count, cap;
	uint64_t *open; /* by track: when its capture began; 0: no capture */
	size_t open_cap;
	struct buf texts;
	struct map by_correlation; /* correlation of a captured call to its index + 1 */
	struct replay replays[REPLAYS];
	size_t next;
	uint64_t rows;
	struct graph_sums { /* by process; place: of the latest graph launch in its step */
		uint64_t place, launches, work, ns;
		uint32_t step;
	} * sums;
	size_t sum_cap;
	uint8_t *kinds; /* cache by name: enum call_kind bits */
	size_t kind_cap;
	uint32_t names[2]; /* names for copies and fills; 0: not made yet */
};

extern const struct table_type table_graphs, table_graph_nodes, table_graph_work;

/* Sets *wants to whether a runtime call is captured. If so, the caller puts the operators around
 * it, then calls captures_put_call(). */
enum status captures_wants(struct accumulator *f, struct captures *c, const struct event *e,
			   bool *wants, struct error *err);
enum status captures_put_call(struct accumulator *f, struct captures *c, const struct event *e,
			      struct error *err);
/* Adds an operator around the call that is put next, inner ones first. */
void captures_put_operator(struct accumulator *f, struct captures *c, uint32_t name,
			   uint32_t schema);
/* Adds GPU work. `l`: its launch; NULL: unknown. */
enum status captures_put_work(struct accumulator *f, struct captures *c, const struct event *e,
			      const struct launch *l, struct error *err);
enum status captures_end(struct accumulator *f, struct captures *c, struct error *err);
void captures_release(struct captures *c);
/* Fills the columns of CAPTURED_COLUMNS in the tables `operators` and `operator_shapes`. */
enum status captures_finish(struct tables *all, struct error *err);
