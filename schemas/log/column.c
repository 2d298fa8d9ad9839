/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/column.h"

static enum status column_refuse(const struct log_block *block, unsigned index, const char *why,
				 struct error *err)
{
	return fail(err, ST_FORMAT, block->offset, "column %u of a block %s", index, why);
}

/* Returns whether the stream consists of one whole varint for each row. */
static bool holds_varints(const uint8_t *p, uint64_t length, uint32_t rows)
{
	uint64_t count = 0, i = 0;

	for (; length - i >= 8; i += 8) /* add the number of clear top bits in eight bytes */
		count += ((~get_u64(p + i) >> 7 & 0x0101010101010101) * 0x0101010101010101) >> 56;
	for (; i < length; i++)
		count += p[i] < 0x80;
	return count == rows && (!length || p[length - 1] < 0x80);
}

enum status column_open(struct column_reader *r, struct bytes *in, const struct log_block *block,
			unsigned index, struct error *err)
{
	uint8_t code = take_u8(in);

	*r = (struct column_reader){ .transform = code & 15, .packing = code >> 4 };
	r->last = take_varint(in);
	if (in->is_truncated)
		return column_refuse(block, index, "is truncated", err);
	if (r->transform >= TRANSFORMS || r->packing >= PACKINGS)
		return column_refuse(block, index, "has an unknown encoding", err);
	if (r->transform == BY_COLUMN && r->last >= index)
		return column_refuse(block, index, "refers to a column that does not precede it",
				     err);
	if (r->packing != PACK_CONST) {
		r->divisor = take_varint(in);
		uint64_t length = take_varint(in);
		r->at = take_bytes(in, length);
		if (!r->at)
			return column_refuse(block, index, "is truncated", err);
		r->end = r->at + length;
		if (r->packing == PACK_VARINT && !holds_varints(r->at, length, block->rows))
			return column_refuse(block, index, "does not have one number for each row",
					     err);
		if (r->packing == PACK_VARINT && length != block->rows)
			return ST_OK; /* otherwise each varint is one byte: read it as a word */
		r->packing = PACK_FIXED;
		if (!block->rows || length % block->rows || length / block->rows > 8 || !length)
			return column_refuse(block, index, "does not have one word for each row",
					     err);
		r->width = (uint8_t)(length / block->rows);
		return ST_OK;
	}
	r->residual = take_varint(in);
	r->divisor = 1;
	if (in->is_truncated)
		return column_refuse(block, index, "is truncated", err);
	return ST_OK;
}

bool column_pass(struct bytes *in, struct column_reader *r)
{
	uint8_t code = take_u8(in);

	*r = (struct column_reader){ .transform = code & 15, .packing = code >> 4 };
	take_varint(in);
	take_varint(in);
	if (r->packing != PACK_CONST)
		take_bytes(in, take_varint(in));
	return !in->is_truncated;
}

/* ---- residuals -------------------------------------------------------------------------- */

static bool take_varints(struct column_reader *r, uint64_t *out, uint32_t count)
{
	uint32_t done = column_is_fast() ? column_take_fast(r, out, count) : 0;
	struct bytes rest = bytes_init(r->at, (size_t)(r->end - r->at));

	for (uint32_t i = done; i < count; i++)
		out[i] = take_varint(&rest);
	r->at = rest.at;
	return !rest.is_truncated;
}

static void take_consts(struct column_reader *r, uint64_t *out, uint32_t count)
{
	uint64_t mask = UINT64_MAX >> (64 - 8 * r->width);
	const uint8_t *p = r->at;
	size_t left = (size_t)(r->end - p), width = r->width, i = 0;
	size_t whole =
		left < 8 ? 0 : (left - 8) / width + 1; /* words at which eight bytes can be read */

	for (whole = whole < count ? whole : count; i < whole; i++, p += width)
		out[i] = get_u64(p) & mask;
	for (; i < count; i++, p += width) {
		out[i] = 0;
		memcpy(&out[i], p, width);
	}
	r->at = p;
}

bool column_take(struct column_reader *r, uint64_t *out, uint32_t count)
{
	if (r->packing == PACK_VARINT)
		return take_varints(r, out, count);
	if (r->packing == PACK_FIXED)
		take_consts(r, out, count);
	else
		for (uint32_t i = 0; i < count; i++)
			out[i] = r->residual;
	return true;
}

/* ---- words ------------------------------------------------------------------------------ */

void column_sum(struct column_reader *r, uint64_t *words, const struct log_words *others,
		uint32_t count)
{
	uint64_t divisor = r->divisor, base = r->last;

	switch (r->transform) {
	case BY_VALUE:
		for (uint32_t i = 0; i < count; i++)
			words[i] = words[i] * divisor + base;
		break;
	case BY_DELTA:
		for (uint32_t i = 0; i < count; i++)
			words[i] = base += column_step(words[i], divisor);
		r->last = base;
		break;
	case BY_COLUMN:
		for (uint32_t i = 0; i < count; i++)
			words[i] = log_word(others, i) + column_step(words[i], divisor);
		break;
	default: /* BY_DESC */
		for (uint32_t i = 0; i < count; i++)
			words[i] = r->by_desc[log_word(others, i) % DESC_PLACES] +=
				column_step(words[i], divisor);
		break;
	}
}
