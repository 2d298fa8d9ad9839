/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/inside.h"

#include "collector/toggle.h"
#include "schemas/buf.h"
#include "schemas/unit.h"

#define MS UINT64_C(1000000)
/* Somebody may set the wall's clock while a window waits for a second of it. */
#define WALL_LOOK_NS UINT64_C(10000000000)

bool session_next_change(struct session_change *out)
{
	bool any;

	pthread_mutex_lock(&session.lock);
	any = session.changes_tail != session.changes_head;
	if (any)
		*out = session.changes[session.changes_tail++ % CHANGES];
	pthread_mutex_unlock(&session.lock);
	return any;
}

struct lane_span session_span(uint64_t window)
{
	struct lane_span span;

	pthread_mutex_lock(&session.lock);
	span = session.spans[window % SPANS];
	pthread_mutex_unlock(&session.lock);
	return span;
}

uint64_t session_next_ns(void)
{
	uint64_t ns, look;

	pthread_mutex_lock(&session.lock);
	ns = window_next_ns(&session.machine);
	look = session.machine.now_ns + WALL_LOOK_NS;
	if (ns > look && window_waits_for_wall(&session.machine))
		ns = look;
	pthread_mutex_unlock(&session.lock);
	return ns;
}

bool session_next_sample(uint64_t *at)
{
	bool any;

	pthread_mutex_lock(&session.lock);
	any = session.samples_tail != session.samples_head;
	if (any)
		*at = session.samples[session.samples_tail++ % SAMPLES];
	pthread_mutex_unlock(&session.lock);
	return any;
}

bool session_is_warm(void)
{
	bool warm;

	pthread_mutex_lock(&session.lock);
	warm = session.prepared || session.machine.state != WINDOW_IDLE;
	pthread_mutex_unlock(&session.lock);
	return warm;
}

uint64_t session_ignored(void)
{
	uint64_t count;

	pthread_mutex_lock(&session.lock);
	count = session.ignored + session.machine.ignored;
	pthread_mutex_unlock(&session.lock);
	return count;
}

void session_take_signals(void)
{
	uint32_t count;

	for (count = toggle_take(); count; count--)
		session_toggle("SIGUSR1");
}

static bool latest_step(uint64_t *out)
{
	struct lane *l;
	bool any = false;

	for (l = session_lanes(); l; l = l->next) {
		if (!LANE_GET(l->step_begin) || (any && LANE_GET(l->step_number) <= *out))
			continue;
		*out = LANE_GET(l->step_number);
		any = true;
	}
	return any;
}

void session_tell_status(struct buf *out)
{
	static const char *const states[] = { [WINDOW_IDLE] = "waiting",
					      [WINDOW_WARMUP] = "warming up",
					      [WINDOW_RECORD] = "recording" };
	const struct window_machine *m = &session.machine;
	char text[UNIT_TEXT];
	uint64_t step = 0;

	pthread_mutex_lock(&session.lock);
	buf_putf(out, "state %s\n", m->state == WINDOW_IDLE && !session.mode ? "off" :
		 m->state == WINDOW_IDLE && window_is_done(m) && !m->spec.on_demand ? "done" :
		 states[m->state]);
	buf_putf(out, "window %.200s\n", session.config->window);
	buf_putf(out, "windows %llu\n", (unsigned long long)session.window);
	if (m->state == WINDOW_RECORD)
		buf_putf(out, "since %s\n", unit_format_time(
			 (session_input(WINDOW_TIME).now_ns - m->begin_ns) / MS * MS, text));
	if (latest_step(&step))
		buf_putf(out, "step %llu\n", (unsigned long long)step);
	if (session.config->rank.rank != RANK_UNKNOWN)
		buf_putf(out, "rank %u\n", session.config->rank.rank);
	buf_putf(out, "out %.2000s\n", session.config->out);
	buf_putf(out, "ignored %llu\n", (unsigned long long)(session.ignored + m->ignored));
	pthread_mutex_unlock(&session.lock);
}
