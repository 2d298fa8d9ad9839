/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/path_sums.h"

#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct open_node {
	uint64_t end_ns;
	uint32_t node;
};
/* The open ranges of a thread, the outermost first.  Their ends descend from the bottom of the
 * stack to the top. */
struct path_thread {
	struct open_node *items;
	size_t count, cap;
};

static enum status sum_at(struct path_sums *s, uint32_t node, struct path_sum **out,
			  struct error *err)
{
	/* A large table is allocated once at its final size: growing it by half at a time would
	 * exceed that. */
	size_t count = node > PATHS_MAX / 2 && node < PATHS_MAX ? PATHS_MAX : (size_t)node + 1;

	TRY(vec_reserve(&s->items, &s->cap, count, err));
	*out = &s->items[node];
	return ST_OK;
}

enum status path_sums_leaf(struct path_sums *s, struct trace *t, uint32_t path, uint32_t name,
			   unsigned class, struct path_sum **out, struct error *err)
{
	uint32_t node = trace_path(t, path, name, class);

	return sum_at(s, node ? node : path, out, err);
}

static void sum_begin(struct path_sum *sum, const struct event *e)
{
	if (e->flags & EVENT_BEGAN_EARLIER)
		return;
	sum->calls++;
	if (!sum->first_ns || e->begin_ns < sum->first_ns)
		sum->first_ns = e->begin_ns;
}

/* Adds a range to the sums.  Its time is taken from the open ranges around it: from each one until
 * that one ends. */
static enum status put_range(struct path_sums *s, struct trace *t, const struct event *e,
			     struct error *err)
{
	uint64_t from_ns = e->begin_ns;
	struct path_sum *sum;

	if (e->track >= s->thread_count) {
		size_t count = (size_t)trace_count(t, TRACE_TRACKS) + 1;

		count = count > e->track ? count : (size_t)e->track + 1;
		TRY(vec_reserve(&s->threads, &s->thread_count, count, err));
	}
	struct path_thread *thread = &s->threads[e->track];
	for (size_t i = thread->count; i-- && from_ns < e->end_ns;) {
		const struct open_node *outer = &thread->items[i];
		uint64_t to_ns = outer->end_ns < e->end_ns ? outer->end_ns : e->end_ns;

		if (to_ns <= from_ns)
			continue;
		s->items[outer->node].host_ns -= (int64_t)(to_ns - from_ns);
		from_ns = to_ns;
	}
	while (thread->count && thread->items[thread->count - 1].end_ns <= e->end_ns)
		thread->count--;
	TRY(path_sums_leaf(s, t, e->path, e->name, e->subkind, &sum, err));
	sum->host_ns += (int64_t)(e->end_ns - e->begin_ns);
	sum_begin(sum, e);
	TRY(vec_reserve(&thread->items, &thread->cap, thread->count + 1, err));
	thread->items[thread->count++] =
		(struct open_node){ e->end_ns, (uint32_t)(sum - s->items) };
	return ST_OK;
}

enum status path_sums_put(struct path_sums *s, struct trace *t, const struct event *e,
			  struct error *err)
{
	struct path_sum *sum;
	uint32_t path = e->path;

	if (path_has_range(e)) {
		bool may_be_mark = e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX;

		if (may_be_mark && s->context && context_is_step_name(s->context, e->name))
			return ST_OK;
		return put_range(s, t, e, err);
	}
	if (!event_is_gpu_work(e) && e->kind != KIND_ALLOC)
		return ST_OK;
	if (!path)
		path = trace_path(t, 0, trace_get_track(t, e->track)->process, PATH_ROOT);
	if (e->kind == KIND_ALLOC) {
		TRY(sum_at(s, path, &sum, err));
		sum->bytes += e->bytes;
		return ST_OK;
	}
	TRY(path_sums_leaf(s, t, path, e->name, PATH_WORK, &sum, err));
	sum->gpu_ns += e->end_ns - e->begin_ns;
	sum_begin(sum, e);
	return ST_OK;
}

void path_sums_release(struct path_sums *s)
{
	for (size_t i = 0; i < s->thread_count; i++)
		free(s->threads[i].items);
	free(s->threads);
	free(s->items);
}

void path_frame(const struct trace *t, const struct path_node *node, struct buf *out)
{
	const struct process *p;
	const char *text;
	size_t len;

	switch (node->class) {
	case PATH_ROOT:
		p = trace_get_process(t, node->name);
		if (p->rank != NO_RANK)
			buf_putf(out, "rank %u", p->rank);
		else
			buf_putf(out, "process %u", p->pid);
		return;
	case PATH_BACKWARD:
		buf_put_text(out, "(backward)");
		return;
	case PATH_RECOMPUTE:
		buf_put_text(out, "(recompute)");
		return;
	case PATH_OTHER:
		buf_put_text(out, "(other)");
		return;
	default:
		text = trace_text(t, node->name, &len);
		buf_put(out, text, len);
	}
}

const char *path_module(const struct trace *t, const struct path_node *node)
{
	static const char prefix[] = "nn.Module: ";
	const char *name = trace_text(t, node->name, NULL);

	if (node->class != RANGE_PYTHON || strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	return name + sizeof(prefix) - 1;
}

bool path_line(const char *function, char out[PATH_LINE_TEXT])
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

bool path_is_framework(const struct trace *t, const struct path_node *node)
{
	char line[PATH_LINE_TEXT];

	return node->class == RANGE_PYTHON && !path_module(t, node) &&
	       !path_line(trace_text(t, node->name, NULL), line);
}

void path_put_text(const struct trace *t, uint32_t path, unsigned flags, struct buf *out)
{
	const struct path_node *node = trace_get_path(t, path);
	size_t begin = out->len, at;

	if (node->parent)
		path_put_text(t, node->parent, flags, out);
	else if (!(flags & PATH_WITH_PROCESS))
		return;
	if ((flags & PATH_FOR_PEOPLE) && path_is_framework(t, node))
		return;
	if (out->len > begin)
		buf_put_text(out, flags & PATH_FOR_PEOPLE ? " > " : ";");
	at = out->len;
	path_frame(t, node, out);
	for (; at < out->len; at++)
		if (out->data[at] == ';' || out->data[at] < ' ')
			out->data[at] = out->data[at] == ';' ? ':' : ' ';
}
