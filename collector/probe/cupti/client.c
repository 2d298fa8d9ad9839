/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/client.h"

#include "collector/config/config.h"
#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/pool.h"
#include "collector/probe/cupti/rows.h"
#include "collector/session/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
enum {
	STEP_MS = 5,        /* between two checks for buffers that are still out */
	PAUSE_MAX_MS = 100, /* longest pause between checks; pauses grow */
	LOW_PERCENT = 25,   /* share of full buffers at which the writer is woken */
	FREE = 0,
	TAKEN = 1,
};

#define BEHIND_TOLD_NS (100 * MS)   /* shorter times are those of the flush itself */
#define BEHIND_MAX_NS  (30000 * MS) /* limit of waiting for a GPU */

struct cupti_client cupti_client;
static _Atomic int turn;
static _Atomic bool on, ever_on, dead;
static _Atomic unsigned report_version;
static _Atomic uint64_t lost_in_singles, foreign_buffers;
static uint64_t dropped, written_off;
static struct cupti_subscriber *subscriber;
static _Atomic bool behind; /* a stop has begun and is not complete */
static uint64_t stopped_ns, flush_ns, pause_ns;
static bool graph_level, no_driver;
static enum config_finalize finalizes;
static _Atomic(void (*)(void)) wake_function;
static _Atomic(struct cupti_subscriber *) leaving; /* cuptiFinalize() is due at the end of a call */

/* ---- turns ---- */

static bool take_turn(void)
{
	int free = FREE;

	return atomic_compare_exchange_strong(&turn, &free, TAKEN);
}

static void wait_ms(uint64_t ms)
{
	struct timespec t = { .tv_nsec = (long)(ms * MS) };

	nanosleep(&t, NULL);
}

static bool wait_for_turn(uint64_t deadline_ns)
{
	while (!take_turn()) {
		if (tick_clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return false;
		wait_ms(1);
	}
	return true;
}

static void end_turn(void)
{
	atomic_store(&turn, FREE);
}

/* ---- CUPTI's callbacks, on the program's threads ---- */

/*
 * A buffer of another tool that arrives in our callback holds records of this process: copy them.
 * The tool may read them later, so nothing in its buffer changes.
 */
static void take_foreign(uint8_t *buffer, size_t valid)
{
	const struct cupti_lib *lib = &cupti_client.lib;
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);
	uint8_t *ours, *record = NULL, *end;
	uint32_t index;
	size_t size;

	atomic_fetch_add_explicit(&foreign_buffers, 1, memory_order_relaxed);
	while (valid && pool_take(&index, &ours, &size)) {
		/* Find as many whole records as fit. */
		for (end = buffer; lib->next_record(buffer, valid, &record) == CUPTI_OK;) {
			uint32_t kind = get_u32(record);

			if (kind >= CUPTI_KINDS || !lib->sizes[kind] ||
			    (size_t)(record - buffer) + lib->sizes[kind] > size)
				break;
			end = record + lib->sizes[kind];
		}
		memcpy(ours, buffer, (size_t)(end - buffer));
		cupti_names_leave(lib, ours, (size_t)(end - buffer));
		pool_complete(index, (size_t)(end - buffer), now_ns,
			      cupti_names_keep(lib, ours, (size_t)(end - buffer)));
		if (end == buffer)
			return;
		valid -= (size_t)(end - buffer);
		buffer = end;
		record = NULL;
	}
	for (record = NULL; lib->next_record(buffer, valid, &record) == CUPTI_OK;)
		atomic_fetch_add_explicit(&lost_in_singles, 1, memory_order_relaxed);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	const struct cupti_lib *lib = &cupti_client.lib;
	unsigned marks = 0;
	uint32_t index;
	size_t buffer_size;

	if (atomic_load_explicit(&dead, memory_order_relaxed) || !buffer)
		return;
	enum pool_place place = pool_find(buffer, &index, &buffer_size);
	if (place == POOL_FOREIGN) {
		take_foreign(buffer, valid);
		return;
	}
	valid = valid < buffer_size ? valid : buffer_size;
	switch (place) {
	case POOL_OURS:
	case POOL_SMALL:
		if (valid)
			marks = cupti_names_keep(lib, buffer, valid);
		pool_complete(index, valid, tick_clock_ns(CLOCK_MONOTONIC), marks);
		void (*wake)(void) = atomic_load_explicit(&wake_function, memory_order_relaxed);

		if (wake && pool_fullness() > LOW_PERCENT)
			wake();
		break;
	case POOL_SINGLE: /* it has one record at most, as requested */
		atomic_fetch_add_explicit(&lost_in_singles, cupti_names_drop(lib, buffer, valid),
					  memory_order_relaxed);
		pool_recycle(index, valid);
		break;
	default: /* POOL_SHARED */
		atomic_fetch_add_explicit(&lost_in_singles, valid != 0, memory_order_relaxed);
	}
	pool_note_completed();
}

