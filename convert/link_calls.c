/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/link_calls.h"

#include "schemas/bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
	CHUNK = 256,       /* calls; the ring grows by so many */
	NEWEST = 64,       /* chunks that are never packed: a GPU is seldom so far behind */
	AGAIN = 16,        /* unpacked chunks beside them, between two batches */
	PACKED_CALL = 64,  /* bytes at most: one of flags, two numbers of ten, six of five */
	NOWHERE_ELSE = -1, /* as `next`: the slot is not in the table */
};

struct call_chunk {
	struct launch *calls; /* NULL: packed */
	uint8_t *packed;      /* NULL: not */
	uint32_t packed_len;
	bool is_again; /* in the list */
	struct call_chunk *next_again;
	uint32_t index;
	struct call_id {
		uint32_t key;  /* of the correlation */
		uint32_t next; /* slot + 1 in the same bucket; 0 none */
	} ids[CHUNK];
};

/* ---- packing: what a call does not share with the one before it ---- */

enum {
	SAME_TRACK = 1,
	SAME_NAME = 2,
	SAME_OWNER = 4,
	SAME_STEP = 8,
	SAME_KIND = 16,
	SAME_HIGH = 32,
};

static uint8_t *put_other(uint8_t *p, uint8_t *same, unsigned bit, uint32_t now, uint32_t before)
{
	if (now == before)
		*same |= (uint8_t)bit;
	else
		p += put_varint(p, zigzag((int64_t)now - before));
	return p;
}

static uint32_t take_other(struct bytes *b, uint8_t same, unsigned bit, uint32_t before)
{
	return same & bit ? before : (uint32_t)(before + take_zigzag(b));
}

static uint32_t high_of(const struct launch *l)
{
	return (uint32_t)(l->correlation >> 32);
}

/* Half of an id, from which the other half gives the id again. */
static uint32_t key_of(uint64_t correlation)
{
	return (uint32_t)correlation ^ (uint32_t)(correlation >> 32) * 0x9E3779B1u;
}

static uint32_t kind_of(const struct launch *l)
{
	return (uint32_t)l->phase << 8 | l->flags;
}

static uint8_t *pack_call(uint8_t *p, const struct launch *l, const struct launch *before)
{
	uint8_t *same = p++;

	*same = 0;
	p += put_varint(p, zigzag((int64_t)(l->begin_ns - before->begin_ns)));
	p += put_varint(p, l->end_ns - l->begin_ns);
	p = put_other(p, same, SAME_TRACK, l->track, before->track);
	p = put_other(p, same, SAME_NAME, l->name, before->name);
	p = put_other(p, same, SAME_OWNER, l->owner, before->owner);
	p = put_other(p, same, SAME_STEP, l->step, before->step);
	p = put_other(p, same, SAME_KIND, kind_of(l), kind_of(before));
	return put_other(p, same, SAME_HIGH, high_of(l), high_of(before));
}

static void unpack_call(struct bytes *b, uint32_t key, const struct launch *before,
			struct launch *l)
{
	uint8_t same = take_u8(b);
	uint32_t kind;

	*l = (struct launch){ .begin_ns = before->begin_ns + (uint64_t)take_zigzag(b) };
	l->end_ns = l->begin_ns + take_varint(b);
	l->track = take_other(b, same, SAME_TRACK, before->track);
	l->name = take_other(b, same, SAME_NAME, before->name);
	l->owner = take_other(b, same, SAME_OWNER, before->owner);
	l->step = take_other(b, same, SAME_STEP, before->step);
	kind = take_other(b, same, SAME_KIND, kind_of(before));
	l->phase = (uint8_t)(kind >> 8);
	l->flags = (uint8_t)kind;
	l->correlation = (uint64_t)take_other(b, same, SAME_HIGH, high_of(before)) << 32;
	l->correlation |= key_of(l->correlation) ^ key;
}

/* Without memory for it the chunk stays as it is. */
static void chunk_pack(struct call_chunk *k, uint32_t count)
{
	static _Thread_local uint8_t room[CHUNK * PACKED_CALL];
	const struct launch none = { .begin_ns = 0 }, *before = &none;
	uint8_t *at = room;

	for (uint32_t i = 0; i < count; before = &k->calls[i++])
		at = pack_call(at, &k->calls[i], before);
	k->packed_len = (uint32_t)(at - room);
	k->packed = malloc(k->packed_len);
	if (!k->packed)
		return;
	memcpy(k->packed, room, k->packed_len);
	free(k->calls);
	k->calls = NULL;
}

