/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of matrix products, convolutions and attention: what tensor cores compute. */
#include "analyze/model/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNED_SIZE = 8, SMALL_SIZE = 64, TILE_SIZE = 128 };

static double dim(const struct operand *in, int from_end)
{
	return in->dims[in->rank - (size_t)from_end];
}

static bool has_rank(const struct operand *in, size_t least, size_t most)
{
	return in->is_tensor && in->rank >= least && in->rank <= most && most <= DIMS_MAX;
}

/* Returns the bytes of an element of the result, from the operator's argument of type
 * c10::ScalarType. */
static double result_size(const struct operands *i, int type, double otherwise)
{
	switch ((int)operand_number(i, type, -1)) {
	case 6:
		return 4;
	case 5:
	case 15:
		return 2;
	case 23:
	case 24:
		return 1;
	default:
		return otherwise;
	}
}

/* Sets the cost of `batch` products of (m, k) and (k, n), except for bytes. */
static void product_put(struct model_cost *out, double batch, double m, double n, double k)
{
	const double sizes[] = { m, n, k };

	out->flops = 2 * batch * m * n * k;
	out->tiles = batch * ceil(m / TILE_SIZE) * ceil(n / TILE_SIZE);
	out->is_small = m < SMALL_SIZE || n < SMALL_SIZE;
	for (int at = 0; at < 3; at++)
		out->is_misaligned |= (out->number == NUMBER_FP16 || out->number == NUMBER_BF16) &&
				      fmod(sizes[at], ALIGNED_SIZE) != 0;
}

/* a, b: the factors; c: the summand, -1: none. */
bool cost_product(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *a = operand_at(i, r->a), *b = operand_at(i, r->b);
	bool is_rows = r->flags & B_IS_ROWS;

	if (!has_rank(a, 1, DIMS_MAX) || !has_rank(b, 2, DIMS_MAX))
		return false;
	double packed = a->packed;
	if ((r->flags & IS_PACKED) && a->size == 1)
		packed = 2;
	double k = dim(a, 1), n = dim(b, is_rows ? 2 : 1), m = k > 0 ? a->count / k : 0;
	double batch = 1;

	if (k != dim(b, is_rows ? 1 : 2))
		return false;
	if (b->rank > 2) {
		batch = k * n > 0 ? b->count / (k * n) : 0;
		if (a->rank < 2 || a->count != batch * dim(a, 2) * k)
			return false;
		m = dim(a, 2);
	}
	product_put(out, batch, m, n, k * packed);
	out->bytes =
		operand_bytes(i, r->a) + operand_bytes(i, r->b) + operand_bytes(i, r->c) +
		batch * m * n *
			result_size(i, r->flags & IS_SCALED ? 6 : -1, a->size == 1 ? 2 : a->size);
	for (int at = 2; (r->flags & IS_SCALED) && at < 4; at++)
		out->bytes += at == r->c ? 0 : operand_bytes(i, at);
	return true;
}

/* a: rows of all groups; b: a matrix for each group or, for its gradient, rows again; c: the
 * offsets of groups. */
bool cost_grouped(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *a = operand_at(i, r->a), *b = operand_at(i, r->b);

	if (!has_rank(a, 2, 3) || !has_rank(b, 2, 3))
		return false;
	double m = dim(a, 2), k = dim(a, 1), n = dim(b, 1), groups = operand_at(i, r->c)->count;
	double batch = a->rank == 3 && b->rank == 3 ? a->dims[0] : 1;

	if (dim(b, 2) != k) {
		if (b->rank == 2 || dim(b, 1) != k)
			return false;
		n = dim(b, 2);
	}
	product_put(out, batch, m, n, k * a->packed);
	if (a->rank == 2 && b->rank == 2) /* one product for each group */
		batch = groups;
	out->bytes = operand_bytes(i, r->a) + operand_bytes(i, r->b) +
		     batch * m * n * (a->size == 1 ? 2 : a->size);
	return true;
}

/* a: a matrix or vector; b: a vector; c: the summand. */
bool cost_vector_product(const struct operands *i, const struct model_rule *r,
			 struct model_cost *out)
{
	const struct operand *a = operand_at(i, r->a), *b = operand_at(i, r->b);

	if (!has_rank(a, 1, 2) || !has_rank(b, 1, 1))
		return false;
	bool is_outer = r->flags & WRITES_ONLY;
	double results = is_outer ? a->count * b->count : a->rank == 2 ? a->dims[0] : 1;

