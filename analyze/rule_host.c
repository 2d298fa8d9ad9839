/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what the host does while GPUs do nothing (DEFINITIONS.md 6). */
#include "analyze/rule.h"

#include <stdio.h>

static bool say(struct finding *out, double saving_ns)
{
	out->saving_ns = saving_ns;
	return saving_ns > 0;
}

/* Where a cause is: "in aten::item", " at train.py: 12". */
static const char *where(const struct facts_owner *o, char out[120])
{
	const char *range = o->range[0] ? o->range : o->call;

	if (!range[0] && !o->python[0])
		out[0] = '\0';
	else if (!o->python[0])
		snprintf(out, 120, "; most of it in %.60s", range);
	else
		snprintf(out, 120, "; most of it in %.40s at %.40s", range[0] ? range : "the host",
			 o->python);
	return out;
}

static bool data_wait(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "data"), wall = facts_wall(f, "data");
	char a[SPAN_TEXT], b[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "The step thread gets its input for %s of a step; the GPU is idle for %s of them.",
		 span_text(a, wall), span_text(b, idle < wall ? idle : wall));
	return say(out, idle);
}

static bool launch_bound(const struct facts *f, struct finding *out)
{
	double forward = facts_cause(f, "host:forward"), backward = facts_cause(f, "host:backward");
	double launch = facts_cause(f, "launch");
	struct amount kernels = facts_kernels(f, NULL);
	char a[SPAN_TEXT], b[SPAN_TEXT], c[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "Kernels wait for the host to launch them: %s in forward, %s in backward, %s in the "
		 "launch calls; %.0f kernels a step.", span_text(a, forward), span_text(b, backward),
		 span_text(c, launch), kernels.count);
	return say(out, forward + backward + launch);
}

static bool optimizer_loop(const struct facts *f, struct finding *out)
{
	struct amount all = facts_kernels(f, "optimizer");
	struct amount fill = facts_work(f, WORK_FILL, "optimizer");
	struct amount fused = facts_work(f, WORK_MULTI_TENSOR, NULL);
	double idle = facts_cause(f, "host:optimizer") -
		      facts_idle_in(f, "host:optimizer", "zero_grad");
	char a[SPAN_TEXT];

	if (all.count - fill.count < 50 || fused.count >= 1)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f kernels a step from the optimizer, none of them fused over tensors; the GPU "
		 "waits %s for it.", all.count - fill.count, span_text(a, idle));
	return say(out, idle);
}

static bool zero_grad(const struct facts *f, struct finding *out)
{
	struct amount fill = facts_work(f, WORK_FILL, "optimizer");
	double idle = facts_idle_in(f, NULL, "zero_grad");
	char a[SPAN_TEXT], b[SPAN_TEXT];

	if (fill.count < 20)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f fill kernels a step set gradients to zero: %s on the GPU, which waits %s for "
		 "them.", fill.count, span_text(a, fill.ns), span_text(b, idle));
	return say(out, idle + fill.ns);
}

static bool optimizer_host(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "host:optimizer");
	struct amount fused = facts_work(f, WORK_MULTI_TENSOR, NULL);
	char a[SPAN_TEXT];

	if (fused.count < 1)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "The GPU waits %s of a step while the optimizer prepares its fused kernels.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool host_sync(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "sync");
	struct facts_owner o = facts_owner(f, "sync");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "The launching thread waits for the GPU, and the GPU then for it: %s of a step%s.",
		 span_text(a, idle), where(&o, at));
	return say(out, idle);
}

static bool blocking_copy(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "blocking_copy");
	struct facts_owner o = facts_owner(f, "blocking_copy");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "Copies that block the launching thread leave the GPU idle for %s of a step%s.",
		 span_text(a, idle), where(&o, at));
	return say(out, idle);
}

static bool compile(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "compile");
	struct facts_owner o = facts_owner(f, "compile");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "Code is compiled or loaded within the window: %s of a step%s.", span_text(a, idle),
		 where(&o, at));
	return say(out, idle);
}

static bool allocator(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "allocator");
	struct facts_owner o = facts_owner(f, "allocator");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "GPU memory is taken from the driver or given back in the loop (%.40s): the GPU is "
		 "idle for %s of a step.", o.call[0] ? o.call : "cudaMalloc", span_text(a, idle));
	return say(out, idle);
}

static bool gc_pause(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "gc");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "Python's garbage collector runs while the GPU is idle: %s of a step.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool checkpoint(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "host:checkpoint");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT, "The GPU waits %s of a step for checkpoints.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool validation(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "host:validation");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "The GPU is idle for %s of a step while the host is in validation.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool loop_overhead(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "host:other");
	struct facts_owner o = facts_owner(f, "host:other");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "The GPU waits %s of a step for code of the loop that is in no phase%s.",
		 span_text(a, idle), where(&o, at));
	return say(out, idle);
}

static bool profiler(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "profiler");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "The recording itself held the GPU up for %s of a step, by its own account.",
		 span_text(a, idle));
	return say(out, idle);
}

const struct rule rules_host[] = {
	{ "data_wait", "the GPU waits for input", "idle_causes.data phases.data.wall_ns", data_wait,
	  "num_workers of 4 or more, pin_memory=True, prefetch_factor", true },
	{ "launch_bound", "the GPU waits for launches",
	  "idle_causes.host:forward idle_causes.host:backward idle_causes.launch", launch_bound,
	  "CUDA graphs, torch.compile, a larger batch", true },
	{ "zero_grad", "gradients are filled with zeros", "idle.range kernels", zero_grad,
	  "zero_grad(set_to_none=True)", true },
	{ "optimizer_loop", "the optimizer launches for each tensor",
	  "idle_causes.host:optimizer kernels", optimizer_loop, "foreach=True or fused=True", true },
	{ "optimizer_host", "a fused optimizer's host time", "idle_causes.host:optimizer",
	  optimizer_host, "fused=True, capturable=True in a CUDA graph", true },
	{ "host_sync", "the host waits for the GPU in the loop", "idle_causes.sync idle.call",
	  host_sync, "no .item(), .cpu() or print() of a tensor in the loop; log every N steps",
	  true },
	{ "blocking_copy", "copies block the host", "idle_causes.blocking_copy", blocking_copy,
	  "pin_memory=True and .to(device, non_blocking=True)", true },
	{ "compile", "compilation within the window", "idle_causes.compile", compile,
	  "warm up before the window; mark_dynamic for changing shapes; CUDA_MODULE_LOADING=EAGER",
	  true },
	{ "allocator", "cudaMalloc in the loop", "idle_causes.allocator", allocator,
	  "no empty_cache() in the loop; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", true },
	{ "gc_pause", "Python's garbage collector", "idle_causes.gc", gc_pause,
	  "gc.disable() in the loop and gc.collect() every N steps, or gc.freeze()", true },
	{ "checkpoint", "checkpoints hold the loop up", "idle_causes.host:checkpoint", checkpoint,
	  "save asynchronously, from a copy in host memory", true },
	{ "validation", "validation leaves the GPU idle", "idle_causes.host:validation", validation,
	  "larger validation batches, its own prefetching loader, less often", true },
	{ "loop_overhead", "the loop outside of any phase", "idle_causes.host:other", loop_overhead,
	  "look at it with trace_python; move logging and metrics off the step thread", true },
	{ "profiler", "the recording's own cost", "idle_causes.profiler", profiler,
	  "record fewer kinds (--kinds) or a shorter window", true },
	{ .name = NULL },
};
