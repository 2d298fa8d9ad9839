/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name/name.h"
#include "convert/name/rules.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* The first row decides whose word is in the name; case is ignored. */
static const struct {
	const char *word, *category;
	bool is_whole; /* the name is the word, but for a namespace, "_" at both ends and digits */
} rows[] = {
	{ "nccl", "communication", false },
	{ "gloo:", "communication", false },
	{ "c10d", "communication", false },
	{ "record_param_comms", "communication", false },
	{ "triton_", "compiled", false },
	{ "cpp_fused_", "compiled", false },
	{ "compiled", "compiled", false }, /* Torch-Compiled Region, CompiledFunctionBackward */
	{ "torchdynamo", "compiled", false },
	{ "aotdispatcher", "compiled", false },
	{ "optimizer", "optimizer", false },
	{ "_foreach_", "optimizer", false },
	{ "fused_adam", "optimizer", false },
	{ "fused_sgd", "optimizer", false },
	{ "attention", "attention", false },
	{ "flash_attn", "attention", false },
	{ "mha_", "attention", false },
	{ "reshape_and_cache", "attention", false },
	{ "store_cache", "attention", false },
	{ "rotary", "rope", false },
	{ "rope", "rope", true },
	{ "moe", "moe", false },
	{ "topk_gating", "moe", false },
	{ "convolution", "convolution", false },
	{ "conv1d", "convolution", false },
	{ "conv2d", "convolution", false },
	{ "conv3d", "convolution", false },
	{ "conv_general", "convolution", false },
	{ "batch_norm", "normalization", false },
	{ "layer_norm", "normalization", false },
	{ "group_norm", "normalization", false },
	{ "instance_norm", "normalization", false },
	{ "rms_norm", "normalization", false },
	{ "rmsnorm", "normalization", false },
	{ "batchnorm", "normalization", false },
	{ "layernorm", "normalization", false },
	{ "groupnorm", "normalization", false },
	{ "linalg_vector_norm", "reduction", false },
	{ "softmax", "softmax", false },
	{ "cross_entropy", "loss", false },
	{ "nll_loss", "loss", false },
	{ "_loss", "loss", false },
	{ "embedding", "embedding", false },
	{ "lookup", "embedding", false }, /* FBGEMM: CppNode<SplitLookupFunction_sgd_Op> */
	{ "pooled", "embedding", false }, /* ... permute_pooled_embs, of what its bags summed up */
	{ "pool", "pooling", false },
	{ "gemm", "gemm", false },
	{ "linear", "gemm", false },
	{ "matmul", "gemm", false },
	{ "addmm", "gemm", false },
	{ "baddbmm", "gemm", false },
	{ "scaled_mm", "gemm", false },
	{ "dot_general", "gemm", false },
	{ "grouped_mm", "gemm", false },
	{ "einsum", "gemm", false },
	{ "mm", "gemm", true },
	{ "bmm", "gemm", true },
	{ "mv", "gemm", true },
	{ "addmv", "gemm", true },
	{ "dot", "gemm", true },
	{ "dropout", "random", false },
	{ "bernoulli", "random", false },
	{ "rand", "random", false },
	{ "uniform", "random", false },
	{ "normal", "random", true },
	{ "exponential", "random", true },
	{ "multinomial", "random", false },
	{ "index", "indexing", false },
	{ "gather", "indexing", false },
	{ "scatter", "indexing", false },
	{ "masked_", "indexing", false },
	{ "where", "indexing", true },
	{ "nonzero", "indexing", true },
	{ "sort", "indexing", false },
	{ "topk", "indexing", false },
	{ "cumsum", "reduction", false },
	{ "reduce_", "reduction", false },
	{ "cumprod", "reduction", false },
	{ "sum", "reduction", true },
	{ "mean", "reduction", true },
	{ "max", "reduction", true },
	{ "min", "reduction", true },
	{ "amax", "reduction", true },
	{ "amin", "reduction", true },
	{ "argmax", "reduction", true },
	{ "argmin", "reduction", true },
	{ "norm", "reduction", true },
	{ "prod", "reduction", true },
	{ "all", "reduction", true },
	{ "any", "reduction", true },
	{ "std", "reduction", true },
	{ "var", "reduction", true },
	{ "logsumexp", "reduction", true },
	{ "item", "copy", true },
	{ "local_scalar_dense", "copy", false },
	{ "copy", "copy", false },
	{ "convert_element_type", "copy", false },
	{ "to", "copy", true },
	{ "clone", "copy", true },
	{ "contiguous", "copy", true },
	{ "cat", "copy", true },
	{ "stack", "copy", true },
	{ "pin_memory", "copy", false },
	{ "empty", "memory", false },
	{ "resize", "memory", false },
	{ "set", "memory", true },
	{ "view", "view", false },
	{ "reshape", "view", true },
	{ "as_strided", "view", false },
	{ "transpose", "view", true },
	{ "t", "view", true },
	{ "permute", "view", true },
	{ "slice", "view", false },
	{ "select", "view", true },
	{ "expand", "view", true },
	{ "squeeze", "view", false },
	{ "split", "view", false },
	{ "chunk", "view", true },
	{ "detach", "view", true },
	{ "narrow", "view", true },
	{ "flatten", "view", true },
	{ "alias", "view", true },
	{ "unbind", "view", true },
	{ "add", "elementwise", true },
	{ "sub", "elementwise", true },
	{ "rsub", "elementwise", true },
	{ "mul", "elementwise", true },
	{ "div", "elementwise", true },
	{ "neg", "elementwise", true },
	{ "pow", "elementwise", true },
	{ "square", "elementwise", true },
	{ "exp", "elementwise", true },
	{ "log", "elementwise", true },
	{ "sqrt", "elementwise", true },
	{ "rsqrt", "elementwise", true },
	{ "reciprocal", "elementwise", true },
	{ "abs", "elementwise", true },
	{ "sign", "elementwise", true },
	{ "sin", "elementwise", true },
	{ "cos", "elementwise", true },
	{ "tanh", "elementwise", false },
	{ "sigmoid", "elementwise", false },
	{ "relu", "elementwise", false },
	{ "gelu", "elementwise", false },
	{ "silu", "elementwise", false },
	{ "threshold", "elementwise", false },
	{ "hardtanh", "elementwise", false },
	{ "clamp", "elementwise", false },
	{ "addcmul", "elementwise", true },
	{ "addcdiv", "elementwise", true },
	{ "lerp", "elementwise", true },
	{ "eq", "elementwise", true },
	{ "ne", "elementwise", true },
	{ "lt", "elementwise", true },
	{ "le", "elementwise", true },
	{ "gt", "elementwise", true },
	{ "ge", "elementwise", true },
	{ "bitwise_", "elementwise", false },
	{ "logical_", "elementwise", false },
	{ "isnan", "elementwise", true },
	{ "isfinite", "elementwise", true },
	{ "maximum", "elementwise", true },
	{ "minimum", "elementwise", true },
	{ "tril", "elementwise", true },
	{ "triu", "elementwise", true },
	{ "fill", "elementwise", true },
	{ "zero", "elementwise", true },
	{ "zeros", "elementwise", true },
	{ "ones", "elementwise", true },
	{ "full", "elementwise", true },
	{ "zeros_like", "elementwise", true },
	{ "ones_like", "elementwise", true },
	{ "full_like", "elementwise", true },
	{ "arange", "elementwise", true },
	{ "upsample", "elementwise", false },
	{ "pad", "elementwise", true },
	{ "constant_pad_nd", "elementwise", true },
	{ "flip", "elementwise", true },
	{ "roll", "elementwise", true },
	{ "repeat", "elementwise", true },
};

