/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "schemas/base/json_text.h"
#include "schemas/base/utf8.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void quote_is(const char *text, size_t len, const char *want, size_t repaired)
{
	struct buf b;

	buf_init(&b, 1 << 16);
	CHECK_U64(json_put_text(&b, text, len), repaired);
	CHECK_STR(buf_text(&b), want);
	buf_release(&b);
}

#define Q(text, want, repaired) quote_is(text, sizeof(text) - 1, want, repaired)

void test_json_text_quotes(void)
{
	Q("", "\"\"", 0);
	Q("abc", "\"abc\"", 0);
	Q("a\"b\\c/", "\"a\\\"b\\\\c/\"", 0);
	Q("\n\t\r\b\x1f\x7f", "\"\\n\\t\\r\\u0008\\u001f\\u007f\"", 0);
	Q("a\0b", "\"a\\u0000b\"", 0);
	Q("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"", 0);
	Q("a\xff\xfe"
	  "b",
	  "\"a\xef\xbf\xbd"
	  "b\"",
	  1); /* one for a bad piece */
	Q("\xff"
	  "a\xff",
	  "\"\xef\xbf\xbd"
	  "a\xef\xbf\xbd\"",
	  2);
	Q("\xe2\x82", "\"\xef\xbf\xbd\"", 1);         /* cut off */
	Q("\xed\xa0\x80", "\"\xef\xbf\xbd\"", 1);     /* a surrogate */
	Q("\xc0\xaf\xf5\x80", "\"\xef\xbf\xbd\"", 1); /* overlong, too large */
}

/* By the arithmetic of code points, not by tables. */
static size_t plain_sequence(const uint8_t *t, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = t[0] < 0x80   ? 1
		   : t[0] < 0xc0 ? 0
		   : t[0] < 0xe0 ? 2
		   : t[0] < 0xf0 ? 3
		   : t[0] < 0xf8 ? 4
				 : 0;
	uint32_t code = n == 1 ? t[0] : n ? t[0] & (0xff >> (n + 1)) : 0;

	if (!n || n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((t[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (t[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

void test_json_text_utf8(void)
{
	static const uint8_t thirds[] = { 0x00, 0x7f, 0x80, 0xbf, 0xc0 };
	unsigned differ = 0;
	uint8_t t[4];

	for (unsigned pair = 0; pair < 65536; pair++)
		for (unsigned more = 0; more < 25; more++) {
			t[0] = (uint8_t)(pair >> 8);
			t[1] = (uint8_t)pair;
			t[2] = thirds[more / 5];
			t[3] = thirds[more % 5];
			for (size_t len = 1; len <= 4; len++)
				differ += utf8_sequence((char *)t, len) != plain_sequence(t, len);
		}
	CHECK_U64(differ, 0);
	CHECK_U64(utf8_sequence("", 0), 0);
}

void test_utf8_characters(void)
{
	static const char damaged[] = "\xff\xed\xa0\x80z\xc3";
	static const uint32_t expected[] = { 0xfffd, 0xfffd, 0xfffd, 0xfffd, 'z', 0xfffd };
	const char *at = damaged;
	unsigned differ = 0;
	char bytes[5];

	for (uint32_t c = 1; c < 0x120000; c++) {
		bool is_one = c < 0x110000 && (c < 0xd800 || c > 0xdfff);
		size_t len = utf8_put(bytes, c);

		bytes[len] = 0;
		at = bytes;
		differ += utf8_next(&at) != (is_one ? c : UTF8_DAMAGED) || at != bytes + len;
	}
	CHECK_U64(differ, 0);
	at = damaged;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		CHECK_U64(utf8_next(&at), expected[i]);
	CHECK_U64((uint64_t)(at - damaged), sizeof(damaged) - 1);
}

/* Whatever the bytes: a reader takes it, and all that was valid comes back. */
void test_json_text_random(void)
{
	uint64_t state = 77;
	struct buf b;
	char text[40];

	buf_init(&b, 1 << 16);
	for (unsigned round = 0; round < 20000; round++) {
		size_t len = random_u64(&state) % sizeof(text), repaired;
		const cJSON *string;
		cJSON *read;

		for (size_t i = 0; i < len; i++)
			text[i] = (char)(random_u64(&state) % 255 + 1); /* cJSON ends at a NUL */
		buf_clear(&b);
		buf_put_byte(&b, '[');
		repaired = json_put_text(&b, text, len);
		buf_put_byte(&b, ']');
		read = cJSON_ParseWithOpts(buf_text(&b), NULL, true);
		string = cJSON_GetArrayItem(read, 0);
		if (!CHECK(cJSON_IsString(string))) {
			cJSON_Delete(read);
			break;
		}
		for (const char *at = string->valuestring; *at;) {
			size_t n = utf8_sequence(at, strlen(at));

			if (!CHECK(n > 0))
				break;
			at += n;
		}
		if (!repaired)
			CHECK(strlen(string->valuestring) == len &&
			      memcmp(string->valuestring, text, len) == 0);
		cJSON_Delete(read);
	}
	buf_release(&b);
}

static void number_is(double value, const char *want)
{
	struct buf b;

	buf_init(&b, 1000);
	json_put_f64(&b, value);
	CHECK_STR(buf_text(&b), want);
	buf_release(&b);
}

void test_json_text_numbers(void)
{
	uint64_t state = 11, bits;
	struct buf b;
	double value;

	number_is(0, "0.0");
	number_is(1, "1.0");
	number_is(-2.5, "-2.5");
	number_is(0.1, "0.1");
	number_is(1.0 / 3, "0.3333333333333333");
	number_is(1e300, "1e+300");
	number_is(INFINITY, "null");
	number_is(-INFINITY, "null");
	number_is(NAN, "null");
	buf_init(&b, 1000);
	for (unsigned i = 0; i < 20000; i++) {
		bits = random_u64(&state);
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		buf_clear(&b);
		json_put_f64(&b, value);
		if (!CHECK(strtod(buf_text(&b), NULL) == value) ||
		    !CHECK(strpbrk(buf_text(&b), ".e") != NULL))
			break;
	}
	buf_release(&b);
}
