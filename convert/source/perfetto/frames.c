/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/input.h"
#include "convert/source/perfetto/internal.h"

#include <stdlib.h>
#include <zlib.h>

enum {
	FRAMES_BYTES = 64 * 1024,
	PACKET_MOST = 64 << 20, /* larger packets are skipped */
	HEAD_MOST = 2 * VARINT_MAX,
	TRACE_PACKET = 1,
};

struct pftrace_frames {
	struct input *in; /* NULL: `z` decompresses the bytes */
	uint64_t at;
	z_stream *z;
	bool is_packed_over, is_damaged;
	uint8_t *data;
	size_t cap, begin, end;
};

/* Reads more bytes after those in memory; *got is 0 at the end. */
static enum status more(struct pftrace_frames *f, size_t *got, struct error *err)
{
	uint8_t *to = f->data + f->end;
	size_t cap = f->cap - f->end;
	int code;

	*got = 0;
	if (f->in) {
		TRY(input_read_at(f->in, f->at, to, cap, got, err));
		f->at += *got;
		return ST_OK;
	}
	while (!f->is_packed_over && !*got) {
		f->z->next_out = to;
		f->z->avail_out = (uInt)cap;
		code = inflate(f->z, Z_NO_FLUSH);
		*got = cap - f->z->avail_out;
		f->is_packed_over = code != Z_OK || (!*got && !f->z->avail_in);
		f->is_damaged = f->is_packed_over && code != Z_STREAM_END;
	}
	return ST_OK;
}

/* Reads until `want` bytes are in memory, if the input has them.  The memory grows only with what
 * was read, because a length may be damaged. */
static enum status want_bytes(struct pftrace_frames *f, size_t want, struct error *err)
{
	size_t got = 1;

	if (f->end - f->begin >= want)
		return ST_OK;
	memmove(f->data, f->data + f->begin, f->end - f->begin);
	f->end -= f->begin;
	f->begin = 0;
	while (f->end < want && got) {
		if (f->end == f->cap) {
			uint8_t *grown = realloc(f->data, f->cap * 2 + PB_PADDING);

			if (!grown)
				return fail_memory(err);
			f->data = grown;
			f->cap *= 2;
		}
		TRY(more(f, &got, err));
		f->end += got;
	}
	return ST_OK;
}

/* Skips bytes without holding them in memory.  *is_there is false if the input ends before. */
static enum status pass(struct pftrace_frames *f, uint64_t len, bool *is_there, struct error *err)
{
	*is_there = true;
	while (len && *is_there) {
		size_t part = f->end - f->begin;

		if (!part) {
			TRY(want_bytes(f, 1, err));
			*is_there = f->end > f->begin;
			continue;
		}
		part = part < len ? part : (size_t)len;
		f->begin += part;
		len -= part;
	}
	return ST_OK;
}

static enum status cut(const struct pftrace_frames *f, struct error *fault)
{
	fail(fault, ST_TRUNCATED, f->in ? f->at - (f->end - f->begin) : NOWHERE,
	     "a Perfetto trace that is truncated in a packet");
	return ST_END;
}

/* Reads the next packet.  Returns ST_END at the end of the input or if it sets *fault. */
static enum status next_packet(struct pftrace_reader *r, struct pftrace_frames *f,
			       struct bytes *packet, struct error *fault, struct error *err)
{
	for (;;) {
		struct bytes b;
		uint64_t key, len;
		bool is_there;

		if (f->end - f->begin < HEAD_MOST)
			TRY(want_bytes(f, HEAD_MOST, err));
		if (f->end == f->begin)
			return ST_END;
		b = bytes_init(f->data + f->begin, f->end - f->begin);
		key = take_varint(&b);
		len = take_varint(&b);
		if (b.is_truncated)
			return cut(f, fault);
		if ((key & 7) != PB_BYTES || !(key >> 3)) {
			fail(fault, ST_FORMAT, f->in ? f->at - (f->end - f->begin) : NOWHERE,
			     "a damaged Perfetto trace: no packet begins here");
			return ST_END;
		}
		f->begin = (size_t)(b.at - f->data);
		if (key >> 3 != TRACE_PACKET || len > PACKET_MOST) {
			r->damaged += key >> 3 == TRACE_PACKET;
			TRY(pass(f, len, &is_there, err));
			if (!is_there)
				return cut(f, fault);
			continue;
		}
		if (f->end - f->begin < len)
			TRY(want_bytes(f, (size_t)len, err));
		if (f->end - f->begin < len)
			return cut(f, fault);
		*packet = bytes_init(f->data + f->begin, (size_t)len);
		f->begin += (size_t)len;
		return ST_OK;
	}
}

static enum status each_packet(struct pftrace_reader *r, struct pftrace_frames *f,
			       struct error *fault, struct error *err)
{
	enum status status = f->data ? ST_OK : fail_memory(err);
	struct bytes packet;

	while (status == ST_OK) {
		if (r->run) {
			size_t len = f->end - f->begin;

			packet = bytes_init(f->data + f->begin,
					    len < PACKET_MOST ? len : PACKET_MOST);
			status = r->run(r, &packet, err);
			f->begin = (size_t)(packet.at - f->data);
		}
		if (status == ST_OK)
			status = next_packet(r, f, &packet, fault, err);
		if (status == ST_OK)
			status = r->take(r, &packet, err);
	}
	free(f->data);
	return status == ST_END ? ST_OK : status;
}

enum status pftrace_unpack(struct pftrace_reader *r, struct bytes packed, struct error *err)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)packed.at,
		       .avail_in = (uInt)bytes_left(&packed) };
	struct pftrace_frames f = { .z = &z,
				    .cap = FRAMES_BYTES,
				    .data = calloc(1, FRAMES_BYTES + PB_PADDING) };
	struct error fault = { 0 };
	enum status status;

	if (r->is_unpacking || inflateInit2(&z, MAX_WBITS + 32) != Z_OK) {
		free(f.data);
		if (!r->is_unpacking)
			return fail_memory(err);
		r->damaged++; /* compressed packets must not be nested */
		return ST_OK;
	}
	r->is_unpacking = true;
	status = each_packet(r, &f, &fault, err);
	r->damaged += fault.status != ST_OK || f.is_damaged;
	r->is_unpacking = false;
	inflateEnd(&z);
	return status;
}

enum status pftrace_packets(struct pftrace_reader *r, struct input *in, struct error *fault,
			    struct error *err)
{
	struct pftrace_frames f = { .in = in,
				    .cap = FRAMES_BYTES,
				    .data = calloc(1, FRAMES_BYTES + PB_PADDING) };

	return each_packet(r, &f, fault, err);
}
