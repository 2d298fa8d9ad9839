/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - records from one thread to a reader, in shared memory and without locks.
 *
 *	        tail (reader's)                  head (putting thread's)
 *	          v                                v
 *	+----+----+----+----+----+----+----+----+----+----+
 *	|    |    | r2 | r3 | -- | r5 | r6 | r7 |    |    |    slots[index & mask]
 *	+----+----+----+----+----+----+----+----+----+----+
 *	           \_ readable _________________/ \_ free _
 *
 * Indices only grow.  The thread reserves a slot by moving head, fills it, and commits it by
 * storing its last word with the number of the lap.  A signal handler that also puts records may
 * interrupt this at any point, and it may never be completed, if the handler jumps away or the
 * thread is killed.  A slot that was reserved and not committed (r4 above) is a hole.  The reader
 * waits for it during two polls and then, if there are later records, skips and counts it.  A full
 * ring refuses a record, which is counted.  So nothing was lost if and only if nothing was counted
 * and tail has reached head.
 *
 * A record may take more than one slot: the bytes of its tail are in the slots after it, each of
 * which is also committed, so that the reader finds the next record after any hole.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_record {
	uint64_t begin, end; /* ticks */
	uint64_t word;       /* step: its number; counter: the bits of its value */
	uint32_t name;       /* id of texts.h, RING_NAME_MAX at most */
	uint16_t more;       /* slots after it that hold its tail, of RING_PLACE bytes each */
	uint8_t kind, subkind, flags; /* flags: as in struct event, and RING_NVTX */
};
enum {
	RING_NVTX = 0x80, /* put by the NVTX probe: word and tail are as in nvtx/open.h */
	RING_PLACE = 24,
	RING_TAIL_MAX = 340 * RING_PLACE,
	RING_NAME_MAX = (1 << 20) - 1,
	RING_KIND_TAIL = 0xff,     /* a slot of a record's tail */
	RING_KIND_RESERVED = 0xfe, /* a record whose tail is being written */
};

/* Bits of ring_slot.what. */
enum { RING_MORE = 20, RING_SUBKIND = 32, RING_KIND = 40, RING_FLAGS = 48, RING_LAP = 56 };
struct ring_slot {
	uint64_t begin, end, word;
	_Atomic uint64_t what; /* stored last: commits the slot */
};
_Static_assert(sizeof(struct ring_slot) == 32, "two records are one cache line");

/* A ring, which is in shared memory. */
struct ring {
	uint32_t bits;  /* 1 << bits slots */
	uint32_t slots; /* offset of the slots from here; 0: there are none */
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t lost; /* records that did not fit; only grows */
	_Alignas(64) _Atomic uint64_t tail;
	/* Only the reader uses these. */
	uint64_t at;          /* position up to which it has read; tail after ring_taken() */
	uint64_t limit;       /* head at the begin of the poll */
	uint64_t holes;       /* only grows */
	uint64_t waits_until; /* head when it met a hole; holes before it need no further wait */
	uint32_t waited;      /* number of polls since then */
	uint64_t lost_told;   /* part of lost and holes that ring_take_lost() has returned */
	/* The stored position, by the parity of arena_header.commit. */
	struct {
		uint64_t at, holes, lost_told;
	} stored[2];
};

/*
 * The state of the thread that puts records.  The kernel wipes the memory of `room` in children.
 * So a child that a signal handler forked in the middle of a put finds no space and writes nothing.
 */
struct ring_writer {
	struct ring *ring;
	struct ring_slot *slots;
	struct ring_room *room;
	uint32_t bits;
};
struct ring_room {
	uint64_t until; /* limit of head; 0: compute it from the reader's tail */
	bool is_mine;   /* false: it was wiped */
};

/* Returns the size of a ring with its slots in bytes: the largest power of two of slots that fits
 * into `bytes`, at least 64 slots. */
size_t ring_size(size_t bytes);
/* Makes a ring in `at`, which is zeroed and ring_size(bytes) long.  With 0 bytes the ring has no
 * slots, and counts each record as lost. */
void ring_init(struct ring *at, size_t bytes);
/* Prepares `w`, by which a thread of this process puts records. */
void ring_attach(struct ring_writer *w, struct ring *r, struct ring_room *room);

/* Updates the space from the reader's tail; returns false if `count` slots do not fit, or in a
 * child. */
bool ring_look_for_room(const struct ring_writer *w, uint64_t head, uint64_t count);
void ring_count_lost(const struct ring_writer *w);

/* Reserves slots with one instruction, so that a signal handler runs before or after it; returns
 * the first. */
static inline uint64_t ring_reserve(struct ring *r, uint64_t count)
{
#if defined(__x86_64__)
	__asm__ volatile("xaddq %0, %1" : "+r"(count), "+m"(r->head) : : "memory", "cc");
	return count;
#else
	return atomic_fetch_add_explicit(&r->head, count, memory_order_relaxed);
#endif
}

static inline uint64_t ring_lap(uint64_t index, uint32_t bits)
{
	return ((index >> bits) + 1) << RING_LAP;
}

static inline uint64_t ring_pack(const struct ring_record *r)
{
	return r->name | (uint64_t)r->more << RING_MORE | (uint64_t)r->subkind << RING_SUBKIND |
	       (uint64_t)r->kind << RING_KIND | (uint64_t)r->flags << RING_FLAGS;
}

static inline bool ring_put(const struct ring_writer *w, const struct ring_record *r)
{
	uint64_t head = atomic_load_explicit(&w->ring->head, memory_order_relaxed);

	if (__builtin_expect(head >= w->room->until, 0) && !ring_look_for_room(w, head, 1)) {
		ring_count_lost(w);
		return false;
	}
	head = ring_reserve(w->ring, 1);
	/*
	 * A signal handler took the last slots in between, and this one stays a hole, which counts
	 * as a loss; or the handler has forked, and the parent commits the slot.
	 */
	if (__builtin_expect(head >= w->room->until, 0) && !ring_look_for_room(w, head, 1))
		return false;
	struct ring_slot *slot = &w->slots[head & ((UINT64_C(1) << w->bits) - 1)];
	slot->begin = r->begin;
	slot->end = r->end;
	slot->word = r->word;
	atomic_store_explicit(&slot->what, ring_pack(r) | ring_lap(head, w->bits),
			      memory_order_release);
	return true;
}

/* Puts a record with `r->more` places at `tail`, completely or not at all. */
bool ring_put_tail(const struct ring_writer *w, const struct ring_record *r, const void *tail);

/* ---- the reader ---- */

/* Begins a poll of the records that are there now; returns how many slots are in use. */
uint64_t ring_poll(struct ring *r);
/*
 * Reads the next record, and its tail into `tail` (RING_TAIL_MAX bytes); returns false if none is
 * left.  `is_last`: the thread will put no more records, so the reader does not wait for holes.
 */
bool ring_next(struct ring *r, bool is_last, struct ring_record *out, void *tail);
/* Allows the thread to overwrite the records that were read. */
void ring_taken(struct ring *r);
/* Notes how far the ring was read; valid once the reader has committed `parity`. */
void ring_note_stored(struct ring *r, unsigned parity);
/* Goes back to the position that was noted, for a new reader. */
void ring_rewind(struct ring *r, unsigned parity);
/* Returns the number of lost records and holes since the last call. */
uint64_t ring_take_lost(struct ring *r);

/* Returns whether the reader has taken all records. */
static inline bool ring_is_done(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) ==
	       atomic_load_explicit(&r->tail, memory_order_acquire);
}
