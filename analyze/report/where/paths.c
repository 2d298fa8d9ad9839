/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/where/where.h"

#include "analyze/findings/rule.h"

#include <stdlib.h>

enum status paths_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	struct path_sums *s = f->state;
	struct path_sum *sum;

	s->context = f->context;
	for (size_t i = 0; i < w->in->count; i++)
		TRY(path_sums_put(s, f->trace, &w->in->events[i], err));
	for (size_t i = 0; i < w->idle_count; i++) {
		const struct idle_segment *one = &w->idle[i];
		uint32_t path = one->path;

		if (!path)
			path = trace_path(f->trace, 0, sweep_gpu(f->sweep, one->gpu).process,
					  PATH_ROOT);
		bool is_long =
			one->cause == CAUSE_LAUNCH && one->end_ns - one->begin_ns >= LONG_CALL_NS;
		uint32_t detail = one->cause == CAUSE_HOST ? one->phase : is_long;
		TRY(path_sums_leaf(s, f->trace, path, (uint32_t)one->cause << 8 | detail, PATH_IDLE,
				   &sum, err));
		sum->idle_ns += one->end_ns - one->begin_ns;
	}
	return ST_OK;
}

void paths_release(struct accumulator *f)
{
	path_sums_release(f->state);
}

uint32_t paths_count(const struct accumulator *f)
{
	return trace_count(f->trace, TRACE_PATHS) + 1;
}

struct path_sum paths_at(const struct path_sums *s, uint32_t node)
{
	return node < s->cap ? s->items[node] : (struct path_sum){ 0 };
}

uint32_t *paths_processes(const struct accumulator *f)
{
	uint32_t count = paths_count(f), *processes = calloc(count, sizeof(*processes));

	for (uint32_t i = 1; processes && i < count; i++) {
		const struct path_node *node = trace_get_path(f->trace, i);

		processes[i] = node->parent ? processes[node->parent] : node->name;
	}
	return processes;
}

void paths_idle_text(const struct accumulator *f, const struct path_node *leaf, char out[IDLE_TEXT])
{
	cause_text(f, (enum cause)(leaf->name >> 8), leaf->name & 255, out, IDLE_TEXT);
}
