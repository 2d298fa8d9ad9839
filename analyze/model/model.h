/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - how many floating-point operations an operator computes and how many bytes it has to
 * move, by its name and the shapes and types of its inputs (DEFINITIONS.md 8).
 *
 * Bytes are the minimum without caches and fusion: each input is read once, each result written
 * once.  Stateless, so any thread may call it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Number types for which GPUs have different peak rates. */
/* clang-format off */
#define NUMBER_LIST(X)                                                                             \
	X(NONE, "none") X(FP64, "fp64") X(FP32, "fp32") X(TF32, "tf32") X(FP16, "fp16")            \
	X(BF16, "bf16") X(FP8, "fp8") X(FP4, "fp4") X(INT8, "int8")
/* clang-format on */
enum number {
#define X(name, word) NUMBER_##name,
	NUMBER_LIST(X)
#undef X
		NUMBER_COUNT,
};
const char *number_word(enum number n);

#define MODEL_MOST 9e17 /* a call of more has no model: sums of them fit 64 bits */

struct model_rule; /* a row of the table of models */

/* The row for operators of that name, or NULL.  The search compares the name with all patterns, so
 * callers keep its result for each name. */
const struct model_rule *model_rule_of(const char *name);

/* What the trace says about a call.  Texts are JSON as Kineto writes it; NULL: unknown. */
struct model_call {
	const char *name;
	const struct model_rule *rule;       /* model_rule_of(name) */
	const char *dims, *types, *concrete; /* Input Dims, Input type, Concrete Inputs */
	const char *step; /* the annotation of a serving step that it is in, or NULL */
};
struct model_cost {
	const char *family;  /* "gemm"; constant */
	double flops, bytes; /* of one call; bytes NAN: a type is not known */
	enum number number;  /* of its first input */
	bool is_matrix;      /* tensor or matrix cores can do it: counted in MFU */
	bool is_misaligned;  /* matrices of 16 bits with a size that is no multiple of 8 */
	bool is_small;       /* a matrix product with fewer than 64 rows or columns */
	double fewer;        /* times fewer multiplications of the algorithm that ran; 1 */
	double tiles;        /* of 128 x 128 results of a matrix product; 0: none */
};
/* false: there is no model, or the shapes cannot be read or do not fit. */
bool model_of(const struct model_call *call, struct model_cost *out);
/* Whether the cost of an operator depends on model_call.step. */
bool model_wants_step(const struct model_rule *rule);
/* Whether a text is the annotation of a serving step, with lengths of its sequences. */
bool model_is_step(const char *text);

/* For tests and help: a row of the table, NULL past the end; *source is that of its formula. */
const char *model_row(size_t index, const char **family, const char **source);
