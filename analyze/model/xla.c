/* SPDX-License-Identifier: Apache-2.0 */
/* Counts FLOPs as XProf does: products and convolutions by their sizes, a fusion by the computation
 * that it calls, and three for each element of other instructions that compute. */
#include "analyze/model/xla.h"
#include "analyze/model/internal.h"
#include "schemas/base/map.h"
#include "schemas/base/pb.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

/* Field numbers of xla/service/hlo.proto and xla/xla_data.proto. */
enum { HLO_MODULE = 1, MODULE_COMPUTATIONS = 3, COMPUTATION_INSTRUCTIONS = 2, COMPUTATION_ID = 5 };
enum {
	INSTRUCTION_NAME = 1,
	INSTRUCTION_OPCODE = 2,
	INSTRUCTION_SHAPE = 3,
	INSTRUCTION_WINDOW = 15,
	INSTRUCTION_CONVOLUTION = 16,
	INSTRUCTION_TARGET = 28,
	INSTRUCTION_DOT = 30,
	INSTRUCTION_ID = 35,
	INSTRUCTION_OPERANDS = 36,
	INSTRUCTION_CALLED = 38,
	INSTRUCTION_GROUPS = 50,
};
enum { SHAPE_TYPE = 2, SHAPE_DIMENSIONS = 3, SHAPE_TUPLE = 4, DOT_LHS_CONTRACTING = 1 };
enum {
	INPUT_BATCH = 7,
	INPUT_FEATURE = 8,
	INPUT_SPATIAL = 11,
	KERNEL_OUT = 4,
	OUTPUT_SPATIAL = 12
};
enum { WINDOW_DIMENSIONS = 1, WINDOW_VALUES = 7 };
enum { SIZE = 1, STRIDE, PADDING_LOW, PADDING_HIGH, WINDOW_DILATION, BASE_DILATION };
enum {
	LIST_MOST = 64,
	POSITIONS_MOST = 1 << 20,
	DEPTH_MOST = 32,
	PER_ELEMENT = 3,
	INSTRUCTIONS_MOST = 1 << 20, /* limit for hostile programs; larger ones have no costs */
	WORK_LEAST = 1 << 24,
	WORK_PER_BYTE = 16
};

struct computation {
	double flops;       /* FLOPs of one call */
	enum number number; /* type of its first product */
};
struct xla_program {
	struct bytes *instructions;
	size_t count, cap;
	struct computation *computations;
	size_t computation_count, computation_cap;
	/* map to index + 1 of instructions and computations; by_name: by hash of the name */
	struct map by_id, by_name, by_computation;
	/* Work so far: fields of operands read, bytes searched and window positions counted. It is
	 * limited because a hostile program may name a large operand again and again or have many
	 * large windows. A program that takes more than work_most has no costs. */
	uint64_t work, work_most;
};
struct shape {
	double count, bytes; /* for a tuple the sum over its parts */
	double dims[DIMS_MAX];
	size_t rank;
	enum number number;
};

/* ---- messages ---- */

/* Finds the first field with a number. */
static bool find(struct bytes message, uint32_t number, struct pb_field *out)
{
	while (pb_next(&message, out))
		if (out->number == number)
			return true;
	*out = (struct pb_field){ 0 };
	return false;
}

static uint64_t number_of(struct bytes message, uint32_t number)
{
	struct pb_field f;

	return find(message, number, &f) ? f.u64 : 0;
}

static bool begins_with(struct bytes bytes, const char *text)
{
	size_t len = strlen(text);

	return bytes_left(&bytes) >= len && (!len || !memcmp(bytes.at, text, len));
}

static bool text_is(struct bytes bytes, const char *text)
{
	return bytes_left(&bytes) == strlen(text) && begins_with(bytes, text);
}

/* Reads a list of numbers, packed or not. */
static size_t list_of(struct bytes message, uint32_t number, uint64_t out[LIST_MOST])
{
	struct pb_field f;
	size_t n = 0;

	while (n < LIST_MOST && pb_next(&message, &f)) {
		if (f.number != number)
			continue;
		if (f.wire == PB_VARINT)
			out[n++] = f.u64;
		while (f.wire == PB_BYTES && n < LIST_MOST && bytes_left(&f.bytes))
			out[n++] = take_varint(&f.bytes);
	}
	return n;
}

