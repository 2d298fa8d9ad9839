/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/thread_state.h"
#include "collector/arena/texts.h"
#include "collector/arena/ring.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct ring_record numbered(uint64_t i)
{
	return (struct ring_record){ .begin = i,
				     .end = ~i,
				     .word = i * 3,
				     .name = (uint32_t)i & RING_NAME_MAX,
				     .kind = KIND_RANGE };
}

static bool is_numbered(const struct ring_record *r)
{
	return r->end == ~r->begin && r->word == r->begin * 3 &&
	       r->name == (r->begin & RING_NAME_MAX) && r->kind == KIND_RANGE;
}

/* A ring in memory that children share. */
struct shared_ring {
	struct ring *ring;
	struct ring_writer writer;
	struct ring_room *room;
	size_t bytes;
};

static bool shared_ring_open(struct shared_ring *s, size_t bytes)
{
	s->bytes = ring_size(bytes);
	s->ring = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->room = arena_private(sizeof(*s->room));
	if (!CHECK(s->ring != MAP_FAILED && s->room))
		return false;
	ring_init(s->ring, bytes);
	ring_attach(&s->writer, s->ring, s->room);
	return true;
}

static void shared_ring_close(struct shared_ring *s)
{
	munmap(s->ring, s->bytes);
	munmap(s->room, sizeof(*s->room));
}

static bool next_number(struct ring *ring, bool is_last, uint64_t *out)
{
	static uint8_t tail[RING_TAIL_MAX];
	struct ring_record r;

	if (!ring_next(ring, is_last, &r, tail))
		return false;
	CHECK(is_numbered(&r));
	*out = r.begin;
	return true;
}

void test_ring_order_and_loss(void)
{
	struct shared_ring s;
	struct ring_record r;
	uint64_t i, n = 0;

	if (!shared_ring_open(&s, 100))
		return;
	CHECK_U64(s.ring->bits, 6); /* never less */
	for (i = 0; i < 70; i++) {
		r = numbered(i);
		CHECK(ring_put(&s.writer, &r) == (i < 64));
	}
	CHECK_U64(ring_poll(s.ring), 64);
	CHECK_U64(ring_take_lost(s.ring), 6);
	CHECK_U64(ring_take_lost(s.ring), 0);
	for (i = 0; i < 10; i++)
		CHECK(next_number(s.ring, false, &n) && n == i);
	ring_taken(s.ring);
	r = numbered(1000);
	CHECK(ring_put(&s.writer, &r));
	CHECK_U64(ring_poll(s.ring), 55);
	for (i = 10; i < 64; i++)
		CHECK(next_number(s.ring, false, &n) && n == i);
	CHECK(next_number(s.ring, false, &n) && n == 1000);
	CHECK(!next_number(s.ring, false, &n));
	CHECK(!ring_is_done(s.ring));
	ring_taken(s.ring);
	CHECK(ring_is_done(s.ring));
	shared_ring_close(&s);
}

void test_ring_without_memory(void)
{
	struct ring_record r = numbered(1);
	struct shared_ring s;
	uint64_t n;
	int i;

	if (!shared_ring_open(&s, 0))
		return;
	for (i = 0; i < 5; i++)
		CHECK(!ring_put(&s.writer, &r));
	r.more = 1;
	CHECK(!ring_put_tail(&s.writer, &r, "24 bytes that do not fit"));
	CHECK_U64(ring_poll(s.ring), 0);
	CHECK(!next_number(s.ring, true, &n));
	CHECK_U64(ring_take_lost(s.ring), 6);
	shared_ring_close(&s);
}

