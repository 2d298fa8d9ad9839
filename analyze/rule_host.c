/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what the host does while GPUs do nothing (DEFINITIONS.md 6). */
#include "analyze/rule.h"

#include <stdio.h>
#include <string.h>

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

static double wait_of(const struct facts *f, const char *cause)
{
	return facts_wait(f, (struct gap_query){ .cause = cause }).ns;
}

static bool data_wait(const struct facts *f, struct finding *out)
{
	static const char *const alone[] = { "_SingleProcess", NULL };
	static const char *const many[] = { "_MultiProcess", NULL };
	struct facts_owner o = facts_owner(f, "data");
	double idle = facts_cause(f, "data"), wall = facts_wall(f, "data");
	char a[SPAN_TEXT], b[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "The step thread gets its input for %s of a step; the GPU is idle for %s of that.",
		 span_text(a, wall > idle ? wall : idle), span_text(b, idle));
	if (owner_has(&o, alone))
		out->advice = "num_workers of 4 or more (now 0: the loader runs on the step "
			      "thread), pin_memory=True, preprocess offline";
	else if (owner_has(&o, many))
		out->advice = "more num_workers, a higher prefetch_factor, "
			      "persistent_workers=True, preprocess offline";
	return say(out, idle);
}

/* ": 7.5 ms in forward", then ", ..."; nothing of what is nothing. */
static size_t tell_part(struct finding *out, size_t len, double ns, const char *where_it_is)
{
	bool first = !memchr(out->evidence, ':', len);
	char a[SPAN_TEXT];

	if (ns < 500)
		return len;
	return len + (size_t)snprintf(out->evidence + len, FINDING_TEXT - len, "%s %s %s",
				      first ? ":" : ",", span_text(a, ns), where_it_is);
}

#define SEARCH_UNUSED "search_unused_parameters"

/* Launches that take over a millisecond and DDP's search are other rules'. */
static bool launch_bound(const struct facts *f, struct finding *out)
{
	double forward = wait_of(f, "host:forward") -
			 facts_idle_in(f, "host:forward", SEARCH_UNUSED);
	double backward = wait_of(f, "host:backward");
	double launch = facts_wait(f, (struct gap_query){ .cause = "launch" }).ns -
			facts_wait(f, (struct gap_query){ .cause = "launch", .kind = "long" }).ns;
	struct amount kernels = facts_kernels(f, NULL);
	const char *range;
	double own = facts_own(f, &range);
	char in[80], n[MANY_TEXT];
	size_t len = (size_t)snprintf(out->evidence, FINDING_TEXT,
				      "The GPU waits for the host to launch its work");

	snprintf(in, sizeof(in), "in ranges such as %.56s", range);
	len = tell_part(out, len, forward, "in forward");
	len = tell_part(out, len, backward, "in backward");
	len = tell_part(out, len, own, in);
	len = tell_part(out, len, launch, "in the launch calls");
	snprintf(out->evidence + len, FINDING_TEXT - len, "; %s a step.",
		 many_text(n, kernels.count, "kernel"));
	return say(out, forward + backward + own + launch);
}

static bool long_launches(const struct facts *f, struct finding *out)
{
	struct amount waits =
		facts_gaps(f, (struct gap_query){ .cause = "launch", .kind = "long" });
	char a[SPAN_TEXT], n[MANY_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%s a step of over 1 ms each, %s together: a launch takes microseconds, so these "
		 "loaded code or waited for room.", many_text(n, waits.count, "launch call"),
		 span_text(a, waits.ns));
	return say(out, waits.ns);
}

static bool unused_parameters(const struct facts *f, struct finding *out)
{
	double idle = facts_idle_in(f, NULL, SEARCH_UNUSED);
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "The GPU waits %s of a step while DDP searches its graph for parameters without a "
		 "gradient.", span_text(a, idle));
	return say(out, idle);
}

/* Of the optimizer: what the host does, and its launches; filling with zeros or the rest. */
static double optimizer_wait(const struct facts *f, const char *kind)
{
	struct gap_query which = { .cause = "host:optimizer", .kind = kind };
	double ns = facts_wait(f, which).ns;

	which.phase = "optimizer";
	which.cause = "launch";
	ns += facts_wait(f, which).ns;
	which.cause = "dispatch";
	return ns + facts_wait(f, which).ns;
}

static bool optimizer_loop(const struct facts *f, struct finding *out)
{
	struct amount all = facts_kernels(f, "optimizer");
	struct amount fill = facts_work(f, WORK_FILL, "optimizer");
	struct amount fused = facts_work(f, WORK_MULTI_TENSOR, NULL);
	double idle = optimizer_wait(f, "plain");
	char a[SPAN_TEXT], n[MANY_TEXT];

	if (all.count - fill.count < 50 || fused.count > 0)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%s a step from the optimizer, none of them fused over tensors; the GPU waits %s "
		 "for them.", many_text(n, all.count - fill.count, "kernel"), span_text(a, idle));
	return say(out, idle);
}