static enum status chunk_unpack(struct call_chunk *k, struct error *err)
{
	const struct launch none = { .begin_ns = 0 }, *before = &none;
	struct bytes b = bytes_init(k->packed, k->packed_len);

	k->calls = calloc(CHUNK, sizeof(*k->calls));
	if (!k->calls)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
	for (uint32_t i = 0; i < CHUNK && bytes_left(&b); before = &k->calls[i++])
		unpack_call(&b, k->ids[i].key, before, &k->calls[i]);
	free(k->packed);
	k->packed = NULL;
	return ST_OK;
}

/* ---- chunks that are among the newest, and that are unpacked again ---- */

static uint32_t ring_chunks(const struct calls *c)
{
	return (c->window + CHUNK - 1) / CHUNK;
}

static bool is_newest(const struct calls *c, uint32_t index)
{
	uint32_t ring = ring_chunks(c);
	uint32_t behind = (uint32_t)((c->begun - 1) % ring) + ring - index;

	return behind % ring < c->begun - c->settled;
}

static uint32_t chunk_used(const struct calls *c, uint32_t index)
{
	return c->used - index * CHUNK < CHUNK ? c->used - index * CHUNK : CHUNK;
}

static void again_pack(struct calls *c)
{
	uint32_t count = 0;

	for (struct call_chunk *k = c->again; k; k = k->next_again)
		count++;
	while (count > AGAIN && c->again) {
		struct call_chunk *k = c->again;

		c->again = k->next_again;
		k->is_again = false;
		if (!is_newest(c, k->index))
			chunk_pack(k, chunk_used(c, k->index));
	}
}

void calls_settle(struct calls *c)
{
	if (ring_chunks(c) <= NEWEST)
		return;
	if (c->again)
		again_pack(c);
	for (; c->begun - c->settled > NEWEST; c->settled++) {
		struct call_chunk *k = c->chunks[c->settled % ring_chunks(c)];

		if (!k->is_again && k->calls)
			chunk_pack(k, chunk_used(c, k->index));
	}
}

/* A chunk from a slot that is not among the newest. */
static enum status chunk_need(struct calls *c, struct call_chunk *k, struct error *err)
{
	if (k->calls)
		return ST_OK;
	TRY(chunk_unpack(k, err));
	k->is_again = true;
	k->next_again = c->again;
	c->again = k;
	return ST_OK;
}

/* ---- the table of ids ---- */

static struct call_chunk *chunk_of(const struct calls *c, uint32_t slot)
{
	return c->chunks[slot / CHUNK];
}

static struct call_id *id_of(const struct calls *c, uint32_t slot)
{
	return &chunk_of(c, slot)->ids[slot % CHUNK];
}

/* Ids are handed out one after the other: so are buckets, which keeps them in the cache. */
static uint32_t *bucket_of(const struct calls *c, uint32_t key)
{
	return &c->buckets[(key ^ key >> 20) & (c->bucket_count - 1)];
}

static void slot_enter(struct calls *c, uint32_t slot)
{
	struct call_id *id = id_of(c, slot);
	uint32_t *bucket = bucket_of(c, id->key);

	id->next = *bucket;
	*bucket = slot + 1;
}

static void slot_leave(struct calls *c, uint32_t slot)
{
	uint32_t *at = bucket_of(c, id_of(c, slot)->key);

	while (*at != slot + 1)
		at = &id_of(c, *at - 1)->next;
	*at = id_of(c, slot)->next;
	id_of(c, slot)->next = (uint32_t)NOWHERE_ELSE;
}

enum status calls_find(struct calls *c, uint64_t correlation, struct launch **out,
		       struct error *err)
{
	uint32_t key = key_of(correlation);
	struct call_id *id;

	*out = NULL;
	if (!correlation || correlation > c->highest)
		return ST_OK;
	for (uint32_t at = *bucket_of(c, key); at; at = id->next) {
		struct call_chunk *k = chunk_of(c, at - 1);

		id = &k->ids[(at - 1) % CHUNK];
		if (id->key != key)
			continue;
		TRY(chunk_need(c, k, err));
		if (k->calls[(at - 1) % CHUNK].correlation != correlation)
			continue;
		*out = &k->calls[(at - 1) % CHUNK];
		return ST_OK;
	}
	return ST_OK;
}

