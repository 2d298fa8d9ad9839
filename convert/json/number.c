/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/json/number.h"

const uint64_t json_powers[20] = {
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
	UINT64_C(10000000000), UINT64_C(100000000000), UINT64_C(1000000000000),
	UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000),
	UINT64_C(10000000000000000), UINT64_C(100000000000000000),
	UINT64_C(1000000000000000000), UINT64_C(10000000000000000000),
};

double json_number_f64(const struct json_number *n)
{
	/* both exact as doubles, so the quotient is rounded once */
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
