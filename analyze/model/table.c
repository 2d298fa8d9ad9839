/* SPDX-License-Identifier: Apache-2.0 */
/* The table of models: one row for each list of operators. */
#include "analyze/model/internal.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#define PRODUCT     "2 M N K: flop_counter, TraceLens without bias"
#define CONVOLUTION "2 |out| |w| / Cout: flop_counter, TraceLens"
#define POOL        "one operation an element of a window"
#define ATTENTION   "2 B H Nq Nk (d + dv), causal half: TraceLens"
#define BACKWARD    "five products: FlashAttention 2, flop_counter"
#define LENGTHS     "sums of lengths in the step's annotation: TraceLens"
#define EACH        "one operation an element: TraceLens"
#define NORM        "TraceLens"
#define MOVED       "bytes moved"
#define INPUTS      "PyTorch's native_functions.yaml: which inputs are read"

/* The first row with a pattern that matches applies, by fnmatch(). */
/* clang-format off */
static const struct model_rule rules[] = {
	{ "aten::mm aten::bmm aten::_int_mm", "gemm", cost_product, 0, 1, -1, 0, PRODUCT },
	{ "aten::addmm* aten::_addmm_activation aten::baddbmm*", "gemm", cost_product, 1, 2, 0, 0, PRODUCT },
	{ "aten::linear vllm::rocm_unquantized_gemm", "gemm", cost_product, 0, 1, 2, B_IS_ROWS, PRODUCT },
	{ "bitsandbytes::int8_linear_matmul *gemm_a16w16*", "gemm", cost_product, 0, 1, -1, B_IS_ROWS, PRODUCT },
	{ "*a4w4*", "gemm", cost_product, 0, 1, -1, B_IS_ROWS | IS_SCALED | IS_PACKED, PRODUCT },
	{ "*a8w8* *w8a8* *blockscale*", "gemm", cost_product, 0, 1, -1, B_IS_ROWS | IS_SCALED, PRODUCT },
	{ "*scaled_mm*", "gemm", cost_product, 0, 1, 4, IS_SCALED, PRODUCT },
	{ "*grouped_mm *grouped_gemm*", "gemm", cost_grouped, 0, 1, 2, 0, "2 M K N over all groups: TraceLens" },
	{ "aten::mv aten::dot aten::vdot", "gemm", cost_vector_product, 0, 1, -1, 0, "2 M K" },
	{ "aten::addmv*", "gemm", cost_vector_product, 1, 2, 0, 0, "2 M K" },
	{ "aten::outer aten::ger", "gemm", cost_vector_product, 0, 1, -1, WRITES_ONLY, "M N" },
	{ "aten::addr*", "gemm", cost_vector_product, 1, 2, 0, WRITES_ONLY, "M N" },

	{ "aten::convolution aten::convolution_overrideable", "convolution", cost_convolution, 0, 1, 3, 0, CONVOLUTION },
	{ "aten::convolution_backward*", "convolution", cost_convolution_backward, 0, 1, 4, 0, CONVOLUTION ", each gradient of output_mask" },
	{ "aten::cudnn_convolution_backward", "convolution", cost_convolution_backward, 1, 0, -1, 0, CONVOLUTION ", both gradients" },
	{ "aten::max_pool2d_with_indices", "pooling", cost_pool, 2, 5, 8, 0, POOL },
	{ "aten::max_pool3d_with_indices", "pooling", cost_pool, 3, 5, 8, 0, POOL },
	{ "aten::avg_pool2d", "pooling", cost_pool, 2, 4, 0, 0, POOL },
	{ "aten::avg_pool3d", "pooling", cost_pool, 3, 4, 0, 0, POOL },
	{ "aten::max_pool[23]d_with_indices_backward", "pooling", cost_sized, 1, 1, 129, 0, INPUTS },
	{ "aten::adaptive_max_pool[23]d_backward", "pooling", cost_sized, 1, 1, 5, 0, INPUTS },
	{ "aten::avg_pool[23]d_backward aten::_adaptive_avg_pool[23]d_backward", "pooling", cost_sized, 1, 1, 1, 0, INPUTS },
	{ "aten::_adaptive_avg_pool[23]d", "pooling", cost_resample, 1, 0, 0, 0, EACH },
	{ "aten::cudnn_convolution_backward_input", "convolution", cost_convolution_input, 1, 2, 0, 0, CONVOLUTION },

	{ "aten::_scaled_dot_product_flash_attention_for_cpu_backward", "attention", cost_attention_backward, 1, 7, 0, 0, BACKWARD },
	{ "aten::_scaled_dot_product_flash_attention_backward aten::_scaled_dot_product_efficient_attention_backward", "attention", cost_attention_backward, 1, 11, 0, 0, BACKWARD },
	{ "aten::_scaled_dot_product_cudnn_attention_backward", "attention", cost_attention_backward, 1, 14, 0, 0, BACKWARD },
	{ "aten::_scaled_dot_product_flash_attention*", "attention", cost_attention, 0, 4, 0, 0, ATTENTION },
	{ "aten::_scaled_dot_product_efficient_attention aten::_scaled_dot_product_cudnn_attention", "attention", cost_attention, 0, 6, 0, 0, ATTENTION },
	{ "aten::_scaled_dot_product_fused_attention_overrideable", "attention", cost_attention, 0, 5, 0, 0, ATTENTION },
	{ "aten::_flash_attention_forward", "attention", cost_attention, 0, 8, 0, HEADS_LAST, ATTENTION },
	{ "aten::_flash_attention_backward", "attention", cost_attention_backward, 1, 11, 0, HEADS_LAST, BACKWARD },
	{ "aten::_efficient_attention_forward", "attention", cost_attention, 0, 9, 0, HEADS_LAST | IS_MASK_NUMBER, ATTENTION },
	{ "aten::_efficient_attention_backward", "attention", cost_attention_backward, 1, 14, 0, HEADS_LAST | IS_MASK_NUMBER, BACKWARD },
	{ "flash_attn::_flash_attn_forward FlashAttnFunc", "attention", cost_attention, 0, 5, 0, HEADS_LAST | ALIGNS_END, ATTENTION },
	{ "flash_attn::_flash_attn_backward", "attention", cost_attention_backward, 1, 10, 0, HEADS_LAST | ALIGNS_END, BACKWARD },
	{ "flash_attn::_flash_attn_varlen_forward", "attention", cost_attention_lengths, 0, 9, 3, 0, ATTENTION ", one longest sequence and equal others" },
	{ "flash_attn::_flash_attn_varlen_backward", "attention", cost_attention_lengths, 1, 15, 9, 0, BACKWARD ", one longest sequence and equal others" },
	{ "vllm::unified_attention* aiter::mha_varlen_fwd", "attention", cost_attention_step, 0, 3, 0, 0, LENGTHS },
	{ "*attention_paged_attention_ragged", "attention", cost_attention_step, 2, 0, 0, 0, LENGTHS },

	{ "aten::batch_norm aten::native_batch_norm aten::cudnn_batch_norm aten::miopen_batch_norm aten::instance_norm", "normalization", cost_norm, 1, 5, 0, 0, NORM },
	{ "aten::_batch_norm_with_update* aten::native_group_norm", "normalization", cost_norm, 1, -1, 0, 0, NORM },
	{ "aten::group_norm", "normalization", cost_norm, 2, -1, 0, 0, NORM },
	{ "aten::layer_norm aten::native_layer_norm", "normalization", cost_norm, 2, -1, 0, BY_SHAPE, NORM },
	{ "aten::native_batch_norm_backward aten::batch_norm_backward", "normalization", cost_norm_backward, 1, 2, 9, 0, NORM },
	{ "aten::cudnn_batch_norm_backward aten::miopen_batch_norm_backward", "normalization", cost_norm_backward, 0, 2, -1, 0, NORM },
	{ "aten::native_layer_norm_backward", "normalization", cost_norm_backward, 1, 5, 7, BY_SHAPE, NORM },
	{ "aten::native_group_norm_backward", "normalization", cost_norm_backward, 1, 4, 9, 0, NORM },
	{ "aten::_fused_rms_norm_backward", "normalization", cost_rms_backward, 1, 4, 5, 0, NORM },
	{ "aten::_fused_rms_norm aten::rms_norm", "normalization", cost_rms, 0, 2, 0, 0, NORM },
	{ "_C::fused_add_rms_norm vllm::rocm_aiter_rmsnorm2d_fwd_with_add sgl_kernel::fused_add_rmsnorm", "normalization", cost_rms, 0, 2, 0, ADDS_RESIDUAL, NORM },
	{ "aiter::add_rmsnorm aiter::rmsnorm2d_fwd_with_add*", "normalization", cost_rms, 1, 4, 0, ADDS_RESIDUAL, NORM },
	{ "_C::rms_norm sgl_kernel::rmsnorm aiter::rmsnorm", "normalization", cost_rms, 1, 2, 0, 0, NORM },
	{ "aiter::rms_norm* aiter::rmsnorm2d_fwd* vllm::rocm_aiter_rms_norm", "normalization", cost_rms, 0, 1, 0, 0, NORM },

	{ "aten::*softmax_backward_data", "softmax", cost_each, 2, 4, 0, 0, "four operations an element" },
	{ "aten::*softmax", "softmax", cost_each, 1, 5, 0, 0, "five operations an element" },
	{ "aten::glu", "activation", cost_sized, 0, 5, 1, HALVES, "five operations an element" },
	{ "aten::glu_backward", "activation", cost_sized, 1, 5, 3, 0, "five operations an element" },
	{ "*silu_and_mul *gelu*_and_mul", "activation", cost_sized, 0, 5, 2, 0, "five operations an element" },

	{ "aten::sum aten::mean aten::amax aten::amin aten::std* aten::var* aten::logsumexp aten::prod aten::all aten::any aten::argmax aten::argmin", "reduction", cost_reduce, 1, 0, 0, 0, EACH },
	{ "aten::max aten::min", "reduction", cost_reduce, 1, 8, 0, 0, EACH },
	{ "aten::mse_loss aten::smooth_l1_loss aten::huber_loss aten::binary_cross_entropy", "loss", cost_sized, 0, 3, 3, WRITES_NOTHING, "three operations an element" },
	{ "aten::mse_loss_backward aten::smooth_l1_loss_backward aten::huber_loss_backward aten::binary_cross_entropy_backward", "loss", cost_sized, 1, 3, 7, 0, "three operations an element" },
	{ "aten::nll_loss_forward aten::nll_loss2d_forward", "loss", cost_sized, 1, 1, 2, 0, INPUTS },
	{ "aten::nll_loss_backward aten::nll_loss2d_backward", "loss", cost_sized, 1, 1, 4, 0, INPUTS },
	{ "aten::norm aten::linalg_norm aten::linalg_vector_norm", "reduction", cost_reduce, 2, 0, 0, 0, EACH },
	{ "aten::cumsum* aten::cumprod*", "reduction", cost_each, 1, 1, 0, 0, EACH },

	{ "aten::embedding", "embedding", cost_rows, 0, 1, -1, 0, MOVED },
	{ "aten::embedding_dense_backward", "embedding", cost_rows_backward, 0, 1, 2, 0, MOVED },
	{ "aten::_embedding_bag aten::_embedding_bag_forward_only", "embedding", cost_bag, 0, 0, 0, 0, "one addition an element of a row" },
	{ "aten::_embedding_bag_dense_backward", "embedding", cost_rows_backward, 0, 1, 5, 0, MOVED },
	{ "aten::index_add_ aten::scatter_add_ aten::scatter_reduce_", "indexing", cost_sized, 3, 1, 12, UPDATES, INPUTS },
	{ "aten::scatter_", "indexing", cost_sized, 3, 0, 12, 0, INPUTS },
	{ "aten::index_put_ aten::_index_put_impl_", "indexing", cost_sized, 2, 0, 4, 0, INPUTS },
	{ "fbgemm::permute_pooled_embs* *PermutePooledEmbs*", "indexing", cost_move, 0, 0, 0, 0, MOVED },
	{ "fbgemm::permute_2D_sparse_data fbgemm::permute_sparse_features", "indexing", cost_move, 1, 3, 0, 0, MOVED },
	{ "fbgemm::bounds_check_indices", "indexing", cost_sized, 1, 1, 6, WRITES_NOTHING, INPUTS },
	{ "aten::index_select", "indexing", cost_rows, 0, 2, 1, 0, MOVED },
	{ "aten::gather", "indexing", cost_rows, 0, 2, 1, BY_SHAPE, MOVED },
	{ "*rotary_embedding*", "rope", cost_move, 1, 2, 3, 0, "three operations an element" },
	{ "FusedRoPEFunc*", "rope", cost_move, 0, 0, 3, 0, "three operations an element" },
	{ "*fused_experts* *fused_moe*", "moe", cost_experts, 0, 4, 0, 0, "TraceLens" },
	{ "*moe_dispatch* *moe_combine* *moe_permute* *moe_unpermute*", "moe", cost_move, 0, 0, 0, 0, MOVED },
	{ "*reshape_and_cache* *store_cache", "copy", cost_move, 0, 1, 0, 0, MOVED },
	{ "*fp8_quant*", "elementwise", cost_each, 2, 1, 0, 0, EACH },

	{ "aten::copy_ aten::clone", "copy", cost_each, 1, 1, 0, 0, EACH },
	{ "aten::cat aten::_cat aten::stack", "copy", cost_list, 1, 0, 0, 0, MOVED },
	{ "aten::fill_ aten::zero_ aten::bernoulli_ aten::uniform_ aten::normal_ aten::random_ aten::exponential_", "copy", cost_each, 1, 0, 0, WRITES_ONLY, MOVED },
	{ "aten::*_pad[123]d_backward", "elementwise", cost_sized, 1, 1, 1, 0, INPUTS },
	{ "aten::*upsample_*[123]d_backward", "elementwise", cost_resample, 2, 0, 0, 0, EACH },
	{ "fbgemm::FloatTo*Quantized", "elementwise", cost_each, 1, 1, 0, MAKES_BOOL, EACH },
	{ "aten::*_pad[123]d aten::constant_pad_nd", "elementwise", cost_resample, 1, 1, 0, 0, EACH },
	{ "aten::*upsample_nearest*[123]d aten::upsample_bicubic2d aten::upsample_bilinear2d aten::upsample_linear1d aten::upsample_trilinear3d", "elementwise", cost_resample, 1, 0, 0, 0, EACH },

	{ "triton_???_fused_*", "compiled", cost_compiled, 0, 0, 0, 0, "operations of the fused operators: TraceLens" },
	{ "aten::_fused_adam*", "optimizer", cost_list, 6, 12, 0, 0, "12 operations; p, g, m, v read, p, m, v written" },
	{ "aten::_fused_sgd*", "optimizer", cost_list, 4, 4, 0, 0, "4 operations; p, g, m read, p, m written" },
	{ "aten::_fused_adagrad*", "optimizer", cost_list, 4, 6, 0, 0, "6 operations; p, g, s read, p, s written" },
	{ "aten::_foreach_addc*", "optimizer", cost_list, 3, 3, 0, 0, EACH },
	{ "aten::_foreach_lerp*", "optimizer", cost_list, 2, 3, 0, 0, EACH },
	{ "aten::_foreach_copy* ", "optimizer", cost_list, 1, 0, 0, 0, MOVED },
	{ "aten::_foreach_zero*", "optimizer", cost_list, 0, 0, 0, 0, MOVED },
	{ "aten::_foreach_add* aten::_foreach_sub* aten::_foreach_mul* aten::_foreach_div* aten::_foreach_max* aten::_foreach_min*", "optimizer", cost_list, 2, 1, 0, 0, EACH },
	{ "aten::_foreach_*", "optimizer", cost_list, 1, 1, 0, 0, EACH },
};

