/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/json/scan.h"

#include "schemas/base/json_text.h"
#include "schemas/base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char damaged[] = "\xef\xbf\xbd"; /* U+FFFD */

static void put_code_point(struct buf *out, uint32_t c)
{
	char bytes[4];

	buf_put(out, bytes, utf8_put(bytes, c));
}

/* Parses the four hexadecimal digits after \u.  Returns false if they are not valid. */
static bool take_hex(const char *p, size_t left, uint32_t *v)
{
	size_t i;

	*v = 0;
	if (left < 4)
		return false;
	for (i = 0; i < 4; i++) {
		uint8_t c = (uint8_t)p[i], letter = (c | 0x20) - 'a';

		if ((uint8_t)(c - '0') < 10)
			*v = *v << 4 | (uint32_t)(c - '0');
		else if (letter < 6)
			*v = *v << 4 | (uint32_t)(letter + 10);
		else
			return false;
	}
	return true;
}

/* Decodes the escape at `p` and returns its length.  Sets *bad if it stands for no character. */
static size_t decode_escape(const char *p, size_t left, struct buf *out, bool *bad)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *simple = left > 1 && p[1] ? strchr(from, p[1]) : NULL;
	uint32_t c, low;

	*bad = false;
	if (simple) {
		buf_put_byte(out, (uint8_t)to[simple - from]);
		return 2;
	}
	if (left > 1 && p[1] == 'u' && take_hex(p + 2, left - 2, &c)) {
		if (c < 0xd800 || c > 0xdfff) {
			put_code_point(out, c);
			return 6;
		}
		if (c < 0xdc00 && left >= 12 && p[6] == '\\' && p[7] == 'u' &&
		    take_hex(p + 8, left - 8, &low) && low >= 0xdc00 && low <= 0xdfff) {
			put_code_point(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
			return 12;
		}
		*bad = true;
		return 6;
	}
	*bad = true;
	return left > 1 ? 2 : 1;
}

size_t json_decode(const char *text, size_t len, struct buf *out)
{
	size_t i = 0, repairs = 0;

	while (i < len) {
		size_t begin = i, size = 1;
		bool bad = false;

		while (i < len && text[i] != '\\' && (uint8_t)text[i] < 0x80)
			i++;
		buf_put(out, text + begin, i - begin);
		if (i == len)
			break;
		if (text[i] == '\\') {
			size = decode_escape(text + i, len - i, out, &bad);
		} else {
			size = utf8_sequence(text + i, len - i);
			buf_put(out, text + i, size);
			bad = size == 0;
			size += bad;
		}
		if (bad)
			buf_put(out, damaged, 3);
		repairs += bad;
		i += size;
	}
	return repairs;
}

/* Appends a token of a value that may need repair as valid JSON.  Returns the number of repairs. */
static size_t put_token(const struct json *token, struct buf *scratch, struct buf *out)
{
	size_t repairs;

	switch (token->type) {
	case JSON_KEY:
	case JSON_STRING:
		buf_clear(scratch);
		repairs = json_decode(token->text, token->len, scratch);
		json_put_text(out, buf_text(scratch), scratch->len);
		return repairs;
	case JSON_ODD:
		json_put_text(out, token->text, token->len);
		return 0;
	case JSON_OBJECT:
	case JSON_OBJECT_END:
	case JSON_ARRAY:
	case JSON_ARRAY_END:
		buf_put_byte(out, (uint8_t) "\0{}[]"[token->type]);
		return 0;
	default:
		buf_put(out, token->text, token->len);
		return 0;
	}
}

static size_t minify_tokens(const char *text, size_t len, struct buf *out)
{
	struct json_scan s;
	struct json token;
	struct buf scratch;
	size_t repairs = 0;
	bool after_value = false;

	buf_init(&scratch, out->ceiling);
	json_open_text(&s, text, len);
	while (json_next(&s, &token, NULL) == ST_OK && token.type != JSON_END) {
		bool closes = token.type == JSON_OBJECT_END || token.type == JSON_ARRAY_END;

		if (after_value && !closes)
			buf_put_byte(out, ',');
		repairs += put_token(&token, &scratch, out);
		if (token.type == JSON_KEY)
			buf_put_byte(out, ':');
		after_value = token.type != JSON_KEY && token.type != JSON_OBJECT &&
			      token.type != JSON_ARRAY;
	}
	if (buf_status(&scratch, NULL) != ST_OK)
		out->status = scratch.status;
	buf_release(&scratch);
	return repairs;
}

