/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report `stacks`: call paths (DEFINITIONS.md 8): the calling-context tree of each rank, a row
 * for each node, and the paths with most of each measure.
 *
 * The id of a node depends only on its path, so that the trees of several inputs add up by their
 * rows.
 */
#include "analyze/report/where/where.h"

#include "schemas/base/hash.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

#define PATH_COLUMNS(X)                                                                            \
	X(PATH_NODE = RANK_KEYS, "node", NULL, U64, KEY, "id of the node")                         \
	X(PATH_ABOVE, "above", NULL, U64, KEY, "id of the parent; null: the root of the rank")     \
	X(PATH_NAME, "name", NULL, TEXT, KEY, "range, GPU work or idle cause; null: a mark")       \
	X(PATH_CLASS, "class", NULL, TEXT, KEY, "kind of node: cpu_op, gpu_work, ...")             \
	X(PATH_GPU, "gpu_ns", NULL, U64, SUM, "GPU time, of a gpu_work node")                      \
	X(PATH_IDLE_NS, "idle_ns", NULL, U64, SUM, "idle time of GPUs, of an idle node")           \
	X(PATH_HOST, "host_ns", NULL, U64, SUM, "time of host threads, without nested ranges")     \
	X(PATH_BYTES, "alloc_bytes", NULL, U64, SUM,                                               \
	  "bytes allocated in the node, without nested ranges")                                    \
	X(PATH_CALLS, "calls", NULL, U64, SUM, "ranges or GPU events that began")                  \
	X(PATH_FIRST, "first_ns", NULL, U64, MIN, "first begin since the Unix epoch")
static RANK_TABLE(paths, &table_ranks, PATH_COLUMNS, .null_texts = "name");

#define STACK_COLUMNS(X)                                                                           \
	X(STACK_PATH = RANK_KEYS, "path", "path", TEXT, KEY,                                       \
	  "ranges from the outermost to the innermost, with semicolons between them")              \
	X(STACK_GPU, "gpu_ns", "GPU", U64, DERIVED,                                                \
	  "GPU time of the path, overlaps counted twice")                                          \
	X(STACK_PCT, "gpu_pct", "%", F64, DERIVED, "share of the rank's GPU work", .of = "GPU")    \
	X(STACK_IDLE, "idle_ns", "GPU waits", U64, DERIVED, "GPU idle time that the path causes")  \
	X(STACK_HOST, "host_ns", "host", U64, DERIVED,                                             \
	  "time of host threads in the innermost range")                                           \
	X(STACK_BYTES, "alloc_bytes", "memory", U64, DERIVED,                                      \
	  "bytes allocated in the path, freed or not")                                             \
	X(STACK_CALLS, "calls", "calls", U64, DERIVED, "calls of the innermost range")
static RANK_TABLE(stacks, &table_ranks, STACK_COLUMNS, .by = "gpu_ns", .is_finished = true);

static const char *const class_words[] = {
#define X(name, number, word, help) [RANGE_##name] = word,
	RANGE_CLASS_LIST(X)
#undef X
		[PATH_IDLE] = "idle",
	[PATH_WORK] = "gpu_work",
	[PATH_BACKWARD] = "backward",
	[PATH_RECOMPUTE] = "recompute",
	[PATH_ROOT] = "root",
	[PATH_OTHER] = "other",
};

/* ---- the rows of one input ---------------------------------------------------------------- */

/* Returns the id of a node from its hash. It has 53 bits, which JSON readers with doubles keep;
 * never 0. */
static uint64_t node_number(uint64_t hash)
{
	return (hash >> 11) | 1;
}

/* Returns for each node whether it or a node below it has anything. The caller frees the array. */
static bool *paths_used(const struct accumulator *f)
{
	const struct path_sums *sums = f->state;
	uint32_t count = paths_count(f);
	bool *used = calloc(count, sizeof(*used));

	for (uint32_t i = count; used && i-- > 1;) {
		struct path_sum sum = paths_at(sums, i);

		used[i] |= sum.gpu_ns || sum.idle_ns || sum.bytes || sum.calls || sum.host_ns > 0;
		used[trace_get_path(f->trace, i)->parent] |= used[i];
	}
	return used;
}

static enum status end_path(struct accumulator *f, uint32_t at, uint32_t process, uint64_t *hashes,
			    struct error *err)
{
	const struct path_node *node = trace_get_path(f->trace, at);
	struct path_sum sum = paths_at(f->state, at);
	union value keys[PATH_CLASS + 1], *row;
	char idle[IDLE_TEXT];
	bool has_name = node->class < PATH_BACKWARD;

