/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name/name.h"

#include "tests/unit/unit.h"

void test_operator_category(void)
{
	static const struct {
		const char *name, *category;
	} rows[] = {
		{ "aten::addmm", "gemm" },
		{ "aten::mm", "gemm" },
		{ "AddmmBackward0", "gemm" },
		{ "aten::linear", "gemm" },
		{ "aten::cudnn_convolution", "convolution" },
		{ "aten::convolution_backward", "convolution" },
		{ "aten::_scaled_dot_product_flash_attention", "attention" },
		{ "vllm::unified_attention_with_output", "attention" },
		{ "aten::native_layer_norm_backward", "normalization" },
		{ "aiter::add_rmsnorm", "normalization" },
		{ "aten::_softmax", "softmax" },
		{ "aten::add_", "elementwise" },
		{ "aten::address", "other" },
		{ "aten::threshold_backward", "elementwise" },
		{ "aten::sum", "reduction" },
		{ "aten::consumer", "other" },
		{ "aten::t", "view" },
		{ "aten::to", "copy" },
		{ "aten::copy_", "copy" },
		{ "aten::index_select", "indexing" },
		{ "aten::_foreach_add_", "optimizer" },
		{ "triton_poi_fused_add_0", "compiled" },
		{ "Torch-Compiled Region: 0/0", "compiled" },
		{ "CompiledFunctionBackward", "compiled" },
		{ "TorchDynamo Cache Lookup", "compiled" },
		{ "AOTDispatcher Runtime Wrapper Prologue", "compiled" },
		{ "aten::square", "elementwise" },
		{ "nccl:all_reduce", "communication" },
		{ "c10d::allreduce_", "communication" },
		{ "aten::max_pool2d_with_indices", "pooling" },
		{ "aten::empty_strided", "memory" },
		{ "All2All_Pooled_Req", "communication" },
		{ "## alltoall_fwd_single ##", "communication" },
		{ "_c10d_functional::reduce_scatter_tensor", "communication" },
		{ "fbgemm::permute_2D_sparse_data", "other" },
		{ "fbgemm::asynchronous_complete_cumsum", "reduction" },
		{ "fbgemm::f8f8bf16_rowwise_batched_gemm", "gemm" },
		{ "fbgemm::permute_pooled_embs_auto_grad", "embedding" },
		{ "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>", "embedding" },
		{ "my_lib::frobnicate", "other" },
		{ "", "other" },
		{ "::", "other" },
		{ "_", "other" },
		{ "aten::1", "other" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(operator_category(rows[i].name), rows[i].category);
}
