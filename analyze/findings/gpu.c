/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about GPU work, and about gaps that no host thread causes. */
#include "analyze/findings/rule.h"

#include <math.h>
#include <stdio.h>

static const char ADVICE_NO_BACKWARD[] = "use a larger batch per collective; overlap two halves of "
					 "a batch; fuse the collective with the next operation";

static const char ADVICE_BUCKETS[] = "use larger gradient buckets (bucket_cap_mb): fewer, larger "
				     "collectives overlap with backward";
static const char ADVICE_DDP[] =
	"overlap it with backward (static_graph=True, gradient_as_bucket_view=True); accumulate "
	"gradients under no_sync(); send fewer bytes (bf16)";

/* Autograd's threads launch work of backward while the step thread's ranges may not show it, so
 * kernels count too. */
static bool trains(const struct facts *f)
{
	return facts_wall(f, "backward") > 0 || facts_kernels(f, "backward").count > 0;
}

static const char *comm_advice(const struct facts *f, const char *operation, double count)
{
	if (!strcmp(operation, "all_to_all"))
		return facts_has(f, TRAIT_EXPERTS)
			       ? "overlap dispatch and combine with compute of the other half of "
				 "the batch; balance the experts; place a token's experts on few "
				 "nodes"
			       : "balance what the ranks send; exchange the next batch's input "
				 "during this batch's compute; send fewer bytes (bf16)";
	if (!strcmp(operation, "send_recv"))
		return "use more micro-batches or an interleaved schedule, so that waiting stages "
		       "have other work";
	if (!strcmp(operation, "broadcast"))
		return "set broadcast_buffers=False, or broadcast all buffers once before the loop";
	if (facts_has(f, TRAIT_FSDP) && strcmp(operation, "all_reduce") != 0)
		return "prefetch the next unit (forward_prefetch, backward_prefetch); use larger "
		       "units; keep them gathered (reshard_after_forward=False) if memory allows";
	if (!strcmp(operation, "all_gather") || !strcmp(operation, "reduce_scatter"))
		return "launch it during the previous layer's compute (prefetch); use fewer, "
		       "larger calls; send fewer bytes (bf16)";
	if (!trains(f))
		return ADVICE_NO_BACKWARD;
	return count >= 50 ? ADVICE_BUCKETS : ADVICE_DDP;
}

static bool exposed_comm(const struct facts *f, struct finding *out)
{
	struct amount comm = facts_work(f, WORK_COMM, NULL);
	double hidden = f->comm_ns - f->exposed_comm_ns;
	char a[SPAN_TEXT + 8], b[SPAN_TEXT], n[MANY_TEXT];

	snprintf(a, sizeof(a), "%s of it", span_beside(b, hidden, f->comm_ns));
	rule_tell(out, "%s a step, %s in total; %s is hidden by compute.",
		  many_text(n, comm.count, "communication kernel"), span_text(b, f->comm_ns),
		  hidden >= 500 ? a : "none of it");
	double most_ns;
	const char *operation = facts_operation(f, &most_ns);

	if (facts_recorder(f) == RECORDER_INSPECTOR)
		return false; /* the file does not contain what was computed meanwhile */
	if (most_ns >= 500 && strcmp(operation, "other") != 0)
		rule_tell(out, " The longest part, %s, is %.40s.", span_text(b, most_ns),
			  operation);
	out->advice = comm_advice(f, operation, comm.count);
	rule_brief(out, "%s, %s hidden", many_text(n, comm.count, "collective"),
		   hidden >= 500 ? span_text(b, hidden) : "nothing");
	return rule_saves(out, f->exposed_comm_ns);
}

