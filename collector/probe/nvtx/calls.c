/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/calls.h"

#include "collector/arena/texts.h"
#include "collector/probe/nvtx/payload.h"
#include "collector/probe/nvtx/text.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WINDOWS_KEPT = 32, THREADS_MAX = 1 << 18 };

static _Atomic uint32_t thread_count;

/* ---- nesting of a thread ---- */

_Thread_local struct nvtx_thread nvtx_mine;

static void unmap_depths(void *more_depths)
{
	munmap(more_depths, NVTX_DOMAINS * sizeof(uint32_t));
	nvtx_mine.more_depths = NULL;
}

static pthread_key_t depths_key;
static pthread_once_t depths_once = PTHREAD_ONCE_INIT;

static void make_depths_key(void)
{
	pthread_key_create(&depths_key, unmap_depths);
}

/* Maps one page for the life of the thread. */
uint32_t *nvtx_more_depths(void)
{
	void *p = mmap(NULL, NVTX_DOMAINS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	pthread_once(&depths_once, make_depths_key);
	pthread_setspecific(depths_key, p);
	nvtx_mine.more_depths = p;
	return p;
}

void nvtx_calls_forked(void)
{
	nvtx_mine.number = 0; /* the child's thread has another tid */
	nvtx_started_clear();
}

/* ---- the state of the thread ---- */

/* Gives the thread a stack for NVTX; returns NULL without memory. */
static struct thread_state *make_stack(struct thread_state *thread)
{
	struct nvtx_stack *s = nvtx_stack_new();

	if (!s) {
		nvtx_lose(1);
		return NULL;
	}
	nvtx_names_own();
	threads_have_ranges(&nvtx_ranges);
	atomic_store_explicit(&thread->nvtx, (uint8_t *)s - (uint8_t *)thread,
			      memory_order_release);
	return thread;
}

static inline struct nvtx_stack *stack_of(struct thread_state *thread)
{
	return thread_nvtx(thread);
}

void nvtx_prepare(void)
{
	if (thread_mine && arena_is_mine() && !stack_of(thread_mine) && make_stack(thread_mine))
		nvtx_started_prepare();
}

static inline struct thread_state *thread_for_event(uint32_t word)
{
	struct thread_state *thread = session_thread_at(word, true);

	if (LIKELY(thread && stack_of(thread)))
		return thread;
	return thread ? make_stack(thread) : NULL;
}

/* ---- arguments of a call, copied to the draft ---- */

static void put_text(struct nvtx_draft *d, const char *text, size_t len)
{
	len = nvtx_text_fit(text, len, NVTX_TEXT_MAX);
	d->name = name_lookup(text, len);
	if (d->name)
		return;
	memcpy(nvtx_draft_text_space(d), text, len);
	nvtx_draft_text(d, len);
}

static void put_message(struct nvtx_draft *d, int32_t type, const void *message)
{
	if (type == NVTX_MESSAGE_ASCII && message) {
		put_text(d, message, strnlen(message, NVTX_TEXT_MAX + 1));
	} else if (type == NVTX_MESSAGE_REGISTERED) {
		d->name = (uintptr_t)message <= NAMES_MAX ? (uint32_t)(uintptr_t)message : 0;
	} else if (type == NVTX_MESSAGE_WIDE) {
		size_t len = nvtx_text_narrow(nvtx_draft_text_space(d), NVTX_TEXT_MAX, message);
		d->name = name_lookup(nvtx_draft_text_space(d), len);
		if (!d->name)
			nvtx_draft_text(d, len);
	}
}

static void put_payloads(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data,
			 size_t count)
{
	for (size_t i = 0; data && i < count; i++)
		nvtx_payload_copy(d, domain, &data[i]);
}

static void put_value(struct nvtx_draft *d, uint32_t domain, const struct nvtx_attributes *a)
{
	struct nvtx_tail *tail = nvtx_draft_tail(d);
	bool short_one = a->value_type >= NVTX_VALUE_U32;

	if (a->value_type == NVTX_VALUE_EXTENDED) {
		put_payloads(d, domain, (const struct nvtx_data *)(uintptr_t)a->value.u64,
			     a->payload_count > 0 ? (size_t)a->payload_count : 0);
	} else if (a->value_type > NVTX_VALUE_NONE && a->value_type <= NVTX_VALUE_F32) {
		tail->value_type = (uint8_t)a->value_type;
		tail->value = short_one ? a->value.u32 : a->value.u64;
	}
}

static uint64_t word_of(const struct nvtx_event *what)
{
	const struct nvtx_attributes *a = what->more;
	uint64_t word = what->domain;

	if (a && NVTX_HAS(a, category))
		word |= (uint64_t)a->category << NVTX_WORD_CATEGORY;
	if (a && NVTX_HAS(a, color) && a->color_type == 1)
		word |= (uint64_t)nvtx_color_find(a->color) << NVTX_WORD_COLOR;
	return word;
}

static void put_event(struct nvtx_draft *d, const struct nvtx_event *what)
{
	const struct nvtx_attributes *a = what->more;

	nvtx_draft_init(d, word_of(what));
	put_message(d, what->message_type, what->message);
	if (a && NVTX_HAS(a, value))
		put_value(d, what->domain, a);
	put_payloads(d, what->domain, what->payloads, what->payload_count);
}

/* ---- windows that wait for a range ---- */

static bool is_awaited(const struct nvtx_draft *d, uint32_t awaited)
{
	struct nvtx_torch t;
	size_t wanted_len;

	if (d->name)
		return d->name == awaited;
	const char *text = (const char *)d->bytes + sizeof(struct nvtx_tail);
	const char *wanted = name_text(awaited, &wanted_len);
	size_t len = ((const struct nvtx_tail *)(const void *)d->bytes)->text_len;
	if (nvtx_text_torch(text, len, &t))
		len = t.name_len;
	return len == wanted_len && !memcmp(text, wanted, len);
}

/* Checks whether a window waits for the draft's range, which begins.  Returns true if that may have
 * changed what is recorded. */
static bool begins(struct nvtx_draft *d)
{
	uint32_t awaited = atomic_load_explicit(&session_words_now()->range, memory_order_relaxed);

	if (LIKELY(!awaited) || !is_awaited(d, awaited))
		return false;
	d->word |= UINT64_C(1) << NVTX_WORD_AWAITED;
	session_feed_range(WINDOW_RANGE_BEGIN, awaited);
	return true;
}

static void ends(uint64_t word)
{
	uint32_t awaited = atomic_load_explicit(&session_words_now()->range, memory_order_relaxed);

	if (UNLIKELY(awaited && word >> NVTX_WORD_AWAITED & 1))
		session_feed_range(WINDOW_RANGE_END, awaited);
}

/* ---- push and pop, start and end, mark ---- */

void nvtx_push_open(uint32_t word, uint32_t level, const struct nvtx_event *what)
{
	struct thread_state *thread = thread_for_event(word);

	if (UNLIKELY(!thread))
		return;
	put_event(&stack_of(thread)->draft, what);
	if (UNLIKELY(begins(&stack_of(thread)->draft)))
		session_thread(true); /* updates the thread's state and keeps the draft */
	nvtx_stack_push(stack_of(thread), level, tick_now());
}

/* Puts a record of the draft into the ring. */
static void put_record(struct thread_state *thread, unsigned kind, uint64_t begin, uint64_t end)
{
	struct nvtx_draft *d = &stack_of(thread)->draft;
	struct ring_record r = {
		.begin = begin,
		.end = end,
		.word = d->word,
		.name = d->name,
		.kind = (uint8_t)kind,
		.flags = RING_NVTX,
		.more = (uint16_t)nvtx_draft_more(d),
		.subkind = kind == KIND_RANGE ? RANGE_NVTX : MARK_INSTANT,
	};

	thread_put_record(thread, &r, d->bytes);
}

void nvtx_pop_open(uint32_t word, uint32_t domain, uint32_t level, const struct nvtx_data *data,
		   size_t count)
{
	struct thread_state *thread = session_thread_at(word, false);
	uint64_t begin, end = tick_now();

	struct thread_state *mine = UNLIKELY(!thread) ? session_thread_unlocked() : thread;

	/* A thread without a state has no range to end. */
	if (UNLIKELY(!mine || !stack_of(mine) ||
		     !nvtx_stack_pop(stack_of(mine), domain, level, &begin)))
		return;
	if (UNLIKELY(!thread)) {
		atomic_fetch_add(&mine->ring.lost, 1);
		return;
	}
	if (thread->records) {
		put_payloads(&stack_of(thread)->draft, domain, data, count);
		put_record(thread, KIND_RANGE, begin, end);
	}
	ends(stack_of(thread)->draft.word);
}

void nvtx_mark_now(uint32_t word, const struct nvtx_event *what)
{
	struct thread_state *thread = thread_for_event(word);

	if (!thread || !thread->records)
		return;
	uint64_t now = tick_now();
	put_event(&stack_of(thread)->draft, what);
	put_record(thread, KIND_MARK, now, now);
}

void nvtx_put_whole(const struct nvtx_event *what, unsigned kind, uint64_t begin, uint64_t end)
{
	uint32_t word = session_word_now();
	struct thread_state *thread = word & MODE_RECORD ? thread_for_event(word) : NULL;

	if (!thread || !thread->records || end < thread->window_begin)
		return;
	put_event(&stack_of(thread)->draft, what);
	put_record(thread, kind, begin, end);
}

uint64_t nvtx_open_begin(uint32_t domain)
{
	struct thread_state *thread = session_thread_at(session_word_now(), false);
	struct nvtx_stack *s = thread ? stack_of(thread) : NULL;

	for (uint32_t i = s ? GET_RELAXED(s->depth) : 0; i > 0; i--)
		if (nvtx_word_domain(GET_RELAXED(s->open[i - 1].word)) == domain)
			return GET_RELAXED(s->open[i - 1].begin);
	return 0;
}

static uint64_t start_open(uint32_t word, uint64_t serial, const struct nvtx_event *what)
{
	struct thread_state *thread = thread_for_event(word);

	if (UNLIKELY(!thread))
		return serial;
	put_event(&stack_of(thread)->draft, what);
	if (UNLIKELY(begins(&stack_of(thread)->draft)))
		session_thread(true);
	uint64_t over = atomic_load_explicit(&session_words_now()->over, memory_order_acquire);
	return nvtx_started_put(&stack_of(thread)->draft, serial, nvtx_mine.tid, tick_now(), over);
}

uint64_t nvtx_start(const struct nvtx_event *what)
{
	if (UNLIKELY(!nvtx_mine.number)) {
		uint32_t number = atomic_fetch_add_explicit(&thread_count, 1, memory_order_relaxed);
		nvtx_mine.number = 1 + number % (THREADS_MAX - 1);
		nvtx_mine.tid = arena_thread_number();
	}
	uint64_t serial = (uint64_t)nvtx_mine.number << 32 | ++nvtx_mine.started;
	uint32_t word = session_word_now();

	return UNLIKELY(word) ? start_open(word, serial, what) : serial;
}

/*
 * Puts records for the windows that ended while the range was open and for which the writer has put
 * none.
 */
static void put_started_windows(struct thread_state *thread, const struct nvtx_ended *e)
{
	uint64_t over = atomic_load_explicit(&session_words_now()->over, memory_order_acquire),
		 window;
	struct nvtx_draft *d = &stack_of(thread)->draft;
	struct ring_record r;

	window = over > e->last_window + WINDOWS_KEPT ? over - WINDOWS_KEPT : e->last_window;
	while (window++ < over) {
		struct tick_span span = session_span(window);
		if (nvtx_open_record(&r, &span, e->begin, d->word, d->name, nvtx_draft_more(d)))
			ring_put_tail(&thread->writer, &r, d->bytes);
	}
}

static void end_open(uint32_t word, uint64_t id, const struct nvtx_data *data, size_t count)
{
	struct thread_state *thread = thread_for_event(word);
	struct nvtx_ended e;
	uint64_t now = tick_now();

	if (UNLIKELY(!thread)) {
		nvtx_started_take(id, NULL, &e);
		return;
	}
	struct nvtx_draft *d = &stack_of(thread)->draft;
	if (!nvtx_started_take(id, d, &e))
		return;
	put_started_windows(thread, &e);
	if (thread->records) {
		put_payloads(d, nvtx_word_domain(d->word), data, count);
		put_record(thread, KIND_RANGE, e.begin, now);
	}
	ends(d->word);
}

void nvtx_end(uint64_t id, const struct nvtx_data *data, size_t count)
{
	uint32_t word = session_word_now();
	struct nvtx_ended e;

	if (UNLIKELY(word))
		end_open(word, id, data, count);
	else if (UNLIKELY(id >> NVTX_SERIAL_BITS))
		nvtx_started_take(id, NULL, &e);
}