/* Elementwise operators of aten, by their names without the "_" of in-place ones. */
static const struct model_rule each_rules[] = {
	{ "add sub rsub mul div true_divide floor_divide remainder fmod maximum minimum atan2 pow bitwise_* masked_fill"
	  " sigmoid_backward tanh_backward silu_backward gelu_backward threshold_backward leaky_relu_backward"
	  " hardtanh_backward hardswish_backward elu_backward native_dropout_backward"
	  " hardsigmoid_backward mish_backward softplus_backward logit_backward fmax fmin hypot copysign xlogy logaddexp _prelu_kernel", "elementwise", cost_each, 2, 1, 0, 0, EACH },
	{ "neg abs sign exp log log1p sqrt rsqrt reciprocal square sin cos erf floor ceil round tanh sigmoid silu gelu relu"
	  " leaky_relu elu hardtanh hardswish hardsigmoid softplus mish clamp clamp_min clamp_max tril triu threshold"
	  " log2 log10 exp2 expm1 sinh cosh asin acos atan trunc frac sgn nan_to_num logit bitwise_not celu selu"
	  " logical_not native_dropout", "elementwise", cost_each, 1, 1, 0, 0, EACH },
	{ "where", "elementwise", cost_each, 3, 1, 0, 0, EACH },
	{ "addcmul addcdiv", "elementwise", cost_each, 3, 3, 0, 0, "three operations an element" },
	{ "lerp", "elementwise", cost_each, 2, 3, 0, 0, "three operations an element" },
	{ "eq ne lt le gt ge isnan isfinite logical_and logical_or logical_xor", "elementwise", cost_each, 2, 1, 0, MAKES_BOOL, EACH },
};
/* clang-format on */
enum {
	RULES = sizeof(rules) / sizeof(rules[0]),
	EACH_RULES = sizeof(each_rules) / sizeof(each_rules[0]),
	PATTERN_MAX = 80,
};

