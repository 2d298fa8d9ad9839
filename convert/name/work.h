/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - what kernels do, by their names. */
#ifndef CONVERT_NAME_WORK_H
#define CONVERT_NAME_WORK_H

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

#endif
