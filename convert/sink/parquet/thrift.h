/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thrift.h - Thrift's compact protocol, as far as Parquet's headers and footer need it.  Fields of
 * a struct are written in the order of their numbers; each struct has its own `last` number.
 */
#pragma once

#include "schemas/base/buf.h"

enum thrift_type {
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_TEXT = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12
};

struct thrift {
	struct buf *out;
	int last; /* number of the previous field; 0 at the begin of a struct */
};

static inline void thrift_field(struct thrift *t, int number, enum thrift_type type)
{
	buf_put_byte(t->out, (uint8_t)((number - t->last) << 4 | (int)type));
	t->last = number;
}

/* Appends an integer of either size as a varint in zigzag encoding. */
static inline void thrift_put_int(struct thrift *t, int64_t v)
{
	buf_put_varint(t->out, zigzag(v));
}

static inline void thrift_i32(struct thrift *t, int number, int64_t v)
{
	thrift_field(t, number, THRIFT_I32);
	thrift_put_int(t, v);
}

static inline void thrift_i64(struct thrift *t, int number, int64_t v)
{
	thrift_field(t, number, THRIFT_I64);
	thrift_put_int(t, v);
}

static inline void thrift_put_text(struct thrift *t, const char *text)
{
	size_t len = strlen(text);

	buf_put_varint(t->out, len);
	buf_put(t->out, text, len);
}

static inline void thrift_text(struct thrift *t, int number, const char *text)
{
	thrift_field(t, number, THRIFT_TEXT);
	thrift_put_text(t, text);
}

/* Begins a list; the caller appends `count` items without field headers. */
static inline void thrift_list(struct thrift *t, int number, enum thrift_type of, size_t count)
{
	thrift_field(t, number, THRIFT_LIST);
	if (count < 15) {
		buf_put_byte(t->out, (uint8_t)(count << 4 | (size_t)of));
		return;
	}
	buf_put_byte(t->out, (uint8_t)(0xf0 | (int)of));
	buf_put_varint(t->out, count);
}

/* Begins an inner struct.  Its fields are written through the result until thrift_end(). */
static inline struct thrift thrift_struct(struct thrift *t, int number)
{
	thrift_field(t, number, THRIFT_STRUCT);
	return (struct thrift){ t->out, 0 };
}

static inline void thrift_end(struct thrift *t)
{
	buf_put_byte(t->out, 0);
}
