/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts packets that equal an earlier one except for their time, as most begins and ends of a
 * program do.  The event of the earlier packet is found by the bytes after the time, and nothing is
 * parsed.  The first pass skips packets by comparing only the bytes that determine their fields.
 */
#include "convert/source/perfetto/event_fast.h"

#include <stdlib.h>

enum {
	SLOTS = 1 << 14, /* a power of two */
	SAMES = SLOTS / 2,
	PROBES = 4,
	LINE_BYTES = 64, /* of the cache */
	KEY_BYTES = 92,
	SHAPE_WORDS = 8, /* words of a packet; longer ones have no shape */
	SHAPE_BYTES = 8 * SHAPE_WORDS,
};

struct same { /* fills two cache lines */
	uint64_t generation;
	uint32_t sequence, track; /* indices */
	uint32_t shared;          /* id in the spool; 0: an end */
	uint32_t launcher, name;
	uint8_t len, key[KEY_BYTES + 7]; /* the bytes after the time, and zeros */
};
_Static_assert(sizeof(struct same) == 2 * LINE_BYTES, "two lines of the cache");

/* The shape of packets of one length that contain nothing but an event: the bits that must be the
 * same. */
struct shape {
	uint64_t mask[SHAPE_WORDS], bits[SHAPE_WORDS];
};
struct pftrace_sames {
	struct shape shapes[SHAPE_BYTES];
	uint16_t slots[SLOTS]; /* 1 + index into `rows`, by a hash of the key */
	struct same *rows;
	uint32_t count;
};

bool pftrace_sames_new(struct pftrace_reader *r)
{
	r->sames = calloc(1, sizeof(*r->sames));
	/* No packet begins with zeros, so this shape matches none. */
	for (size_t i = 0; r->sames && i < SHAPE_BYTES; i++)
		r->sames->shapes[i].mask[0] = UINT64_MAX;
	if (r->sames)
		r->sames->rows = aligned_alloc(LINE_BYTES, SAMES * sizeof(struct same));
	return r->sames && r->sames->rows;
}

void pftrace_sames_free(struct pftrace_reader *r)
{
	free(r->sames ? r->sames->rows : NULL);
	free(r->sames);
}

/* ---- the first pass --------------------------------------------------------------------- */

static void need_bits(struct shape *s, const uint8_t *packet, const uint8_t *at, const uint8_t *end,
		      uint64_t mask)
{
	for (; at < end; at++) {
		size_t place = (size_t)(at - packet), shift = place % 8 * 8;

		s->mask[place / 8] |= mask << shift;
		s->bits[place / 8] |= (*at & mask) << shift;
	}
}

/* Computes the shape of a packet; `s` may be NULL.  Returns false if the packet may contain more
 * than an event; *s is then invalid. */
static bool shape_of(const struct bytes *packet, struct shape *s)
{
	const uint64_t numbers = 1 << 3 | 1 << 8 | 1 << 10 | 1 << 13; /* fields of TracePacket */
	const uint8_t *at = packet->at, *value;
	struct bytes b = *packet;
	struct pb_field f;

	for (; pb_next_padded(&b, &f); at = b.at) {
		bool is_event = f.wire == PB_BYTES && f.number == 11;

		if (!is_event &&
		    (f.wire != PB_VARINT || f.number > 79 ||
		     (f.number != 79 && (f.number > 63 || !(numbers >> f.number & 1)))))
			return false;
		for (value = at; *value++ & 0x80;) {
		}
		if (s) {
			value = is_event ? f.bytes.at : value;
			need_bits(s, packet->at, at, value, 0xff);
			need_bits(s, packet->at, value, is_event ? value : b.at, 0x80);
		}
	}
	return !b.is_truncated;
}

static inline struct shape *shape_by(struct pftrace_reader *r, const struct bytes *packet)
{
	size_t len = bytes_left(packet);

	return len < SHAPE_BYTES ? &r->sames->shapes[len] : NULL;
}

bool pftrace_is_event_alone(struct pftrace_reader *r, const struct bytes *packet)
{
	struct shape *s = shape_by(r, packet), made = { .mask = { 0 } };

	if (!shape_of(packet, s ? &made : NULL))
		return false;
	if (s)
		*s = made;
	return true;
}