static bool same(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (tolower((unsigned char)a[i]) != b[i])
			return false;
	return true;
}

static bool has_word(const char *name, size_t len, const char *word)
{
	size_t want = strlen(word);

	for (size_t i = 0; i + want <= len; i++)
		if (same(name + i, word, want))
			return true;
	return false;
}

/* "_softmax_", "AddmmBackward0", "native_add": the word alone is left of it. */
static void trim(const char **name, size_t *len)
{
	static const char *const ends[] = { "_backward", "backward", "_forward" };

	while (*len && **name == '_') {
		++*name;
		--*len;
	}
	while (*len && isdigit((unsigned char)(*name)[*len - 1]))
		--*len;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);

		if (*len > end && same(*name + *len - end, ends[i], end))
			*len -= end;
	}
	while (*len && (*name)[*len - 1] == '_')
		--*len;
}

const char *operator_category(const char *name)
{
	static const char library[] = "fbgemm::"; /* most of its operators multiply no matrices */
	const char *whole = name, *colon;
	size_t len, whole_len;

	if (name_communicates(name))
		return "communication";
	if (!strncmp(name, library, sizeof(library) - 1))
		name += sizeof(library) - 1;
	len = strlen(name);
	while ((colon = strstr(whole, "::")))
		whole = colon + 2;
	whole_len = strlen(whole);
	trim(&whole, &whole_len);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is_whole ? strlen(rows[i].word) == whole_len &&
					       same(whole, rows[i].word, whole_len)
				     : has_word(name, len, rows[i].word))
			return rows[i].category;
	return "other";
}

bool name_is_layer(const char *op)
{
	/* clang-format off */
	static const char *const layers[] = {
		"aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::layer_norm", "aten::batch_norm",
		"aten::group_norm", "aten::rms_norm", "aten::dropout", "aten::embedding", "aten::scaled_dot_product_attention"
	};
	/* clang-format on */
	size_t i = sizeof(layers) / sizeof(layers[0]);

	while (i && strcmp(op, layers[i - 1]) != 0)
		i--;
	return i > 0;
}
