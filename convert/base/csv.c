/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/csv.h"

#include "schemas/base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 32 /* no number is longer as text */ };

static bool is_number(const char *text, size_t len)
{
	char copy[NUMBER_BYTES + 1], *end;

	if (len < 2 || len > NUMBER_BYTES || !strchr(".0123456789", text[1]))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	strtod(copy, &end);
	return end == copy + len;
}

static bool needs_quotes(const char *text, size_t len)
{
	bool needs = len && (text[0] == ' ' || text[len - 1] == ' ');

	for (size_t i = 0; i < len; i++)
		needs |= (uint8_t)text[i] < 0x20 || text[i] == '"' || text[i] == ',';
	return needs;
}

void csv_put_text(struct buf *out, const char *text, size_t len)
{
	const char *quote = needs_quotes(text, len) ? "\"" : "";
	size_t from = 0;

	buf_put_text(out, quote);
	if (len && text[0] && strchr("=+-@\t\r\n", text[0]) && !is_number(text, len))
		buf_put_byte(out, '\'');
	for (size_t at = 0, n; at < len; at += n ? n : 1) {
		uint8_t c = (uint8_t)text[at];

		n = c && c < 0x80 ? 1 : c ? utf8_sequence(text + at, len - at) : 0;
		if (n && c != '"')
			continue;
		buf_put(out, text + from, at - from);
		buf_put_text(out, n ? "\"" : "\xef\xbf\xbd");
		from = n ? at : at + 1; /* the next part repeats the quote */
	}
	if (len > from)
		buf_put(out, text + from, len - from);
	buf_put_text(out, quote);
}
