/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that CUPTI has: requested by a thread that needs room, filled, and given back by CUPTI's
 * own thread when they are full and nothing in them is under way, or by a flush.
 *
 *	lane (one a thread, or one) -> current -> waiting list -> fake_hand_over()
 */
#include "tests/fake/fake_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct slot { /* a record whose times are to come */
	size_t at;
	struct fake_pending pending;
};
struct lent {
	struct lent *next;  /* in the waiting list */
	struct lent *other; /* of all */
	uint8_t *bytes;
	size_t size, used, records, most;
	uint32_t by_kind[KINDS];
	struct slot *slots;
	size_t slot_count, slot_room;
	uint64_t not_before_ns;
	bool shared, foreign, for_worker;
};
struct thread_state {
	struct thread_state *next;
	pthread_mutex_t lock;
	struct lent *current;
	_Atomic bool orphan; /* its thread ended */
};

static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct lent *waiting, *all;
static struct thread_state *_Atomic threads;
static struct thread_state common = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Thread_local struct thread_state *mine;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT, worker_once = PTHREAD_ONCE_INIT;
static unsigned for_worker; /* buffers that a flush waits for */
static bool is_over;        /* with the pool's lock: the report is written */
enum { ENDED = 4096 };
static struct span {
	uint8_t *bytes;
	size_t size;
} ended[ENDED]; /* buffers that were given back: the newest ones, each at its number % ENDED */
static _Atomic uint64_t ended_count;
static _Atomic uint64_t late_counter, drop_counter, put_counter;
static _Atomic bool foreign_came;

/* ---- the other tool ---- */

static struct {
	_Atomic(uint8_t *) bytes;
} foreign_buffers[64];

static void foreign_request(uint8_t **buffer, size_t *size, size_t *records)
{
	unsigned i;

	*size = 1 << 16;
	*records = 0;
	*buffer = aligned_alloc(8, *size);
	if (*buffer)
		memset(*buffer, 0, *size);
	for (i = 0; i < 64; i++) {
		uint8_t *none = NULL;

		if (atomic_compare_exchange_strong(&foreign_buffers[i].bytes, &none, *buffer))
			return;
	}
}

/* Also gets buffers of ours that were lent when it came; it does not know them. */
static void foreign_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			     size_t valid)
{
	unsigned i;

	for (i = 0; i < 64; i++) {
		uint8_t *its = buffer;

		if (!atomic_compare_exchange_strong(&foreign_buffers[i].bytes, &its, NULL))
			continue;
		free(buffer);
		return;
	}
}

