/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/pb.h"

size_t pb_begin(struct buf *b, uint32_t field)
{
	pb_put_key(b, field, PB_BYTES);
	buf_put_byte(b, 0);
	return b->len;
}

void pb_end(struct buf *b, size_t begin)
{
	if (b->status != ST_OK || begin > b->len)
		return;
	size_t len = b->len - begin;
	size_t more = varint_size(len) - 1;
	if (more) {
		if (!buf_reserve(b, more))
			return;
		memmove(b->data + begin + more, b->data + begin, len);
		b->len += more;
	}
	put_varint(b->data + begin - 1, len);
}

static bool take_value(struct bytes *b, struct pb_field *out)
{
	out->u64 = 0;
	switch (out->wire) {
	case PB_VARINT:
		out->u64 = take_varint(b);
		return true;
	case PB_FIXED64:
		out->u64 = take_u64(b);
		return true;
	case PB_FIXED32:
		out->u64 = take_u32(b);
		return true;
	case PB_BYTES:
		out->bytes = take_part(b, take_varint(b));
		return true;
	}
	return false;
}

bool pb_next_slowly(struct bytes *b, struct pb_field *out)
{
	if (!bytes_left(b) || b->is_truncated)
		return false;
	uint64_t key = take_varint(b);
	out->number = (uint32_t)(key >> 3);
	out->wire = (enum pb_wire)(key & 7);
	out->bytes = bytes_init(NULL, 0);
	if (!out->number || key >> 32 || !take_value(b, out)) {
		b->at = b->end;
		b->is_truncated = true;
	}
	return !b->is_truncated;
}
