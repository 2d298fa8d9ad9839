/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what GPUs do, and about gaps that no host thread makes. */
#include "analyze/rule.h"

#include <stdio.h>

static bool say(struct finding *out, double saving_ns)
{
	out->saving_ns = saving_ns;
	return saving_ns > 0;
}

static bool exposed_comm(const struct facts *f, struct finding *out)
{
	struct amount comm = facts_work(f, WORK_COMM, NULL);
	double hidden = f->comm_ns - f->exposed_comm_ns;
	char a[SPAN_TEXT], b[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f communication kernels a step; %s of their %s run beside compute.", comm.count,
		 span_text(a, hidden > 0 ? hidden : 0), span_text(b, f->comm_ns));
	if (comm.count >= 50)
		out->advice = "bucket the gradients (bucket_cap_mb), so that few large collectives "
			      "run under backward";
	return say(out, f->exposed_comm_ns);
}

static bool small_collectives(const struct facts *f, struct finding *out)
{
	struct amount comm = facts_work(f, WORK_COMM, NULL);
	char a[SPAN_TEXT], b[SPAN_TEXT];

	if (comm.count < 50 || comm.short_count < 0.5 * comm.count)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f of %.0f communication kernels a step are shorter than %s: %s together.",
		 comm.short_count, comm.count, span_text(a, 5.0 * SHORT_KERNEL_NS),
		 span_text(b, comm.short_ns));
	return say(out, comm.short_ns < f->exposed_comm_ns ? comm.short_ns : f->exposed_comm_ns);
}

static bool pageable_copy(const struct facts *f, struct finding *out)
{
	struct amount in = facts_copies(f, "HtoD", "pageable");
	struct amount back = facts_copies(f, "DtoH", "pageable");
	char a[SPAN_TEXT];

	if (in.count + back.count <= 0)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f copies a step of %.1f MiB together from or to pageable memory; %s with no "
		 "compute beside them.", in.count + back.count, (in.bytes + back.bytes) / 1048576,
		 span_text(a, in.ns + back.ns));
	return say(out, in.ns + back.ns);
}

static bool exposed_upload(const struct facts *f, struct finding *out)
{
	struct amount all = facts_copies(f, "HtoD", NULL);
	struct amount pageable = facts_copies(f, "HtoD", "pageable");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f copies a step to the GPU from pinned memory, %s with no compute beside them.",
		 all.count - pageable.count, span_text(a, all.ns - pageable.ns));
	return say(out, all.ns - pageable.ns);
}

static bool device_copy(const struct facts *f, struct finding *out)
{
	struct amount copies = facts_copies(f, "DtoD", NULL);
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f copies a step within the GPU, %.1f MiB, %s with no compute beside them.",
		 copies.count, copies.bytes / 1048576, span_text(a, copies.ns));
	return say(out, copies.ns);
}

static bool peer_copy(const struct facts *f, struct finding *out)
{
	struct amount copies = facts_copies(f, "PtoP", NULL);
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f copies a step between GPUs, %s with no compute beside them.", copies.count,
		 span_text(a, copies.ns));
	return say(out, copies.ns);
}

static bool memset_fill(const struct facts *f, struct finding *out)
{
	struct amount fills = facts_copies(f, "memset", NULL);
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f fills of device memory a step, %s with no compute beside them.", fills.count,
		 span_text(a, fills.ns));
	return say(out, fills.ns);
}

static bool fp32_gemm(const struct facts *f, struct finding *out)
{
	struct amount gemm = facts_work(f, WORK_GEMM_FP32, NULL);
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f matrix kernels a step in plain FP32, %s of the GPU: tensor cores are not used.",
		 gemm.count, span_text(a, gemm.ns));
	if (facts_gpu_is(f, "V100") || facts_gpu_is(f, "T4"))
		out->advice = "autocast to float16: this GPU has no TF32";
	return say(out, gemm.ns * 7 / 8); /* tensor cores have eight times the rate and more */
}

static bool layout(const struct facts *f, struct finding *out)
{
	struct amount turn = facts_work(f, WORK_LAYOUT, NULL);
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f kernels a step only turn tensors between NCHW and NHWC: %s.", turn.count,
		 span_text(a, turn.ns));
	return say(out, turn.ns);
}

