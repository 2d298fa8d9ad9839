/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Second bytes that are allowed after each lead byte; all further ones are 80..BF (RFC 3629). */
static const struct lead {
	uint8_t first, last; /* lead bytes of this row */
	uint8_t length, low, high;
} leads[] = {
	{0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
	{0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
	{0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

size_t utf8_sequence(const char *text, size_t len)
{
	const uint8_t *t = (const uint8_t *)text;

	if (!len)
		return 0;
	if (t[0] < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(leads) / sizeof(*leads); i++) {
		const struct lead *l = &leads[i];

		if (t[0] < l->first || t[0] > l->last)
			continue;
		if (len < l->length || t[1] < l->low || t[1] > l->high)
			return 0;
		for (size_t k = 2; k < l->length; k++)
			if ((t[k] & 0xC0) != 0x80)
				return 0;
		return l->length;
	}
	return 0;
}

/* Plain characters from `at`: no quote, backslash, control character or byte beyond ASCII. */
static size_t plain_run(const char *text, size_t at, size_t len)
{
	size_t i = at;

	while (i < len && (uint8_t)text[i] >= 0x20 && (uint8_t)text[i] < 0x7F && text[i] != '"' &&
	       text[i] != '\\')
		i++;
	return i - at;
}

static void put_escaped(struct buf *b, uint8_t c)
{
	static const char *const names[256] = {
		['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\t'] = "\\t", ['\r'] = "\\r",
	};

	if (names[c])
		buf_put_text(b, names[c]);
	else
		buf_putf(b, "\\u%04x", c);
}

size_t json_put_text(struct buf *b, const char *text, size_t len)
{
	size_t repaired = 0, at = 0;
	bool in_bad = false;

	buf_put_byte(b, '"');
	while (at < len) {
		size_t n = plain_run(text, at, len);

		buf_put(b, text + at, n);
		at += n;
		in_bad = in_bad && n == 0;
		if (at == len)
			break;
		n = utf8_sequence(text + at, len - at);
		if (n > 1)
			buf_put(b, text + at, n);
		else if (n == 1)
			put_escaped(b, (uint8_t)text[at]);
		else if (!in_bad)
			buf_put_text(b, "\xEF\xBF\xBD");
		repaired += n == 0 && !in_bad;
		in_bad = n == 0;
		at += n ? n : 1;
	}
	buf_put_byte(b, '"');
	return repaired;
}

void json_put_f64(struct buf *b, double value)
{
	char text[40];

	if (!isfinite(value)) {
		buf_put_text(b, "null");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_put_text(b, text);
	if (!strpbrk(text, ".e"))
		buf_put_text(b, ".0");
}
