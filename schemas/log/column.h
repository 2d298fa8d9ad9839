/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.h - encodes and decodes one column of a block of events; only the codec uses it.
 *
 *	code | base | PACK_CONST:  residual                   one for all rows
 *	            | PACK_VARINT: divisor, length, varints   LEB128
 *	            | PACK_FIXED:  divisor, length, words     length / rows bytes each
 *
 * The transform determines what a word is compared with, and the packing how the difference (the
 * residual) is stored; both are chosen for each column of each block.  All sums are modulo 2^64, so
 * every bit pattern survives.  A column may refer only to columns before it.
 */
#pragma once

#include "schemas/base/bytes.h"
#include "schemas/base/plain.h"
#include "schemas/log/log.h"

/* These are on disk, in the low four bits of the code. */
enum transform {
	BY_VALUE,  /* base + residual, unsigned; the others are zig-zag */
	BY_DELTA,  /* the previous row; for the first row base */
	BY_DESC,   /* the last row with the same descriptor % DESC_PLACES; at first base */
	BY_COLUMN, /* column `base` of the same row */
	BY_GAP,    /* begin only: end of the last row with the same slot; at first base */
	BY_END,    /* end of the same row, for words that are slightly greater */
	TRANSFORMS,
};
/* These are the high four bits of the code. */
enum packing { PACK_CONST, PACK_VARINT, PACK_FIXED, PACKINGS };

enum {
	DESC_PLACES = 256,
	COLUMN_HEADER_MAX = 1 + 2 * VARINT_MAX + 3,
	COLUMN_SAMPLE = 256, /* rows from which the transform is chosen */
};

/* The encoder's words of a block. */
struct column_words {
	const uint64_t *words; /* this column */
	const uint64_t *descs; /* NULL: this column precedes the descriptors */
	const uint64_t *ends;  /* ends of the rows; NULL: this column may not use them */
	const uint8_t *slots;  /* begin column only, else NULL */
	uint64_t *scratch;     /* `rows` words */
	uint32_t rows;         /* at least 1 */
};
struct column_form {
	uint8_t transform, packing, width;
	uint64_t base, divisor, residual; /* residual: PACK_CONST only */
	uint64_t bits;                    /* all words of the stream, or-ed */
	uint32_t length;                  /* bytes of the stream */
};

/*
 * Chooses the form that takes the fewest bytes for the first `sample` rows; `others` are the
 * `count` columns before this one.  Leaves the words for column_put() in the scratch.
 */
void column_choose(const struct column_words *c, uint32_t sample, const uint64_t *const *others,
		   unsigned count, struct column_form *form);
/* Chooses the form BY_DELTA, whose stream is never longer than varints of the plain differences. */
void column_choose_delta(const struct column_words *c, struct column_form *form);
size_t column_form_size(const struct column_form *form); /* bytes of header and stream */
/* `out` has column_form_size() bytes and eight more; returns how many were written. */
size_t column_put(const struct column_words *c, const struct column_form *form, uint8_t *out);

/* The state of reading one column. */
struct column_reader {
	const uint8_t *at, *end;
	uint64_t last, divisor, residual;
	uint8_t transform, packing, width;
	uint64_t *words;   /* words of the current chunk; NULL: column_is_constant() */
	uint64_t *by_desc; /* BY_DESC only: last word of each of DESC_PLACES places */
};

/* Reads the header at `in` and moves `in` to the end of the column; `index` columns precede it. */
enum status column_open(struct column_reader *r, struct bytes *in, const struct log_block *block,
			unsigned index, struct error *err);
/* Skips a column and sets only its transform and packing.  Returns false if it is truncated. */
bool column_pass(struct bytes *in, struct column_reader *r);
/* Reads the next `count` residuals as stored; returns false if they are damaged. */
bool column_take(struct column_reader *r, uint64_t *out, uint32_t count);
/* Returns what a residual adds in all transforms but BY_VALUE. */
static inline uint64_t column_step(uint64_t residual, uint64_t divisor)
{
	return (uint64_t)unzigzag(residual) * divisor;
}
/* Turns residuals into words, in all transforms but BY_GAP and BY_END; `others` are the words that
 * the transform refers to: descriptors, or those of the other column. */
void column_sum(struct column_reader *r, uint64_t *words, const struct log_words *others,
		uint32_t count);
/* Returns whether all words of the column are the same. */
static inline bool column_is_constant(const struct column_reader *r)
{
	return r->packing == PACK_CONST && r->transform == BY_VALUE;
}

/*
 * Code for columns with AVX2 and BMI2.  The plain code in column_put.c and column.c gives the same
 * bytes and words.
 */

#if defined(__x86_64__)
static inline bool column_is_fast(void)
{
	return !plain_ways && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}
#else
#define column_is_fast() false
#endif

/* These may be called only if column_is_fast(). */
void column_form_fast(const struct column_words *c, enum transform transform, uint32_t rows,
		      struct column_form *form);
/* Writes words below 2^56 as varints and may write seven bytes behind them; returns the length.
 * `bits` is all words or-ed. */
size_t column_put_fast(uint8_t *out, const uint64_t *words, uint32_t rows, uint64_t bits);
/* Reads varints while none is longer than eight bytes and the stream is not near its end; returns
 * how many. */
uint32_t column_take_fast(struct column_reader *r, uint64_t *out, uint32_t count);