static bool small_collectives(const struct facts *f, struct finding *out)
{
	struct amount comm = facts_work(f, WORK_COMM, NULL);
	char a[SPAN_TEXT], b[SPAN_TEXT], n[NUMBER_TEXT], m[NUMBER_TEXT];

	if (comm.count < 50 || comm.short_count < 0.5 * comm.count)
		return false;
	rule_tell(
		out,
		"%s of %s communication kernels a step are shorter than %s; together they take %s.",
		round_text(n, comm.short_count), round_text(m, comm.count),
		span_text(a, 5.0 * SHORT_KERNEL_NS), span_text(b, comm.short_ns));
	double most_ns;
	const char *operation = facts_operation(f, &most_ns);
	if (strcmp(operation, "all_reduce") != 0 || !trains(f))
		out->advice = comm_advice(f, operation, comm.count);
	rule_brief(out, "%s of %s under %s", n, m, a);
	return rule_saves(out, fmin(comm.short_ns, f->exposed_comm_ns));
}

/* ---- copies ----------------------------------------------------------------------------- */

static bool tell_copies(struct finding *out, struct amount copies, const char *what)
{
	char a[SPAN_TEXT], n[MANY_TEXT], b[NUMBER_TEXT], bytes[64] = "";

	if (copies.count <= 0)
		return false;
	many_text(n, copies.count, "copy");
	if (copies.bytes >= 1048576)
		snprintf(bytes, sizeof(bytes), "%s%s", bytes_text(b, copies.bytes),
			 fabs(copies.count - 1) < 0.05 ? "" : " together");
	rule_tell(out, "%s a step%s%s%s %s; %s of copy time overlaps no compute.", n,
		  *bytes ? ", " : "", bytes, *bytes ? "," : "", what, span_text(a, copies.ns));
	rule_brief(out, "%s%s%s", n, *bytes ? " of " : "", bytes);
	return rule_saves(out, copies.ns);
}

static struct amount less(struct amount a, struct amount b)
{
	a.count -= b.count;
	a.ns -= b.ns;
	a.bytes -= b.bytes;
	return a;
}

static bool pageable_copy(const struct facts *f, struct finding *out)
{
	struct amount all = facts_copies(f, "HtoD", "pageable");
	struct amount back = facts_copies(f, "DtoH", "pageable");

	all.count += back.count;
	all.ns += back.ns;
	all.bytes += back.bytes;
	return tell_copies(out, all, "from or to pageable memory");
}

#define OFFLOAD_BYTES 268435456.0 /* bytes per step; more than any input batch has */

static bool exposed_upload(const struct facts *f, struct finding *out)
{
	struct amount copies =
		less(facts_copies(f, "HtoD", NULL), facts_copies(f, "HtoD", "pageable"));

	if (!facts_has(f, TRAIT_OFFLOAD) || copies.bytes < OFFLOAD_BYTES)
		return tell_copies(out, copies, "to the GPU from pinned memory");
	out->advice =
		"FSDP offloads parameters to the host: keep them on the GPU (no CPUOffloadPolicy, "
		"cpu_offload=None), shard over more GPUs, or offload the optimizer state only";
	return tell_copies(out, copies, "to the GPU from pinned memory (FSDP offload)");
}

static bool exposed_download(const struct facts *f, struct finding *out)
{
	return tell_copies(out,
			   less(facts_copies(f, "DtoH", NULL), facts_copies(f, "DtoH", "pageable")),
			   "from the GPU to pinned memory");
}

static bool device_copy(const struct facts *f, struct finding *out)
{
	if (facts_wall(f, "backward") <= 0)
		out->advice = "write results in place; avoid .contiguous() and .clone()";
	return tell_copies(out, facts_copies(f, "DtoD", NULL), "within the GPU");
}

static bool peer_copy(const struct facts *f, struct finding *out)
{
	return tell_copies(out, facts_copies(f, "PtoP", NULL), "between GPUs");
}

static bool memset_fill(const struct facts *f, struct finding *out)
{
	struct amount fills = facts_copies(f, "memset", NULL);
	char a[SPAN_TEXT], n[MANY_TEXT];

	rule_tell(out, "%s of device memory a step; %s of fill time overlaps no compute.",
		  many_text(n, fills.count, "fill"), span_text(a, fills.ns));
	rule_brief(out, "%s, %s", n, a);
	return rule_saves(out, fills.ns);
}

