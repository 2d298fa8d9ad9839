/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/crc32c.h"

#include <string.h>

/* Bit by bit from the polynomial, sharing nothing with the code. */
static uint32_t oracle(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;
	int bit;

	while (len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return ~crc;
}

/* RFC 3720, B.4, and the usual check value. */
void test_crc32c_known(void)
{
	uint8_t data[32];
	size_t i;

	CHECK_U64(crc32c(0, "123456789", 9), 0xe3069283);
	CHECK_U64(crc32c_software(0, "123456789", 9), 0xe3069283);
	CHECK_U64(crc32c(0, NULL, 0), 0);
	CHECK_U64(crc32c_software(0, NULL, 0), 0);
	memset(data, 0, sizeof(data));
	CHECK_U64(crc32c(0, data, 32), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	CHECK_U64(crc32c(0, data, 32), 0x62a8ab43);
	for (i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	CHECK_U64(crc32c(0, data, 32), 0x46dd794e);
	CHECK_U64(crc32c_software(0, data, 32), 0x46dd794e);
}

void test_crc32c_all_lengths(void)
{
	uint8_t data[300];
	uint32_t seed = 1;
	size_t i, at;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	for (at = 0; at < 9; at++)
		for (i = 0; at + i <= sizeof(data); i++) {
			uint32_t want = oracle(data + at, i);

			if (!CHECK_U64(crc32c(0, data + at, i), want) ||
			    !CHECK_U64(crc32c_software(0, data + at, i), want))
				return;
		}
	/* every entry of every slice: one byte, then eight places of it */
	for (i = 0; i < 256; i++)
		for (at = 0; at < 8; at++) {
			uint8_t word[8] = { 0 };

			word[at] = (uint8_t)i;
			CHECK_U64(crc32c_software(0, word, 8), oracle(word, 8));
		}
}

void test_crc32c_goes_on(void)
{
	static const char text[] = "a checksum may be taken in pieces of any size";
	uint32_t whole = crc32c(0, text, sizeof(text));
	size_t cut;

	for (cut = 0; cut <= sizeof(text); cut++) {
		uint32_t crc = crc32c(0, text, cut);

		CHECK_U64(crc32c(crc, text + cut, sizeof(text) - cut), whole);
		CHECK_U64(crc32c_software(crc, text + cut, sizeof(text) - cut), whole);
	}
}

/* The header of every tfevents file's first record: length 24, then its masked checksum. */
void test_crc32c_masked(void)
{
	uint32_t crc = oracle((const uint8_t *)"\x18\0\0\0\0\0\0\0", 8);

	CHECK_U64(crc32c_masked("\x18\0\0\0\0\0\0\0", 8), 0x224b7fa3);
	CHECK_U64(crc32c_masked("\x18\0\0\0\0\0\0\0", 8),
		  (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8U));
}
