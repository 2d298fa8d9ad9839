/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules (DEFINITIONS.md 8): the tree of what a model is made of, with the GPU work of its
 * forward, its backward and its recomputation.  What ran inside of a module counts for it and for
 * all modules around it.
 */
#include "analyze/report/where/paths.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

#define MODULE_COLUMNS(X)                                                                          \
	X(MODULE_PATH = RANK_KEYS, "path", "module", TEXT, KEY,                                    \
	  "its name behind those of the modules around it, each with a slash between")             \
	X(MODULE_CALLS, "calls", "calls", U64, SUM, "of the module, recomputation included")       \
	X(MODULE_FORWARD, "forward_gpu_ns", "forward", U64, SUM,                                   \
	  "GPU work that its forward launched, overlaps twice")                                    \
	X(MODULE_BACKWARD, "backward_gpu_ns", "backward", U64, SUM,                                \
	  "GPU work of the backward of what ran in it, overlaps twice")                            \
	X(MODULE_RECOMPUTE, "recompute_gpu_ns", "recompute", U64, SUM,                             \
	  "GPU work of its forward when checkpointing runs it again, overlaps twice")              \
	X(MODULE_HOST, "host_ns", "host", U64, SUM, "time of host threads, of all three")          \
	X(MODULE_IDLE, "idle_ns", "GPU waits", U64, SUM,                                           \
	  "idle time of GPUs that it made, of all three")                                          \
	X(MODULE_BYTES, "alloc_bytes", "memory", U64, SUM, "taken in it, freed again or not")      \
	X(MODULE_SELF, "gpu_self_ns", "GPU self", U64, SUM,                                        \
	  "the GPU work of all three without that of modules inside")                              \
	X(MODULE_CAPTURE, "capture_gpu_ns", NULL, U64, DERIVED,                                    \
	  "work of replayed graphs that was captured in it, with the report operators")            \
	X(MODULE_FIRST, "first_ns", NULL, U64, MIN,                                                \
	  "when it was first called, since 1970; null: it was captured only")
static RANK_TABLE(modules, &table_ranks, MODULE_COLUMNS, .since = "first_ns");

struct module { /* of one process */
	const char *name;
	uint32_t above; /* the module around it; 0: none */
	uint32_t process;
	uint64_t gpu_ns[3], gpu_self_ns, idle_ns, bytes, calls, first_ns; /* gpu: enum path_pass */
	int64_t host_ns;
};
struct module_list {
	struct module *items; /* from 1 on, those around a module before it */
	size_t count, cap;
	uint32_t *of; /* by node: the innermost module that it is in */
};

/* Of a process with PyTorch's modules no other range is one. */
static const char *module_name(const struct trace *t, const struct path_node *node,
			       bool has_modules)
{
	bool is_named = node->class == RANGE_ANNOTATION || node->class == RANGE_NVTX ||
			node->class == RANGE_PHASE;

	if (has_modules || !is_named)
		return path_module(t, node);
	return trace_text(t, node->name, NULL);
}

/* A module that runs again stands behind a mark and itself. */
static uint32_t module_above(const struct accumulator *f, const uint32_t *of,
			     const struct path_node *node, const char *name,
			     const struct module *all)
{
	uint32_t above = of[node->parent];
	const struct path_node *mark = trace_get_path(f->trace, node->parent);

	if (mark->class == PATH_RECOMPUTE && above && !strcmp(all[above].name, name))
		return all[above].above;
	return above;
}

static enum status modules_find(struct accumulator *f, const uint32_t *processes,
				struct module_list *l, struct error *err)
{
	uint32_t count = paths_count(f);
	bool *has_modules = calloc((size_t)trace_count(f->trace, TRACE_PROCESSES) + 1, 1);

	l->of = calloc(count, sizeof(*l->of));
	if (!has_modules || !l->of) {
		free(has_modules);
		return fail_memory(err);
	}
	for (uint32_t i = 1; i < count; i++)
		has_modules[processes[i]] |=
			path_module(f->trace, trace_get_path(f->trace, i)) != NULL;
	enum status status = ST_OK;
	l->count = 1;
	for (uint32_t i = 1; i < count && status == ST_OK; i++) {
		const struct path_node *node = trace_get_path(f->trace, i);
		const char *name = module_name(f->trace, node, has_modules[processes[i]]);

		l->of[i] = l->of[node->parent];
		if (!name)
			continue;
		status = vec_reserve(&l->items, &l->cap, l->count + 1, err);
		if (status != ST_OK)
			break;
		l->items[l->count] = (struct module){
			.name = name,
			.process = processes[i],
			.above = module_above(f, l->of, node, name, l->items),
		};
		l->of[i] = (uint32_t)l->count++;
	}
	free(has_modules);
	return status;
}

