/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of operators bound by memory: elementwise, reductions, normalizations, copies,
 * optimizers. */
#include "analyze/model/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the elements of the broadcast of inputs [0, n); NAN: the shapes do not match. */
static double broadcast(const struct operands *i, int n)
{
	double sizes[DIMS_MAX], count = 1;

	for (size_t d = 0; d < DIMS_MAX; d++)
		sizes[d] = 1;
	for (int at = 0; at < n; at++) {
		const struct operand *in = operand_at(i, at);

		if (in->is_tensor && in->rank > DIMS_MAX)
			return n == 1 ? in->count : NAN;
		for (size_t d = 0; in->is_tensor && d < in->rank; d++) {
			double *into = &sizes[DIMS_MAX - in->rank + d];

			if (*into != 1 && in->dims[d] != 1 && in->dims[d] != *into)
				return NAN;
			*into = *into == 1 ? in->dims[d] : *into;
		}
	}
	for (size_t d = 0; d < DIMS_MAX; d++)
		count *= sizes[d];
	return count;
}

/* Elementwise operators. a: number of inputs; b: operations per element. A tensor after the inputs
 * is the result's destination. */
bool cost_each(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	double results = broadcast(i, r->a), size = 0;
	bool has_tensor = false;

	if (!operand_is_tensor(i, 0) && !operand_is_tensor(i, 1))
		return false;
	out->bytes = 0;
	for (int at = 0; at < r->a; at++) {
		const struct operand *in = operand_at(i, at);

		if (!in->is_tensor)
			continue;
		out->bytes += r->flags & WRITES_ONLY ? 0 : in->count * in->size;
		/* a scalar does not widen the result */
		if (!has_tensor || (in->rank && (in->size > size || isnan(in->size))))
			size = in->size;
		has_tensor |= in->rank > 0;
	}
	for (int at = r->a; at < r->a + 2; at++)
		if (operand_is_tensor(i, at) && operand_at(i, at)->count == results)
			size = operand_at(i, at)->size;
	out->flops = r->b * results;
	out->bytes += results * (r->flags & MAKES_BOOL ? 1 : size);
	return !isnan(results);
}

/* A result of the size of input a and the type of the first input. b: operations per element;
 * c: bit mask of the inputs that are read. HALVES: half that size; UPDATES: the result is read
 * first. */
bool cost_sized(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	double n = operand_at(i, r->a)->count / (r->flags & HALVES ? 2 : 1);

	out->flops = r->b * n;
	out->bytes = r->flags & WRITES_NOTHING ? 0 : n * operand_at(i, 0)->size;
	out->bytes *= r->flags & UPDATES ? 2 : 1;
	for (int at = 0; r->c >> at; at++)
		out->bytes += r->c >> at & 1 ? operand_bytes(i, at) : 0;
	return operand_is_tensor(i, r->a);
}

/* Sums of rows of a table (input 0), by indices (1) and the offset of each sum in these (2). */
bool cost_bag(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, 0), *rows = operand_at(i, 1);
	double width = x->dims[1];

	(void)r;
	out->flops = rows->count * width;
	out->bytes = (rows->count + operand_at(i, 2)->count) * width * x->size +
		     operand_bytes(i, 1) + operand_bytes(i, 2);
	return x->is_tensor && x->rank == 2 && rows->is_tensor && operand_is_tensor(i, 2);
}

/* Padding and nearest neighbours, where each element of the result reads one. a: index of the
 * sizes; b: 1: they are added at both ends, last dimension first. */
bool cost_resample(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, 0);
	double sizes[WORDS_MAX], results = 1;
	size_t count = operand_list(i, r->a, sizes);

	if (!x->is_tensor || x->rank < 1 || x->rank > DIMS_MAX || !count)
		return false;
	for (size_t d = 0; d < x->rank; d++) {
		size_t from_end = x->rank - 1 - d;
		double size = x->dims[d];

		if (r->b && from_end * 2 + 1 < count)
			size += sizes[from_end * 2] + sizes[from_end * 2 + 1];
		else if (!r->b && from_end < count)
			size = sizes[count - 1 - from_end];
		results *= size;
	}
	out->flops = results;
	out->bytes = (x->count + results) * x->size;
	return results >= 0;
}

/* a: index of the dimensions, which defaults to all; b: bytes of an index stored with each
 * result. */
