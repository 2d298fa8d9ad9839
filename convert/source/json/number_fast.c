/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/json/number_fast.h"

const uint64_t json_powers[20] = { 1,
				   10,
				   100,
				   1000,
				   10000,
				   100000,
				   1000000,
				   10000000,
				   100000000,
				   1000000000,
				   UINT64_C(10000000000),
				   UINT64_C(100000000000),
				   UINT64_C(1000000000000),
				   UINT64_C(10000000000000),
				   UINT64_C(100000000000000),
				   UINT64_C(1000000000000000),
				   UINT64_C(10000000000000000),
				   UINT64_C(100000000000000000),
				   UINT64_C(1000000000000000000),
				   UINT64_C(10000000000000000000) };

/* Appends the digits at `p` to *v and returns their number.  *v is valid if that is at most
 * JSON_DIGITS_MOST. */
static inline unsigned take_digits(const uint8_t *p, uint64_t *v)
{
	unsigned count = json_digits_ahead(p), more;

	if (!count)
		return 0;
	if (count <= 8) {
		*v = *v * json_powers[count] + json_digits_value(get_u64(p), count);
		return count;
	}
	*v = (*v * json_powers[8] + json_digits_value(get_u64(p), 8)) * json_powers[count - 8] +
	     json_digits_value(get_u64(p + 8), count - 8);
	if (count < 16)
		return count;
	more = json_digits_in(get_u64(p + 16));
	if (more && more <= JSON_DIGITS_MOST - 16)
		*v = *v * json_powers[more] + json_digits_value(get_u64(p + 16), more);
	return count + more;
}

const uint8_t *json_number_take(const uint8_t *text, struct json_number *out)
{
	unsigned minus = *text == '-', count, decimals = 0;
	const uint8_t *p = text + minus;
	uint64_t digits = 0;

	count = take_digits(p, &digits);
	if (!count || count > JSON_DIGITS_MOST || (*p == '0' && count > 1))
		return NULL;
	p += count;
	if (*p == '.') {
		decimals = take_digits(++p, &digits);
		if (!decimals || count + decimals > JSON_DIGITS_MOST)
			return NULL;
		p += decimals;
	}
	if ((*p | 0x20) == 'e')
		return NULL;
	out->text = (const char *)text;
	out->digits = digits;
	out->len = (uint32_t)(p - text);
	out->decimals = (uint8_t)decimals;
	out->class = (uint8_t)((decimals ? JSON_FRACTION : JSON_WHOLE) + minus);
	return p;
}

double json_number_f64(const struct json_number *n)
{
	/* Both are exact as doubles, so the quotient is rounded once. */
	double v = (double)n->digits / (double)json_powers[n->decimals];

	if (n->digits >> 53 || n->decimals > 15)
		return json_f64(n->text, n->len);
	return n->class == JSON_NEGATIVE_FRACTION || n->class == JSON_NEGATIVE ? -v : v;
}

bool json_number_us_to_ns(const struct json_number *n, int64_t *ns)
{
	uint64_t size;

	if (n->decimals > 3 || n->digits > (uint64_t)INT64_MAX / 1000)
		return json_us_to_ns(n->text, n->len, ns);
	size = n->digits * json_powers[3 - n->decimals];
	*ns = n->class == JSON_NEGATIVE || n->class == JSON_NEGATIVE_FRACTION ? -(int64_t)size
									      : (int64_t)size;
	return true;
}
