/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that communicate, by their names (analyze/DEFINITIONS.md 2). */
#include "convert/name/rules.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/*
 * Each is looked for as whole words in the name of the function, whatever separates these words:
 * "allreduce" is in all_reduce_kernel and in twoShotAllReduceKernel, "allgather" is not in
 * smallGather, and "hybridep" is not in hybrid_epilogue.
 */
static const struct {
	const char *word;
	bool is_operation; /* compute kernels have it in their names, too: see is_compute() */
} words[] = {
	{ "nccl", false }, /* NVIDIA's: ncclDevKernel_AllReduce_..., ncclSymkDevKernel_... */
	{ "rccl", false }, /* AMD's; most of its kernels are called nccl..., as NCCL's are */
	{ "mscclpp", false },
	{ "msccl", false },   /* Microsoft's: mscclpp::..., RCCL's mscclKernel_... */
	{ "nvshmem", false }, /* NVIDIA's: nvshmemi_..., PyTorch's c10d::nvshmem_extension */
	{ "nvshmemi", false },
	{ "nvshmemx", false },
	{ "deepep", false },   /* DeepSeek's DeepEP: deep_ep::internode::dispatch ... */
	{ "dpskep", false },   /* ... and what it is called inside DeepSeek: dpsk::ep::intranode */
	{ "dpsk2ep", false },  /* the same, mangled */
	{ "hybridep", false }, /* DeepEP's hybrid branch: hybrid_ep::dispatch_kernel */
	{ "uccl", false },     /* UCCL: uccl::internode::combine */
	{ "morimoe", false },  /* AMD's mori: mori::moe::EpDispatchIntraNodeKernel ... */
	{ "mori3moe", false }, /* ... mangled */
	{ "moricollective", false },
	{ "epdispatch", false }, /* ... and by C names: EpDispatchInterNodeV1Kernel_bf16 */
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
	{ "oneccl", false },          /* Intel's: oneccl_allreduce_pcie */
	{ "hccl", false },            /* Huawei's and Habana's: HcclAllReduce ... */
	{ "hcom", false }, /* ... and as a task of Ascend's profiler: hcom_allReduce__491_4_1 */
	{ "bytedanceflux", false }, /* ByteDance's flux; its GEMMs compute, see is_compute() */
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

/* Within a block or a warp all threads reduce, too. */
static const char *const within_gpu[] = {
	"warp", "block", "quad", "wave", "lane", "thread", "group", "cluster", "cta",
};
/* Names of fused kernels: what takes their time is the matrix product. */
static const char *const computing[] = { "gemm", "matmul", "attention", "attn", "cutlass" };

/* The name of the function, without the arguments of templates and calls. */
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

/* Whether `word` stands here and ends with a word of the name. */
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
	/* "REDUCEKERNEL" cannot be split into words, "reduceKernel" can. */
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

/* Torch Inductor names a kernel by the operators whose inputs and results it makes:
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
