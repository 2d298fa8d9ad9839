/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/inside.h"

#include "collector/control.h"
#include "collector/toggle.h"
#include "collector/writer.h"

#include <sys/prctl.h>
#include <unistd.h>

struct lane *session_lanes(void)
{
	return atomic_load_explicit(&session.lanes, memory_order_acquire);
}

/* The last window that has ended. */
static uint64_t last_ended(void)
{
	return session.machine.state == WINDOW_RECORD ? session.window - 1 : session.window;
}

struct closing {
	lane_put_fn put;
	void *arg;
};

static void close_windows(struct lane *l, uint64_t last, const struct closing *to)
{
	if (l->windows_closed + SPANS < last)
		l->windows_closed = last - SPANS;
	while (l->windows_closed < last) {
		l->windows_closed++;
		if (l->stale || l->dead)
			continue;
		lane_tell_open(l, &session.spans[l->windows_closed % SPANS], to->put, to->arg);
	}
}

static void put_in_ring(struct lane *l, const struct ring_record *r, const void *tail, void *arg)
{
	ring_put_tail(&l->ring, r, tail);
}

static void catch_up(struct lane *l)
{
	static const struct closing ring = { put_in_ring, NULL };

	close_windows(l, last_ended(), &ring);
	if (l->stale)
		lane_clear(l);
	l->stale = false;
	l->records = session.mode & MODE_RECORD;
	l->window_begin = l->records ? session.spans[session.window % SPANS].begin : 0;
	LANE_SET(l->seen, atomic_load_explicit(&session_word, memory_order_relaxed));
}

/* One whose thread is gone and whose ring was emptied. */
static struct lane *find_free(bool with_ring)
{
	struct lane *l;

	for (l = session_lanes(); l; l = l->next)
		if (l->dead && (l->ring.records != NULL) == with_ring && ring_is_done(&l->ring))
			return l;
	return NULL;
}

static struct lane *add_lane(void)
{
	size_t bytes = ring_size(session.config->buffer);
	struct lane *l;

	if (session.ring_bytes + bytes > session.config->memory / 4) {
		l = find_free(false);
		if (l)
			return l;
		bytes = 0; /* what this thread does is counted, and no more */
	}
	l = lane_new(bytes);
	if (!l)
		return NULL;
	session.ring_bytes += bytes;
	l->next = session_lanes();
	atomic_store_explicit(&session.lanes, l, memory_order_release);
	return l;
}

static struct lane *take_lane(void)
{
	struct lane *l = find_free(true);

	if (!l)
		l = add_lane();
	if (!l)
		return NULL;
	lane_clear(l);
	l->next_step = 0;
	l->dead = l->stale = false;
	l->tid = (uint32_t)gettid();
	prctl(PR_GET_NAME, l->thread_name);
	l->owners++;
	l->windows_closed = last_ended();
	pthread_setspecific(session.key, l);
	return l;
}

static void start_writer(void)
{
	session.writer = writer_start(session.config, session.watches);
	if (!session.writer)
		return;
	toggle_wake(session.writer);
	control_start();
}

struct lane *session_lane(bool make)
{
	struct lane *l = lane_mine;

	if (!l && !make)
		return NULL;
	pthread_mutex_lock(&session.lock);
	if (!session.mode || !session.key_made)
		l = NULL;
	else if (!l)
		l = lane_mine = take_lane();
	if (!session.writer && l)
		start_writer();
	if (l)
		catch_up(l);
	else
		session.ignored++;
	pthread_mutex_unlock(&session.lock);
	return l;
}

void session_thread_ends(void *arg)
{
	struct lane *l = arg;
	struct lane_span span = { .end = tick_now() };

	pthread_mutex_lock(&session.lock);
	lane_mine = NULL;
	catch_up(l);
	span.begin = l->window_begin;
	if (l->records)
		lane_tell_open(l, &span, put_in_ring, NULL);
	lane_clear(l);
	l->dead = true;
	if (session.step_lane == l)
		session.step_lane = NULL;
	/* threads come and go faster than their rings are emptied */
	if (session.writer && session.ring_bytes > session.config->memory / 8)
		writer_wake(session.writer);
	pthread_mutex_unlock(&session.lock);
}

void session_close_lanes(uint64_t window, lane_put_fn put, void *arg)
{
	struct closing to = { put, arg };
	struct lane *l;

	pthread_mutex_lock(&session.lock);
	for (l = session_lanes(); l; l = l->next)
		close_windows(l, window, &to);
	pthread_mutex_unlock(&session.lock);
}

void session_total(uint32_t name, uint64_t *count, uint64_t *ticks)
{
	struct lane *l;

	*count = *ticks = 0;
	if (name >= LANE_TOTALS)
		return;
	for (l = session_lanes(); l; l = l->next) {
		*count += LANE_GET(l->totals[name].count);
		*ticks += LANE_GET(l->totals[name].ticks);
	}
	pthread_mutex_lock(&session.lock);
	*count -= session.base_count[name];
	*ticks -= session.base_ticks[name];
	pthread_mutex_unlock(&session.lock);
}

void session_reset_totals(void)
{
	uint64_t count, ticks;
	uint32_t name;

	for (name = 0; name < LANE_TOTALS; name++) {
		session_total(name, &count, &ticks);
		pthread_mutex_lock(&session.lock);
		session.base_count[name] += count;
		session.base_ticks[name] += ticks;
		pthread_mutex_unlock(&session.lock);
	}
}