/* Detaches CUPTI at the end of a call, on the program's thread: the only place where this is
 * allowed. */
static void leave(void *user, int domain, uint32_t cbid, const void *data)
{
	/* CUpti_CallbackData begins with callbackSite. */
	if (get_u32(data) != CUPTI_CALLBACK_EXIT || !atomic_load(&leaving) || !take_turn())
		return;
	struct cupti_subscriber *mine = atomic_exchange(&leaving, NULL);
	if (mine) {
		cupti_client.lib.unsubscribe(mine);
		cupti_client.lib.finalize();
	}
	end_turn();
}

/* ---- start ---- */

static bool load(const struct config *c)
{
	struct cupti_client *t = &cupti_client;
	struct error err;

	if (t->is_loaded)
		return true;
	if (cupti_lib_open(&t->lib, c->cupti_lib, &err) != ST_OK) {
		snprintf(t->report.problem, sizeof(t->report.problem), "%s", err.text);
		return false;
	}
	if (!t->lib.sizes[CUPTI_KERNEL]) {
		snprintf(t->report.problem, sizeof(t->report.problem),
			 "libcupti does not tell how large its records are");
		return false;
	}
	if (!pool_open(c->memory / 4, c->cupti_buffer) || !cupti_rows_open(&t->lib)) {
		snprintf(t->report.problem, sizeof(t->report.problem),
			 "no memory for buffers of CUPTI");
		return false;
	}
	cupti_layouts_open(&t->lib, c->kinds_mask);
	cupti_calls_open(&t->lib);
	cupti_clock_open(t->lib.timestamp);
	graph_level = c->graphs_level == GRAPHS_GRAPH;
	finalizes = c->finalizes;
	if (!t->lib.finalize || !t->lib.enable_domain || !cupti_can_finalize(t->lib.api_version))
		finalizes = FINALIZE_NO;
	cupti_ids_open(&t->lib);
	t->is_loaded = true;
	return true;
}

static void note_problem(int result)
{
	struct cupti_report *report = &cupti_client.report;
	char buffer_size[160];

	report->refused++;
	snprintf(report->problem, sizeof(report->problem), "%s",
		 cupti_result_message(&cupti_client.lib, result, buffer_size));
}

/* Gets the name of the tool that has the subscription; only newer libraries report it. */
static void ask_name(void)
{
	struct cupti_report *report = &cupti_client.report;
	char name[64] = "";
	struct cupti_subscriber_params p = {
		.size = sizeof(p), .name = "Tacho", .old_name = name, .old_name_size = sizeof(name)
	};
	struct cupti_subscriber *got = NULL;

	if (!cupti_client.lib.subscribe_2)
		return;
	if (cupti_client.lib.subscribe_2(&got, leave, NULL, &p) == CUPTI_OK)
		cupti_client.lib.unsubscribe(got);
	name[sizeof(name) - 1] = '\0';
	if (name[0])
		snprintf(report->problem, sizeof(report->problem),
			 "%s traces this process: end it, or record without it", name);
}

/* Subscribes.  CUPTI has only one subscription, so that other tools cannot start during our
 * window. */
static bool take_subscriber(void)
{
	const struct cupti_lib *lib = &cupti_client.lib;

	if (!lib->subscribe || !lib->unsubscribe)
		return true;
	int result = lib->subscribe(&subscriber, leave, NULL);
	if (result == CUPTI_OK)
		return true;
	subscriber = NULL;
	note_problem(result);
	if (result == CUPTI_TAKEN)
		ask_name();
	return false;
}

static void release_subscriber(void)
{
	if (subscriber)
		cupti_client.lib.unsubscribe(subscriber);
	subscriber = NULL;
}

static bool choose_kinds(const struct config *c)
{
	struct cupti_client *t = &cupti_client;
	struct cupti_choice choice = { .kinds_mask = c->kinds_mask,
				       .memory = c->device_memory,
				       .graph_level = graph_level,
				       .no_driver = no_driver };

	cupti_kinds_enable(&t->lib, &choice, &t->kinds);
	if (graph_level && (!t->kinds.on[CUPTI_GRAPH_TRACE] || !t->kinds.on[CUPTI_KERNEL])) {
		/*
		 * One of the two kinds was refused because of the other, or this library does not
		 * have it.
		 */
		cupti_kinds_disable(&t->lib, &t->kinds);
		choice.graph_level = graph_level = false;
		cupti_kinds_enable(&t->lib, &choice, &t->kinds);
	}
	t->report.graph_level = graph_level;
	return t->kinds.on_count && t->kinds.refusal == CUPTI_OK;
}