/* ---- kernels ---------------------------------------------------------------------------- */

static const char *const without_tensor_cores[] = { "P100", "P40", "GTX", "Radeon", NULL };

/* Returns whether FP32 products cannot use TF32: tensor cores before Ampere, and some of AMD's,
 * multiply only 16 bits and less. */
static bool is_without_tf32(const struct facts *f)
{
	const struct peaks *p = facts_peaks(f);

	return p ? p->matrix[NUMBER_TF32] <= 0 : facts_has(f, TRAIT_VOLTA);
}

/* Returns the rate of 16-bit products on matrix cores as a multiple of plain FP32; 0: unknown. */
static double tensor_rate(const struct facts *f)
{
	const struct peaks *p = facts_peaks(f);

	if (p)
		return (double)p->matrix[NUMBER_FP16] / (double)p->fp32;
	return facts_has(f, TRAIT_VOLTA) ? 8 : 0;
}

/* Describes an upper bound for faster multiplication; memory may allow less. */
static bool tell_fp32(const struct facts *f, enum work work, const char *one, struct finding *out)
{
	struct amount some = facts_work(f, work, NULL);
	double rate = tensor_rate(f);
	char a[SPAN_TEXT], n[MANY_TEXT], basis[128];

	if (facts_gpu_is(f, without_tensor_cores))
		return false;
	if (rate > 0)
		snprintf(basis, sizeof(basis),
			 "they are up to %.3g times as fast on this GPU, so at most %.0f %% of the "
			 "time can be saved",
			 rate, 100 * (1 - 1 / rate));
	else
		snprintf(basis, sizeof(basis),
			 "their speed on this GPU is unknown, so at most all of the time can be "
			 "saved");
	span_text(a, some.ns);
	many_text(n, some.count, one);
	rule_tell(out, "%s a step in FP32, %s in total: tensor cores are not used; %s.", n, a,
		  basis);
	rule_brief(out, "%s in FP32, %s", n, a);
	return rule_saves(out, rate > 0 ? some.ns * (1 - 1 / rate) : some.ns);
}

static bool fp32_gemm(const struct facts *f, struct finding *out)
{
	if (facts_recorder(f) == RECORDER_XPROF)
		out->advice = "set jax_default_matmul_precision to bfloat16 or tensorfloat32; use "
			      "bfloat16 parameters";
	else if (is_without_tf32(f))
		out->advice = "use mixed precision (autocast to float16); this GPU has no TF32";
	return tell_fp32(f, WORK_GEMM_FP32, "matrix kernel", out);
}

static bool fp32_conv(const struct facts *f, struct finding *out)
{
	return tell_fp32(f, WORK_CONV_FP32, "convolution", out);
}

/* By the vendors' data, FP8 has twice the rate of 16 bits, which have twice that of TF32. */
static bool fp8(const struct facts *f, struct finding *out)
{
	const struct peaks *p = facts_peaks(f);
	struct amount half = facts_work(f, WORK_GEMM, NULL);
	struct amount tf32 = facts_work(f, WORK_GEMM_TF32, NULL);
	double ns = half.ns + tf32.ns;
	char a[SPAN_TEXT], b[SPAN_TEXT], n[MANY_TEXT], more[80] = "";

	if (!p || p->matrix[NUMBER_FP8] <= 0 || ns < 0.2 * f->window_ns)
		return false;
	if (tf32.ns >= 500)
		snprintf(more, sizeof(more), " (3/4 of the %s in TF32 kernels)",
			 span_beside(b, tf32.ns, ns));
	many_text(n, half.count + tf32.count, "matrix kernel");
	rule_tell(out,
		  "%s a step in 16 bits or TF32 take %s; FP8 is twice as fast as 16 bits on this "
		  "GPU and saves at most half of the time%s.",
		  n, span_text(a, ns), more);
	rule_brief(out, "%s, %s", n, a);
	return rule_saves(out, half.ns / 2 + tf32.ns * 3 / 4);
}

