/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/where/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status paths_take(struct path_sums *s, struct accumulator *f, const struct sorted_batch *w,
		       struct error *err)
{
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
		TRY(path_sums_leaf(s, f->trace, path,
				   (uint32_t)one->cause << 8 |
					   (one->cause == CAUSE_HOST ? one->phase : 0),
				   PATH_IDLE, &sum, err));
		sum->idle_ns += one->end_ns - one->begin_ns;
	}
	return ST_OK;
}

enum status paths_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	return paths_take(f->state, f, w, err);
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

const char *paths_module(const struct trace *t, const struct path_node *node)
{
	static const char prefix[] = "nn.Module: ";
	const char *name = trace_text(t, node->name, NULL);

	if (node->class != RANGE_PYTHON || strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	return name + sizeof(prefix) - 1;
}

bool paths_line(const char *function, char out[PATH_LINE_TEXT])
{
	static const char *const frameworks[] = { "torch/", "jax/", "contextlib.py", "threading.py",
						  "<frozen" };
	const char *line = strstr(function, ".py("), *file = function;
	int number = 0;

	if (!line || sscanf(line, ".py(%d)", &number) != 1)
		return false;
	for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++) {
		const char *at = strstr(function, frameworks[i]);

		if (at && (at == function || at[-1] == '/'))
			return false;
	}
	for (const char *at = function; at < line; at++)
		file = *at == '/' ? at + 1 : file;
	snprintf(out, PATH_LINE_TEXT, "%.*s.py:%d", (int)(line - file < 80 ? line - file : 80),
		 file, number);
	return true;
}
