/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what the host does while GPUs are idle (DEFINITIONS.md 6). */
#include "analyze/findings/internal.h"

#include "schemas/model/call.h"

#include <math.h>
#include <stdio.h>

static double wait_of(const struct facts *f, const char *cause)
{
	return facts_wait(f, (struct gap_query){ .cause = cause }).ns;
}

static bool data_wait(const struct facts *f, struct finding *out)
{
	static const char *const copies[] = { "copy_batch", "to_gpu", "to_device", NULL };
	struct facts_owner o = facts_owner(f, "data");
	double idle = wait_of(f, "data"), wall = facts_wall(f, "data");
	char a[SPAN_TEXT], b[SPAN_TEXT], at[OWNER_TEXT];

	rule_tell(out,
		  "The step thread spends %s of a step on input; the GPU is idle for %s of that%s.",
		  span_text(a, fmax(wall, idle)), span_beside(b, idle, wall), owner_text(&o, at));
	rule_brief(out, "input takes %s, the GPU waits", a);
	const char *loader = facts_loader_advice(f);
	out->advice = loader ? loader : out->advice;
	if (owner_has(&o, copies))
		out->advice = "copy the next batch on a separate stream during this batch's "
			      "compute; use pin_memory=True, non_blocking=True";
	else if (facts_recorder(f) == RECORDER_XPROF)
		out->advice = "prefetch batches to the GPU; use more workers in the input "
			      "pipeline; preprocess offline";
	return rule_saves(out, idle);
}

#define SHORT_PIECE_NS 100e3 /* longer code between two launches is not overhead */

/* Returns whether host time outside of phases is only between launches, in many short segments.
 * Then it belongs to the rate at which the host launches. */
static bool is_between_launches(struct amount other)
{
	return other.ns < SHORT_PIECE_NS * other.count;
}

static struct amount loop_wait(const struct facts *f)
{
	return facts_wait(f, (struct gap_query){ .cause = "host:other", .kind = "plain" });
}

/* Writes the parts of the time for launches. Long launches and DDP's search have their own
 * rules. */
enum { LAUNCH_PARTS = 6 };
#define NO_PART_NS 500 /* shorter parts are not shown */
static void tell_parts(struct finding *out, const double ns[LAUNCH_PARTS],
		       const char *const places[LAUNCH_PARTS])
{
	static const char *const names[] = { "forward",    "backward",     "optimizer",
					     "own ranges", "launch calls", "no phase" };
	size_t first = 0, second, i;
	char a[SPAN_TEXT], b[SPAN_TEXT];

	for (i = 1; i < LAUNCH_PARTS; i++)
		first = ns[i] > ns[first] ? i : first;
	second = first ? 0 : 1;
	for (i = 0; i < LAUNCH_PARTS; i++)
		second = i != first && ns[i] > ns[second] ? i : second;
	span_text(a, ns[first]);
	if (ns[second] < NO_PART_NS)
		rule_brief(out, "%s %s", names[first], a);
	else
		rule_brief(out, "%s %s, %s %s", names[first], a, names[second],
			   span_beside(b, ns[second], ns[first]));

	/* append ": 7.5 ms in forward", then ", ..." */
	for (i = 0; i < LAUNCH_PARTS; i++)
		if (ns[i] >= NO_PART_NS)
			rule_tell(out, "%s %s %s", strchr(out->evidence, ':') ? "," : ":",
				  span_beside(a, ns[i], ns[first]), places[i]);
}

/* Which rule gets the host's time in the optimizer, except zeroing. */
enum optimizer { OPTIMIZER_OTHER, OPTIMIZER_LOOP, OPTIMIZER_FUSED };

static enum optimizer optimizer_of(const struct facts *f)
{
	struct amount all = facts_kernels(f, "optimizer");
	struct amount fill = facts_work(f, WORK_FILL, "optimizer");