size_t json_minify(const char *text, size_t len, struct buf *out)
{
	uint8_t *begin = buf_reserve(out, len), *to = begin;
	bool in_string = false;
	size_t i;

	if (!begin)
		return 0;
	for (i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];

		if (c == '"') {
			in_string = !in_string;
		} else if (!in_string) {
			if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
				continue;
			if (c == 'N' || c == 'I' || c == 'i' || c == 'x' || c == '(' || c == 'U' ||
			    (c == 'n' && i + 1 < len && text[i + 1] != 'u'))
				return minify_tokens(text, len, out);
		} else if (c < ' ' || c >= 0x80) {
			return minify_tokens(text, len, out);
		} else if (c == '\\' && i + 1 < len) {
			*to++ = c;
			c = (uint8_t)text[++i];
			if (c < ' ' || c >= 0x80)
				return minify_tokens(text, len, out);
		}
		*to++ = c;
	}
	out->len += (size_t)(to - begin);
	return 0;
}

/* ---- numbers ----------------------------------------------------------------------------- */

bool json_u64(const char *text, size_t len, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < len; i++) {
		unsigned digit = (unsigned)(text[i] - '0');

		if (digit > 9 || *v > (UINT64_MAX - digit) / 10)
			return false;
		*v = *v * 10 + digit;
	}
	return len > 0;
}

bool json_i64(const char *text, size_t len, int64_t *v)
{
	bool minus = len && text[0] == '-';
	uint64_t size;

	if (!json_u64(text + minus, len - minus, &size) || size > (uint64_t)INT64_MAX + minus)
		return false;
	*v = minus ? (int64_t)(0 - size) : (int64_t)size;
	return true;
}

/* Value: sign * digits * 10^exponent.  Digits beyond 36 are dropped; no rounding in this file
 * depends on them. */
struct decimal {
	unsigned __int128 digits;
	long exponent;
	bool minus, exact;
};

static bool parse_decimal(const char *p, size_t len, struct decimal *d)
{
	const unsigned __int128 most = (unsigned __int128)1000000000000000000 * 100000000000000000;
	const char *end = p + len;
	bool fraction = false, any = false;
	int64_t written;

	*d = (struct decimal){ .exact = true };
	d->minus = p < end && *p == '-';
	for (p += d->minus; p < end && (*p == '.' || (unsigned)(*p - '0') < 10); p++) {
		if (*p == '.') {
			if (fraction)
				return false;
			fraction = true;
			continue;
		}
		any = true;
		if (d->digits < most) {
			d->digits = d->digits * 10 + (unsigned)(*p - '0');
			d->exponent -= fraction;
		} else {
			d->exact &= *p == '0';
			d->exponent += !fraction;
		}
	}
	if (p == end || !any)
		return any && p == end;
	if ((*p | 0x20) != 'e')
		return false;
	p += 1 + (end - p > 1 && p[1] == '+');
	if (!json_i64(p, (size_t)(end - p), &written) || written > 100000 || written < -100000) {
		d->exponent = p < end && *p == '-' ? -100000 : 100000;
		return p < end;
	}
	d->exponent += (long)written;
	return true;
}

bool json_us_to_ns(const char *text, size_t len, int64_t *ns)
{
	unsigned __int128 rest = 0;
	struct decimal d;

	if (!parse_decimal(text, len, &d))
		return false;
	for (d.exponent += 3; d.exponent > 0 && d.digits; d.exponent--) {
		d.digits *= 10;
		if (d.digits > INT64_MAX)
			return false;
	}
	if (d.exponent < -40)
		d.digits = 0;
	for (; d.exponent < 0 && d.digits; d.exponent++) {
		rest = d.digits % 10;
		d.digits /= 10;
	}
	d.digits += d.exponent == 0 && rest >= 5;
	if (d.digits > INT64_MAX)
		return false;
	*ns = d.minus ? -(int64_t)d.digits : (int64_t)d.digits;
	return true;
}

double json_f64(const char *text, size_t len)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	const uint64_t half = 1000000000000000000; /* 10^18 */
	struct decimal d;
	double v;

	if (!parse_decimal(text, len, &d)) {
		if (memchr(text, 'A', len) || len < 3 || memchr(text, 'a', len))
			return NAN;
		return text[0] == '-' ? -INFINITY : INFINITY;
	}
	/* Both are exact as doubles, so their quotient or product is rounded once. */
	if (d.digits >> 53 || !d.exact || d.exponent < -22 || d.exponent > 22) {
		char copy[128]; /* for strtod(); a very long text is rebuilt from `d` */

		if (len < sizeof(copy))
			snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
		else
			snprintf(copy, sizeof(copy), "%s%llu%018llue%ld", d.minus ? "-" : "",
				 (unsigned long long)(d.digits / half),
				 (unsigned long long)(d.digits % half), d.exponent);
		return strtod(copy, NULL);
	}
	v = (double)(uint64_t)d.digits;
	v = d.exponent < 0 ? v / powers[-d.exponent] : v * powers[d.exponent];
	return d.minus ? -v : v;
}
