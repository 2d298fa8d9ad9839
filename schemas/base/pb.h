/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb.h - protobuf's wire format, for messages that there are as many of as events.
 *
 * Everything that is not per event goes through protobuf-c and the .proto files beside this; the
 * tests hold both against each other.  Writing appends to a buf; reading walks the fields of one
 * message in a `struct bytes` and copies nothing.  Format: protobuf's encoding document; a key is
 * field << 3 | wire type.
 */
#ifndef SCHEMAS_BASE_PB_H
#define SCHEMAS_BASE_PB_H

#include "schemas/base/buf.h"
#include "schemas/base/bytes.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

static inline void pb_put_key(struct buf *b, uint32_t field, enum pb_wire wire)
{
	buf_put_varint(b, (uint64_t)field << 3 | wire);
}

/* uint64, int64 (as two's complement), bool and enum */
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
 * A message within: pb_begin(), its fields, pb_end() with what pb_begin() gave.  One byte is kept
 * for the length; a message of 128 bytes and more is moved up once.
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
 * The next field of a message; false at its end, or with b->is_truncated set where it is damaged: a
 * wire type that is none (groups too), field 0, or a length beyond the message.
 */
bool pb_next(struct bytes *b, struct pb_field *out);

#endif