static struct shape read_shape(struct bytes message, int depth)
{
	/* sizes in bytes and types by number of xla.PrimitiveType */
	static const struct {
		uint8_t size, number;
	} types[] = {
		[1] = { 1, NUMBER_NONE },  [2] = { 1, NUMBER_INT8 },  [3] = { 2, NUMBER_NONE },
		[4] = { 4, NUMBER_NONE },  [5] = { 8, NUMBER_NONE },  [6] = { 1, NUMBER_INT8 },
		[7] = { 2, NUMBER_NONE },  [8] = { 4, NUMBER_NONE },  [9] = { 8, NUMBER_NONE },
		[10] = { 2, NUMBER_FP16 }, [11] = { 4, NUMBER_FP32 }, [12] = { 8, NUMBER_FP64 },
		[15] = { 8, NUMBER_FP32 }, [16] = { 2, NUMBER_BF16 }, [18] = { 16, NUMBER_FP64 },
		[19] = { 1, NUMBER_FP8 },  [20] = { 1, NUMBER_FP8 },  [23] = { 1, NUMBER_FP8 },
		[24] = { 1, NUMBER_FP8 },  [25] = { 1, NUMBER_FP8 },
	};
	struct shape s = { 0 }, part;
	struct pb_field f;
	uint64_t dims[LIST_MOST], type = number_of(message, SHAPE_TYPE);
	bool is_known = type < sizeof(types) / sizeof(types[0]);

	if (find(message, SHAPE_TUPLE, &f)) {
		while (depth && pb_next(&message, &f))
			if (f.number == SHAPE_TUPLE) {
				part = read_shape(f.bytes, depth - 1);
				s.count += part.count;
				s.bytes += part.bytes;
			}
		return s;
	}
	s.rank = list_of(message, SHAPE_DIMENSIONS, dims);
	s.count = 1;
	for (size_t i = 0; i < s.rank; i++) {
		s.count *= (double)dims[i];
		if (i < DIMS_MAX)
			s.dims[i] = (double)dims[i];
	}
	s.number = is_known ? (enum number)types[type].number : NUMBER_NONE;
	s.bytes = is_known ? s.count * types[type].size : 0;
	return s;
}

/* Returns the shape of a result. A library call returns its scratch too, so only the first part
 * counts. */
static struct shape result_of(struct bytes instruction)
{
	struct pb_field f, first, target;

	find(instruction, INSTRUCTION_SHAPE, &f);
	find(instruction, INSTRUCTION_TARGET, &target);
	if (begins_with(target.bytes, "__cu") && find(f.bytes, SHAPE_TUPLE, &first))
		f = first;
	return read_shape(f.bytes, DEPTH_MOST);
}

static struct shape operand_of(struct xla_program *p, const uint64_t ids[LIST_MOST], size_t at)
{
	uint64_t *number = map_find(&p->by_id, ids[at]);
	struct pb_field f;

	if (!number || p->work > p->work_most)
		return (struct shape){ 0 };
	for (struct bytes left = p->instructions[*number - 1]; pb_next(&left, &f);)
		p->work += f.number == INSTRUCTION_SHAPE ? bytes_left(&f.bytes) : 1;
	return result_of(p->instructions[*number - 1]);
}

/* ---- what instructions compute ---- */

static double dim_of(const struct shape *s, uint64_t at)
{
	return at < s->rank && at < DIMS_MAX ? s->dims[at] : 1;
}

/* Returns how many pairs of a result position and a window position lie in the input along one
 * dimension, and not in its padding. */
static double pairs_of(struct xla_program *p, struct bytes window, double in, double out)
{
	double v[WINDOW_VALUES] = { 0 }, inside = 0;

	for (uint32_t i = SIZE; i < WINDOW_VALUES; i++)
		v[i] = (double)(int64_t)number_of(window, i);
	double pairs = fmax(v[SIZE], 1) * fmax(out, 1);
	if (!(pairs <= POSITIONS_MOST) || p->work > p->work_most)
		return v[SIZE] * out;
	p->work += (uint64_t)pairs;
	double base = fmax(v[BASE_DILATION], 1), last = (in - 1) * base;
	int size = (int)fmax(v[SIZE], 0), places = (int)out;
	for (int k = 0; k < size; k++)
		for (int o = 0; o < places; o++) {
			double at =
				o * v[STRIDE] - v[PADDING_LOW] + k * fmax(v[WINDOW_DILATION], 1);

			inside += at >= 0 && at <= last && fmod(at, base) == 0;
		}
	return inside;
}