static void module_add(struct module *to, const struct module *from)
{
	for (int i = 0; i < 3; i++)
		to->gpu_ns[i] += from->gpu_ns[i];
	to->host_ns += from->host_ns;
	to->idle_ns += from->idle_ns;
	to->bytes += from->bytes;
}

static enum status put_path(const struct module_list *l, uint32_t module, struct buf *out)
{
	if (l->items[module].above) {
		put_path(l, l->items[module].above, out);
		buf_put_byte(out, '/');
	}
	buf_put_text(out, l->items[module].name);
	return ST_OK;
}

static enum status end_module(struct accumulator *f, const struct module_list *l, uint32_t at,
			      struct buf *path, struct error *err)
{
	const struct module *m = &l->items[at];
	union value keys[MODULE_CALLS], *row;

	if (!acc_wants(f, m->process))
		return ST_OK;
	buf_clear(path);
	put_path(l, at, path);
	buf_put_byte(path, '\0');
	TRY(buf_status(path, err));
	keys[MODULE_PATH].text = (const char *)path->data;
	TRY(acc_row(f, "modules", m->process, keys, &row, err));
	row[MODULE_CALLS].u64 += m->calls;
	row[MODULE_FORWARD].u64 += m->gpu_ns[PASS_FORWARD];
	row[MODULE_BACKWARD].u64 += m->gpu_ns[PASS_BACKWARD];
	row[MODULE_RECOMPUTE].u64 += m->gpu_ns[PASS_RECOMPUTE];
	row[MODULE_HOST].u64 += m->host_ns > 0 ? (uint64_t)m->host_ns : 0;
	row[MODULE_IDLE].u64 += m->idle_ns;
	row[MODULE_BYTES].u64 += m->bytes;
	row[MODULE_SELF].u64 += m->gpu_self_ns;
	if (m->first_ns && m->first_ns < row[MODULE_FIRST].u64)
		row[MODULE_FIRST].u64 = m->first_ns;
	return ST_OK;
}

static enum status modules_sum(struct accumulator *f, struct module_list *l, struct error *err)
{
	const struct path_sums *sums = f->state;
	uint32_t count = paths_count(f);
	struct buf path;
	enum status status = ST_OK;

	for (uint32_t i = 1; i < count; i++) {
		const struct path_node *node = trace_get_path(f->trace, i);
		struct module *m = &l->items[l->of[i]];
		struct path_sum sum = paths_at(sums, i);

		if (!l->of[i])
			continue;
		m->gpu_ns[node->pass] += sum.gpu_ns;
		m->gpu_self_ns += sum.gpu_ns;
		m->host_ns += sum.host_ns;
		m->idle_ns += sum.idle_ns;
		m->bytes += sum.bytes;
		if (!m->first_ns) /* of a scope that has no range the first work */
			m->first_ns = sum.first_ns;
		if (l->of[i] == l->of[node->parent])
			continue;
		m->calls += sum.calls;
		m->first_ns = sum.first_ns;
	}
	for (size_t i = l->count; i-- > 1;)
		if (l->items[i].above)
			module_add(&l->items[l->items[i].above], &l->items[i]);
	buf_init(&path, (size_t)1 << 20);
	for (uint32_t i = 1; i < l->count && status == ST_OK; i++)
		status = end_module(f, l, i, &path, err);
	buf_release(&path);
	return status;
}

static enum status modules_end(struct accumulator *f, struct error *err)
{
	struct module_list l = { 0 };
	uint32_t *processes = paths_processes(f);
	enum status status = processes ? modules_find(f, processes, &l, err) : fail_memory(err);

	if (status == ST_OK && l.items)
		status = modules_sum(f, &l, err);
	free(processes);
	free(l.items);
	free(l.of);
	return status;
}

const struct report_type report_modules = {
	.name = "modules",
	.help = "modules of the model: GPU time of forward, backward and recomputation, memory",
	.tables = TABLES(&table_modules),
	.state_size = sizeof(struct path_sums),
	.needs_owners = true,
	.put = paths_put,
	.end = modules_end,
	.release = paths_release,
};
