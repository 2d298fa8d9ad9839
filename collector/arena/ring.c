/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/ring.h"

#include <string.h>

enum { BITS_LEAST = 6, POLLS = 2 };

static uint32_t bits_in(size_t bytes)
{
	uint32_t bits = BITS_LEAST;

	while ((sizeof(struct ring_slot) << (bits + 1)) <= bytes)
		bits++;
	return bits;
}

size_t ring_size(size_t bytes)
{
	return sizeof(struct ring) + (bytes ? sizeof(struct ring_slot) << bits_in(bytes) : 0);
}

void ring_init(struct ring *at, size_t bytes)
{
	if (!bytes)
		return;
	at->bits = bits_in(bytes);
	at->slots = sizeof(*at);
}

static struct ring_slot *slots_of(struct ring *r)
{
	return (struct ring_slot *)(void *)((uint8_t *)r + r->slots);
}

void ring_attach(struct ring_writer *w, struct ring *r, struct ring_room *room)
{
	*w = (struct ring_writer){ .ring = r, .room = room, .bits = r->bits };
	if (r->slots)
		w->slots = slots_of(r);
	*room = (struct ring_room){ .is_mine = true };
}

bool ring_look_for_room(const struct ring_writer *w, uint64_t head, uint64_t count)
{
	if (!w->slots || !w->room->is_mine)
		return false;
	w->room->until = atomic_load_explicit(&w->ring->tail, memory_order_acquire) +
			 (UINT64_C(1) << w->bits);
	return head + count <= w->room->until;
}

void ring_count_lost(const struct ring_writer *w)
{
	/* An atomic addition, because a signal handler may do the same. */
	if (w->room->is_mine)
		atomic_fetch_add_explicit(&w->ring->lost, 1, memory_order_relaxed);
}

static struct ring_slot *slot_at(struct ring_slot *slots, uint32_t bits, uint64_t index)
{
	return &slots[index & ((UINT64_C(1) << bits) - 1)];
}

static void commit(const struct ring_writer *w, uint64_t index, const struct ring_record *r)
{
	struct ring_slot *slot = slot_at(w->slots, w->bits, index);

	slot->begin = r->begin;
	slot->end = r->end;
	slot->word = r->word;
	atomic_store_explicit(&slot->what, ring_pack(r) | ring_lap(index, w->bits),
			      memory_order_release);
}

bool ring_put_tail(const struct ring_writer *w, const struct ring_record *r, const void *tail)
{
	uint64_t head = atomic_load_explicit(&w->ring->head, memory_order_relaxed);
	struct ring_record reserved = { .kind = RING_KIND_RESERVED, .more = r->more };
	struct ring_record place = { .kind = RING_KIND_TAIL };
	const uint8_t *from = tail;

	if (!r->more)
		return ring_put(w, r);
	if (!ring_look_for_room(w, head, 1u + r->more)) {
		ring_count_lost(w);
		return false;
	}
	head = ring_reserve(w->ring, 1u + r->more);
	if (!ring_look_for_room(w, head, 1))
		return false;
	/* If this becomes a hole, the reader knows its length. */
	commit(w, head, &reserved);
	if (!ring_look_for_room(w, head, 1u + r->more))
		return false;
	for (uint64_t i = 1; i <= r->more; i++, from += RING_PLACE) {
		memcpy(&place, from, RING_PLACE);
		commit(w, head + i, &place);
	}
	commit(w, head, r);
	return true;
}

/* ---- the reader ---- */

/* Returns the last word of a slot, or 0 if it was not committed in this lap. */
static uint64_t committed(struct ring *r, uint64_t index)
{
	uint64_t what = atomic_load_explicit(&slot_at(slots_of(r), r->bits, index)->what,
					     memory_order_acquire);

	return what >> RING_LAP << RING_LAP == ring_lap(index, r->bits) ? what : 0;
}

static uint8_t kind_of(uint64_t what)
{
	return (uint8_t)(what >> RING_KIND);
}

static uint16_t more_of(uint64_t what)
{
	return (uint16_t)(what >> RING_MORE & 0xfff);
}

uint64_t ring_poll(struct ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	r->limit = atomic_load_explicit(&r->head, memory_order_acquire);
	r->waited += r->at < r->waits_until;
	return r->limit - tail;
}

/* Returns whether the record at `r->at` will certainly not come. */
static bool is_hole(struct ring *r, uint64_t slots)
{
	if (r->at >= r->waits_until) {
		r->waits_until = r->limit;
		r->waited = 0;
	}
	if (r->waited < POLLS)
		return false;
	for (uint64_t i = r->at + slots; i < r->limit; i++) {
		uint64_t what = committed(r, i);
		if (what && kind_of(what) != RING_KIND_TAIL)
			return true;
	}
	return false;
}

bool ring_next(struct ring *r, bool is_last, struct ring_record *out, void *tail)
{
	for (; r->at < r->limit; r->at++) {
		uint64_t what = committed(r, r->at);
		uint8_t kind = kind_of(what);
		uint16_t more = more_of(what);

		if (what && kind == RING_KIND_TAIL)
			continue; /* part of a hole whose first slot is missing */
		/* The ring may be damaged, so lengths are checked. */
		if (!what || kind == RING_KIND_RESERVED || more * RING_PLACE > RING_TAIL_MAX ||
		    r->at + more >= r->limit) {
			if (!is_last && !is_hole(r, 1u + more))
				return false;
			r->holes++;
			if (what && r->at + more < r->limit)
				r->at += more;
			continue;
		}
		struct ring_slot *slot = slot_at(slots_of(r), r->bits, r->at);
		*out = (struct ring_record){ .begin = slot->begin,
					     .end = slot->end,
					     .word = slot->word,
					     .name = (uint32_t)what & RING_NAME_MAX,
					     .more = more,
					     .kind = kind,
					     .subkind = (uint8_t)(what >> RING_SUBKIND),
					     .flags = (uint8_t)(what >> RING_FLAGS) };
		uint8_t *to = tail;
		for (r->at++; more; more--, r->at++, to += RING_PLACE)
			memcpy(to, slot_at(slots_of(r), r->bits, r->at), RING_PLACE);
		return true;
	}
	return false;
}

void ring_taken(struct ring *r)
{
	atomic_store_explicit(&r->tail, r->at, memory_order_release);
}

void ring_note_stored(struct ring *r, unsigned parity)
{
	r->stored[parity].at = r->at;
	r->stored[parity].holes = r->holes;
	r->stored[parity].lost_told = r->lost_told;
}

void ring_rewind(struct ring *r, unsigned parity)
{
	r->at = r->stored[parity].at;
	r->holes = r->stored[parity].holes;
	r->lost_told = r->stored[parity].lost_told;
}

uint64_t ring_take_lost(struct ring *r)
{
	uint64_t lost = atomic_load_explicit(&r->lost, memory_order_relaxed) + r->holes;
	uint64_t fresh = lost - r->lost_told;

	r->lost_told = lost;
	return fresh;
}