/* Tensor cores load 16 bytes at once only if sizes and strides are aligned. */
static bool misaligned_gemm(const struct facts *f, struct finding *out)
{
	struct amount some = facts_work(f, WORK_GEMM_UNALIGNED, NULL);
	char a[SPAN_TEXT], n[MANY_TEXT];

	rule_tell(out,
		  "%s a step (%s) cannot load 16 bytes at a time: a matrix size or stride is odd "
		  "(align1 or align2 in the kernel's name), or not a multiple of 8 for 16-bit "
		  "types (recorded shapes).",
		  many_text(n, some.count, "matrix kernel"), span_text(a, some.ns));
	rule_brief(out, "%s, %s", n, a);
	return rule_saves(out, some.ns);
}

/* Fused attention replaces the matrix products around the softmax too. */
static bool unfused_attention(const struct facts *f, struct finding *out)
{
	struct amount some = facts_work(f, WORK_SOFTMAX, NULL);
	struct amount products = facts_batched(f);
	char a[SPAN_TEXT], b[SPAN_TEXT], n[MANY_TEXT], m[MANY_TEXT];

	if (products.count <= 0) /* the softmax does not belong to attention */
		return false;
	rule_tell(out,
		  "%s a step (%s) write and read the full score matrix, which fused attention "
		  "never stores; it also replaces %s (%s).",
		  many_text(n, some.count, "softmax kernel"), span_beside(a, some.ns, products.ns),
		  many_text(m, products.count, "product"), span_beside(b, products.ns, some.ns));
	rule_brief(out, "%s, %s", n, a);
	return some.count > 0 && rule_saves(out, some.ns + products.ns);
}

static bool layout(const struct facts *f, struct finding *out)
{
	struct amount turn = facts_work(f, WORK_LAYOUT, NULL);
	char a[SPAN_TEXT], n[MANY_TEXT];

	rule_tell(out, "%s a step only to convert tensors between NCHW and NHWC, %s in total.",
		  many_text(n, turn.count, "kernel"), span_text(a, turn.ns));
	rule_brief(out, "%s, %s", n, a);
	return rule_saves(out, turn.ns);
}

static const char ADVICE_COMPILED[] = "remove graph breaks, so that compiled code contains them "
				      "too; use the library's fused operators";

static const char *fusion_advice(const struct facts *f, const char *otherwise)
{
	if (facts_recorder(f) == RECORDER_XPROF)
		return "put more of the step into one jit, so that XLA can fuse them";
	return facts_has(f, TRAIT_COMPILED) ? ADVICE_COMPILED : otherwise;
}

static bool short_kernels(const struct facts *f, struct finding *out)
{
	struct amount all = facts_kernels(f, NULL);
	char a[SPAN_TEXT], b[SPAN_TEXT], n[NUMBER_TEXT], m[NUMBER_TEXT];

	out->advice = fusion_advice(f, out->advice);
	if (all.short_count < 0.5 * all.count || all.short_count < 100)
		return false;
	rule_tell(out,
		  "%s of %s kernels a step are shorter than %s and take %s together; each reads "
		  "and writes memory for little work.",
		  round_text(n, all.short_count), round_text(m, all.count),
		  span_text(a, SHORT_KERNEL_NS), span_text(b, all.short_ns));
	rule_brief(out, "%s of %s under %s", n, m, a);
	return rule_saves(out, all.short_ns);
}

static bool elementwise(const struct facts *f, struct finding *out)
{
	struct amount some = facts_work(f, WORK_ELEMENTWISE, NULL);
	struct amount copies = facts_work(f, WORK_COPY, NULL);
	char a[SPAN_TEXT], n[MANY_TEXT];

	out->advice = fusion_advice(f, out->advice);
	if (some.count + copies.count < 2) /* a single one has nothing to fuse with */
		return false;
	rule_tell(out,
		  "%s a step for elementwise operations and copies take %s; they are memory bound "
		  "and can be fused.",
		  many_text(n, some.count + copies.count, "kernel"),
		  span_text(a, some.ns + copies.ns));
	rule_brief(out, "%s, %s", n, a);
	/* upper bound: all of it is fused into other kernels */
	return rule_saves(out, some.ns + copies.ns);
}

