/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "analyze/model/model.h"
#include "analyze/model/peaks.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F32  "\"float\""
#define B16  "\"c10::BFloat16\""
#define FP8  "\"c10::Float8_e4m3fn\""
#define I64  "\"long int\""
#define NO   "\"\""
#define STEP "execute_40_context_2(sq8sk8sqsq32sqsk32)_generation_32(sq32sk1000sqsq32sqsk1000)"

/* Figures are worked out by hand, from the shapes. */
static const struct {
	const char *name, *dims, *types, *values;
	double flops, bytes; /* bytes -1: unknown */
} rows[] = {
	{ "aten::mm", "[[4,5],[5,6]]", "[" B16 "," B16 "]", NULL, 240, 40 + 60 + 48 },
	{ "aten::bmm", "[[2,4,5],[2,5,6]]", "[" F32 "," F32 "]", NULL, 480, 160 + 240 + 192 },
	{ "aten::addmm", "[[6],[4,5],[5,6],[],[]]", "[" F32 "," F32 "," F32 "," NO "," NO "]", NULL,
	  240, 24 + 80 + 120 + 96 },
	{ "aten::_addmm_activation", "[[6],[4,5],[5,6]]", "[" F32 "," F32 "," F32 "]", NULL, 240,
	  24 + 80 + 120 + 96 },
	{ "aten::baddbmm", "[[2,4,6],[2,4,5],[2,5,6]]", "[" F32 "," F32 "," F32 "]", NULL, 480,
	  192 + 160 + 240 + 192 },
	{ "aten::linear", "[[3,4,5],[6,5],[6]]", "[" B16 "," B16 "," B16 "]", NULL, 720,
	  120 + 60 + 12 + 144 },
	{ "vllm::rocm_unquantized_gemm", "[[4,5],[6,5],[]]", "[" B16 "," B16 "," NO "]", NULL, 240,
	  40 + 60 + 48 },
	{ "bitsandbytes::int8_linear_matmul", "[[4,5],[6,5]]", "[\"signed char\",\"signed char\"]",
	  NULL, 240, 20 + 30 + 48 },
	{ "aiter::gemm_a16w16", "[[4,5],[6,5]]", "[" B16 "," B16 "]", NULL, 240, 40 + 60 + 48 },
	{ "aiter::gemm_a4w4", "[[4,8],[6,8],[4],[6]]",
	  "[\"unsigned char\",\"unsigned char\",\"unsigned char\",\"unsigned char\"]", NULL, 768,
	  32 + 48 + 4 + 6 + 48 },
	{ "aiter::gemm_a8w8", "[[4,8],[6,8],[4],[6]]", "[" FP8 "," FP8 "," F32 "," F32 "]", NULL,
	  384, 32 + 48 + 16 + 24 + 48 },
	{ "sglang::w8a8_block_fp8_matmul", "[[4,8],[6,8],[4,1],[1,1]]",
	  "[" FP8 "," FP8 "," F32 "," F32 "]", NULL, 384, 32 + 48 + 16 + 4 + 48 },
	{ "aten::_scaled_mm", "[[4,8],[8,6],[],[],[6],[],[],[]]",
	  "[" FP8 "," FP8 "," F32 "," F32 "," B16 "," NO ",\"Scalar\",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"\",\"\",\"\",\"6\",\"True\"]", 384, 32 + 48 + 4 + 4 + 12 + 96 },
	{ "aten::_scaled_mm", "[[4,8],[8,6]]",
	  "[\"c10::Float4_e2m1fn_x2\",\"c10::Float4_e2m1fn_x2\"]", NULL, 768, 32 + 48 + 48 },
	{ "aten::_grouped_mm", "[[10,4],[3,4,6],[3]]", "[" B16 "," B16 ",\"int\"]", NULL, 480,
	  80 + 144 + 120 },
	{ "aten::_grouped_mm", "[[4,10],[10,6],[3]]", "[" B16 "," B16 ",\"int\"]", NULL, 480,
	  80 + 120 + 144 },
	{ "primus::grouped_gemm", "[[10,4],[3,6,4],[3]]", "[" B16 "," B16 ",\"int\"]", NULL, 480,
	  80 + 144 + 120 },
	{ "aten::mv", "[[4,5],[5]]", "[" F32 "," F32 "]", NULL, 40, 80 + 20 + 16 },
	{ "aten::addmv_", "[[4],[4,5],[5]]", "[" F32 "," F32 "," F32 "]", NULL, 40,
	  16 + 80 + 20 + 16 },
	{ "aten::dot", "[[5],[5]]", "[" F32 "," F32 "]", NULL, 10, 44 },
	{ "aten::outer", "[[4],[5]]", "[" F32 "," F32 "]", NULL, 20, 16 + 20 + 80 },
	{ "aten::addr", "[[4,5],[4],[5]]", "[" F32 "," F32 "," F32 "]", NULL, 20,
	  80 + 16 + 20 + 80 },

	{ "aten::convolution", "[[2,6,9,9],[8,3,3,3],[8],[],[],[],[],[],[]]",
	  "[" F32 "," F32 "," F32 "," NO "," NO "," NO "," NO "," NO "," NO "]",
	  "[\"\",\"\",\"\",\"[2, 2]\",\"[1]\",\"[1, 1]\",\"False\",\"[0, 0]\",\"2\"]",
	  2.0 * 2 * 8 * 25 * 27, 4.0 * (972 + 216 + 8 + 400) },
	{ "aten::convolution", "[[2,8,5],[8,3,3],[],[],[],[],[],[],[]]",
	  "[" F32 "," F32 "," NO "," NO "," NO "," NO "," NO "," NO "," NO "]",
	  "[\"\",\"\",\"\",\"[2]\",\"[1]\",\"[1]\",\"True\",\"[1]\",\"2\"]", 2.0 * 80 * 9,
	  4.0 * (80 + 72 + 2 * 6 * 10) },
	{ "aten::convolution_backward", "[[2,8,5,5],[2,6,9,9],[8,3,3,3],[],[],[],[],[],[],[],[]]",
	  "[" F32 "," F32 "," F32 "," NO "," NO "," NO "," NO "," NO "," NO "," NO "," NO "]",
	  "[\"\",\"\",\"\",\"[8]\",\"[2, 2]\",\"[1, 1]\",\"[1, 1]\",\"False\",\"[0, "
	  "0]\",\"2\",\"[False, "
	  "True, True]\"]",
	  2.0 * 400 * 27, 4.0 * (400 + 972 + 216 + 8) },
	{ "aten::cudnn_convolution_backward", "[[2,6,9,9],[2,8,5,5],[8,3,3,3]]",
	  "[" F32 "," F32 "," F32 "]", NULL, 4.0 * 400 * 27, 8.0 * (400 + 972 + 216) },
	{ "aten::cudnn_convolution_backward_input", "[[],[2,8,5,5],[8,3,3,3]]",
	  "[\"GenericList\"," F32 "," F32 "]", NULL, 2.0 * 400 * 27, -1 },

	{ "aten::_scaled_dot_product_flash_attention", "[[2,4,8,16],[2,2,8,16],[2,2,8,16],[],[]]",
	  "[" F32 "," F32 "," F32 ",\"Scalar\",\"Scalar\"]", "[\"\",\"\",\"\",\"0.\",\"True\"]",
	  2.0 * 2 * 4 * 32 * 32, 4.0 * (1024 + 512 + 512 + 1024) },
	{ "aten::_scaled_dot_product_efficient_attention",
	  "[[2,4,8,16],[2,4,6,16],[2,4,6,8],[],[],[],[]]",
	  "[" B16 "," B16 "," B16 "," NO ",\"Scalar\",\"Scalar\",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"\",\"False\",\"0.\",\"True\"]", 2.0 * 8 * 24 * (18 + 12),
	  2.0 * (1024 + 768 + 384 + 512) },
	{ "aten::_scaled_dot_product_fused_attention_overrideable",
	  "[[1,1,4,2],[1,1,4,2],[1,1,4,2],[],[],[]]",
	  "[" B16 "," B16 "," B16 "," NO ",\"Scalar\",\"Scalar\"]", NULL, 2.0 * 4 * 16, 2.0 * 32 },
	{ "aten::_scaled_dot_product_flash_attention_backward",
	  "[[2,4,8,16],[2,4,8,16],[2,4,8,16],[2,4,8,16]]", "[" F32 "," F32 "," F32 "," F32 "]",
	  NULL, 2.0 * 8 * 80 * 64, 4.0 * 8 * 1024 },
	{ "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
	  "[[1,1,4,2],[1,1,4,2],[1,1,4,2],[1,1,4,2],[],[],[],[]]",
	  "[" F32 "," F32 "," F32 "," F32 "," NO "," NO ",\"Scalar\",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"\",\"\",\"\",\"0.\",\"True\"]", 2.0 * 10 * 8, 4.0 * 8 * 8 },
	{ "aten::_scaled_dot_product_cudnn_attention_backward",
	  "[[1,1,4,2],[1,1,4,2],[1,1,4,2],[1,1,4,2]]", "[" F32 "," F32 "," F32 "," F32 "]", NULL,
	  2.0 * 10 * 16, 4.0 * 8 * 8 },
	{ "aten::_flash_attention_forward", "[[2,8,4,16],[2,8,4,16],[2,8,4,16]]",
	  "[" B16 "," B16 "," B16 "]", NULL, 2.0 * 8 * 32 * 64, 2.0 * 4 * 1024 },
	{ "aten::_flash_attention_backward", "[[1,4,1,2],[1,4,1,2],[1,4,1,2],[1,4,1,2]]",
	  "[" B16 "," B16 "," B16 "," B16 "]", NULL, 2.0 * 10 * 16, 2.0 * 8 * 8 },
	{ "aten::_efficient_attention_forward",
	  "[[2,8,4,16],[2,8,4,16],[2,8,4,16],[],[],[],[],[],[],[]]",
	  "[" B16 "," B16 "," B16 "," NO "," NO "," NO "," NO "," NO "," NO ",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"1\"]", 2.0 * 8 * 32 * 32,
	  2.0 * 4 * 1024 },
	{ "aten::_efficient_attention_backward", "[[1,4,1,2],[1,4,1,2],[1,4,1,2],[1,4,1,2]]",
	  "[" B16 "," B16 "," B16 "," B16 "]", NULL, 2.0 * 10 * 16, 2.0 * 8 * 8 },
	{ "FlashAttnFunc", "[[1,4,1,2],[1,8,1,2],[1,8,1,2],[],[],[]]",
	  "[" B16 "," B16 "," B16 ",\"Scalar\",\"Scalar\",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"0.\",\"0.\",\"True\"]", 2.0 * 4 * (4 * 6), 2.0 * (8 + 16 + 16 + 8) },
	{ "flash_attn::_flash_attn_backward", "[[1,4,1,2],[1,4,1,2],[1,4,1,2],[1,4,1,2]]",
	  "[" B16 "," B16 "," B16 "," B16 "]", NULL, 2.0 * 10 * 16, 2.0 * 8 * 8 },
	{ "flash_attn::_flash_attn_varlen_forward",
	  "[[10,2,4],[10,2,4],[10,2,4],[3],[3],[],[],[],[],[]]",
	  "[" B16 "," B16 "," B16 ",\"int\",\"int\",\"Scalar\",\"Scalar\"," NO "," NO
	  ",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"\",\"\",\"6\",\"6\",\"\",\"\",\"False\"]", 2.0 * 2 * 52 * 8,
	  2.0 * 4 * 80 },
	{ "flash_attn::_flash_attn_varlen_backward",
	  "[[10,2,4],[10,2,4],[10,2,4],[10,2,4],[],[],[],[],[],[3],[3],[],[],[],[],[]]",
	  "[" B16 "," B16 "," B16 "," B16 "," NO "," NO "," NO "," NO "," NO ",\"int\",\"int\"," NO
	  "," NO "," NO "," NO "," NO "]",
	  "[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"6\",\"6\",\"\",\"\","
	  "\"False\"]",
	  2.0 * 2 * 52 * 20, 4.0 * 4 * 80 },
	{ "vllm::unified_attention_with_output", "[[40,8,16],[40,2,16],[40,2,16],[40,8,16]]",
	  "[" B16 "," B16 "," B16 "," B16 "]", NULL, 8.0 * 32 * (64 - 32 + 2000),
	  40.0 * (256 * 2 + 64 * 2) + 968.0 * 64 * 2 },
	{ "sglang_profiler::attention_paged_attention_ragged", /* k and v are pages */
	  "[[40,8,16],[9999],[40,8,16],[900,1,2,16],[900,1,2,16],[41]]",
	  "[" B16 ",\"unsigned char\"," B16 "," B16 "," B16 ",\"int\"]", NULL,
	  8.0 * 32 * (64 - 32 + 2000), 40.0 * (256 * 2 + 64 * 2) + 968.0 * 64 * 2 },
	/* FLOPs need no types, bytes do */
	{ "aten::mm", "[[4,5],[5,6]]", NULL, NULL, 240, -1 },
	{ "aten::mm", "[[4,5],[5,6]]", "[" NO "," NO "]", NULL, 240, -1 },
	{ "aten::mm", "[[4,5],[5,6]]", "[" F32 "]", NULL, 240, -1 },
	{ "aten::cat", "[[[4,5],[4,5]],[]]", "[\"TensorList\"," NO "]", NULL, 0, -1 },

	{ "aten::batch_norm", "[[2,4,5],[4],[4],[4],[4],[]]",
	  "[" F32 "," F32 "," F32 "," F32 "," F32 ",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"\",\"\",\"False\"]", 80 + 24, 4 * (80 + 4 * 4) },
	{ "aten::native_batch_norm", "[[2,4,5],[4],[4],[4],[4],[]]",
	  "[" F32 "," F32 "," F32 "," F32 "," F32 ",\"Scalar\"]",
	  "[\"\",\"\",\"\",\"\",\"\",\"True\"]", 80 + 24 + 120, 4 * (80 + 4 * 6) },
	{ "aten::native_group_norm", "[[2,4,5],[4],[4]]", "[" F32 "," F32 "," F32 "]", NULL, 224,
	  4 * (80 + 4 * 6) },
	{ "aten::group_norm", "[[2,4,5],[],[4],[4]]", "[" F32 ",\"Scalar\"," F32 "," F32 "]", NULL,
	  224, 4 * (80 + 4 * 6) },
	{ "aten::native_layer_norm", "[[2,4,5],[],[5],[5]]",
	  "[" F32 ",\"ScalarList\"," F32 "," F32 "]", "[\"\",\"[5]\",\"\",\"\"]", 80 + 30 + 120,
	  4 * (80 + 5 * 4) },
	{ "aten::native_batch_norm_backward", "[[2,4,5],[2,4,5],[4]]", "[" F32 "," F32 "," F32 "]",
	  NULL, 360, 4 * (120 + 16) },
	{ "aten::cudnn_batch_norm_backward", "[[2,4,5],[2,4,5],[4]]", "[" F32 "," F32 "," F32 "]",
	  NULL, 360, 4 * (120 + 16) },
	{ "aten::native_layer_norm_backward", "[[2,4,5],[2,4,5],[],[],[],[5],[5],[]]",
	  "[" F32 "," F32 ",\"ScalarList\"," F32 "," F32 "," F32 "," F32 ",\"ScalarList\"]",
	  "[\"\",\"\",\"[5]\",\"\",\"\",\"\",\"\",\"[False, True, True]\"]", 160, 4 * (80 + 20) },
	{ "aten::native_group_norm_backward", "[[2,4,5],[2,4,5],[],[],[4]]",
	  "[" F32 "," F32 "," F32 "," F32 "," F32 "]", NULL, 360, 4 * (120 + 16) },
	{ "aten::_fused_rms_norm", "[[2,8],[],[8]]", "[" F32 ",\"ScalarList\"," F32 "]", NULL, 68,
	  4 * 40 },
	{ "aten::_fused_rms_norm_backward", "[[2,8],[2,8],[],[2],[8],[]]",
	  "[" F32 "," F32 ",\"ScalarList\"," F32 "," F32 ",\"ScalarList\"]", NULL, 32 + 96 + 32,
	  4 * (48 + 16) },
	{ "_C::fused_add_rms_norm", "[[2,8],[2,8],[8]]", "[" B16 "," B16 "," B16 "]", NULL, 84,
	  2 * 72 },
	{ "aiter::add_rmsnorm", "[[2,8],[2,8],[2,8],[2,8],[8]]",
	  "[" B16 "," B16 "," B16 "," B16 "," B16 "]", NULL, 84, 2 * 72 },
	{ "_C::rms_norm", "[[2,8],[2,8],[8]]", "[" B16 "," B16 "," B16 "]", NULL, 68, 2 * 40 },
	{ "aiter::rms_norm", "[[2,8],[8]]", "[" B16 "," B16 "]", NULL, 68, 2 * 40 },

	{ "aten::max_pool2d_with_indices", "[[1,2,5,5],[],[],[],[],[]]", "[" F32 "]",
	  "[\"\",\"[3, 3]\",\"[2, 2]\",\"[1, 1]\",\"[1, 1]\",\"False\"]", 18 * 9, 200 + 18 * 12 },
	{ "aten::max_pool3d_with_indices", "[[1,4,4,4],[],[],[],[],[]]", "[" F32 "]",
	  "[\"\",\"2\",\"[]\",\"0\",\"2\",\"False\"]", 8, 256 + 12 },
	{ "aten::avg_pool2d", "[[2,5,5],[],[],[],[]]", "[" F32 "]",
	  "[\"\",\"[2, 2]\",\"[]\",\"[0, 0]\",\"True\"]", 18 * 4, 200 + 72 },
	{ "aten::avg_pool3d", "[[1,1,3,3,3],[],[],[],[]]", "[" F32 "]",
	  "[\"\",\"[2]\",\"[3]\",\"[1]\",\"True\"]", 64, 108 + 32 },
	{ "aten::max_pool2d_with_indices_backward",
	  "[[1,2,3,3],[1,2,5,5],[],[],[],[],[],[1,2,3,3]]",
	  "[" F32 "," F32 ",\"\",\"\",\"\",\"\",\"\"," I64 "]", NULL, 50, 72 + 144 + 200 },
	{ "aten::adaptive_max_pool2d_backward", "[[1,1,2,2],[1,1,4,4],[1,1,2,2]]",
	  "[" F32 "," F32 "," I64 "]", NULL, 16, 16 + 32 + 64 },
	{ "aten::_adaptive_avg_pool2d_backward", "[[1,2,1,1],[1,2,5,5]]", "[" F32 "," F32 "]", NULL,
	  50, 8 + 200 },
	{ "aten::_adaptive_avg_pool2d", "[[1,2,5,5],[]]", "[" F32 "]", "[\"\",\"[1, 1]\"]", 2,
	  208 },
	{ "aten::_embedding_bag", "[[100,8],[6],[2]]", "[" F32 "," I64 "," I64 "]", NULL, 48,
	  (6 + 2) * 8 * 4 + 48 + 16 },
	{ "aten::_embedding_bag_dense_backward", "[[2,8],[6],[6],[2],[2],[]]",
	  "[" F32 "," I64 "," I64 "," I64 "," I64 "]", "[\"\",\"\",\"\",\"\",\"\",\"100\"]", 16,
	  64 + 48 + 3200 },
	{ "aten::scatter_add_", "[[50],[],[8],[8]]", "[" F32 ",\"Scalar\"," I64 "," F32 "]", NULL,
	  8, 64 + 32 + 64 },
	{ "aten::scatter_", "[[50],[],[8],[8]]", "[" F32 ",\"Scalar\"," I64 "," F32 "]", NULL, 0,
	  64 + 32 + 32 },
	{ "aten::_index_put_impl_", "[[6,8],[],[5]]", "[" F32 ",\"\"," F32 "]", NULL, 0, 40 },
	{ "fbgemm::permute_pooled_embs_auto_grad", "[[4,8],[3]]", "[" F32 "," I64 "]", NULL, 0,
	  256 },
	{ "fbgemm::permute_2D_sparse_data", "[[3],[3,4],[20],[]]", "[\"int\",\"int\",\"int\"]",
	  NULL, 0, 2 * (48 + 80) },
	{ "fbgemm::bounds_check_indices", "[[9],[30],[12]]", "[" I64 "," I64 "," I64 "]", NULL, 30,
	  240 + 96 },
	{ "aten::glu", "[[2,8],[]]", "[" F32 "]", NULL, 40, 64 + 32 },
	{ "aten::glu_backward", "[[2,4],[2,8],[]]", "[" F32 "," F32 "]", NULL, 80, 32 + 64 + 64 },
	{ "aten::mse_loss", "[[4,8],[4,8],[]]", "[" F32 "," F32 "]", NULL, 96, 256 },
	{ "aten::mse_loss_backward", "[[],[4,8],[4,8],[]]", "[" F32 "," F32 "," F32 ",\"Scalar\"]",
	  NULL, 96, 4 + 3 * 128 },
	{ "aten::nll_loss_forward", "[[32,10],[32],[],[],[]]", "[" F32 "," I64 "]", NULL, 32,
	  256 + 128 },
	{ "aten::nll_loss_backward", "[[],[32,10],[32]]", "[" F32 "," F32 "," I64 "]", NULL, 320,
	  256 + 1280 },
	{ "aten::reflection_pad2d_backward", "[[1,5,5],[1,3,3],[]]", "[" F32 "," F32 "]", NULL, 9,
	  100 + 36 },
	{ "aten::upsample_bilinear2d_backward", "[[1,2,6,6],[],[]]", "[" F32 "]",
	  "[\"\",\"[6, 6]\",\"[1, 2, 3, 3]\"]", 18, 4 * (72 + 18) },
	{ "fbgemm::FloatToFP8RowwiseQuantized", "[[4,8],[]]", "[" F32 "]", NULL, 32, 128 + 32 },
	{ "aten::_softmax", "[[2,8]]", "[" F32 "]", NULL, 80, 128 },
	{ "aten::_log_softmax_backward_data", "[[2,8],[2,8]]", "[" F32 "," F32 "]", NULL, 64, 192 },
	{ "sgl_kernel::silu_and_mul", "[[2,8],[2,16]]", "[" B16 "," B16 "]", NULL, 80, 96 },
	{ "aten::sum", "[[2,4,5],[]]", "[" F32 ",\"ScalarList\"]", "[\"\",\"[0, -1]\"]", 40, 176 },
	{ "aten::max", "[[2,4,5],[]]", "[" F32 ",\"Scalar\"]", "[\"\",\"1\"]", 40, 160 + 120 },
	{ "aten::linalg_vector_norm", "[[2,4],[],[]]", "[" F32 ",\"Scalar\",\"ScalarList\"]",
	  "[\"\",\"2\",\"[1]\"]", 8, 40 },
	{ "aten::cumsum", "[[2,4],[]]", "[" F32 ",\"Scalar\"]", NULL, 8, 64 },
	{ "aten::embedding", "[[100,8],[3,2]]", "[" B16 "," I64 "]", NULL, 0, 192 + 48 },
	{ "aten::embedding_dense_backward", "[[3,2,8],[3,2],[]]", "[" F32 "," I64 ",\"Scalar\"]",
	  "[\"\",\"\",\"100\"]", 48, 192 + 48 + 3200 },
	{ "aten::index_select", "[[100,8],[],[3]]", "[" F32 ",\"Scalar\"," I64 "]",
	  "[\"\",\"1\",\"\"]", 0, 2 * 300 * 4 + 24 },
	{ "aten::gather", "[[100,8],[],[3,8]]", "[" F32 ",\"Scalar\"," I64 "]", NULL, 0,
	  192 + 192 },
	{ "_C::rotary_embedding", "[[4],[4,8],[4,2]]", "[" I64 "," B16 "," B16 "]", NULL, 120,
	  160 },
	{ "FusedRoPEFunc", "[[4,8]]", "[" B16 "]", NULL, 96, 128 },
	{ "vllm::outplace_fused_experts", "[[1,4],[2,6,4],[2,4,3],[1,1],[1,1]]",
	  "[" B16 "," B16 "," B16 "," F32 ",\"int\"]", NULL, 2 * 4 * 3 * 3 + 4, 16 + 72 },
	{ "te::moe_permute", "[[4,8]]", "[" B16 "]", NULL, 0, 128 },
	{ "_C_cache_ops::reshape_and_cache_flash", "[[4,2,8],[4,2,8]]", "[" B16 "," B16 "]", NULL,
	  0, 512 },
	{ "_C::static_scaled_fp8_quant", "[[4,8],[4,8]]", "[" FP8 "," B16 "]", NULL, 32, -2 },
	{ "aten::copy_", "[[4,8],[4,8]]", "[" B16 "," F32 "]", NULL, 32, 64 + 128 },
	{ "aten::cat", "[[[2,4],[3,4]],[]]", "[\"TensorList\",\"Scalar\"]", NULL, 0, -1 },
	{ "aten::fill_", "[[4,8],[]]", "[" F32 ",\"Scalar\"]", NULL, 0, 128 },
	{ "aten::constant_pad_nd", "[[2,3],[]]", "[" F32 ",\"ScalarList\"]",
	  "[\"\",\"[1, 2, 0, 1]\"]", 18, 4 * (6 + 18) },
	{ "aten::upsample_nearest2d", "[[1,2,3,3],[]]", "[" F32 ",\"ScalarList\"]",
	  "[\"\",\"[6, 6]\"]", 72, 4 * (18 + 72) },
	{ "triton_red_fused_add_mean_mul_pow_rsqrt_0", "[[8,4],[4],[8,4],[]]",
	  "[" B16 "," B16 "," B16 ",\"Scalar\"]", NULL, 7 * 32, 2 * 68 },
	{ "aten::_fused_adamw_", "[[[4],[2,3]],[[4],[2,3]]]", "[\"TensorList\",\"TensorList\"]",
	  NULL, 120, -1 },
	{ "aten::_fused_sgd_", "[[[4]]]", "[\"TensorList\"]", NULL, 16, -1 },
	{ "aten::_fused_adagrad_", "[[[4]]]", "[\"TensorList\"]", NULL, 24, -1 },
	{ "aten::_foreach_addcmul_", "[[[4],[6]]]", "[\"TensorList\"]", NULL, 30, -1 },
	{ "aten::_foreach_lerp_", "[[[4],[6]]]", "[\"TensorList\"]", NULL, 30, -1 },
	{ "aten::_foreach_copy_", "[[[4],[6]]]", "[\"TensorList\"]", NULL, 0, -1 },
	{ "aten::_foreach_zero_", "[[[4],[6]]]", "[\"TensorList\"]", NULL, 0, -1 },
	{ "aten::_foreach_add_", "[[[4],[6]]]", "[\"TensorList\"]", NULL, 10, -1 },
	{ "aten::_foreach_sqrt", "[[[4],[6]]]", "[\"TensorList\"]", NULL, 10, -1 },
	{ "aten::add_", "[[2,3],[3],[]]", "[" B16 "," F32 ",\"Scalar\"]", NULL, 6, 12 + 12 + 24 },
	{ "aten::mul", "[[2,3],[]]", "[" B16 ",\"double\"]", NULL, 6, 12 + 8 + 12 },
	{ "aten::silu", "[[2,3]]", "[" B16 "]", NULL, 6, 24 },
	{ "aten::where", "[[2,3],[2,3],[]]", "[\"bool\"," F32 "," F32 "]", NULL, 6,
	  6 + 24 + 4 + 24 },
	{ "aten::addcmul_", "[[6],[6],[6]]", "[" F32 "," F32 "," F32 "]", NULL, 18, 96 },
	{ "aten::lerp_", "[[6],[6]]", "[" F32 "," F32 "]", NULL, 18, 72 },
	{ "aten::eq", "[[6],[]]", "[" F32 ",\"Scalar\"]", NULL, 6, 30 },
};