/* Tails, over many laps: the number of a lap is one byte. */
void test_ring_laps(void)
{
	static uint8_t tail[RING_TAIL_MAX], got[RING_TAIL_MAX];
	struct shared_ring s;
	struct ring_record r;
	uint64_t i;

	if (!shared_ring_open(&s, 1 << 14))
		return;
	for (i = 0; i < 100000; i++) {
		r = numbered(i);
		r.more = (uint16_t)(i % 341);
		r.flags = RING_NVTX;
		memset(tail, (int)i, r.more * RING_PLACE);
		if (!CHECK(ring_put_tail(&s.writer, &r, tail)))
			break;
		CHECK_U64(ring_poll(s.ring), 1u + r.more);
		if (!CHECK(ring_next(s.ring, false, &r, got)) || !CHECK_U64(r.more, i % 341) ||
		    !CHECK(is_numbered(&r) && r.flags == RING_NVTX) ||
		    !CHECK(!memcmp(tail, got, r.more * RING_PLACE)))
			break;
		CHECK(!ring_next(s.ring, false, &r, got));
		ring_taken(s.ring);
	}
	CHECK_U64(ring_take_lost(s.ring), 0);
	shared_ring_close(&s);
}

/* What was reserved and not committed is waited for, passed over and counted. */
void test_ring_holes(void)
{
	static const uint8_t tail[3 * RING_PLACE] = { 1 };
	struct ring_record r;
	struct shared_ring s;
	uint64_t n = 0;

	if (!shared_ring_open(&s, 4096))
		return;
	r = numbered(1);
	ring_put(&s.writer, &r);
	ring_reserve(s.ring, 1);
	ring_poll(s.ring);
	CHECK(next_number(s.ring, false, &n) && n == 1);
	ring_taken(s.ring);
	for (int i = 0; i < 5; i++) { /* nothing is behind it: the thread may go on */
		ring_poll(s.ring);
		CHECK(!next_number(s.ring, false, &n));
	}
	r = numbered(2);
	ring_put(&s.writer, &r);
	r.more = 3;
	ring_put_tail(&s.writer, &r, tail);
	ring_poll(s.ring);
	CHECK(next_number(s.ring, false, &n) && n == 2);
	CHECK(next_number(s.ring, false, &n) && n == 2);
	CHECK_U64(ring_take_lost(s.ring), 1);
	/* a record whose tail was begun, with slots that look like anything */
	ring_reserve(s.ring, 4);
	r = (struct ring_record){ .kind = RING_KIND_RESERVED, .more = 3 };
	atomic_store(&s.writer.slots[7].what, ring_pack(&r) | ring_lap(7, s.writer.bits));
	r = numbered(3);
	ring_put(&s.writer, &r);
	ring_poll(s.ring);
	CHECK(!next_number(s.ring, false, &n));
	ring_poll(s.ring);
	CHECK(!next_number(s.ring, false, &n));
	ring_poll(s.ring);
	CHECK(next_number(s.ring, false, &n) && n == 3);
	CHECK_U64(ring_take_lost(s.ring), 1);
	/* the thread has ended: nothing is waited for */
	ring_reserve(s.ring, 1);
	ring_poll(s.ring);
	CHECK(!next_number(s.ring, true, &n));
	ring_taken(s.ring);
	CHECK(ring_is_done(s.ring));
	CHECK_U64(ring_take_lost(s.ring), 1);
	shared_ring_close(&s);
}

enum { MANY = 300000 };

static void *put_many(void *arg)
{
	struct shared_ring *s = arg;
	struct ring_record r;
	uint64_t i;

	for (i = 0; i < MANY; i++) {
		r = numbered(i);
		ring_put(&s->writer, &r);
		if (i % 100 == 0)
			sched_yield();
	}
	return NULL;
}

void test_ring_two_threads(void)
{
	uint64_t taken = 0, lost = 0, last = 0, number;
	struct shared_ring s;
	bool good = true;
	pthread_t thread;

	if (!shared_ring_open(&s, 64 * 1024))
		return;
	if (!CHECK(pthread_create(&thread, NULL, put_many, &s) == 0))
		return;
	while (taken + lost < MANY) {
		if (!ring_poll(s.ring))
			sched_yield();
		while (next_number(s.ring, false, &number)) {
			good &= !taken || number > last;
			last = number;
			taken++;
		}
		ring_taken(s.ring);
		lost += ring_take_lost(s.ring);
	}
	pthread_join(thread, NULL);
	CHECK(good);
	CHECK_U64(taken + lost, MANY);
	CHECK(taken > 0);
	shared_ring_close(&s);
}

