/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/chrome/pairs.h"

#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MOST = 1 << 20, ASYNC_MOST = 4096, KEYS_FIRST = 256 };

#define ASYNC_TIDS ((uint64_t)1 << 41) /* greater than any tid */

struct open { /* a begin without its end so far */
	struct event event;
	uint64_t *words; /* argument values; freed with it */
	uint32_t below;  /* index + 1 of the next one of its key, or the next unused */
};

struct key { /* identifies pairs that belong together */
	uint64_t id;
	uint32_t top;   /* index + 1 into `opens`; 0: none is open */
	uint32_t async; /* index + 1 into `asyncs`; 0: none */
};

struct async { /* a thread created for pairs with ids */
	uint32_t process, track;
	bool is_busy;
};

struct matcher {
	struct import *to;   /* borrowed */
	struct spool *pairs; /* borrowed */
	struct open *opens;
	uint32_t open_count, unused_open;
	struct key *keys;
	struct map key_ids;            /* ids to indices into `keys` */
	uint32_t key_count, keys_most; /* keys_most: count that triggers drop_keys() */
	struct async *asyncs;
	uint32_t async_count;
	size_t open_cap, key_cap, async_cap;
};

/* ---- keys ---- */

/* Drops keys that have nothing open, because ids are rarely used again. */
static enum status drop_keys(struct matcher *p, struct error *err)
{
	uint32_t live = 0;
	uint64_t *at;

	map_clear(&p->key_ids);
	for (uint32_t i = 0; i < p->key_count; i++)
		if (p->keys[i].top) {
			at = map_put(&p->key_ids, p->keys[i].id, NULL);
			if (!at)
				return fail_memory(err);
			*at = live;
			p->keys[live++] = p->keys[i];
		}
	p->key_count = live;
	p->keys_most = live * 2 > KEYS_FIRST ? live * 2 : KEYS_FIRST;
	return ST_OK;
}

/* Finds or adds the key of an event.  Events without a pair number nest on their track. */
static enum status key_find(struct matcher *p, const struct event *e, struct key **out,
			    struct error *err)
{
	uint64_t id = e->step ? e->step : (uint64_t)e->track << 32;
	uint64_t *at = map_find(&p->key_ids, id);

	if (!at) {
		if (p->key_count >= p->keys_most)
			TRY(drop_keys(p, err));
		TRY(vec_reserve(&p->keys, &p->key_cap, p->key_count + 1, err));
		at = map_put(&p->key_ids, id, NULL);
		if (!at)
			return fail_memory(err);
		*at = p->key_count;
		p->keys[p->key_count++] = (struct key){ .id = id };
	}
	*out = &p->keys[*at];
	return ST_OK;
}

/* ---- threads for overlapping ranges ---- */

/* Finds or adds a thread of the process on which nothing is open; *async is its index + 1. */
static enum status async_take(struct matcher *p, uint32_t process, uint32_t *async,
			      struct error *err)
{
	struct import *to = p->to;
	struct track t = {
		.type = TRACK_THREAD, .process = process, .device = NO_ID, .context = NO_ID
	};
	uint32_t i = 0, before = 0, text;
	char name[32];
	int len;

	for (; i < p->async_count; i++) {
		before += p->asyncs[i].process == process;
		if (!p->asyncs[i].is_busy && p->asyncs[i].process == process)
			break;
	}
	*async = i + 1;
	if (i < p->async_count) {
		p->asyncs[i].is_busy = true;
		return ST_OK;
	}
	if (i == ASYNC_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d ranges of ids at one time",
			    ASYNC_MOST);
	TRY(vec_reserve(&p->asyncs, &p->async_cap, i + 1, err));
	len = snprintf(name, sizeof(name), "async %u", before + 1);
	t.id = ASYNC_TIDS + before;
	text = trace_name(to->trace, name, (size_t)len, err);
	if (!text)
		return err->status;
	p->asyncs[i] = (struct async){ .process = process, .is_busy = true };
	p->asyncs[i].track = trace_track(to->trace, &t, err);
	if (!p->asyncs[i].track)
		return err->status;
	trace_set_track_name(to->trace, p->asyncs[i].track, text);
	p->async_count++;
	return ST_OK;
}

/* ---- begins and ends ---- */

static enum status begin(struct matcher *p, struct key *k, const struct event *e, struct error *err)
{
	const struct trace *trace = p->to->trace;
	size_t bytes = trace_get_schema(trace, e->schema)->arg_count * sizeof(uint64_t);
	struct open *o;
	uint32_t at;

	if (!p->unused_open && p->open_count == OPEN_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d ranges are open at one time",
			    OPEN_MOST);
	TRY(vec_reserve(&p->opens, &p->open_cap, p->open_count + 1, err));
	if (e->step && !(e->step & PAIR_NESTS) && !k->async)
		TRY(async_take(p, trace_get_track(trace, e->track)->process, &k->async, err));
	at = p->unused_open ? p->unused_open - 1 : p->open_count++;
	o = &p->opens[at];
	if (p->unused_open)
		p->unused_open = o->below;
	*o = (struct open){ .event = *e, .below = k->top };
	k->top = at + 1;
	if (!e->args || !bytes)
		return ST_OK;
	o->words = malloc(bytes);
	if (!o->words)
		return fail_memory(err);
	memcpy(o->words, e->args, bytes);
	o->event.args = o->words;
	return ST_OK;
}

