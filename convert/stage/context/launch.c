/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - the recent calls of each process, and the GPU work that they launched.
 *
 * Calls begin before their work, so one pass with a ring of recent calls per process is enough.
 * The newest chunks of the ring are plain; older ones are packed to about ten bytes per call.  Ids
 * of calls are not packed, so a lookup unpacks only the chunk that contains the call.
 *
 * Many events may share one call (CUDA graphs).  If a runtime call and the driver call inside it
 * have the same correlation, the outer one is the launch.  If a correlation occurs again, it
 * belongs to the later call from then on.
 */
#include "convert/stage/context/internal.h"

#include "schemas/base/vec.h"
#include "schemas/base/sort.h"
#include "schemas/model/call.h"

#include <stdlib.h>
#include <string.h>

enum {
	CHUNK = 256,            /* calls per chunk */
	CHUNKS_NEWEST = 64,     /* never packed, because a GPU is seldom that far behind */
	CHUNKS_REOPENED = 16,   /* number of older chunks that are kept unpacked */
	PACKED_CALL_BYTES = 64, /* at most: 1 for flags, 2 x 10 and 6 x 5 for numbers */
	BUCKETS_FIRST = 256,
	HELD_EVENTS = 1 << 16, /* most events that are read ahead, whatever the slack */
	NOT_IN_TABLE = -1,     /* value of call_id.next */
};

enum launch_flag {
	LAUNCH_LIVE = 1,   /* in the table; otherwise another call has its id */
	LAUNCH_CALL = 2,   /* a recorded call; otherwise an id known only from GPU work */
	LAUNCH_STARTS = 4, /* the call launches work, by its name */
	LAUNCH_WORKED = 8, /* GPU work of the call was found */
};

struct call_chunk {
	struct launch *calls; /* NULL: packed */
	uint8_t *packed;
	uint32_t packed_len;
	uint32_t index;
	struct call_id {
		uint32_t key;  /* see key_of() */
		uint32_t next; /* next slot in the bucket + 1; 0: none */
	} ids[CHUNK];
};

struct call_table {
	struct call_chunk **chunks;
	size_t chunk_count, chunk_cap;
	uint32_t window;   /* number of slots at most, > 0 */
	uint32_t *buckets; /* first slot + 1; 0: none */
	uint32_t bucket_count, buckets_first;
	uint32_t used, oldest; /* number of used slots; slot to reuse once all are used */
	uint64_t begun;        /* number of chunks begun so far */
	struct call_chunk *reopened[CHUNKS_REOPENED];
	uint32_t reopened_next;
	uint64_t highest_id; /* most ids are higher than all before, so this avoids a search */
	uint64_t worked;     /* number of launches whose work was found */
	uint64_t call_ids;   /* calls with an id, which a runtime and a driver call may share */
	struct id_set ids;
	struct launch_totals totals;
};

/* ---- packing: what a call does not share with the one before it ---- */

enum {
	SAME_TRACK = 1,
	SAME_NAME = 2,
	SAME_PATH = 4,
	SAME_STEP = 8,
	SAME_KIND = 16,
	SAME_HIGH = 32,
};

static uint8_t *put_other(uint8_t *p, uint8_t *same, unsigned bit, uint32_t now, uint32_t before)
{
	if (now == before)
		*same |= (uint8_t)bit;
	else
		p += put_varint(p, zigzag((int64_t)now - before));
	return p;
}

static uint32_t take_other(struct bytes *b, uint8_t same, unsigned bit, uint32_t before)
{
	return same & bit ? before : (uint32_t)(before + take_zigzag(b));
}

static uint32_t high_of(const struct launch *l)
{
	return (uint32_t)(l->correlation >> 32);
}

/* Hashes a correlation to 32 bits.  With the upper half of the correlation, the hash gives the
 * lower half again. */
static uint32_t key_of(uint64_t correlation)
{
	return (uint32_t)correlation ^ (uint32_t)(correlation >> 32) * 0x9E3779B1u;
}

