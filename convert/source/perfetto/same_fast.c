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
	AHEAD = 32,      /* packets that are looked up at a time */
	LINE_BYTES = 64, /* of the cache */
	KEY_WORDS = 14,
	KEY_SHORT = 2,   /* most keys have at most so many words */
	SHAPE_WORDS = 8, /* words of a packet; longer ones have no shape */
	SHAPE_BYTES = 8 * SHAPE_WORDS,
};

struct same {                    /* a unit, or more if its key is long */
	uint64_t key[KEY_SHORT]; /* the bytes after the time, as key_word() returns them */
	uint32_t generation;
	uint32_t track;    /* index */
	uint16_t sequence; /* index */
	uint16_t shared;   /* id in the spool; 0: an end */
	uint8_t len;       /* bytes of the key */
	bool launches;
	uint64_t rest[KEY_WORDS - KEY_SHORT]; /* of the key */
};
enum { UNIT_BYTES = offsetof(struct same, rest) };
_Static_assert(2 * UNIT_BYTES == LINE_BYTES && sizeof(struct same) % UNIT_BYTES == 0, "units");

/* The shape of packets of one length that contain nothing but an event: the bits that must be the
 * same. */
struct shape {
	uint64_t mask[SHAPE_WORDS], bits[SHAPE_WORDS];
};
struct pftrace_sames {
	struct shape shapes[SHAPE_BYTES];
	uint16_t slots[SLOTS]; /* number of a row's first unit, from 1, by a hash of the key */
	uint8_t *units;        /* of `count` rows */
	uint32_t count, unit_count;
	uint32_t learned; /* grows when a row is changed */
};

static inline struct same *row_at(const struct pftrace_sames *s, uint16_t slot)
{
	return (struct same *)(void *)(s->units + (size_t)slot * UNIT_BYTES);
}

bool pftrace_sames_new(struct pftrace_reader *r)
{
	r->sames = calloc(1, sizeof(*r->sames));
	/* No packet begins with zeros, so this shape matches none. */
	for (size_t i = 0; r->sames && i < SHAPE_BYTES; i++)
		r->sames->shapes[i].mask[0] = UINT64_MAX;
	if (r->sames)
		r->sames->units = aligned_alloc(LINE_BYTES, (SAMES + 1) * sizeof(struct same));
	if (!r->sames || !r->sames->units)
		return false;
	memset(r->sames->units, 0, UNIT_BYTES); /* equals no key */
	return true;
}

void pftrace_sames_free(struct pftrace_reader *r)
{
	free(r->sames ? r->sames->units : NULL);
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
	*packet = (struct bytes){ .at = p, .end = p + len };
	*at = packet->end;
	return true;
}

typedef uint64_t two_words __attribute__((vector_size(2 * sizeof(uint64_t))));

static inline two_words two_at(const void *at)
{
	two_words words;

	memcpy(&words, at, sizeof(words));
	return words;
}

/* Returns nonzero if half of the packet does not have the shape.  Reads words after the packet,
 * whose bits are ignored. */
static inline uint64_t differs(const struct shape *s, const uint8_t *packet, unsigned half)
{
	unsigned i = half * SHAPE_WORDS / 2;
	two_words bits = (two_at(packet + 8 * i) & two_at(s->mask + i)) ^ two_at(s->bits + i);

	bits |= (two_at(packet + 8 * i + 16) & two_at(s->mask + i + 2)) ^ two_at(s->bits + i + 2);
	return bits[0] | bits[1];
}

enum status pftrace_pass_alone(struct pftrace_reader *r, struct bytes *packets, struct error *err)
{
	const uint8_t *at = packets->at, *last = last_of(packets);
	struct bytes packet;

	while (next_whole(&at, last, &packet)) {
		const struct shape *s = shape_by(r, &packet);

		if (!s || differs(s, packet.at, 0) ||
		    (packet.end - packet.at > SHAPE_BYTES / 2 && differs(s, packet.at, 1)))
			TRY(r->take(r, &(struct bytes){ .at = packet.at, .end = packet.end }, err));
	}
	packets->at = at;
	return ST_OK;
}

/* ---- the second pass -------------------------------------------------------------------- */