	if (facts_work(f, WORK_MULTI_TENSOR, NULL).count > 0)
		return OPTIMIZER_FUSED;
	return all.count - fill.count >= 50 ? OPTIMIZER_LOOP : OPTIMIZER_OTHER;
}

/* Returns the idle time for the optimizer: host code and launches, either for zeroing or for the
 * rest. */
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

static bool has_zero_grad(const struct facts *f)
{
	return facts_work(f, WORK_FILL, "optimizer").count >= 20;
}

double facts_issued(const struct facts *f, const char *cause)
{
	struct gap_query plain = { .cause = cause, .kind = "plain" };
	struct gap_query zero = { .cause = cause, .kind = "zero" };
	double ns = facts_wait(f, plain).ns;

	if (!has_zero_grad(f))
		ns += facts_wait(f, zero).ns;
	plain.phase = "optimizer";
	return optimizer_of(f) == OPTIMIZER_OTHER ? ns : ns - facts_wait(f, plain).ns;
}

#define LONG_OPERATOR_NS 1e6 /* launching the work of an operator takes less */

/* Adds that the GPU waits for one operator's CPU work, not for launches. Library operators need
 * that long only to load code or to search for an algorithm. */
static void tell_host_work(const struct facts *f, double of_ns, const char *own,
			   struct finding *out)
{
	struct facts_owner o = facts_owner(f, "host:forward"), other;
	char a[SPAN_TEXT], name[CUT_TEXT], cause[FINDING_TEXT];

	snprintf(cause, sizeof(cause), "host:%s", own);
	other = facts_owner(f, cause);
	o = other.ns > o.ns ? other : o;
	if (!strstr(o.range, "::") || o.ns < of_ns / 2 || o.ns < LONG_OPERATOR_NS * o.count)
		return;
	const char *category = operator_category(o.range);
	bool is_library = !strcmp(category, "convolution") || !strcmp(category, "gemm");

	rule_tell(out, " Most of it is CPU work of %s, which takes %s per call.",
		  cut_text(name, o.range, 40), span_text(a, o.ns / o.count));
	bool has_loader = facts_has(f, TRAIT_LOADER_ALONE) || facts_has(f, TRAIT_LOADER_WORKERS);

	out->advice =
		is_library ? "warm up before the window, or record later steps: such an operator "
			     "loads code or searches for an algorithm; keep shapes fixed"
		: has_loader
			? "move that operator's CPU work to the GPU (device=) or to the loader's "
			  "workers; then use CUDA graphs, torch.compile or a larger batch"
			: "move that operator's CPU work to the GPU (device=) or before the loop; "
			  "then use CUDA graphs, torch.compile or a larger batch";
}