/* Returns the last position at which next_whole() may take a packet from *packets. */
static inline const uint8_t *last_of(const struct bytes *packets)
{
	return bytes_left(packets) > SHAPE_BYTES + 2 ? packets->end - SHAPE_BYTES - 2 : NULL;
}

/* Takes the packet at *at if it is complete and SHAPE_BYTES may be read from its beginning. */
static inline bool next_whole(const uint8_t **at, const uint8_t *last, struct bytes *packet)
{
	const uint8_t *p = *at;
	uint64_t len = p[1];

	if (p > last || *p != (1 << 3 | PB_BYTES))
		return false;
	p += 2;
	if (len >= SHAPE_BYTES &&
	    (!(p = pb_varint(p - 1, &len)) || len > (uint64_t)(last + SHAPE_BYTES - p)))
		return false;
	packet->at = p;
	*at = packet->end = p + len;
	return true;
}

/* Returns nonzero if the packet does not have the shape.  Reads words after the packet, whose bits
 * are ignored. */
static inline uint64_t differs(const struct shape *s, const uint8_t *packet, unsigned from)
{
	uint64_t bits = 0;

	for (unsigned i = from; i < from + SHAPE_WORDS / 2; i++)
		bits |= (get_u64(packet + 8 * i) & s->mask[i]) ^ s->bits[i];
	return bits;
}

enum status pftrace_pass_alone(struct pftrace_reader *r, struct bytes *packets, struct error *err)
{
	const uint8_t *at = packets->at, *last = last_of(packets);
	struct bytes packet = { .is_truncated = false };

	while (next_whole(&at, last, &packet)) {
		const struct shape *s = shape_by(r, &packet);

		if (!s || differs(s, packet.at, 0) ||
		    (packet.end - packet.at > SHAPE_BYTES / 2 &&
		     differs(s, packet.at, SHAPE_WORDS / 2)))
			TRY(r->take(r, &packet, err));
	}
	packets->at = at;
	return ST_OK;
}

/* ---- the second pass -------------------------------------------------------------------- */

struct key { /* the 1 to KEY_BYTES bytes after the time */
	const uint8_t *at;
	size_t len;
	uint64_t last, hash; /* last: the bytes of the last word, and zeros */
};

/* Finds the key of a packet.  Returns false if the packet does not begin with its time, or with the
 * user and its time. */
static inline __attribute__((always_inline)) bool key_of(const struct bytes *packet, uint64_t *time,
							 struct key *k)
{
	const uint8_t *p = packet->at;
	unsigned unused;

	if (*p == 3 << 3 && !(p = pb_varint(p + 1, time)))
		return false;
	if (*p != 8 << 3 || !(p = pb_varint(p + 1, time)))
		return false;
	k->at = p;
	k->len = (size_t)(packet->end - p);
	if (k->len - 1 >= KEY_BYTES)
		return false;
	k->hash = 0;
	for (; packet->end - p > 8; p += 8)
		k->hash = (k->hash ^ k->hash >> 32 ^ get_u64(p)) * HASH_A;
	unused = 64 - 8 * (unsigned)(packet->end - p);
	k->last = get_u64(p) << unused >> unused;
	k->hash = (k->hash ^ k->hash >> 32 ^ k->last) * HASH_A;
	return true;
}

static inline bool is_key(const struct same *x, const struct key *k)
{
	size_t i = 0;

	if (x->len != k->len)
		return false;
	for (; k->len - i > 8; i += 8)
		if (get_u64(k->at + i) != get_u64(x->key + i))
			return false;
	return k->last == get_u64(x->key + i);
}

/* Finds the row of a key.  Returns NULL if there is none, and a slot that it may use. */
static inline struct same *find(struct pftrace_sames *s, const struct key *k, uint16_t **slot)
{
	for (unsigned i = 0; i < PROBES; i++) {
		*slot = &s->slots[((k->hash >> 50) + i) % SLOTS];
		if (!**slot)
			return NULL;
		if (is_key(&s->rows[**slot - 1], k))
			return &s->rows[**slot - 1];
	}
	return NULL;
}