/* The fallback: names the kernel with most time. */
static bool one_kernel(const struct facts *f, struct finding *out)
{
	struct facts_kernel top = facts_top_kernel(f);
	struct amount all = facts_kernels(f, NULL);
	enum work work = work_of(top.name);
	char a[SPAN_TEXT];

	if (f->compute_ns < 0.5 * f->window_ns || top.amount.ns < 0.4 * all.ns ||
	    work != WORK_OTHER || all.count < 2)
		return false;
	rule_tell(out, "One kernel takes %s of a step, which is %.0f %% of all kernel time: %s.",
		  span_text(a, top.amount.ns), 100 * top.amount.ns / all.ns, top.short_name);
	name_short(top.name, BRIEF_COLUMNS, out->brief, BRIEF_TEXT);
	if (facts_has(f, TRAIT_COMPILED))
		out->advice = "tune or replace this operation (fused version), or shrink this part "
			      "of the model";
	return rule_saves(out, top.amount.ns);
}

/* The fallback when no rule shows how to compute less: assumes the usual gain of tuning. */
static bool slow_kernels(const struct facts *f, struct finding *out)
{
	struct facts_kernel top = facts_top_kernel(f);
	struct amount all = facts_kernels(f, NULL);
	char a[SPAN_TEXT], n[MANY_TEXT];

	if (!top.name[0] || all.ns <= 0)
		return false;
	rule_tell(out,
		  "%s a step, %s of compute in total; if all ran 1.5 times as fast, a third of "
		  "that would be saved. The longest, with %.0f %% of the time, is %s.",
		  many_text(n, all.count, "kernel"), span_text(a, f->compute_ns),
		  100 * top.amount.ns / all.ns, top.short_name);
	name_short(top.name, BRIEF_COLUMNS, out->brief, BRIEF_TEXT);
	return rule_saves(out, savings_take(f).most_ns[FAMILY_COMPUTE]);
}

/* ---- gaps that no host thread makes ----------------------------------------------------- */

static bool dispatch(const struct facts *f, struct finding *out)
{
	double idle = facts_issued(f, "dispatch");
	char a[SPAN_TEXT];

	rule_tell(out, "Launched work does not begin although the GPU is idle, for %s of a step.",
		  span_text(a, idle));
	rule_brief(out, "%s until launched work begins", a);
	if (facts_has(f, TRAIT_GRAPHS))
		out->advice = "launch further ahead: avoid synchronization in the loop; use larger "
			      "graphs";
	return rule_saves(out, idle);
}

