/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_column.h"

/* Two words at a time, in registers of 128 bits. */
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

static inline pair *pair_at(uint64_t *words)
{
	return (pair *)(void *)words;
}

static inline pair pair_of(const uint64_t *words)
{
	return *(const pair *)(const void *)words;
}

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

static void subtract(uint64_t *out, const uint64_t *words, uint64_t base, uint32_t rows)
{
	uint32_t i;

	for (i = 0; i + 1 < rows; i += 2)
		*pair_at(out + i) = pair_of(words + i) - (pair){ base, base };
	for (; i < rows; i++)
		out[i] = words[i] - base;
}

static void differences(uint64_t *out, const uint64_t *words, uint32_t rows)
{
	uint32_t i;

	for (i = 1; i + 1 < rows; i += 2)
		*pair_at(out + i) = pair_of(words + i) - pair_of(words + i - 1);
	for (; i < rows; i++)
		out[i] = words[i] - words[i - 1];
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
		subtract(c->scratch, words, base, rows);
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
		differences(c->scratch, words, rows);
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

static void divide(uint64_t *v, uint32_t rows, uint64_t divisor, bool is_signed)
{
	struct divisor d = divisor_make(divisor);

	if (divisor == 1)
		return;
	for (uint32_t i = 0; i < rows; i++)
		v[i] = is_signed ? divide_signed(&d, v[i]) : (v[i] >> d.shift) * d.inverse;
}

static void zigzag_all(uint64_t *v, uint32_t rows)
{
	uint32_t i;

	for (i = 0; i + 1 < rows; i += 2) {
		pair p = pair_of(v + i);

		*pair_at(v + i) = (p + p) ^ (0 - (p >> 63));
	}
	for (; i < rows; i++)
		v[i] = zigzag((int64_t)v[i]);
}

static uint64_t all_bits(const uint64_t *v, uint32_t rows)
{
	pair bits = { 0, 0 };
	uint64_t last = rows & 1 ? v[rows - 1] : 0;

	for (uint32_t i = 0; i + 1 < rows; i += 2)
		bits |= pair_of(v + i);
	return bits[0] | bits[1] | last;
}

/* Of `rows` words below 2^63 those that are not less than `limit`. */
static uint32_t count_from(const uint64_t *v, uint32_t rows, uint64_t limit)
{
	uint64_t carry = (UINT64_C(1) << 63) - limit;
	pair count = { 0, 0 };
	uint64_t last = rows & 1 ? (v[rows - 1] + carry) >> 63 : 0;

	for (uint32_t i = 0; i + 1 < rows; i += 2)
		count += (pair_of(v + i) + carry) >> 63;
	return (uint32_t)(count[0] + count[1] + last);
}

/* `bits`: of all words. */
static size_t varints_size(const uint64_t *v, uint32_t rows, uint64_t bits)
{
	size_t size = rows;

	if (bits >> 63) {
		size = 0;
		for (uint32_t i = 0; i < rows; i++)
			size += varint_size(v[i]);
		return size;
	}
	for (unsigned shift = 7; shift < 63 && bits >> shift; shift += 7)
		size += count_from(v, rows, UINT64_C(1) << shift);
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
	uint64_t *v = c->scratch;
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
	divide(v, rows, plan->divisor, is_signed);
	if (is_signed)
		zigzag_all(v, rows);
	plan->bits = all_bits(v, rows);
	varints = varints_size(v, rows, plan->bits);
	plan->width = (uint8_t)((64 - __builtin_clzll(plan->bits | 1) + 7) / 8);
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
		uint64_t step;
		uint32_t i = 1;

		if (!other)
			continue;
		step = c->words[0] - other[0];
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

/* Words below 2^14, and below 2^28: without a branch, and with bytes written beyond the end. */
static size_t put_short_varints(uint8_t *out, const uint64_t *v, uint32_t rows)
{
	uint8_t *p = out;

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t w = v[i], more = (w + 0x3f80) >> 14;

		put_u16(p, (uint16_t)((w & 0x7f) | (w & 0x3f80) << 1 | more << 7));
		p += 1 + more;
	}
	return (size_t)(p - out);
}

static size_t put_medium_varints(uint8_t *out, const uint64_t *v, uint32_t rows)
{
	uint8_t *p = out;

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t w = v[i];
		uint64_t two = w >= 1 << 7, three = w >= 1 << 14, four = w >= 1 << 21;

		w = (w & 0x7f) | (w & 0x3f80) << 1 | (w & 0x1fc000) << 2 | (w & 0xfe00000) << 3;
		put_u32(p, (uint32_t)(w | two << 7 | three << 15 | four << 23));
		p += 1 + two + three + four;
	}
	return (size_t)(p - out);
}

static size_t put_varints(uint8_t *out, const uint64_t *v, uint32_t rows, uint64_t bits)
{
	uint8_t *p = out;

	if (bits < 1 << 14)
		return put_short_varints(out, v, rows);
	if (bits < 1 << 28)
		return put_medium_varints(out, v, rows);
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
		p += put_varints(p, c->scratch, c->rows, plan->bits);
	return (size_t)(p - out);
}