static uint64_t foreign_stamp(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void fake_foreign_now(unsigned mode)
{
	unsigned i;

	if (mode == 1 || mode == 2)
		fake_state.request = foreign_request;
	if (mode == 1)
		fake_state.complete = foreign_complete;
	if (mode != 3)
		return;
	for (i = 0; i < KINDS; i++)
		fake_state.enabled[i] = false;
	fake_state.stamp = foreign_stamp;
}

static void maybe_foreign(void)
{
	if (!OPTION(foreign) || foreign_came ||
	    atomic_fetch_add(&put_counter, 1) < (uint64_t)OPTION(foreign_after))
		return;
	if (!atomic_exchange(&foreign_came, true))
		fake_foreign_now((unsigned)OPTION(foreign));
}

/* ---- lending ---- */

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static bool overlaps(const struct lent *thread, const uint8_t *bytes, size_t size)
{
	return bytes < thread->bytes + thread->size && thread->bytes < bytes + size;
}

/* Who has it, or had it when `since` buffers had been given back.  Under the pool's lock. */
static void note_sharing(struct lent *thread, uint64_t since)
{
	struct lent *o;
	bool had = ended_count - since > ENDED; /* nobody knows any more */

	for (o = all; o; o = o->other) {
		if (!overlaps(thread, o->bytes, o->size))
			continue;
		thread->shared = o->shared = true;
		fake_counts.shared++;
	}
	for (; since < ended_count && !had; since++)
		had = overlaps(thread, ended[since % ENDED].bytes, ended[since % ENDED].size);
	if (!had || thread->shared)
		return;
	thread->shared = true;
	fake_counts.shared++;
}

static void check_bytes(const struct lent *thread)
{
	if ((uintptr_t)thread->bytes % 8)
		fake_fault("a buffer that is not aligned to 8 bytes");
	if (!fake_state.zeroed || thread->foreign)
		memset(thread->bytes, 0, thread->size);
	else if (!thread->shared && !is_zero(thread->bytes, thread->size))
		fake_fault("a buffer that is not zero, though attribute 5 says so");
}

static struct lent *lend(void)
{
	CUpti_BuffersCallbackRequestFunc request = fake_state.request;
	struct lent *thread;
	uint8_t *bytes = NULL;
	size_t size = 0, most = 0;
	uint64_t before = ended_count;

	if (!request)
		return NULL;
	fake_counts.requests++;
	fake_place_enter(PLACE_REQUEST);
	request(&bytes, &size, &most);
	fake_place_leave();
	if (!bytes && fake_version() < 27) {
		dprintf(2, "stand-in for libcupti: no buffer, before version 27: a crash\n");
		abort();
	}
	thread = bytes && size ? calloc(1, sizeof(*thread)) : NULL;
	if (!thread)
		return NULL;
	thread->bytes = bytes;
	thread->size = size;
	thread->most = most;
	thread->foreign = request == foreign_request;
	pthread_mutex_lock(&pool);
	note_sharing(thread, before);
	thread->other = all;
	all = thread;
	fake_counts.lent++;
	pthread_mutex_unlock(&pool);
	check_bytes(thread);
	return thread;
}

/* Under the pool's lock. */
static void forget(struct lent *thread)
{
	struct lent **at;

	for (at = &all; *at; at = &(*at)->other) {
		if (*at != thread)
			continue;
		*at = thread->other;
		break;
	}
	ended[ended_count % ENDED] = (struct span){ thread->bytes, thread->size };
	ended_count++;
	fake_counts.lent--;
}

/* ---- lanes ---- */

static void thread_ended(void *thread_state)
{
	((struct thread_state *)thread_state)->orphan = true;
}

static void make_key(void)
{
	pthread_key_create(&key, thread_ended);
}

static struct thread_state *thread_reuse(void)
{
	struct thread_state *thread;
	bool orphan;

	for (thread = threads; thread; thread = thread->next) {
		orphan = true;
		if (!thread->orphan || thread->current)
			continue;
		if (atomic_compare_exchange_strong(&thread->orphan, &orphan, false))
			return thread;
	}
	return NULL;
}

static struct thread_state *thread_mine(void)
{
	struct thread_state *thread;

	if (!fake_state.per_thread)
		return &common;
	if (mine)
		return mine;
	pthread_once(&key_once, make_key);
	thread = thread_reuse();
	if (!thread) {
		thread = calloc(1, sizeof(*thread));
		if (!thread)
			return NULL;
		pthread_mutex_init(&thread->lock, NULL);
		thread->next = threads;
		while (!atomic_compare_exchange_weak(&threads, &thread->next, thread))
			;
	}
	pthread_setspecific(key, thread);
	return mine = thread;
}

/* ---- records ---- */

/* To the waiting list; with the lane's lock. */
static void detach(struct thread_state *thread_state)
{
	struct lent *thread = thread_state->current;
	bool late = fake_each(&late_counter, OPTION(late_every));

	thread_state->current = NULL;
	if (late)
		thread->not_before_ns = fake_realtime() + (uint64_t)OPTION(late_ms) * 1000000;
	pthread_mutex_lock(&pool);
	thread->next = waiting;
	waiting = thread;
	pthread_mutex_unlock(&pool);
}

static bool fits(const struct lent *thread, size_t size)
{
	return thread && thread->size - thread->used >= size &&
	       (!thread->most || thread->records < thread->most);
}

static bool add_slot(struct lent *thread, size_t at, const struct fake_pending *pending)
{
	struct slot *grown;

	if (thread->slot_count == thread->slot_room) {
		thread->slot_room = thread->slot_room ? thread->slot_room * 2 : 64;
		grown = realloc(thread->slots, thread->slot_room * sizeof(*grown));
		if (!grown)
			return false;
		thread->slots = grown;
	}
	thread->slots[thread->slot_count++] = (struct slot){ .at = at, .pending = *pending };
	return true;
}

static void fill(struct lent *thread, const void *record, size_t size,
		 const struct fake_pending *pending)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	memcpy(thread->bytes + thread->used, record, size);
	if (pending)
		add_slot(thread, thread->used, pending);
	thread->used += size;
	thread->records++;
	thread->by_kind[kind < KINDS ? kind : 0]++;
}

