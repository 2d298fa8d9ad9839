/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the captured call for each work of a replayed graph. */
#include "analyze/report/operators/captures.h"

#include "convert/name/name.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { COMPARED_MAX = 64 << 20 }; /* limit of comparisons of names of a launch and of a capture */

struct capture { /* a range of rows of graph_nodes */
	size_t first, end;
	uint64_t size;
};
struct joined {
	struct table *nodes, *work;
	struct capture *captures; /* captures of the current rank */
	size_t count, cap;
	size_t *node_of; /* by work of a launch: index of its row in graph_nodes; SIZE_MAX: none */
	size_t node_cap;
};

/* Returns whether a work may belong to a captured call, by its name. */
static bool is_of(const union value *node, const union value *work)
{
	const char *name = work[REPLAYED_NAME].text;

	if (!node[NODE_KERNEL].text)
		return strcmp(name, "Memcpy") != 0 && strcmp(name, "Memset") != 0;
	return !strcmp(node[NODE_KERNEL].text, name);
}

static bool is_equal(struct joined *j, const struct capture *c, size_t first, size_t end)
{
	if (c->end - c->first != end - first)
		return false;
	for (size_t i = 0; i < end - first; i++)
		if (!is_of(table_at(j->nodes, c->first + i), table_at(j->work, first + i)))
			return false;
	return true;
}

/* Joins names that occur equally often in the launch and in the capture, in their order; for other
 * names the order is unknown. Returns how many were joined. */
static size_t join_names(struct joined *j, const struct capture *c, size_t first, size_t end)
{
	size_t found = 0, count = end - first;

	if (count * (c->end - c->first + count) > COMPARED_MAX)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const union value *work = table_at(j->work, first + i);
		size_t before = 0, all = 0, nodes = 0, at = SIZE_MAX;

		for (size_t k = 0; k < count; k++) {
			const union value *other = table_at(j->work, first + k);
			bool is_same = other[REPLAYED_NAME].text == work[REPLAYED_NAME].text;

			all += is_same;
			before += is_same && k < i;
		}
		for (size_t k = c->first; k < c->end; k++) {
			const union value *node = table_at(j->nodes, k);

			if (!node[NODE_KERNEL].text || !is_of(node, work))
				continue;
			if (nodes++ == before)
				at = k;
		}
		j->node_of[i] = nodes == all ? at : SIZE_MAX;
		found += nodes == all;
	}
	return found;
}

/* Returns the least size of a capture that is enough for a step of size `wanted`; NO_U64: none. */
static uint64_t size_for(const struct joined *j, uint64_t wanted)
{
	uint64_t least = NO_U64;

	for (size_t i = 0; i < j->count && wanted != NO_U64; i++)
		if (j->captures[i].size >= wanted && j->captures[i].size < least)
			least = j->captures[i].size;
	return least;
}

/* Finds the capture of the launch whose work is in rows [first, end). Prefers one for the step's
 * size, at the same place, with the same names; then another place; then the one with most of the
 * names. */
static void join_launch(struct joined *j, size_t first, size_t end)
{
	const union value *work = table_at(j->work, first);
	uint64_t sizes[2] = { size_for(j, work[REPLAYED_TOKENS].u64),
			      size_for(j, work[REPLAYED_BATCH].u64) };
	const struct capture *best = NULL;
	bool is_known = sizes[0] != NO_U64 || sizes[1] != NO_U64, is_equal_one = false;
	size_t place = 0, most = 0;

	for (size_t i = 0; i < j->count; i++) {
		const struct capture *c = &j->captures[i];

		if (is_known && c->size != sizes[0] && c->size != sizes[1])
			continue;
		bool is_here = place++ == work[REPLAYED_PLACE].u64;
		if ((is_known && is_equal_one && !is_here) || !is_equal(j, c, first, end))
			continue;
		if (is_equal_one && !is_known && c->size != best->size)
			goto unknown; /* captures of several sizes match */
		if (is_equal_one && !is_here)
			continue;
		best = c;
		is_equal_one = true;
	}
	for (size_t i = 0; !is_equal_one && i < j->count; i++) {
		const struct capture *c = &j->captures[i];
		bool is_size = !is_known || c->size == sizes[0] || c->size == sizes[1];
		size_t found = is_size ? join_names(j, c, first, end) : 0;

		if (found > most) {
			most = found;
			best = c;
		}
	}
	if (best && !is_equal_one)
		join_names(j, best, first, end);
	for (size_t i = 0; is_equal_one && i < end - first; i++)
		j->node_of[i] = best->first + i;
	if (best)
		return;
unknown:
	for (size_t i = 0; i < end - first; i++)
		j->node_of[i] = SIZE_MAX;
}

/* Lists the captures of the same rank; if the files have no common rank, those of the first one. */
static enum status captures_of(struct joined *j, const union value *rank, struct error *err)
{
	const union value *row;

	for (int any = 0; any < 2; any++) {
		j->count = 0;
		for (size_t i = 0; (row = table_at(j->nodes, i));
		     i = table_group_end(j->nodes, i, NODE_SIZE + 1)) {
			if (!any && row[0].u64 != rank[0].u64)
				continue;
			if (any && memcmp(row, table_at(j->nodes, 0), RANK_KEYS * sizeof(*row)))
				break;
			TRY(vec_reserve(&j->captures, &j->cap, j->count + 1, err));
			j->captures[j->count++] = (struct capture){
				.first = i,
				.end = table_group_end(j->nodes, i, NODE_SIZE + 1),
				.size = row[NODE_SIZE].u64,
			};
		}
		if (j->count)
			break;
	}
	return ST_OK;
}

