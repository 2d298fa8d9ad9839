/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - 64-bit hashes of words and texts for tables in memory.
 *
 * Do not store them on disk, because they may change with the next version.  They do not resist an
 * attacker: tables compare the items that they find, so deliberate collisions only make them
 * slower.
 */
#pragma once

#include "schemas/base/bytes.h"

/* Both are odd and have no pattern in their bits: 2^64 divided by the golden ratio and by the root
 * of x^4 = x + 1. */
#define HASH_A UINT64_C(0x9e3779b97f4a7c15)
#define HASH_B UINT64_C(0xd1b54a32d192ed03)

/* Combines both halves of the 128-bit product, so every bit of either word affects every bit. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Adds one word to a hash, which begins as 0. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
	return hash_fold(hash ^ word ^ HASH_B, HASH_A);
}

static inline uint64_t hash_text(const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)text;
	uint64_t hash = len * HASH_B, tail[2] = { 0, 0 };

	for (; len >= 16; p += 16, len -= 16)
		hash = hash_fold(get_u64(p) ^ HASH_A, get_u64(p + 8) ^ hash);
	if (len)
		memcpy(tail, p, len);
	return hash_word(hash_fold(tail[0] ^ HASH_A, tail[1] ^ hash), hash);
}
