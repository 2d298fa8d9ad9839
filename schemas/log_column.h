/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_column.h - one column of a block of events: 64-bit words <-> bytes; inside of the codec.
 *
 *	code | base | const:  residual                        one for all rows
 *	            | varint: divisor, length, varints        LEB128
 *	            | fixed:  divisor, length, words          length / rows bytes each
 *
 * A *transform* says what a word is compared with, a *packing* how the difference (the residual)
 * is stored; both are chosen per column and block.  All sums are modulo 2^64, so every bit pattern
 * survives.  A column may refer only to columns that stand before it.
 */
#ifndef SCHEMAS_LOG_COLUMN_H
#define SCHEMAS_LOG_COLUMN_H

#include "schemas/bytes.h"
#include "schemas/log.h"

/* On disk: low four bits of the code. */
enum transform {
	BY_VALUE,  /* base + residual, unsigned; the others are zig-zag */
	BY_DELTA,  /* the row before; base before the first */
	BY_SITE,   /* the row before of equal site % SITE_PLACES; base before the first */
	BY_COLUMN, /* column `base` of the same row */
	BY_GAP,    /* begin only: end of the row before on the same slot; base before the first */
	BY_END,    /* end of the same row; what is written a little after it */
	TRANSFORMS,
};
/* High four bits. */
enum packing { PACK_CONST, PACK_VARINT, PACK_FIXED, PACKINGS };

enum {
	SITE_PLACES = 256,
	COLUMN_HEADER_MAX = 1 + 2 * VARINT_MAX + 3,
	COLUMN_SAMPLE = 256, /* rows that decide about the transform */
};

/* The words of a block as its encoder holds them. */
struct column_words {
	const uint64_t *words;  /* this column */
	const uint64_t *sites;  /* NULL: not before this one */
	const uint64_t *ends;   /* of the rows; NULL: not before this one */
	const uint8_t *slots;   /* begin column only, else NULL */
	uint64_t *scratch;      /* `rows` words */
	uint32_t rows;          /* at least 1 */
};
struct column_plan {
	uint8_t transform, packing, width;
	uint64_t base, divisor, residual; /* residual: of PACK_CONST */
	uint64_t bits;                    /* of all words of the stream */
	uint32_t length;                  /* of the stream */
};

/*
 * The cheapest way to store the column, by a sample of its first `sample` rows; `others` are the
 * `count` columns before it.  The scratch then holds what column_put() writes.
 */
void column_choose(const struct column_words *c, uint32_t sample, const uint64_t *const *others,
		   unsigned count, struct column_plan *plan);
/* The plan BY_DELTA, whose stream never has more bytes than varints of the plain differences. */
void column_choose_delta(const struct column_words *c, struct column_plan *plan);
size_t column_plan_size(const struct column_plan *plan); /* header and stream */
/* Room for column_plan_size() and eight bytes more; returns the bytes. */
size_t column_put(const struct column_words *c, const struct column_plan *plan, uint8_t *out);

/* Where reading stands in one column. */
struct column_reader {
	const uint8_t *at, *end;
	uint64_t last, divisor, residual;
	uint8_t transform, packing, width;
	uint64_t *words;   /* of the present chunk; NULL: column_is_constant() */
	uint64_t *by_site; /* BY_SITE only: SITE_PLACES */
};

/* The header at `in`, which moves behind the column; `index` columns stand before this one. */
enum status column_open(struct column_reader *r, struct bytes *in, const struct log_block *block,
			unsigned index, struct error *err);
/* Passes over a column; only its transform and packing are told.  False: cut off. */
bool column_pass(struct bytes *in, struct column_reader *r);
/* The next `count` residuals as stored; false: damaged. */
bool column_take(struct column_reader *r, uint64_t *out, uint32_t count);
/* What a residual that is not BY_VALUE adds. */
static inline uint64_t column_step(uint64_t residual, uint64_t divisor)
{
	return (uint64_t)unzigzag(residual) * divisor;
}
/* From residuals to words, for all but BY_GAP and BY_END; `others` are the words that the transform
 * is about: the sites, or those of the other column. */
void column_sum(struct column_reader *r, uint64_t *words, const struct log_words *others,
		uint32_t count);
/* All words are the same, in every chunk. */
static inline bool column_is_constant(const struct column_reader *r)
{
	return r->packing == PACK_CONST && r->transform == BY_VALUE;
}

#endif
