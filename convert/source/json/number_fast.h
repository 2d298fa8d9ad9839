/* SPDX-License-Identifier: Apache-2.0 */
/* number_fast.h - parses the plain numbers that are usual in traces, eight digits at a time. */
#pragma once

#include "convert/source/json/scan.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The form in which a number is written. */
enum json_class {
	JSON_WHOLE,    /* below 10^19 */
	JSON_NEGATIVE, /* minus, then below 10^19 */
	JSON_FRACTION,
	JSON_NEGATIVE_FRACTION,
	JSON_ANY_CLASS, /* any of the above */
};

struct json_number {
	const char *text;
	uint64_t digits; /* all digits, without the point */
	uint32_t len;
	uint8_t decimals, class, use; /* decimals: digits after the point; use: for the caller */
};

enum {
	JSON_NUMBER_REACH = 64, /* bytes from a number's first that parsing may read */
	JSON_DIGITS_MOST = 19,  /* any number of so many digits fits 64 bits */
	JSON_NUMBER_LEN_MOST = JSON_DIGITS_MOST + 2, /* with minus and point */
};

extern const uint64_t json_powers[20]; /* powers of ten */

/* Returns how many of the eight characters, as loaded from memory, are digits before the first
 * other one. */
static inline unsigned json_digits_in(uint64_t eight)
{
	uint64_t t = eight ^ UINT64_C(0x3030303030303030);
	uint64_t other = ((t + UINT64_C(0x7676767676767676)) | t) & UINT64_C(0x8080808080808080);

	/* a carry out of a byte that is not a digit reaches only later bytes */
	return other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
}

/* Converts the first `count` (1 to 8) of eight characters to a number: first pairs, then fours,
 * then all. */
static inline uint64_t json_digits_value(uint64_t eight, unsigned count)
{
	uint64_t t = (eight & UINT64_C(0x0f0f0f0f0f0f0f0f)) << (64 - 8 * count);

	t = t * 10 + (t >> 8);
	return (((t & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)) +
		((t >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001))) >>
	       32;
}

/* Returns how many of the sixteen characters at `p` are digits before the first other one. */
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

/* Parses the number at `text`, of which JSON_NUMBER_REACH bytes must be readable, and returns its
 * end.  Returns NULL if only the scanner can parse it.  Does not change `use`. */
const uint8_t *json_number_take(const uint8_t *text, struct json_number *out);

/* Returns false also if fewer than JSON_NUMBER_REACH bytes are readable. */
static inline bool json_number_read(const char *text, const char *end, struct json_number *out)
{
	return end - text >= JSON_NUMBER_REACH &&
	       json_number_take((const uint8_t *)text, out) != NULL;
}

/* Return what json_f64() and json_us_to_ns() return for the number's text. */
double json_number_f64(const struct json_number *n);
bool json_number_us_to_ns(const struct json_number *n, int64_t *ns);