bool cost_reduce(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, 0);
	double dims[WORDS_MAX], results = 1;
	size_t count = operand_list(i, r->a, dims);

	if (!x->is_tensor)
		return false;
	if (count && x->rank <= DIMS_MAX) {
		results = x->count;
		for (size_t at = 0; at < count; at++) {
			double d = dims[at] < 0 ? dims[at] + (double)x->rank : dims[at];

			if (!(d >= 0 && d < (double)x->rank))
				return x->rank == 0;
			double size = x->dims[(size_t)d];
			results = size > 0 ? results / size : 0;
		}
	}
	out->flops = x->count;
	out->bytes = operand_bytes(i, 0) + results * (x->size + (count ? r->b : 0));
	return true;
}

/* Returns the number of weights: channels, or elements of the normalized shape. */
static double norm_weights(const struct operands *i, const struct operand *x, bool is_shape, int at)
{
	double sizes[WORDS_MAX], count = 1;
	size_t n = is_shape ? operand_list(i, at, sizes) : 0;

	if (!is_shape)
		return x->rank > 1 && x->rank <= DIMS_MAX ? x->dims[1] : NAN;
	if (!n && x->rank && x->rank <= DIMS_MAX) /* the shape was not recorded */
		return operand_is_tensor(i, at + 1) ? operand_at(i, at + 1)->count
						    : x->dims[x->rank - 1];
	for (size_t d = 0; d < n; d++)
		count *= sizes[d];
	return n ? count : NAN;
}

/* a: the weight, followed by the bias; b: index of the training flag, -1: statistics are always
 * computed. */
bool cost_norm(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, 0);
	bool is_shape = r->flags & BY_SHAPE, trains = operand_flag(i, r->b, true);
	double n = x->count, c = norm_weights(i, x, is_shape, 1);
	double affine = operand_is_tensor(i, r->a), bias = operand_is_tensor(i, r->a + 1);

	if (!x->is_tensor || isnan(c))
		return false;
	out->flops = 2 * n + 6 * c + (trains ? 3 * n : 0);
	out->bytes = 2 * n * x->size +
		     c * x->size * (2 + affine * (1 + bias) + (trains && !is_shape ? 2 : 0));
	return true;
}

/* a: input; b: weight; c: index of the mask of gradients to compute, which have the same sizes. */
bool cost_norm_backward(const struct operands *i, const struct model_rule *r,
			struct model_cost *out)
{
	const struct operand *x = operand_at(i, r->a);
	double mask[WORDS_MAX], affine = operand_is_tensor(i, r->b);
	size_t have = operand_list(i, r->c, mask);
	double n = x->count, c = norm_weights(i, x, r->flags & BY_SHAPE, 2);
	bool wants_input = !have || mask[0] != 0;

	if (!x->is_tensor || isnan(c))
		return false;
	out->flops = 4 * n + (wants_input ? 5 * n : 0);
	out->bytes = n * x->size * (wants_input ? 3 : 2) + c * x->size * (1 + affine * 3);
	return true;
}

/* a: input; b: weight. ADDS_RESIDUAL: a tensor is added first, and the sum is kept. */
bool cost_rms(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, r->a), *w = operand_at(i, r->b);
	double n = x->count, affine = w->is_tensor;
	double c = affine ? w->count : x->rank && x->rank <= DIMS_MAX ? x->dims[x->rank - 1] : 0;
	double more = r->flags & ADDS_RESIDUAL ? 1 : 0;

	if (!x->is_tensor || !(c > 0))
		return false;
	out->flops = 2 * n + 2 * n / c + n * (1 + affine) + more * n;
	out->bytes = (2 + 2 * more) * n * x->size + affine * c * x->size;
	return true;
}

/* a: input, preceded by the gradient; b: weight; c: index of the mask. */
bool cost_rms_backward(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, r->a), *w = operand_at(i, r->b);
	double mask[WORDS_MAX] = { 1, 1 }, n = x->count, affine = w->is_tensor;
	size_t have = operand_list(i, r->c, mask);
	double c = affine ? w->count : 0, rows = c > 0 ? n / c : 1;

	if (!x->is_tensor)
		return false;
	if (have < 2)
		mask[0] = mask[1] = 1;
	out->flops = n * (1 + affine) + 6 * n * mask[0] + (rows > 1 ? 2 : 1) * n * mask[1];
	out->bytes = 3 * n * x->size + 2 * c * x->size;
	return true;
}

/* Rows of a table by their indices. a: table; b: indices; c: index of the dimension, -1: the first
 * one. BY_SHAPE: each index selects an element. */
