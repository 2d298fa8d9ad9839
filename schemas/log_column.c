/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_column.h"

static uint64_t magnitude(uint64_t v)
{
	return (int64_t)v < 0 ? 0 - v : v;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Exact division without dividing: shift by the twos, multiply by the inverse of the odd part. */
struct divisor {
	uint64_t value, inverse, most; /* most: largest quotient of the odd part */
	unsigned shift;
};

static struct divisor divisor_make(uint64_t value)
{
	unsigned shift = (unsigned)__builtin_ctzll(value);
	uint64_t odd = value >> shift, inverse = odd; /* right in three bits; each turn doubles */

	for (int i = 0; i < 5; i++)
		inverse *= 2 - odd * inverse;
	return (struct divisor){ value, inverse, UINT64_MAX / odd, shift };
}

static bool divides(const struct divisor *d, uint64_t v)
{
	uint64_t quotient = v * d->inverse; /* wraps unless the odd part divides */

	return quotient <= d->most && !(quotient & ((UINT64_C(1) << d->shift) - 1));
}

static uint64_t divide_signed(const struct divisor *d, uint64_t v)
{
	return (uint64_t)((int64_t)v >> d->shift) * d->inverse;
}

/* Residuals that are not yet divided, for `rows` rows. */

static uint64_t least(const uint64_t *words, uint32_t rows)
{
	uint64_t low = words[0];

	for (uint32_t i = 1; i < rows; i++)
		low = words[i] < low ? words[i] : low;
	return low;
}

static void by_site(const struct column_words *c, uint64_t base, uint32_t rows)
{
	uint64_t last[SITE_PLACES];

	for (unsigned i = 0; i < SITE_PLACES; i++)
		last[i] = base;
	for (uint32_t i = 0; i < rows; i++) {
		unsigned place = c->sites[i] % SITE_PLACES;

		c->scratch[i] = c->words[i] - last[place];
		last[place] = c->words[i];
	}
}

static void by_gap(const struct column_words *c, uint64_t base, uint32_t rows)
{
	uint64_t last[LOG_SLOTS];

	for (unsigned i = 0; i < LOG_SLOTS; i++)
		last[i] = base;
	for (uint32_t i = 0; i < rows; i++) {
		unsigned slot = c->slots[i] % LOG_SLOTS;

		c->scratch[i] = c->words[i] - last[slot];
		last[slot] = c->ends[i];
	}
}

/* Returns the base. */
static uint64_t residuals(const struct column_words *c, enum transform transform, uint32_t rows)
{
	const uint64_t *words = c->words;
	uint64_t base = words[0];

	switch (transform) {
	case BY_VALUE:
		base = least(words, rows);
		for (uint32_t i = 0; i < rows; i++)
			c->scratch[i] = words[i] - base;
		break;
	case BY_SITE:
		by_site(c, base, rows);
		break;
	case BY_GAP:
		by_gap(c, base, rows);
		break;
	case BY_END:
		for (uint32_t i = 0; i < rows; i++)
			c->scratch[i] = words[i] - c->ends[i];
		return 0;
	default:
		c->scratch[0] = 0;
		for (uint32_t i = 1; i < rows; i++)
			c->scratch[i] = words[i] - words[i - 1];
		break;
	}
	return base;
}

/* The greatest divisor of all residuals; 0 when all are 0. */
static uint64_t common_divisor(const uint64_t *v, uint32_t rows, bool is_signed)
{
	struct divisor d = { 0 };

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t size = is_signed ? magnitude(v[i]) : v[i];

		if (!size || (d.value && divides(&d, size)))
			continue;
		d = divisor_make(gcd(d.value, size));
		if (d.value == 1)
			return 1;
	}
	return d.value;
}

/* Divides in place and leaves what is stored; returns bytes as varints, *most gets all bits. */
static size_t reduce(uint64_t *v, uint32_t rows, uint64_t divisor, bool is_signed, uint64_t *most)
{
	struct divisor d = divisor_make(divisor);
	size_t size = 0;
	uint64_t bits = 0;

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t z;

		if (is_signed)
			z = zigzag((int64_t)divide_signed(&d, v[i]));
		else
			z = (v[i] >> d.shift) * d.inverse;
		v[i] = z;
		bits |= z;
		size += varint_size(z);
	}
	*most = bits;
	return size;
}