static void start(const struct config *c)
{
	struct cupti_client *t = &cupti_client;

	if (!load(c))
		return;
	/* There was no call in which CUPTI could have been detached, so it stays. */
	struct cupti_subscriber *mine = atomic_exchange(&leaving, NULL);

	if (mine)
		cupti_client.lib.unsubscribe(mine);
	if (!subscriber && !take_subscriber())
		return;
	if (t->report.starts) /* at the first start the window may have ended meanwhile */
		behind = false;
	t->report.no_thread_ids = !cupti_lib_set_process(&t->lib);
	/* Register at each window, because a tool may have replaced our callbacks since the last
	 * one. */
	int result = t->lib.register_callbacks(pool_request, complete);
	if (result != CUPTI_OK) {
		note_problem(result);
		release_subscriber();
		cupti_lib_reset_process(&cupti_client.lib);
		return;
	}
	t->report.clock_is_strange |= !cupti_clock_set(&t->lib);
	if (!choose_kinds(c)) {
		cupti_kinds_disable(&t->lib, &t->kinds);
		note_problem(t->kinds.refusal);
		release_subscriber();
		cupti_lib_reset_process(&cupti_client.lib);
		return;
	}
	t->report.problem[0] = '\0';
	if (t->kinds.asked[CUPTI_KERNEL] && !t->kinds.on[CUPTI_KERNEL])
		note_problem(t->kinds.results[CUPTI_KERNEL]); /* other kinds are recorded */
	t->report.starts++;
	t->on_ns = tick_clock_ns(CLOCK_MONOTONIC);
	atomic_store(&ever_on, true);
	atomic_store(&on, true);
}

bool cupti_client_start(const struct config *config)
{
	if (!take_turn())
		return false;
	if (!atomic_load(&on) && !atomic_load(&dead))
		start(config);
	atomic_fetch_add(&report_version, 1);
	end_turn();
	return true;
}

void cupti_client_load(const struct config *config)
{
	if (atomic_load(&dead) || !take_turn())
		return;
	load(config);
	end_turn();
}

bool cupti_client_is_on(void)
{
	return atomic_load(&on);
}

bool cupti_client_was_on(void)
{
	return atomic_load(&ever_on);
}

unsigned cupti_client_report_version(void)
{
	return atomic_load(&report_version);
}

void cupti_client_on_low_buffers(void (*wake)(void))
{
	atomic_store(&wake_function, wake);
}

void cupti_client_graph_level(void)
{
	graph_level = true;
}

/* ---- flush, stop ---- */

/* Returns the number of buffers that CUPTI has, without those that were given up earlier. */
static uint64_t still_out(void)
{
	uint64_t out = pool_requested() - pool_completed();

	return out > written_off ? out - written_off : 0;
}

static void ask_dropped(void)
{
	size_t count = 0;

	if (cupti_client.lib.dropped && cupti_client.lib.dropped(NULL, 0, &count) == CUPTI_OK)
		dropped += count;
}

void cupti_client_flush(void)
{
	/* Before the first request a flush can block for ever. */
	if (!atomic_load(&on) || !still_out() || !take_turn())
		return;
	cupti_client.lib.flush_all(0);
	ask_dropped();
	end_turn();
}

/* Waits for work in progress until the deadline, then forces the other records out, which lack
 * times. */