static double convolution_flops(struct xla_program *p, struct bytes instruction,
				const struct shape *in, const struct shape *kernel,
				const struct shape *out)
{
	struct pb_field f, window;
	uint64_t in_dims[LIST_MOST], out_dims[LIST_MOST],
		groups = number_of(instruction, INSTRUCTION_GROUPS);

	find(instruction, INSTRUCTION_CONVOLUTION, &f);
	size_t n = list_of(f.bytes, INPUT_SPATIAL, in_dims);
	double flops = 2 * dim_of(in, number_of(f.bytes, INPUT_FEATURE)) /
		       (groups ? (double)groups : 1) * dim_of(in, number_of(f.bytes, INPUT_BATCH)) *
		       dim_of(kernel, number_of(f.bytes, KERNEL_OUT));

	if (list_of(f.bytes, OUTPUT_SPATIAL, out_dims) < n)
		return 0;
	find(instruction, INSTRUCTION_WINDOW, &f);
	for (size_t i = 0; i < n && pb_next(&f.bytes, &window);)
		if (window.number == WINDOW_DIMENSIONS) {
			flops *= pairs_of(p, window.bytes, dim_of(in, in_dims[i]),
					  dim_of(out, out_dims[i]));
			i++;
		}
	return flops;
}

/* Returns whether an instruction computes nothing because it moves, makes or names values, or
 * belongs to another program. */