/* ---- what interrupts a put ---- */

/* Handlers that put, fork and jump away while the loop puts; records are even or odd by whose. */
struct interrupted {
	struct shared_ring shared;
	sigjmp_buf back;
	bool forks;
	volatile bool in_put, is_child;
	volatile uint64_t interruptions, jumped, made[2], refused;
};
static struct interrupted it;

static void put_one(unsigned by)
{
	struct ring_record r = numbered(it.made[by] * 2 + by);

	it.in_put = true;
	bool put = ring_put(&it.shared.writer, &r);
	if (it.is_child)
		_exit(0);
	it.in_put = false;
	it.refused += !put;
	it.made[by]++;
}

static void on_alarm(int number)
{
	static const uint8_t tail[5 * RING_PLACE];
	struct ring_record r = { .kind = KIND_MARK, .more = 5 };

	if (!it.in_put)
		return;
	it.interruptions++;
	if (it.forks) {
		pid_t child = fork();

		/* the child goes on with the put that was interrupted; so does its parent then */
		it.is_child = !child;
		if (child)
			waitpid(child, NULL, 0);
		return;
	}
	put_one(1);
	ring_put_tail(&it.shared.writer, &r, tail);
	it.jumped += it.interruptions % 4 == 0;
	if (it.interruptions % 4 == 0)
		siglongjmp(it.back, 1);
}

static void hold_alarms(int how)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(how, &alarms, NULL);
}

/* Takes what is there; taken[0]: the loop's, each once and in order; taken[1]: the handlers'. */
static bool take_all(bool is_last, uint64_t taken[2])
{
	static uint8_t tail[RING_TAIL_MAX];
	static uint64_t before;
	struct ring_record r;
	bool good = true;

	hold_alarms(SIG_BLOCK);
	ring_poll(it.shared.ring);
	before = taken[0] ? before : UINT64_MAX;
	while (ring_next(it.shared.ring, is_last, &r, tail)) {
		if (r.kind == KIND_MARK) {
			good &= r.more == 5;
			continue;
		}
		good &= is_numbered(&r);
		/* one that was jumped over after it was in the ring is made once more */
		good &= r.begin % 2 || it.jumped || r.begin == before + 2 || before == UINT64_MAX;
		before = r.begin % 2 ? before : r.begin;
		taken[r.begin % 2]++;
	}
	ring_taken(it.shared.ring);
	hold_alarms(SIG_UNBLOCK);
	return good;
}

static void put_interrupted(bool forks, uint64_t count)
{
	/* once in each round: a fork takes longer than the puts between two of them would */
	struct itimerspec once = { .it_value.tv_nsec = 1 };
	static uint64_t taken[2], lost;
	static bool good;
	static timer_t timer;

	it = (struct interrupted){ .forks = forks };
	memset(taken, 0, sizeof(taken));
	lost = 0;
	good = shared_ring_open(&it.shared, 1 << 20);
	signal(SIGALRM, on_alarm);
	if (!good || !CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0))
		return;
	sigsetjmp(it.back, 1);
	while (it.interruptions < count) {
		once.it_value.tv_nsec = 1 + (long)(taken[0] * 7919 % 30000);
		timer_settime(timer, 0, &once, NULL);
		for (int i = 0; i < 5000; i++)
			put_one(0);
		good &= take_all(false, taken);
		lost += ring_take_lost(it.shared.ring);
	}
	timer_delete(timer);
	signal(SIGALRM, SIG_DFL);
	good &= take_all(true, taken);
	lost += ring_take_lost(it.shared.ring);
	CHECK(good);
	CHECK_U64(taken[1], it.made[1]);
	/*
	 * All that was made is there or counted.  What a jump left half made is one of the two; a
	 * child that was forked just before it would have reserved a slot reserves one for nobody.
	 */
	CHECK(taken[0] + lost >= it.made[0]);
	CHECK(taken[0] + lost <= it.made[0] + it.jumped + (forks ? count : 0));
	shared_ring_close(&it.shared);
}

