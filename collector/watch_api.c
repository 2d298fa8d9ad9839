/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of the program's threads to rows: what api.c put there. */
#include "collector/comm.h"
#include "collector/names.h"
#include "collector/nvtx/names.h"
#include "collector/nvtx/rows.h"
#include "collector/session.h"
#include "collector/watch.h"
#include "collector/writer.h"
#include "schemas/buf.h"
#include "schemas/hash.h"

#include <string.h>

/* Of what a row costs on the program's thread besides reading the clock. */
#define RECORD_COST_NS 5.0
#define NVTX_COST_NS 20.0 /* more, for its text and its table */

enum { SITES = 4096, LATE_MAX = 16 << 20 };

/* A row of the log's dictionary by what it was made of; one place per hash, the last one stays. */
struct known_site {
	uint64_t where_what, kind; /* track << 32 | name; kind << 8 | class */
	uint32_t site;
};
static struct {
	uint64_t log;
	uint32_t ids;                     /* the largest that is known */
	uint32_t names[NAMES_MAX + 1];    /* ours to the log's */
	uint32_t counters[NAMES_MAX + 1]; /* tracks, by name */
	struct known_site sites[SITES];
} known;

/* There is a log to put rows into, and what is known is of that log. */
static bool is_ready(struct writer *w)
{
	size_t ids;

	if (!writer_ready(w))
		return false;
	if (known.log != writer_log(w)) {
		ids = known.ids + 1; /* no more of the tables was touched */
		memset(known.names, 0, ids * sizeof(known.names[0]));
		memset(known.counters, 0, ids * sizeof(known.counters[0]));
		memset(known.sites, 0, sizeof(known.sites));
		known.ids = 0;
	}
	known.log = writer_log(w);
	return true;
}

static uint32_t name_of(struct writer *w, uint32_t id)
{
	const char *text;
	size_t len;

	if (id > NAMES_MAX)
		id = 0;
	if (!known.names[id]) {
		text = name_text(id, &len);
		known.names[id] = writer_name(w, text, len);
		known.ids = id > known.ids ? id : known.ids;
	}
	return known.names[id];
}

/* As it is now: names are often given after the first event.  A thread that is gone had one. */
static uint32_t thread_name(struct writer *w, const struct lane *l)
{
	uint32_t name = nvtx_thing_name(NVTX_THREAD, l->tid);
	char comm[COMM_MAX];
	const char *text;
	size_t len;

	if (name) {
		text = name_text(name, &len);
		return writer_name(w, text, len);
	}
	len = comm_read(l->tid, comm);
	if (len)
		return writer_name(w, comm, len);
	return writer_name(w, l->thread_name, strnlen(l->thread_name, sizeof(l->thread_name)));
}

static uint32_t thread_track(struct writer *w, struct lane *l)
{
	struct track track = { .home = HOME_THREAD, .device = NO_ID, .context = NO_ID,
			       .id = l->tid };

	if (l->track_log == writer_log(w) && l->track_owner == l->owners)
		return l->track;
	track.name = thread_name(w, l);
	l->track = writer_track(w, &track);
	l->track_log = writer_log(w);
	l->track_owner = l->owners;
	return l->track;
}

static uint32_t counter_track(struct writer *w, uint32_t name)
{
	struct track track = { .home = HOME_COUNTER, .device = NO_ID, .context = NO_ID };

	if (name > NAMES_MAX)
		name = 0;
	if (!known.counters[name]) {
		track.name = name_of(w, name);
		known.counters[name] = writer_track(w, &track);
	}
	return known.counters[name];
}

static uint32_t step_name(struct writer *w)
{
	return writer_name(w, "step", 4);
}

static uint32_t site_of(struct writer *w, struct lane *l, const struct ring_record *r)
{
	uint32_t track = r->kind == KIND_COUNTER ? counter_track(w, r->name) : thread_track(w, l);
	uint64_t where_what = (uint64_t)track << 32 | r->name;
	uint64_t kind = (uint64_t)r->kind << 8 | r->subkind;
	struct known_site *k = &known.sites[hash_word(hash_word(0, where_what), kind) % SITES];
	struct site site;

	if (k->site && k->where_what == where_what && k->kind == kind)
		return k->site;
	site = (struct site){ .track = track, .kind = r->kind, .subkind = r->subkind,
			      .name = r->kind == KIND_STEP ? step_name(w) : name_of(w, r->name) };
	*k = (struct known_site){ where_what, kind, writer_site(w, &site) };
	return k->site;
}

