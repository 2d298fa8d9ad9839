/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx/open.h - what is open in NVTX: ranges of a thread, and ranges that any thread may end.
 *
 *	draft    an event as a callback knows it, its bytes copied: in the ring, it is a record
 *	         whose `word` is below and whose tail is struct nvtx_tail, text, pieces
 *	stack    pushed ranges of one thread, of all domains: the domains nest each for itself
 *	started  ranges with an id, one table for the process
 *
 * The stack follows lane.h: its owner moves it; the writer reads it at the end of a window, while
 * the owner may be in the middle of a change, so all is atomic, with a version that is odd
 * meanwhile.  Nothing here locks or allocates but nvtx_stack_new(), once per thread.
 */
#ifndef COLLECTOR_NVTX_OPEN_H
#define COLLECTOR_NVTX_OPEN_H

#include "collector/ring.h"

struct lane;
struct lane_span;

/* ring_record.word of what is RING_NVTX */
enum {
	NVTX_WORD_DOMAIN = 0,    /* 10 bits */
	NVTX_WORD_STARTED = 10,  /* 1 bit: a range of start and end */
	NVTX_WORD_AWAITED = 11,  /* 1 bit: a window waits for this name */
	NVTX_WORD_COLOR = 12,    /* 8 bits, nvtx_color() */
	NVTX_WORD_CATEGORY = 20, /* 32 bits */
};
static inline uint32_t nvtx_word_domain(uint64_t word)
{
	return (uint32_t)word & 0x3ff;
}

struct nvtx_tail {
	uint16_t text_len; /* behind this struct, when the record has no name; not terminated */
	uint8_t pieces;    /* behind the text */
	uint8_t value_type; /* enum nvtx_value */
	uint32_t tid;      /* of the thread that started it; 0: the lane's */
	uint64_t value;    /* its bits */
};
struct nvtx_piece { /* of an extended payload; `size` bytes and `extra` bytes follow */
	uint64_t schema;
	uint16_t size, extra; /* extra: what pointers in it pointed at, see nvtx/payload.h */
	uint8_t at_end;       /* given when the range ended */
	uint8_t spare[3];
};

enum { NVTX_TEXT_MAX = 4095 };
struct nvtx_draft {
	uint64_t word;
	uint32_t name;
	uint32_t size;  /* bytes in use, sizeof(struct nvtx_tail) at least */
	uint32_t piece; /* where the last one is */
	uint32_t lost;  /* pieces that did not fit; only grows */
	_Alignas(8) uint8_t bytes[RING_TAIL_MAX];
};
void nvtx_draft_init(struct nvtx_draft *d, uint64_t word);
static inline struct nvtx_tail *nvtx_draft_tail(struct nvtx_draft *d)
{
	return (struct nvtx_tail *)(void *)d->bytes;
}
/* Where the text goes, NVTX_TEXT_MAX bytes; then nvtx_draft_text() with how many were put. */
static inline char *nvtx_draft_room(struct nvtx_draft *d)
{
	return (char *)d->bytes + sizeof(struct nvtx_tail);
}
void nvtx_draft_text(struct nvtx_draft *d, size_t len);
/* Room for one more piece and `size` bytes of it, which the caller fills; NULL: it is counted. */
uint8_t *nvtx_draft_piece(struct nvtx_draft *d, uint64_t schema, size_t size, bool at_end);
/* `len` bytes more for the last piece; NULL: no room. */
uint8_t *nvtx_draft_extra(struct nvtx_draft *d, size_t len);
/* Places of the ring that its tail takes, the last one filled up with zeros; 0: it needs none. */
unsigned nvtx_draft_more(struct nvtx_draft *d);

/* ---- ranges of a thread ---- */

enum { NVTX_DEPTH = 1024, NVTX_TAILS = 64 * 1024 };
struct nvtx_open {
	_Atomic uint64_t begin, word;
	_Atomic uint32_t name, level; /* level: in its domain, or that it is gone */
	_Atomic uint32_t tail, size;  /* where in `tails`, in words of 8; bytes, 0: none */
};
struct nvtx_stack {
	_Atomic uint32_t version, depth;
	_Atomic uint64_t lost;
	uint32_t used; /* of `tails` */
	uint64_t lost_seen; /* by who takes the ring */
	struct nvtx_draft draft; /* the owner's, for one call */
	struct nvtx_open open[NVTX_DEPTH];
	_Atomic uint64_t tails[NVTX_TAILS / 8];
};
/* Mapped; NULL: no memory.  Never freed: it stays with its lane. */
struct nvtx_stack *nvtx_stack_new(void);
void nvtx_stack_clear(struct nvtx_stack *s);
/* s->draft is pushed as range `level` (from 0) of its domain.  False: too deep; it is counted. */
bool nvtx_stack_push(struct nvtx_stack *s, uint32_t level, uint64_t begin);
/*
 * That range again, if it was kept: its begin, and the rest in s->draft.  What is above it in its
 * domain is forgotten.
 */
bool nvtx_stack_pop(struct nvtx_stack *s, uint32_t domain, uint32_t level, uint64_t *begin);
/* All that began before the window's end, as records of that window that never ended. */
typedef void (*nvtx_put)(struct lane *l, const struct ring_record *r, const void *tail,
			 void *arg); /* lane_put_fn */
void nvtx_stack_tell(struct nvtx_stack *s, struct lane *l, const struct lane_span *window,
		     nvtx_put put, void *arg);

/* ---- ranges that any thread may end ---- */

enum { NVTX_STARTED = 4096, NVTX_STARTED_BYTES = 960, NVTX_SERIAL_BITS = 51 };
/*
 * Keeps the range in `d`, begun at `begin` by thread `tid`; windows up to `told` are over.
 * `serial`: unique in the process, not 0, below 2^51.  Returns its id; when the table is full one
 * without a place, which is counted.  A long text is cut.
 */
uint64_t nvtx_started_put(struct nvtx_draft *d, uint64_t serial, uint32_t tid, uint64_t begin,
			  uint64_t told);
struct nvtx_ended {
	uint64_t begin;
	uint64_t told; /* the last window that its being open was told of */
};
/* Takes it out again, the rest into `d`; false: it was not kept, or was ended before. */
bool nvtx_started_take(uint64_t id, struct nvtx_draft *d, struct nvtx_ended *out);
/* By the writer: what is open at the end of window number `window` and was not told; lane NULL. */
void nvtx_started_tell(uint64_t window, const struct lane_span *span, nvtx_put put, void *arg);
/* In the child of a fork: nothing is open. */
void nvtx_started_clear(void);
uint64_t nvtx_started_lost(void);

/* The record of a range that was open when the window ended; false: it began later. */
bool nvtx_open_record(struct ring_record *out, const struct lane_span *window, uint64_t begin,
		      uint64_t word, uint32_t name, uint32_t more);

#endif