void test_ring_put_interrupted(void)
{
	put_interrupted(false, 2000);
}

/* Each record is there once, whoever of parent and child came first. */
void test_ring_fork_inside_put(void)
{
	put_interrupted(true, 200);
}

/* A thread is killed in a put: all it made is there, but the one under way. */
void test_ring_killed_in_put(void)
{
	uint64_t *made =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct shared_ring s;
	struct ring_record r;
	uint64_t taken, n;

	for (int i = 0; i < 40; i++) {
		if (!shared_ring_open(&s, 1 << 22))
			return;
		*made = taken = 0;
		pid_t child = fork();
		if (!child) {
			s.room->is_mine = true; /* the test's own: nobody else puts */
			for (;;) {
				r = numbered(*made);
				ring_put(&s.writer, &r);
				atomic_thread_fence(memory_order_release);
				++*(volatile uint64_t *)made;
			}
		}
		nanosleep(&(struct timespec){ .tv_nsec = 200000 + i * 7919 }, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		ring_poll(s.ring);
		while (next_number(s.ring, true, &n))
			CHECK_U64(n, taken++);
		uint64_t lost = ring_take_lost(s.ring);
		CHECK(taken + lost == *made || taken + lost == *made + 1);
		shared_ring_close(&s);
	}
	munmap(made, 4096);
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

static struct thread_state *make_thread(void)
{
	return CHECK(names_open()) ? thread_new(64 * 1024) : NULL;
}

void test_thread_ranges(void)
{
	struct thread_state *thread = make_thread();
	static uint8_t tail[RING_TAIL_MAX];
	struct ring_record inner, outer;
	uint32_t i;

	if (!CHECK(thread != NULL))
		return;
	CHECK_U64(thread_pop(thread), 0); /* nothing is open */
	thread->records = true;
	thread_push(thread, 5, RANGE_PHASE);
	thread_push(thread, 6, RANGE_ANNOTATION);
	CHECK_U64(thread_pop(thread), 6);
	CHECK_U64(thread_pop(thread), 5);
	CHECK_U64(ring_poll(&thread->ring), 2);
	CHECK(ring_next(&thread->ring, false, &inner, tail) &&
	      ring_next(&thread->ring, false, &outer, tail));
	CHECK(inner.name == 6 && inner.kind == KIND_RANGE && inner.subkind == RANGE_ANNOTATION);
	CHECK(inner.begin <= inner.end && outer.begin <= inner.begin);
	CHECK_U64(GET_RELAXED(thread->totals[5].count), 1);
	/* deeper than is kept: counted, and the nesting still fits */
	for (i = 0; i < THREAD_DEPTH + 10; i++)
		thread_push(thread, 7, RANGE_PHASE);
	for (i = 0; i < THREAD_DEPTH + 10; i++)
		thread_pop(thread);
	CHECK_U64(GET_RELAXED(thread->depth), 0);
	CHECK_U64(ring_poll(&thread->ring), 2 + THREAD_DEPTH);
	thread_push(thread, THREAD_TOTALS + 1000, RANGE_PHASE); /* beyond the totals */
	CHECK_U64(thread_pop(thread), THREAD_TOTALS + 1000);
}

void test_thread_window_edges(void)
{
	struct ring_record open[THREAD_DEPTH + 1];
	struct thread_state *thread = make_thread();
	static uint8_t tail[RING_TAIL_MAX];
	struct tick_span window;
	struct ring_record r;
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
	CHECK_U64(ring_poll(&thread->ring), 2);
	CHECK(ring_next(&thread->ring, false, &r, tail) &&
	      ring_next(&thread->ring, false, &r, tail));
	CHECK_U64(r.flags, EVENT_BEGAN_EARLIER);
	CHECK_U64(r.begin, window.begin);
	thread_step_end(thread, tick_now());
	CHECK_U64(thread_open_records(thread, &window, open), 0);
}
