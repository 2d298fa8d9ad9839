/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_column.h"

static enum status column_refuse(const struct log_block *block, unsigned index, const char *why,
				 struct error *err)
{
	return fail(err, ST_FORMAT, block->offset, "column %u of a block %s", index, why);
}

static bool refers_well(const struct column_reader *r, unsigned index)
{
	return r->transform != BY_COLUMN || r->last < index;
}

/* Every varint of the stream ends in it, and there is one for each row. */
static bool holds_varints(const uint8_t *p, uint64_t length, uint32_t rows)
{
	uint64_t count = 0, i = 0;

	for (; length - i >= 8; i += 8) /* adds up the eight top bits that are clear */
		count += ((~get_u64(p + i) >> 7 & 0x0101010101010101) * 0x0101010101010101) >> 56;
	for (; i < length; i++)
		count += p[i] < 0x80;
	return count == rows && (!length || p[length - 1] < 0x80);
}

static enum status open_stream(struct column_reader *r, struct bytes *in,
			       const struct log_block *block, unsigned index, struct error *err)
{
	uint64_t length;

	r->divisor = take_varint(in);
	length = take_varint(in);
	r->at = take_bytes(in, length);
	if (!r->at)
		return column_refuse(block, index, "is cut off", err);
	r->end = r->at + length;
	if (r->packing == PACK_VARINT && !holds_varints(r->at, length, block->rows))
		return column_refuse(block, index, "has not one number for each row", err);
	if (r->packing == PACK_VARINT && length != block->rows)
		return ST_OK; /* else each is one byte, which is a word as well */
	r->packing = PACK_FIXED;
	if (!block->rows || length % block->rows || length / block->rows > 8 || !length)
		return column_refuse(block, index, "has not one word for each row", err);
	r->width = (uint8_t)(length / block->rows);
	return ST_OK;
}

enum status column_open(struct column_reader *r, struct bytes *in, const struct log_block *block,
			unsigned index, struct error *err)
{
	uint8_t code = take_u8(in);

	*r = (struct column_reader){ .transform = code & 15, .packing = code >> 4 };
	r->last = take_varint(in);
	if (in->cut)
		return column_refuse(block, index, "is cut off", err);
	if (r->transform >= TRANSFORMS || r->packing >= PACKINGS)
		return column_refuse(block, index, "has a code that is unknown here", err);
	if (!refers_well(r, index))
		return column_refuse(block, index, "refers to one that does not come before", err);
	if (r->packing != PACK_CONST)
		return open_stream(r, in, block, index, err);
	r->residual = take_varint(in);
	r->divisor = 1;
	if (in->cut)
		return column_refuse(block, index, "is cut off", err);
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
	return !in->cut;
}

/* ---- residuals -------------------------------------------------------------------------- */

/* A varint of at most eight bytes, given with nothing behind it, without a branch. */
static inline uint64_t squeeze(uint64_t w)
{
	w = (w & 0x007f007f007f007f) | (w & 0x7f007f007f007f00) >> 1;
	w = (w & 0x00003fff00003fff) | (w & 0x3fff00003fff0000) >> 2;
	return (w & 0x0fffffff) | (w & 0x0fffffff00000000) >> 4;
}

/* One by one: to the end of the stream, and what is longer than eight bytes. */
static bool take_slowly(struct column_reader *r, uint64_t *out, uint32_t count)
{
	struct bytes rest = bytes_init(r->at, (size_t)(r->end - r->at));
	uint32_t i;

	for (i = 0; i < count && r->end - rest.at >= 8; i++) {
		uint64_t w = get_u64(rest.at), stops = ~w & 0x8080808080808080;

		if (!stops) {
			out[i] = take_varint(&rest);
			continue;
		}
		out[i] = squeeze(w & (stops ^ (stops - 1)));
		rest.at += (__builtin_ctzll(stops) >> 3) + 1;
	}
	for (; i < count; i++)
		out[i] = take_varint(&rest);
	r->at = rest.at;
	return !rest.cut;
}

#if defined(__x86_64__)
#include <emmintrin.h>

enum { AT_ONCE = 64 }; /* bytes whose top bits are looked at together */

static inline uint64_t last_bytes(const uint8_t *p)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < AT_ONCE / 16; i++)
		mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_loadu_si128(
				(const __m128i *)(const void *)(p + 16 * i))) << 16 * i;
	return ~mask;
}