static bool launch_bound(const struct facts *f, struct finding *out)
{
	double forward =
		facts_wait(f, (struct gap_query){ .cause = "host:forward", .kind = "plain" }).ns;
	double backward =
		facts_wait(f, (struct gap_query){ .cause = "host:backward", .kind = "plain" }).ns;
	double optimizer = optimizer_of(f) == OPTIMIZER_OTHER ? wait_of(f, "host:optimizer") : 0;
	double launch = facts_issued(f, "launch");
	struct amount kernels = facts_kernels(f, NULL);
	const char *range;
	double own = facts_own(f, &range);
	struct amount loop = loop_wait(f);
	double between = is_between_launches(loop) ? loop.ns : 0;
	char in[CUT_TEXT + 24], name[CUT_TEXT], n[MANY_TEXT];

	if (optimizer > 0 && has_zero_grad(f))
		optimizer -= facts_wait(f, (struct gap_query){ .cause = "host:optimizer",
							       .kind = "zero" })
				     .ns;
	snprintf(in, sizeof(in), "in ranges such as %s", cut_text(name, range, 56));
	rule_tell(out, "The GPU waits for the host to launch its work");
	tell_parts(
		out,
		(const double[LAUNCH_PARTS]){ forward, backward, optimizer, own, launch, between },
		(const char *const[LAUNCH_PARTS]){ "in forward", "in backward", "in the optimizer",
						   in, "in the launch calls",
						   "between launches, outside any phase" });
	rule_tell(out, "; %s a step.", many_text(n, kernels.count, "kernel"));
	double all = forward + backward + optimizer + own + launch + between;
	bool has_graphs = facts_has(f, TRAIT_GRAPHS), is_compiled = facts_has(f, TRAIT_COMPILED);
	if (facts_recorder(f) == RECORDER_XPROF)
		out->advice = "put more of a step into one jit; use XLA's command buffers "
			      "(--xla_gpu_enable_command_buffer) or a larger batch";
	else if (facts_has(f, TRAIT_CAPTURE) && !has_graphs)
		out->advice = "this window contains the capture of a CUDA graph, which happens "
			      "once: record the replays instead";
	else if (has_graphs)
		out->advice = is_compiled ? "put more of a step into one graph; use a larger batch"
					  : "put more of a step into one graph; use torch.compile "
					    "or a larger batch";
	else if (is_compiled)
		out->advice = "use CUDA graphs (mode='reduce-overhead'), fewer graph breaks or a "
			      "larger batch";
	else
		tell_host_work(f, all, range, out);
	return rule_saves(out, all);
}

static bool long_launches(const struct facts *f, struct finding *out)
{
	struct amount waits =
		facts_wait(f, (struct gap_query){ .cause = "launch", .kind = "long" });
	char a[SPAN_TEXT], n[MANY_TEXT];

	rule_tell(out,
		  "%s a step of over 1 ms each, %s in total; a launch usually takes microseconds, "
		  "so these loaded code or waited for a full queue.",
		  many_text(n, waits.count, "launch call"), span_text(a, waits.ns));
	rule_brief(out, "%s over 1 ms, %s", many_text(n, waits.count, "call"), a);
	return rule_saves(out, waits.ns);
}

static bool unused_parameters(const struct facts *f, struct finding *out)
{
	double idle = facts_wait(f, (struct gap_query){ .kind = "search" }).ns;
	char a[SPAN_TEXT];

	rule_tell(out,
		  "The GPU waits %s of a step while DDP searches the graph for unused parameters.",
		  span_text(a, idle));
	rule_brief(out, "%s of searching", a);
	return rule_saves(out, idle);
}

static bool optimizer_loop(const struct facts *f, struct finding *out)
{
	struct amount all = facts_kernels(f, "optimizer");
	struct amount fill = facts_work(f, WORK_FILL, "optimizer");
	double idle = optimizer_wait(f, "plain");
	char a[SPAN_TEXT], n[MANY_TEXT];

	if (optimizer_of(f) != OPTIMIZER_LOOP)
		return false;
	rule_tell(out,
		  "The optimizer launches %s a step, none fused over tensors; the GPU waits %s for "
		  "them.",
		  many_text(n, all.count - fill.count, "kernel"), span_text(a, idle));
	rule_brief(out, "%s, none fused", n);
	return rule_saves(out, idle);
}

static bool zero_grad(const struct facts *f, struct finding *out)
{
	struct amount fill = facts_work(f, WORK_FILL, "optimizer");
	double idle = optimizer_wait(f, "zero");
	char a[SPAN_TEXT], b[SPAN_TEXT], n[MANY_TEXT];

	if (!has_zero_grad(f))
		return false;
	rule_tell(out,
		  "%s a step set gradients to zero; they take %s, and the GPU waits %s for them.",
		  many_text(n, fill.count, "fill kernel"), span_beside(a, fill.ns, idle),
		  span_beside(b, idle, fill.ns));
	rule_brief(out, "%s, %s on the GPU", n, a);
	return rule_saves(out, idle + fill.ns);
}

