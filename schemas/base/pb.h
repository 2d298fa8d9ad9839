/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb.h - protobuf's wire format for messages that are as numerous as events.
 *
 * All other messages go through protobuf-c and the .proto files of schemas/proto; tests compare
 * both.  Writing appends to a buf.  Reading walks the fields of one message in a `struct bytes` and
 * copies nothing.  A key is field << 3 | wire type, as in protobuf's encoding document.
 */
#pragma once

#include "schemas/base/buf.h"
#include "schemas/base/bytes.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

static inline void pb_put_key(struct buf *b, uint32_t field, enum pb_wire wire)
{
	buf_put_varint(b, (uint64_t)field << 3 | wire);
}

/* Appends a uint64, int64 (as two's complement), bool or enum. */
static inline void pb_put_u64(struct buf *b, uint32_t field, uint64_t v)
{
	pb_put_key(b, field, PB_VARINT);
	buf_put_varint(b, v);
}

static inline void pb_put_fixed64(struct buf *b, uint32_t field, uint64_t v)
{
	pb_put_key(b, field, PB_FIXED64);
	buf_put_u64(b, v);
}

static inline void pb_put_f64(struct buf *b, uint32_t field, double v)
{
	pb_put_key(b, field, PB_FIXED64);
	buf_put_f64(b, v);
}

static inline void pb_put_bytes(struct buf *b, uint32_t field, const void *p, size_t len)
{
	pb_put_key(b, field, PB_BYTES);
	buf_put_varint(b, len);
	buf_put(b, p, len);
}

static inline void pb_put_text(struct buf *b, uint32_t field, const char *text)
{
	pb_put_bytes(b, field, text, strlen(text));
}

/*
 * Write a nested message by pb_begin(), its fields, and pb_end() with the result of pb_begin().
 * One byte is reserved for the length; a message of 128 bytes or more is moved once.
 */
size_t pb_begin(struct buf *b, uint32_t field);
void pb_end(struct buf *b, size_t begin);

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t u64;       /* PB_VARINT, PB_FIXED64, PB_FIXED32: the bits */
	struct bytes bytes; /* PB_BYTES; borrowed */
};

/*
 * Reads the next field of a message.  Returns false at its end, and also sets b->is_truncated if it
 * is damaged: an unknown wire type (groups included), field 0, or a length beyond the message.
 */
bool pb_next_slowly(struct bytes *b, struct pb_field *out);

/* Reads a varint of up to nine bytes, all of which must be readable, and returns the byte after it,
 * or NULL if it is longer. */
static inline const uint8_t *pb_varint(const uint8_t *p, uint64_t *out)
{
	uint64_t x, last;

	if (*p < 0x80) {
		*out = *p;
		return p + 1;
	}
	x = get_u64(p);
	last = ~x & 0x8080808080808080;
	if (last) { /* keep only the bytes up to the first one without a high bit */
		p += (unsigned)__builtin_ctzll(last) / 8 + 1;
		x &= last ^ (last - 1);
	} else if (p[8] >= 0x80) {
		return NULL;
	} else {
		last = (uint64_t)p[8] << 56;
		p += 9;
	}
	x &= 0x7f7f7f7f7f7f7f7f;
	x = (x & 0x007f007f007f007f) | (x & 0x7f007f007f007f00) >> 1;
	x = (x & 0x00003fff00003fff) | (x & 0x3fff00003fff0000) >> 2;
	x = (x & 0x000000000fffffff) | (x & 0x0fffffff00000000) >> 4;
	*out = x | (last & UINT64_C(0x7f00000000000000));
	return p;
}

enum { PB_PADDING = 16 };
/* Does the same if PB_PADDING bytes after the message are readable; their values do not matter. */
static inline bool pb_next_padded(struct bytes *b, struct pb_field *out)
{
	const uint8_t *p = b->at;
	uint32_t key;

	if (p == b->end)
		return false;
	key = *p++;
	if (key >= 0x80) {
		key = (key & 0x7f) | (uint32_t)*p << 7;
		if (*p++ >= 0x80)
			return pb_next_slowly(b, out);
	}
	out->number = key >> 3;
	out->wire = (enum pb_wire)(key & 7);
	if (out->wire == PB_FIXED64) {
		out->u64 = get_u64(p);
		p += 8;
	} else if (out->wire > PB_BYTES || !(p = pb_varint(p, &out->u64))) {
		return pb_next_slowly(b, out);
	}
	out->bytes = (struct bytes){ .at = p, .end = p };
	if (!out->number || p > b->end)
		return pb_next_slowly(b, out);
	if (out->wire == PB_BYTES) {
		if (out->u64 > (uint64_t)(b->end - p))
			return pb_next_slowly(b, out);
		out->bytes.end = p += out->u64;
		out->u64 = 0;
	}
	b->at = p;
	return true;
}

static inline bool pb_next(struct bytes *b, struct pb_field *out)
{
	return b->end - b->at < PB_PADDING ? pb_next_slowly(b, out) : pb_next_padded(b, out);
}