static bool is_free(struct bytes opcode)
{
	static const char *const words[] = {
		"parameter",
		"constant",
		"bitcast",
		"tuple",
		"get-tuple-element",
		"iota",
		"broadcast",
		"reshape",
		"copy",
		"transpose",
		"slice",
		"concatenate",
		"pad",
		"reverse",
		"gather",
		"dynamic-slice",
		"dynamic-update-slice",
		"custom-call",
		"while",
		"conditional",
		"after-all",
		"infeed",
		"outfeed",
		"all-reduce",
		"all-gather",
		"all-to-all",
		"reduce-scatter",
		"collective-permute",
		"copy-start",
		"copy-done",
		"async-start",
		"async-update",
		"async-done",
		"bitcast-convert",
		"partition-id",
		"replica-id",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (text_is(opcode, words[i]))
			return true;
	return false;
}

/* XLA writes a computation before its callers, so none calls itself. */
static double called_flops(struct xla_program *p, struct bytes instruction, enum number *number)
{
	uint64_t called[LIST_MOST];
	double flops = 0;

	for (size_t i = 0, n = list_of(instruction, INSTRUCTION_CALLED, called); i < n; i++) {
		uint64_t *at = map_find(&p->by_computation, called[i]);
		const struct computation *c = at ? &p->computations[*at - 1] : NULL;

		flops += c ? c->flops : 0;
		*number = c && !*number ? c->number : *number;
	}
	return flops;
}

/* *number becomes the type that a product multiplies. */
static double flops_of(struct xla_program *p, struct bytes instruction, enum number *number)
{
	uint64_t ids[LIST_MOST];
	size_t operands = list_of(instruction, INSTRUCTION_OPERANDS, ids);
	struct shape out = result_of(instruction), a = { 0 }, b = { 0 };
	struct pb_field opcode, target;

	find(instruction, INSTRUCTION_OPCODE, &opcode);
	find(instruction, INSTRUCTION_TARGET, &target);
	bool is_dot = text_is(opcode.bytes, "dot");
	bool is_call = begins_with(target.bytes, "__cublas$");
	bool is_conv =
		text_is(opcode.bytes, "convolution") || begins_with(target.bytes, "__cudnn$conv");

	bool is_product = is_dot || is_call || is_conv, is_reduce = text_is(opcode.bytes, "reduce");

	if (operands > 0 && (is_product || is_reduce))
		a = operand_of(p, ids, 0);
	if (operands > 1 && is_product)
		b = operand_of(p, ids, 1);
	if (is_product)
		*number = *number ? *number : a.number;
	if (is_dot) {
		struct pb_field dot;
		uint64_t along[LIST_MOST];
		double inner = 1;

		find(instruction, INSTRUCTION_DOT, &dot);
		for (size_t i = list_of(dot.bytes, DOT_LHS_CONTRACTING, along); i-- > 0;)
			inner *= dim_of(&a, along[i]);
		return 2 * out.count * inner;
	}
	if (is_conv)
		return convolution_flops(p, instruction, &a, &b, &out);
	if (is_call) { /* M·K, K·N and M·N of each matrix in a batch give M·N·K */
		double batch = out.rank > 2 ? out.dims[0] : 1;

		return batch > 0 ? 2 * sqrt(a.count * b.count * out.count / batch) : 0;
	}
	if (text_is(opcode.bytes, "fusion") || text_is(opcode.bytes, "call"))
		return called_flops(p, instruction, number);
	if (is_reduce) {
		double each = called_flops(p, instruction, number);

		return operands ? (a.count - out.count / ((double)operands / 2)) * each : 0;
	}
	return is_free(opcode.bytes) ? 0 : PER_ELEMENT * out.count;
}

/* ---- the program ---- */

/* Adds a number; a later one with the same key replaces it. */
static enum status put_number(struct map *m, uint64_t key, size_t number, struct error *err)
{
	uint64_t *at = map_put(m, key, NULL);

	if (!at)
		return fail_memory(err);
	*at = number;
	return ST_OK;
}

static uint64_t name_key(struct bytes name)
{
	return hash_text((const char *)name.at, bytes_left(&name));
}

static enum status put_computation(struct xla_program *p, struct bytes message, struct error *err)
{
	struct computation c = { 0 };
	uint64_t id = number_of(message, COMPUTATION_ID);
	struct pb_field f, name;

	while (p->count < INSTRUCTIONS_MOST && pb_next(&message, &f)) {
		if (f.number != COMPUTATION_INSTRUCTIONS)
			continue;
		TRY(vec_reserve(&p->instructions, &p->cap, p->count + 1, err));
		p->instructions[p->count++] = f.bytes;
		TRY(put_number(&p->by_id, number_of(f.bytes, INSTRUCTION_ID), p->count, err));
		find(f.bytes, INSTRUCTION_NAME, &name);
		TRY(put_number(&p->by_name, name_key(name.bytes), p->count, err));
		c.flops += flops_of(p, f.bytes, &c.number);
	}
	TRY(vec_reserve(&p->computations, &p->computation_cap, p->computation_count + 1, err));
	p->computations[p->computation_count++] = c;
	return put_number(&p->by_computation, id, p->computation_count, err);
}

enum status xla_read(const void *bytes, size_t size, struct xla_program **out, struct error *err)
{
	struct bytes proto = { .at = bytes, .end = (const uint8_t *)bytes + size };
	struct pb_field module, f;
	enum status status = ST_OK;

	TRY(vec_new(out, 1, err));
	(*out)->work_most = WORK_LEAST + (uint64_t)size * WORK_PER_BYTE;
	find(proto, HLO_MODULE, &module);
	while (!status && pb_next(&module.bytes, &f))
		if (f.number == MODULE_COMPUTATIONS)
			status = put_computation(*out, f.bytes, err);
	return status;
}

void xla_free(struct xla_program *p)
{
	if (!p)
		return;
	map_release(&p->by_id);
	map_release(&p->by_name);
	map_release(&p->by_computation);
	free(p->instructions);
	free(p->computations);
	free(p);
}

bool xla_cost(struct xla_program *p, const char *name, struct model_cost *out)
{
	uint64_t ids[LIST_MOST], *number = map_find(&p->by_name, hash_text(name, strlen(name)));
	struct pb_field f;

	if (!number || p->count == INSTRUCTIONS_MOST)
		return false;
	struct bytes instruction = p->instructions[*number - 1];

	find(instruction, INSTRUCTION_NAME, &f);
	if (!text_is(f.bytes, name))
		return false;
	find(instruction, INSTRUCTION_OPCODE, &f);
	p->work += bytes_left(&instruction);
	*out = (struct model_cost){ .family = "xla", .fewer = 1 };
	out->flops = flops_of(p, instruction, &out->number);
	out->bytes = result_of(instruction).bytes;
	for (size_t i = 0, n = list_of(instruction, INSTRUCTION_OPERANDS, ids); i < n; i++)
		out->bytes += operand_of(p, ids, i).bytes;
	out->is_matrix = out->number != NUMBER_NONE;
	/* the cost of a library call is known only if it is a product */
	return p->work <= p->work_most && out->flops >= 0 && out->flops <= MODEL_MOST &&
	       out->bytes <= MODEL_MOST && (out->is_matrix || !text_is(f.bytes, "custom-call"));
}
