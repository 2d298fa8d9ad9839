/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the shapes, types and values of an operator's inputs. */
#include "analyze/model/internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX 9e15 /* more than any memory has; below it doubles count exactly */

static const struct {
	const char *name;
	double size;
	enum number number;
	double packed;
} types[] = {
	{ "float", 4, NUMBER_FP32, 1 },
	{ "c10::BFloat16", 2, NUMBER_BF16, 1 },
	{ "c10::Half", 2, NUMBER_FP16, 1 },
	{ "double", 8, NUMBER_FP64, 1 },
	{ "c10::Float8_e4m3fn", 1, NUMBER_FP8, 1 },
	{ "c10::Float8_e5m2", 1, NUMBER_FP8, 1 },
	{ "c10::Float8_e4m3fnuz", 1, NUMBER_FP8, 1 },
	{ "c10::Float8_e5m2fnuz", 1, NUMBER_FP8, 1 },
	{ "c10::Float8_e8m0fnu", 1, NUMBER_NONE, 1 },
	{ "c10::Float4_e2m1fn_x2", 1, NUMBER_FP4, 2 },
	{ "signed char", 1, NUMBER_INT8, 1 },
	{ "unsigned char", 1, NUMBER_INT8, 1 },
	{ "c10::qint8", 1, NUMBER_INT8, 1 },
	{ "c10::quint8", 1, NUMBER_INT8, 1 },
	{ "bool", 1, NUMBER_NONE, 1 },
	{ "short int", 2, NUMBER_NONE, 1 },
	{ "short", 2, NUMBER_NONE, 1 },
	{ "unsigned short", 2, NUMBER_NONE, 1 },
	{ "int", 4, NUMBER_NONE, 1 },
	{ "unsigned int", 4, NUMBER_NONE, 1 },
	{ "long int", 8, NUMBER_NONE, 1 },
	{ "long", 8, NUMBER_NONE, 1 },
	{ "long long", 8, NUMBER_NONE, 1 },
	{ "int64_t", 8, NUMBER_NONE, 1 },
	{ "unsigned long", 8, NUMBER_NONE, 1 },
	{ "c10::complex<float>", 8, NUMBER_FP32, 1 },
	{ "c10::complex<double>", 16, NUMBER_FP64, 1 },
	{ "c10::complex<c10::Half>", 4, NUMBER_FP16, 1 },
};
/* Types of inputs that are not tensors. */
static const char *const plain[] = { "",       "Scalar",      "ScalarList", "GenericList",
				     "Int",    "Bool",        "Double",     "String",
				     "Device", "ScalarList?", "None",       "Generator" };

const char *const number_words[] = {
#define X(name, word) word,
	NUMBER_LIST(X)
#undef X
};

static const char *blanks(const char *p)
{
	return p + strspn(p, " \t\r\n,");
}

/* Reads a shape, or a list of shapes, whose elements are added up. */
static const char *shape_read(const char *p, struct operand *in, int depth)
{
	double count = 1;
	bool has_lists = false;
	size_t rank = 0;

	if (*p != '[' || depth > 3)
		return NULL;
	for (p = blanks(p + 1); *p != ']'; p = blanks(p)) {
		if (*p == '[') {
			p = shape_read(p, in, depth + 1);
			if (!p)
				return NULL;
			has_lists = true;
			continue;
		}
		char *end;
		double size = strtod(p, &end);

		if (end == p || !(size >= 0 && size <= ELEMENTS_MAX) || floor(size) != size)
			return NULL;
		if (in->count == 0 && rank < DIMS_MAX)
			in->dims[rank] = size;
		rank++;
		count *= size;
		if (!(count <= ELEMENTS_MAX))
			return NULL;
		p = end;
	}
	if (has_lists)
		return p + 1;
	if (in->count == 0)
		in->rank = rank;
	in->count += count;
	return in->count <= ELEMENTS_MAX ? p + 1 : NULL;
}

/* Reads a JSON string and returns it without quotes; escapes are not decoded. */
static const char *text_read(const char *p, const char **text, size_t *len)
{
	const char *end = *p == '"' ? p + 1 : NULL;

	while (end && *end && *end != '"')
		end += end[0] == '\\' && end[1] ? 2 : 1;
	if (!end || !*end)
		return NULL;
	*text = p + 1;
	*len = (size_t)(end - p) - 1;
	return end + 1;
}

bool operands_read(struct operands *out, const struct model_call *call)
{
	const char *dims = call->dims, *types_at = call->types, *values = call->concrete, *text;
	size_t len;

	out->count = 0;
	out->name = call->name;
	out->step = call->step;
	if (!dims || *dims != '[')
		return false;
	types_at = types_at && *types_at == '[' ? types_at + 1 : NULL;
	values = values && *values == '[' ? values + 1 : NULL;
	for (dims = blanks(dims + 1); *dims != ']'; dims = blanks(dims)) {
		struct operand in = { .text = "", .packed = 1 };

		dims = shape_read(dims, &in, 0);
		if (!dims)
			return false;
		text = "";
		len = 0;
		types_at = types_at ? text_read(blanks(types_at), &text, &len) : NULL;
		in.size = NAN;
		in.is_tensor = true;
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			if (strlen(types[i].name) == len && !memcmp(types[i].name, text, len)) {
				in.size = types[i].size;
				in.number = types[i].number;
				in.packed = types[i].packed;
			}
		for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
			if (strlen(plain[i]) == len && !memcmp(plain[i], text, len))
				in.is_tensor = false;
		in.is_tensor |= in.rank > 0; /* even if its type is missing */
		if (len == 10 && !memcmp(text, "TensorList", 10))
			in.is_tensor = in.rank > 0; /* empty list: its tensors were not recorded */
		values = values ? text_read(blanks(values), &in.text, &in.text_len) : NULL;
		if (out->count < OPERANDS_MAX)
			out->in[out->count++] = in;
	}
	return true;
}

const struct operand *operand_at(const struct operands *i, int index)
{
	static const struct operand none = { .text = "", .size = NAN };

	return index >= 0 && (size_t)index < i->count ? &i->in[index] : &none;
}

bool operand_is_tensor(const struct operands *i, int index)
{
	return operand_at(i, index)->is_tensor;
}

double operand_bytes(const struct operands *i, int index)
{
	const struct operand *in = operand_at(i, index);

	return in->is_tensor ? in->count * in->size : 0;
}

bool operand_flag(const struct operands *i, int index, bool otherwise)
{
	const struct operand *in = operand_at(i, index);

	return in->text_len ? tolower((unsigned char)in->text[0]) == 't' : otherwise;
}

double operand_number(const struct operands *i, int index, double otherwise)
{
	const struct operand *in = operand_at(i, index);
	char *end;
	double value = strtod(in->text, &end);

	return end == in->text || !isfinite(value) ? otherwise : value;
}

/* Accepts "[1, 2]", "[True, False]" and a single number. */
size_t operand_list(const struct operands *i, int index, double out[WORDS_MAX])
{
	const struct operand *in = operand_at(i, index);
	const char *p = in->text, *last = in->text + in->text_len;
	size_t count = 0;

	while (p < last && count < WORDS_MAX) {
		char *end;

		p += strspn(p, "[ ,");
		if (p >= last || *p == ']')
			break;
		out[count] = *p == 'T' ? 1 : 0;
		if (*p == 'T' || *p == 'F') {
			p += strspn(p, "TrueFals");
		} else {
			out[count] = strtod(p, &end);
			if (end == p || !(fabs(out[count]) <= ELEMENTS_MAX))
				return 0;
			p = end;
		}
		count++;
	}
	return count;
}
