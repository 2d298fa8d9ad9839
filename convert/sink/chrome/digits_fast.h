/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits_fast.h - writes numbers of events as decimal text directly into the output.
 *
 * Each function writes at `p`, where the caller has DIGITS_MOST bytes, and returns the end of the
 * text; bytes after it may have been overwritten.  The characters are those of buf_put_u64_text(),
 * chrome_put_us() and json_put_f64().
 */
#pragma once

#include "schemas/base/buf.h"

enum { DIGITS_MOST = 40, DIGITS_8 = 100000000 };

/* Returns the eight digits of a number below 10^8 as bytes from 0 to 9, with the first digit in the
 * lowest byte. */
static inline uint64_t digits_8(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32; /* groups of four, two, one digit */
	uint64_t high = (x * 10486 >> 20) & 0x0000007f0000007f;

	x = high | (x - high * 100) << 16;
	high = (x * 103 >> 10) & 0x000f000f000f000f;
	return high | (x - high * 10) << 8;
}

static inline uint8_t *digits_put_8(uint8_t *p, uint32_t v)
{
	put_u64(p, digits_8(v) | 0x3030303030303030);
	return p + 8;
}

static inline uint8_t *digits_put_u64(uint8_t *p, uint64_t v)
{
	uint64_t x;
	unsigned zeros;

	if (__builtin_expect(v >= DIGITS_8, 0)) {
		p = v / DIGITS_8 < DIGITS_8 ? digits_put_u64(p, v / DIGITS_8)
					    : p + put_u64_text((char *)p, v / DIGITS_8);
		return digits_put_8(p, (uint32_t)(v % DIGITS_8));
	}
	x = digits_8((uint32_t)v);
	zeros = (unsigned)__builtin_ctzll(x | UINT64_C(1) << 56) / 8;
	put_u64(p, (x | 0x3030303030303030) >> zeros * 8);
	return p + 8 - zeros;
}

static inline uint8_t *digits_put_i64(uint8_t *p, int64_t v)
{
	*p = '-';
	/* 0 - x instead of -x, because -INT64_MIN would overflow */
	return v < 0 ? digits_put_u64(p + 1, 0 - (uint64_t)v) : digits_put_u64(p, (uint64_t)v);
}

/* Appends the fraction of microseconds, such as ".250", or nothing if it is 0. */
static inline uint8_t *digits_put_rest(uint8_t *p, uint32_t ns)
{
	uint32_t digits = (uint32_t)(digits_8(ns) >> 32) | 0x30303030;

	put_u32(p, digits - ('0' - '.'));
	return ns ? p + 4 : p;
}

static inline uint8_t *digits_put_us(uint8_t *p, uint64_t ns)
{
	return digits_put_rest(digits_put_u64(p, ns / 1000), (uint32_t)(ns % 1000));
}

/* Cache for the times of one file: the digits before the last eight of the microseconds seldom
 * change. */
struct digits_clock {
	uint64_t base_ns, high;
	uint8_t text[16], len;
};

static inline void digits_clock_set(struct digits_clock *c, uint64_t high)
{
	c->high = high;
	c->len = high ? (uint8_t)(digits_put_u64(c->text, high) - c->text) : 0;
}

static inline uint8_t *digits_put_time(uint8_t *p, struct digits_clock *c, uint64_t at_ns)
{
	uint64_t us = (at_ns - c->base_ns) / 1000, high = us / DIGITS_8;
	uint32_t rest = (uint32_t)((at_ns - c->base_ns) % 1000);

	if (__builtin_expect(!high, 0))
		return digits_put_rest(digits_put_u64(p, us), rest);
	if (__builtin_expect(high != c->high, 0))
		digits_clock_set(c, high);
	memcpy(p, c->text, sizeof(c->text));
	return digits_put_rest(digits_put_8(p + c->len, (uint32_t)(us % DIGITS_8)), rest);
}

/*
 * Writes a double that has at most four decimals, otherwise returns NULL.  The quotient of two
 * exact doubles is the nearest double, so a decimal that gives the value back is the right one.
 */
static inline uint8_t *digits_put_short_f64(uint8_t *p, double v)
{
	uint64_t scaled, rest;

	if (!(v >= 0.001 && v < 1e11))
		return NULL;
	scaled = (uint64_t)(v * 10000 + 0.5);
	if ((double)scaled / 10000 != v)
		return NULL;
	p = digits_put_u64(p, scaled / 10000);
	rest = digits_8((uint32_t)(scaled % 10000)) >> 32;
	*p = '.';
	put_u32(p + 1, (uint32_t)rest | 0x30303030);
	/* up to the last decimal that is not 0, but at least one */
	return p + 2 + (63 - (unsigned)__builtin_clzll(rest | 1)) / 8;
}
