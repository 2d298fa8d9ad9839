/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/page/page.h"

#include "schemas/base/utf8.h"

#include <wchar.h>

const char *plain_glyph(uint32_t c)
{
	static const struct {
		uint32_t c;
		char plain[3];
	} rows[] = {
		{ 0x2588, "#" },  { 0x2593, "+" }, { 0x2592, "=" },  { 0x2591, "-" },
		{ 0x00b7, "." },  { 0x2571, "/" }, { 0x2013, "-" },  { 0x2014, "-" },
		{ 0x2026, "~" },  { 0x00b5, "u" }, { 0x2264, "<=" }, { 0x2192, "->" },
		{ 0x2265, ">=" }, { 0x2212, "-" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].c == c)
			return rows[i].plain;
	return "?";
}

unsigned utf8_columns(uint32_t c)
{
	if (c < 0x80 || utf8_is_control(c))
		return 1;
	int columns = wcwidth((wchar_t)c);
	if (columns < 0) /* not in this locale */
		return (unsigned)strlen(plain_glyph(c));
	return columns > 1 ? 2 : 1;
}

unsigned text_width(const char *words)
{
	unsigned width = 0;

	while (*words)
		if (!((uint8_t)*words & 0x80))
			width++, words++;
		else
			width += utf8_columns(utf8_next(&words));
	return width;
}

void share_out(const double *parts, size_t count, unsigned total, unsigned *columns)
{
	double sum = 0, rest[16] = { 0 };
	unsigned given = 0;
	size_t i, best;

	for (i = 0; i < count; i++)
		sum += parts[i];
	for (i = 0; i < count; i++) {
		double exact = sum > 0 ? parts[i] / sum * total : 0;

		columns[i] = (unsigned)exact;
		given += columns[i];
		if (i < 16)
			rest[i] = exact - columns[i];
	}
	for (; given < total && sum > 0; given++) {
		for (best = 0, i = 1; i < count && i < 16; i++)
			if (rest[i] > rest[best])
				best = i;
		columns[best]++;
		rest[best] = -1;
	}
}
