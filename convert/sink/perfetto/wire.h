/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - writes the packets that are as numerous as events directly into the output.
 *
 * Field numbers are those of schemas/proto/perfetto.proto; unit tests compare them.  A packet is
 *
 *	0A len  40 time  [50 sequence 68 02  5A len  48 type 58 track]  name category flow args
 *
 * The part in brackets is the same for each packet of a file except for the track, and is made once
 * (struct wire_head, and struct wire_track for a subtrack).  Times and lengths are varints padded
 * to a fixed width, so that nothing is moved.  The caller has WIRE_MOST bytes and those of the
 * arguments.
 */
#pragma once

#include "schemas/base/buf.h"

enum perfetto_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };

/* Keys: field << 3 | wire type. */
enum wire_key {
	WIRE_PACKET = 1 << 3 | 2,
	WIRE_TIME = 8 << 3,
	WIRE_SEQUENCE = 10 << 3,
	WIRE_FLAGS = 13 << 3,
	WIRE_EVENT = 11 << 3 | 2,
	WIRE_CATEGORY = 3 << 3,
	WIRE_ARG = 4 << 3 | 2,
	WIRE_TYPE = 9 << 3,
	WIRE_NAME = 10 << 3,
	WIRE_TRACK = 11 << 3,
	WIRE_TEXT = 23 << 3 | 2,
	WIRE_VALUE = 44 << 3 | 1,
	WIRE_FLOW = 47 << 3 | 1,
};
enum {
	WIRE_HEAD = 16,
	WIRE_MOST = 256, /* bytes of a begin and an end without arguments */
	WIRE_SMALL = 40, /* arguments up to this many bytes fit into a small packet */
	WIRE_NEEDS_STATE = 2,
};

/* Both structs are copied as whole words, without a loop. */
struct wire_head {
	uint8_t bytes[WIRE_HEAD], len;
	uint8_t event_at; /* offset of the event's length, which has one or four bytes */
	/* the last time without its lowest 28 bits, and its encoding */
	uint64_t high, high_bytes;
};
/* The encoded number of a track: the only data of each of many subtracks. */
struct wire_track {
	uint8_t bytes[15], len;
};

/* Writes a varint of nine bytes, or ten if the value needs them. */
static inline uint8_t *wire_put_time(uint8_t *p, uint64_t v)
{
	uint64_t x = v & ((UINT64_C(1) << 56) - 1);

	/* spread the bits to seven per byte, by halves */
	x = (x & 0x00fffffff0000000) << 4 | (x & 0x000000000fffffff);
	x = (x & 0x0fffc0000fffc000) << 2 | (x & 0x00003fff00003fff);
	x = (x & 0x3f803f803f803f80) << 1 | (x & 0x007f007f007f007f);
	put_u64(p, x | 0x8080808080808080);
	p[8] = (uint8_t)(v >> 56 & 0x7f);
	if (!(v >> 63))
		return p + 9;
	p[8] |= 0x80;
	p[9] = 1;
	return p + 10;
}

/* Writes the same bytes faster for times that mostly differ only in the lowest 28 bits from the
 * time before. */
static inline uint8_t *wire_put_next_time(uint8_t *p, uint64_t v, struct wire_head *h)
{
	uint64_t high = v >> 28, x = v & 0x0fffffff;
	uint8_t bytes[VARINT_MAX];

	if (__builtin_expect(high != h->high, 0)) {
		if (v >> 63)
			return wire_put_time(p, v);
		wire_put_time(bytes, v);
		h->high = high;
		h->high_bytes = get_u64(bytes + 2) >> 16; /* five bytes, the lowest first */
	}
	x = (x & 0x0fffc000) << 2 | (x & 0x3fff);
	x = (x & 0x3f803f80) << 1 | (x & 0x007f007f);
	put_u32(p, (uint32_t)x | 0x80808080);
	put_u64(p + 4, h->high_bytes);
	return p + 9;
}

static inline void wire_put_len4(uint8_t *p, size_t len)
{
	p[0] = (uint8_t)(len | 0x80);
	p[1] = (uint8_t)(len >> 7 | 0x80);
	p[2] = (uint8_t)(len >> 14 | 0x80);
	p[3] = (uint8_t)(len >> 21);
}