static bool ask(const char *name, const char *dims, const char *types, const char *values,
		struct model_cost *out)
{
	return model_of(&(struct model_call){ .name = name,
					      .rule = model_rule_of(name),
					      .dims = dims,
					      .types = types,
					      .concrete = values,
					      .step = STEP },
			out);
}

void test_model_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model_cost c;
		bool is = ask(rows[i].name, rows[i].dims, rows[i].types, rows[i].values, &c);
		bool good = is && c.flops == rows[i].flops &&
			    (rows[i].bytes == -2 ||
			     (rows[i].bytes < 0 ? isnan(c.bytes) : c.bytes == rows[i].bytes));

		CHECK(good);
		if (!good)
			printf("%s %s: %d, %.0f FLOPs, want %.0f, %.0f bytes, want %.0f\n",
			       rows[i].name, rows[i].dims, is, is ? c.flops : -1, rows[i].flops,
			       is ? c.bytes : -1, rows[i].bytes);
	}
}

/* Each row of the table has a case above. */
void test_model_table(void)
{
	const char *family, *source, *patterns;

	for (size_t r = 0; (patterns = model_row(r, &family, &source)); r++) {
		bool found = false;

		CHECK(*family && *source);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			char text[1024], name[128], *next;
			size_t len = (size_t)snprintf(name, sizeof(name), "%s", rows[i].name);

			snprintf(text, sizeof(text), "%s", patterns);
			for (char *p = strtok_r(text, " ", &next); p;
			     p = strtok_r(NULL, " ", &next)) {
				found |= !fnmatch(p, name, 0);
				if (!strncmp(name, "aten::", 6) && name[len - 1] == '_') {
					name[len - 1] = '\0';
					found |= !fnmatch(p, name + 6, 0);
					name[len - 1] = '_';
				}
				found |= !strncmp(name, "aten::", 6) && !fnmatch(p, name + 6, 0);
			}
		}
		CHECK(found);
		if (!found)
			printf("no case of %s\n", patterns);
	}
}

