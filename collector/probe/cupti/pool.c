/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/pool.h"

#include "collector/arena/arena.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum {
	BUFFERS = 8192,
	SLACK = 64,   /* bytes after each buffer, so that 8-byte reads at its end stay inside */
	GUARD = 4096, /* bytes after the valid ones that are also cleared */
	SMALL_BYTES = 64 * 1024, /* half of the memory, as many threads need one each */
	SINGLES = 8192,
	SINGLE_BYTES = 512, /* the largest record of CUPTI 13.3 has 304 bytes */
	TURNS = 1024,       /* places in the shared buffer */
	NONE = 0,           /* stacks store index + 1 */
};

/*
 * A lock-free stack of indices.  The head is index + 1, with a counter in the upper half to prevent
 * the ABA problem.
 */
struct stack {
	_Alignas(64) _Atomic uint64_t head;
};
struct buffers {
	uint8_t *bytes; /* `count` buffers, `stride` bytes apart */
	size_t stride, size;
	uint32_t count;
	struct stack free;
	_Atomic uint32_t next[BUFFERS]; /* links of the stack that has the buffer */
};
static struct tables {
	struct buffers pools[POOL_SHARED]; /* by enum pool_place */
	struct {
		size_t valid;
		uint64_t completed_ns;
		uint32_t marks;
	} filled[POOL_SINGLE * BUFFERS]; /* by number, which is enum pool_place * BUFFERS + index */
	_Atomic uint32_t next_full[POOL_SINGLE * BUFFERS];
	uint32_t taken[POOL_SINGLE * BUFFERS]; /* taken from `full`, only used by the writer */
	_Alignas(64) uint8_t shared[TURNS][SINGLE_BYTES];
} * tables; /* NULL until pool_open() */
static struct stack full;
static uint32_t taken_count;
static _Atomic uint64_t requested, completed;
static _Atomic uint32_t free_count, full_count, shared_turn;
static _Atomic bool opened, dead;

static void stack_put(struct stack *s, _Atomic uint32_t *next, uint32_t index)
{
	uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed), with;

	do {
		atomic_store_explicit(&next[index], (uint32_t)head, memory_order_relaxed);
		with = ((head >> 32) + 1) << 32 | (index + 1);
	} while (!atomic_compare_exchange_weak_explicit(&s->head, &head, with, memory_order_release,
							memory_order_relaxed));
}

static bool stack_take(struct stack *s, _Atomic uint32_t *next, uint32_t *index)
{
	uint64_t head = atomic_load_explicit(&s->head, memory_order_acquire), without;

	do {
		if ((uint32_t)head == NONE)
			return false;
		*index = (uint32_t)head - 1;
		without = ((head >> 32) + 1) << 32 |
			  atomic_load_explicit(&next[*index], memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&s->head, &head, without, memory_order_acquire, memory_order_acquire));
	return true;
}

static bool buffers_open(struct buffers *b, uint32_t count, size_t size)
{
	b->stride = (size + SLACK + 63) & ~(size_t)63;
	void *p = mmap(NULL, b->stride * count, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	b->bytes = p;
	b->size = size;
	b->count = count;
	for (uint32_t i = count; i-- > 0;)
		stack_put(&b->free, b->next, i);
	return true;
}

bool pool_open(size_t bytes, size_t buffer_bytes)
{
	static void *_Atomic memory;
	size_t sizes[] = { buffer_bytes & ~(size_t)7, SMALL_BYTES };

	if (atomic_load(&opened))
		return true;
	tables = arena_once(&memory, sizeof(*tables));
	if (!tables)
		return false;
	for (unsigned place = 0; place < POOL_SINGLE; place++) {
		size_t count = bytes / 2 / sizes[place];

		count = count < 2 ? 2 : count > BUFFERS ? BUFFERS : count;
		if (!buffers_open(&tables->pools[place], (uint32_t)count, sizes[place]))
			return false;
		atomic_fetch_add(&free_count, (uint32_t)count);
	}
	if (!buffers_open(&tables->pools[POOL_SINGLE], SINGLES, SINGLE_BYTES))
		return false;
	atomic_store(&opened, true);
	return true;
}

/*
 * Lends the shared buffer for one record, which is lost.  It must be zeroed, although another
 * thread may be using it.
 */
static void request_shared(uint8_t **buffer, size_t *size, size_t *max_records)
{
	uint32_t turn = atomic_fetch_add_explicit(&shared_turn, 1, memory_order_relaxed) % TURNS;

	memset(tables->shared[turn], 0, SINGLE_BYTES);
	*buffer = tables->shared[turn];
	*size = SINGLE_BYTES;
	*max_records = 1;
}

static bool take(enum pool_place place, uint32_t *number, uint8_t **buffer, size_t *size)
{
	struct buffers *b = &tables->pools[place];
	uint32_t index;

	if (!stack_take(&b->free, b->next, &index))
		return false;
	*number = (uint32_t)place * BUFFERS + index;
	*buffer = b->bytes + index * b->stride;
	*size = b->size;
	return true;
}

bool pool_take(uint32_t *number, uint8_t **buffer, size_t *size)
{
	if (!take(POOL_OURS, number, buffer, size) && !take(POOL_SMALL, number, buffer, size))
		return false;
	atomic_fetch_sub_explicit(&free_count, 1, memory_order_relaxed);
	return true;
}

void pool_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	uint32_t number;

	*max_records = 0;
	if (atomic_load_explicit(&dead, memory_order_relaxed)) {
		request_shared(buffer, size, max_records);
		return;
	}
	atomic_fetch_add_explicit(&requested, 1, memory_order_relaxed);
	if (pool_take(&number, buffer, size))
		return;
	*max_records = 1;
	if (!take(POOL_SINGLE, &number, buffer, size))
		request_shared(buffer, size, max_records);
}