static bool optimizer_host(const struct facts *f, struct finding *out)
{
	double idle = optimizer_wait(f, "plain");
	char a[SPAN_TEXT];

	if (optimizer_of(f) != OPTIMIZER_FUSED)
		return false;
	rule_tell(out, "The GPU waits %s of a step while the optimizer prepares its fused kernels.",
		  span_text(a, idle));
	rule_brief(out, "%s before fused kernels", a);
	return rule_saves(out, idle);
}

static const char *const reads_back[] = { "item", "_local_scalar_dense", "aten::is_nonzero", NULL };
static const char *const asks_shape[] = { "nonzero", "masked_select", "unique", "aten::index",
					  NULL };
static const char *const waits_for_all[] = { "DeviceSynchronize", "CtxSynchronize", NULL };

static const char ADVICE_ITEM[] =
	"avoid .item(), .cpu() and print() of tensors in the loop; log every N steps";

static bool host_sync(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "sync");
	struct facts_owner o = facts_owner(f, "sync");
	char a[SPAN_TEXT], at[OWNER_TEXT], in[OWNER_BRIEF];

	rule_tell(out,
		  "The GPU waits %s of a step because the launching thread first waited for the "
		  "GPU%s.",
		  span_text(a, idle), owner_text(&o, at));
	rule_brief(out, "%s%s", a, owner_brief(&o, in));
	if (owner_has(&o, reads_back))
		out->advice = ADVICE_ITEM;
	else if (owner_has(&o, asks_shape))
		out->advice = "avoid results whose size the host must know (nonzero, indexing by a "
			      "mask): use torch.where or a fixed size";
	else if (owner_has(&o, waits_for_all))
		out->advice =
			"avoid torch.cuda.synchronize() in the loop; measure with CUDA events";
	return rule_saves(out, idle);
}

static bool blocking_copy(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "blocking_copy");
	struct facts_owner o = facts_owner(f, "blocking_copy");
	char a[SPAN_TEXT], at[OWNER_TEXT], in[OWNER_BRIEF];

	rule_tell(out,
		  "Copies that block the launching thread leave the GPU idle for %s of a step%s.",
		  span_text(a, idle), owner_text(&o, at));
	rule_brief(out, "%s%s", a, owner_brief(&o, in));
	if (owner_has(&o, reads_back))
		out->advice = ADVICE_ITEM;
	return rule_saves(out, idle);
}

/* A long launch or allocation is a first use. Other calls, and records of compilers, may recur with
 * each new shape. */
static bool compile(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "compile");
	struct facts_owner o = facts_owner(f, "compile");
	bool is_first_use = call_traits(o.call, strlen(o.call)) &
			    (CALL_LAUNCHES | CALL_ALLOCATES | CALL_SETS_UP);
	char a[SPAN_TEXT], at[OWNER_TEXT], in[OWNER_BRIEF];

	rule_tell(out, "%s within the window, for %s of a step%s.",
		  is_first_use ? "First use loads code or starts the driver"
			       : "Code is compiled or loaded",
		  span_text(a, idle), owner_text(&o, at));
	rule_brief(out, "%s%s", a, owner_brief(&o, in));
	if (is_first_use && !strncmp(o.call, "hip", 3))
		out->advice = "warm up before the window, or record later steps";
	else if (is_first_use)
		out->advice = "warm up before the window, record later steps, or set "
			      "CUDA_MODULE_LOADING=EAGER";
	return rule_saves(out, idle);
}

#define FIRST_USE_NS 50e6 /* no allocation in a running loop takes as long */

/* Returns whether the time is a library's first use, which does not recur. */
static bool is_first_use(const struct facts *f, double all_ns)
{
	struct amount calls =
		facts_wait(f, (struct gap_query){ .cause = "allocator", .kind = "long" });
	struct amount all = facts_wait(f, (struct gap_query){ .cause = "allocator" });
	double steps = f->ranks ? (double)f->steps / (double)f->ranks : 1;
	bool are_few = calls.count * steps < 3.5;

	if (f->has_steps && all.count >= 0.95)
		return false;
	if (all.count * steps < 3.5)
		return true;
	return calls.ns >= 0.9 * all_ns && (are_few || calls.ns >= FIRST_USE_NS * calls.count);
}