/* Makes the head of packets of one type, up to the track.  `is_wide`: arguments may follow. */
static inline void wire_head_init(struct wire_head *h, enum perfetto_type type, uint32_t sequence,
				  bool is_wide)
{
	uint8_t *p = h->bytes;

	*p++ = WIRE_SEQUENCE;
	p += put_varint(p, sequence);
	if (type != SLICE_END) {
		*p++ = WIRE_FLAGS;
		*p++ = WIRE_NEEDS_STATE;
	}
	*p++ = WIRE_EVENT;
	h->event_at = (uint8_t)(p - h->bytes);
	p += is_wide ? 4 : 1;
	*p++ = WIRE_TYPE;
	*p++ = (uint8_t)type;
	*p++ = WIRE_TRACK;
	h->len = (uint8_t)(p - h->bytes);
	h->high = UINT64_MAX;
}

static inline void wire_track_init(struct wire_track *t, uint64_t track)
{
	t->len = (uint8_t)put_varint(t->bytes, track);
}

static inline uint8_t *wire_put_head(uint8_t *p, const struct wire_head *h,
				     const struct wire_track *t)
{
	memcpy(p, h->bytes, WIRE_HEAD);
	p += h->len;
	memcpy(p, t, sizeof(*t));
	return p + t->len;
}

/* Begins a packet, which wire_end() ends.  `wide` is 0 for at most 127 bytes, or WIRE_WIDE: then
 * lengths have that many more bytes, and the head is that of wide packets. */
enum { WIRE_WIDE = 3 };
static inline uint8_t *wire_begin(uint8_t *packet, uint64_t time_ns, struct wire_head *h,
				  const struct wire_track *t, unsigned wide)
{
	*packet = WIRE_PACKET;
	packet[2 + wide] = WIRE_TIME;
	return wire_put_head(wire_put_next_time(packet + 3 + wide, time_ns, h), h, t);
}

static inline void wire_end(uint8_t *packet, const struct wire_head *h, uint64_t time_ns,
			    const uint8_t *p, unsigned wide)
{
	uint8_t *event = packet + 12 + wide + (time_ns >> 63) + h->event_at;
	size_t len = (size_t)(p - packet - 2 - wide), event_len = (size_t)(p - event - 1 - wide);

	if (wide) {
		wire_put_len4(packet + 1, len);
		wire_put_len4(event, event_len);
	} else {
		packet[1] = (uint8_t)len;
		*event = (uint8_t)event_len;
	}
}

static inline uint8_t *wire_put_category(uint8_t *p, uint64_t category)
{
	*p++ = WIRE_CATEGORY;
	return p + put_varint(p, category);
}

static inline uint8_t *wire_put_name(uint8_t *p, uint64_t name)
{
	*p++ = WIRE_NAME;
	return p + put_varint(p, name);
}

/* Writes a name that is used only once, such as "step 12". */
static inline uint8_t *wire_put_numbered(uint8_t *p, const char *word, uint64_t number)
{
	size_t len = strlen(word);

	*p++ = (uint8_t)(WIRE_TEXT | 0x80);
	*p++ = WIRE_TEXT >> 7;
	memcpy(p + 1, word, len);
	*p = (uint8_t)(len + put_u64_text((char *)p + 1 + len, number));
	return p + 1 + *p;
}

static inline uint8_t *wire_put_flow(uint8_t *p, uint64_t flow)
{
	*p++ = (uint8_t)(WIRE_FLOW | 0x80);
	*p++ = WIRE_FLOW >> 7;
	put_u64(p, flow);
	return p + 8;
}

static inline uint8_t *wire_put_value(uint8_t *p, double value)
{
	*p++ = (uint8_t)(WIRE_VALUE | 0x80);
	*p++ = WIRE_VALUE >> 7;
	put_f64(p, value);
	return p + 8;
}

/* Writes a whole packet that ends a slice; `h` is that of SLICE_END. */
static inline uint8_t *wire_put_end(uint8_t *packet, uint64_t time_ns, struct wire_head *h,
				    const struct wire_track *t)
{
	uint8_t *p = wire_begin(packet, time_ns, h, t, 0);

	wire_end(packet, h, time_ns, p, 0);
	return p;
}

/* Writes a whole packet with a sample of a counter; `h` is that of COUNTER. */
static inline uint8_t *wire_put_sample(uint8_t *packet, uint64_t time_ns, struct wire_head *h,
				       const struct wire_track *t, double value)
{
	uint8_t *p = wire_put_value(wire_begin(packet, time_ns, h, t, 0), value);

	wire_end(packet, h, time_ns, p, 0);
	return p;
}
