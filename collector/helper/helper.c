/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/arena.h"
#include "collector/config/config.h"
#include "collector/helper/internal.h"
#include "collector/probe/cupti/client.h"
#include "collector/probe/probe.h"
#include "collector/session/clock.h"
#include "collector/session/session.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum {
	PERIOD_MS = 100, /* between two drains of nearly empty buffers */
	BEHIND_MS = 5,   /* between two checks of GPUs that are behind */
	ANCHOR_MS = 1000,
	FULL_PERCENT = 25, /* fullness of the queue at which the recorder must read it at once */
};

/* Probes that work only inside the program, and memory and health, which get the list of GPUs from
 * CUPTI. */
static const struct probe_type *const inside[] = { &probe_nccl, &probe_memory, &probe_cupti,
						   &probe_health };

static struct {
	struct writer writer;
	const struct probe_type
		*probes[sizeof(inside) /
			sizeof(inside[0])]; /* from the first window on, those that opened */
	size_t count;
	bool opened, begun;
	uint64_t anchored_ns, cpu_ns;
} helper;

static void wait_until_woken(struct helper *h, uint64_t limit_ns)
{
	struct timespec t = { .tv_sec = (time_t)(limit_ns / 1000000000u),
			      .tv_nsec = (long)(limit_ns % 1000000000u) };

	if (!atomic_load_explicit(&h->wake, memory_order_acquire))
		syscall(SYS_futex, &h->wake, FUTEX_WAIT, 0, limit_ns == UINT64_MAX ? NULL : &t,
			NULL, 0);
	atomic_exchange_explicit(&h->wake, 0, memory_order_acquire);
}

/* ---- calls of the probes ---- */

#define FOR_EACH_PROBE(p)                                                                          \
	for (const struct probe_type **p = helper.probes; p < helper.probes + helper.count; p++)

static void open_probes(void)
{
	size_t kept = 0;

	FOR_EACH_PROBE(p)
	if (!(*p)->open || (*p)->open(helper.writer.config, NULL) == ST_OK)
		helper.probes[kept++] = *p;
	helper.count = kept;
	helper.opened = true;
}

static void begin(uint64_t now_ns)
{
	if (!helper.opened)
		open_probes();
	if (helper.begun)
		return;
	helper_reset(&helper.writer);
	FOR_EACH_PROBE(p)
	if ((*p)->begin)
		(*p)->begin(now_ns, NULL);
	helper.begun = true;
	atomic_store(&helper.writer.shared->holds, cupti_client_is_on());
}

static void end(uint64_t now_ns, uint64_t deadline_ns)
{
	FOR_EACH_PROBE(p)
	if ((*p)->end)
		(*p)->end(now_ns, deadline_ns);
}

static bool is_behind(void)
{
	FOR_EACH_PROBE(p)
	if ((*p)->behind && (*p)->behind())
		return true;
	return false;
}

static void put_anchor(uint64_t now_ns)
{
	uint64_t cupti_ns = 0;

	if (now_ns - helper.anchored_ns < ANCHOR_MS * MS)
		return;
	helper.anchored_ns = now_ns;
	FOR_EACH_PROBE(p)
	if ((*p)->clock && !cupti_ns)
		cupti_ns = (*p)->clock();
	if (cupti_ns)
		helper_put_anchor(&helper.writer, cupti_ns);
}

/* Drains all probes; returns how full the fullest of their buffers was, in percent. */
static unsigned drain(void)
{
	struct writer *w = &helper.writer;
	unsigned fullest = 0;

	if (!writer_window_begin(w))
		return 0;
	tick_calibrate();
	uint64_t now_ns = tick_to_ns(tick_now());
	FOR_EACH_PROBE(p)
	{
		unsigned full = (*p)->drain ? (*p)->drain(w, now_ns) : 0;
		fullest = full > fullest ? full : fullest;
	}
	put_anchor(now_ns);
	if (cupti_client_is_on())
		atomic_store(&w->shared->holds, true);
	uint64_t cpu_ns = tick_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	writer_own_cost(w, cpu_ns - helper.cpu_ns);
	helper.cpu_ns = cpu_ns;
	if (queue_fullness(&w->shared->queue) >= FULL_PERCENT)
		session_wake_writer();
	return fullest;
}

