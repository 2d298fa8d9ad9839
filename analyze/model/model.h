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
extern const char *const number_words[NUMBER_COUNT];

#define MODEL_MOST 9e17 /* calls with more have no model, so that sums fit 64 bits */

struct model_rule; /* a row of the table of models */

/* Returns the row for operators of that name, or NULL. It compares the name with all patterns, so
 * callers should cache the result. */
const struct model_rule *model_rule_of(const char *name);

/* A call as the trace describes it. Texts are JSON as Kineto writes it; NULL: unknown. */
struct model_call {
	const char *name;
	const struct model_rule *rule;       /* model_rule_of(name) */
	const char *dims, *types, *concrete; /* Input Dims, Input type, Concrete Inputs */
	const char *step; /* annotation of the serving step around the call, or NULL */
};
struct model_cost {
	const char *family;  /* "gemm"; constant */
	double flops, bytes; /* of one call; bytes is NAN if a type is unknown */
	enum number number;  /* type of the first input */
	bool is_matrix;      /* tensor or matrix cores can compute it: counted in MFU */
	bool is_misaligned;  /* 16-bit matrices with a size that is not a multiple of 8 */
	bool is_small;       /* a matrix product with fewer than 64 rows or columns */
	double fewer;        /* factor of fewer multiplications in the algorithm that ran; 1 */
	double tiles;        /* tiles of 128 x 128 in the result of a matrix product; 0: none */
};
/* Computes the cost of a call. false: there is no model, or the shapes cannot be read or do not
 * match. */
bool model_of(const struct model_call *call, struct model_cost *out);
/* Returns whether the cost of an operator depends on model_call.step. */
bool model_wants_step(const struct model_rule *rule);
/* Returns whether a text is the annotation of a serving step with the lengths of its sequences. */
bool model_is_step(const char *text);

/* For tests and help: returns the pattern of a row, NULL past the end; *source is the source of its
 * formula. */
const char *model_row(size_t index, const char **family, const char **source);