static bool put(struct thread_state *thread_state, const void *record, size_t size,
		const struct fake_pending *pending)
{
	if (thread_state->current && !fits(thread_state->current, size))
		detach(thread_state);
	if (!thread_state->current)
		thread_state->current = lend();
	if (!fits(thread_state->current, size))
		return false;
	fill(thread_state->current, record, size, pending);
	return true;
}

bool fake_put(const void *record, size_t size, const struct fake_pending *pending)
{
	struct thread_state *thread_state = thread_mine();
	bool kept = false;
	uint32_t kind;

	maybe_foreign();
	memcpy(&kind, record, sizeof(kind));
	fake_counts.made[kind < KINDS ? kind : 0]++;
	if (thread_state && !fake_each(&drop_counter, OPTION(drop_every))) {
		pthread_mutex_lock(&thread_state->lock);
		kept = put(thread_state, record, size, pending);
		pthread_mutex_unlock(&thread_state->lock);
	}
	if (!kept) {
		fake_counts.dropped++;
		fake_counts.unasked++;
	}
	return kept;
}

/* ---- giving back ---- */

static void settle(uint8_t *record, const struct fake_pending *p)
{
	memcpy(record + p->begin_at, &p->begin_ns, 8);
	memcpy(record + p->end_at, &p->end_ns, 8);
	if (p->completed_at)
		memcpy(record + p->completed_at, &p->end_ns, 8);
}

/* Times of work that is over; true: nothing is under way. */
static bool settle_all(struct lent *thread, uint64_t now_ns)
{
	size_t i, left = 0;

	for (i = 0; i < thread->slot_count; i++) {
		struct slot *s = &thread->slots[i];

		if (OPTION(hold) || s->pending.due_ns > now_ns)
			thread->slots[left++] = *s;
		else
			settle(thread->bytes + s->at, &s->pending);
	}
	thread->slot_count = left;
	return left == 0;
}

static void block_for_ever(void)
{
	for (;;)
		pause();
}

/* Threads go on while a process ends: what they are given after the report would not be in it. */
void fake_buffers_end(void)
{
	pthread_mutex_lock(&pool);
	is_over = true;
	pthread_mutex_unlock(&pool);
}

static void give_back(struct lent *thread, bool by_flush)
{
	unsigned i;

	pthread_mutex_lock(&pool);
	if (is_over) {
		pthread_mutex_unlock(&pool);
		block_for_ever();
	}
	forget(thread);
	if (thread->foreign)
		fake_counts.foreign += thread->records;
	for (i = 0; i < KINDS && !thread->foreign && fake_state.complete != foreign_complete; i++)
		fake_counts.handed[i] += thread->by_kind[i];
	pthread_mutex_unlock(&pool);
	fake_hand_over(thread->bytes, thread->size, thread->used, !thread->shared, by_flush,
		       thread->foreign);
	free(thread->slots);
	free(thread);
}