static bool are_equal(const uint64_t *v, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (v[i] != v[0])
			return false;
	return true;
}

/* Plan for the first `rows` rows; the scratch holds the stored words afterwards. */
static void plan_rows(const struct column_words *c, enum transform transform, uint32_t rows,
		      struct column_plan *plan)
{
	bool is_signed = transform != BY_VALUE;
	uint64_t *v = c->scratch, most;
	size_t varints, fixed;

	*plan = (struct column_plan){ .transform = (uint8_t)transform, .packing = PACK_CONST };
	plan->base = residuals(c, transform, rows);
	plan->divisor = common_divisor(v, rows, is_signed);
	if (!plan->divisor)
		return;
	if (transform == BY_DELTA && are_equal(v + 1, rows - 1)) { /* begin one step earlier */
		plan->base -= v[1];
		plan->residual = zigzag((int64_t)v[1]);
		return;
	}
	if (transform == BY_END && are_equal(v, rows)) {
		plan->residual = zigzag((int64_t)v[0]);
		return;
	}
	varints = reduce(v, rows, plan->divisor, is_signed, &most);
	plan->width = (uint8_t)((64 - __builtin_clzll(most | 1) + 7) / 8);
	fixed = (size_t)plan->width * rows;
	plan->packing = fixed <= varints ? PACK_FIXED : PACK_VARINT;
	plan->length = (uint32_t)(fixed <= varints ? fixed : varints);
}

void column_choose_delta(const struct column_words *c, struct column_plan *plan)
{
	plan_rows(c, BY_DELTA, c->rows, plan);
}

size_t column_plan_size(const struct column_plan *plan)
{
	size_t head = 1 + varint_size(plan->base);

	if (plan->packing == PACK_CONST)
		return head + varint_size(plan->residual);
	return head + varint_size(plan->divisor) + varint_size(plan->length) + plan->length;
}

/* Whether the words are those of another column, or always equally far from them. */
static bool plan_as_other(const struct column_words *c, const uint64_t *const *others,
			  unsigned count, struct column_plan *plan)
{
	for (unsigned k = 0; k < count; k++) {
		const uint64_t *other = others[k];
		uint64_t step = c->words[0] - other[0];
		uint32_t i = 1;

		while (i < c->rows && c->words[i] - other[i] == step)
			i++;
		if (i < c->rows)
			continue;
		*plan = (struct column_plan){
			.transform = BY_COLUMN, .packing = PACK_CONST,
			.base = k, .residual = zigzag((int64_t)step),
		};
		return true;
	}
	return false;
}

static bool plan_as_constant(const struct column_words *c, struct column_plan *plan)
{
	for (uint32_t i = 1; i < c->rows; i++)
		if (c->words[i] != c->words[0])
			return false;
	*plan = (struct column_plan){
		.transform = BY_VALUE, .packing = PACK_CONST, .base = c->words[0],
	};
	return true;
}

void column_choose(const struct column_words *c, uint32_t sample, const uint64_t *const *others,
		   unsigned count, struct column_plan *plan)
{
	static const uint8_t of_begin[] = { BY_GAP, BY_DELTA };
	static const uint8_t of_others[] = { BY_VALUE, BY_DELTA, BY_SITE, BY_END };
	const uint8_t *tried = c->slots ? of_begin : of_others;
	unsigned tries = c->slots || !c->sites ? 2 : c->ends ? 4 : 3;
	uint32_t rows = sample < c->rows ? sample : c->rows;
	enum transform best = BY_DELTA;
	size_t best_size = SIZE_MAX;

	if (plan_as_constant(c, plan) || plan_as_other(c, others, count, plan))
		return;
	for (unsigned i = 0; i < tries; i++) {
		plan_rows(c, tried[i], rows, plan);
		if (column_plan_size(plan) < best_size) {
			best_size = column_plan_size(plan);
			best = tried[i];
		}
	}
	plan_rows(c, best, c->rows, plan);
}

static size_t put_fixed(uint8_t *out, const uint64_t *v, uint32_t rows, unsigned width)
{
	uint8_t *p = out;

	for (uint32_t i = 0; i < rows; i++, p += width)
		put_u64(p, v[i]); /* the next word, or nothing, goes over what is too much */
	return (size_t)(p - out);
}

