/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of tacho.h.  While recording is off, a call is one load.  Otherwise it reads the
 * clock and changes the state of its own thread (thread_state.h).
 */
#include "collector/api/tacho.h"

#include "collector/arena/texts.h"
#include "collector/session/session.h"
#include "collector/session/signals.h"
#include "schemas/base/buf.h"

#include <string.h>

#define WAIT_NS UINT64_C(2000000000)
enum { TEXT_MAX = 1 << 20 };

/* ---- state and windows ---- */

int tacho_state(void)
{
	uint32_t word = session_word_now();

	if (!word)
		return TACHO_OFF;
	return word & MODE_RECORD ? TACHO_RECORDING : TACHO_ARMED;
}

const char *tacho_version(void)
{
	return TACHO_VERSION;
}

void tacho_start(void)
{
	session_start(BY_PROGRAM);
	if (!session_word_now())
		return;
	session_thread_at(session_word_now(), true); /* prepare this thread for recording */
	session_flush(WAIT_NS); /* returns when GPU recording, which starts slowly, is on */
}

void tacho_stop(void)
{
	struct thread_state *thread =
		session_word_now() ? session_thread_at(session_word_now(), false) : NULL;

	if (!session_word_now())
		return;
	uint64_t now = tick_now();
	if (thread)
		thread_step_end(thread, now);
	session_feed(WINDOW_STOP, now, 0, NULL);
	session_close_log(WAIT_NS);
}

/* ---- steps ---- */

/* A process that makes steps is no data-loader worker, so it is recorded from here on. */
static inline bool is_worker(void)
{
	if (LIKELY(!atomic_load_explicit(&session_works, memory_order_relaxed)))
		return false;
	session_stop_working();
	return session_word_now() != 0;
}

static void step_begins(uint32_t word, bool numbered, uint64_t number)
{
	struct thread_state *thread = session_thread_at(word, true);

	if (UNLIKELY(!thread) && is_worker()) /* it has just noticed that it was cloned */
		thread = session_thread_at(session_word_now(), true);
	if (UNLIKELY(!thread))
		return;
	if (!numbered)
		number = thread->next_step;
	uint64_t now = tick_now();
	thread_step_begin(thread, number, now);
	if (UNLIKELY(number >=
		     atomic_load_explicit(&session_words_now()->step, memory_order_relaxed)))
		session_step_begins(thread, number, now);
}

void tacho_step(void)
{
	uint32_t word = session_word_now();

	if (UNLIKELY(word || is_worker()))
		step_begins(session_word_now(), false, 0);
}

void tacho_step_number(uint64_t number)
{
	uint32_t word = session_word_now();

	if (UNLIKELY(word || is_worker()))
		step_begins(session_word_now(), true, number);
}

void tacho_step_cancel(void)
{
	uint32_t word = session_word_now();
	struct thread_state *thread = word ? session_thread_at(word, false) : NULL;

	if (thread && GET_RELAXED(thread->step_open)) {
		SET_RELAXED(thread->step_open, false);
		thread->next_step = GET_RELAXED(thread->step_number);
	}
}

static void steps_end(enum window_event why)
{
	uint32_t word = session_word_now();
	struct thread_state *thread = word ? session_thread_at(word, false) : NULL;

	if (!word)
		return;
	uint64_t now = tick_now();
	if (thread)
		thread_step_end(thread, now);
	session_feed(why, now, 0, NULL);
}

void tacho_epoch_end(void)
{
	steps_end(WINDOW_EPOCH_END);
}

void tacho_validation_begin(void)
{
	steps_end(WINDOW_VALIDATION_BEGIN);
}

/* ---- phases and ranges ---- */

/* Begins a range without the session's lock, and without a name, because it was counted as lost. */
static void push_unlocked(unsigned range_class)
{
	struct thread_state *thread = session_thread_unlocked();

	if (thread)
		thread_push(thread, 0, range_class);
}

static inline void push(uint32_t name, unsigned range_class)
{
	uint32_t word = session_word_now();

	if (LIKELY(!word))
		return;
	struct thread_state *thread = session_thread_at(word, true);
	uint32_t awaited = atomic_load_explicit(&session_words_now()->range, memory_order_relaxed);

	if (UNLIKELY(!thread)) {
		push_unlocked(range_class);
		return;
	}
	if (UNLIKELY(awaited && name == awaited)) {
		session_feed_range(WINDOW_RANGE_BEGIN, name);
		thread = session_thread_at(session_word_now(), true);
	}
	if (LIKELY(thread != NULL)) /* unknown ids become 0 */
		thread_push(thread, name <= NAMES_MAX ? name : 0, range_class);
}