/* What cannot be read has no model, wherever it is cut and whatever stands in it. */
void test_model_damage(void)
{
	static const char *const wrong[] = { "",
					     "[",
					     "[[-4,5],[5,6]]",
					     "[[9e400,5],[5,6]]",
					     "[[9223372036854775807,9223372036854775807],[5,6]]",
					     "[[99999999,99999999],[99999999,99999999]]",
					     "[[4.5,5],[5,6]]",
					     "[[[[[[4]]]]],[5,6]]",
					     "[[nan,5],[5,6]]",
					     "[[4,5],[7,6]]",
					     "[[4,5]]",
					     "[[1,1,1,1,1,1,1,1,1,4,5],[5,6]]" };
	struct model_cost c;
	unsigned seed = 1;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!ask("aten::mm", wrong[i], "[" F32 "," F32 "]", NULL, &c));
	CHECK(!ask("aten::mm", NULL, "[" F32 "," F32 "]", NULL, &c));
	CHECK(!ask("aten::nothing", "[[4,5],[5,6]]", "[" F32 "," F32 "]", NULL, &c));
	CHECK(!ask("", "[[4,5],[5,6]]", "[" F32 "," F32 "]", NULL, &c));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *texts[3] = { rows[i].dims, rows[i].types, rows[i].values };

		for (int which = 0; which < 3; which++) {
			size_t len = texts[which] ? strlen(texts[which]) : 0;

			for (size_t at = 0; at < len; at++) {
				const char *use[3] = { texts[0], texts[1], texts[2] };
				char *other = malloc(len + 1);

				memcpy(other, texts[which], len + 1);
				seed = seed * 1103515245u + 12345u;
				other[at] = at % 2 ? (char)(32 + seed / 65536 % 96) : '\0';
				use[which] = other;
				if (ask(rows[i].name, use[0], use[1], use[2], &c))
					CHECK(c.flops >= 0 && c.flops <= MODEL_MOST &&
					      !(c.bytes < 0) && !(c.bytes > MODEL_MOST));
				free(other);
			}
		}
	}
}

