/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/inside.h"

#include "collector/names.h"
#include "collector/nvtx/names.h"

#include <string.h>

void session_before_fork(void)
{
	pthread_mutex_lock(&session.lock);
	nvtx_names_lock();
	names_before_fork();
}

void session_forked_parent(void)
{
	names_after_fork();
	nvtx_names_unlock();
	pthread_mutex_unlock(&session.lock);
}

void session_forked_child(void)
{
	names_after_fork();
	nvtx_names_unlock();
	if (session.writer)
		session.ancestors = session.writer;
	session.writer = NULL;
	atomic_store_explicit(&session.lanes, NULL, memory_order_relaxed);
	lane_mine = NULL;
	if (session.key_made)
		pthread_setspecific(session.key, NULL);
	session.ring_bytes = 0;
	session.step_lane = NULL;
	session.window = 0;
	session.changes_head = session.changes_tail = 0;
	session.samples_head = session.samples_tail = 0;
	session.ignored = 0;
	session.mode = 0;
	session.exited = session.prepared = false;
	memset(session.base_count, 0, sizeof(session.base_count));
	memset(session.base_ticks, 0, sizeof(session.base_ticks));
	atomic_store_explicit(&session_word, 0, memory_order_relaxed);
	atomic_store_explicit(&session_over, 0, memory_order_relaxed);
	memset(&session.machine, 0, sizeof(session.machine));
	if (session.ticks)
		tick_forked();
	if (session.config && session.config->enabled)
		session_begin(true);
	pthread_mutex_unlock(&session.lock);
}