static bool lies_in(const struct buffers *b, const uint8_t *buffer, uint32_t *index)
{
	uintptr_t at = (uintptr_t)buffer, begin = (uintptr_t)b->bytes;

	if (!begin || at < begin || at >= begin + b->stride * b->count)
		return false;
	*index = (uint32_t)((at - begin) / b->stride);
	return (at - begin) % b->stride == 0;
}

enum pool_place pool_find(const uint8_t *buffer, uint32_t *number, size_t *size)
{
	uint32_t index;

	for (unsigned place = 0; place < POOL_SHARED; place++) {
		*size = tables->pools[place].size;
		*number = place * BUFFERS;
		if (lies_in(&tables->pools[place], buffer, &index)) {
			*number += index;
			return (enum pool_place)place;
		}
	}
	*size = SINGLE_BYTES;
	uintptr_t at = (uintptr_t)buffer - (uintptr_t)tables->shared;
	return at < sizeof(tables->shared) && at % SINGLE_BYTES == 0 ? POOL_SHARED : POOL_FOREIGN;
}

void pool_complete(uint32_t number, size_t valid, uint64_t completed_ns, uint32_t marks)
{
	tables->filled[number].valid = valid;
	tables->filled[number].completed_ns = completed_ns;
	tables->filled[number].marks = marks;
	atomic_fetch_add_explicit(&full_count, 1, memory_order_relaxed);
	stack_put(&full, tables->next_full, number);
}

void pool_recycle(uint32_t number, size_t valid)
{
	struct buffers *b = &tables->pools[number / BUFFERS];
	uint32_t index = number % BUFFERS;

	memset(b->bytes + index * b->stride, 0, valid + GUARD < b->size ? valid + GUARD : b->size);
	stack_put(&b->free, b->next, index);
}

bool pool_next(struct pool_buffer *out)
{
	if (!taken_count) {
		/* Only the writer takes from `full`, so it takes the complete chain at once. */
		uint32_t at =
			(uint32_t)atomic_exchange_explicit(&full.head, 0, memory_order_acquire);
		uint32_t count = 0;

		/* The chain begins with the newest buffer, so the oldest comes last and is taken
		 * first. */
		for (; at != NONE;
		     at = atomic_load_explicit(&tables->next_full[at - 1], memory_order_relaxed))
			tables->taken[count++] = at - 1;
		atomic_fetch_sub_explicit(&full_count, count, memory_order_relaxed);
		taken_count = count;
	}
	if (!taken_count)
		return false;
	uint32_t number = tables->taken[--taken_count];
	const struct buffers *b = &tables->pools[number / BUFFERS];

	*out = (struct pool_buffer){
		.bytes = b->bytes + number % BUFFERS * b->stride,
		.valid = tables->filled[number].valid,
		.completed_ns = tables->filled[number].completed_ns,
		.number = number,
		.marks = tables->filled[number].marks,
	};
	return true;
}

void pool_give_back(const struct pool_buffer *b)
{
	atomic_fetch_add_explicit(&free_count, 1, memory_order_relaxed);
	pool_recycle(b->number, b->valid);
}

uint64_t pool_requested(void)
{
	return atomic_load_explicit(&requested, memory_order_relaxed);
}

uint64_t pool_completed(void)
{
	return atomic_load_explicit(&completed, memory_order_relaxed);
}

void pool_note_completed(void)
{
	atomic_fetch_add_explicit(&completed, 1, memory_order_relaxed);
}

unsigned pool_fullness(void)
{
	uint32_t left = atomic_load_explicit(&free_count, memory_order_relaxed);
	uint32_t waiting = atomic_load_explicit(&full_count, memory_order_relaxed);

	return waiting ? waiting * 100 / (waiting + left) : 0;
}

void pool_forked(void)
{
	atomic_store_explicit(&dead, true, memory_order_relaxed);
}