static uint32_t kind_of(const struct launch *l)
{
	return (uint32_t)l->phase << 8 | l->flags;
}

static uint8_t *pack_call(uint8_t *p, const struct launch *l, const struct launch *before)
{
	uint8_t *same = p++;

	*same = 0;
	p += put_varint(p, zigzag((int64_t)(l->begin_ns - before->begin_ns)));
	p += put_varint(p, l->end_ns - l->begin_ns);
	p = put_other(p, same, SAME_TRACK, l->track, before->track);
	p = put_other(p, same, SAME_NAME, l->name, before->name);
	p = put_other(p, same, SAME_PATH, l->path, before->path);
	p = put_other(p, same, SAME_STEP, l->step, before->step);
	p = put_other(p, same, SAME_KIND, kind_of(l), kind_of(before));
	return put_other(p, same, SAME_HIGH, high_of(l), high_of(before));
}

static void unpack_call(struct bytes *b, uint32_t key, const struct launch *before,
			struct launch *l)
{
	uint8_t same = take_u8(b);
	uint32_t kind;

	*l = (struct launch){ .begin_ns = before->begin_ns + (uint64_t)take_zigzag(b) };
	l->end_ns = l->begin_ns + take_varint(b);
	l->track = take_other(b, same, SAME_TRACK, before->track);
	l->name = take_other(b, same, SAME_NAME, before->name);
	l->path = take_other(b, same, SAME_PATH, before->path);
	l->step = take_other(b, same, SAME_STEP, before->step);
	kind = take_other(b, same, SAME_KIND, kind_of(before));
	l->phase = (uint8_t)(kind >> 8);
	l->flags = (uint8_t)kind;
	l->correlation = (uint64_t)take_other(b, same, SAME_HIGH, high_of(before)) << 32;
	l->correlation |= key_of(l->correlation) ^ key;
}

/* Packs a chunk.  If there is no memory for the packed form, the chunk stays as it is. */
static void chunk_pack(const struct call_table *t, struct call_chunk *k)
{
	uint32_t count = t->used - k->index * CHUNK < CHUNK ? t->used - k->index * CHUNK : CHUNK;
	const struct launch none = { .begin_ns = 0 }, *before = &none;
	uint8_t packed[CHUNK * PACKED_CALL_BYTES], *at = packed;

	if (!k->calls)
		return;
	for (uint32_t i = 0; i < count; before = &k->calls[i++])
		at = pack_call(at, &k->calls[i], before);
	k->packed_len = (uint32_t)(at - packed);
	k->packed = malloc(k->packed_len);
	if (!k->packed)
		return;
	memcpy(k->packed, packed, k->packed_len);
	free(k->calls);
	k->calls = NULL;
}

static uint32_t ring_chunks(const struct call_table *t)
{
	return (t->window + CHUNK - 1) / CHUNK;
}

/* Unpacks a chunk, and packs the one that was unpacked longest ago. */
static enum status chunk_reopen(struct call_table *t, struct call_chunk *k, struct error *err)
{
	struct call_chunk **place = &t->reopened[t->reopened_next++ % CHUNKS_REOPENED];
	const struct launch none = { .begin_ns = 0 }, *before = &none;
	struct bytes b = bytes_init(k->packed, k->packed_len);
	uint32_t ring = ring_chunks(t);

	if (*place && ((t->begun - 1) % ring + ring - (*place)->index) % ring >= CHUNKS_NEWEST)
		chunk_pack(t, *place);
	*place = k;
	TRY(vec_new(&k->calls, CHUNK, err));
	for (uint32_t i = 0; i < CHUNK && bytes_left(&b); before = &k->calls[i++])
		unpack_call(&b, k->ids[i].key, before, &k->calls[i]);
	free(k->packed);
	k->packed = NULL;
	return ST_OK;
}

/* ---- the table ---- */

static struct call_chunk *chunk_of(const struct call_table *t, uint32_t slot)
{
	return t->chunks[slot / CHUNK];
}