static bool allocator(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "allocator");
	struct facts_owner o = facts_owner(f, "allocator");
	const char *call = o.call[0] ? o.call : "cudaMalloc";
	bool is_first = is_first_use(f, idle);
	char a[SPAN_TEXT], at[OWNER_BRIEF], name[CUT_TEXT];

	span_text(a, idle);
	if (is_first) {
		rule_tell(out,
			  "A few first calls (%.40s%s) allocate memory; the GPU is idle for %s of "
			  "a step.",
			  call, owner_brief(&o, at), a);
		out->advice = "this happens once: warm up before the window, or record later steps";
	} else {
		rule_tell(out,
			  "The loop allocates or frees GPU memory through the driver (%.40s); the "
			  "GPU is idle for %s of a step.",
			  call, a);
	}
	rule_brief(out, "%s in %s", a, cut_text(name, call, 23));
	return rule_saves(out, idle);
}

static const char *const logs[] = { "log",    "print", "metric", "tensorboard", "wandb",
				    "mlflow", "tqdm",  "write",  NULL };

/* Describes code of the loop outside of phases, or how the recorder could show it. */
static bool loop_overhead(const struct facts *f, struct finding *out)
{
	struct amount idle = loop_wait(f);
	struct facts_owner o = facts_owner(f, "host:other");
	char a[SPAN_TEXT], at[OWNER_TEXT], in[OWNER_BRIEF];

	if (is_between_launches(idle))
		return false;
	rule_tell(out, "The GPU waits %s of a step for code in the loop outside any phase%s.",
		  span_text(a, idle.ns), owner_text(&o, at));
	owner_brief(&o, in);
	rule_brief(out, "%s%s", a, in[0] ? in : " in the loop");
	if (owner_has(&o, logs))
		out->advice = "move it to another thread, or do it every N steps";
	else if (o.range[0] || o.python[0])
		out->advice = "shorten it, or do it on another thread while the GPU works";
	else if (facts_has(f, TRAIT_FRAMES))
		out->advice = "annotate parts of the loop with ranges to find the cause";
	else if (facts_recorder(f) == RECORDER_PYTORCH)
		out->advice = "record with with_stack=True to find the cause";
	else if (facts_recorder(f) != RECORDER_TACHO)
		out->advice = "annotate parts of the loop with ranges to find the cause";
	return rule_saves(out, idle.ns);
}

static bool profiler(const struct facts *f, struct finding *out)
{
	double idle = wait_of(f, "profiler");
	char a[SPAN_TEXT];

	rule_tell(out, "The profiler delayed the GPU for %s of a step, by its own records.",
		  span_text(a, idle));
	rule_brief(out, "%s of recording", a);
	if (facts_recorder(f) == RECORDER_PYTORCH)
		out->advice = "turn off with_stack, record_shapes and profile_memory; record a "
			      "shorter window (schedule)";
	else if (facts_recorder(f) == RECORDER_NSYS)
		out->advice = "trace less (--trace), omit --backtrace, or record a shorter window";
	else if (facts_recorder(f) == RECORDER_XPROF)
		out->advice = "lower host_tracer_level, set python_tracer_level=0, or record a "
			      "shorter window";
	return rule_saves(out, idle);
}