static size_t put_varints(uint8_t *out, const uint64_t *v, uint32_t rows)
{
	uint8_t *p = out;

	for (uint32_t i = 0; i < rows; i++)
		p += put_varint(p, v[i]);
	return (size_t)(p - out);
}

size_t column_put(const struct column_words *c, const struct column_plan *plan, uint8_t *out)
{
	uint8_t *p = out;

	*p++ = (uint8_t)(plan->transform | plan->packing << 4);
	p += put_varint(p, plan->base);
	if (plan->packing == PACK_CONST)
		return (size_t)(p - out) + put_varint(p, plan->residual);
	p += put_varint(p, plan->divisor);
	p += put_varint(p, plan->length);
	if (plan->packing == PACK_FIXED)
		p += put_fixed(p, c->scratch, c->rows, plan->width);
	else
		p += put_varints(p, c->scratch, c->rows);
	return (size_t)(p - out);
}

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

	r->transform = code & 15;
	r->packing = code >> 4;
	r->last = take_varint(in);
	if (in->cut)
		return column_refuse(block, index, "is cut off", err);
	if (r->transform >= TRANSFORMS || r->packing >= PACKINGS)
		return column_refuse(block, index, "has a code that is unknown here", err);
	if (!refers_well(r, index))
		return column_refuse(block, index, "refers to one that does not come before", err);
	if (r->transform == BY_SITE)
		for (unsigned i = 0; i < SITE_PLACES; i++)
			r->by_site[i] = r->last;
	if (r->packing != PACK_CONST)
		return open_stream(r, in, block, index, err);
	r->residual = take_varint(in);
	r->divisor = 1;
	if (in->cut)
		return column_refuse(block, index, "is cut off", err);
	return ST_OK;
}

/* A varint of at most eight bytes, given as the eight bytes from its start, without a branch. */
static uint64_t squeeze(uint64_t w)
{
	w = (w & 0x007f007f007f007f) | (w & 0x7f007f007f007f00) >> 1;
	w = (w & 0x00003fff00003fff) | (w & 0x3fff00003fff0000) >> 2;
	return (w & 0x0fffffff) | (w & 0x0fffffff00000000) >> 4;
}

/* column_open() has seen that all varints end within the stream. */
static bool take_varints(struct column_reader *r, uint64_t *out, uint32_t count)
{
	const uint8_t *p = r->at;
	struct bytes rest;
	uint32_t i = 0;

	for (; i < count && r->end - p >= 8; i++) {
		uint64_t w = get_u64(p), stops;

		if (!(w & 0x80)) {
			out[i] = w & 0x7f;
			p++;
			continue;
		}
		stops = ~w & 0x8080808080808080;
		if (!stops)
			break;
		out[i] = squeeze(w & (stops ^ (stops - 1)));
		p += (__builtin_ctzll(stops) >> 3) + 1;
	}
	rest = bytes_init(p, (size_t)(r->end - p));
	for (; i < count; i++)
		out[i] = take_varint(&rest);
	r->at = rest.at;
	return !rest.cut;
}

static void take_wide(const uint8_t *p, const uint8_t *end, unsigned width, uint64_t *out,
		      uint32_t count)
{
	uint64_t mask = UINT64_MAX >> (64 - 8 * width);

	for (uint32_t i = 0; i < count; i++, p += width) {
		out[i] = 0;
		if (end - p >= 8)
			out[i] = get_u64(p) & mask;
		else
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

void column_sum(struct column_reader *r, uint64_t *words, const uint64_t *others, uint32_t count)
{
	uint64_t divisor = r->divisor, last = r->last;

	switch (r->transform) {
	case BY_VALUE:
		for (uint32_t i = 0; i < count; i++)
			words[i] = words[i] * divisor + last;
		break;
	case BY_DELTA:
		for (uint32_t i = 0; i < count; i++)
			words[i] = last += column_step(words[i], divisor);
		r->last = last;
		break;
	case BY_COLUMN:
	case BY_END:
		for (uint32_t i = 0; i < count; i++)
			words[i] = others[i] + column_step(words[i], divisor);
		break;
	default:
		for (uint32_t i = 0; i < count; i++)
			words[i] = r->by_site[others[i] % SITE_PLACES] +=
				column_step(words[i], divisor);
		break;
	}
}