static inline void pop(void)
{
	uint32_t word = session_word_now();

	if (LIKELY(!word))
		return;
	struct thread_state *thread = session_thread_at(word, false);
	uint32_t name,
		awaited = atomic_load_explicit(&session_words_now()->range, memory_order_relaxed);

	if (UNLIKELY(!thread)) {
		thread = session_thread_unlocked();
		if (thread)
			thread_drop(thread);
		return;
	}
	name = thread_pop(thread);
	if (UNLIKELY(awaited && name == awaited))
		session_feed_range(WINDOW_RANGE_END, name);
}

/* First the thread, as a new process may not be allowed the system calls that a new name takes. */
static inline bool takes_names(uint32_t word)
{
	return UNLIKELY(word) && session_thread_at(word, true);
}

static inline void push_text(const char *name, unsigned range_class)
{
	uint32_t word = session_word_now();

	if (takes_names(word))
		push(name_find(name), range_class);
	else if (UNLIKELY(word))
		push_unlocked(range_class);
}

void tacho_phase_push(const char *name)
{
	push_text(name, RANGE_PHASE);
}

void tacho_phase_push_id(uint32_t name)
{
	push(name, RANGE_PHASE);
}

void tacho_range_push(const char *name)
{
	push_text(name, RANGE_ANNOTATION);
}

void tacho_range_push_id(uint32_t name)
{
	push(name, RANGE_ANNOTATION);
}

void tacho_range_push_class(uint32_t name, unsigned range_class)
{
	push(name, range_class & 0xff);
}

void tacho_phase_pop(void)
{
	pop();
}

void tacho_range_pop(void)
{
	pop();
}

uint32_t tacho_name(const char *name)
{
	return name_find(name);
}

/* ---- instants ---- */

static void put_instant(uint32_t word, unsigned kind, uint32_t name, uint64_t bits)
{
	struct thread_state *thread = session_thread_at(word, true);

	if (!thread || !thread->records || !name || name > NAMES_MAX)
		return;
	uint64_t now = tick_now();
	thread_put(thread, kind, now, now, bits, name);
}

void tacho_counter_id(uint32_t name, double value)
{
	uint32_t word = session_word_now();
	uint64_t bits;

	if (LIKELY(!(word & MODE_RECORD)))
		return;
	memcpy(&bits, &value, sizeof(bits));
	put_instant(word, KIND_COUNTER, name, bits);
}

void tacho_counter(const char *name, double value)
{
	if (takes_names(session_word_now() & MODE_RECORD ? session_word_now() : 0))
		tacho_counter_id(name_find(name), value);
}

void tacho_mark(const char *name)
{
	uint32_t word = session_word_now();

	if (takes_names(word & MODE_RECORD ? word : 0))
		put_instant(word, KIND_MARK, name_find(name), 0);
}

void tacho_memory_sample(void)
{
	uint32_t word = session_word_now();

	if (UNLIKELY(word & MODE_RECORD) && session_thread_at(word, true))
		session_sample(tick_now());
}

/* ---- totals, flush, doctor ---- */

void tacho_total(uint32_t name, double *seconds, uint64_t *count)
{
	uint64_t ticks, n;

	session_total(name, &n, &ticks);
	if (seconds)
		*seconds = n ? (double)ticks / tick_per_second() : 0;
	if (count)
		*count = n;
}

/* Copies `from` to `text`, releases it and returns the length of the complete text, as snprintf()
 * does. */
static size_t give_text(struct buf *from, char *text, size_t size)
{
	size_t len = from->len, fits = len < size ? len : size ? size - 1 : 0;

	if (text && size) {
		memcpy(text, buf_text(from), fits);
		text[fits] = '\0';
	}
	buf_release(from);
	return len;
}

size_t tacho_summary(char *text, size_t size)
{
	uint32_t name, count = name_count();
	struct buf out;
	double seconds;
	uint64_t times;
	size_t len;

	buf_init(&out, TEXT_MAX);
	for (name = 1; name <= count && name < THREAD_TOTALS; name++) {
		tacho_total(name, &seconds, &times);
		if (times)
			buf_putf(&out, "%s: avg=%.4fs, total=%.2fs, count=%llu\n",
				 name_text(name, &len), seconds / (double)times, seconds,
				 (unsigned long long)times);
	}
	return give_text(&out, text, size);
}

void tacho_summary_reset(void)
{
	session_reset_totals();
}

void tacho_flush(void)
{
	if (session_config())
		session_flush(WAIT_NS);
}

void tacho_save(void)
{
	if (!session_config())
		return;
	trigger_ask(TRIGGER_COMMAND);
	session_flush(WAIT_NS);
}
