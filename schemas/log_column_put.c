/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_column.h"

/*
 * Loops over a whole column, each compiled twice: for any machine, and for one with AVX2 and BMI2.
 * Four words at a time; vectors are never passed, because how depends on the machine.
 */
#define PASS static inline __attribute__((always_inline))
typedef uint64_t four __attribute__((vector_size(32), aligned(8), may_alias));
#define FOUR(words) (*(four *)(void *)(words))
#define FOUR_OF(words) (*(const four *)(const void *)(words))

/* Of a residual that is zig-zag. */
static inline uint64_t magnitude(uint64_t v)
{
	return (v >> 1) + (v & 1);
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

static uint64_t divide(const struct divisor *d, uint64_t v)
{
	return (v >> d->shift) * d->inverse;
}

static uint64_t divide_signed(const struct divisor *d, uint64_t v)
{
	return zigzag((int64_t)((uint64_t)(unzigzag(v) >> d->shift) * d->inverse));
}

/* ---- residuals of `rows` rows as they are stored, but not yet divided; all their bits ---- */

PASS uint64_t all_bits(const uint64_t *v, uint32_t rows)
{
	four bits = { 0 };
	uint64_t last = 0;
	uint32_t i;

	for (i = 0; i + 3 < rows; i += 4)
		bits |= FOUR_OF(v + i);
	for (; i < rows; i++)
		last |= v[i];
	return bits[0] | bits[1] | bits[2] | bits[3] | last;
}

PASS uint64_t least(const uint64_t *words, uint32_t rows)
{
	uint64_t low = words[0];

	for (uint32_t i = 1; i < rows; i++)
		low = words[i] < low ? words[i] : low;
	return low;
}

PASS uint64_t subtract(uint64_t *out, const uint64_t *words, uint64_t base, uint32_t rows)
{
	four bits = { 0 };
	uint64_t last = 0;
	uint32_t i;

	for (i = 0; i + 3 < rows; i += 4) {
		four v = FOUR_OF(words + i) - base;

		FOUR(out + i) = v;
		bits |= v;
	}
	for (; i < rows; i++)
		last |= out[i] = words[i] - base;
	return bits[0] | bits[1] | bits[2] | bits[3] | last;
}

PASS uint64_t differences(uint64_t *out, const uint64_t *words, const uint64_t *others,
			  uint32_t rows)
{
	four bits = { 0 };
	uint64_t last = 0;
	uint32_t i;

	for (i = 0; i + 3 < rows; i += 4) {
		four v = FOUR_OF(words + i) - FOUR_OF(others + i);

		v = (v + v) ^ (0 - (v >> 63));
		FOUR(out + i) = v;
		bits |= v;
	}
	for (; i < rows; i++)
		last |= out[i] = zigzag((int64_t)(words[i] - others[i]));
	return bits[0] | bits[1] | bits[2] | bits[3] | last;
}

PASS uint64_t by_delta(const struct column_words *c, const uint64_t *before, uint32_t rows)
{
	c->scratch[0] = 0;
	return differences(c->scratch + 1, c->words + 1, before, rows - 1);
}

PASS uint64_t by_site(const struct column_words *c, uint64_t base, uint32_t rows)
{
	uint64_t last[SITE_PLACES], bits = 0;

	for (unsigned i = 0; i < SITE_PLACES; i++)
		last[i] = base;
	for (uint32_t i = 0; i < rows; i++) {
		unsigned place = c->sites[i] % SITE_PLACES;

		bits |= c->scratch[i] = zigzag((int64_t)(c->words[i] - last[place]));
		last[place] = c->words[i];
	}
	return bits;
}

PASS uint64_t by_gap(const struct column_words *c, uint64_t base, uint32_t rows)
{
	uint64_t last[LOG_SLOTS], bits = 0;

	if (memcmp(c->slots, c->slots + 1, rows - 1) == 0)
		return by_delta(c, c->ends, rows);
	for (unsigned i = 0; i < LOG_SLOTS; i++)
		last[i] = base;
	for (uint32_t i = 0; i < rows; i++) {
		unsigned slot = c->slots[i] % LOG_SLOTS;

		bits |= c->scratch[i] = zigzag((int64_t)(c->words[i] - last[slot]));
		last[slot] = c->ends[i];
	}
	return bits;
}

/* *base gets what the transform is told to begin with. */
PASS uint64_t residuals(const struct column_words *c, enum transform transform, uint32_t rows,
			uint64_t *base)
{
	*base = c->words[0];
	switch (transform) {
	case BY_VALUE:
		*base = least(c->words, rows);
		return subtract(c->scratch, c->words, *base, rows);
	case BY_SITE:
		return by_site(c, *base, rows);
	case BY_GAP:
		return by_gap(c, *base, rows);
	case BY_END:
		*base = 0;
		return differences(c->scratch, c->words, c->ends, rows);
	default:
		return by_delta(c, c->words, rows);
	}
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

static void divide_all(uint64_t *v, uint32_t rows, uint64_t divisor, bool is_signed)
{
	struct divisor d = divisor_make(divisor);

	for (uint32_t i = 0; i < rows; i++)
		v[i] = is_signed ? divide_signed(&d, v[i]) : divide(&d, v[i]);
}

/* Of `rows` words below 2^63 those that are not less than `limit`. */
PASS uint32_t count_from(const uint64_t *v, uint32_t rows, uint64_t limit)
{
	uint64_t carry = (UINT64_C(1) << 63) - limit, last = 0;
	four count = { 0 };
	uint32_t i;

	for (i = 0; i + 3 < rows; i += 4)
		count += (FOUR_OF(v + i) + carry) >> 63;
	for (; i < rows; i++)
		last += (v[i] + carry) >> 63;
	return (uint32_t)(count[0] + count[1] + count[2] + count[3] + last);
}

/* `bits`: of all words. */
PASS size_t varints_size(const uint64_t *v, uint32_t rows, uint64_t bits)
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

/* Residuals that are all the same need no stream; a delta then begins one step earlier. */
static bool plan_as_steps(const uint64_t *v, uint32_t rows, struct column_plan *plan)
{
	if (plan->transform == BY_DELTA && are_equal(v + 1, rows - 1)) {
		plan->base -= (uint64_t)unzigzag(v[1]);
		plan->residual = v[1];
		return true;
	}
	if (plan->transform != BY_END || !are_equal(v, rows))
		return false;
	plan->residual = v[0];
	return true;
}

PASS void plan_with(const struct column_words *c, enum transform transform, uint32_t rows,
		    struct column_plan *plan)
{
	bool is_signed = transform != BY_VALUE;
	uint64_t *v = c->scratch;
	size_t varints, fixed;

	*plan = (struct column_plan){ .transform = (uint8_t)transform, .packing = PACK_CONST };
	plan->bits = residuals(c, transform, rows, &plan->base);
	plan->divisor = common_divisor(v, rows, is_signed);
	if (!plan->divisor || plan_as_steps(v, rows, plan))
		return;
	if (plan->divisor != 1) {
		divide_all(v, rows, plan->divisor, is_signed);
		plan->bits = all_bits(v, rows);
	}
	plan->width = (uint8_t)((64 - __builtin_clzll(plan->bits | 1) + 7) / 8);
	fixed = (size_t)plan->width * rows;
	varints = plan->width == 1 ? fixed : varints_size(v, rows, plan->bits);
	plan->packing = fixed <= varints ? PACK_FIXED : PACK_VARINT;
	plan->length = (uint32_t)(fixed <= varints ? fixed : varints);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2")))
static void plan_wide(const struct column_words *c, enum transform transform, uint32_t rows,
		      struct column_plan *plan)
{
	plan_with(c, transform, rows, plan);
}

static bool is_wide(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}
#endif

/* Plan for the first `rows` rows; the scratch holds the stored words afterwards. */
static void plan_rows(const struct column_words *c, enum transform transform, uint32_t rows,
		      struct column_plan *plan)
{
#if defined(__x86_64__)
	if (is_wide()) {
		plan_wide(c, transform, rows, plan);
		return;
	}
#endif
	plan_with(c, transform, rows, plan);
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

static size_t put_bytes(uint8_t *out, const uint64_t *v, uint32_t rows)
{
#pragma GCC unroll 8
	for (uint32_t i = 0; i < rows; i++)
		out[i] = (uint8_t)v[i];
	return rows;
}

static size_t put_fixed(uint8_t *out, const uint64_t *v, uint32_t rows, unsigned width)
{
	uint8_t *p = out;

	if (width == 1)
		return put_bytes(out, v, rows);
	for (uint32_t i = 0; i < rows; i++, p += width)
		put_u64(p, v[i]); /* the next word, or nothing, goes over what is too much */
	return (size_t)(p - out);
}

/* Words below 2^14: without a branch, and with bytes written beyond the end. */
static size_t put_short_varints(uint8_t *out, const uint64_t *v, uint32_t rows)
{
	uint8_t *p = out;

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t w = v[i], more = (w + 0x3f80) >> 14;

		put_u16(p, (uint16_t)((w + (w & 0x3f80)) | more << 7));
		p += 1 + more;
	}
	return (size_t)(p - out);
}

#if defined(__x86_64__)
/* Four at a time: sixteen bits each, out of which what is too much is squeezed. */
__attribute__((target("avx2,bmi,bmi2")))
static size_t put_short_varints_wide(uint8_t *out, const uint64_t *v, uint32_t rows)
{
	const four places = { 0, 16, 32, 48 };
	uint8_t *p = out;
	uint32_t i;

	for (i = 0; i + 3 < rows; i += 4) {
		four w = FOUR_OF(v + i);
		four two = ((w + (w & 0x3f80)) | ((w + 0x3f80) >> 7 & 0x80)) << places;
		four all = two | __builtin_shufflevector(two, two, 2, 3, 0, 1);
		uint64_t bytes = all[0] | all[1], more = bytes & 0x0080008000800080;

		put_u64(p, __builtin_ia32_pext_di(bytes, 0x00ff00ff00ff00ff | more * 0x1fe));
		p += 4 + __builtin_popcountll(more);
	}
	return (size_t)(p - out) + put_short_varints(p, v + i, rows - i);
}

/* Words below 2^56: sevens of bits to bytes, all but the last with their high bit. */
__attribute__((target("avx2,bmi,bmi2")))
static size_t put_varints_wide(uint8_t *out, const uint64_t *v, uint32_t rows)
{
	const uint64_t sevens = 0x7f7f7f7f7f7f7f7f;
	uint8_t *p = out;

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t w = v[i];
		size_t more = varint_size(w) - 1;

		put_u64(p, __builtin_ia32_pdep_di(w, sevens) |
				   __builtin_ia32_bzhi_di(~sevens, 8 * more));
		p += more + 1;
	}
	return (size_t)(p - out);
}
#endif

static size_t put_varints(uint8_t *out, const uint64_t *v, uint32_t rows, uint64_t bits)
{
	uint8_t *p = out;

#if defined(__x86_64__)
	if (is_wide() && bits < 1 << 14)
		return put_short_varints_wide(out, v, rows);
	if (is_wide() && bits < UINT64_C(1) << 56)
		return put_varints_wide(out, v, rows);
#endif
	if (bits < 1 << 14)
		return put_short_varints(out, v, rows);
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
