/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/xplane/file.h"

#include "convert/input/input.h"

#include <stdlib.h>

enum status xplane_file_init(struct xplane_file *f, const struct input *in, struct error *err)
{
	*f = (struct xplane_file){ .in = in, .size = input_size(in) };
	f->window = malloc(XPLANE_WINDOW);
	if (!f->window)
		return fail_memory(err);
	return ST_OK;
}

void xplane_file_release(struct xplane_file *f)
{
	free(f->window);
	*f = (struct xplane_file){ 0 };
}

struct xplane_span xplane_file_all(const struct xplane_file *f)
{
	return (struct xplane_span){ .end = f->size };
}

/* `len` bytes from `at`, which must be in the file. */
static enum status show(struct xplane_file *f, uint64_t at, size_t len, const uint8_t **bytes,
			struct error *err)
{
	if (at < f->window_at || at + len > f->window_at + f->window_len) {
		f->window_at = at;
		f->window_len = 0;
		TRY(input_read_at(f->in, at, f->window, XPLANE_WINDOW, &f->window_len, err));
		if (f->window_len < len)
			return fail(err, ST_IO, at, "the file became shorter while it was read");
	}
	*bytes = f->window + (at - f->window_at);
	return ST_OK;
}

enum status xplane_file_next(struct xplane_file *f, struct xplane_span *s, struct xplane_field *out,
			     bool *more, struct error *err)
{
	uint64_t left = s->end - s->at, key;
	size_t head = left < 2 * VARINT_MAX ? (size_t)left : 2 * VARINT_MAX;
	const uint8_t *p = NULL;
	struct bytes b;

	*more = false;
	*out = (struct xplane_field){ 0 };
	if (!left || s->is_truncated)
		return ST_OK;
	TRY(show(f, s->at, head, &p, err));
	b = bytes_init(p, head);
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
		return ST_OK;
	}
	s->at += (uint64_t)(b.at - p);
	*more = true;
	if (out->wire != PB_BYTES)
		return ST_OK;
	s->is_truncated = out->u64 > s->end - s->at;
	out->span.at = s->at;
	s->at = out->span.end = s->is_truncated ? s->end : s->at + out->u64;
	return ST_OK;
}

enum status xplane_file_find(struct xplane_file *f, struct xplane_span *s, uint32_t number,
			     struct xplane_field *out, bool *more, struct error *err)
{
	do
		TRY(xplane_file_next(f, s, out, more, err));
	while (*more && (out->number != number || out->wire != PB_BYTES));
	return ST_OK;
}

enum status xplane_file_bytes(struct xplane_file *f, const struct xplane_span *s, struct bytes *out,
			      bool *fits, struct error *err)
{
	size_t len = (size_t)(s->end - s->at);
	const uint8_t *p = NULL;

	*out = bytes_init(NULL, 0);
	*fits = s->end - s->at <= XPLANE_WINDOW;
	if (!*fits || !len)
		return ST_OK;
	TRY(show(f, s->at, len, &p, err));
	*out = bytes_init(p, len);
	return ST_OK;
}
