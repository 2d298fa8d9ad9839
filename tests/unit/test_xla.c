/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of XLA as its compiler writes them, with sizes that are easily multiplied. */
#include "tests/unit/unit.h"

#include "analyze/model/xla.h"
#include "schemas/base/buf.h"
#include "schemas/base/pb.h"

#include <stdlib.h>
#include <string.h>

enum { S8 = 2, F32 = 11, BF16 = 16 };

static void put_list(struct buf *b, uint32_t field, const uint64_t *values, size_t count)
{
	size_t begin = pb_begin(b, field);

	for (size_t i = 0; i < count; i++)
		buf_put_varint(b, values[i]);
	pb_end(b, begin);
}

/* Sizes end with 0; without any it is a scalar. */
static void put_shape(struct buf *b, uint32_t field, uint64_t type, const uint64_t *sizes)
{
	size_t begin = pb_begin(b, field), count = 0;

	while (sizes[count])
		count++;
	pb_put_u64(b, 2, type);
	put_list(b, 3, sizes, count);
	pb_end(b, begin);
}
#define SIZES(...) ((const uint64_t[]){ __VA_ARGS__, 0 })
#define SCALAR     ((const uint64_t[]){ 0 })

/* Begins an instruction of two operands and a called computation, 0: none. */
static size_t put_instruction(struct buf *b, const char *name, const char *opcode, uint64_t id,
			      uint64_t first, uint64_t second, uint64_t called)
{
	size_t begin = pb_begin(b, 2);

	pb_put_text(b, 1, name);
	pb_put_text(b, 2, opcode);
	pb_put_u64(b, 35, id);
	put_list(b, 36, (const uint64_t[]){ first, second }, (first > 0) + (second > 0));
	if (called)
		pb_put_u64(b, 38, called);
	return begin;
}

static void put_parameter(struct buf *b, uint64_t id, uint64_t type, const uint64_t *sizes)
{
	size_t begin = put_instruction(b, "parameter", "parameter", id, 0, 0, 0);

	put_shape(b, 3, type, sizes);
	pb_end(b, begin);
}

static void put_simple(struct buf *b, const char *name, const char *opcode, uint64_t id,
		       uint64_t first, uint64_t second, uint64_t called, uint64_t type,
		       const uint64_t *sizes)
{
	size_t begin = put_instruction(b, name, opcode, id, first, second, called);

	put_shape(b, 3, type, sizes);
	pb_end(b, begin);
}

/* A product (4, 5) x (5, 6) in computation 2, an addition in 3, one that calls itself in 4. */
static void put_called(struct buf *b)
{
	size_t computation = pb_begin(b, 3), begin, dot;

	put_parameter(b, 21, BF16, SIZES(4, 5));
	put_parameter(b, 22, BF16, SIZES(5, 6));
	begin = put_instruction(b, "dot.1", "dot", 23, 21, 22, 0);
	put_shape(b, 3, F32, SIZES(4, 6));
	dot = pb_begin(b, 30);
	put_list(b, 1, SIZES(1), 1);
	pb_end(b, dot);
	pb_end(b, begin);
	put_simple(b, "convert.1", "convert", 24, 23, 0, 0, BF16, SIZES(4, 6));
	pb_put_u64(b, 5, 2);
	pb_end(b, computation);
	computation = pb_begin(b, 3);
	put_simple(b, "add.1", "add", 31, 0, 0, 0, F32, SCALAR);
	pb_put_u64(b, 5, 3);
	pb_end(b, computation);
	computation = pb_begin(b, 3);
	put_simple(b, "again", "fusion", 41, 0, 0, 4, F32, SIZES(9));
	put_simple(b, "exponential", "exponential", 42, 0, 0, 0, F32, SIZES(9));
	pb_put_u64(b, 5, 4);
	pb_end(b, computation);
}

