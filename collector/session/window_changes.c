/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/internal.h"

#include "collector/session/signals.h"
#include "schemas/base/buf.h"
#include "schemas/base/quantity.h"

#define MS UINT64_C(1000000)
/* While a window waits for a time of the wall clock, check this often whether the clock was set. */
#define WALL_LOOK_NS UINT64_C(10000000000)

bool session_has_begin(void)
{
	bool has = false;

	lock_take(&session.lock);
	for (uint64_t i = session.changes_tail; i != session.changes_head; i++)
		has |= session.changes[i % CHANGES].kind == CHANGE_BEGIN;
	lock_release(&session.lock);
	return has;
}

bool session_next_change(struct session_change *out)
{
	lock_take(&session.lock);
	bool any = session.changes_tail != session.changes_head;
	if (any)
		*out = session.changes[session.changes_tail++ % CHANGES];
	lock_release(&session.lock);
	return any;
}

struct tick_span session_span(uint64_t window)
{
	lock_take(&session.lock);
	struct tick_span span = session.spans[window % SPANS];
	lock_release(&session.lock);
	return span;
}

uint64_t session_next_ns(void)
{
	lock_take(&session.lock);
	uint64_t ns = window_next_ns(&session.machine);
	uint64_t look = session.machine.now_ns + WALL_LOOK_NS;
	if (ns > look && window_waits_for_wall(&session.machine))
		ns = look;
	lock_release(&session.lock);
	return ns;
}

bool session_next_sample(uint64_t *at)
{
	lock_take(&session.lock);
	bool any = session.samples_tail != session.samples_head;
	if (any)
		*at = session.samples[session.samples_tail++ % SAMPLES];
	lock_release(&session.lock);
	return any;
}

bool session_is_active(void)
{
	lock_take(&session.lock);
	bool warmup = session.prepared || session.machine.state != WINDOW_IDLE;
	lock_release(&session.lock);
	return warmup;
}

uint64_t session_ignored(void)
{
	lock_take(&session.lock);
	uint64_t count = session.ignored + session.machine.ignored;
	lock_release(&session.lock);
	return count;
}

void session_take_signals(void)
{
	for (uint32_t count = signals_take_toggles(); count; count--)
		session_toggle("SIGUSR1");
}

static bool latest_step(uint64_t *out)
{
	bool any = false;

	for (struct thread_state *thread = session_threads(); thread;
	     thread = thread_next(thread)) {
		if (!GET_RELAXED(thread->step_begin) ||
		    (any && GET_RELAXED(thread->step_number) <= *out))
			continue;
		*out = GET_RELAXED(thread->step_number);
		any = true;
	}
	return any;
}

void session_put_status(struct buf *out)
{
	static const char *const states[] = { [WINDOW_IDLE] = "waiting",
					      [WINDOW_WARMUP] = "warming up",
					      [WINDOW_RECORD] = "recording" };
	const struct window_machine *m = &session.machine;
	char text[UNIT_TEXT];
	uint64_t step = 0;

	lock_take(&session.lock);
	buf_putf(out, "state %s\n",
		 m->state == WINDOW_IDLE && !session.mode ? "off"
		 : m->state == WINDOW_IDLE && window_is_done(m) && !m->spec.on_demand
			 ? "done"
			 : states[m->state]);
	buf_putf(out, "window %.200s\n", session.config->window);
	buf_putf(out, "windows %llu\n", (unsigned long long)session.window);
	if (m->state == WINDOW_RECORD)
		buf_putf(out, "since %s\n",
			 unit_format_time((session_input(WINDOW_TIME).now_ns - m->begin_ns) / MS *
						  MS,
					  text));
	if (latest_step(&step))
		buf_putf(out, "step %llu\n", (unsigned long long)step);
	if (config_rank(session.config).rank != RANK_UNKNOWN)
		buf_putf(out, "rank %u\n", config_rank(session.config).rank);
	buf_putf(out, "out %.2000s\n", session.config->out);
	buf_putf(out, "ignored %llu\n", (unsigned long long)(session.ignored + m->ignored));
	lock_release(&session.lock);
}
