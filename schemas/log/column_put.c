/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/column.h"
#include "schemas/log/column_form.h"

static void form_try(const struct column_words *c, enum transform transform, uint32_t rows,
		     struct column_form *out)
{
	if (column_is_fast())
		column_form_fast(c, transform, rows, out);
	else
		form_rows(c, transform, rows, out);
}

void column_choose_delta(const struct column_words *c, struct column_form *out)
{
	form_try(c, BY_DELTA, c->rows, out);
}

size_t column_form_size(const struct column_form *p)
{
	size_t head = 1 + varint_size(p->base);

	if (p->packing == PACK_CONST)
		return head + varint_size(p->residual);
	return head + varint_size(p->divisor) + varint_size(p->length) + p->length;
}

/* Returns whether the words have a constant distance, possibly 0, to those of another column. */
static bool form_as_other(const struct column_words *c, const uint64_t *const *others,
			  unsigned count, struct column_form *out)
{
	for (unsigned k = 0; k < count; k++) {
		const uint64_t *other = others[k];
		uint32_t i = 1;

		if (!other)
			continue;
		uint64_t step = c->words[0] - other[0];
		while (i < c->rows && c->words[i] - other[i] == step)
			i++;
		if (i < c->rows)
			continue;
		*out = (struct column_form){
			.transform = BY_COLUMN,
			.packing = PACK_CONST,
			.base = k,
			.residual = zigzag((int64_t)step),
		};
		return true;
	}
	return false;
}

void column_choose(const struct column_words *c, uint32_t sample, const uint64_t *const *others,
		   unsigned count, struct column_form *out)
{
	static const uint8_t of_begin[] = { BY_GAP, BY_DELTA };
	static const uint8_t of_others[] = { BY_VALUE, BY_DELTA, BY_DESC, BY_END };
	const uint8_t *tried = c->slots ? of_begin : of_others;
	unsigned tries = c->slots || !c->descs ? 2 : c->ends ? 4 : 3;
	uint32_t rows = sample < c->rows ? sample : c->rows;
	enum transform best = BY_DELTA;
	size_t best_size = SIZE_MAX;

	if (words_are_equal(c->words, c->rows)) {
		*out = (struct column_form){
			.transform = BY_VALUE,
			.packing = PACK_CONST,
			.base = c->words[0],
		};
		return;
	}
	if (form_as_other(c, others, count, out))
		return;
	for (unsigned i = 0; i < tries; i++) {
		form_try(c, tried[i], rows, out);
		if (column_form_size(out) < best_size) {
			best_size = column_form_size(out);
			best = tried[i];
		}
	}
	form_try(c, best, c->rows, out);
}

size_t column_put(const struct column_words *c, const struct column_form *p, uint8_t *out)
{
	uint8_t *at = out;

	*at++ = (uint8_t)(p->transform | p->packing << 4);
	at += put_varint(at, p->base);
	if (p->packing == PACK_CONST)
		return (size_t)(at - out) + put_varint(at, p->residual);
	at += put_varint(at, p->divisor);
	at += put_varint(at, p->length);
	if (p->packing == PACK_FIXED) {
		for (uint32_t i = 0; i < c->rows; i++, at += p->width)
			put_u64(at, c->scratch[i]); /* the next word overwrites the excess bytes */
		return (size_t)(at - out);
	}
	if (column_is_fast() && p->bits >> 56 == 0)
		return (size_t)(at - out) + column_put_fast(at, c->scratch, c->rows, p->bits);
	for (uint32_t i = 0; i < c->rows; i++)
		at += put_varint(at, c->scratch[i]);
	return (size_t)(at - out);
}
