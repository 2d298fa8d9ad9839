/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of an operator, as the cost functions use them. */
#pragma once

#include "analyze/model/model.h"

enum { OPERANDS_MAX = 40, DIMS_MAX = 8, WORDS_MAX = 8 };
struct operand {
	bool is_tensor;
	size_t rank;           /* number of dimensions; dims[] has at most DIMS_MAX */
	double dims[DIMS_MAX]; /* of the first tensor of a list */
	double count;          /* elements; the sum over a list */
	double size;           /* bytes of an element; NAN: unknown type */
	enum number number;
	double packed;    /* numbers in an element: 2 for FP4, otherwise 1 */
	const char *text; /* concrete value of `text_len` bytes; never NULL */
	size_t text_len;
};
struct operands {
	struct operand in[OPERANDS_MAX];
	size_t count;
	const char *name, *step;
};
/* Reads the shapes and values of a call. false: the texts are no lists of shapes, or a size is
 * negative or too large. */
bool operands_read(struct operands *out, const struct model_call *call);
/* Returns an operand; one that does not exist is not a tensor. */
const struct operand *operand_at(const struct operands *i, int index);
bool operand_is_tensor(const struct operands *i, int index);
double operand_bytes(const struct operands *i, int index); /* 0: not a tensor */
/* Return a concrete value: a flag, a number, a list of numbers; `otherwise` if there is none. */
bool operand_flag(const struct operands *i, int index, bool otherwise);
double operand_number(const struct operands *i, int index, double otherwise);
size_t operand_list(const struct operands *i, int index, double out[WORDS_MAX]);

struct model_rule;
typedef bool model_function(const struct operands *i, const struct model_rule *r,
			    struct model_cost *out);
struct model_rule {
	const char *patterns; /* patterns for fnmatch(), separated by blanks */
	const char *family;
	model_function *cost;
	int a, b, c; /* parameters, described at each cost function */
	unsigned flags;
	const char *source;
};
model_function cost_product, cost_grouped, cost_vector_product, cost_convolution,
	cost_convolution_backward, cost_convolution_input, cost_attention, cost_attention_backward,
	cost_attention_step, cost_attention_lengths;
model_function cost_pool, cost_sized, cost_bag, cost_each, cost_resample, cost_reduce, cost_norm,
	cost_norm_backward, cost_rms, cost_rms_backward, cost_rows, cost_rows_backward,
	cost_experts, cost_move, cost_compiled, cost_list;

enum product_flag { B_IS_ROWS = 1, IS_SCALED = 2, IS_PACKED = 4 };
enum attention_flag { HEADS_LAST = 1, ALIGNS_END = 2, IS_MASK_NUMBER = 4 };
enum each_flag { MAKES_BOOL = 1, WRITES_ONLY = 2 };
enum sized_flag { WRITES_NOTHING = 1, UPDATES = 2, HALVES = 4 };
enum norm_flag { BY_SHAPE = 1, ADDS_RESIDUAL = 2 };