enum status chrome_pair_args(struct trace *t, struct event *b, const struct event *e,
			     struct error *err)
{
	const struct arg_schema *mine = trace_get_schema(t, b->schema);
	const struct arg_schema *more = trace_get_schema(t, e->schema);
	struct arg_schema merged = { .args = mine->args, .arg_count = mine->arg_count };
	struct attr *attrs = malloc((mine->const_count + more->const_count + more->arg_count + 1) *
				    sizeof(*attrs));

	if (!attrs)
		return fail_memory(err);
	for (uint32_t i = 0; i < mine->const_count; i++)
		attrs[merged.const_count++] = mine->consts[i];
	for (uint32_t i = 0; i < more->const_count; i++) {
		bool has = false;

		for (uint32_t m = 0; m < mine->const_count && !has; m++)
			has = mine->consts[m].key == more->consts[i].key;
		if (!has)
			attrs[merged.const_count++] = more->consts[i];
	}
	for (uint32_t i = 0; e->args && i < more->arg_count; i++) {
		attrs[merged.const_count] = more->args[i];
		attrs[merged.const_count++].bits = e->args[i];
	}
	merged.consts = attrs;
	b->schema = trace_schema(t, &merged, err);
	free(attrs);
	return b->schema ? ST_OK : err->status;
}

static enum status finish(struct matcher *p, struct key *k, uint64_t end_ns, uint8_t flags,
			  const struct event *end, struct error *err)
{
	uint32_t at = k->top - 1;
	struct open *o = &p->opens[at];
	struct event e = o->event;
	enum status status = ST_OK;

	e.end_ns = end_ns > e.begin_ns ? end_ns : e.begin_ns;
	e.flags |= flags;
	e.subkind = e.path ? (uint8_t)(e.path - 1) : RANGE_OTHER;
	e.path = 0;
	if (k->async)
		e.track = p->asyncs[k->async - 1].track;
	e.step = 0;
	if (end && !e.name)
		e.name = end->name;
	if (end && end->schema)
		status = chrome_pair_args(p->to->trace, &e, end, err);
	if (status == ST_OK)
		status = import_put(p->to, &e, err);
	free(o->words);
	k->top = o->below;
	*o = (struct open){ .below = p->unused_open };
	p->unused_open = at + 1;
	if (!k->top && k->async) {
		p->asyncs[k->async - 1].is_busy = false;
		k->async = 0;
	}
	return status;
}

/* Finds the innermost begin that an end may close.  Names count where pairs stay on their track, if
 * both have one.  Returns 0 if there is none. */
static uint32_t find_begin(const struct matcher *p, const struct key *k, const struct event *end)
{
	uint32_t at = k->top;

	while (at && end->step & PAIR_NESTS && end->name && p->opens[at - 1].event.name &&
	       p->opens[at - 1].event.name != end->name)
		at = p->opens[at - 1].below;
	return at;
}

static enum status match_all(struct matcher *p, struct error *err)
{
	uint64_t last_ns = (uint64_t)(p->to->last_ns + SPOOL_BIAS);
	struct trace *trace = p->to->trace;
	struct batch batch;
	struct key *k = NULL;
	uint32_t group;
	enum status status;

	while ((status = spool_next(p->pairs, &group, &batch, err)) == ST_OK)
		for (size_t i = 0; i < batch.count; i++) {
			const struct event *e = &batch.events[i];
			uint32_t at;

			TRY(key_find(p, e, &k, err));
			if (e->subkind == PAIR_BEGIN) {
				TRY(begin(p, k, e, err));
				continue;
			}
			at = find_begin(p, k, e);
			if (!at)
				trace_lose(trace, trace_get_track(trace, e->track)->process,
					   LOSS_DAMAGED, 1);
			while (at && k->top != at) /* what is within ends with it */
				TRY(finish(p, k, e->begin_ns, 0, NULL, err));
			if (at)
				TRY(finish(p, k, e->begin_ns, 0, e, err));
		}
	if (status != ST_END)
		return status;
	for (uint32_t i = 0; i < p->key_count; i++)
		while (p->keys[i].top)
			TRY(finish(p, &p->keys[i], last_ns, EVENT_NEVER_ENDED, NULL, err));
	return ST_OK;
}

enum status chrome_pairs_match(struct import *to, struct spool *pairs, struct error *err)
{
	struct matcher p = { .to = to, .pairs = pairs, .keys_most = KEYS_FIRST };
	enum status status = match_all(&p, err);

	for (uint32_t i = 0; i < p.open_count; i++)
		free(p.opens[i].words);
	free(p.opens);
	map_release(&p.key_ids);
	free(p.keys);
	free(p.asyncs);
	return status;
}
