/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/buf.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUF_FIRST = 256 };

/* Writing two digits at a time halves the number of divisions. */
static const char digit_pairs[] = "00010203040506070809"
				  "10111213141516171819"
				  "20212223242526272829"
				  "30313233343536373839"
				  "40414243444546474849"
				  "50515253545556575859"
				  "60616263646566676869"
				  "70717273747576777879"
				  "80818283848586878889"
				  "90919293949596979899";

void buf_init(struct buf *b, size_t ceiling)
{
	*b = (struct buf){ .ceiling = ceiling };
}

void buf_release(struct buf *b)
{
	free(b->data);
	buf_init(b, b->ceiling);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->status = ST_OK;
}

enum status buf_status(const struct buf *b, struct error *err)
{
	if (b->status == ST_CEILING)
		return fail(err, ST_CEILING, NOWHERE, "a buffer is limited to %zu bytes",
			    b->ceiling);
	return b->status == ST_OK ? ST_OK : fail_memory(err);
}

static uint8_t *buf_refuse(struct buf *b, enum status why)
{
	b->status = why;
	b->cap = b->len; /* makes buf_reserve() call buf_grow(), which refuses until buf_clear() */
	return NULL;
}

uint8_t *buf_grow(struct buf *b, size_t extra)
{
	if (b->status != ST_OK)
		return NULL;
	if (extra > b->ceiling - b->len)
		return buf_refuse(b, ST_CEILING);
	if (b->data && extra <= b->cap - b->len)
		return b->data + b->len;
	size_t cap = b->cap < BUF_FIRST ? BUF_FIRST : b->cap;
	while (cap < b->len + extra) /* doubling keeps appends cheap */
		cap = cap > b->ceiling / 2 ? b->ceiling : cap * 2;
	cap = cap < b->ceiling ? cap : b->ceiling;
	if (cap == SIZE_MAX)
		return buf_refuse(b, ST_MEMORY);
	uint8_t *data = realloc(b->data, cap + 1);
	if (!data)
		return buf_refuse(b, ST_MEMORY);
	b->data = data;
	b->cap = cap;
	return data + b->len;
}

/* Returns the number of decimal digits, estimated from the bits of v and corrected by the table. */
static unsigned decimal_digits(uint64_t v)
{
	static const uint64_t powers[] = {
		0ULL,
		10ULL,
		100ULL,
		1000ULL,
		10000ULL,
		100000ULL,
		1000000ULL,
		10000000ULL,
		100000000ULL,
		1000000000ULL,
		10000000000ULL,
		100000000000ULL,
		1000000000000ULL,
		10000000000000ULL,
		100000000000000ULL,
		1000000000000000ULL,
		10000000000000000ULL,
		100000000000000000ULL,
		1000000000000000000ULL,
		10000000000000000000ULL,
	};
	/* 1233 / 4096 is slightly less than log10(2). */
	unsigned digits = (unsigned)(64 - __builtin_clzll(v | 1)) * 1233 >> 12;

	return digits + (v >= powers[digits]);
}

/* The 32-bit divisions do not depend on each other, so the processor overlaps them. */
static void put_8_digits(char *p, uint32_t v)
{
	uint32_t high = v / 10000, low = v % 10000;

	memcpy(p, digit_pairs + high / 100 * 2, 2);
	memcpy(p + 2, digit_pairs + high % 100 * 2, 2);
	memcpy(p + 4, digit_pairs + low / 100 * 2, 2);
	memcpy(p + 6, digit_pairs + low % 100 * 2, 2);
}

size_t put_u64_text(char *out, uint64_t v)
{
	unsigned digits = decimal_digits(v);
	char *p = out + digits;
	uint32_t rest;

	for (; v >= 100000000; v /= 100000000)
		put_8_digits(p -= 8, (uint32_t)(v % 100000000));
	for (rest = (uint32_t)v; rest >= 100; rest /= 100)
		memcpy(p -= 2, digit_pairs + rest % 100 * 2, 2);
	if (rest >= 10)
		memcpy(p - 2, digit_pairs + rest * 2, 2);
	else
		p[-1] = (char)('0' + rest);
	return digits;
}

void buf_put_u64_text(struct buf *b, uint64_t v)
{
	char text[DECIMAL_MAX];

	if (b->cap - b->len >= DECIMAL_MAX) /* the longest number fits: write in place */
		b->len += put_u64_text((char *)b->data + b->len, v);
	else
		buf_put(b, text, put_u64_text(text, v));
}

void buf_put_i64_text(struct buf *b, int64_t v)
{
	char text[1 + DECIMAL_MAX] = "-";
	size_t sign = v < 0;

	/* Negate as unsigned: -INT64_MIN would overflow. */
	buf_put(b, text, sign + put_u64_text(text + sign, v < 0 ? 0 - (uint64_t)v : (uint64_t)v));
}

void buf_vputf(struct buf *b, const char *fmt, va_list args)
{
	va_list again;
	uint8_t *place = buf_reserve(b, 0);

	if (!place)
		return;
	va_copy(again, args);
	/* `data` has one byte beyond cap, which takes the NUL. */
	int len = vsnprintf((char *)place, b->cap - b->len + 1, fmt, args);
	if (len < 0) {
		buf_refuse(b, ST_MEMORY);
	} else if ((size_t)len <= b->cap - b->len) {
		b->len += (size_t)len;
	} else {
		place = buf_reserve(b, (size_t)len);
		if (place) {
			vsnprintf((char *)place, (size_t)len + 1, fmt, again);
			b->len += (size_t)len;
		}
	}
	va_end(again);
}

void buf_putf(struct buf *b, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buf_vputf(b, fmt, args);
	va_end(args);
}

void buf_fill(struct buf *b, uint8_t byte, size_t count)
{
	uint8_t *place = buf_reserve(b, count);

	if (!place)
		return;
	memset(place, byte, count);
	b->len += count;
}

const char *buf_text(struct buf *b)
{
	if (!b->data)
		return "";
	b->data[b->len] = '\0';
	return (const char *)b->data;
}
