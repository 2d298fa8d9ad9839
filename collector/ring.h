/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - records from one thread to the writer thread, without locks.
 *
 *	        tail (reader's)                  head (writer's)
 *	          v                                v
 *	+----+----+----+----+----+----+----+----+----+----+
 *	|    |    | r2 | r3 | r4 | r5 | r6 | r7 |    |    |    records[index & mask]
 *	+----+----+----+----+----+----+----+----+----+----+
 *	           \_ readable _________________/ \_ free _
 *
 * Indices only grow.  Who puts owns head, who takes owns tail; each looks at the other's with
 * acquire and moves its own with release.  A full ring takes nothing: the record is counted, never
 * waited for.  One thread puts and one takes at any time.  A record may take more than one place:
 * who takes goes on by 1 + more.
 */
#ifndef COLLECTOR_RING_H
#define COLLECTOR_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_record {
	uint64_t begin, end; /* ticks */
	uint64_t word;       /* step: its number; counter: the bits of its value */
	uint32_t name;       /* of names.h */
	uint8_t kind, subkind, flags; /* as in struct event, and RING_NVTX */
	uint8_t more; /* places behind it that are its tail: bytes that only some records have */
};
enum {
	RING_NVTX = 0x80, /* of watch_nvtx: word and tail are as in nvtx/open.h */
	RING_TAIL_MAX = 255 * 32,
};
_Static_assert(sizeof(struct ring_record) == 32, "two records are one cache line");

struct ring {
	struct ring_record *records; /* mapped by ring_open(); NULL: takes nothing */
	uint64_t mask;
	_Alignas(64) _Atomic uint64_t head;
	uint64_t tail_seen;          /* by who puts: saves looking at the other's line */
	_Atomic uint64_t lost;       /* did not fit; only grows */
	_Alignas(64) _Atomic uint64_t tail;
	uint64_t lost_seen;          /* by who takes */
};

/*
 * The largest power of two of records that fits into `bytes`, at least 64.  False: no memory, or
 * `bytes` is 0; such a ring counts all that is put.
 */
bool ring_open(struct ring *r, size_t bytes);
void ring_close(struct ring *r);
/* Bytes that ring_open() would map. */
size_t ring_size(size_t bytes);

static inline bool ring_put(struct ring *r, const struct ring_record *record)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (__builtin_expect(head - r->tail_seen > r->mask, 0)) {
		if (r->records)
			r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head - r->tail_seen > r->mask) {
			atomic_store_explicit(&r->lost,
				atomic_load_explicit(&r->lost, memory_order_relaxed) + 1,
				memory_order_relaxed);
			return false;
		}
	}
	r->records[head & r->mask] = *record;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

/* The same with `record->more` places of 32 bytes at `tail`: all of it fits, or nothing. */
bool ring_put_tail(struct ring *r, const struct ring_record *record, const void *tail);
/* Copies the tail of the record at ring_at(i); room for its 32 * more bytes. */
void ring_tail(const struct ring *r, uint64_t i, void *out);

/* How many places can be taken; ring_at(0) is the oldest record. */
static inline uint64_t ring_ready(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire) -
	       atomic_load_explicit(&r->tail, memory_order_relaxed);
}

/* All was taken, and who took it is done with it. */
static inline bool ring_is_done(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) ==
	       atomic_load_explicit(&r->tail, memory_order_acquire);
}

static inline const struct ring_record *ring_at(const struct ring *r, uint64_t i)
{
	return &r->records[(atomic_load_explicit(&r->tail, memory_order_relaxed) + i) & r->mask];
}

static inline void ring_take(struct ring *r, uint64_t count)
{
	atomic_store_explicit(&r->tail,
			      atomic_load_explicit(&r->tail, memory_order_relaxed) + count,
			      memory_order_release);
}

/* Losses since the last call; for who takes. */
uint64_t ring_take_lost(struct ring *r);

#endif