void test_model_steps(void)
{
	struct model_cost c;
	struct model_call call = { .name = "vllm::unified_attention_with_output",
				   .rule = model_rule_of("vllm::unified_attention_with_output"),
				   .dims = "[[32,64,64],[32,8,64],[32,8,64],[32,64,64]]",
				   .types = "[" B16 "," B16 "," B16 "," B16 "]" };

	CHECK(model_wants_step(call.rule) && !model_wants_step(model_rule_of("aten::mm")));
	CHECK(!model_of(&call, &c));
	call.step = "step[DECODE bs=32]";
	CHECK(!model_is_step(call.step) && !model_of(&call, &c));
	call.step = "step[DECODE bs=32 g=32 g_sq=32 g_sk=55086 g_sqsq=32 g_sqsk=55086]";
	CHECK(model_is_step(call.step) && model_of(&call, &c));
	CHECK(c.flops == 902529024);
	CHECK(fabs(c.bytes / 1048576 - 108.08984375) < 1e-6);
	call.step =
		"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)";
	CHECK(model_of(&call, &c) && c.flops == 902529024);
	call.step = "execute_32_context_0(sq";
	CHECK(!model_of(&call, &c));
}

static const struct peaks *sheet(const char *name, uint64_t memory)
{
	return peaks_find(NULL, &(struct peaks_device){ .name = name, .memory = memory });
}

