/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name/name.h"
#include "convert/name/rules.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* The first row with a word that the name contains decides; case is ignored.  A word after "=" must
 * be the whole name without namespaces, "_" at both ends, and digits at the end. */
static const struct {
	const char *category, *words;
} rows[] = {
	{ "communication", "nccl gloo: c10d record_param_comms" },
	/* "Torch-Compiled Region", "CompiledFunctionBackward" */
	{ "compiled", "triton_ cpp_fused_ compiled torchdynamo aotdispatcher" },
	{ "optimizer", "optimizer _foreach_ fused_adam fused_sgd" },
	{ "attention", "attention flash_attn mha_ reshape_and_cache store_cache" },
	{ "rope", "rotary =rope" },
	{ "moe", "moe topk_gating" },
	{ "convolution", "convolution conv1d conv2d conv3d conv_general" },
	{ "normalization",
	  "batch_norm layer_norm group_norm instance_norm rms_norm rmsnorm batchnorm "
	  "layernorm groupnorm" },
	{ "reduction", "linalg_vector_norm" },
	{ "softmax", "softmax" },
	{ "loss", "cross_entropy nll_loss _loss" },
	/* "lookup" is for FBGEMM's CppNode<SplitLookupFunction_sgd_Op>; "pooled" for
	 * permute_pooled_embs, which permutes sums over bags. */
	{ "embedding", "embedding lookup pooled" },
	{ "pooling", "pool" },
	{ "gemm",
	  "gemm linear matmul addmm baddbmm scaled_mm dot_general grouped_mm einsum =mm =bmm "
	  "=mv =addmv =dot" },
	{ "random", "dropout bernoulli rand uniform =normal =exponential multinomial" },
	{ "indexing", "index gather scatter masked_ =where =nonzero sort topk" },
	{ "reduction",
	  "cumsum reduce_ cumprod =sum =mean =max =min =amax =amin =argmax =argmin =norm "
	  "=prod =all =any =std =var =logsumexp" },
	{ "copy", "=item local_scalar_dense copy convert_element_type =to =clone =contiguous =cat "
		  "=stack pin_memory" },
	{ "memory", "empty resize =set" },
	{ "view", "view =reshape as_strided =transpose =t =permute slice =select =expand squeeze "
		  "split =chunk =detach =narrow =flatten =alias =unbind" },
	{ "elementwise",
	  "=add =sub =rsub =mul =div =neg =pow =square =exp =log =sqrt =rsqrt =reciprocal "
	  "=abs =sign =sin =cos tanh sigmoid relu gelu silu threshold hardtanh clamp =addcmul "
	  "=addcdiv =lerp =eq =ne =lt =le =gt =ge bitwise_ logical_ =isnan =isfinite =maximum "
	  "=minimum =tril =triu =fill =zero =zeros =ones =full =zeros_like =ones_like "
	  "=full_like =arange upsample =pad =constant_pad_nd =flip =roll =repeat" },
};

static bool same(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (tolower((unsigned char)a[i]) != b[i])
			return false;
	return true;
}

static bool has_word(const char *name, size_t len, const char *word, size_t want)
{
	for (size_t i = 0; i + want <= len; i++)
		if (same(name + i, word, want))
			return true;
	return false;
}

/* Removes "_" at both ends, digits, and endings such as "Backward": "_softmax_" becomes "softmax",
 * "AddmmBackward0" becomes "Addmm". */
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
	static const char library[] = "fbgemm::"; /* "gemm" in it is no matrix product */
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
		for (const char *word = rows[i].words; *word; word += strspn(word, " ")) {
			size_t want = strcspn(word, " ");

			if (*word == '=' ? want - 1 == whole_len && same(whole, word + 1, whole_len)
					 : has_word(name, len, word, want))
				return rows[i].category;
			word += want;
		}
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
