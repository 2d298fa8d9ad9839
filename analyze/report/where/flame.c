/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boxes of two flame graphs: GPU time by path, and idle time by the path that causes it.
 *
 * Frames of the framework's Python code and frames that are too short are left out; their children
 * are placed directly under the frame around them.
 */
#include "analyze/report/where/where.h"

#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

TABLE_TYPE(flame, FLAME_COLUMNS, .nest = NEST_NEVER, .is_picture = true);

enum { BOXES_MOST = 600, DEPTH_MOST = 48, LEAST_OF_WHOLE = 500 /* narrower boxes are not drawn */ };

struct box {
	uint32_t above, node, depth; /* above: 0: the whole */
	uint64_t ns, at_ns, used_ns; /* used_ns: of the children that are placed */
};
struct flame {
	struct box *boxes; /* parents come first; 0 is the whole */
	size_t count, cap;
	struct map by_name; /* parent and name to the index of a box */
	uint32_t *of;       /* by node: index of its box */
};

static void flame_release(struct flame *all)
{
	free(all->boxes);
	free(all->of);
	map_release(&all->by_name);
}

static bool is_shown(const struct accumulator *f, const struct path_node *node, bool has_many)
{
	const char *name = trace_text(f->trace, node->name, NULL);

	if (node->class == PATH_ROOT)
		return has_many;
	if (node->class == RANGE_OP)
		return strncmp(name, "autograd::engine::", 18) != 0;
	return !path_is_framework(f->trace, node);
}

static enum status box_of(struct accumulator *f, struct flame *all, uint32_t at, bool has_many,
			  struct error *err)
{
	const struct path_node *node = trace_get_path(f->trace, at);
	uint32_t above = all->of[node->parent];
	bool is_new;

	all->of[at] = above;
	if (!is_shown(f, node, has_many) || all->boxes[above].depth >= DEPTH_MOST)
		return ST_OK;
	uint64_t *number = map_put(
		&all->by_name,
		hash_word(hash_word(0, (uint64_t)above << 32 | node->name), node->class), &is_new);
	if (!number)
		return fail_memory(err);
	if (is_new) {
		*number = all->count;
		TRY(vec_reserve(&all->boxes, &all->cap, all->count + 1, err));
		all->boxes[all->count++] = (struct box){ .above = above,
							 .node = at,
							 .depth = all->boxes[above].depth + 1 };
	}
	all->of[at] = (uint32_t)*number;
	return ST_OK;
}

static const char *box_class(struct accumulator *f, const struct path_node *node)
{
	switch (node->class) {
	case RANGE_OP:
		return "operator";
	case RANGE_PYTHON:
		return path_module(f->trace, node) ? "module" : "python";
	case PATH_WORK:
		return sweep_communicates(f->sweep, node->name) ? "comm" : "kernel";
	case PATH_IDLE:
		return "idle";
	case PATH_BACKWARD:
	case PATH_RECOMPUTE:
		return "mark";
	default:
		return "range";
	}
}

static enum status put_box(struct accumulator *f, const char *kind, const struct box *box,
			   struct error *err)
{
	const struct path_node *node = trace_get_path(f->trace, box->node);

	union value keys[FLAME_CLASS + 1], *row;
	char idle[IDLE_TEXT];
	RELEASED_BY(buf_release) struct buf name;

	buf_init(&name, (size_t)1 << 16);
	if (node->class == PATH_IDLE) {
		paths_idle_text(f, node, idle);
		buf_put_text(&name, idle);
	} else if (path_module(f->trace, node)) {
		buf_put_text(&name, path_module(f->trace, node));
	} else {
		path_frame(f->trace, node, &name);
	}
	keys[FLAME_KIND].text = kind;
	keys[FLAME_DEPTH].u64 = box->depth;
	keys[FLAME_AT].u64 = box->at_ns;
	keys[FLAME_NAME].text = buf_text(&name);
	keys[FLAME_CLASS].text = box_class(f, node);
	TRY(buf_status(&name, err));
	TRY(table_row(tables_find(f->tables, "flame"), keys, &row, err));
	row[FLAME_NS].u64 += box->ns;
	return ST_OK;
}

static enum status put_boxes(struct accumulator *f, const char *kind, struct flame *all,
			     struct error *err)
{
	struct box *boxes = all->boxes;
	union value keys[FLAME_CLASS + 1] = { { .text = kind } }, *row;

	for (size_t i = all->count; i-- > 1;)
		boxes[boxes[i].above].ns += boxes[i].ns;
	if (!boxes[0].ns)
		return ST_OK;
	keys[FLAME_NAME].text = keys[FLAME_CLASS].text = "";
	TRY(table_row(tables_find(f->tables, "flame"), keys, &row, err));
	row[FLAME_NS].u64 += boxes[0].ns;
	for (size_t i = 1, shown = 0; i < all->count; i++) {
		struct box *box = &boxes[i], *above = &boxes[box->above];

		box->at_ns = above->at_ns + above->used_ns;
		above->used_ns += box->ns;
		if (box->ns < boxes[0].ns / LEAST_OF_WHOLE || !box->ns || shown == BOXES_MOST)
			continue;
		shown++;
		TRY(put_box(f, kind, box, err));
	}
	return ST_OK;
}

static enum status flame_of(struct accumulator *f, const struct path_sums *sums, bool is_idle,
			    struct error *err)
{
	uint32_t count = paths_count(f), processes = 0;
	RELEASED_BY(flame_release) struct flame all = { .count = 1 };

	TRY(vec_new(&all.of, count, err));
	TRY(vec_reserve(&all.boxes, &all.cap, 1, err));
	for (uint32_t i = 1; i < count; i++)
		processes += trace_get_path(f->trace, i)->class == PATH_ROOT;
	for (uint32_t i = 1; i < count; i++) {
		struct path_sum sum = paths_at(sums, i);

		TRY(box_of(f, &all, i, processes > 1, err));
		all.boxes[all.of[i]].ns += is_idle ? sum.idle_ns : sum.gpu_ns;
	}
	return put_boxes(f, is_idle ? "idle" : "gpu", &all, err);
}

enum status flame_end(struct accumulator *f, const struct path_sums *sums, struct error *err)
{
	if (f->pictures != PICTURES_FINE)
		return ST_OK;
	TRY(flame_of(f, sums, false, err));
	return flame_of(f, sums, true, err);
}