	if (node->class == PATH_IDLE)
		paths_idle_text(f, node, idle);
	keys[PATH_NAME].text = node->class == PATH_IDLE ? idle
			       : has_name               ? trace_text(f->trace, node->name, NULL)
							: NULL;
	keys[PATH_CLASS].text = class_words[node->class];
	if (has_name)
		hashes[at] = hash_text(keys[PATH_NAME].text, strlen(keys[PATH_NAME].text));
	hashes[at] = hash_word(hash_word(hashes[node->parent], node->class), hashes[at]);
	if (!acc_wants(f, process))
		return ST_OK;
	keys[PATH_NODE].u64 = node_number(hashes[at]);
	keys[PATH_ABOVE].u64 = node->parent ? node_number(hashes[node->parent]) : NO_U64;
	TRY(acc_row(f, "paths", process, keys, &row, err));
	row[PATH_GPU].u64 += sum.gpu_ns;
	row[PATH_IDLE_NS].u64 += sum.idle_ns;
	row[PATH_HOST].u64 += sum.host_ns > 0 ? (uint64_t)sum.host_ns : 0;
	row[PATH_BYTES].u64 += sum.bytes;
	row[PATH_CALLS].u64 += sum.calls;
	if (sum.first_ns && sum.first_ns < row[PATH_FIRST].u64)
		row[PATH_FIRST].u64 = sum.first_ns;
	return ST_OK;
}

static enum status stacks_end(struct accumulator *f, struct error *err)
{
	uint32_t count = paths_count(f);
	RELEASED_BY(vec_release) uint32_t *processes = paths_processes(f);
	RELEASED_BY(vec_release) uint64_t *hashes = calloc(count, sizeof(*hashes));
	RELEASED_BY(vec_release) bool *used = paths_used(f);

	if (!processes || !hashes || !used)
		return fail_memory(err);
	for (uint32_t i = 1; i < count; i++)
		if (used[i])
			TRY(end_path(f, i, processes[i], hashes, err));
	return ST_OK;
}

/* ---- the tree of all inputs ---------------------------------------------------------------- */

enum { TREE_DEPTH_MAX = 1 << 16 };
struct tree_node {
	const union value *row;        /* row of the table; borrowed */
	const struct tree_node *above; /* parent; NULL: a root, or too deep by damage */
};

/* Builds a tree for each rank from the rows of the table `paths`. The caller frees *out. */
static enum status tree_take(struct tables *all, struct tree_node **out, struct error *err)
{
	struct table *rows = tables_find(all, "paths");
	size_t count = table_count(rows);

	TRY(vec_new(out, count + 1, err));
	struct tree_node *nodes = *out;
	for (size_t i = 0; i < count; i++)
		nodes[i].row = table_at(rows, i);
	for (size_t first = 0, end; first < count; first = end) {
		end = table_group_end(rows, first, RANK_KEYS);
		for (size_t i = first; i < end; i++) {
			uint64_t above = nodes[i].row[PATH_ABOVE].u64;
			size_t at;
			SEARCH(at, above == NO_U64 ? end : first, end,
			       nodes[at].row[PATH_NODE].u64 < above);

			if (at < end && nodes[at].row[PATH_NODE].u64 == above)
				nodes[i].above = &nodes[at];
		}
	}
	for (size_t i = 0; i < count; i++) {
		size_t depth = 0;

		for (const struct tree_node *n = &nodes[i]; n->above && depth <= count; depth++)
			n = n->above;
		if (depth > count || depth > TREE_DEPTH_MAX) /* a circle, or too deep */
			nodes[i].above = NULL;
	}
	return ST_OK;
}

static bool tree_is(const struct tree_node *n, enum path_class class)
{
	return !strcmp(n->row[PATH_CLASS].text, class_words[class]);
}

/* ---- the hottest ---------------------------------------------------------------------------- */

enum { HOTTEST = 100 }; /* of each rank, by each measure */
static const size_t measures[] = { PATH_GPU, PATH_IDLE_NS, PATH_HOST, PATH_BYTES };
enum { MEASURES = 4 };
struct stack {
	uint64_t gpu_ns, idle_ns, host_ns, bytes; /* in the order of `measures` */
	uint64_t rank;                            /* index of the first row of its rank */
	uint64_t node;
	bool is_hot;
};

static void put_stack(const struct tree_node *n, struct buf *out)
{
	if (!n->above)
		return;
	put_stack(n->above, out);
	if (n->above->above)
		buf_put_byte(out, ';');
	if (n->row[PATH_NAME].text)
		buf_put_text(out, n->row[PATH_NAME].text);
	else
		buf_putf(out, "(%s)", n->row[PATH_CLASS].text);
}

