/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/json_text.h"

#include "schemas/base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		/* Plain characters from `at`: no quote, backslash, control character or byte beyond
		 * ASCII. */
		size_t i = at;

		while (i < len && (uint8_t)text[i] >= 0x20 && (uint8_t)text[i] < 0x7F &&
		       text[i] != '"' && text[i] != '\\')
			i++;
		size_t n = i - at;

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

size_t json_put_word(struct buf *b, const char *text)
{
	return json_put_text(b, text, strlen(text));
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