static bool short_kernels(const struct facts *f, struct finding *out)
{
	struct amount all = facts_kernels(f, NULL);
	char a[SPAN_TEXT], b[SPAN_TEXT];

	if (all.short_count < 0.5 * all.count || all.short_count < 100)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f of %.0f kernels a step are shorter than %s, %s together; each reads and writes "
		 "memory for little work.", all.short_count, all.count,
		 span_text(a, SHORT_KERNEL_NS), span_text(b, all.short_ns));
	return say(out, all.short_ns);
}

static bool elementwise(const struct facts *f, struct finding *out)
{
	struct amount some = facts_work(f, WORK_ELEMENTWISE, NULL);
	struct amount copies = facts_work(f, WORK_COPY, NULL);
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "%.0f elementwise and copying kernels a step, %s: they are bound by memory and fuse.",
		 some.count + copies.count, span_text(a, some.ns + copies.ns));
	/* of n kernels in a row that fuse one is left: the half stands for short rows */
	return say(out, (some.ns + copies.ns) / 2);
}

static bool stream_wait(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "stream_wait");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "Launched work waits for another stream and nothing else runs: %s of a step.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool dispatch(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "dispatch");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "Launched work has not begun while the GPU is idle: %s of a step.",
		 span_text(a, idle));
	return say(out, idle);
}

static bool graph_gaps(const struct facts *f, struct finding *out)
{
	double idle = facts_cause(f, "graph_internal");
	char a[SPAN_TEXT];

	snprintf(out->evidence, FINDING_TEXT,
		 "Between nodes of CUDA graphs the GPU is idle for %s of a step.",
		 span_text(a, idle));
	return say(out, idle);
}

const struct rule rules_gpu[] = {
	{ "exposed_comm", "communication beside no compute", "gpus.exposed_comm_ns", exposed_comm,
	  "overlap it with backward or prefetch the next layer's; fewer bytes (bf16, compression)",
	  true },
	{ "small_collectives", "many short collectives", "kernels", small_collectives,
	  "bucket or coalesce them: bucket_cap_mb, coalescing manager", true },
	{ "pageable_copy", "copies from pageable memory", "copies.exposed_ns", pageable_copy,
	  "pin_memory=True and .to(device, non_blocking=True)", true },
	{ "exposed_upload", "uploads beside no compute", "copies.exposed_ns", exposed_upload,
	  "prefetch the next batch on a stream of its own", true },
	{ "device_copy", "copies within the GPU", "copies.exposed_ns", device_copy,
	  "reduce in place; gradient_as_bucket_view=True; fewer .contiguous() and .clone()", true },
	{ "peer_copy", "copies between GPUs", "copies.exposed_ns", peer_copy,
	  "collectives instead of .to(other_gpu); pipeline them with compute", true },
	{ "memset_fill", "fills of device memory", "copies.exposed_ns", memset_fill,
	  "torch.empty for what is written anyway", true },
	{ "fp32_gemm", "matrix products without tensor cores", "kernels", fp32_gemm,
	  "torch.set_float32_matmul_precision('high'), or autocast to bfloat16", false },
	{ "layout", "kernels that only turn layouts", "kernels", layout,
	  "memory_format=torch.channels_last for model and input", false },
	{ "short_kernels", "kernels too short to fill the GPU", "kernels", short_kernels,
	  "torch.compile or fused operators, a larger batch", false },
	{ "elementwise", "elementwise kernels that would fuse", "kernels", elementwise,
	  "torch.compile, or fused operators of the library", false },
	{ "stream_wait", "streams wait for each other", "idle_causes.stream_wait", stream_wait,
	  "fewer cross-stream events; start what is waited for earlier", true },
	{ "dispatch", "launched, not begun", "idle_causes.dispatch", dispatch,
	  "launch further ahead: no synchronisation in the loop, CUDA graphs", true },
	{ "graph_gaps", "gaps inside CUDA graphs", "idle_causes.graph_internal", graph_gaps,
	  "fewer and larger nodes; parallel branches in the graph", true },
	{ .name = NULL },
};