static void flush_to_the_end(uint64_t deadline_ns)
{
	const struct cupti_lib *lib = &cupti_client.lib;
	uint64_t begin_ns = tick_clock_ns(CLOCK_MONOTONIC), soft_ns = begin_ns;

	if (!pool_requested())
		return;
	lib->flush_all(0);
	if (deadline_ns > begin_ns) /* programs run ahead of their GPU, often by a step */
		soft_ns += (deadline_ns - begin_ns) / 4 * 3;
	while (still_out() && tick_clock_ns(CLOCK_MONOTONIC) < soft_ns) {
		wait_ms(STEP_MS);
		lib->flush_all(0);
	}
	lib->flush_all(CUPTI_FLUSH_FORCED);
	while (still_out() && tick_clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		wait_ms(STEP_MS);
}

/* Completes the report when the buffers of a window are back, or are no longer waited for. */
static void end_window(void)
{
	struct cupti_report *report = &cupti_client.report;
	uint64_t took_ns = tick_clock_ns(CLOCK_MONOTONIC) - stopped_ns;

	if (took_ns > BEHIND_TOLD_NS && took_ns > report->behind_ns)
		report->behind_ns = took_ns;
	ask_dropped();
	written_off += still_out();
	cupti_lib_other(&cupti_client.lib, report->other);
	report->never_came = written_off;
	report->foreign = atomic_load(&foreign_buffers);
	cupti_lib_reset_process(&cupti_client.lib);
	behind = false;
	atomic_fetch_add(&report_version, 1);
}

static void disable(void)
{
	struct cupti_client *t = &cupti_client;

	cupti_clock_note(true);
	t->report.clock_is_strange |= cupti_clock_is_strange();
	cupti_kinds_disable(&t->lib, &t->kinds);
	atomic_store(&on, false);
	stopped_ns = tick_clock_ns(CLOCK_MONOTONIC);
	flush_ns = 0;
	pause_ns = STEP_MS * MS;
}

void cupti_client_stop(uint64_t deadline_ns)
{
	if (!atomic_load(&on) && !behind && atomic_load(&turn) == FREE)
		return;
	if (!behind)
		stopped_ns = tick_clock_ns(CLOCK_MONOTONIC);
	behind = true; /* also if another thread has the turn, which may be starting */
	if (!wait_for_turn(deadline_ns))
		return;
	if (atomic_load(&on))
		disable();
	if (deadline_ns)
		flush_to_the_end(deadline_ns);
	else if (pool_requested())
		cupti_client.lib.flush_all(0);
	if (deadline_ns || !still_out())
		end_window();
	end_turn();
}

bool cupti_client_is_behind(void)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);

	if (atomic_load(&dead) || !behind)
		return false;
	if (atomic_load(&on)) {
		cupti_client_stop(0);
		return behind;
	}
	if (now_ns < flush_ns || !take_turn())
		return true;
	if (pool_requested())
		cupti_client.lib.flush_all(0);
	pause_ns = pause_ns * 2 < PAUSE_MAX_MS * MS ? pause_ns * 2 : PAUSE_MAX_MS * MS;
	flush_ns = now_ns + pause_ns;
	cupti_client.report.left_behind |= still_out() && now_ns - stopped_ns > BEHIND_MAX_NS;
	if (!still_out() || now_ns - stopped_ns > BEHIND_MAX_NS)
		end_window();
	end_turn();
	return behind;
}

void cupti_client_detach(void)
{
	const struct cupti_lib *lib = &cupti_client.lib;
	bool has_graphs = graph_level || cupti_row_counts()->has_graphs;

	if (atomic_load(&on) || behind || !take_turn())
		return;
	struct cupti_subscriber *mine = subscriber;

	cupti_client.report.detaches =
		finalizes == FINALIZE_YES || (finalizes == FINALIZE_AUTO && !has_graphs);
	if (mine && cupti_client.report.detaches) {
		subscriber = NULL;
		atomic_store(&leaving, mine);
		lib->enable_domain(1, mine, CUPTI_RUNTIME);
		lib->enable_domain(1, mine, CUPTI_DRIVER);
	} else {
		release_subscriber();
	}
	atomic_fetch_add(&report_version, 1);
	end_turn();
}

void cupti_client_repair(void)
{
	struct cupti_client *t = &cupti_client;

	if (!atomic_load(&on) || !take_turn())
		return;
	t->lib.register_callbacks(pool_request, complete);
	t->report.clock_is_strange |= !cupti_clock_set(&t->lib);
	cupti_kinds_enable_again(&t->lib, &t->kinds);
	atomic_fetch_add(&report_version, 1);
	end_turn();
}

bool cupti_client_record_driver(bool wanted)
{
	if (!atomic_load(&on) || !take_turn())
		return false;
	no_driver = !wanted;
	cupti_kinds_set(&cupti_client.lib, &cupti_client.kinds, CUPTI_DRIVER_CALL, wanted);
	atomic_fetch_add(&report_version, 1);
	end_turn();
	return true;
}

void cupti_client_await_quiet(uint64_t limit_ns)
{
	if (wait_for_turn(tick_clock_ns(CLOCK_MONOTONIC) + limit_ns))
		end_turn();
}

void cupti_client_note_taken(uint64_t ns)
{
	cupti_client.report.taken_ns += ns;
	atomic_fetch_add(&report_version, 1);
}

uint64_t cupti_client_take_dropped(void)
{
	uint64_t count = dropped;

	dropped = 0;
	return count;
}

uint64_t cupti_client_take_refused(void)
{
	return atomic_exchange(&lost_in_singles, 0);
}

/* ---- fork ---- */

bool cupti_client_is_dead(void)
{
	return atomic_load(&dead);
}

void cupti_client_forked(void)
{
	cupti_ids_open(NULL);
	if (cupti_client.is_loaded || atomic_load(&turn) == TAKEN)
		atomic_store(&dead, true);
	atomic_store(&turn, FREE);
	atomic_store(&on, false);
	behind = false;
	atomic_store(&wake_function, NULL);
	atomic_store(&leaving, NULL);
	subscriber = NULL;
	if (cupti_client_is_dead())
		pool_forked();
}