/* Adds work to the columns of CAPTURED_COLUMNS in a row of `operators` or `operator_shapes`. */
static enum status add(struct tables *all, const char *table, const union value *keys,
		       const union value *work, bool is_inner, bool is_first, struct error *err)
{
	struct table *t = tables_find(all, table);
	size_t at = table_column(t, "capture_kernels");
	union value *row;

	TRY(table_row(t, keys, &row, err));
	for (size_t i = at; i < at + 3; i++)
		row[i].u64 = row[i].u64 == NO_U64 ? 0 : row[i].u64;
	row[at].u64 += is_inner ? work[REPLAYED_COUNT].u64 : 0;
	row[at + 1].u64 += is_inner ? work[REPLAYED_NS].u64 : 0;
	row[at + 2].u64 += is_first ? work[REPLAYED_NS].u64 : 0;
	return ST_OK;
}

/* Returns whether a text begins one of the texts before `end`, each of which ends with
 * OPERATOR_END. */
static bool stands_before(const char *all, const char *end, const char *text, size_t len)
{
	for (; all < end; all = strchr(all, OPERATOR_END) + 1)
		if (!strncmp(all, text, len))
			return true;
	return false;
}

/* Adds work to the modules around its call; `path` ends with the innermost. */
static enum status give_modules(struct tables *all, const char *path, const union value *work,
				struct buf *text, struct error *err)
{
	struct table *t = tables_find(all, "modules");
	union value keys[RANK_KEYS + 1], *row;
	size_t at = t ? table_column(t, "capture_gpu_ns") : 0, len = strlen(path);

	memcpy(keys, work, RANK_KEYS * sizeof(*keys));
	for (size_t i = 1; t && i <= len; i++) {
		if (path[i] && path[i] != '/')
			continue;
		buf_clear(text);
		buf_put(text, path, i);
		keys[RANK_KEYS].text = buf_text(text);
		TRY(buf_status(text, err));
		TRY(table_row(t, keys, &row, err));
		row[at].u64 = (row[at].u64 == NO_U64 ? 0 : row[at].u64) + work[REPLAYED_NS].u64;
	}
	return ST_OK;
}

/* Adds work to the operators around its call. */
static enum status give(struct tables *all, const union value *node, const union value *work,
			struct buf *fields, struct error *err)
{
	const char *operators = node[NODE_OPERATORS].text, *at = operators, *end;
	union value keys[RANK_KEYS + 4];

	memcpy(keys, work, RANK_KEYS * sizeof(*keys));
	for (; (end = strchr(at, OPERATOR_END)); at = end + 1) {
		const char *shapes = memchr(at, FIELD_END, (size_t)(end - at));
		const char *types = shapes ? strchr(shapes + 1, FIELD_END) : NULL;
		bool is_inner = at == operators;

		if (!types || types > end)
			break;
		buf_clear(fields);
		buf_put(fields, at, (size_t)(end - at));
		buf_put_byte(fields, '\0');
		TRY(buf_status(fields, err));
		char *text = (char *)fields->data;
		text[shapes - at] = text[types - at] = '\0';
		keys[RANK_KEYS].text = text;
		keys[RANK_KEYS + 1].text = operator_category(text);
		keys[RANK_KEYS + 2].text = types > shapes + 1 ? text + (shapes + 1 - at) : NULL;
		keys[RANK_KEYS + 3].text = end > types + 1 ? text + (types + 1 - at) : NULL;
		TRY(add(all, "operators", keys, work, is_inner,
			!stands_before(operators, at, at, (size_t)(shapes + 1 - at)), err));
		TRY(add(all, "operator_shapes", keys, work, is_inner,
			!stands_before(operators, at, at, (size_t)(end + 1 - at)), err));
	}
	return give_modules(all, node[NODE_MODULE].text, work, fields, err);
}

static void joined_release(struct joined *j)
{
	free(j->captures);
	free(j->node_of);
}

enum status captures_finish(struct tables *all, struct error *err)
{
	RELEASED_BY(buf_release) struct buf fields;
	RELEASED_BY(joined_release)
	struct joined j = { .nodes = tables_find(all, "graph_nodes"),
			    .work = tables_find(all, "graph_work") };
	struct table *graphs = tables_find(all, "graphs");
	union value *row, *graph;
	buf_init(&fields, (size_t)64 << 20);
	for (size_t i = 0; (row = table_at(graphs, i)); i++)
		row[GRAPH_FOUND].u64 = row[GRAPH_FOUND_NS].u64 = 0;
	for (size_t i = 0, end; table_count(j.nodes) && (row = table_at(j.work, i)); i = end) {
		end = table_group_end(j.work, i, REPLAYED_SEQUENCE + 1);
		TRY(vec_reserve(&j.node_of, &j.node_cap, end - i, err));
		TRY(captures_of(&j, row, err));
		TRY(table_have(graphs, row, &graph, err));
		join_launch(&j, i, end);
		for (size_t k = i; k < end; k++) {
			if (j.node_of[k - i] == SIZE_MAX)
				continue;
			row = table_at(j.work, k);
			graph[GRAPH_FOUND].u64 += row[REPLAYED_COUNT].u64;
			graph[GRAPH_FOUND_NS].u64 += row[REPLAYED_NS].u64;
			TRY(give(all, table_at(j.nodes, j.node_of[k - i]), row, &fields, err));
		}
	}
	for (size_t i = 0; (row = table_at(graphs, i)); i++)
		row[GRAPH_PCT].f64 = percent_of(row[GRAPH_FOUND].u64, row[GRAPH_WORK].u64);
	return ST_OK;
}