static struct call_id *id_of(const struct call_table *t, uint32_t slot)
{
	return &chunk_of(t, slot)->ids[slot % CHUNK];
}

/* Consecutive ids get consecutive buckets, which stay in the cache. */
static uint32_t *bucket_of(const struct call_table *t, uint32_t key)
{
	return &t->buckets[(key ^ key >> 20) & (t->bucket_count - 1)];
}

static void slot_enter(struct call_table *t, uint32_t slot)
{
	struct call_id *id = id_of(t, slot);
	uint32_t *bucket = bucket_of(t, id->key);

	id->next = *bucket;
	*bucket = slot + 1;
}

/* Finds the call with a correlation; *call is NULL if there is none.  *call and *slot are valid
 * until the next find or add. */
static enum status call_find(struct call_table *t, uint64_t correlation, struct launch **call,
			     uint32_t *slot, struct error *err)
{
	uint32_t key = key_of(correlation);
	struct call_id *id;

	*call = NULL;
	if (!correlation || correlation > t->highest_id)
		return ST_OK;
	for (uint32_t at = *bucket_of(t, key); at; at = id->next) {
		struct call_chunk *k = chunk_of(t, at - 1);

		id = &k->ids[(at - 1) % CHUNK];
		if (id->key != key)
			continue;
		if (!k->calls)
			TRY(chunk_reopen(t, k, err));
		if (k->calls[(at - 1) % CHUNK].correlation != correlation)
			continue;
		*slot = at - 1;
		*call = &k->calls[(at - 1) % CHUNK];
		return ST_OK;
	}
	return ST_OK;
}

/* Removes a call from the table, because its slot is reused or its id belongs to another call now.
 */
static void call_forget(struct call_table *t, uint32_t slot)
{
	struct launch *l = &chunk_of(t, slot)->calls[slot % CHUNK];
	uint32_t *at;

	if (!(l->flags & LAUNCH_LIVE))
		return;
	at = bucket_of(t, id_of(t, slot)->key);
	while (*at != slot + 1)
		at = &id_of(t, *at - 1)->next;
	*at = id_of(t, slot)->next;
	id_of(t, slot)->next = (uint32_t)NOT_IN_TABLE;
	if ((l->flags & LAUNCH_STARTS) && !(l->flags & LAUNCH_WORKED))
		t->totals.fell_out++;
	l->flags = 0;
}

static enum status buckets_grow(struct call_table *t, struct error *err)
{
	uint32_t count = t->bucket_count ? t->bucket_count * 2 : t->buckets_first;
	uint32_t *buckets;

	TRY(vec_new(&buckets, count, err));
	free(t->buckets);
	t->buckets = buckets;
	t->bucket_count = count;
	for (uint32_t i = 0; i < t->used; i++)
		if (id_of(t, i)->next != (uint32_t)NOT_IN_TABLE)
			slot_enter(t, i);
	return ST_OK;
}

static enum status chunk_add(struct call_table *t, struct error *err)
{
	struct call_chunk *k = calloc(1, sizeof(*k));

	if (!k || vec_reserve(&t->chunks, &t->chunk_cap, t->chunk_count + 1, err) != ST_OK) {
		free(k);
		return fail_memory(err);
	}
	t->chunks[t->chunk_count] = k;
	k->index = (uint32_t)t->chunk_count++;
	k->calls = malloc(CHUNK * sizeof(*k->calls));
	return k->calls ? ST_OK : fail_memory(err);
}

/* Adds a call, in place of the oldest one if the window is full.  No other call in the table may
 * have its id. */
static enum status call_add(struct call_table *t, const struct launch *l, struct launch **out,
			    struct error *err)
{
	uint32_t slot = t->used < t->window ? t->used : t->oldest;

