/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/thread_state.h"
#include "collector/session/texts.h"
#include "collector/session/ring.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static struct ring_record numbered(uint64_t i)
{
	return (struct ring_record){ .begin = i, .end = ~i, .word = i * 3, .name = (uint32_t)i };
}

void test_ring_order_and_loss(void)
{
	struct ring_record r;
	struct ring ring;
	uint64_t i;

	if (!CHECK(ring_open(&ring, 100)))
		return;
	CHECK_U64(ring.mask, 63); /* never less */
	for (i = 0; i < 70; i++) {
		r = numbered(i);
		CHECK(ring_put(&ring, &r) == (i < 64));
	}
	CHECK_U64(ring_ready(&ring), 64);
	CHECK_U64(ring_take_lost(&ring), 6);
	CHECK_U64(ring_take_lost(&ring), 0);
	CHECK_U64(ring_at(&ring, 63)->begin, 63);
	ring_take(&ring, 10);
	r = numbered(1000);
	CHECK(ring_put(&ring, &r));
	CHECK_U64(ring_ready(&ring), 55);
	CHECK_U64(ring_at(&ring, 0)->begin, 10);
	CHECK_U64(ring_at(&ring, 54)->begin, 1000);
	ring_close(&ring);
}

void test_ring_without_memory(void)
{
	struct ring_record r = numbered(1);
	struct ring ring;
	int i;

	CHECK(!ring_open(&ring, 0));
	for (i = 0; i < 5; i++)
		CHECK(!ring_put(&ring, &r));
	CHECK_U64(ring_ready(&ring), 0);
	CHECK_U64(ring_take_lost(&ring), 5);
	ring_close(&ring);
}

enum { MANY = 300000 };

static void *put_many(void *arg)
{
	struct ring *ring = arg;
	struct ring_record r;
	uint64_t i;

	for (i = 0; i < MANY; i++) {
		r = numbered(i);
		ring_put(ring, &r);
		if (i % 100 == 0)
			sched_yield();
	}
	return NULL;
}

void test_ring_two_threads(void)
{
	uint64_t taken = 0, lost = 0, last = 0, i, n;
	bool good = true;
	struct ring ring;
	pthread_t thread;

	if (!CHECK(ring_open(&ring, 64 * 1024)))
		return;
	if (!CHECK(pthread_create(&thread, NULL, put_many, &ring) == 0))
		return;
	while (taken + lost < MANY) {
		n = ring_ready(&ring);
		for (i = 0; i < n; i++) {
			const struct ring_record *r = ring_at(&ring, i);

			good &= r->end == ~r->begin && r->word == r->begin * 3;
			good &= !taken || r->begin > last;
			last = r->begin;
			taken++;
		}
		ring_take(&ring, n);
		lost += ring_take_lost(&ring);
		if (!n)
			sched_yield();
	}
	pthread_join(thread, NULL);
	CHECK(good);
	CHECK_U64(taken + lost, MANY);
	CHECK(taken > 0);
	ring_close(&ring);
}

void test_names_are_numbers(void)
{
	char text[NAMES_TEXT_MAX + 100];
	uint32_t a = name_find("forward"), b = name_find("backward"), i;
	size_t len;

	CHECK(a && b && a != b);
	CHECK_U64(name_find("forward"), a);
	CHECK_STR(name_text(a, &len), "forward");
	CHECK_U64(len, 7);
	CHECK_STR(name_text(0, &len), "");
	CHECK_STR(name_text(UINT32_MAX, &len), "");
	CHECK_U64(name_find(NULL), name_find(""));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	name_text(name_find(text), &len);
	CHECK_U64(len, NAMES_TEXT_MAX);
	for (i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		a = name_find(text);
		if (!CHECK(a != 0) || !CHECK_STR(name_text(a, &len), text))
			return;
	}
	CHECK(name_count() >= 3000);
}

