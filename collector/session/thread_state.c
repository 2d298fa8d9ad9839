/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/thread_state.h"

_Thread_local struct thread_state *thread_mine;

enum { OWN_AT_ONCE = 128 };
static struct thread_own *own_next;
static size_t own_left;

/* Returns private memory for a new thread state, which keeps it forever. */
static struct thread_own *new_own(void)
{
	if (!own_left) {
		own_next = arena_private(OWN_AT_ONCE * sizeof(*own_next));
		own_left = own_next ? OWN_AT_ONCE : 0;
	}
	if (!own_left)
		return NULL;
	own_left--;
	return own_next++;
}

static const struct probe_ranges *_Atomic nvtx_ranges;

void threads_have_ranges(const struct probe_ranges *ranges)
{
	atomic_store_explicit(&nvtx_ranges, ranges, memory_order_release);
}

/* Returns the NVTX ranges of a thread, or NULL.  In another process they are valid only within the
 * arena. */
static void *ranges_of(struct thread_state *thread, const struct probe_ranges **type)
{
	*type = atomic_load_explicit(&nvtx_ranges, memory_order_acquire);
	return *type ? thread_nvtx(thread) : NULL;
}

void threads_forked(void)
{
	own_left = 0;
}

/* Drops ranges outside of the arena, which are in private memory of the other process. */
static void check_ranges(const struct arena_header *a, struct thread_state *thread)
{
	const struct probe_ranges *type = atomic_load(&nvtx_ranges);
	int64_t at = thread->nvtx, begin = (int64_t)arena_offset(a, thread);

	if (!type || at % 64 || at < 0 || (uint64_t)at > a->bytes - (uint64_t)begin ||
	    type->bytes > a->bytes - (uint64_t)begin - (uint64_t)at)
		thread->nvtx = 0;
}

bool threads_are_sound(void)
{
	const struct arena_header *a = arena();
	uint64_t most = a->bytes / sizeof(struct thread_state), at = a->threads;

	for (; at && most; most--) {
		struct thread_state *thread = arena_at(a, at);
		if (at % _Alignof(struct thread_state) || at > a->bytes - sizeof(*thread))
			return false;
		uint64_t room = a->bytes - at - sizeof(*thread);
		const struct ring *r = &thread->ring;
		if (r->slots && (r->slots != sizeof(*r) || r->bits > 32 ||
				 room < sizeof(struct ring_slot) << r->bits))
			return false;
		check_ranges(a, thread);
		at = thread->next;
	}
	return !at;
}

size_t thread_bytes(size_t ring_bytes)
{
	return offsetof(struct thread_state, ring) + ring_size(ring_bytes);
}

struct thread_state *thread_new(size_t ring_bytes)
{
	uint64_t offset = arena_alloc(thread_bytes(ring_bytes));
	struct thread_own *own = offset ? new_own() : NULL;

	if (!own)
		return NULL;
	struct thread_state *thread = arena_at(arena(), offset);
	ring_init(&thread->ring, ring_bytes); /* without slots all records are counted as lost */
	ring_attach(&thread->writer, &thread->ring, &own->room);
	thread->own = own;
	SET_RELAXED(thread->slow_ticks, UINT64_MAX);
	return thread;
}

bool thread_clip_open(struct ring_record *r, const struct tick_span *window)
{
	if (r->begin >= window->end)
		return false;
	r->end = window->end;
	r->flags |= EVENT_NEVER_ENDED;
	if (r->begin < window->begin) {
		r->begin = window->begin;
		r->flags |= EVENT_BEGAN_EARLIER;
	}
	return true;
}

size_t thread_open_records(const struct thread_state *thread, const struct tick_span *window,
			   struct ring_record out[THREAD_DEPTH + 1])
{
	uint32_t depth = GET_RELAXED(thread->depth), i;
	size_t count = 0;

	if (GET_RELAXED(thread->step_open)) {
		out[0] = (struct ring_record){ .begin = GET_RELAXED(thread->step_begin),
					       .word = GET_RELAXED(thread->step_number),
					       .kind = KIND_STEP };
		count += thread_clip_open(&out[0], window);
	}
	for (i = 0; i < depth && i < THREAD_DEPTH; i++) {
		uint64_t what = GET_RELAXED(thread->open[i].what);

		out[count] = (struct ring_record){ .begin = GET_RELAXED(thread->open[i].begin),
						   .name = (uint32_t)what,
						   .kind = KIND_RANGE,
						   .subkind = (uint8_t)(what >> 32) };
		count += (uint32_t)what && thread_clip_open(&out[count], window);
	}
	return count;
}

void thread_put_open(struct thread_state *thread, const struct tick_span *window, thread_put_fn put,
		     void *arg)
{
	const struct probe_ranges *type;
	void *nvtx = ranges_of(thread, &type);
	struct ring_record open[THREAD_DEPTH + 1];
	size_t count = thread_open_records(thread, window, open), i;

	for (i = 0; i < count; i++)
		put(thread, &open[i], NULL, arg);
	if (nvtx)
		type->put_open(nvtx, thread, window, put, arg);
}

void thread_clear(struct thread_state *thread)
{
	const struct probe_ranges *type;
	void *nvtx = ranges_of(thread, &type);

	SET_RELAXED(thread->depth, 0);
	SET_RELAXED(thread->step_open, false);
	if (nvtx)
		type->clear(nvtx);
}

void thread_step_was_slow(struct thread_state *thread, uint64_t took, uint64_t end)
{
	uint64_t noted = GET_RELAXED(thread->slow_noted);

	if (noted != atomic_load_explicit(&thread->slow_taken, memory_order_acquire))
		return;
	SET_RELAXED(thread->slow_number, GET_RELAXED(thread->step_number));
	SET_RELAXED(thread->slow_took, took);
	SET_RELAXED(thread->slow_end, end);
	atomic_store_explicit(&thread->slow_noted, noted + 1, memory_order_release);
}
