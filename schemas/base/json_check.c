/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/json_check.h"

#include "schemas/base/json_text.h"
#include "schemas/base/utf8.h"

#include <string.h>

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

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Takes what follows a backslash. */
static bool take_escape(struct scan *s)
{
	char c = s->at < s->end ? *s->at++ : '\0';

	if (c != 'u')
		return c && strchr("\"\\/bfnrt", c);
	if (s->end - s->at < 4)
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (!is_hex(*s->at++))
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

/* Takes the content of brackets; a member of an object has a name. */
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
