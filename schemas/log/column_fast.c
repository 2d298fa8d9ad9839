/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorises the loops of column_form.h */
#endif
#include <immintrin.h>
#endif

#include "schemas/log/column.h"
#include "schemas/log/column_form.h"

#if defined(__x86_64__)
#define FAST __attribute__((target("avx2,bmi,bmi2,popcnt"), flatten))

FAST void column_form_fast(const struct column_words *c, enum transform transform, uint32_t rows,
			   struct column_form *form)
{
	form_rows(c, transform, rows, form);
}

/* Spreads the bits of each word over bytes, seven to a byte, and sets the top bit of all bytes but
 * the last. */
FAST size_t column_put_fast(uint8_t *out, const uint64_t *words, uint32_t rows, uint64_t bits)
{
	const uint64_t sevens = 0x7f7f7f7f7f7f7f7f;
	uint8_t *p = out;

	for (uint32_t i = 0; i < rows; i++) {
		size_t more = varint_size(words[i]) - 1;

		put_u64(p, _pdep_u64(words[i], sevens) | _bzhi_u64(~sevens, (unsigned)(8 * more)));
		p += more + 1;
	}
	return (size_t)(p - out);
}

enum { AT_ONCE = 64 }; /* bytes whose top bits are tested together */

/* Finds the ends of all varints before any is read, so that no read depends on the one before. */
FAST uint32_t column_take_fast(struct column_reader *r, uint64_t *out, uint32_t count)
{
	const uint8_t *p = r->at;
	uint32_t i = 0;

	while (i < count && r->end - p >= AT_ONCE + 8) {
		const uint8_t *base = p;
		const __m256i *blocks = (const __m256i *)(const void *)p;
		uint64_t low = (uint32_t)_mm256_movemask_epi8(_mm256_loadu_si256(blocks));
		uint64_t high = (uint32_t)_mm256_movemask_epi8(_mm256_loadu_si256(blocks + 1));

		for (uint64_t last = ~(low | high << 32); last && i < count; last &= last - 1) {
			const uint8_t *next = base + __builtin_ctzll(last) + 1;
			unsigned size = (unsigned)(next - p);

			if (size > 8)
				goto out;
			out[i++] = _pext_u64(_bzhi_u64(get_u64(p), 8 * size), 0x7f7f7f7f7f7f7f7f);
			p = next;
		}
		if (p == base)
			break;
	}
out:
	r->at = p;
	return i;
}
#endif
