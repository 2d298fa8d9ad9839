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
 * Indices only grow.  The thread that puts owns head, and the writer thread owns tail; each reads
 * the other's index with acquire and stores its own with release.  A full ring refuses the record,
 * which is counted.  A record may take more than one place: the reader advances by 1 + more.
 */
#ifndef COLLECTOR_SESSION_RING_H
#define COLLECTOR_SESSION_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_record {
	uint64_t begin, end;          /* ticks */
	uint64_t word;                /* step: its number; counter: the bits of its value */
	uint32_t name;                /* id of texts.h */
	uint8_t kind, subkind, flags; /* flags: as in struct event, and RING_NVTX */
	uint8_t more; /* places after it that hold its tail: bytes that only some records have */
};
enum {
	RING_NVTX = 0x80, /* put by the NVTX probe: word and tail are as in nvtx/open.h */
	RING_TAIL_MAX = 255 * 32,
};
_Static_assert(sizeof(struct ring_record) == 32, "two records are one cache line");

struct ring {
	struct ring_record *records; /* mapped by ring_open(); NULL: refuses all records */
	uint64_t mask;
	_Alignas(64) _Atomic uint64_t head;
	uint64_t tail_cached;  /* tail as last read by the putting thread, which avoids a shared
				  cache line */
	_Atomic uint64_t lost; /* records that did not fit; only grows */
	_Alignas(64) _Atomic uint64_t tail;
	uint64_t lost_taken; /* part of `lost` that ring_take_lost() has returned */
};

/*
 * Maps the largest power of two of records that fits into `bytes`, at least 64.  False: no memory,
 * or `bytes` is 0; such a ring counts every record as lost.
 */
bool ring_open(struct ring *r, size_t bytes);
void ring_close(struct ring *r);
/* Bytes that ring_open() would map. */
size_t ring_size(size_t bytes);

static inline bool ring_put(struct ring *r, const struct ring_record *record)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (__builtin_expect(head - r->tail_cached > r->mask, 0)) {
		if (r->records)
			r->tail_cached = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head - r->tail_cached > r->mask) {
			atomic_store_explicit(
				&r->lost, atomic_load_explicit(&r->lost, memory_order_relaxed) + 1,
				memory_order_relaxed);
			return false;
		}
	}
	r->records[head & r->mask] = *record;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

/* Puts a record with `record->more` places of 32 bytes at `tail`, completely or not at all. */
bool ring_put_tail(struct ring *r, const struct ring_record *record, const void *tail);
/* Copies the tail of the record at ring_at(i), 32 * more bytes. */
void ring_tail(const struct ring *r, uint64_t i, void *out);

/* How many places are readable; ring_at(0) is the oldest record. */
static inline uint64_t ring_ready(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire) -
	       atomic_load_explicit(&r->tail, memory_order_relaxed);
}

/* Everything was taken, and its reader has finished with it. */
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

/* Losses since the last call; for the reader. */
uint64_t ring_take_lost(struct ring *r);

#endif
