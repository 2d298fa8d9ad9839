/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs of an HTML page: where GPU time goes, and what makes GPUs wait. */
#include "analyze/format/page/internal.h"

static void add_flame(const struct page *p, const struct view *v, const char *kind,
		      const char *title, const char *note, struct blocks *b)
{
	struct flame_box *boxes = blocks_take(b, v->count, sizeof(*boxes));
	uint64_t whole_ns = 0;
	size_t count = 0, depth = 0;

	if (!boxes)
		return;
	for (size_t i = 0; i < v->count; i++) {
		uint64_t at = view_u64(v, i, "depth");

		if (strcmp(view_text(v, i, "kind"), kind) != 0)
			continue;
		if (!at) {
			whole_ns = view_u64(v, i, "ns");
			continue;
		}
		depth = at > depth && at < 256 ? at : depth;
		boxes[count++] = (struct flame_box){ .name = view_text(v, i, "name"),
						     .class = view_text(v, i, "class"),
						     .depth = at,
						     .at_ns = (double)view_u64(v, i, "at_ns"),
						     .ns = (double)view_u64(v, i, "ns") };
	}
	if (!count || !whole_ns)
		return;
	add_section(b, title, note);
	struct block *block = add_block(b, BLOCK_FLAME);
	block->flame.boxes = boxes;
	block->flame.count = count;
	block->flame.depth = depth;
	block->flame.whole_ns = (double)whole_ns;
	block->flame.steps = (double)p->window_steps;
	block->flame.of = p->has_steps ? "per step" : "in the window";
}

void build_flame(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "flame");

	add_flame(p, &v, "gpu", "Where",
		  "GPU time by what launched it; from the outermost frame down", b);
	if (page_sum(&p->trust, "launches")) /* without launches no cause is known */
		add_flame(p, &v, "idle", "Who makes the GPU wait",
			  "Idle time of the GPU by what it waits for", b);
}
