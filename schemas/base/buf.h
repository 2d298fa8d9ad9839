/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - a buffer of bytes that grows up to a ceiling.
 *
 * The status sticks: after the first append that does not fit, all appends do nothing, so a writer
 * appends without checks and calls buf_status() once.  The buffer never holds a part of an append.
 * `data` moves when the buffer grows: keep offsets, not pointers.
 */
#pragma once

#include "schemas/base/bytes.h"
#include "schemas/base/status.h"

#include <stdarg.h>

struct buf {
	uint8_t *data;
	size_t len;     /* bytes in use; the caller of buf_reserve() adds what it wrote */
	size_t cap;     /* data has one byte more, for buf_text() */
	size_t ceiling; /* upper limit of `len` */
	enum status status;
};

enum { DECIMAL_MAX = 20 }; /* characters of the longest 64-bit number */

/* Sets up an empty buffer; allocates no memory. */
void buf_init(struct buf *b, size_t ceiling);
void buf_release(struct buf *b);
/* Empties the buffer and resets its status, but keeps the memory. */
void buf_clear(struct buf *b);

/* Returns ST_OK, or why an append was refused: ST_CEILING or ST_MEMORY. */
enum status buf_status(const struct buf *b, struct error *err);

/* Only buf_reserve() calls this. */
uint8_t *buf_grow(struct buf *b, size_t extra);

/* Returns memory for `extra` bytes at data + len, valid until the next append, or NULL. */
static inline uint8_t *buf_reserve(struct buf *b, size_t extra)
{
	/* A failure sets cap to len, so that this one test is enough. */
	if (__builtin_expect(extra < b->cap - b->len, 1))
		return b->data + b->len;
	return buf_grow(b, extra);
}

static inline void buf_put(struct buf *b, const void *p, size_t len)
{
	uint8_t *place = buf_reserve(b, len);

	if (!place || !len)
		return;
	memcpy(place, p, len);
	b->len += len;
}

static inline void buf_put_byte(struct buf *b, uint8_t byte)
{
	uint8_t *place = buf_reserve(b, 1);

	if (!place)
		return;
	*place = byte;
	b->len++;
}

static inline void buf_put_text(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text));
}

static inline void buf_put_u16(struct buf *b, uint16_t v)
{
	buf_put(b, &v, sizeof(v));
}

static inline void buf_put_u32(struct buf *b, uint32_t v)
{
	buf_put(b, &v, sizeof(v));
}

static inline void buf_put_u64(struct buf *b, uint64_t v)
{
	buf_put(b, &v, sizeof(v));
}

static inline void buf_put_f64(struct buf *b, double v)
{
	buf_put(b, &v, sizeof(v));
}

static inline void buf_put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	if (b->cap - b->len >= VARINT_MAX) /* the longest varint fits: write in place */
		b->len += put_varint(b->data + b->len, v);
	else
		buf_put(b, bytes, put_varint(bytes, v));
}

/* Writes a decimal number without a NUL to `out`, which has DECIMAL_MAX bytes, and returns its
 * length. */
size_t put_u64_text(char *out, uint64_t v);

void buf_put_u64_text(struct buf *b, uint64_t v);
void buf_put_i64_text(struct buf *b, int64_t v);
void buf_putf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vputf(struct buf *b, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
/* Appends the same byte `count` times. */
void buf_fill(struct buf *b, uint8_t byte, size_t count);

/* Returns the bytes as a C string, which is valid until the next append and never NULL. */
const char *buf_text(struct buf *b);