void test_model_peaks(void)
{
	const struct peaks *p;
	const char *pattern;

	for (size_t i = 0; (p = peaks_row(i, &pattern)); i++) {
		CHECK(p->fp32 > 0 && p->source[0] && p->name[0]);
		CHECK(p->matrix[NUMBER_FP16] >= 4 * p->fp32 - 1 || strstr(p->name, "RTX") ||
		      strstr(p->name, "A10G") || !strcmp(p->name, "L4") ||
		      !strncmp(p->name, "A", 1) || !strncmp(p->name, "L40", 3));
		CHECK(p->matrix[NUMBER_FP8] == 0 ||
		      p->matrix[NUMBER_FP8] >= 1.9f * p->matrix[NUMBER_FP16]);
	}
	CHECK_STR(sheet("NVIDIA H100 80GB HBM3", 0)->name, "H100 SXM");
	CHECK_STR(sheet("NVIDIA H100 PCIe", 0)->name, "H100 PCIe");
	CHECK_STR(sheet("NVIDIA A100-SXM4-80GB", 85e9)->name, "A100 SXM 80GB");
	CHECK_STR(sheet("NVIDIA A100-SXM4-40GB", 42e9)->name, "A100 SXM 40GB");
	CHECK_STR(sheet("NVIDIA A100-PG509-200", 85e9)->name, "A100 SXM 80GB");
	CHECK_STR(sheet("NVIDIA A10", 0)->name, "A10");
	CHECK_STR(sheet("NVIDIA A10G", 0)->name, "A10G");
	CHECK_STR(sheet("NVIDIA L40S", 0)->name, "L40S");
	CHECK_STR(sheet("NVIDIA GeForce RTX 3080", 0)->name, "RTX 3080");
	CHECK_STR(sheet("NVIDIA GeForce RTX 2080 Ti", 0)->name, "RTX 2080 Ti");
	CHECK(!sheet("NVIDIA GeForce RTX 3080 Ti", 0));
	CHECK(!sheet("NVIDIA GeForce RTX 4090 Laptop GPU", 0));
	CHECK_STR(sheet("NVIDIA RTX 6000 Ada Generation", 0)->name, "RTX 6000 Ada");
	CHECK_STR(sheet("NVIDIA RTX A6000", 0)->name, "RTX A6000");
	CHECK(!sheet("NVIDIA RTX 4000 Ada Generation", 0));
	CHECK_STR(sheet("NVIDIA L4", 0)->name, "L4");
	CHECK_STR(sheet("Tesla V100-SXM2-16GB", 0)->name, "V100 SXM2");
	CHECK_STR(sheet("Tesla T4", 0)->name, "T4");
	CHECK_STR(sheet("NVIDIA GB200", 0)->name, "GB200");
	CHECK_STR(sheet("NVIDIA B200", 0)->name, "B200 HGX");
	CHECK_STR(sheet("AMD Instinct MI300X", 0)->name, "MI300X");
	CHECK(!sheet("Somebody's GPU", 0));
	CHECK(!sheet("", 0));
	/* AMD counts its architecture like NVIDIA's: the width of a warp tells them apart */
	CHECK_STR(peaks_find(NULL,
			     &(struct peaks_device){
				     .name = "", .units = 304, .warp = 64, .major = 9, .minor = 4 })
			  ->name,
		  "MI300X");
	CHECK_STR(peaks_find(NULL, &(struct peaks_device){ .name = "AMD Radeon Graphics",
							   .units = 104,
							   .warp = 64,
							   .major = 9 })
			  ->name,
		  "MI210, or a die of MI250");
	CHECK_STR(peaks_find(NULL,
			     &(struct peaks_device){
				     .name = "", .units = 132, .warp = 32, .major = 9 })
			  ->name,
		  "H100 SXM");
}