const struct rule rules_host[] = {
	{ "data_wait", "the GPU waits for input", "idle_causes.data phases.data.wall_ns", data_wait,
	  "set num_workers to 4 or more, pin_memory=True and prefetch_factor; preprocess offline",
	  .family = FAMILY_INPUT, .needs_trust = true },
	{ "launch_bound", "the GPU waits for launches",
	  "idle_causes.host:forward idle_causes.host:backward idle_causes.launch", launch_bound,
	  "use CUDA graphs, torch.compile or a larger batch", .family = FAMILY_HOST,
	  .needs_trust = true },
	{ "long_launches", "launches that load code or wait", "launches.api_ns idle_causes.launch",
	  long_launches,
	  "warm up before the window; set CUDA_MODULE_LOADING=EAGER; limit the launches in flight",
	  .family = FAMILY_HOST, .needs_trust = true },
	{ "unused_parameters", "DDP searches for unused parameters", "idle.range",
	  unused_parameters, "set find_unused_parameters=False, or static_graph=True",
	  .family = FAMILY_HOST, .needs_trust = true },
	{ "zero_grad", "zero_grad() fills gradients with zeros", "idle.range kernels", zero_grad,
	  "call zero_grad(set_to_none=True)", .family = FAMILY_HOST, .needs_trust = true },
	{ "optimizer_loop", "the optimizer launches for each tensor",
	  "idle_causes.host:optimizer kernels", optimizer_loop, "set foreach=True or fused=True",
	  .family = FAMILY_HOST, .needs_trust = true },
	{ "optimizer_host", "host time of a fused optimizer", "idle_causes.host:optimizer",
	  optimizer_host, "set fused=True; put it into a CUDA graph (capturable=True)",
	  .family = FAMILY_HOST, .needs_trust = true },
	{ "host_sync", "the host waits for the GPU in the loop", "idle_causes.sync idle.call",
	  host_sync, "avoid synchronization in the loop; use .item() and log only every N steps",
	  .family = FAMILY_SYNC, .needs_trust = true },
	{ "blocking_copy", "copies block the host", "idle_causes.blocking_copy", blocking_copy,
	  "use pin_memory=True and .to(device, non_blocking=True)", .family = FAMILY_COPY,
	  .needs_trust = true },
	{ "compile", "code is compiled or loaded within the window", "idle_causes.compile", compile,
	  "warm up before the window; use mark_dynamic for changing shapes; set "
	  "CUDA_MODULE_LOADING=EAGER",
	  .family = FAMILY_COMPILE, .needs_trust = true },
	{ "allocator", "cudaMalloc in the loop", "idle_causes.allocator", allocator,
	  "avoid empty_cache() in the loop; set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
	  .family = FAMILY_HOST, .needs_trust = true },
	{ "gc_pause", "Python's garbage collector", "idle_causes.gc", NULL,
	  "call gc.disable() in the loop and gc.collect() every N steps, or gc.freeze()",
	  .family = FAMILY_HOST, .needs_trust = true, .cause = "gc",
	  .evidence = "Python's garbage collector runs while the GPU is idle, for {} of a step.",
	  .brief = "{} of collections" },
	{ "checkpoint", "checkpoints delay the loop", "idle_causes.host:checkpoint", NULL,
	  "save asynchronously from a copy in host memory", .family = FAMILY_HOST,
	  .needs_trust = true, .cause = "host:checkpoint",
	  .evidence = "The GPU waits {} of a step for checkpoints.", .brief = "{} of waiting" },
	{ "validation", "validation leaves the GPU idle", "idle_causes.host:validation", NULL,
	  "use larger validation batches and a prefetching loader; validate less often",
	  .family = FAMILY_HOST, .needs_trust = true, .cause = "host:validation",
	  .evidence = "The GPU is idle for {} of a step while the host is in validation.",
	  .brief = "{} idle in validation" },
	{ "loop_overhead", "loop code outside any phase", "idle_causes.host:other", loop_overhead,
	  "record with trace_python to find the cause", .family = FAMILY_HOST,
	  .needs_trust = true },
	{ "profiler", "profiler overhead", "idle_causes.profiler", profiler,
	  "record fewer kinds (--kinds) or a shorter window", .needs_trust = true },
	{ .name = NULL },
};
