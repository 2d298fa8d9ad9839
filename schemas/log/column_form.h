/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column_form.h - how many bytes a column takes in one of its forms; only the codec uses it.
 *
 * These loops over a whole column are compiled twice, by column_put.c for any machine and by
 * column_fast.c for one with AVX2, so they are in a header.  They are written so that a compiler
 * can vectorise them.
 */
#pragma once

#include "schemas/log/column.h"

/* ---- residuals of `rows` rows before division; each function returns them or-ed ---- */

static inline uint64_t differences(uint64_t *out, const uint64_t *words, const uint64_t *others,
				   uint32_t rows)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < rows; i++)
		bits |= out[i] = zigzag((int64_t)(words[i] - others[i]));
	return bits;
}

static inline uint64_t delta_residuals(const struct column_words *c, const uint64_t *before,
				       uint32_t rows)
{
	c->scratch[0] = 0;
	return differences(c->scratch + 1, c->words + 1, before, rows - 1);
}

static inline uint64_t value_residuals(const struct column_words *c, uint64_t *base, uint32_t rows)
{
	const uint64_t *words = c->words;
	uint64_t least = words[0], bits = 0;

	for (uint32_t i = 1; i < rows; i++)
		least = words[i] < least ? words[i] : least;
	for (uint32_t i = 0; i < rows; i++)
		bits |= c->scratch[i] = words[i] - least;
	*base = least;
	return bits;
}

static inline uint64_t desc_residuals(const struct column_words *c, uint64_t base, uint32_t rows)
{
	uint64_t last[DESC_PLACES], bits = 0;

	for (unsigned i = 0; i < DESC_PLACES; i++)
		last[i] = base;
	for (uint32_t i = 0; i < rows; i++) {
		unsigned place = c->descs[i] % DESC_PLACES;

		bits |= c->scratch[i] = zigzag((int64_t)(c->words[i] - last[place]));
		last[place] = c->words[i];
	}
	return bits;
}

static inline uint64_t gap_residuals(const struct column_words *c, uint64_t base, uint32_t rows)
{
	uint64_t last[LOG_SLOTS], bits = 0;

	if (memcmp(c->slots, c->slots + 1, rows - 1) == 0)
		return delta_residuals(c, c->ends, rows);
	for (unsigned i = 0; i < LOG_SLOTS; i++)
		last[i] = base;
	for (uint32_t i = 0; i < rows; i++) {
		unsigned slot = c->slots[i] % LOG_SLOTS;

		bits |= c->scratch[i] = zigzag((int64_t)(c->words[i] - last[slot]));
		last[slot] = c->ends[i];
	}
	return bits;
}

/* Sets *base to the word with which the transform begins. */
static inline uint64_t residuals(const struct column_words *c, enum transform transform,
				 uint32_t rows, uint64_t *base)
{
	*base = c->words[0];
	switch (transform) {
	case BY_VALUE:
		return value_residuals(c, base, rows);
	case BY_DESC:
		return desc_residuals(c, *base, rows);
	case BY_GAP:
		return gap_residuals(c, *base, rows);
	case BY_END:
		*base = 0;
		return differences(c->scratch, c->words, c->ends, rows);
	default:
		return delta_residuals(c, c->words, rows);
	}
}

/* ---- division: exact, by a shift for the twos and the inverse of the odd part ---- */

struct divisor {
	uint64_t value, inverse, most; /* most: largest quotient of the odd part */
	unsigned shift;
};

static inline struct divisor divisor_make(uint64_t value)
{
	unsigned shift = (unsigned)__builtin_ctzll(value);
	uint64_t odd = value >> shift, inverse = odd; /* correct in 3 bits; each turn doubles */

	for (int i = 0; i < 5; i++)
		inverse *= 2 - odd * inverse;
	return (struct divisor){ value, inverse, UINT64_MAX / odd, shift };
}

/* Returns the greatest common divisor of all residuals, or 0 if all are 0. */
static inline uint64_t common_divisor(const uint64_t *v, uint32_t rows, bool is_signed)
{
	struct divisor d = { 0 };

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t size = is_signed ? (v[i] >> 1) + (v[i] & 1) : v[i];
		uint64_t quotient = size * d.inverse, a = d.value, b = size;

		if (!size)
			continue;
		/* The quotient is too large unless the odd part divides. */
		if (a && quotient <= d.most && !(quotient & ((UINT64_C(1) << d.shift) - 1)))
			continue;
		while (b) {
			uint64_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return 1;
		d = divisor_make(a);
	}
	return d.value;
}

/* Divides all residuals and returns them or-ed. */
static inline uint64_t divide_all(uint64_t *v, uint32_t rows, uint64_t divisor, bool is_signed)
{
	struct divisor d = divisor_make(divisor);
	uint64_t bits = 0;

	for (uint32_t i = 0; i < rows; i++) {
		if (is_signed)
			v[i] = zigzag((int64_t)((uint64_t)(unzigzag(v[i]) >> d.shift) * d.inverse));
		else
			v[i] = (v[i] >> d.shift) * d.inverse;
		bits |= v[i];
	}
	return bits;
}

/* ---- the form of a column ---- */

/* Returns the length of all words as varints; `bits` is all words or-ed. */
static inline size_t varints_size(const uint64_t *v, uint32_t rows, uint64_t bits)
{
	size_t size = rows;

	if (bits >> 63) {
		size = 0;
		for (uint32_t i = 0; i < rows; i++)
			size += varint_size(v[i]);
		return size;
	}
	for (unsigned shift = 7; shift < 63 && bits >> shift; shift += 7) {
		uint64_t carry = (UINT64_C(1) << 63) - (UINT64_C(1) << shift), longer = 0;

		for (uint32_t i = 0; i < rows; i++)
			longer += (v[i] + carry) >> 63; /* 1 for a word of more than `shift` bits */
		size += longer;
	}
	return size;
}

static inline bool words_are_equal(const uint64_t *v, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (v[i] != v[0])
			return false;
	return true;
}

/* Returns the form for the first `rows` rows and leaves the stored words in the scratch. */
static inline void form_rows(const struct column_words *c, enum transform transform, uint32_t rows,
			     struct column_form *form)
{
	bool is_signed = transform != BY_VALUE;
	uint64_t *v = c->scratch;
	size_t varints, consts;

	*form = (struct column_form){ .transform = (uint8_t)transform, .packing = PACK_CONST };
	form->bits = residuals(c, transform, rows, &form->base);
	form->divisor = common_divisor(v, rows, is_signed);
	if (!form->divisor)
		return;
	/* Residuals that are all the same need no stream; a delta then begins one step earlier. */
	if (transform == BY_DELTA && words_are_equal(v + 1, rows - 1)) {
		form->base -= (uint64_t)unzigzag(v[1]);
		form->residual = v[1];
		return;
	}
	if (transform == BY_END && words_are_equal(v, rows)) {
		form->residual = v[0];
		return;
	}
	if (form->divisor != 1)
		form->bits = divide_all(v, rows, form->divisor, is_signed);
	form->width = (uint8_t)((64 - __builtin_clzll(form->bits | 1) + 7) / 8);
	consts = (size_t)form->width * rows;
	varints = form->width == 1 ? consts : varints_size(v, rows, form->bits);
	form->packing = consts <= varints ? PACK_FIXED : PACK_VARINT;
	form->length = (uint32_t)(consts <= varints ? consts : varints);
}
