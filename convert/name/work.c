/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name/name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

const char *const work_words[] = {
#define X(name, word) word,
	WORK_LIST(X)
#undef X
};

/* The first part that the name contains decides; case is ignored. */
static const struct {
	const char *part;
	enum work work;
} parts[] = {
	{ "multi_tensor", WORK_MULTI_TENSOR },
	{ "fused_adam", WORK_MULTI_TENSOR },
	{ "nchwtonhwc", WORK_LAYOUT },
	{ "nhwctonchw", WORK_LAYOUT },
	{ "nchw_to_nhwc", WORK_LAYOUT },
	{ "nhwc_to_nchw", WORK_LAYOUT },
	{ "transpose_readwrite", WORK_LAYOUT },
	{ "fillfunctor", WORK_FILL },
	{ "fill_kernel", WORK_FILL },
	{ "_sgemm_", WORK_GEMM_FP32 },
	{ "sgemm_128", WORK_GEMM_FP32 },
	{ "simt_sgemm", WORK_GEMM_FP32 },
	{ "f32f32_f32f32", WORK_GEMM_FP32 },
	{ "ampere_sgemm", WORK_GEMM_FP32 },
	{ "maxwell_sgemm", WORK_GEMM_FP32 },
	{ "implicit_convolve_sgemm", WORK_CONV_FP32 },
	{ "dgrad_engine<float", WORK_CONV_FP32 },
	{ "wgrad_alg0_engine<float", WORK_CONV_FP32 },
	{ "wgrad_alg1_engine<float", WORK_CONV_FP32 },
	{ "_scudnn_", WORK_CONV_FP32 },
	{ "_align1", WORK_GEMM_UNALIGNED },
	{ "_align2", WORK_GEMM_UNALIGNED },
	{ "logsoftmax", WORK_OTHER },
	{ "log_softmax", WORK_OTHER },
	{ "softmax", WORK_SOFTMAX },
	{ "tf32f32", WORK_GEMM_TF32 },
	{ "gemm_tf32", WORK_GEMM_TF32 },
	{ "tensorop_s1688gemm", WORK_GEMM_TF32 },
	{ "gemm", WORK_GEMM },
	{ "cutlass", WORK_GEMM },
	{ "cijk_", WORK_GEMM }, /* Tensile, used by rocBLAS and hipBLASLt */
	{ "direct_copy_kernel", WORK_COPY },
	{ "catarraybatchedcopy", WORK_COPY },
	{ "copy_kernel", WORK_COPY },
	{ "elementwise", WORK_ELEMENTWISE },
};

enum work work_of(const char *kernel)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *at = strcasestr(kernel, parts[i].part);

		/* "align1" must not match "align16" */
		if (at && !(isdigit((unsigned char)parts[i].part[strlen(parts[i].part) - 1]) &&
			    isdigit((unsigned char)at[strlen(parts[i].part)])))
			return parts[i].work;
	}
	return WORK_OTHER;
}
