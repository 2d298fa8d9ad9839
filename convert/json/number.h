/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json/number.h - plain numbers as they mostly stand in traces, eight digits at a time.
 */
#ifndef CONVERT_JSON_NUMBER_H
#define CONVERT_JSON_NUMBER_H

#include "convert/json/scan.h"

/* How a number is written. */
enum json_class {
	JSON_WHOLE,    /* below 10^19 */
	JSON_NEGATIVE, /* the same behind a minus */
	JSON_FRACTION,
	JSON_NEGATIVE_FRACTION,
	JSON_ANY_CLASS, /* each of them */
};

struct json_number {
	const char *text;
	uint64_t digits; /* all of them, as if there was no point */
	uint32_t len;
	uint8_t decimals, class, use; /* decimals: digits behind the point; use: the caller's */
};

enum {
	JSON_NUMBER_ROOM = 64, /* bytes from its first on that reading it may look at */
	JSON_DIGITS_MOST = 19, /* that 64 bits hold, whichever they are */
};

extern const uint64_t json_powers[20]; /* of ten */

/* As json_f64() and json_us_to_ns() of its text. */
double json_number_f64(const struct json_number *n);
bool json_number_us_to_ns(const struct json_number *n, int64_t *ns);

/* Eight characters as they lie in memory: how many of them are digits before another one. */
static inline unsigned json_digits_in(uint64_t eight)
{
	uint64_t t = eight ^ UINT64_C(0x3030303030303030);
	uint64_t other = ((t + UINT64_C(0x7676767676767676)) | t) & UINT64_C(0x8080808080808080);

	/* a carry out of a byte that is no digit reaches only those behind it */
	return other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
}

/* The first `count` of eight characters, 1 to 8 digits, as a number: pairs, fours, all. */
static inline uint64_t json_digits_value(uint64_t eight, unsigned count)
{
	uint64_t t = (eight & UINT64_C(0x0f0f0f0f0f0f0f0f)) << (64 - 8 * count);

	t = t * 10 + (t >> 8);
	return (((t & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)) +
		((t >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001))) >> 32;
}

/* Digits from p on are appended to *v; returns how many, more than JSON_DIGITS_MOST: too many. */
static inline unsigned json_take_digits(const uint8_t *p, uint64_t *v)
{
	uint64_t eight = get_u64(p);
	unsigned count = json_digits_in(eight), n;

	if (!count)
		return 0;
	*v = *v * json_powers[count] + json_digits_value(eight, count);
	if (count < 8)
		return count;
	do {
		eight = get_u64(p + count);
		n = json_digits_in(eight);
		count += n;
		if (!n || count > JSON_DIGITS_MOST)
			break;
		*v = *v * json_powers[n] + json_digits_value(eight, n);
	} while (n == 8);
	return count;
}

/* False: the scanner has to look, or there is less than JSON_NUMBER_ROOM to look at.  `use` is left
 * alone. */
static inline bool json_number_read(const char *text, const char *end, struct json_number *out)
{
	const uint8_t *p = (const uint8_t *)text;
	unsigned count, decimals = 0;
	uint64_t digits = 0;
	bool minus;

	if (end - text < JSON_NUMBER_ROOM)
		return false;
	minus = *p == '-';
	p += minus;
	count = json_take_digits(p, &digits);
	if (!count || count > JSON_DIGITS_MOST || (*p == '0' && count > 1))
		return false;
	p += count;
	if (*p == '.') {
		decimals = json_take_digits(++p, &digits);
		if (!decimals || count + decimals > JSON_DIGITS_MOST)
			return false;
		p += decimals;
	}
	if ((*p | 0x20) == 'e')
		return false;
	out->text = text;
	out->digits = digits;
	out->len = (uint32_t)(p - (const uint8_t *)text);
	out->decimals = (uint8_t)decimals;
	out->class = (uint8_t)((decimals ? JSON_FRACTION : JSON_WHOLE) + minus);
	return true;
}

#endif
