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

	if (!session_enter())
		return false;
	for (uint64_t i = session.shared->changes_tail; i != session.shared->changes_head; i++)
		has |= session.shared->changes[i % CHANGES].kind == CHANGE_BEGIN;
	session_leave();
	return has;
}

bool session_next_change(struct session_change *out)
{
	if (!session_enter())
		return false;
	bool any = session.shared->changes_tail != session.shared->changes_head;
	if (any)
		*out = session.shared->changes[session.shared->changes_tail++ % CHANGES];
	session_leave();
	return any;
}

struct tick_span session_span(uint64_t window)
{
	if (!session_enter())
		return (struct tick_span){ 0 };
	struct tick_span span = session.shared->spans[window % SPANS];
	session_leave();
	return span;
}

void session_note_late(void)
{
	struct arena_header *a = arena();
	uint64_t next = atomic_load_explicit(&a->commit, memory_order_relaxed) + 1;

	if (a->late_commit != next)
		a->late = 0;
	a->late++;
	a->late_commit = next;
}

uint64_t session_next_ns(void)
{
	if (!session_enter())
		return NEVER;
	uint64_t ns = window_next_ns(&session.shared->machine);
	uint64_t look = session.shared->machine.now_ns + WALL_LOOK_NS;
	if (ns > look && window_waits_for_wall(&session.shared->machine))
		ns = look;
	session_leave();
	return ns;
}

bool session_next_sample(uint64_t *at)
{
	if (!session_enter())
		return false;
	bool any = session.shared->samples_tail != session.shared->samples_head;
	if (any)
		*at = session.shared->samples[session.shared->samples_tail++ % SAMPLES];
	session_leave();
	return any;
}

bool session_is_active(void)
{
	if (!session_enter())
		return false;
	bool warmup = session.shared->prepared || session.shared->machine.state != WINDOW_IDLE;
	session_leave();
	return warmup;
}

uint64_t session_ignored(void)
{
	if (!session_enter())
		return 0;
	uint64_t count = session.shared->ignored + session.shared->machine.ignored;
	session_leave();
	return count;
}

void session_take_signals(void)
{
	for (uint32_t count = signals_take_toggles(); count; count--)
		session_toggle();
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
	const struct window_machine *m = &session.shared->machine;
	char text[UNIT_TEXT];
	uint64_t step = 0;

	if (!session_enter())
		return;
	buf_putf(out, "state %s\n",
		 m->state == WINDOW_IDLE && !session.shared->mode ? "off"
		 : m->state == WINDOW_IDLE && window_is_done(m) && !m->spec.on_demand
			 ? "done"
			 : states[m->state]);
	buf_putf(out, "window %.200s\n", session.config->window);
	buf_putf(out, "windows %llu\n", (unsigned long long)session.shared->window);
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
	buf_putf(out, "ignored %llu\n", (unsigned long long)(session.shared->ignored + m->ignored));
	session_leave();
}
