/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/page/width.h"

#include "schemas/base/utf8.h"

/* East Asian wide and emoji, coarsely: names of kernels and phases hold them by accident only. */
bool utf8_is_wide(uint32_t c)
{
	return (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
	       (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
	       (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
	       (c >= 0x1f300 && c < 0x1f9ff) || (c >= 0x20000 && c < 0x3fffe);
}

bool utf8_is_unprintable(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfffd || (c >= 0x300 && c < 0x370) ||
	       (c >= 0x200b && c < 0x2010) || (c >= 0x2028 && c < 0x202f) ||
	       (c >= 0x2060 && c < 0x2070) || (c >= 0xfe00 && c < 0xfe10) || c == 0xfeff ||
	       c >= 0xe0000;
}

unsigned text_width(const char *words)
{
	unsigned width = 0;

	while (*words) {
		uint32_t c = utf8_next(&words);

		width += utf8_is_wide(c) && !utf8_is_unprintable(c) ? 2 : 1;
	}
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