struct key { /* the 1 to KEY_WORDS * 8 bytes after the time */
	const uint8_t *at;
	size_t len;
	uint64_t words[KEY_SHORT], hash;
};
/* Returns a word of a key that the key reaches.  The bytes of the last one are its upper bytes. */
static inline uint64_t key_word(const struct key *k, size_t i)
{
	size_t left = k->len - 8 * i;

	return get_u64(k->at + 8 * i) << (left < 8 ? (0 - 8 * left) % 64 : 0);
}

/* Finds the key of a packet.  Returns false if the packet does not begin with its time, or with the
 * user and its time. */
static inline __attribute__((always_inline)) bool key_of(const struct bytes *packet, uint64_t *time,
							 struct key *k)
{
	const uint8_t *p = packet->at;
	uint64_t hash;

	if (*p == 3 << 3 && !(p = pb_varint(p + 1, time)))
		return false;
	if (*p != 8 << 3 || !(p = pb_varint(p + 1, time)))
		return false;
	k->at = p;
	k->len = (size_t)(packet->end - p);
	if (k->len - 1 >= 8 * KEY_WORDS)
		return false;
	/* Begins and ends differ in length, and a branch on it could not be predicted. */
	k->words[0] = key_word(k, 0);
	k->words[1] = key_word(k, 1) & (0 - (uint64_t)(k->len > 8));
	hash = k->words[0] * HASH_A;
	hash = (hash ^ hash >> 32 ^ k->words[1]) * HASH_A;
	for (size_t i = KEY_SHORT; 8 * i < k->len; i++)
		hash = (hash ^ hash >> 32 ^ key_word(k, i)) * HASH_A;
	k->hash = hash;
	return true;
}

static inline bool is_key(const struct same *x, const struct key *k)
{
	if ((x->key[0] ^ k->words[0]) | (x->key[1] ^ k->words[1]) | (x->len ^ k->len))
		return false;
	for (size_t i = KEY_SHORT; 8 * i < k->len; i++)
		if (key_word(k, i) != x->rest[i - KEY_SHORT])
			return false;
	return true;
}

/* Finds the row of a key.  Returns NULL if there is none, and a slot that it may use. */
static inline struct same *find(struct pftrace_sames *s, const struct key *k, uint16_t **slot)
{
	for (unsigned i = 0; i < PROBES; i++) {
		*slot = &s->slots[((k->hash >> 50) + i) % SLOTS];
		if (!**slot)
			return NULL;
		if (is_key(row_at(s, **slot), k))
			return row_at(s, **slot);
	}
	return NULL;
}

enum status pftrace_same_learn(struct pftrace_reader *r, const struct bytes *packet, uint64_t time,
			       const struct pftrace_sequence *q, const struct pftrace_track *t,
			       const struct event *e, bool launches, struct error *err)
{
	struct pftrace_sames *s = r->sames;
	struct same made = { .generation = (uint32_t)q->generation,
			     .sequence = (uint16_t)(q - r->sequences),
			     .track = (uint32_t)(t - r->tracks),
			     .launches = launches };
	uint32_t shared = 0;
	struct same *x;
	uint64_t first;
	uint16_t *slot;
	struct key k;
	size_t units;

	if (!key_of(packet, &first, &k) || !time || first != time || q->generation > UINT32_MAX)
		return ST_OK;
	x = find(s, &k, &slot);
	if (e) {
		if (x && x->shared && !memcmp(spool_shared(r->to.spool, x->shared), e, sizeof(*e)))
			shared = x->shared;
		else
			TRY(spool_share(r->to.spool, e, &shared, err));
		if (!shared)
			return ST_OK;
		made.shared = (uint16_t)shared;
	}
	made.len = (uint8_t)k.len;
	memcpy(made.key, k.words, sizeof(made.key));
	for (size_t i = KEY_SHORT; 8 * i < k.len; i++)
		made.rest[i - KEY_SHORT] = key_word(&k, i);
	units = k.len > 8 * KEY_SHORT ? 1 + (k.len - 8 * KEY_SHORT + UNIT_BYTES - 1) / UNIT_BYTES
				      : 1;
	if (!x) {
		if (s->count == SAMES) {
			memset(s->slots, 0, sizeof(s->slots));
			s->count = s->unit_count = 0;
		}
		*slot = (uint16_t)(s->unit_count + 1);
		s->count++;
		s->unit_count += (uint32_t)units;
	}
	memcpy(row_at(s, *slot), &made, units * UNIT_BYTES);
	s->learned++;
	return ST_OK;
}