	if (!is_outer && dim(a, 1) != b->count)
		return false;
	out->flops = is_outer ? results : 2 * a->count;
	out->bytes = operand_bytes(i, r->a) + operand_bytes(i, r->b) + operand_bytes(i, r->c) +
		     results * a->size;
	return true;
}

/* ---- convolution ------------------------------------------------------------------------ */

struct window_sizes {
	double stride[WORDS_MAX], padding[WORDS_MAX], dilation[WORDS_MAX], more[WORDS_MAX];
};

static bool list_spread(const struct operands *i, int index, size_t n, double *out)
{
	size_t count = operand_list(i, index, out);

	for (size_t at = 1; count == 1 && at < n; at++)
		out[at] = out[0];
	return count == n || (count == 1 && n > 0);
}

/* Returns the number of elements of the result; NAN: the call's values are unknown. `at` is the
 * index of the stride.
 */
static double convolution_results(const struct operands *i, const struct operand *x,
				  const struct operand *w, int at, bool is_transposed,
				  double groups)
{
	struct window_sizes s = { 0 };
	size_t n = x->rank - 2;
	double count = x->dims[0] * (is_transposed ? w->dims[1] * groups : w->dims[0]);

	if (!list_spread(i, at, n, s.stride) || !list_spread(i, at + 1, n, s.padding) ||
	    !list_spread(i, at + 2, n, s.dilation))
		return NAN;
	if (is_transposed && !list_spread(i, at + 4, n, s.more))
		return NAN;
	for (size_t d = 0; d < n; d++) {
		double kernel = s.dilation[d] * (w->dims[d + 2] - 1), size = x->dims[d + 2];

		if (!(s.stride[d] >= 1))
			return NAN;
		size = is_transposed
			       ? (size - 1) * s.stride[d] - 2 * s.padding[d] + kernel + s.more[d] +
					 1
			       : floor((size + 2 * s.padding[d] - kernel - 1) / s.stride[d]) + 1;
		if (!(size >= 0))
			return NAN;
		count *= size;
	}
	return count;
}

static bool is_convolution(const struct operand *x, const struct operand *w)
{
	return has_rank(x, 3, DIMS_MAX) && has_rank(w, x->rank, x->rank) && w->dims[0] > 0;
}

/* a: input; b: filters; c: index of the stride. */
bool cost_convolution(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, r->a), *w = operand_at(i, r->b);
	bool is_transposed = operand_flag(i, r->c + 3, false);

	if (!is_convolution(x, w))
		return false;
	double results =
		convolution_results(i, x, w, r->c, is_transposed, operand_number(i, r->c + 5, 1));
	if (isnan(results))
		return false;
	out->flops = 2 * (is_transposed ? x->count : results) * w->count / w->dims[0];
	out->bytes = operand_bytes(i, r->a) + operand_bytes(i, r->b) + operand_bytes(i, 2) +
		     results * x->size;
	return true;
}

/* a: gradient; b: input, followed by the filters; c: index of the stride. */
bool cost_convolution_backward(const struct operands *i, const struct model_rule *r,
			       struct model_cost *out)
{
	const struct operand *grad = operand_at(i, r->a), *x = operand_at(i, r->b),
			     *w = operand_at(i, 2);
	double mask[WORDS_MAX] = { 1, 1, 0 };
	size_t have = r->c >= 0 ? operand_list(i, r->c + 6, mask) : 0;

	if (!is_convolution(x, w) || !has_rank(grad, x->rank, x->rank))
		return false;
	if (have != 3) {
		mask[0] = mask[1] = 1;
		mask[2] = 0;
	}
	bool is_transposed = r->c >= 0 && operand_flag(i, r->c + 3, false);
	double one = 2 * (is_transposed ? x->count : grad->count) * w->count / w->dims[0];
	double moved = operand_bytes(i, r->a) + operand_bytes(i, r->b) + operand_bytes(i, 2);

	out->flops = (mask[0] + mask[1]) * one;
	out->bytes = (mask[0] + mask[1]) * moved + mask[2] * w->dims[0] * w->size;
	return true;
}

/* Gradient of the input alone. a: gradient of the result; b: filters. */
bool cost_convolution_input(const struct operands *i, const struct model_rule *r,
			    struct model_cost *out)
{
	const struct operand *grad = operand_at(i, r->a), *w = operand_at(i, r->b);

	if (!is_convolution(grad, w))
		return false;
	out->flops = 2 * grad->count * w->count / w->dims[0];
	out->bytes = NAN; /* the size of the input is not recorded */
	return true;
}

/* Pooling: each window of the input gives one result. a: number of dimensions; b: index of
 * ceil_mode, which in max_pool follows the dilation; c: bytes of an index stored with each
 * result. */