/* Drops records of a warmup, unless a window is open of which the recorder does not know yet. */
static void warm_up(void)
{
	if (session_is_recording())
		return;
	FOR_EACH_PROBE(p)
	if ((*p)->warmup)
		(*p)->warmup();
}

static void close_window(struct writer *w)
{
	drain();
	FOR_EACH_PROBE(p)
	if ((*p)->close_window && writer_window_begin(w))
		(*p)->close_window(w, w->shared->window);
	helper.anchored_ns = 0;
	put_anchor(tick_to_ns(tick_now()));
	helper.begun = false;
	atomic_store(&w->shared->holds, false);
}

/*
 * Ends a window.  A program runs ahead of its GPUs, by seconds if kernels are long, and only this
 * thread waits for them, until the recorder requests something else: a forced end, or the next
 * window.  Returns the number of the request that is completed.
 */
static uint32_t end_window(struct helper *h, uint32_t number)
{
	const struct timespec pause = { .tv_nsec = BEHIND_MS * MS };
	uint64_t deadline_ns = h->deadline_ns;

	end(h->now_ns, deadline_ns);
	while (!deadline_ns && is_behind()) {
		uint32_t asked = atomic_load_explicit(&h->asked, memory_order_acquire);
		if (asked != number && h->request != HELPER_END && h->request != HELPER_DRAIN)
			break;
		if (asked != number && h->request == HELPER_END) {
			deadline_ns = h->deadline_ns;
			end(h->now_ns, deadline_ns);
		}
		number = asked;
		drain();
		nanosleep(&pause, NULL);
	}
	close_window(&helper.writer);
	return number;
}

static void carry_out(struct helper *h, uint32_t number)
{
	uint64_t deadline_ns = h->deadline_ns;

	switch (h->request) {
	case HELPER_BEGIN:
		begin(h->now_ns);
		break;
	case HELPER_END:
		if (helper.begun)
			number = end_window(h, number);
		break;
	case HELPER_WARM_UP:
		warm_up();
		break;
	case HELPER_DRAIN:
		drain();
		break;
	case HELPER_CLOSE:
		FOR_EACH_PROBE(p)
		if ((*p)->close && helper.opened)
			(*p)->close(&helper.writer, deadline_ns);
		helper.opened = false;
		helper.begun = false;
		break;
	default:
		break;
	}
	atomic_store_explicit(&h->done, number, memory_order_release);
	syscall(SYS_futex, &h->done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- the thread ---- */

static uint64_t next_round(unsigned fullest)
{
	uint64_t now_ns = tick_to_ns(tick_now());
	uint64_t wait = fullest > 40 ? MS : fullest > 10 ? 10 * MS : PERIOD_MS * MS;

	if (!helper.begun)
		return UINT64_MAX;
	FOR_EACH_PROBE(p)
	{
		uint64_t due = (*p)->due ? (*p)->due(now_ns) : UINT64_MAX;
		wait = due < wait ? due : wait;
	}
	return wait;
}

static void *helper_main(void *arg)
{
	struct helper *h = helper.writer.shared;
	unsigned fullest = 0;

	pthread_setname_np(pthread_self(), "tacho");
	for (;;) {
		uint32_t asked = atomic_load_explicit(&h->asked, memory_order_acquire);
		if (asked != atomic_load_explicit(&h->done, memory_order_relaxed)) {
			carry_out(h, asked);
			continue;
		}
		if (helper.begun)
			fullest = drain();
		wait_until_woken(h, next_round(fullest));
	}
	return NULL;
}

bool helper_start(const struct config *config)
{
	struct helper *h = arena_table(ARENA_HELPER, sizeof(*h));
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	if (!h)
		return false;
	memset(&helper, 0, sizeof(helper));
	helper.writer.config = config;
	helper.writer.shared = h;
	memcpy(helper.probes, inside, sizeof(inside));
	helper.count = sizeof(inside) / sizeof(inside[0]);
	atomic_store(&h->holds, cupti_client_is_on()); /* it was started in cuInit() */
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool made = pthread_create(&thread, &attr, helper_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	atomic_store(&h->absent, !made);
	return made;
}