const struct launch *calls_look(const struct calls *c, uint64_t correlation)
{
	uint32_t key = key_of(correlation);
	const struct call_id *id;

	if (!correlation || correlation > c->highest)
		return NULL;
	for (uint32_t at = *bucket_of(c, key); at; at = id->next) {
		const struct call_chunk *k = chunk_of(c, at - 1);
		const struct launch *l = k->calls ? &k->calls[(at - 1) % CHUNK] : NULL;

		id = &k->ids[(at - 1) % CHUNK];
		if (id->key == key && l && l->correlation == correlation)
			return l;
	}
	return NULL;
}

const struct launch *calls_oldest(const struct calls *c)
{
	const struct call_chunk *k;

	if (c->used < c->window)
		return NULL;
	k = chunk_of(c, c->oldest);
	return k->calls ? &k->calls[c->oldest % CHUNK] : NULL;
}

/* The slot may be used again, or its id belongs to another call. */
static void slot_forget(struct calls *c, uint32_t slot)
{
	struct launch *l = &chunk_of(c, slot)->calls[slot % CHUNK];

	if (!(l->flags & LAUNCH_LIVE))
		return;
	slot_leave(c, slot);
	if ((l->flags & LAUNCH_STARTS) && !(l->flags & LAUNCH_WORKED))
		c->totals.fell_out++;
	l->flags = 0;
}

void calls_forget(struct calls *c, struct launch *l)
{
	uint32_t at = *bucket_of(c, key_of(l->correlation));

	for (;; at = id_of(c, at - 1)->next) {
		const struct call_chunk *k = chunk_of(c, at - 1);

		if (k->calls && &k->calls[(at - 1) % CHUNK] == l)
			break;
	}
	slot_forget(c, at - 1);
}

/* ---- growing ---- */

static enum status calls_rehash(struct calls *c, uint32_t first, struct error *err)
{
	uint32_t count = c->bucket_count ? c->bucket_count * 2 : first;
	uint32_t *buckets = calloc(count, sizeof(*buckets));

	if (!buckets)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
	free(c->buckets);
	c->buckets = buckets;
	c->bucket_count = count;
	for (uint32_t i = 0; i < c->used; i++)
		if (id_of(c, i)->next != (uint32_t)NOWHERE_ELSE)
			slot_enter(c, i);
	return ST_OK;
}

static enum status chunk_add(struct calls *c, struct error *err)
{
	struct call_chunk **chunks = realloc(c->chunks, (c->chunk_count + 1) * sizeof(*chunks));
	struct call_chunk *k;

	if (!chunks)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
	c->chunks = chunks;
	k = chunks[c->chunk_count] = calloc(1, sizeof(*k));
	if (!k)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
	k->index = c->chunk_count++;
	k->calls = malloc(CHUNK * sizeof(*k->calls));
	return k->calls ? ST_OK : fail(err, ST_MEMORY, NOWHERE, "no memory for launches");
}

static enum status slot_find(struct calls *c, uint32_t first, uint32_t *out, struct error *err)
{
	uint32_t slot = c->used < c->window ? c->used : c->oldest;

	*out = slot;
	if (c->used == c->window) {
		TRY(chunk_need(c, chunk_of(c, slot), err));
		slot_forget(c, slot);
		c->oldest = slot + 1 == c->window ? 0 : slot + 1;
	} else {
		if (c->used == c->bucket_count)
			TRY(calls_rehash(c, first, err));
		if (c->used == c->chunk_count * CHUNK)
			TRY(chunk_add(c, err));
		c->used++;
	}
	c->begun += slot % CHUNK == 0;
	return ST_OK;
}

enum status calls_add(struct calls *c, const struct launch *l, uint32_t buckets_first,
		      struct launch **out, struct error *err)
{
	uint32_t slot;

	TRY(slot_find(c, buckets_first, &slot, err));
	*out = &chunk_of(c, slot)->calls[slot % CHUNK];
	**out = *l;
	id_of(c, slot)->key = key_of(l->correlation);
	slot_enter(c, slot);
	c->highest = l->correlation > c->highest ? l->correlation : c->highest;
	return ST_OK;
}

void calls_release(struct calls *c)
{
	for (uint32_t i = 0; i < c->chunk_count; i++) {
		free(c->chunks[i]->calls);
		free(c->chunks[i]->packed);
		free(c->chunks[i]);
	}
	free(c->chunks);
	free(c->buckets);
}