static void *find_names(void *arg)
{
	uint32_t *ids = arg, i;
	char text[32];

	for (i = 0; i < 500; i++) {
		snprintf(text, sizeof(text), "shared %u", i);
		ids[i] = name_find(text);
	}
	return NULL;
}

void test_names_by_many_threads(void)
{
	static uint32_t ids[4][500];
	pthread_t threads[4];
	unsigned i, k;

	for (i = 0; i < 4; i++)
		if (!CHECK(pthread_create(&threads[i], NULL, find_names, ids[i]) == 0))
			return;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (i = 1; i < 4; i++)
		for (k = 0; k < 500; k++)
			if (!CHECK_U64(ids[i][k], ids[0][k]))
				return;
}

static void free_thread(struct thread_state *thread)
{
	ring_close(&thread->ring);
	munmap(thread, sizeof(*thread));
}

void test_thread_ranges(void)
{
	struct thread_state *thread = thread_new(64 * 1024);
	const struct ring_record *r;
	uint32_t i;

	if (!CHECK(thread != NULL))
		return;
	CHECK_U64(thread_pop(thread), 0); /* nothing is open */
	thread->records = true;
	thread_push(thread, 5, RANGE_PHASE);
	thread_push(thread, 6, RANGE_ANNOTATION);
	CHECK_U64(thread_pop(thread), 6);
	CHECK_U64(thread_pop(thread), 5);
	CHECK_U64(ring_ready(&thread->ring), 2);
	r = ring_at(&thread->ring, 0);
	CHECK(r->name == 6 && r->kind == KIND_RANGE && r->subkind == RANGE_ANNOTATION);
	CHECK(r->begin <= r->end && ring_at(&thread->ring, 1)->begin <= r->begin);
	CHECK_U64(GET_RELAXED(thread->totals[5].count), 1);
	/* deeper than is kept: counted, and the nesting still fits */
	for (i = 0; i < THREAD_DEPTH + 10; i++)
		thread_push(thread, 7, RANGE_PHASE);
	for (i = 0; i < THREAD_DEPTH + 10; i++)
		thread_pop(thread);
	CHECK_U64(GET_RELAXED(thread->depth), 0);
	CHECK_U64(ring_ready(&thread->ring), 2 + THREAD_DEPTH);
	thread_push(thread, THREAD_TOTALS + 1000, RANGE_PHASE); /* beyond the totals */
	CHECK_U64(thread_pop(thread), THREAD_TOTALS + 1000);
	free_thread(thread);
}

void test_thread_window_edges(void)
{
	struct ring_record open[THREAD_DEPTH + 1];
	struct thread_state *thread = thread_new(64 * 1024);
	struct tick_span window;
	size_t count;

	if (!CHECK(thread != NULL))
		return;
	thread_step_begin(thread, 41, tick_now());
	thread_push(thread, 5, RANGE_PHASE);
	window.begin = tick_now();
	thread->window_begin = window.begin;
	thread->records = true;
	thread_push(thread, 6, RANGE_PHASE);
	window.end = tick_now() + 1;
	thread_push(thread, 0, RANGE_PHASE); /* has no name */
	count = thread_open_records(thread, &window, open);
	CHECK_U64(count, 3);
	CHECK(open[0].kind == KIND_STEP && open[0].word == 41);
	CHECK_U64(open[0].flags, EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED);
	CHECK_U64(open[0].begin, window.begin);
	CHECK_U64(open[1].flags, EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED);
	CHECK(open[2].name == 6 && open[2].flags == EVENT_NEVER_ENDED);
	CHECK_U64(open[2].end, window.end);
	thread_pop(thread);
	thread_pop(thread);
	thread_pop(thread);
	CHECK_U64(ring_ready(&thread->ring), 2);
	CHECK_U64(ring_at(&thread->ring, 1)->flags, EVENT_BEGAN_EARLIER);
	CHECK_U64(ring_at(&thread->ring, 1)->begin, window.begin);
	thread_step_end(thread, tick_now());
	CHECK_U64(thread_open_records(thread, &window, open), 0);
	free_thread(thread);
}
