/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column_fast.h - columns by AVX2 and BMI2, beside the plain code in column_put.c and column.c;
 * inside of the codec.  The bytes and the words are the same.
 */
#ifndef SCHEMAS_LOG_COLUMN_FAST_H
#define SCHEMAS_LOG_COLUMN_FAST_H

#include "schemas/base/plain.h"
#include "schemas/log/column.h"

#if defined(__x86_64__)
static inline bool column_is_fast(void)
{
	return !plain_ways && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}
#else
#define column_is_fast() false
#endif

/* These may be called where column_is_fast(). */
void column_form_fast(const struct column_words *c, enum transform transform, uint32_t rows,
		      struct column_form *form);
/* Writes words below 2^56 as varints, and up to seven bytes after them; returns the bytes.  `bits`
 * has all their bits. */
size_t column_put_fast(uint8_t *out, const uint64_t *words, uint32_t rows, uint64_t bits);
/* Reads varints while none is longer than eight bytes and the stream is not near its end; returns
 * how many. */
uint32_t column_take_fast(struct column_reader *r, uint64_t *out, uint32_t count);

#endif
