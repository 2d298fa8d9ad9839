/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON scanner on any bytes: it ends, and what it calls good is read the same way twice:
 * token by token, and minified as one value and read again.
 */
#include "convert/source/json/scan.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_token(struct buf *out, const struct json *token)
{
	buf_put_byte(out, (uint8_t)(token->type == JSON_ODD ? JSON_STRING : token->type));
	if (token->type == JSON_KEY || token->type == JSON_STRING)
		json_decode(token->text, token->len, out);
	else
		buf_put(out, token->text, token->len);
	buf_put_byte(out, 0xff);
}

/* False: the text is not good. */
static int read_tokens(const char *text, size_t len, struct buf *out)
{
	struct json_scan s;
	struct json token;
	struct error err;
	int64_t ns;

	json_open_text(&s, text, len);
	do {
		if (json_next(&s, &token, &err) != ST_OK) {
			if (err.at > len)
				abort();
			return 0;
		}
		if (token.type == JSON_NUMBER) {
			json_f64(token.text, token.len);
			json_us_to_ns(token.text, token.len, &ns);
		}
		put_token(out, &token);
	} while (token.type != JSON_END);
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first, again, text;
	const char *bytes = (const char *)data;

	buf_init(&first, 64 << 20);
	buf_init(&again, 64 << 20);
	buf_init(&text, 64 << 20);
	if (size >= 3 && data[0] == 0xef) /* a mark before the text is not part of the value */
		return 0;
	if (read_tokens(bytes, size, &first)) {
		json_minify(bytes, size, &text);
		if (!read_tokens(buf_text(&text), text.len, &again))
			abort();
		if (again.len != first.len || memcmp(again.data, first.data, first.len) != 0)
			abort();
	}
	buf_release(&first);
	buf_release(&again);
	buf_release(&text);
	return 0;
}
