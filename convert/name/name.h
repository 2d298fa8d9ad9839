/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - classifies events by their names.  All functions are stateless, so any thread may call
 * them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Demangles C++ names like the C++ runtime does.
 *
 * CUPTI reports mangled names of kernels, while PyTorch's profiler, Nsight and everything that
 * searches for "ncclDevKernel" or "at::native" use the C++ text.  Even a hostile name takes only
 * some milliseconds and megabytes.
 */

/* Returns the demangled name, which the caller frees.  NULL: the name is not mangled, or uses
 * unsupported syntax. */
char *name_demangle(const char *name);

/*
 * Classifies an operator of a framework by what it computes.
 *
 * Names are those of PyTorch's dispatcher ("aten::addmm"), of libraries that register operators
 * there, of autograd's functions ("AddmmBackward0") and of torch.compile's kernels
 * ("triton_poi_fused_add_0").  Callers with many events should cache the result by name.
 */

/* Returns "gemm", "convolution", "attention", ... or "other": a constant, never NULL. */
const char *operator_category(const char *name);
/* Returns whether layers call an operator, so that it only occurs in a forward. */
bool name_is_layer(const char *op);

/*
 * Parses the description of a step that an inference server writes into the name of its annotation
 * (DEFINITIONS.md 3).
 *
 * A request whose prompt is being read is in prefill; a request that generates a token in each step
 * is in decode.
 */

enum { SERVING_UNKNOWN = UINT32_MAX };
struct serving_step {             /* SERVING_UNKNOWN: the name does not contain the number */
	uint32_t batch;           /* number of requests, or images */
	uint32_t padded;          /* number of requests including padding to the batch of a graph */
	uint32_t prefill, decode; /* number of requests of each kind */
	uint32_t tokens;          /* computed tokens: those of prompts and one per decode */
};
/* Parses a step's name.  Returns false if the name is not that of a server's step. */
bool serving_step_of(const char *name, struct serving_step *out);

/* The work of kernels, by their names. */

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
extern const char *const work_words[WORK_COUNT];
enum work work_of(const char *kernel);
