/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/utf8.h"

#include "schemas/base/hash.h"

#include <stdio.h>
#include <string.h>

/* Second bytes that are allowed after each lead byte; all further ones are 80..BF (RFC 3629). */
static const struct lead {
	uint8_t first, last; /* lead bytes of this row */
	uint8_t length, low, high;
} leads[] = {
	{ 0xC2, 0xDF, 2, 0x80, 0xBF }, { 0xE0, 0xE0, 3, 0xA0, 0xBF }, { 0xE1, 0xEC, 3, 0x80, 0xBF },
	{ 0xED, 0xED, 3, 0x80, 0x9F }, { 0xEE, 0xEF, 3, 0x80, 0xBF }, { 0xF0, 0xF0, 4, 0x90, 0xBF },
	{ 0xF1, 0xF3, 4, 0x80, 0xBF }, { 0xF4, 0xF4, 4, 0x80, 0x8F },
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

uint32_t utf8_next(const char **text)
{
	const uint8_t *p = (const uint8_t *)*text;

	if (*p && *p < 0x80)
		return (uint8_t) * (*text)++;
	size_t len = utf8_sequence(*text, strnlen(*text, 4));
	uint32_t c = len > 1 ? p[0] & (0x7fu >> len) : p[0];

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	*text += len ? len : 1;
	return len ? c : UTF8_DAMAGED;
}

/* The first byte has the lead bits of the sequence, and each further byte six bits. */
size_t utf8_put(char out[4], uint32_t c)
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = UTF8_DAMAGED;
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = len; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[len] | c);
	return len;
}

bool utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void utf8_tame(char *text)
{
	const char *from = text;

	while (*from) {
		const char *at = from;
		uint32_t c = utf8_next(&from);
		size_t len = (size_t)(from - at);

		if (utf8_is_control(c) || (len == 1 && c == UTF8_DAMAGED)) {
			*text++ = '?';
		} else {
			memmove(text, at, len);
			text += len;
		}
	}
	*text = '\0';
}

/* Returns whether a byte continues a character, so that a text must not be split before it. */
static bool is_inside(char c)
{
	return ((uint8_t)c & 0xc0) == 0x80;
}

size_t utf8_shorten(const char *text, size_t len, char *out, size_t cap)
{
	size_t begin = cap / 2 - 24, end = cap - begin - 24, at; /* 24: the middle and the NUL */

	if (len < cap) {
		memcpy(out, text, len);
		out[len] = '\0';
		return len;
	}
	while (begin && is_inside(text[begin]))
		begin--;
	while (end && is_inside(text[len - end]))
		end--;
	memcpy(out, text, begin);
	at = begin + (size_t)snprintf(out + begin, cap - begin, "...%016llx...",
				      (unsigned long long)hash_text(text, len));
	memcpy(out + at, text + len - end, end);
	out[at + end] = '\0';
	return at + end;
}
