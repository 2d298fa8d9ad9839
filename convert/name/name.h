/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - what the name of an event tells about it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Demangles C++ names as the C++ runtime does.
 *
 * CUPTI reports mangled names of kernels, while PyTorch's profiler, Nsight and all that looks for
 * "ncclDevKernel" or "at::native" use the C++ text.  Any thread may call; even a hostile name takes
 * only some milliseconds and megabytes.
 */

/* The caller frees the result; NULL: the name is not mangled, or uses unsupported syntax. */
char *name_demangle(const char *name);

/*
 * Tells by its name what an operator of a framework computes.
 *
 * Names are those of PyTorch's dispatcher ("aten::addmm"), of libraries that register operators
 * there, of autograd's functions ("AddmmBackward0") and of torch.compile's kernels
 * ("triton_poi_fused_add_0").  It has no state; callers that ask for every event should keep the
 * answer by name.
 */

/* "gemm", "convolution", "attention", ... or "other"; constant, never NULL. */
const char *operator_category(const char *name);
/* Whether an operator is one that a layer calls, so that only a forward begins it. */
bool name_is_layer(const char *op);

/*
 * What a server writes about a step into the annotation around it (DEFINITIONS.md 3).
 *
 * A request whose prompt is being read is in prefill; one that generates a token in each step is in
 * decode.
 */

enum { SERVING_UNKNOWN = UINT32_MAX };
struct serving_step {             /* SERVING_UNKNOWN where the annotation does not say it */
	uint32_t batch;           /* requests, or images */
	uint32_t padded;          /* requests, with padding to the batch of a graph */
	uint32_t prefill, decode; /* requests of each kind */
	uint32_t tokens;          /* computed: those of prompts and one for each decode */
};
/* Returns false if the name is not that of a server's step. */
bool serving_step_of(const char *name, struct serving_step *out);

/* What kernels do, by their names. */

/* clang-format off */
#define WORK_LIST(X)                                                                               \
	X(OTHER, "other") X(COMM, "comm") X(FILL, "fill") X(MULTI_TENSOR, "multi_tensor")          \
	X(GEMM, "gemm") X(GEMM_UNALIGNED, "gemm_unaligned") X(GEMM_TF32, "gemm_tf32") X(GEMM_FP32, "gemm_fp32") X(CONV_FP32, "conv_fp32") X(LAYOUT, "layout")    \
	X(SOFTMAX, "softmax") X(COPY, "copy") X(ELEMENTWISE, "elementwise") X(GRAPH, "graph")
/* clang-format on */
enum work {
#define X(name, word) WORK_##name,
	WORK_LIST(X)
#undef X
		WORK_COUNT,
};
const char *work_word(enum work work);
enum work work_of(const char *kernel);