bool cost_rows(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, r->a), *rows = operand_at(i, r->b);
	double d = operand_number(i, r->c, 0), taken = rows->count;

	if (!x->is_tensor || !rows->is_tensor || x->rank < 1 || x->rank > DIMS_MAX)
		return false;
	d += d < 0 ? (double)x->rank : 0;
	if (!(d >= 0 && d < (double)x->rank))
		return false;
	if (!(r->flags & BY_SHAPE))
		taken *= x->dims[(size_t)d] > 0 ? x->count / x->dims[(size_t)d] : 0;
	out->flops = 0;
	out->bytes = 2 * taken * x->size + operand_bytes(i, r->b);
	return true;
}

/* Gradient of a table. a: gradient; b: indices; c: number of rows of the table. */
bool cost_rows_backward(const struct operands *i, const struct model_rule *r,
			struct model_cost *out)
{
	const struct operand *x = operand_at(i, r->a);
	double rows = operand_number(i, r->c, NAN);

	if (!x->is_tensor || x->rank < 1 || x->rank > DIMS_MAX || !(rows >= 0))
		return false;
	out->flops = x->count;
	out->bytes = operand_bytes(i, r->a) + operand_bytes(i, r->b) +
		     rows * x->dims[x->rank - 1] * x->size;
	return true;
}

/* Mixture of experts. a: tokens (M, K), followed by two matrices, (E, N or 2 N, K) and (E, K, N);
 * b: the indices of each token's experts. */
bool cost_experts(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, r->a), *up = operand_at(i, r->a + 1),
			     *down = operand_at(i, r->a + 2), *chosen = operand_at(i, r->b);

	if (!x->is_tensor || x->rank != 2 || !up->is_tensor || up->rank != 3 || !down->is_tensor ||
	    down->rank != 3 || !chosen->is_tensor || chosen->rank != 2)
		return false;
	double m = x->dims[0], k = x->dims[1], experts = up->dims[0], top = chosen->dims[1];
	double packed = down->dims[1] == k && up->dims[2] * 2 == k ? 2 : 1;
	double n = down->dims[2] * packed, gates = n > 0 ? up->dims[1] / n : 0;

	if (!(experts > 0 && top <= experts) || (gates != 1 && gates != 2))
		return false;
	double active = experts * (1 - pow((experts - top) / experts, m));
	out->flops = 2 * m * k * n * top * (1 + gates) + m * k * (2 * top - 1);
	out->bytes =
		2 * operand_bytes(i, r->a) + active * n * k * (up->size / packed) * (1 + gates);
	return true;
}

/* Reads and writes inputs a to b once. c: operations per element. */
bool cost_move(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	out->flops = out->bytes = 0;
	for (int at = r->a; at <= r->b; at++) {
		out->flops += operand_is_tensor(i, at) ? r->c * operand_at(i, at)->count : 0;
		out->bytes += 2 * operand_bytes(i, at);
	}
	return operand_is_tensor(i, r->a);
}

/* Operators in names of torch.compile's kernels, by operations per element. */
static const struct {
	double operations;
	const char *words;
} compiled[] = {
	{ 1,
	  " add sub mul div relu mean sum amax amin neg abs eq lt gt ge le ne maximum minimum " },
	{ 2, " pow sqrt rsqrt var " },
	{ 4, " exp log sigmoid tanh silu " },
	{ 5, " softmax " },
	{ 8, " gelu " },
};

/* Returns the operations per element of "triton_red_fused_add_mean_0": the sum over the fused
 * operators, each applied to the largest argument. */
static double compiled_operations(const char *name)
{
	double sum = 0;
	char word[32];

	for (const char *p = strstr(name, "fused_"); p && *p; p += strspn(p, "_")) {
		size_t len = strcspn(p, "_");

		snprintf(word, sizeof(word), " %.*s ", (int)len, p);
		for (size_t w = 0; w < sizeof(compiled) / sizeof(compiled[0]); w++)
			sum += strstr(compiled[w].words, word) ? compiled[w].operations : 0;
		p += len;
	}
	return sum;
}

bool cost_compiled(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	double most = 0;

	(void)r;
	out->bytes = 0;
	for (size_t at = 0; at < i->count; at++) {
		out->bytes += operand_bytes(i, (int)at);
		if (i->in[at].is_tensor && i->in[at].count > most)
			most = i->in[at].count;
	}
	out->flops = compiled_operations(i->name) * most;
	return most > 0;
}

/* Lists of tensors, starting with the result's. a: how often one list is read or written besides;
 * b: operations per element. */
bool cost_list(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *p = operand_at(i, 0);

	out->flops = r->b * p->count;
	out->bytes = (1 + r->a) * p->count * p->size;
	return p->is_tensor;
}