static void put_record(struct writer *w, struct lane *l, const struct ring_record *r,
		       const uint8_t *tail)
{
	struct event e = { .begin_ns = tick_to_ns(r->begin), .flags = r->flags };

	if (r->flags & RING_NVTX) {
		nvtx_rows_put(w, thread_track(w, l), l->tid, r, tail);
		return;
	}
	e.end_ns = r->end ? tick_to_ns(r->end) : e.begin_ns;
	if (e.end_ns < e.begin_ns)
		e.end_ns = e.begin_ns;
	if (r->kind == KIND_COUNTER)
		memcpy(&e.value, &r->word, sizeof(e.value));
	else
		e.number = r->word;
	writer_put(w, &e, site_of(w, l, r));
}

static unsigned drain_lane(struct writer *w, struct lane *l, uint64_t count)
{
	_Alignas(8) uint8_t tail[RING_TAIL_MAX];
	uint64_t i, clocks = 0, texts = 0;
	unsigned full;

	for (i = 0; i < count && is_ready(w); i += 1u + ring_at(&l->ring, i)->more) {
		const struct ring_record *r = ring_at(&l->ring, i);

		clocks += r->kind == KIND_RANGE ? 2 : 1;
		texts += (r->flags & RING_NVTX) != 0;
		if (!writer_wants(w, r->kind))
			continue;
		ring_tail(&l->ring, i, tail);
		put_record(w, l, r, tail);
	}
	full = l->ring.records ? (unsigned)(count * 100 / (l->ring.mask + 1)) : 0;
	ring_take(&l->ring, count);
	writer_own_cost(w, (uint64_t)((double)clocks * (tick_cost_ns() + RECORD_COST_NS) +
				      (double)texts * NVTX_COST_NS));
	return full;
}

static unsigned api_drain(struct writer *w, uint64_t now_ns)
{
	unsigned fullest = 0, full;
	struct lane *l;
	uint64_t count, lost;

	for (l = session_lanes(); l; l = l->next) {
		count = ring_ready(&l->ring);
		lost = ring_take_lost(&l->ring);
		if (lost)
			writer_lose(w, LOSS_RING, lost);
		if (!count)
			continue;
		tick_knot();
		full = drain_lane(w, l, count);
		fullest = full > fullest ? full : fullest;
	}
	return fullest;
}

/* Under the session's lock: only noted. */
struct late {
	struct lane *lane;
	struct ring_record record; /* and its tail behind it */
};

static void note_late(struct lane *l, const struct ring_record *r, const void *tail, void *arg)
{
	struct late late = { l, *r };

	if (!buf_reserve(arg, sizeof(late) + r->more * sizeof(*r)))
		return;
	buf_put(arg, &late, sizeof(late));
	buf_put(arg, tail, r->more * sizeof(*r));
}

static void api_close_window(struct writer *w, uint64_t window)
{
	struct buf open;
	struct late late;
	size_t at;

	buf_init(&open, LATE_MAX);
	session_close_lanes(window, note_late, &open);
	for (at = 0; at < open.len && is_ready(w); at += late.record.more * sizeof(late.record)) {
		memcpy(&late, open.data + at, sizeof(late));
		at += sizeof(late);
		if (writer_wants(w, late.record.kind))
			put_record(w, late.lane, &late.record, open.data + at);
	}
	buf_release(&open);
}

static void api_doctor(struct buf *out)
{
	if (tick_cost_ns() <= 0)
		tick_init(session_config()->clock);
	buf_putf(out, "clock     %s, %.1f ns a reading\n", tick_name(), tick_cost_ns());
}

const struct watch_type watch_api = {
	.name = "api",
	.help = "steps, phases, ranges, counters and marks of tacho.h",
	.drain = api_drain,
	.close_window = api_close_window,
	.doctor = api_doctor,
};
