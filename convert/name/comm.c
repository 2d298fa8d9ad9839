/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes kernels that communicate by their names (analyze/DEFINITIONS.md 2). */
#include "convert/name/rules.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/*
 * Each row is searched as one or more whole words of the function's name, whatever separates them:
 * "allreduce" is in all_reduce_kernel and in twoShotAllReduceKernel, "allgather" is not in
 * smallGather, and "hybridep" is not in hybrid_epilogue.
 */
static const struct {
	const char *word;
	bool is_operation; /* also in names of compute kernels: see is_compute() */
} words[] = {
	{ "nccl", false }, /* NVIDIA: ncclDevKernel_AllReduce_..., ncclSymkDevKernel_... */
	{ "rccl", false }, /* AMD; most of its kernels have NCCL's names */
	{ "mscclpp", false },
	{ "msccl", false },   /* Microsoft: mscclpp::..., RCCL's mscclKernel_... */
	{ "nvshmem", false }, /* NVIDIA: nvshmemi_..., PyTorch's c10d::nvshmem_extension */
	{ "nvshmemi", false },
	{ "nvshmemx", false },
	{ "deepep", false },   /* DeepSeek's DeepEP: deep_ep::internode::dispatch ... */
	{ "dpskep", false },   /* its name inside DeepSeek: dpsk::ep::intranode */
	{ "dpsk2ep", false },  /* the same, mangled */
	{ "hybridep", false }, /* DeepEP's hybrid branch: hybrid_ep::dispatch_kernel */
	{ "uccl", false },     /* UCCL: uccl::internode::combine */
	{ "morimoe", false },  /* AMD's mori: mori::moe::EpDispatchIntraNodeKernel ... */
	{ "mori3moe", false }, /* the same, mangled */
	{ "moricollective", false },
	{ "epdispatch", false }, /* mori's C names: EpDispatchInterNodeV1Kernel_bf16 */
	{ "epcombine", false },
	{ "pplx", false },              /* Perplexity's kernels: pplx::... */
	{ "quickreduce", false },       /* vLLM on ROCm: quickreduce::allreduce_prototype_twoshot */
	{ "crossdevicereduce", false }, /* vLLM, SGLang, aiter: cross_device_reduce_1stage */
	{ "userbuffers", false },     /* Transformer Engine: userbuffers_fp16_sum_inplace_gpu_rr */
	{ "kuserbuffers", false },    /* Transformer Engine: kuserbuffers_pushrecv */
	{ "symmetricmemory", false }, /* PyTorch: c10d::symmetric_memory::barrier_kernel */
	{ "hybridcubemesh", false },  /* PyTorch: c10d::intra_node_comm::hybridCubeMeshAllReduce */
	{ "pushpullhalos", false },   /* Apex's peer memory */
	{ "fusedmoecomm", false },    /* TRT-LLM: fusedMoeCommKernel */
	{ "oneccl", false },          /* Intel: oneccl_allreduce_pcie */
	{ "hccl", false },            /* Huawei and Habana: HcclAllReduce ... */
	{ "hcom", false },            /* a task in Ascend's profiler: hcom_allReduce__491_4_1 */
	{ "bytedanceflux", false },   /* ByteDance's flux, except GEMMs: see is_compute() */
	{ "bytedance4flux", false },
	/* TRT-LLM and flashinfer: allreduce_fusion_kernel_oneshot_lamport, oneShotAllReduceKernel;
	 * PyTorch: multimem_all_gather_kernel, all_to_all_v2d; XLA: all-reduce-start. */
	{ "allreduce", true },
	{ "allgatherv", true },
	{ "alltoallv", true },
	{ "allgather", true },
	{ "reducescatter", true },
	{ "alltoall", true },
	{ "all2all", true },
	{ "a2a", true }, /* moeA2ADispatchKernel, pplx-garden's a2a_dispatch_send_kernel */
};

/* One of these words before an operation means that it runs within one GPU: threads of a block or
 * warp reduce, too. */
static const char *const within_gpu[] = {
	"warp", "block", "quad", "wave", "lane", "thread", "group", "cluster", "cta",
};
/* Words in names of fused kernels, which spend their time on the matrix product. */
static const char *const computing[] = { "gemm", "matmul", "attention", "attn", "cutlass" };

/* Returns the length of the function's name without template arguments and parameters. */
static size_t function_length(const char *kernel)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t len = strcspn(kernel, "<(");

	while (kernel[len] == '(' && !strncmp(kernel + len, anonymous, sizeof(anonymous) - 1))
		len += sizeof(anonymous) - 1 + strcspn(kernel + len + sizeof(anonymous) - 1, "<(");
	return len;
}

static bool begins_word(const char *name, size_t at)
{
	unsigned char c = (unsigned char)name[at], before = at ? (unsigned char)name[at - 1] : 0;

	return isalpha(c) && (!isalpha(before) || (isupper(c) && islower(before)));
}

/* Returns whether the name begins with `word`, and a word of the name ends there. */
static bool is_word(const char *name, size_t len, const char *word)
{
	size_t i;

	for (i = 0; i < len && *word; i++) {
		if (!isalnum((unsigned char)name[i]))
			continue;
		if (tolower((unsigned char)name[i]) != *word++)
			return false;
	}
	if (*word || i == len || !isalpha((unsigned char)name[i]))
		return !*word;
	/* "REDUCEKERNEL" cannot be split into words, but "reduceKernel" can. */
	return isupper((unsigned char)name[i]);
}

static bool ends_with_one(const char *name, size_t len)
{
	while (len && !isalnum((unsigned char)name[len - 1]))
		len--;
	for (size_t i = 0; i < sizeof(within_gpu) / sizeof(within_gpu[0]); i++) {
		size_t size = strlen(within_gpu[i]);

		if (len >= size && !strncasecmp(name + len - size, within_gpu[i], size))
			return true;
	}
	return false;
}

/* Returns whether a kernel computes although its name has an operation.  For example, Torch
 * Inductor names a kernel by the operators whose inputs and results it makes:
 * triton_poi_fused_all_reduce_0. */
static bool is_compute(const char *name, size_t len)
{
	static const char inductor[] = "triton_";

	if (!strncmp(name, inductor, sizeof(inductor) - 1) && strstr(name, "_fused_"))
		return true;
	for (size_t i = 0; i < sizeof(computing) / sizeof(computing[0]); i++) {
		const char *at = strcasestr(name, computing[i]);

		if (at && (size_t)(at - name) < len)
			return true;
	}
	return false;
}

bool name_communicates(const char *kernel)
{
	size_t len = function_length(kernel);

	for (size_t at = 0; at < len; at++) {
		if (!begins_word(kernel, at))
			continue;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (is_word(kernel + at, len - at, words[i].word) &&
			    !(words[i].is_operation && ends_with_one(kernel, at)))
				return !is_compute(kernel, len);
	}
	return false;
}