static enum status stack_row(struct tables *all, const struct tree_node *n, const struct stack *s,
			     uint64_t whole_ns, struct buf *text, struct error *err)
{
	union value keys[STACK_PATH + 1], *row;

	buf_clear(text);
	put_stack(n, text);
	if (!text->len)
		buf_put_text(text, "(no range)");
	keys[STACK_PATH].text = buf_text(text);
	TRY(buf_status(text, err));
	for (size_t i = 0; i < RANK_KEYS; i++)
		keys[i] = n->row[i];
	TRY(table_row(tables_find(all, "stacks"), keys, &row, err));
	/* Paths that differ only in classes of ranges share a row. */
	uint64_t *cells[] = { &row[STACK_GPU].u64, &row[STACK_IDLE].u64, &row[STACK_HOST].u64,
			      &row[STACK_BYTES].u64, &row[STACK_CALLS].u64 };
	const uint64_t values[] = { s->gpu_ns, s->idle_ns, s->host_ns, s->bytes,
				    n->row[PATH_CALLS].u64 };
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		*cells[i] = (*cells[i] == NO_U64 ? 0 : *cells[i]) + values[i];
	row[STACK_PCT].f64 = percent_of(row[STACK_GPU].u64, whole_ns);
	return ST_OK;
}

/* Sums up the rows. Leaves for work and idle time are added to the range around them. */
static void stacks_sum(const struct tree_node *tree, size_t count, struct stack *all)
{
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		const struct tree_node *n = &tree[i];
		bool is_leaf = tree_is(n, PATH_WORK) || tree_is(n, PATH_IDLE);
		struct stack *s = &all[is_leaf && n->above ? (size_t)(n->above - tree) : i];
		uint64_t *values = &s->gpu_ns;

		if (i && memcmp(n->row, tree[i - 1].row, RANK_KEYS * sizeof(n->row[0])) != 0)
			first = i;
		all[i].rank = first;
		all[i].node = i;
		for (size_t k = 0; k < MEASURES; k++)
			values[k] += n->row[measures[k]].u64;
	}
}

static enum status stacks_rows(struct tables *all, const struct tree_node *tree, size_t count,
			       struct stack *stacks, struct error *err)
{
	const struct sort_key *const orders[] = {
		SORT_KEYS(UP(struct stack, rank), DOWN(struct stack, gpu_ns),
			  UP(struct stack, node)),
		SORT_KEYS(UP(struct stack, rank), DOWN(struct stack, idle_ns),
			  UP(struct stack, node)),
		SORT_KEYS(UP(struct stack, rank), DOWN(struct stack, host_ns),
			  UP(struct stack, node)),
		SORT_KEYS(UP(struct stack, rank), DOWN(struct stack, bytes),
			  UP(struct stack, node)),
	};
	RELEASED_BY(buf_release) struct buf text;

	buf_init(&text, (size_t)1 << 20);
	for (size_t k = 0; k < MEASURES; k++) {
		size_t place = 0;

		sort_rows(stacks, count, sizeof(*stacks), orders[k]);
		for (size_t i = 0; i < count; i++, place++) {
			place = i && stacks[i].rank != stacks[i - 1].rank ? 0 : place;
			stacks[i].is_hot |= place < HOTTEST && (&stacks[i].gpu_ns)[k] > 0;
		}
	}
	for (size_t first = 0, end; first < count; first = end) {
		uint64_t whole_ns = 0;
		for (end = first; end < count && stacks[end].rank == stacks[first].rank; end++)
			whole_ns += stacks[end].gpu_ns;
		for (size_t i = first; i < end; i++)
			if (stacks[i].is_hot)
				TRY(stack_row(all, &tree[stacks[i].node], &stacks[i], whole_ns,
					      &text, err));
	}
	return ST_OK;
}

static enum status stacks_finish(struct tables *all, struct error *err)
{
	size_t count = table_count(tables_find(all, "paths"));
	RELEASED_BY(vec_release) struct tree_node *tree = NULL;
	RELEASED_BY(vec_release) struct stack *stacks = NULL;

	TRY(tree_take(all, &tree, err));
	TRY(vec_new(&stacks, count + 1, err));
	stacks_sum(tree, count, stacks);
	return stacks_rows(all, tree, count, stacks, err);
}

const struct report_type report_stacks = {
	.name = "stacks",
	.help = "call paths with the most GPU time, host time, idle time caused, and memory",
	.tables = TABLES(&table_paths, &table_stacks),
	.state_size = sizeof(struct path_sums),
	.shares_state = true,
	.needs_owners = true,
	.put = paths_put,
	.end = stacks_end,
	.release = paths_release,
	.finish = stacks_finish,
};
