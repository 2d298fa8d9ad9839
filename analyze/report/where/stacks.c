/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths (DEFINITIONS.md 8): the calling-context tree of each rank, a row for each node, and
 * the paths with most of what is counted.
 *
 * A node is named by a number that its path alone decides, so that the trees of several inputs add
 * up by their rows.
 */
#include "analyze/report/where/tree.h"

#include "analyze/report/where/paths.h"
#include "schemas/base/hash.h"
#include "schemas/base/sort.h"

#include <stdlib.h>
#include <string.h>

static RANK_TABLE_TYPE(paths, &table_ranks, PATH_COLUMNS, .null_texts = "name");

#define STACK_COLUMNS(X)                                                                           \
	X(STACK_PATH = RANK_KEYS, "path", "path", TEXT, KEY,                                       \
	  "ranges from the outermost to the innermost, with semicolons between them")              \
	X(STACK_GPU, "gpu_ns", "GPU", U64, DERIVED, "GPU work launched there, overlaps twice")     \
	X(STACK_PCT, "gpu_pct", "%", F64, DERIVED, "of the rank's GPU work", .of = "GPU")          \
	X(STACK_IDLE, "idle_ns", "GPU waits", U64, DERIVED, "idle time of GPUs that it makes")     \
	X(STACK_HOST, "host_ns", "host", U64, DERIVED,                                             \
	  "time of host threads in its innermost range")                                           \
	X(STACK_BYTES, "alloc_bytes", "memory", U64, DERIVED, "taken there, freed again or not")   \
	X(STACK_CALLS, "calls", "calls", U64, DERIVED, "of its innermost range")
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

/* So that a reader which has numbers of JSON as doubles keeps it whole; never 0. */
static uint64_t node_number(uint64_t hash)
{
	return (hash >> 11) | 1;
}

/* Whether a node or one below it has anything. */
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
	uint32_t count = paths_count(f), *processes = paths_processes(f);
	uint64_t *hashes = calloc(count, sizeof(*hashes));
	bool *used = paths_used(f);
	enum status status = processes && hashes && used ? ST_OK : fail_memory(err);

	for (uint32_t i = 1; i < count && status == ST_OK; i++)
		if (used[i])
			status = end_path(f, i, processes[i], hashes, err);
	free(processes);
	free(hashes);
	free(used);
	return status;
}

/* ---- the tree of all inputs ---------------------------------------------------------------- */

static int compare_depth(const void *a, const void *b)
{
	const struct tree_node *x = *(struct tree_node *const *)a,
			       *y = *(struct tree_node *const *)b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Damage may make a row its own ancestor: such a row has no parent. */
static void tree_depths(struct tree *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct tree_node *node = &t->nodes[i];
		size_t depth = 0, most = t->count < TREE_DEPTH_MAX ? t->count : TREE_DEPTH_MAX;

		for (const struct tree_node *n = node; n->above && depth <= most; depth++)
			n = n->above;
		if (depth > most)
			node->above = NULL;
		node->depth = depth > most ? 0 : (uint32_t)depth;
	}
}

enum status tree_take(struct tables *all, struct tree *t, struct error *err)
{
	struct table *rows = tables_find(all, "paths");
	size_t count = table_count(rows);

	*t = (struct tree){ .nodes = calloc(count + 1, sizeof(*t->nodes)),
			    .order = calloc(count + 1, sizeof(struct tree_node *)) };
	if (!t->nodes || !t->order)
		return fail_memory(err);
	t->count = count;
	for (size_t i = 0; i < count; i++)
		t->nodes[i].row = table_at(rows, i);
	for (size_t first = 0, end; first < count; first = end) {
		end = table_group_end(rows, first, RANK_KEYS);
		for (size_t i = first; i < end; i++) {
			uint64_t above = t->nodes[i].row[PATH_ABOVE].u64;
			size_t at;
			SEARCH(at, above == NO_U64 ? end : first, end,
			       t->nodes[at].row[PATH_NODE].u64 < above);

			if (at < end && t->nodes[at].row[PATH_NODE].u64 == above)
				t->nodes[i].above = &t->nodes[at];
		}
	}
	tree_depths(t);
	for (size_t i = 0; i < count; i++)
		t->order[i] = &t->nodes[i];
	qsort(t->order, count, sizeof(struct tree_node *), compare_depth);
	return ST_OK;
}

void tree_release(struct tree *t)
{
	free(t->nodes);
	free(t->order);
}

bool tree_is(const struct tree_node *n, enum path_class class)
{
	return !strcmp(n->row[PATH_CLASS].text, class_words[class]);
}

const char *tree_frame(const struct tree_node *n)
{
	const char *name = n->row[PATH_NAME].text;

	if (name)
		return name;
	return tree_is(n, PATH_BACKWARD)    ? "(backward)"
	       : tree_is(n, PATH_RECOMPUTE) ? "(recompute)"
					    : "(other)";
}

