/* SPDX-License-Identifier: Apache-2.0 */
/* The reports `modules` and `stacks` in a terminal: time by place in the model. */
#include "analyze/format/page/internal.h"

enum { MODULE_LINES = 40, STACK_LINES = 15, STACK_FRAMES = 3 };

struct module_line {
	size_t row;
	uint64_t first_ns, weight_ns; /* GPU time, or host time if there is no GPU work */
	const char *path;
	bool is_shown;
};

/* Returns the last part of a path, indented by its depth: "  Linear_3". */
static const char *module_text(const char *path, struct blocks *b)
{
	const char *last = path;
	int depth = 0;

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		depth++;
		last = at + 1;
	}
	return blocks_text(b, "%*s%.400s", depth < 16 ? depth : 16, "", last);
}

static void modules_of_rank(const struct page *p, size_t rank, struct blocks *b)
{
	static const char *const times[] = { "forward_gpu_ns", "backward_gpu_ns",
					     "recompute_gpu_ns", "idle_ns", "host_ns" };
	const struct time_unit ms = { 1e6, 2, "ms" };
	const struct block_column columns[] = {
		{ .title = "module", .width = 38 },  { .title = "forward", .end = 48 },
		{ .title = "backward", .end = 58 },  { .title = "recompute", .end = 68 },
		{ .title = "GPU waits", .end = 79 }, { .title = "host", .end = 89 },
		{ .title = "memory", .end = 100 },
	};
	struct view v = page_of_rank(p, "modules", rank);
	struct module_line *all = blocks_take(b, v.count, sizeof(*all));
	uint64_t steps = view_u64(&p->ranks, rank, "window_steps");
	double share = steps && steps != NO_U64 ? 1 / (double)steps : 1;

	if (!all)
		return;
	/* Show the modules with most time, in the order of their first calls. */
	bool has_gpu = page_sum(&v, "gpu_self_ns") > 0;

	for (size_t i = 0; i < v.count; i++)
		all[i] = (struct module_line){
			.row = i,
			.first_ns = view_u64(&v, i, "first_ns"),
			.path = view_text(&v, i, "path"),
			.weight_ns = !has_gpu ? view_u64(&v, i, "host_ns")
					      : view_u64(&v, i, "forward_gpu_ns") +
							view_u64(&v, i, "backward_gpu_ns") +
							view_u64(&v, i, "recompute_gpu_ns"),
		};
	SORT_BY(all, v.count, DOWN(struct module_line, weight_ns), UP(struct module_line, path));
	for (size_t i = 0; i < v.count && i < MODULE_LINES; i++)
		all[i].is_shown = true;
	SORT_BY(all, v.count, UP(struct module_line, first_ns), UP(struct module_line, path));
	add_section(b, "Modules",
		    blocks_text(b, "ms of GPU time%s%s%s", share < 1 ? " per step" : "",
				p->ranks.count > 1 ? ", " : "",
				p->ranks.count > 1 ? rank_text(p, rank, b) : ""));
	if (!v.count) {
		add_sentence(b, ROLE_NOTE, 0,
			     "This file has no modules: record with with_stack=True, or name "
			     "modules with tacho.watch() or ranges.");
		return;
	}
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < v.count; i++) {
		if (!all[i].is_shown)
			continue;
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		add_cell(r, module_text(all[i].path, b));
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++)
			add_time(b, r, share * (double)view_u64(&v, all[i].row, times[k]), &ms);
		double bytes = share * (double)view_u64(&v, all[i].row, "alloc_bytes");
		add_cell(r, bytes > 0 ? show_bytes(b, bytes) : NULL);
	}
	if (v.count > MODULE_LINES)
		add_sentencef(b, ROLE_NOTE, 0, "%zu more: --format json", v.count - MODULE_LINES);
}

void build_modules(const struct page *p, struct blocks *b)
{
	for (size_t i = 0; i < p->ranks.count && i < RANK_LINES; i++)
		modules_of_rank(p, i, b);
}

/* Returns the innermost frames, the inmost first: "aten::mm < forward < Linear_3". */
static const char *frames_text(const char *path, struct blocks *b)
{
	const char *ends[STACK_FRAMES + 1] = { path + strlen(path) }, *text = "";
	size_t count = 0;

	while (count < STACK_FRAMES && ends[count] > path) {
		const char *at = ends[count] - 1;

		while (at > path && at[-1] != ';')
			at--;
		text = blocks_text(b, "%s%s%.*s", text, count ? " < " : "",
				   (int)(ends[count] - at < 200 ? ends[count] - at : 200), at);
		ends[++count] = at > path ? at - 1 : path;
	}
	return text;
}

static void stacks_by(const struct page *p, const struct view *v, const char *column,
		      const char *title, struct blocks *b)
{
	const struct time_unit ms = { 1e6, 2, "ms" };
	const struct block_column columns[] = {
		{ .title = p->steps > 1 ? "ms/step" : "ms", .end = 10 },
		{ .title = "%", .end = 17 },
		{ .title = "path, the innermost range first", .at = 20, .width = LINE_WIDTH - 20 },
	};
	bool is_bytes = !strcmp(column, "alloc_bytes");
	struct module_line *all = blocks_take(b, v->count, sizeof(*all));
	struct view nodes = page_view(p, "paths");
	uint64_t whole = page_sum(&nodes, column);

	if (!all || !whole)
		return;
	for (size_t i = 0; i < v->count; i++)
		all[i] = (struct module_line){ .row = i,
					       .weight_ns = view_u64(v, i, column),
					       .path = view_text(v, i, "path") };
	SORT_BY(all, v->count, DOWN(struct module_line, weight_ns), UP(struct module_line, path));
	add_section(b, title, NULL);
	struct block_table *t = ADD_TABLE(b, columns);
	if (is_bytes)
		t->columns[0].title = "memory";
	for (size_t i = 0; i < v->count && i < STACK_LINES && all[i].weight_ns; i++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		double value = per_step(p, all[i].weight_ns);

		if (is_bytes)
			add_cell(r, show_bytes(b, value));
		else
			add_time(b, r, value, &ms);
		uint64_t part = all[i].weight_ns < whole ? all[i].weight_ns : whole;

		add_percent(b, r, (int)((double)part * 1000 / (double)whole + 0.5));
		add_cell(r, frames_text(all[i].path, b))->token = TOKEN_DIM;
	}
}

void build_stacks(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "stacks");

	stacks_by(p, &v, "gpu_ns", "Paths by GPU time", b);
	stacks_by(p, &v, "idle_ns", "Paths that make the GPU wait", b);
	stacks_by(p, &v, "host_ns", "Paths by host time", b);
	stacks_by(p, &v, "alloc_bytes", "Paths by memory allocated", b);
}
