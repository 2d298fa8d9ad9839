/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/json_text.h"

#include <string.h>

void test_log_json_check(void)
{
	static const char *const good[] = {
		"1",
		"-0.5e+3",
		" [1, 2 ,{\"a\":[]}] ",
		"\"\\u00e9 \\n \xc3\xa9\"",
		"true",
		"null",
		"{}",
		"{\"a\":{\"b\":false}}",
		"0",
		"1E5",
		"\"\"",
	};
	static const char *const bad[] = {
		"",        "01",       "1.",     ".5",      "-",           "+1",         "[1,]",
		"{\"a\"}", "{a:1}",    "\"",     "\"\\x\"", "tru",         "[",          "]",
		"1 2",     "\"\xff\"", "\"\n\"", "nan",     "\"\\u12g4\"", "{\"a\":1,}", "'a'",
	};
	char deep[200];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!CHECK(json_is_value(good[i], strlen(good[i]))))
			CHECK_STR(good[i], "good");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!CHECK(!json_is_value(bad[i], strlen(bad[i]))))
			CHECK_STR(bad[i], "bad");
	CHECK(!json_is_value("1\0", 2));
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	CHECK(!json_is_value(deep, 200));
	CHECK(json_is_value(deep + 40, 120));
}