/* A 2 x 2 window over (7, 3), with a border of 1 around the 7: (8, 2); 3 channels to 5. */
static void put_convolution(struct buf *b, const char *target)
{
	size_t begin = put_instruction(b, target ? "cudnn-conv.1" : "convolution.1",
				       target ? "custom-call" : "convolution", target ? 62 : 61, 15,
				       16, 0);
	size_t part, window;

	if (target) {
		part = pb_begin(b, 3);
		put_shape(b, 4, BF16, SIZES(1, 5, 8, 2));
		put_shape(b, 4, S8, SIZES(1000)); /* scratch */
		pb_end(b, part);
		pb_put_text(b, 28, target);
	} else {
		put_shape(b, 3, BF16, SIZES(1, 5, 8, 2));
	}
	window = pb_begin(b, 15);
	for (uint64_t border = 1; border < 2; border--) {
		part = pb_begin(b, 1);
		pb_put_u64(b, 1, 2);
		pb_put_u64(b, 2, 1);
		pb_put_u64(b, 3, border);
		pb_put_u64(b, 4, border);
		pb_end(b, part);
	}
	pb_end(b, window);
	part = pb_begin(b, 16);
	pb_put_u64(b, 7, 0);
	pb_put_u64(b, 8, 1);
	put_list(b, 11, SIZES(2, 3), 2);
	pb_put_u64(b, 3, 1);
	pb_put_u64(b, 4, 0);
	put_list(b, 12, SIZES(2, 3), 2);
	pb_end(b, part);
	pb_end(b, begin);
}

static void put_program(struct buf *b)
{
	size_t module = pb_begin(b, 1), computation, begin, part;

	put_called(b);
	computation = pb_begin(b, 3);
	put_parameter(b, 11, BF16, SIZES(4, 5));
	put_parameter(b, 12, BF16, SIZES(5, 6));
	put_parameter(b, 13, F32, SIZES(10, 7));
	put_parameter(b, 14, F32, SCALAR);
	put_parameter(b, 15, BF16, SIZES(1, 3, 7, 3));
	put_parameter(b, 16, BF16, SIZES(5, 3, 2, 2));
	put_simple(b, "gemm_fusion", "fusion", 51, 11, 12, 2, BF16, SIZES(4, 6));
	put_simple(b, "reduce.1", "reduce", 52, 13, 14, 3, F32, SIZES(7));
	put_simple(b, "transpose.1", "transpose", 53, 13, 0, 0, F32, SIZES(7, 10));
	put_simple(b, "loop", "fusion", 54, 0, 0, 4, F32, SIZES(9));
	begin = put_instruction(b, "custom-call.1", "custom-call", 55, 11, 12, 0);
	part = pb_begin(b, 3);
	put_shape(b, 4, BF16, SIZES(4, 6));
	put_shape(b, 4, S8, SIZES(1000));
	pb_end(b, part);
	pb_put_text(b, 28, "__cublas$gemm");
	pb_end(b, begin);
	begin = put_instruction(b, "attention", "custom-call", 56, 11, 12, 0);
	put_shape(b, 3, BF16, SIZES(4, 6));
	pb_put_text(b, 28, "te_fused_attn");
	pb_end(b, begin);
	put_convolution(b, NULL);
	put_convolution(b, "__cudnn$convForward");
	pb_put_u64(b, 5, 1);
	pb_end(b, computation);
	pb_end(b, module);
}

/* Pairs inside along the first dimension: 7 for each of 2; along the second: 2 for each of 2. */
static const struct {
	const char *name;
	double flops, bytes;
	enum number number;
} wanted[] = {
	{ "gemm_fusion", 2 * 4 * 5 * 6 + 3 * 4 * 6, 40 + 60 + 48, NUMBER_BF16 },
	{ "reduce.1", 63 * 3, 280 + 4 + 28, NUMBER_NONE },
	{ "transpose.1", 0, 280 + 280, NUMBER_NONE },
	{ "loop", 27, 36, NUMBER_NONE },
	{ "custom-call.1", 2 * 4 * 5 * 6, 40 + 60 + 48, NUMBER_BF16 },
	{ "convolution.1", 2 * 3 * 5 * 14 * 4, 126 + 120 + 160, NUMBER_BF16 },
	{ "cudnn-conv.1", 2 * 3 * 5 * 14 * 4, 126 + 120 + 160, NUMBER_BF16 },
};

