/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/json_text.h"
#include "schemas/base/utf8.h"

#include <ctype.h>
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
		/* Find the plain characters from `at` on: no quote, backslash, control character or
		 * byte beyond ASCII. */
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

enum { DEEPEST = 64 };

struct scan {
	const char *at, *end;
};

static bool take_value(struct scan *s, unsigned depth);

static char next_char(struct scan *s)
{
	while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at)
		s->at++;
	return s->at < s->end ? *s->at : '\0';
}

static bool take_char(struct scan *s, char c)
{
	if (next_char(s) != c)
		return false;
	s->at++;
	return true;
}

static bool take_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

/* Parses the rest of an escape sequence, after its backslash. */
static bool take_escape(struct scan *s)
{
	char c = s->at < s->end ? *s->at++ : '\0';

	if (c != 'u')
		return c && strchr("\"\\/bfnrt", c);
	if (s->end - s->at < 4)
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (!isxdigit((unsigned char)*s->at++))
			return false;
	return true;
}

static bool take_string(struct scan *s)
{
	if (!take_char(s, '"'))
		return false;
	while (s->at < s->end && *s->at != '"') {
		size_t len = utf8_sequence(s->at, (size_t)(s->end - s->at));

		if (!len || (unsigned char)*s->at < 0x20)
			return false;
		s->at += len;
		if (s->at[-1] == '\\' && !take_escape(s))
			return false;
	}
	return s->at++ < s->end;
}

static bool take_digits(struct scan *s)
{
	const char *begin = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > begin;
}

/* Parses an array or object from its opening bracket on; members of an object have names. */
static bool take_members(struct scan *s, char close, unsigned depth)
{
	s->at++;
	if (take_char(s, close))
		return true;
	do {
		if (close == '}' && !(take_string(s) && take_char(s, ':')))
			return false;
		if (!take_value(s, depth + 1))
			return false;
	} while (take_char(s, ','));
	return take_char(s, close);
}

static bool take_value(struct scan *s, unsigned depth)
{
	char c = next_char(s);

	if (depth > DEEPEST)
		return false;
	if (c == '{')
		return take_members(s, '}', depth);
	if (c == '[')
		return take_members(s, ']', depth);
	if (c == '"')
		return take_string(s);
	if (c == 't' || c == 'f' || c == 'n')
		return take_word(s, "true") || take_word(s, "false") || take_word(s, "null");
	take_word(s, "-");
	if (!take_word(s, "0") && !take_digits(s))
		return false;
	if (take_word(s, ".") && !take_digits(s))
		return false;
	if (!take_word(s, "e") && !take_word(s, "E"))
		return true;
	if (!take_word(s, "+"))
		take_word(s, "-");
	return take_digits(s);
}

bool json_is_value(const char *text, size_t len)
{
	struct scan s = { text, text + len };

	return take_value(&s, 0) && next_char(&s) == '\0' && s.at == s.end;
}