bool cost_pool(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	const struct operand *x = operand_at(i, 0);
	struct window_sizes s = { 0 };
	double kernel[WORDS_MAX], window = 1, results = x->count;
	size_t n = (size_t)r->a;

	if (!has_rank(x, n + 1, DIMS_MAX) || !list_spread(i, 1, n, kernel) ||
	    !list_spread(i, 3, n, s.padding))
		return false;
	bool strides = list_spread(i, 2, n, s.stride), is_ceil = operand_flag(i, r->b, false);
	bool dilates = r->b == 5 && list_spread(i, 4, n, s.dilation);
	for (size_t d = 0; d < n; d++) {
		double size = x->dims[x->rank - n + d], pad = s.padding[d];
		double stride = strides ? s.stride[d] : kernel[d];
		double reach = (dilates ? s.dilation[d] : 1) * (kernel[d] - 1) + 1;
		double last = (size + 2 * pad - reach) / stride;

		if (!(stride >= 1 && kernel[d] >= 1 && size >= 1 && last >= 0))
			return false;
		/* the last window must begin inside the input or the padding before it */
		last = is_ceil ? ceil(last) : floor(last);
		last -= is_ceil && last * stride >= size + pad ? 1 : 0;
		results = results / size * (last + 1);
		window *= kernel[d];
	}
	out->flops = results * window;
	out->bytes = operand_bytes(i, 0) + results * (x->size + r->c);
	return true;
}

/* ---- attention -------------------------------------------------------------------------- */

struct heads {
	double batch, queries, keys, query_heads, key_heads, width, value_width, size;
};

static bool heads_read(const struct operands *i, int first, bool heads_last, struct heads *h)
{
	const struct operand *q = operand_at(i, first), *k = operand_at(i, first + 1),
			     *v = operand_at(i, first + 2);
	int head = heads_last ? 2 : 1, row = heads_last ? 1 : 2;

	if (!has_rank(q, 4, 4) || !has_rank(k, 4, 4) || !has_rank(v, 4, 4) || k->dims[head] <= 0 ||
	    k->dims[3] != q->dims[3])
		return false;
	*h = (struct heads){ .batch = q->dims[0],
			     .queries = q->dims[row],
			     .keys = k->dims[row],
			     .query_heads = q->dims[head],
			     .key_heads = k->dims[head],
			     .width = q->dims[3],
			     .value_width = v->dims[3],
			     .size = q->size };
	return true;
}

/* Returns the number of pairs of a query and a key that it attends to. With a causal mask and equal
 * numbers that is half of all, by convention. */
static double pairs_seen(double queries, double keys, bool is_causal, bool aligns_end)
{
	double less = queries < keys ? queries : keys;

	if (!is_causal)
		return queries * keys;
	if (queries <= keys)
		return aligns_end ? queries * (keys - queries / 2) : queries * queries / 2;
	return aligns_end ? less * less / 2 : less * less / 2 + (queries - less) * less;
}

static bool is_causal(const struct operands *i, const struct model_rule *r)
{
	return r->flags & IS_MASK_NUMBER ? operand_number(i, r->b, 0) > 0
					 : operand_flag(i, r->b, false);
}

/* a: q, followed by k and v; b: index of is_causal. */
bool cost_attention(const struct operands *i, const struct model_rule *r, struct model_cost *out)
{
	struct heads h;

	if (!heads_read(i, r->a, r->flags & HEADS_LAST, &h))
		return false;
	out->flops = 2 * h.batch * h.query_heads * (h.width + h.value_width) *
		     pairs_seen(h.queries, h.keys, is_causal(i, r), r->flags & ALIGNS_END);
	out->bytes = operand_bytes(i, r->a) + operand_bytes(i, r->a + 1) +
		     operand_bytes(i, r->a + 2) +
		     h.batch * h.queries * h.query_heads * h.value_width * h.size;
	return true;
}

/* a: q, preceded by the gradient of the result; b: index of is_causal. The scores are computed
 * again, which makes five products. */
bool cost_attention_backward(const struct operands *i, const struct model_rule *r,
			     struct model_cost *out)
{
	struct heads h;

	if (!heads_read(i, r->a, r->flags & HEADS_LAST, &h))
		return false;
	out->flops = 2 * h.batch * h.query_heads * (3 * h.width + 2 * h.value_width) *
		     pairs_seen(h.queries, h.keys, is_causal(i, r), r->flags & ALIGNS_END);
	out->bytes = 2 * (operand_bytes(i, r->a) + operand_bytes(i, r->a + 1) +
			  operand_bytes(i, r->a + 2)) +
		     2 * h.batch * h.queries * h.query_heads * h.value_width * h.size;
	return true;
}