static inline enum status begin_same(struct pftrace_reader *r, struct pftrace_track *t,
				     const struct same *x, int64_t at_ns, struct error *err)
{
	struct pftrace_open *o = &r->opens[r->unused_open - 1];
	uint32_t place = r->unused_open;

	if (!place || !pftrace_in_range(at_ns) ||
	    (t->open && r->opens[t->open - 1].begin_ns > at_ns)) {
		struct event e = *spool_shared(r->to.spool, x->shared);

		return pftrace_begin(r, t, &e, 0, NULL, at_ns, err);
	}
	r->unused_open = o->below;
	o->launcher = 0;
	if (x->launches)
		o->launcher = spool_shared(r->to.spool, x->shared)->track;
	o->shared = x->shared;
	o->begin_ns = at_ns;
	o->below = t->open;
	t->open = place;
	return spool_begin_shared(r->to.spool, x->shared, (uint64_t)(at_ns + SPOOL_BIAS), place,
				  err);
}

static inline enum status end_same(struct pftrace_reader *r, struct pftrace_sequence *q,
				   struct pftrace_track *t, int64_t at_ns, struct error *err)
{
	uint32_t place = t->open;
	struct pftrace_open *o = &r->opens[place - 1];

	if (!place || o->begin_ns > at_ns || !pftrace_in_range(o->begin_ns))
		return pftrace_end(r, q, t, at_ns, err);
	t->open = o->below;
	o->below = r->unused_open;
	r->unused_open = place;
	return import_finish(&r->to, place, o->begin_ns, at_ns, o->launcher, err);
}

struct ahead { /* a packet that is to be converted */
	const uint8_t *at, *end;
	uint64_t time;
	const struct same *row; /* NULL: unknown */
	uint16_t slot;          /* 0: no row has the key */
};

/* Looks up the next packets and returns their number.  No branch depends on whether a packet is a
 * begin or an end, which cannot be predicted, so that the latencies of memory overlap. */
static unsigned look_ahead(const struct pftrace_sames *s, const uint8_t **at, const uint8_t *last,
			   struct ahead *all)
{
	struct bytes packet;
	unsigned count = 0;

	while (count < AHEAD && next_whole(at, last, &packet)) {
		struct ahead *a = &all[count++];
		const struct same *x;
		uint64_t time;
		struct key k;

		a->at = packet.at;
		a->end = packet.end;
		a->row = NULL;
		a->slot = 0;
		if (!key_of(&packet, &time, &k))
			continue;
		a->slot = s->slots[k.hash >> 50];
		x = row_at(s, a->slot);
		a->time = time;
		a->row = is_key(x, &k) ? x : NULL;
	}
	return count;
}

enum status pftrace_take_sames(struct pftrace_reader *r, struct bytes *packets, struct error *err)
{
	const uint8_t *at = packets->at, *last = last_of(packets);
	struct ahead all[AHEAD];
	unsigned count;

	do {
		uint32_t known = r->sames->learned;

		count = look_ahead(r->sames, &at, last, all);
		for (const struct ahead *a = all; a < all + count; a++) {
			const struct same *x = a->row;
			struct bytes packet = { .at = a->at, .end = a->end };
			struct pftrace_sequence *q;
			struct pftrace_track *t;
			uint64_t time = a->time;
			uint16_t *slot;
			int64_t at_ns;
			struct key k;

			/* It may be in another slot, or a packet before it was learned. */
			if ((!x && a->slot) || known != r->sames->learned)
				x = key_of(&packet, &time, &k) ? find(r->sames, &k, &slot) : NULL;
			if (!x || (q = &r->sequences[x->sequence])->generation != x->generation ||
			    (t = &r->tracks[x->track])->is_unordered)
				TRY(r->take(r, &packet, err));
			else if (!pftrace_time_of(r, q, time, &at_ns))
				pftrace_lose(r, LOSS_NO_TIME);
			else if (x->shared)
				TRY(begin_same(r, t, x, at_ns, err));
			else
				TRY(end_same(r, q, t, at_ns, err));
		}
	} while (count == AHEAD);
	packets->at = at;
	return ST_OK;
}
