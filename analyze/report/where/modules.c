/* SPDX-License-Identifier: Apache-2.0 */
/* The report `modules` (DEFINITIONS.md 8): the tree of a model's modules, with the GPU work of
 * their forward, backward and recomputation. What runs inside of a module also counts for all
 * modules around it. */
#include "analyze/report/where/where.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

#define MODULE_COLUMNS(X)                                                                          \
	X(MODULE_PATH = RANK_KEYS, "path", "module", TEXT, KEY,                                    \
	  "names of the enclosing modules and of the module, separated by slashes")                \
	X(MODULE_CALLS, "calls", "calls", U64, SUM, "calls, recomputation included")               \
	X(MODULE_FORWARD, "forward_gpu_ns", "forward", U64, SUM,                                   \
	  "GPU time of its forward pass, overlaps counted twice")                                  \
	X(MODULE_BACKWARD, "backward_gpu_ns", "backward", U64, SUM,                                \
	  "GPU time of its backward pass, overlaps counted twice")                                 \
	X(MODULE_RECOMPUTE, "recompute_gpu_ns", "recompute", U64, SUM,                             \
	  "GPU time of its recomputed forward pass, overlaps counted twice")                       \
	X(MODULE_HOST, "host_ns", "host", U64, SUM, "time of host threads in all passes")          \
	X(MODULE_IDLE, "idle_ns", "GPU waits", U64, SUM,                                           \
	  "GPU idle time that forward, backward and recomputation caused")                         \
	X(MODULE_BYTES, "alloc_bytes", "memory", U64, SUM, "bytes allocated in it, freed or not")  \
	X(MODULE_SELF, "gpu_self_ns", "GPU self", U64, SUM,                                        \
	  "GPU time of forward, backward and recomputation without modules inside")                \
	X(MODULE_CAPTURE, "capture_gpu_ns", NULL, U64, DERIVED,                                    \
	  "GPU time of replayed graphs' work that was captured in it, with the report operators")  \
	X(MODULE_FIRST, "first_ns", NULL, U64, MIN,                                                \
	  "its first call since the Unix epoch; null: it was captured only")
static RANK_TABLE(modules, &table_ranks, MODULE_COLUMNS, .since = "first_ns");

struct module {           /* indexed by node */
	const char *name; /* NULL: the node is not a module */
	union value *row; /* NULL: not a module, or the rank is filtered out */
	/* inner: this or the innermost module around it; around: the module around that */
	uint32_t inner, around;
	bool has_begun;
};

/* Returns the module's name, or NULL. In a process with PyTorch's modules other ranges are not
 * modules. */
static const char *module_name(const struct trace *t, const struct path_node *node,
			       bool has_modules)
{
	bool is_named = node->class == RANGE_ANNOTATION || node->class == RANGE_NVTX ||
			node->class == RANGE_PHASE;

	if (has_modules || !is_named)
		return path_module(t, node);
	return trace_text(t, node->name, NULL);
}

static enum status module_enter(struct accumulator *f, struct module *all, uint32_t at,
				uint32_t process, bool has_modules, struct buf *path,
				struct error *err)
{
	const struct path_node *node = trace_get_path(f->trace, at);
	const char *name = module_name(f->trace, node, has_modules);
	uint32_t around = all[node->parent].inner;
	union value keys[MODULE_CALLS];

	all[at].inner = around;
	if (!name)
		return ST_OK;
	/* A module that runs again is below a PATH_RECOMPUTE node below itself. */
	if (trace_get_path(f->trace, node->parent)->class == PATH_RECOMPUTE && around &&
	    !strcmp(all[around].name, name))
		around = all[around].around;
	all[at] = (struct module){ .name = name, .inner = at, .around = around };
	if (!acc_wants(f, process))
		return ST_OK;
	buf_clear(path);
	if (around) {
		buf_put_text(path, all[around].row[MODULE_PATH].text);
		buf_put_byte(path, '/');
	}
	buf_put_text(path, name);
	keys[MODULE_PATH].text = buf_text(path);
	TRY(buf_status(path, err));
	return acc_bounded_row(f, "modules", process, keys, MODULE_PATH, &all[at].row, err);
}

/* Adds the sums of a node to its module and those around it. A scope without a range begins with
 * its first work. */
static void module_add(struct accumulator *f, struct module *all, uint32_t at)
{
	struct path_sum sum = paths_at(f->state, at);
	enum path_pass pass = trace_get_path(f->trace, at)->pass;
	uint32_t inner = all[at].inner;
	union value *row = all[inner].row;

	if (!row)
		return;
	row[MODULE_SELF].u64 += sum.gpu_ns;
	row[MODULE_CALLS].u64 += inner == at ? sum.calls : 0;
	if (!all[inner].has_begun && sum.first_ns && sum.first_ns < row[MODULE_FIRST].u64)
		row[MODULE_FIRST].u64 = sum.first_ns;
	all[inner].has_begun |= sum.first_ns > 0;
	for (; inner; inner = all[inner].around) {
		row = all[inner].row;
		row[MODULE_FORWARD + pass].u64 += sum.gpu_ns;
		/* may be below 0 if ranges overlap */
		row[MODULE_HOST].u64 += (uint64_t)sum.host_ns;
		row[MODULE_IDLE].u64 += sum.idle_ns;
		row[MODULE_BYTES].u64 += sum.bytes;
	}
}

static enum status modules_end(struct accumulator *f, struct error *err)
{
	uint32_t count = paths_count(f);
	RELEASED_BY(vec_release) uint32_t *processes = paths_processes(f);
	RELEASED_BY(vec_release)
	bool *has_modules = calloc((size_t)trace_count(f->trace, TRACE_PROCESSES) + 1, 1);
	RELEASED_BY(vec_release) struct module *all = calloc(count, sizeof(*all));
	RELEASED_BY(buf_release) struct buf path;

	buf_init(&path, (size_t)1 << 20);
	if (!processes || !has_modules || !all)
		return fail_memory(err);
	for (uint32_t i = 1; i < count; i++)
		has_modules[processes[i]] |=
			path_module(f->trace, trace_get_path(f->trace, i)) != NULL;
	for (uint32_t i = 1; i < count; i++)
		TRY(module_enter(f, all, i, processes[i], has_modules[processes[i]], &path, err));
	for (uint32_t i = 1; i < count; i++)
		module_add(f, all, i);
	for (uint32_t i = 1; i < count; i++)
		if (all[i].row && (int64_t)all[i].row[MODULE_HOST].u64 < 0)
			all[i].row[MODULE_HOST].u64 = 0;
	return ST_OK;
}

const struct report_type report_modules = {
	.name = "modules",
	.help = "modules of the model: GPU time of forward, backward and recomputation, memory",
	.tables = TABLES(&table_modules),
	.state_size = sizeof(struct path_sums),
	.shares_state = true,
	.needs_owners = true,
	.put = paths_put,
	.end = modules_end,
	.release = paths_release,
};