/* The first that may go; with the pool's lock. */
static struct lent *take(bool forced, bool worker)
{
	uint64_t now_ns = fake_realtime();
	struct lent **at, *thread;

	for (at = &waiting; (thread = *at); at = &thread->next) {
		bool over = settle_all(thread, now_ns) || forced || thread->for_worker;

		if (!over || thread->not_before_ns > now_ns || (thread->for_worker && !worker))
			continue;
		*at = thread->next;
		return thread;
	}
	return NULL;
}

static void detach_lane(struct thread_state *thread_state, bool forced)
{
	pthread_mutex_lock(&thread_state->lock);
	if (thread_state->current && thread_state->current->used &&
	    (settle_all(thread_state->current, fake_realtime()) || forced))
		detach(thread_state);
	pthread_mutex_unlock(&thread_state->lock);
}

static void detach_lanes(bool forced)
{
	struct thread_state *thread_state;

	detach_lane(&common, forced);
	for (thread_state = threads; thread_state; thread_state = thread_state->next)
		detach_lane(thread_state, forced);
}

/* Every second one that waits is left to CUPTI's thread; with the pool's lock. */
static void share_out(bool forced)
{
	struct lent *thread;
	unsigned i = 0;

	for (thread = waiting; thread; thread = thread->next) {
		if (thread->for_worker || i++ % 2 ||
		    (!settle_all(thread, fake_realtime()) && !forced))
			continue;
		thread->for_worker = true;
		thread->not_before_ns = 0;
		for_worker++;
	}
	pthread_cond_broadcast(&work);
}

int fake_flush(bool forced)
{
	struct lent *thread;

	fake_counts.flushes++;
	fake_counts.forced += forced;
	if (OPTION(flush_blocks) && !fake_counts.requests)
		block_for_ever();
	if (OPTION(flush_nothing) && !forced)
		return 0;
	detach_lanes(forced);
	pthread_mutex_lock(&pool);
	if (OPTION(share_flush) && OPTION(worker_ms) > 0)
		share_out(forced);
	while ((thread = take(forced, false))) {
		pthread_mutex_unlock(&pool);
		give_back(thread, true);
		pthread_mutex_lock(&pool);
	}
	while (for_worker)
		pthread_cond_wait(&done, &pool);
	pthread_mutex_unlock(&pool);
	return 0;
}

/* ---- CUPTI's thread ---- */

void fake_work_round(bool entire)
{
	struct lent *thread;
	bool counted;

	if (entire)
		detach_lanes(false);
	pthread_mutex_lock(&pool);
	while ((thread = take(false, true))) {
		counted = thread->for_worker;
		pthread_mutex_unlock(&pool);
		give_back(thread, false);
		pthread_mutex_lock(&pool);
		for_worker -= counted;
		if (!for_worker)
			pthread_cond_broadcast(&done);
	}
	pthread_mutex_unlock(&pool);
}

static void wait_for_work(void)
{
	int64_t ms = fake_state.flush_period_ms ? (int64_t)fake_state.flush_period_ms
						: OPTION(worker_ms);
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (ms > 0 ? ms : 20) % 1000 * 1000000;
	until.tv_sec += (ms > 0 ? ms : 20) / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&pool);
	if (!for_worker)
		pthread_cond_timedwait(&work, &pool, &until);
	pthread_mutex_unlock(&pool);
}

static void *run(void *unused)
{
	for (;;) {
		wait_for_work();
		if (OPTION(worker_ms) > 0)
			fake_work_round(false);
	}
	return NULL;
}

static void start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) == 0)
		pthread_detach(thread);
}

void fake_worker_start(void)
{
	pthread_once(&worker_once, start);
}

/* The child has no such thread, and no use for what was lent to its parent. */
void fake_buffers_forked(void)
{
	pthread_mutex_init(&pool, NULL);
	waiting = NULL;
}