void test_xla_cost(void)
{
	struct error err = { 0 };
	struct xla_program *p;
	struct model_cost c;
	struct buf b;

	buf_init(&b, 1 << 20);
	put_program(&b);
	CHECK_OK(buf_status(&b, &err), &err);
	CHECK_OK(xla_read(b.data, b.len, &p, &err), &err);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		CHECK(xla_cost(p, wanted[i].name, &c));
		CHECK_U64((uint64_t)c.flops, (uint64_t)wanted[i].flops);
		CHECK_U64((uint64_t)c.bytes, (uint64_t)wanted[i].bytes);
		CHECK(c.number == wanted[i].number &&
		      c.is_matrix == (wanted[i].number != NUMBER_NONE));
	}
	CHECK(!xla_cost(p, "attention", &c)); /* of what libraries do nothing is known */
	CHECK(!xla_cost(p, "gemm", &c));
	xla_free(p);
	buf_release(&b);
}

/* Cut at each byte, and with each byte changed, it is read without harm. */
void test_xla_damage(void)
{
	struct error err = { 0 };
	struct xla_program *p;
	struct model_cost c;
	struct buf b;

	buf_init(&b, 1 << 20);
	put_program(&b);
	CHECK_OK(buf_status(&b, &err), &err);
	for (size_t n = 0; n < 2 * b.len; n++) {
		size_t size = n < b.len ? n : b.len;
		uint8_t *copy = malloc(size + 1); /* so that what is read behind is seen */

		CHECK(copy != NULL);
		if (!copy)
			break;
		memcpy(copy, b.data, size);
		if (n >= b.len)
			copy[n - b.len] ^= (uint8_t)(1 + n % 255);
		CHECK_OK(xla_read(copy, size, &p, &err), &err);
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (xla_cost(p, wanted[i].name, &c))
				CHECK(c.flops >= 0 && c.flops <= MODEL_MOST && c.bytes >= 0);
		xla_free(p);
		free(copy);
	}
	buf_release(&b);
}

/* ---- programs that no compiler writes ---------------------------------------------------- */

/* Begins a program; hostile_end() says what the instruction of that name costs in it. */
static size_t hostile_begin(struct buf *b)
{
	buf_init(b, 64 << 20);
	return pb_begin(b, 1);
}

static bool hostile_end(struct buf *b, size_t module, const char *name, struct model_cost *c)
{
	struct error err = { 0 };
	struct xla_program *p;

	pb_end(b, module);
	CHECK_OK(buf_status(b, &err), &err);
	CHECK_OK(xla_read(b->data, b->len, &p, &err), &err);
	bool is_known = xla_cost(p, name, c);

	xla_free(p);
	buf_release(b);
	return is_known;
}

/* A computation of one instruction, nine values large, that calls another and names operands. */
static void put_one(struct buf *b, uint64_t id, const char *name, const char *opcode,
		    uint64_t operand, uint64_t called)
{
	size_t computation = pb_begin(b, 3);

	put_simple(b, name, opcode, 1000000 + id, operand, operand, called, F32, SIZES(9));
	pb_put_u64(b, 5, id);
	pb_end(b, computation);
}

/* Of computations that call each other the call back counts nothing, whoever is asked first; a
 * chain of any length is summed up. */
void test_xla_calls(void)
{
	const uint64_t length = 50000;
	struct model_cost c;
	struct buf b;

	for (int i = 0; i < 2; i++) {
		size_t module = hostile_begin(&b), computation = pb_begin(&b, 3);

		put_simple(&b, "ask.2", "fusion", 1, 0, 0, 2, F32, SIZES(9));
		put_simple(&b, "add", "add", 2, 0, 0, 0, F32, SIZES(9));
		pb_put_u64(&b, 5, 1);
		pb_end(&b, computation);
		put_one(&b, 2, "ask.1", "call", 0, 1);
		CHECK(hostile_end(&b, module, i ? "ask.1" : "ask.2", &c));
		CHECK_U64((uint64_t)c.flops, 27);
	}
	size_t module = hostile_begin(&b);

	put_one(&b, 1, "add", "add", 0, 0);
	for (uint64_t i = 2; i < length; i++)
		put_one(&b, i, i + 1 < length ? "call" : "last", "call", 0, i - 1);
	CHECK(hostile_end(&b, module, "last", &c));
	CHECK_U64((uint64_t)c.flops, 27);

	/* each calls the one before it twice: more than any number holds */
	module = hostile_begin(&b);
	put_one(&b, 1, "add", "add", 0, 0);
	for (uint64_t i = 2; i < length; i++) {
		size_t computation = pb_begin(&b, 3);

		put_simple(&b, "call", "call", 2 * i, 0, 0, i - 1, F32, SIZES(9));
		put_simple(&b, "last", "call", 2 * i + 1, 0, 0, i - 1, F32, SIZES(9));
		pb_put_u64(&b, 5, i);
		pb_end(&b, computation);
	}
	CHECK(!hostile_end(&b, module, "last", &c));
}

