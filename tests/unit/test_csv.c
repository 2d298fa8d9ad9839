/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "convert/base/csv.h"

#include <string.h>

static void check_cell(const char *text, size_t len, const char *wanted)
{
	struct buf out;

	buf_init(&out, 1024);
	csv_put_text(&out, text, len);
	CHECK_STR(buf_text(&out), wanted);
	buf_release(&out);
}

void test_csv_quotes(void)
{
	check_cell("", 0, "");
	check_cell("sgemm<float, 4>", 15, "\"sgemm<float, 4>\"");
	check_cell("\"", 1, "\"\"\"\"");
	check_cell("a\"b", 3, "\"a\"\"b\"");
	check_cell(" a", 2, "\" a\"");
	check_cell("a\nb", 3, "\"a\nb\"");
	check_cell("a\0b", 3,
		   "\"a\xef\xbf\xbd"
		   "b\"");
	check_cell("a\xff\xc3\xa9", 4, "a\xef\xbf\xbd\xc3\xa9");
	check_cell("\xc3", 1, "\xef\xbf\xbd");
}

void test_csv_formula(void)
{
	static const struct {
		const char *text, *cell;
	} rows[] = {
		{ "=1", "'=1" },       { "@f", "'@f" },       { "-f", "'-f" },
		{ "+", "'+" },         { "-2+3", "'-2+3" },   { "-2", "-2" },
		{ "+.5e3", "+.5e3" },  { "-inf", "'-inf" },   { "a=1", "a=1" },
		{ "\t=", "\"'\t=\"" }, { "\r=", "\"'\r=\"" }, { "\n=", "\"'\n=\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check_cell(rows[i].text, strlen(rows[i].text), rows[i].cell);
}
