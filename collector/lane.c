/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/lane.h"

#include <sys/mman.h>

_Thread_local struct lane *lane_mine;

struct lane *lane_new(size_t ring_bytes)
{
	struct lane *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (l == MAP_FAILED)
		return NULL;
	ring_open(&l->ring, ring_bytes); /* without a ring the lane counts what it loses */
	LANE_SET(l->slow_ticks, UINT64_MAX);
	return l;
}

static size_t put_open(struct ring_record *out, const struct lane_span *window, unsigned kind,
		       uint64_t begin, uint64_t word, uint64_t what)
{
	if (begin >= window->end)
		return 0;
	*out = (struct ring_record){
		.begin = begin, .end = window->end, .word = word, .name = (uint32_t)what,
		.kind = (uint8_t)kind, .subkind = (uint8_t)(what >> 32),
		.flags = EVENT_NEVER_ENDED,
	};
	if (begin < window->begin) {
		out->begin = window->begin;
		out->flags |= EVENT_BEGAN_EARLIER;
	}
	return 1;
}

size_t lane_open_records(const struct lane *l, const struct lane_span *window,
			 struct ring_record out[LANE_DEPTH + 1])
{
	uint32_t depth = LANE_GET(l->depth), i;
	size_t count = 0;
	uint64_t what;

	if (LANE_GET(l->step_open))
		count += put_open(out, window, KIND_STEP, LANE_GET(l->step_begin),
				  LANE_GET(l->step_number), 0);
	for (i = 0; i < depth && i < LANE_DEPTH; i++) {
		what = LANE_GET(l->open[i].what);
		if ((uint32_t)what)
			count += put_open(out + count, window, KIND_RANGE,
					  LANE_GET(l->open[i].begin), 0, what);
	}
	return count;
}

void lane_tell_open(struct lane *l, const struct lane_span *window, lane_put_fn put, void *arg)
{
	struct nvtx_stack *nvtx = atomic_load_explicit(&l->nvtx, memory_order_acquire);
	struct ring_record open[LANE_DEPTH + 1];
	size_t count = lane_open_records(l, window, open), i;

	for (i = 0; i < count; i++)
		put(l, &open[i], NULL, arg);
	if (nvtx)
		nvtx_stack_tell(nvtx, l, window, put, arg);
}

void lane_clear(struct lane *l)
{
	struct nvtx_stack *nvtx = atomic_load_explicit(&l->nvtx, memory_order_acquire);

	LANE_SET(l->depth, 0);
	LANE_SET(l->step_open, false);
	if (nvtx)
		nvtx_stack_clear(nvtx);
}

void lane_step_was_slow(struct lane *l, uint64_t took, uint64_t end)
{
	uint64_t noted = LANE_GET(l->slow_noted);

	if (noted != atomic_load_explicit(&l->slow_seen, memory_order_acquire))
		return;
	LANE_SET(l->slow_number, LANE_GET(l->step_number));
	LANE_SET(l->slow_took, took);
	LANE_SET(l->slow_end, end);
	atomic_store_explicit(&l->slow_noted, noted + 1, memory_order_release);
}