	if (t->used == t->window) {
		if (!chunk_of(t, slot)->calls)
			TRY(chunk_reopen(t, chunk_of(t, slot), err));
		call_forget(t, slot);
		t->oldest = slot + 1 == t->window ? 0 : slot + 1;
	} else {
		if (t->used == t->bucket_count)
			TRY(buckets_grow(t, err));
		if (t->used == t->chunk_count * CHUNK)
			TRY(chunk_add(t, err));
		t->used++;
	}
	if (slot % CHUNK == 0 && t->begun++ >= CHUNKS_NEWEST && ring_chunks(t) > CHUNKS_NEWEST)
		chunk_pack(t, t->chunks[(t->begun - 1 - CHUNKS_NEWEST) % ring_chunks(t)]);
	*out = &chunk_of(t, slot)->calls[slot % CHUNK];
	**out = *l;
	id_of(t, slot)->key = key_of(l->correlation);
	slot_enter(t, slot);
	t->highest_id = l->correlation > t->highest_id ? l->correlation : t->highest_id;
	return ST_OK;
}

/* ---- calls in, work out ---- */

static struct call_table *table_of(const struct context *c, const struct event *e)
{
	return &c->launch.tables[host_thread(&c->host, e->track)->process];
}

static bool starts_work(struct context *c, const struct event *e)
{
	uint32_t name = e->name;
	uint8_t *starts = &c->launch.starts[name <= c->launch.name_count ? name : 0];
	size_t len;
	const char *text;

	if (e->subkind == API_OF_KERNEL)
		return true;
	if (starts == c->launch.starts || !*starts) {
		text = trace_text(c->host.trace, name, &len);
		*starts = call_launches(text, len) ? 2 : 1;
	}
	return *starts == 2;
}

static enum status call_enter(struct context *c, const struct event *e, struct error *err)
{
	struct call_table *t = table_of(c, e);
	struct launch call = {
		.begin_ns = e->begin_ns,
		.end_ns = e->end_ns,
		.correlation = e->correlation,
		.track = e->track,
		.name = e->name,
		.path = e->path,
		.step = e->step,
		.phase = e->phase,
		.flags = LAUNCH_LIVE | LAUNCH_CALL,
	};
	struct launch *old;
	uint32_t slot;

	t->call_ids++;
	TRY(id_set_add(&t->ids, e->correlation, err));
	TRY(call_find(t, e->correlation, &old, &slot, err));
	if (old && (old->flags & LAUNCH_CALL) && e->begin_ns < old->end_ns)
		return ST_OK; /* this is a driver call inside a runtime call */
	if (old)
		call_forget(t, slot);
	if (starts_work(c, e)) {
		call.flags |= LAUNCH_STARTS;
		t->totals.launches++;
	}
	return call_add(t, &call, &old, err);
}

/* Copies the launch of GPU work or of a synchronisation to *copy, and its context to the event.
 * *is_known: the launch is known. */
static enum status work_find(struct context *c, struct event *e, struct launch *copy,
			     bool *is_known, struct error *err)
{
	struct call_table *t = table_of(c, e);
	struct launch_totals *totals = &t->totals;
	struct launch *l;
	uint32_t slot;

	TRY(call_find(t, e->correlation, &l, &slot, err));
	*is_known = l && (l->flags & LAUNCH_CALL);
	*copy = *is_known ? *l : (struct launch){ .flags = 0 };
	e->step = copy->step;
	e->path = copy->path;
	e->phase = copy->phase;
	if (!event_is_gpu_work(e))
		return ST_OK;
	e->path = scope_path(&c->host, e, host_thread(&c->host, e->track)->process, e->path);
	totals->gpu_events++;
	totals->with_launch += *is_known;
	if (!l && e->correlation) {
		struct launch unknown = { .correlation = e->correlation, .flags = LAUNCH_LIVE };

		TRY(call_add(t, &unknown, &l, err)); /* so that its id is counted once */
	}
	if (!l || (l->flags & LAUNCH_WORKED))
		return ST_OK;
	l->flags |= LAUNCH_WORKED;
	t->worked += !!(l->flags & LAUNCH_STARTS);
	totals->ids++;
	return id_set_add(&t->ids, l->correlation, err);
}

