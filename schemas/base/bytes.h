/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - little-endian numbers in raw memory, and a cursor that cannot overrun.
 *
 * A reader reads all fields that it expects and checks `is_truncated` once, at the end.  The first
 * read that goes beyond the end sets it and empties the cursor, so every later read returns 0 or
 * NULL.  The cursor borrows the bytes and never copies them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "logs are little-endian and so are the machines they are read on"
#endif

enum { VARINT_MAX = 10 }; /* bytes of the longest varint */

struct bytes {
	const uint8_t *at, *end;
	bool is_truncated;
};

/* Read and write a number at `p`, which may have any alignment; the caller has checked the size. */
static inline uint16_t get_u16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t get_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void put_u16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void put_u64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void put_f64(uint8_t *p, double v)
{
	memcpy(p, &v, sizeof(v));
}

/* Writes LEB128, as protobuf does.  `p` has VARINT_MAX bytes; returns the number of bytes
 * written. */
static inline size_t put_varint(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		p[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	p[n++] = (uint8_t)v;
	return n;
}

static inline size_t varint_size(uint64_t v)
{
	/* A byte holds 7 bits, and 9/64 is slightly less than 1/7. */
	return (size_t)(64 - __builtin_clzll(v | 1)) * 9 / 64 + 1;
}

static inline uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (0 - ((uint64_t)v >> 63));
}

static inline int64_t unzigzag(uint64_t v)
{
	return (int64_t)((v >> 1) ^ (0 - (v & 1)));
}

/* Returns a cursor over `len` bytes at `p`, which may be NULL if `len` is 0. */
static inline struct bytes bytes_init(const void *p, size_t len)
{
	const uint8_t *at = p ? p : (const void *)"";

	return (struct bytes){ .at = at, .end = at + len };
}

static inline size_t bytes_left(const struct bytes *b)
{
	return (size_t)(b->end - b->at);
}

/* Returns the next `len` bytes, or sets is_truncated and returns NULL if fewer are left. */
static inline const uint8_t *take_bytes(struct bytes *b, uint64_t len)
{
	const uint8_t *p = b->at;

	if (len > bytes_left(b) || b->is_truncated) {
		b->at = b->end;
		b->is_truncated = true;
		return NULL;
	}
	b->at += len;
	return p;
}

/* Returns the next `len` bytes as a text without a NUL; see take_bytes(). */
static inline const char *take_text(struct bytes *b, uint64_t len)
{
	return (const char *)take_bytes(b, len);
}

/* Returns a cursor over the next `len` bytes, or sets is_truncated and returns an empty one if
 * fewer are left. */
static inline struct bytes take_part(struct bytes *b, uint64_t len)
{
	const uint8_t *p = take_bytes(b, len);
	struct bytes part = bytes_init(p, p ? (size_t)len : 0);

	part.is_truncated = !p;
	return part;
}

static inline uint8_t take_u8(struct bytes *b)
{
	const uint8_t *p = take_bytes(b, 1);
	return p ? *p : 0;
}

static inline uint16_t take_u16(struct bytes *b)
{
	const uint8_t *p = take_bytes(b, 2);
	return p ? get_u16(p) : 0;
}

static inline uint32_t take_u32(struct bytes *b)
{
	const uint8_t *p = take_bytes(b, 4);
	return p ? get_u32(p) : 0;
}

static inline uint64_t take_u64(struct bytes *b)
{
	const uint8_t *p = take_bytes(b, 8);
	return p ? get_u64(p) : 0;
}

/*
 * Reads a LEB128 number.  More than VARINT_MAX bytes, or more than 64 bits, count as truncated.
 * Padding with zeros within those ten bytes is valid, because writers of protobuf reserve space for
 * lengths that way.
 */
static inline uint64_t take_varint(struct bytes *b)
{
	uint64_t v = 0;
	unsigned shift;

	if (b->at < b->end && *b->at < 0x80) /* most varints have one byte */
		return *b->at++;
	for (shift = 0; shift < 70 && b->at < b->end; shift += 7) {
		uint8_t byte = *b->at++;

		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	b->at = b->end;
	b->is_truncated = true;
	return 0;
}

static inline int64_t take_zigzag(struct bytes *b)
{
	return unzigzag(take_varint(b));
}