const struct rule rules_gpu[] = {
	{ "exposed_comm", "exposed communication", "gpus.exposed_comm_ns", exposed_comm, ADVICE_DDP,
	  .family = FAMILY_COMM, .needs_trust = true },
	{ "small_collectives", "many short collectives", "kernels", small_collectives,
	  "bucket or coalesce them (bucket_cap_mb, coalescing manager)", .family = FAMILY_COMM,
	  .needs_trust = true },
	{ "pageable_copy", "copies from pageable memory", "copies.exposed_ns", pageable_copy,
	  "use pin_memory=True and .to(device, non_blocking=True)", .family = FAMILY_COPY,
	  .needs_trust = true },
	{ "exposed_upload", "exposed uploads", "copies.exposed_ns", exposed_upload,
	  "prefetch the next batch on a separate stream", .family = FAMILY_COPY,
	  .needs_trust = true },
	{ "exposed_download", "exposed downloads", "copies.exposed_ns", exposed_download,
	  "copy back on a separate stream, every N steps", .family = FAMILY_COPY,
	  .needs_trust = true },
	{ "device_copy", "copies within the GPU", "copies.exposed_ns", device_copy,
	  "reduce in place; set gradient_as_bucket_view=True; avoid .contiguous() and .clone()",
	  .family = FAMILY_COPY, .needs_trust = true },
	{ "peer_copy", "copies between GPUs", "copies.exposed_ns", peer_copy,
	  "use collectives instead of .to(other_gpu); overlap them with compute",
	  .family = FAMILY_COPY, .needs_trust = true },
	{ "memset_fill", "fills of device memory", "copies.exposed_ns", memset_fill,
	  "use torch.empty for tensors that are overwritten anyway", .family = FAMILY_COPY,
	  .needs_trust = true },
	{ "fp32_gemm", "matrix products without tensor cores", "kernels", fp32_gemm,
	  "use mixed precision: torch.set_float32_matmul_precision('high'), or autocast to "
	  "bfloat16",
	  .family = FAMILY_COMPUTE },
	{ "fp32_conv", "convolutions without tensor cores", "kernels", fp32_conv,
	  "use mixed precision (autocast), channels_last and torch.backends.cudnn.benchmark=True",
	  .family = FAMILY_COMPUTE },
	{ "fp8", "matrix products that FP8 would speed up", "kernels gpus.name", fp8,
	  "use FP8 for large matrix products (Transformer Engine, torchao), or a smaller model",
	  .family = FAMILY_COMPUTE },
	{ "misaligned_gemm", "matrix products with misaligned sizes", "kernels", misaligned_gemm,
	  "pad the sizes (vocabulary, heads, tokens, hidden) to multiples of 8 for 16 bits, 16 for "
	  "FP8; use contiguous operands",
	  .family = FAMILY_COMPUTE },
	{ "unfused_attention", "unfused attention", "kernels", unfused_attention,
	  "use torch.nn.functional.scaled_dot_product_attention (flash attention)",
	  .family = FAMILY_COMPUTE },
	{ "layout", "kernels that only convert layouts", "kernels", layout,
	  "use memory_format=torch.channels_last for model and input", .family = FAMILY_COMPUTE },
	{ "short_kernels", "kernels too short to fill the GPU", "kernels", short_kernels,
	  "use torch.compile, fused operators or a larger batch", .family = FAMILY_COMPUTE },
	{ "elementwise", "elementwise kernels that could be fused", "kernels", elementwise,
	  "use torch.compile or the library's fused operators", .family = FAMILY_COMPUTE },
	{ "one_kernel", "one kernel takes most of the time", "kernels", one_kernel,
	  "tune or replace this operation (fused version, torch.compile), or shrink this part of "
	  "the model",
	  .family = FAMILY_COMPUTE },
	{ "stream_wait", "streams wait for each other", "idle_causes.stream_wait", NULL,
	  "use fewer cross-stream events; start the awaited work earlier", .family = FAMILY_HOST,
	  .needs_trust = true, .cause = "stream_wait",
	  .evidence = "Launched work waits for another stream while nothing else runs, for {} of a "
		      "step.",
	  .brief = "{} between streams" },
	{ "dispatch", "launched work begins late", "idle_causes.dispatch", dispatch,
	  "launch further ahead: avoid synchronization in the loop; use CUDA graphs",
	  .family = FAMILY_HOST, .needs_trust = true },
	{ "graph_gaps", "gaps inside CUDA graphs", "idle_causes.graph_internal", NULL,
	  "use fewer, larger nodes and parallel branches in the graph", .family = FAMILY_HOST,
	  .needs_trust = true, .cause = "graph_internal",
	  .evidence = "The GPU is idle between nodes of CUDA graphs for {} of a step.",
	  .brief = "{} between nodes" },
	{ "slow_kernels", "faster kernels", "gpus.compute_ns kernels", slow_kernels,
	  "profile the longest kernels (Nsight Compute, rocprof-compute), or use a smaller model",
	  .family = FAMILY_COMPUTE, .is_last = true },
	{ .name = NULL },
};