size_t launch_ready(const struct context *c)
{
	const struct event *events = c->final ? queue_at(&c->queue, 0) : NULL;
	uint64_t last_ns;
	size_t at;

	if (!c->final || c->is_exhausted)
		return c->final;
	last_ns = events[c->final - 1].begin_ns;
	SEARCH(at, 0, c->final, last_ns - events[at].begin_ns > c->launch.slack_ns);
	return !at && c->final >= HELD_EVENTS ? c->final / 2 : at;
}

enum status launch_find(struct context *c, size_t count, struct error *err)
{
	struct launch_stage *s = &c->launch;
	struct event *events = queue_at(&c->queue, 0);

	TRY(vec_reserve(&s->found, &s->found_cap, count, err));
	TRY(vec_reserve(&s->copies, &s->copies_cap, count, err));
	for (size_t i = 0, copies = 0; i < count; i++) {
		struct event *e = &events[i];
		bool is_known = false;

		/* Differences are compared, because begin + slack could overflow. */
		while (s->entered < c->final &&
		       (events[s->entered].begin_ns <= e->begin_ns ||
			events[s->entered].begin_ns - e->begin_ns <= s->slack_ns)) {
			const struct event *call = &events[s->entered++];

			if (call->kind == KIND_API && call->correlation)
				TRY(call_enter(c, call, err));
			else if (call->kind == KIND_API && starts_work(c, call))
				table_of(c, call)->totals.launches++; /* without a correlation its
								       * work cannot be found */
		}
		if (event_is_gpu_work(e) || e->kind == KIND_SYNC)
			TRY(work_find(c, e, &s->copies[copies], &is_known, err));
		s->found[i] = is_known ? &s->copies[copies++] : NULL;
	}
	return ST_OK;
}

struct launch_totals context_launch_totals(const struct context *c, uint32_t process)
{
	const struct call_table *t;
	struct launch_totals totals = { 0 };

	if (!c->launch.tables)
		return totals;
	t = &c->launch.tables[process <= c->host.process_count ? process : 0];
	totals = t->totals;
	totals.without_gpu_event = totals.launches - t->worked;
	if (!totals.ids)
		return totals;
	if (t->call_ids > totals.ids)
		totals.ids = t->call_ids;
	totals.id_range = id_set_range(&t->ids, totals.ids);
	if (totals.ids > totals.id_range)
		totals.ids = totals.id_range;
	return totals;
}

enum status launch_init(struct context *c, const struct context_request *how, struct error *err)
{
	struct launch_stage *s = &c->launch;
	uint32_t processes = c->host.process_count ? c->host.process_count : 1;
	uint64_t events = trace_provenance(c->host.trace)->events / processes / 3;
	uint32_t buckets = BUCKETS_FIRST;
	size_t window = how->window;

	if (!window || window > LAUNCH_WINDOW)
		window = LAUNCH_WINDOW;
	/* About a third of all events are calls.  A large first table is cheaper than growing it,
	 * because that enters all calls again. */
	while (buckets < events && buckets < window)
		buckets *= 2;
	s->slack_ns = how->slack_ns;
	s->name_count = c->host.name_count;
	TRY(vec_new(&s->tables, c->host.process_count + 1, err));
	TRY(vec_new(&s->starts, s->name_count + 1, err));
	for (uint32_t i = 0; i <= c->host.process_count; i++) {
		s->tables[i].window = (uint32_t)window;
		s->tables[i].buckets_first = buckets;
	}
	return ST_OK;
}

void launch_release(struct context *c)
{
	for (uint32_t i = 0; c->launch.tables && i <= c->host.process_count; i++) {
		struct call_table *t = &c->launch.tables[i];

		for (size_t k = 0; k < t->chunk_count; k++) {
			free(t->chunks[k]->calls);
			free(t->chunks[k]->packed);
			free(t->chunks[k]);
		}
		free(t->chunks);
		free(t->buckets);
		free(t->ids.runs);
	}
	free(c->launch.tables);
	free(c->launch.starts);
	free(c->launch.found);
	free(c->launch.copies);
}