/* Sizes of more than 64 bits, and numbers of operands, computations and dimensions that nothing
 * has. */
void test_xla_numbers(void)
{
	static const uint64_t far[] = { UINT64_MAX, 1ull << 63, 1ull << 32, 77 };
	struct model_cost c;
	struct buf b;

	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		size_t module = hostile_begin(&b), computation = pb_begin(&b, 3), dot;

		put_parameter(&b, 1, F32, SIZES(far[i], far[i], far[i], far[i]));
		put_simple(&b, "big", "add", 2, 1, 1, 0, F32, SIZES(9));
		pb_end(&b, computation);
		/* 77^4 values of 4 bytes, twice, and 9 more */
		CHECK(hostile_end(&b, module, "big", &c) == (far[i] == 77));
		CHECK(far[i] != 77 || c.bytes == 8 * 77.0 * 77 * 77 * 77 + 36);

		module = hostile_begin(&b);
		computation = pb_begin(&b, 3);
		size_t begin = put_instruction(&b, "dot", "dot", 2, far[i], far[i] - 1, far[i]);

		put_shape(&b, 3, F32, SIZES(9));
		dot = pb_begin(&b, 30);
		put_list(&b, 1, SIZES(far[i], 5, 6), 3);
		pb_end(&b, dot);
		pb_end(&b, begin);
		pb_end(&b, computation);
		CHECK(hostile_end(&b, module, "dot", &c));
		CHECK_U64((uint64_t)c.flops, 18);
		CHECK_U64((uint64_t)c.bytes, 36);
	}
}

/* Nothing is said of a program that takes too long to read or has too many instructions, and a
 * shape is read to a limit. */
void test_xla_limits(void)
{
	static const uint8_t field[] = { 4 << 3, 0 };
	struct model_cost c;
	struct buf b;

	for (int is_large = 0; is_large < 2; is_large++) {
		size_t module = hostile_begin(&b), computation = pb_begin(&b, 3);
		size_t begin = put_instruction(&b, "parameter", "parameter", 1, 0, 0, 0);

		for (int i = 0; i < (is_large ? 100000 : 10); i++)
			buf_put(&b, field, sizeof(field));
		put_shape(&b, 3, F32, SIZES(9));
		pb_end(&b, begin);
		for (int i = 0; i < 200; i++)
			put_simple(&b, i ? "other" : "first", i ? "dot" : "add", 3, 1, 1, 0, F32,
				   SIZES(9));
		pb_end(&b, computation);
		CHECK(hostile_end(&b, module, "first", &c) == !is_large);
	}
	for (uint64_t count = (1 << 20) - 1; count < (1 << 20) + 1; count++) {
		size_t module = hostile_begin(&b), computation = pb_begin(&b, 3);

		put_simple(&b, "first", "add", 1, 0, 0, 0, F32, SIZES(9));
		for (uint64_t i = 1; i < count; i++)
			pb_end(&b, pb_begin(&b, 2));
		pb_end(&b, computation);
		CHECK(hostile_end(&b, module, "first", &c) == (count < 1 << 20));
	}
	for (size_t depth = 1; depth < 10000; depth *= 10) {
		size_t module = hostile_begin(&b), computation = pb_begin(&b, 3), ends[10000];
		size_t begin = put_instruction(&b, "deep", "add", 1, 0, 0, 0);

		for (size_t i = 0; i < depth; i++)
			ends[i] = pb_begin(&b, i ? 4 : 3);
		put_shape(&b, 4, F32, SIZES(9));
		for (size_t i = depth; i-- > 0;)
			pb_end(&b, ends[i]);
		pb_end(&b, begin);
		pb_end(&b, computation);
		CHECK(hostile_end(&b, module, "deep", &c));
		CHECK_U64((uint64_t)c.flops, depth < 32 ? 27 : 0);
	}
}