/* Concatenated sequences. a: q (tokens, heads, width); b: index of is_causal; c: lengths of q and
 * k, whose greatest values are at c + 2 and c + 3. One sequence has the greatest length; the others
 * are assumed to be equally long. */
bool cost_attention_lengths(const struct operands *i, const struct model_rule *r,
			    struct model_cost *out)
{
	const struct operand *q = operand_at(i, r->a), *k = operand_at(i, r->a + 1),
			     *v = operand_at(i, r->a + 2);
	double others = operand_at(i, r->c)->count - 2;
	double most_q = operand_number(i, r->c + 2, NAN), most_k = operand_number(i, r->c + 3, NAN);
	bool causal = is_causal(i, r), is_backward = r->a > 0;

	if (!has_rank(q, 3, 3) || !has_rank(k, 3, 3) || !has_rank(v, 3, 3) || !(others >= 0) ||
	    !(most_q >= 0 && most_q <= q->dims[0]) || !(most_k >= 0 && most_k <= k->dims[0]))
		return false;
	double pairs = pairs_seen(most_q, most_k, causal, true);
	if (others > 0)
		pairs += others * pairs_seen((q->dims[0] - most_q) / others,
					     (k->dims[0] - most_k) / others, causal, true);
	double width = q->dims[2], values = v->dims[2];
	out->flops =
		2 * q->dims[1] * pairs * (is_backward ? 3 * width + 2 * values : width + values);
	out->bytes = (is_backward ? 2 : 1) *
		     (operand_bytes(i, r->a) + operand_bytes(i, r->a + 1) +
		      operand_bytes(i, r->a + 2) + q->dims[0] * q->dims[1] * values * q->size);
	return true;
}

struct step_sums {
	double q, k, qq, qk; /* sums over sequences: tokens of q and k, q * q, q * k */
};

static bool sums_read(const char *text, struct step_sums *context, struct step_sums *generation)
{
	const char *at = text ? strstr(text, "_context_") : NULL;

	*context = *generation = (struct step_sums){ 0 };
	if (at)
		return sscanf(at,
			      "_context_%*d(sq%lfsk%lfsqsq%lfsqsk%lf)_generation_%*d(sq%lfsk%"
			      "lfsqsq%lfsqsk%lf",
			      &context->q, &context->k, &context->qq, &context->qk, &generation->q,
			      &generation->k, &generation->qq, &generation->qk) == 8;
	if (!text || strncmp(text, "step[", 5) != 0)
		return false;
	const struct {
		const char *word;
		double *into;
	} words[] = { { " c_sq=", &context->q },       { " c_sk=", &context->k },
		      { " c_sqsq=", &context->qq },    { " c_sqsk=", &context->qk },
		      { " g_sq=", &generation->q },    { " g_sk=", &generation->k },
		      { " g_sqsq=", &generation->qq }, { " g_sqsk=", &generation->qk } };
	bool found = false;
	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		at = strstr(text, words[w].word);
		found |= at && sscanf(at + strlen(words[w].word), "%lf", words[w].into) == 1;
	}
	return found;
}

bool model_is_step(const char *text)
{
	struct step_sums context, generation;

	return sums_read(text, &context, &generation);
}

/* Attention of a server. a: q (tokens, heads, width), followed by k and v, which may be pages of a
 * cache; b: the result. The lengths are in the step's annotation. */
bool cost_attention_step(const struct operands *i, const struct model_rule *r,
			 struct model_cost *out)
{
	const struct operand *q = operand_at(i, r->a), *k = operand_at(i, r->a + 1),
			     *v = operand_at(i, r->a + 2);
	struct step_sums c, g;

	if (!has_rank(q, 3, 3) || !has_rank(k, 3, DIMS_MAX) || !has_rank(v, 3, DIMS_MAX) ||
	    !sums_read(i->step, &c, &g))
		return false;
	double queries = q->dims[1] * (q->dims[2] + dim(v, 1));
	double keys = dim(k, 2) * (dim(k, 1) + dim(v, 1));
	/* q may be stored in fewer bytes than it is multiplied in */
	double results = operand_at(i, r->b)->size;

	out->flops = queries * (2 * c.qk - c.qq + 2 * g.qk);
	out->bytes =
		(c.q + g.q) * (queries * (q->size < results ? results : q->size) + keys * k->size) +
		((c.k - c.q) + (g.k - g.q)) * keys * k->size;
	return true;
}