static bool zero_grad(const struct facts *f, struct finding *out)
{
	struct amount fill = facts_work(f, WORK_FILL, "optimizer");
	double idle = optimizer_wait(f, "zero");
	char a[SPAN_TEXT], b[SPAN_TEXT], n[MANY_TEXT];

	if (fill.count < 20)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%s a step set gradients to zero: %s on the GPU, which waits %s for them.",
		 many_text(n, fill.count, "fill kernel"), span_text(a, fill.ns),
		 span_text(b, idle));
	return say(out, idle + fill.ns);
}

static bool optimizer_host(const struct facts *f, struct finding *out)
{
	double idle = optimizer_wait(f, "plain");
	struct amount fused = facts_work(f, WORK_MULTI_TENSOR, NULL);
	char a[SPAN_TEXT];

	if (fused.count <= 0)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "The GPU waits %s of a step while the optimizer prepares its fused kernels.",
		 span_text(a, idle));
	return say(out, idle);
}

static const char *const reads_back[] = { "item", "_local_scalar_dense", "aten::is_nonzero", NULL };
static const char *const asks_shape[] = { "nonzero", "masked_select", "unique", "aten::index",
					 NULL };
static const char *const waits_for_all[] = { "DeviceSynchronize", "CtxSynchronize", NULL };

static const char ADVICE_ITEM[] =
	"no .item(), .cpu() or print() of a tensor in the loop: log every N steps";

static bool host_sync(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "sync");
	struct facts_owner o = facts_owner(f, "sync");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "The launching thread waits for the GPU, and then the GPU for it: %s of a step%s.",
		 span_text(a, idle), where(&o, at));
	if (owner_has(&o, reads_back))
		out->advice = ADVICE_ITEM;
	else if (owner_has(&o, asks_shape))
		out->advice = "no result whose size the host must know (nonzero, masks as index): "
			      "torch.where, or a fixed size";
	else if (owner_has(&o, waits_for_all))
		out->advice = "no torch.cuda.synchronize() in the loop; time with CUDA events";
	return say(out, idle);
}

static bool blocking_copy(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "blocking_copy");
	struct facts_owner o = facts_owner(f, "blocking_copy");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "Copies that block the launching thread leave the GPU idle for %s of a step%s.",
		 span_text(a, idle), where(&o, at));
	if (owner_has(&o, reads_back))
		out->advice = ADVICE_ITEM;
	return say(out, idle);
}

static bool compile(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "compile");
	struct facts_owner o = facts_owner(f, "compile");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "Code is compiled or loaded within the window: %s of a step%s.",
		 span_text(a, idle), where(&o, at));
	return say(out, idle);
}

static bool allocator(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "allocator");
	struct facts_owner o = facts_owner(f, "allocator");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "GPU memory is taken from the driver or given back in the loop (%.40s): the GPU "
		 "is idle for %s of a step.", o.call[0] ? o.call : "cudaMalloc", span_text(a, idle));
	return say(out, idle);
}

static bool gc_pause(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "gc");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "Python's garbage collector runs while the GPU is idle: %s of a step.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool checkpoint(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "host:checkpoint");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT, "The GPU waits %s of a step for checkpoints.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool validation(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "host:validation");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "The GPU is idle for %s of a step while the host is in validation.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool loop_overhead(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "host:other");
	struct facts_owner o = facts_owner(f, "host:other");
	char a[SPAN_TEXT], at[120];

	snprintf(out->evidence, FINDING_TEXT,
		 "The GPU waits %s of a step for code of the loop that is in no phase%s.",
		 span_text(a, idle), where(&o, at));
	return say(out, idle);
}

static bool profiler(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "profiler");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "The recording itself held the GPU up for %s of a step, by its own account.",
		 span_text(a, idle));
	return say(out, idle);
}

const struct rule rules_host[] = {
	{ "data_wait", "the GPU waits for input", "idle_causes.data phases.data.wall_ns", data_wait,
	  "num_workers of 4 or more, pin_memory=True, prefetch_factor, preprocess offline", true },
	{ "launch_bound", "the GPU waits for launches",
	  "idle_causes.host:forward idle_causes.host:backward idle_causes.launch", launch_bound,
	  "CUDA graphs, torch.compile, a larger batch", true },
	{ "long_launches", "launches that load code or wait", "launches.api_ns idle_causes.launch",
	  long_launches,
	  "warm up before the window; CUDA_MODULE_LOADING=EAGER; do not launch without end", true },
	{ "unused_parameters", "DDP searches for unused parameters", "idle.range",
	  unused_parameters, "find_unused_parameters=False, or static_graph=True", true },
	{ "zero_grad", "gradients are filled with zeros", "idle.range kernels", zero_grad,
	  "zero_grad(set_to_none=True)", true },
	{ "optimizer_loop", "the optimizer launches for each tensor",
	  "idle_causes.host:optimizer kernels", optimizer_loop, "foreach=True or fused=True",
	  true },
	{ "optimizer_host", "a fused optimizer's host time", "idle_causes.host:optimizer",
	  optimizer_host, "fused=True, capturable=True in a CUDA graph", true },
	{ "host_sync", "the host waits for the GPU in the loop", "idle_causes.sync idle.call",
	  host_sync, "no synchronisation in the loop; .item() and logging every N steps", true },
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
