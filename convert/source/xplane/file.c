/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/input.h"
#include "convert/source/xplane/internal.h"

/* Returns `len` bytes at `at`, which must be in the file.  After an error the result is empty and
 * is_truncated. */
static struct bytes show(struct xplane_file *f, uint64_t at, size_t len)
{
	struct bytes none = bytes_init(NULL, 0);

	none.is_truncated = true;
	if (at < f->window_at || at + len > f->window_at + f->window_len) {
		f->window_at = at;
		f->window_len = 0;
		if (f->fault.status != ST_OK || input_read_at(f->in, at, f->window, XPLANE_WINDOW,
							      &f->window_len, &f->fault) != ST_OK)
			return none;
		if (f->window_len < len)
			fail(&f->fault, ST_IO, at, "the file became shorter while it was read");
		if (f->window_len < len)
			return none;
	}
	return bytes_init(f->window + (at - f->window_at), len);
}

bool xplane_next(struct xplane_file *f, struct xplane_span *s, struct xplane_field *out)
{
	uint64_t left = s->end - s->at, key;
	struct bytes b;
	const uint8_t *begin;

	*out = (struct xplane_field){ 0 };
	if (!left || s->is_truncated)
		return false;
	b = show(f, s->at, left < 2 * VARINT_MAX ? (size_t)left : 2 * VARINT_MAX);
	begin = b.at;
	key = take_varint(&b);
	out->number = (uint32_t)(key >> 3);
	out->wire = (enum pb_wire)(key & 7);
	if (out->wire == PB_FIXED64)
		out->u64 = take_u64(&b);
	else if (out->wire == PB_FIXED32)
		out->u64 = take_u32(&b);
	else if (out->wire == PB_VARINT || out->wire == PB_BYTES)
		out->u64 = take_varint(&b);
	else
		b.is_truncated = true;
	if (b.is_truncated || !out->number || key >> 32) {
		s->at = s->end;
		s->is_truncated = true;
		return false;
	}
	s->at += (uint64_t)(b.at - begin);
	if (out->wire != PB_BYTES)
		return true;
	s->is_truncated = out->u64 > s->end - s->at;
	out->span.at = s->at;
	s->at = out->span.end = s->is_truncated ? s->end : s->at + out->u64;
	return true;
}

bool xplane_find(struct xplane_file *f, struct xplane_span *s, uint32_t number,
		 struct xplane_field *out)
{
	while (xplane_next(f, s, out))
		if (out->number == number && out->wire == PB_BYTES)
			return true;
	return false;
}

struct bytes xplane_bytes(struct xplane_file *f, const struct xplane_span *s)
{
	struct bytes none = bytes_init(NULL, 0);

	none.is_truncated = s->end - s->at > XPLANE_WINDOW;
	return none.is_truncated || s->at == s->end ? none
						    : show(f, s->at, (size_t)(s->end - s->at));
}
