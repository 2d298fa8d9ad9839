/* SPDX-License-Identifier: Apache-2.0 */
/* Probe for tacho.h: turns records of api.c in the rings of the program's threads into rows. */
#include "collector/arena/texts.h"
#include "collector/probe/rows.h"
#include "collector/probe/nvtx/rows.h"
#include "collector/session/session.h"
#include "collector/probe/probe.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"

#include <string.h>

/* Estimated cost of a record on the program's thread, besides reading the clock. */
#define RECORD_COST_NS 5.0
#define NVTX_COST_NS   20.0 /* further cost for text and table */

enum { LATE_MAX = 16 << 20 };

static struct desc_cache descs;

static uint32_t thread_track(struct writer *w, struct thread_state *thread)
{
	if (thread->track_log == writer_log(w) && thread->track_owner == thread->owners)
		return thread->track;
	thread->track = probe_thread_track(w, thread->tid, thread->thread_name);
	thread->track_log = writer_log(w);
	thread->track_owner = thread->owners;
	return thread->track;
}

static uint32_t desc_of(struct writer *w, struct thread_state *thread, const struct ring_record *r)
{
	struct event_desc desc = { .kind = r->kind, .subkind = r->subkind };
	struct track counter = { .type = TRACK_COUNTER, .device = NO_ID, .context = NO_ID };

	desc.track = r->kind == KIND_COUNTER ? NO_ID : thread_track(w, thread);
	uint32_t *found = desc_cache_find(&descs, w, desc.track, r, 0);
	if (*found)
		return *found;
	desc.name = r->kind == KIND_STEP ? writer_name(w, "step", 4) : probe_name(w, r->name);
	counter.name = desc.name;
	if (r->kind == KIND_COUNTER)
		desc.track = writer_track(w, &counter);
	return *found = writer_desc(w, &desc);
}

static void put_record(struct writer *w, struct thread_state *thread, const struct ring_record *r,
		       const uint8_t *tail)
{
	struct event e = { .begin_ns = tick_to_ns(r->begin), .flags = r->flags };

	if (r->flags & RING_NVTX) {
		nvtx_rows_put(w, thread_track(w, thread), thread->tid, r, tail);
		return;
	}
	e.end_ns = r->end ? tick_to_ns(r->end) : e.begin_ns;
	probe_clip(w, &e);
	if (e.end_ns < e.begin_ns)
		e.end_ns = e.begin_ns;
	if (r->kind == KIND_COUNTER)
		memcpy(&e.value, &r->word, sizeof(e.value));
	else
		e.number = r->word;
	writer_put(w, &e, desc_of(w, thread, r));
}

/* Returns how full the ring was, in percent. */
static unsigned drain_thread(struct writer *w, struct thread_state *thread)
{
	bool is_last =
		writer_is_last(w) || atomic_load_explicit(&thread->dead, memory_order_acquire);
	uint64_t clocks = 0, texts = 0, used = ring_poll(&thread->ring);
	_Alignas(8) uint8_t tail[RING_TAIL_MAX];
	struct ring_record r;

	for (;;) {
		uint64_t at = thread->ring.at;
		if (!ring_next(&thread->ring, is_last, &r, tail))
			break;
		if (r.end > writer_drains_until(w)) {
			thread->ring.at = at;
			break;
		}
		if (!writer_ready(w)) /* no log is open, so drop the record */
			continue;
		clocks += r.kind == KIND_RANGE ? 2 : 1;
		texts += (r.flags & RING_NVTX) != 0;
		if (writer_wants(w, r.kind))
			put_record(w, thread, &r, tail);
	}
	writer_own_cost(w, (uint64_t)((double)clocks * (tick_cost_ns() + RECORD_COST_NS) +
				      (double)texts * NVTX_COST_NS));
	return thread->ring.slots ? (unsigned)(used * 100 >> thread->ring.bits) : 0;
}

static void api_note_stored(unsigned parity)
{
	for (struct thread_state *thread = session_threads(); thread; thread = thread_next(thread))
		ring_note_stored(&thread->ring, parity);
}

/* Only now frees the records in the rings, because another process reads them there if this one
 * dies. */
static void api_stored(void)
{
	for (struct thread_state *thread = session_threads(); thread; thread = thread_next(thread))
		ring_taken(&thread->ring);
}

static unsigned api_drain(struct writer *w, uint64_t now_ns)
{
	unsigned fullest = 0;

	for (struct thread_state *thread = session_threads(); thread;
	     thread = thread_next(thread)) {
		if (!ring_is_done(&thread->ring)) {
			tick_calibrate();
			unsigned full = drain_thread(w, thread);
			fullest = full > fullest ? full : fullest;
		}
		uint64_t lost = ring_take_lost(&thread->ring);
		if (lost)
			writer_lose(w, LOSS_RING, lost);
	}
	return fullest;
}

/* A record that was taken under the session's lock and is put later. */
struct late {
	struct thread_state *thread_state;
	struct ring_record record; /* followed by its tail */
};
struct late_rows {
	struct writer *writer;
	struct buf rows;
};

static void note_late(struct thread_state *thread, const struct ring_record *r, const void *tail,
		      void *arg)
{
	struct late late = { thread, *r };
	struct late_rows *to = arg;

	if (!writer_wants(to->writer, r->kind) ||
	    !buf_reserve(&to->rows, sizeof(late) + r->more * RING_PLACE))
		return;
	session_note_late();
	buf_put(&to->rows, &late, sizeof(late));
	buf_put(&to->rows, tail, r->more * RING_PLACE);
}

static void api_close_window(struct writer *w, uint64_t window)
{
	struct late_rows open = { .writer = w };
	const struct buf *rows = &open.rows;
	struct late late;

	buf_init(&open.rows, LATE_MAX);
	session_close_threads(window, note_late, &open);
	for (size_t at = 0; at < rows->len && writer_ready(w);
	     at += late.record.more * RING_PLACE) {
		memcpy(&late, rows->data + at, sizeof(late));
		at += sizeof(late);
		put_record(w, late.thread_state, &late.record, rows->data + at);
	}
	buf_release(&open.rows);
}

static void api_doctor(struct buf *out)
{
	if (tick_cost_ns() <= 0)
		tick_init(session_config()->clock);
	buf_putf(out, "clock     %s, %.1f ns a reading\n", tick_name(), tick_cost_ns());
	names_open();
	arena_doctor(out, "memory    ", "shared by memfd, sealed, wiped in children\n");
}

const struct probe_type probe_api = {
	.name = "api",
	.help = "steps, phases, ranges, counters and marks of tacho.h",
	.drain = api_drain,
	.note_stored = api_note_stored,
	.stored = api_stored,
	.close_window = api_close_window,
	.doctor = api_doctor,
};