enum status pftrace_same_learn(struct pftrace_reader *r, const struct bytes *packet, uint64_t time,
			       const struct pftrace_sequence *q, const struct pftrace_track *t,
			       const struct event *e, bool launches, struct error *err)
{
	struct pftrace_sames *s = r->sames;
	struct same made = { .generation = q->generation,
			     .sequence = (uint32_t)(q - r->sequences),
			     .track = (uint32_t)(t - r->tracks) };
	struct same *x;
	uint64_t first;
	uint16_t *slot;
	struct key k;

	if (!key_of(packet, &first, &k) || !time || first != time)
		return ST_OK;
	x = find(s, &k, &slot);
	if (e) {
		made.name = e->name;
		made.launcher = launches ? e->track : 0;
		if (x && x->shared && !memcmp(spool_shared(r->to.spool, x->shared), e, sizeof(*e)))
			made.shared = x->shared;
		else
			TRY(spool_share(r->to.spool, e, &made.shared, err));
		if (!made.shared)
			return ST_OK;
	}
	if (s->count == SAMES && !*slot) {
		memset(s->slots, 0, sizeof(s->slots));
		s->count = 0;
	}
	if (!*slot)
		*slot = (uint16_t)++s->count;
	made.len = (uint8_t)k.len;
	memcpy(made.key, k.at, k.len);
	s->rows[*slot - 1] = made;
	return ST_OK;
}

static inline enum status begin_same(struct pftrace_reader *r, struct pftrace_track *t,
				     const struct same *x, int64_t at_ns, struct error *err)
{
	struct pftrace_open *o = &r->opens[r->unused_open - 1];
	uint32_t place = r->unused_open;

	if (!place || (uint64_t)(at_ns + IMPORT_TIME_MOST) > 2 * (uint64_t)IMPORT_TIME_MOST ||
	    (t->open && r->opens[t->open - 1].begin_ns > at_ns)) {
		struct event e = *spool_shared(r->to.spool, x->shared);

		return pftrace_begin(r, t, &e, 0, NULL, at_ns, err);
	}
	r->unused_open = o->below;
	o->launcher = x->launcher;
	o->name = x->name;
	o->begin_ns = at_ns;
	o->below = t->open;
	t->open = place;
	return spool_begin_shared(r->to.spool, x->shared, (uint64_t)(at_ns + SPOOL_BIAS), &o->place,
				  err);
}

static inline enum status end_same(struct pftrace_reader *r, struct pftrace_sequence *q,
				   struct pftrace_track *t, int64_t at_ns, struct error *err)
{
	uint32_t place = t->open;
	struct pftrace_open *o = &r->opens[place - 1];

	if (!place || o->begin_ns > at_ns || o->place == NO_ID)
		return pftrace_end(r, q, t, at_ns, err);
	t->open = o->below;
	o->below = r->unused_open;
	r->unused_open = place;
	return import_finish(&r->to, o->place, o->begin_ns, at_ns, o->launcher, err);
}

enum status pftrace_take_sames(struct pftrace_reader *r, struct bytes *packets, struct error *err)
{
	const uint8_t *at = packets->at, *last = last_of(packets);
	struct bytes packet = { .is_truncated = false };

	while (next_whole(&at, last, &packet)) {
		struct pftrace_sequence *q;
		struct pftrace_track *t;
		const struct same *x;
		uint16_t *slot;
		uint64_t time;
		int64_t at_ns;
		struct key k;

		if (!key_of(&packet, &time, &k) || !(x = find(r->sames, &k, &slot)) ||
		    (q = &r->sequences[x->sequence])->generation != x->generation ||
		    (t = &r->tracks[x->track])->is_unordered)
			TRY(r->take(r, &(struct bytes){ .at = packet.at, .end = packet.end }, err));
		else if (!pftrace_time_of(r, q, time, &at_ns))
			pftrace_lose(r, LOSS_NO_TIME);
		else if (x->shared)
			TRY(begin_same(r, t, x, at_ns, err));
		else
			TRY(end_same(r, q, t, at_ns, err));
	}
	packets->at = at;
	return ST_OK;
}