void test_model_peaks_file(void)
{
	static const char good[] =
		"# mine\n\nH100: bf16=500 memory=1000\nOwn GPU: fp32_vector=10\n";
	static const char *const bad[] = { "H100 bf16=1",   ": bf16=1",       "H100: bf17=1",
					   "H100: bf16",    "H100: bf16=",    "H100: bf16=-1",
					   "H100: bf16=1x", "H100: bf16=1e99" };
	struct error err = { 0 };
	struct peaks_file *f;

	CHECK_OK(peaks_load(&f, good, strlen(good), &err), &err);
	const struct peaks *p = peaks_find(f, &(struct peaks_device){ .name = "NVIDIA H100 80GB" });
	CHECK(p->matrix[NUMBER_BF16] == 500 && p->memory_gb == 1000 &&
	      p->matrix[NUMBER_FP16] == 989);
	struct model_cost c = { .number = NUMBER_BF16, .is_matrix = true };
	CHECK(peaks_rate(p, &c, false) == 500);
	p = peaks_find(f, &(struct peaks_device){ .name = "Own GPU 3" });
	CHECK(p && peaks_rate(p, &c, false) == 10);
	c.number = NUMBER_FP32;
	p = peaks_find(NULL, &(struct peaks_device){ .name = "NVIDIA A100" });
	CHECK(peaks_rate(p, &c, true) == 156 && peaks_rate(p, &c, false) == 19.5);
	peaks_free(f);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_U64(peaks_load(&f, bad[i], strlen(bad[i]), &err), ST_FORMAT);
		CHECK(f == NULL && strstr(err.text, "line 1"));
		err = (struct error){ 0 };
	}
}