static const struct model_rule *rule_search(const struct model_rule *list, size_t count,
					    const char *name)
{
	for (size_t r = 0; r < count; r++)
		for (const char *p = list[r].patterns; *p; p += strspn(p, " ")) {
			char pattern[PATTERN_MAX];
			size_t len = strcspn(p, " ");

			memcpy(pattern, p, len);
			pattern[len] = '\0';
			p += len;
			if (!strncmp(pattern, name, strcspn(pattern, "*?[")) &&
			    !fnmatch(pattern, name, 0))
				return &list[r];
		}
	return NULL;
}

const struct model_rule *model_rule_of(const char *name)
{
	const struct model_rule *r = rule_search(rules, RULES, name);
	size_t len = strlen(name);
	char word[PATTERN_MAX];

	if (r || strncmp(name, "aten::", 6) != 0 || len >= sizeof(word))
		return r;
	memcpy(word, name + 6, len - 5);
	if (name[len - 1] == '_')
		word[len - 7] = '\0';
	return rule_search(each_rules, EACH_RULES, word);
}

bool model_wants_step(const struct model_rule *r)
{
	return r && r->cost == cost_attention_step;
}

const char *model_row(size_t index, const char **family, const char **source)
{
	const struct model_rule *r = index < RULES                ? &rules[index]
				     : index < RULES + EACH_RULES ? &each_rules[index - RULES]
								  : NULL;

	if (!r)
		return NULL;
	*family = r->family;
	*source = r->source;
	return r->patterns;
}

bool model_of(const struct model_call *call, struct model_cost *out)
{
	const struct model_rule *r = call->rule;
	struct operands inputs;

	if (!r || !operands_read(&inputs, call))
		return false;
	*out = (struct model_cost){ .family = r->family, .bytes = NAN, .fewer = 1 };
	for (size_t i = 0; i < inputs.count && !out->number; i++)
		if (inputs.in[i].is_tensor)
			out->number = inputs.in[i].number;
	out->is_matrix = !strcmp(r->family, "gemm") || !strcmp(r->family, "convolution") ||
			 !strcmp(r->family, "attention") || r->cost == cost_experts;
	return r->cost(&inputs, r, out) && out->flops >= 0 && out->flops <= MODEL_MOST &&
	       (isnan(out->bytes) || (out->bytes >= 0 && out->bytes <= MODEL_MOST));
}
