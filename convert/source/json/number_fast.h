/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number_fast.h - reads the usual plain numbers of traces, eight digits at a time.
 */
#pragma once

#include "convert/source/json/scan.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* How a number is written. */
enum json_class {
	JSON_WHOLE,    /* below 10^19 */
	JSON_NEGATIVE, /* the same after a minus */
	JSON_FRACTION,
	JSON_NEGATIVE_FRACTION,
	JSON_ANY_CLASS, /* each of them */
};

struct json_number {
	const char *text;
	uint64_t digits; /* all of them, as if there was no point */
	uint32_t len;
	uint8_t decimals, class, use; /* decimals: digits after the point; use: the caller's */
};

enum {
	JSON_NUMBER_REACH = 64, /* bytes from its first on that reading it may look at */
	JSON_DIGITS_MOST = 19,  /* that 64 bits hold, whichever they are */
	JSON_NUMBER_LEN_MOST = JSON_DIGITS_MOST + 2, /* with minus and point */
};

extern const uint64_t json_powers[20]; /* of ten */

/* Eight characters as they lie in memory: how many of them are digits before another one. */
static inline unsigned json_digits_in(uint64_t eight)
{
	uint64_t t = eight ^ UINT64_C(0x3030303030303030);
	uint64_t other = ((t + UINT64_C(0x7676767676767676)) | t) & UINT64_C(0x8080808080808080);

	/* a carry out of a byte that is no digit reaches only later ones */
	return other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
}

/* The first `count` of eight characters, 1 to 8 digits, as a number: pairs, fours, all. */
static inline uint64_t json_digits_value(uint64_t eight, unsigned count)
{
	uint64_t t = (eight & UINT64_C(0x0f0f0f0f0f0f0f0f)) << (64 - 8 * count);

	t = t * 10 + (t >> 8);
	return (((t & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)) +
		((t >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001))) >>
	       32;
}

/* How many of the sixteen characters at p are digits before another one. */
static inline unsigned json_digits_ahead(const uint8_t *p)
{
#ifdef __SSE2__
	__m128i t =
		_mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8('0'));
	__m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(t, _mm_set1_epi8(9)), t);

	return (unsigned)__builtin_ctz(~(unsigned)_mm_movemask_epi8(digits));
#else
	unsigned count = json_digits_in(get_u64(p));

	return count < 8 ? count : 8 + json_digits_in(get_u64(p + 8));
#endif
}

/* Returns the end of the number at `text`, of which JSON_NUMBER_REACH may be looked at; NULL: the
 * scanner has to look.  `use` is left alone. */
const uint8_t *json_number_take(const uint8_t *text, struct json_number *out);

/* False also where there is less than JSON_NUMBER_REACH to look at. */
static inline bool json_number_read(const char *text, const char *end, struct json_number *out)
{
	return end - text >= JSON_NUMBER_REACH &&
	       json_number_take((const uint8_t *)text, out) != NULL;
}

/* As json_f64() and json_us_to_ns() of its text. */
double json_number_f64(const struct json_number *n);
bool json_number_us_to_ns(const struct json_number *n, int64_t *ns);