/* ---- the hottest ---------------------------------------------------------------------------- */

enum { HOTTEST = 100 }; /* of each rank, by each of the four */
static const size_t measures[] = { PATH_GPU, PATH_IDLE_NS, PATH_HOST, PATH_BYTES };
enum { MEASURES = 4 };
struct stack {
	uint64_t gpu_ns, idle_ns, host_ns, bytes; /* as in `measures` */
	uint64_t rank;                            /* the first row of its rank */
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
	buf_put_text(out, tree_frame(n));
}

static enum status stack_row(struct tables *all, const struct tree *t, const struct stack *s,
			     uint64_t whole_ns, struct buf *text, struct error *err)
{
	const struct tree_node *n = &t->nodes[s->node];
	union value keys[STACK_PATH + 1], *row;

	buf_clear(text);
	put_stack(n, text);
	if (!text->len)
		buf_put_text(text, "(no range)");
	buf_put_byte(text, '\0');
	TRY(buf_status(text, err));
	for (size_t i = 0; i < RANK_KEYS; i++)
		keys[i] = n->row[i];
	keys[STACK_PATH].text = (const char *)text->data;
	TRY(table_row(tables_find(all, "stacks"), keys, &row, err));
	/* Paths that differ in classes of ranges alone are one row. */
	uint64_t *cells[] = { &row[STACK_GPU].u64, &row[STACK_IDLE].u64, &row[STACK_HOST].u64,
			      &row[STACK_BYTES].u64, &row[STACK_CALLS].u64 };
	const uint64_t values[] = { s->gpu_ns, s->idle_ns, s->host_ns, s->bytes,
				    n->row[PATH_CALLS].u64 };
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		*cells[i] = (*cells[i] == NO_U64 ? 0 : *cells[i]) + values[i];
	row[STACK_PCT].f64 = percent_of(row[STACK_GPU].u64, whole_ns);
	return ST_OK;
}

/* Leaves of work and of idle time count for the range that they are in. */
static void stacks_sum(const struct tree *t, struct stack *all)
{
	size_t first = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct tree_node *n = &t->nodes[i];
		bool is_leaf = tree_is(n, PATH_WORK) || tree_is(n, PATH_IDLE);
		struct stack *s = &all[is_leaf && n->above ? (size_t)(n->above - t->nodes) : i];
		uint64_t *values = &s->gpu_ns;

		if (i && memcmp(n->row, t->nodes[i - 1].row, RANK_KEYS * sizeof(n->row[0])) != 0)
			first = i;
		all[i].rank = first;
		all[i].node = i;
		for (size_t k = 0; k < MEASURES; k++)
			values[k] += n->row[measures[k]].u64;
	}
}

static enum status stacks_rows(struct tables *all, const struct tree *t, struct stack *stacks,
			       struct error *err)
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
	uint64_t whole_ns = 0;
	struct buf text;
	enum status status = ST_OK;

	for (size_t k = 0; k < MEASURES; k++) {
		size_t place = 0;

		sort_rows(stacks, t->count, sizeof(*stacks), orders[k]);
		for (size_t i = 0; i < t->count; i++, place++) {
			place = i && stacks[i].rank != stacks[i - 1].rank ? 0 : place;
			stacks[i].is_hot |= place < HOTTEST && (&stacks[i].gpu_ns)[k] > 0;
		}
	}
	buf_init(&text, (size_t)1 << 20);
	for (size_t first = 0, end; first < t->count && status == ST_OK; first = end) {
		whole_ns = 0;
		for (end = first; end < t->count && stacks[end].rank == stacks[first].rank; end++)
			whole_ns += stacks[end].gpu_ns;
		for (size_t i = first; i < end && status == ST_OK; i++)
			if (stacks[i].is_hot)
				status = stack_row(all, t, &stacks[i], whole_ns, &text, err);
	}
	buf_release(&text);
	return status;
}

static enum status stacks_finish(struct tables *all, struct error *err)
{
	struct tree t;
	struct stack *stacks = NULL;
	enum status status = tree_take(all, &t, err);

	if (status == ST_OK) {
		stacks = calloc(t.count + 1, sizeof(*stacks));
		status = stacks ? ST_OK : fail_memory(err);
	}
	if (status == ST_OK) {
		stacks_sum(&t, stacks);
		status = stacks_rows(all, &t, stacks, err);
	}
	free(stacks);
	tree_release(&t);
	return status;
}

const struct report_type report_stacks = {
	.name = "stacks",
	.help = "call paths with most GPU time, host time, idle time that they make, and memory",
	.tables = TABLES(&table_paths, &table_stacks),
	.state_size = sizeof(struct path_sums),
	.needs_owners = true,
	.put = paths_put,
	.end = stacks_end,
	.release = paths_release,
	.finish = stacks_finish,
};
