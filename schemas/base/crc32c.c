/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler computes the tables.  A CRC is linear, so the entry of a byte is the xor of the
 * entries of its bits, and only those eight entries of each table are listed below.
 */
#include "schemas/base/crc32c.h"

#include "schemas/base/bytes.h"

#define BIT(n, i, entry) ((n) >> (i)&1 ? (entry) : 0)
#define ENTRY(n, a, b, c, d, e, f, g, h)                                                           \
	(BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^ BIT(n, 5, f) ^ \
	 BIT(n, 6, g) ^ BIT(n, 7, h))
#define ROW4(n, ...)                                                                               \
	ENTRY(n, __VA_ARGS__), ENTRY((n) + 1, __VA_ARGS__), ENTRY((n) + 2, __VA_ARGS__),           \
		ENTRY((n) + 3, __VA_ARGS__)
#define ROW16(n, ...)                                                                              \
	ROW4(n, __VA_ARGS__), ROW4((n) + 4, __VA_ARGS__), ROW4((n) + 8, __VA_ARGS__),              \
		ROW4((n) + 12, __VA_ARGS__)
#define ROW64(n, ...)                                                                              \
	ROW16(n, __VA_ARGS__), ROW16((n) + 16, __VA_ARGS__), ROW16((n) + 32, __VA_ARGS__),         \
		ROW16((n) + 48, __VA_ARGS__)
#define SLICE(...)                                                                                 \
	{                                                                                          \
		ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), ROW64(128, __VA_ARGS__),            \
			ROW64(192, __VA_ARGS__)                                                    \
	}

/* slices[k][n] is the CRC of byte n followed by k zero bytes; polynomial 0x1EDC6F41, bits
 * reversed. */
static const uint32_t slices[8][256] = {
	SLICE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
	      0x82f63b78),
	SLICE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
	      0xfbc3faf9),
	SLICE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
	      0x8b277743),
	SLICE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
	      0x52a0c93f),
	SLICE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
	      0x6ea2d55c),
	SLICE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
	      0x1c08b7d6),
	SLICE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
	      0xf56e0ef4),
	SLICE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
	      0x34019664),
};

uint32_t crc32c_software(uint32_t crc, const void *p, size_t len)
{
	const uint8_t *at = p;

	crc = ~crc;
	for (; len >= 8; at += 8, len -= 8) {
		uint64_t w = get_u64(at) ^ crc;

		crc = slices[7][w & 0xff] ^ slices[6][w >> 8 & 0xff] ^ slices[5][w >> 16 & 0xff] ^
		      slices[4][w >> 24 & 0xff] ^ slices[3][w >> 32 & 0xff] ^
		      slices[2][w >> 40 & 0xff] ^ slices[1][w >> 48 & 0xff] ^ slices[0][w >> 56];
	}
	while (len--)
		crc = crc >> 8 ^ slices[0][(crc ^ (*at++)) & 0xff];
	return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2,crc32"))) static uint32_t
crc32c_instruction(uint32_t crc, const void *p, size_t len)
{
	const uint8_t *at = p;
	uint64_t wide = ~crc;

	for (; len >= 8; at += 8, len -= 8)
		wide = __builtin_ia32_crc32di(wide, get_u64(at));
	crc = (uint32_t)wide;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *at++);
	return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *p, size_t len)
{
	/* This may run in a constructor, before libgcc has detected the processor. */
	__builtin_cpu_init();
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_instruction(crc, p, len);
	return crc32c_software(crc, p, len);
}

#else

uint32_t crc32c(uint32_t crc, const void *p, size_t len)
{
	return crc32c_software(crc, p, len);
}

#endif

uint32_t crc32c_masked(const void *p, size_t len)
{
	uint32_t crc = crc32c(0, p, len);

	return (crc >> 15 | crc << 17) + 0xa282ead8U;
}
