/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.h - open NVTX ranges of a thread, and those that any thread may end.
 *
 *	draft    an event as a callback knows it, with its bytes copied.  In the ring it is a record
 *	         whose `word` is described below, with a tail: struct nvtx_tail, text, payloads
 *	stack    pushed ranges of one thread, of all domains; each domain nests separately
 *	started  ranges with an id, one table for the process
 *
 * As in thread_state.h only the owner changes the stack.  The writer reads it at the end of a
 * window, possibly in the middle of a change, so fields are atomic and a version is odd during
 * changes.  Nothing here locks or allocates except nvtx_stack_new(), once for each thread.
 */
#pragma once

#include "collector/session/thread_state.h"
#include "schemas/model/nvtx.h"

/* The bits of ring_record.word in records with RING_NVTX. */
enum {
	NVTX_WORD_DOMAIN = 0,    /* 10 bits */
	NVTX_WORD_STARTED = 10,  /* 1 bit: a range of start() and end() */
	NVTX_WORD_AWAITED = 11,  /* 1 bit: a window waits for this name */
	NVTX_WORD_COLOR = 12,    /* 8 bits, nvtx_color() */
	NVTX_WORD_CATEGORY = 20, /* 32 bits */
};
static inline uint32_t nvtx_word_domain(uint64_t word)
{
	return (uint32_t)word & 0x3ff;
}

struct nvtx_tail {
	uint16_t text_len;  /* text after this struct, without a NUL, if the record has no name */
	uint8_t payloads;   /* number of payloads after the text, see schemas/model/nvtx.h */
	uint8_t value_type; /* enum nvtx_value */
	uint32_t tid;       /* the thread that started the range; 0: the thread of the ring */
	uint64_t value;     /* bits of the value */
};

enum { NVTX_TEXT_MAX = 4095 };
struct nvtx_draft {
	uint64_t word;
	uint32_t name;
	uint32_t size;    /* bytes in use, sizeof(struct nvtx_tail) at least */
	uint32_t payload; /* offset of the last payload */
	_Alignas(8) uint8_t bytes[RING_TAIL_MAX];
};
void nvtx_draft_init(struct nvtx_draft *d, uint64_t word);
static inline struct nvtx_tail *nvtx_draft_tail(struct nvtx_draft *d)
{
	return (struct nvtx_tail *)(void *)d->bytes;
}
/* Returns the place for a text of up to NVTX_TEXT_MAX bytes; call nvtx_draft_text() with its length
 * after writing it. */
static inline char *nvtx_draft_text_space(struct nvtx_draft *d)
{
	return (char *)d->bytes + sizeof(struct nvtx_tail);
}
void nvtx_draft_text(struct nvtx_draft *d, size_t len);
/*
 * Returns space for another payload of `size` bytes, which the caller fills, or NULL if there is
 * none, which is counted.
 */
uint8_t *nvtx_draft_add_payload(struct nvtx_draft *d, uint64_t schema, size_t size);
/* Returns space for `len` more bytes of the latest payload, or NULL if they do not fit. */
uint8_t *nvtx_draft_extra(struct nvtx_draft *d, size_t len);
/* Returns the number of ring places for the draft's tail and fills up the last one with zeros; 0:
 * it needs no tail. */
unsigned nvtx_draft_more(struct nvtx_draft *d);

/* ---- ranges of a thread ---- */

enum { NVTX_DEPTH = 1024, NVTX_TAILS = 64 * 1024 };
struct nvtx_open {
	_Atomic uint64_t begin, word;
	_Atomic uint32_t name, level; /* level: in its domain, or marked as popped */
	_Atomic uint32_t tail, size;  /* index into `tails`; bytes, 0: none */
};
struct nvtx_stack {
	_Atomic uint32_t version, depth;
	uint32_t used;           /* words in use of `tails` */
	struct nvtx_draft draft; /* used by the owner, for one call */
	struct nvtx_open open[NVTX_DEPTH];
	_Atomic uint64_t tails[NVTX_TAILS / 8];
};
/* Allocates a stack, in the arena if it has space; returns NULL without memory.  It is never freed,
 * because it stays with its thread state. */
struct nvtx_stack *nvtx_stack_new(void);
extern const struct probe_ranges nvtx_ranges __attribute__((visibility("hidden")));
void nvtx_stack_clear(struct nvtx_stack *s);
/* Pushes s->draft as range `level` (from 0) of its domain.  Returns false if it is too deep, which
 * is counted. */
bool nvtx_stack_push(struct nvtx_stack *s, uint32_t level, uint64_t begin);
/*
 * Pops that range, if it is there: sets *begin and s->draft.  Discards the ranges above it in its
 * domain.
 */
bool nvtx_stack_pop(struct nvtx_stack *s, uint32_t domain, uint32_t level, uint64_t *begin);
/* Puts all ranges that began before the window's end as records of that window that never ended. */
void nvtx_stack_put_open(struct nvtx_stack *s, struct thread_state *thread,
			 const struct tick_span *window, thread_put_fn put, void *arg);

/* ---- ranges that any thread may end ---- */

enum { NVTX_STARTED = 4096, NVTX_STARTED_BYTES = 960, NVTX_SERIAL_BITS = 51 };
/*
 * Keeps the range in `d`, begun at `begin` by thread `tid`; windows up to `last_window` are over.
 * `serial` is unique in the process, not 0 and below 2^51.  Returns the id of the range.  When the
 * table is full, the id has no entry and the range is counted as lost.  A long text is truncated.
 */
uint64_t nvtx_started_put(struct nvtx_draft *d, uint64_t serial, uint32_t tid, uint64_t begin,
			  uint64_t last_window);
struct nvtx_ended {
	uint64_t begin;
	uint64_t last_window; /* latest window for which the open range was put */
};
/* Removes a range and copies the rest of it to `d` (may be NULL); returns false if it is not there,
 * or was ended before. */
bool nvtx_started_take(uint64_t id, struct nvtx_draft *d, struct nvtx_ended *out);
/*
 * Writer only.  Puts the ranges that are open at the end of window number `window` and were not put
 * before; the thread is NULL.
 */
void nvtx_started_put_open(uint64_t window, const struct tick_span *span, thread_put_fn put,
			   void *arg);
/* Discards all ranges in the child of a fork. */
void nvtx_started_clear(void);
/* Allocates the table before the first range, so that ranges make no system call. */
void nvtx_started_prepare(void);
/* Uses the table of an arena after arena_adopt(). */
void nvtx_started_adopt(void);

/* Makes the record of a range that was open when the window ended; returns false if it began
 * later. */
bool nvtx_open_record(struct ring_record *out, const struct tick_span *window, uint64_t begin,
		      uint64_t word, uint32_t name, uint32_t more);