/* A varint of `size` bytes, at most eight, out of the eight that begin with it. */
typedef uint64_t (*squeezer)(uint64_t, unsigned size);

static inline uint64_t squeeze_some(uint64_t w, unsigned size)
{
	return squeeze(w & UINT64_MAX >> (64 - 8 * size));
}

/* Where each varint ends is known before any is read, so none waits for the one before it. */
static inline __attribute__((always_inline)) uint32_t take_blocks(struct column_reader *r,
								  uint64_t *out, uint32_t count,
								  squeezer squeezed)
{
	const uint8_t *p = r->at, *base;
	uint32_t i = 0, end;
	uint64_t last;

	while (i < count && r->end - p >= AT_ONCE + 8) {
		base = p;
		last = last_bytes(p);
		end = (uint32_t)__builtin_popcountll(last);
		for (end = end < count - i ? i + end : count; i < end; last &= last - 1) {
			const uint8_t *next = base + __builtin_ctzll(last) + 1;
			unsigned size = (unsigned)(next - p);

			if (size > 8)
				goto out;
			out[i++] = squeezed(get_u64(p), size);
			p = next;
		}
		if (p == base)
			break;
	}
out:
	r->at = p;
	return i;
}

__attribute__((target("bmi,bmi2,popcnt")))
static inline uint64_t extract_some(uint64_t w, unsigned size)
{
	return __builtin_ia32_pext_di(__builtin_ia32_bzhi_di(w, 8 * size), 0x7f7f7f7f7f7f7f7f);
}

__attribute__((target("bmi,bmi2,popcnt")))
static uint32_t take_blocks_bmi2(struct column_reader *r, uint64_t *out, uint32_t count)
{
	return take_blocks(r, out, count, extract_some);
}

static bool take_varints(struct column_reader *r, uint64_t *out, uint32_t count)
{
	uint32_t done = __builtin_cpu_supports("bmi2") ? take_blocks_bmi2(r, out, count)
						       : take_blocks(r, out, count, squeeze_some);

	return take_slowly(r, out + done, count - done);
}

#else

static bool take_varints(struct column_reader *r, uint64_t *out, uint32_t count)
{
	return take_slowly(r, out, count);
}

#endif

static void take_wide(const uint8_t *p, const uint8_t *end, unsigned width, uint64_t *out,
		      uint32_t count)
{
	uint64_t mask = UINT64_MAX >> (64 - 8 * width);
	uint32_t i = 0;

	for (; i < count && end - p >= 8; i++, p += width)
		out[i] = get_u64(p) & mask;
	for (; i < count; i++, p += width) {
		out[i] = 0;
		memcpy(&out[i], p, width);
	}
}

static void take_fixed(struct column_reader *r, uint64_t *out, uint32_t count)
{
	const uint8_t *p = r->at;

	switch (r->width) {
	case 1:
		for (uint32_t i = 0; i < count; i++)
			out[i] = p[i];
		break;
	case 2:
		for (uint32_t i = 0; i < count; i++)
			out[i] = get_u16(p + 2 * i);
		break;
	default:
		take_wide(p, r->end, r->width, out, count);
		break;
	}
	r->at += (size_t)count * r->width;
}

bool column_take(struct column_reader *r, uint64_t *out, uint32_t count)
{
	if (r->packing == PACK_VARINT)
		return take_varints(r, out, count);
	if (r->packing == PACK_FIXED)
		take_fixed(r, out, count);
	else
		for (uint32_t i = 0; i < count; i++)
			out[i] = r->residual;
	return true;
}

/* ---- words ------------------------------------------------------------------------------ */

static void sum_differences(struct column_reader *r, uint64_t *words, uint32_t count)
{
	uint64_t divisor = r->divisor, last = r->last;

	for (uint32_t i = 0; i < count; i++)
		words[i] = last += column_step(words[i], divisor);
	r->last = last;
}

static void sum_by_site(struct column_reader *r, uint64_t *words, const struct log_words *sites,
			uint32_t count)
{
	uint64_t divisor = r->divisor;

	for (uint32_t i = 0; i < count; i++)
		words[i] = r->by_site[log_word(sites, i) % SITE_PLACES] +=
			column_step(words[i], divisor);
}

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
		sum_differences(r, words, count);
		break;
	case BY_COLUMN:
		for (uint32_t i = 0; i < count; i++)
			words[i] = log_word(others, i) + column_step(words[i], divisor);
		break;
	default:
		sum_by_site(r, words, others, count);
		break;
	}
}
