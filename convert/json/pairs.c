/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/json/pairs.h"

#include "convert/json/trace.h"
#include "schemas/hash.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPEN_MOST = 1 << 20, LANES_MOST = 4096, KEYS_FIRST = 256 };

#define LANE_TIDS ((uint64_t)1 << 41) /* outside of what tids are */

struct open { /* a begin that waits for its end */
	struct event event;
	uint64_t *words; /* own */
	uint32_t below;  /* of the same key, index + 1; of a free one: the next free */
};

struct key { /* what pairs belong to */
	uint64_t track, number;
	uint32_t top;  /* index + 1 into opens; 0: nothing is open */
	uint32_t lane; /* index + 1 */
	bool used;
};

struct lane {
	uint32_t process, track;
	bool busy;
};

struct joiner {
	struct json_trace *j;
	struct open *opens;
	uint32_t open_count, open_room, free_open;
	struct key *keys;
	size_t key_count, key_cap;
	struct lane *lanes;
	uint32_t lane_count;
};

/* ---- keys ---- */

static struct key *key_place(const struct joiner *p, uint64_t track, uint64_t number)
{
	size_t at = hash_word(hash_word(0, track), number) & (p->key_cap - 1);

	while (p->keys[at].used && (p->keys[at].track != track || p->keys[at].number != number))
		at = (at + 1) & (p->key_cap - 1);
	return &p->keys[at];
}

/* Twice the room, without the keys that have nothing open: ids are seldom used again. */
static enum status keys_grow(struct joiner *p, struct error *err)
{
	struct joiner old = *p;
	size_t live = 0;

	for (size_t i = 0; i < old.key_cap; i++)
		live += old.keys[i].top > 0;
	p->key_cap = live * 4 > KEYS_FIRST ? old.key_cap * 2 : KEYS_FIRST;
	p->keys = calloc(p->key_cap, sizeof(*p->keys));
	if (!p->keys) {
		*p = old;
		return fail(err, ST_MEMORY, NOWHERE, "no memory to join begins and ends");
	}
	p->key_count = live;
	for (size_t i = 0; i < old.key_cap; i++)
		if (old.keys[i].top)
			*key_place(p, old.keys[i].track, old.keys[i].number) = old.keys[i];
	free(old.keys);
	return ST_OK;
}

static enum status key_find(struct joiner *p, const struct event *e, struct key **out,
			    struct error *err)
{
	uint64_t track = e->number ? 0 : e->track;

	if (p->key_count * 2 >= p->key_cap)
		TRY(keys_grow(p, err));
	*out = key_place(p, track, e->number);
	if ((*out)->used)
		return ST_OK;
	**out = (struct key){ .track = track, .number = e->number, .used = true };
	p->key_count++;
	return ST_OK;
}

/* ---- rows for what overlaps ---- */

static enum status lane_make(struct joiner *p, uint32_t process, struct error *err)
{
	struct track t = { .home = HOME_THREAD, .process = process, .device = NO_ID,
			   .context = NO_ID };
	char name[32];
	uint32_t before = 0, text;
	int len;

	for (uint32_t i = 0; i < p->lane_count; i++)
		before += p->lanes[i].process == process;
	len = snprintf(name, sizeof(name), "async %u", before + 1);
	t.id = LANE_TIDS + before;
	text = trace_name(p->j->trace, name, (size_t)len, err);
	if (!text)
		return err->status;
	p->lanes[p->lane_count] = (struct lane){ .process = process };
	p->lanes[p->lane_count].track = trace_track(p->j->trace, &t, err);
	if (!p->lanes[p->lane_count].track)
		return err->status;
	trace_set_track_name(p->j->trace, p->lanes[p->lane_count].track, text);
	p->lane_count++;
	return ST_OK;
}

/* index + 1 of a row of the process that nobody is on. */
static enum status lane_take(struct joiner *p, uint32_t process, uint32_t *lane, struct error *err)
{
	uint32_t i = 0;

	while (i < p->lane_count && (p->lanes[i].busy || p->lanes[i].process != process))
		i++;
	if (i == p->lane_count && i == LANES_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d ranges of ids at one time",
			    LANES_MOST);
	if (i == p->lane_count)
		TRY(lane_make(p, process, err));
	p->lanes[i].busy = true;
	*lane = i + 1;
	return ST_OK;
}

/* ---- begins and ends ---- */

static enum status opens_grow(struct joiner *p, struct error *err)
{
	uint32_t room = p->open_room ? p->open_room * 2 : 64;
	struct open *moved;

	if (room > OPEN_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d ranges are open at one time",
			    OPEN_MOST);
	moved = realloc(p->opens, room * sizeof(*moved));
	if (!moved)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to join begins and ends");
	p->opens = moved;
	p->open_room = room;
	return ST_OK;
}

static enum status copy_words(struct joiner *p, struct open *o, struct error *err)
{
	const struct shape *s = trace_get_shape(p->j->trace, o->event.shape);
	size_t bytes = s->vary_count * sizeof(uint64_t);

	o->words = NULL;
	if (!o->event.vary || !bytes)
		return ST_OK;
	o->words = malloc(bytes);
	if (!o->words)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to join begins and ends");
	memcpy(o->words, o->event.vary, bytes);
	o->event.vary = o->words;
	return ST_OK;
}

static enum status begin(struct joiner *p, struct key *k, const struct event *e, struct error *err)
{
	struct open *o;
	uint32_t at;

	if (!p->free_open && p->open_count == p->open_room)
		TRY(opens_grow(p, err));
	if (e->number && !k->lane)
		TRY(lane_take(p, trace_get_track(p->j->trace, e->track)->process, &k->lane, err));
	at = p->free_open ? p->free_open - 1 : p->open_count++;
	o = &p->opens[at];
	if (p->free_open)
		p->free_open = o->below;
	*o = (struct open){ .event = *e, .below = k->top };
	k->top = at + 1;
	return copy_words(p, o, err);
}

/* Arguments of the end that the begin has not got: both as one shape. */
static enum status join_shapes(struct joiner *p, struct event *b, const struct event *e,
			       struct error *err)
{
	const struct shape *mine = trace_get_shape(p->j->trace, b->shape);
	const struct shape *more = trace_get_shape(p->j->trace, e->shape);
	struct shape joined = { .vary = mine->vary, .vary_count = mine->vary_count };
	struct attr *attrs = malloc((mine->fixed_count + more->fixed_count + more->vary_count + 1) *
				    sizeof(*attrs));

	if (!attrs)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to join begins and ends");
	for (uint32_t i = 0; i < mine->fixed_count; i++)
		attrs[joined.fixed_count++] = mine->fixed[i];
	for (uint32_t i = 0; i < more->fixed_count; i++) {
		bool known = false;

		for (uint32_t m = 0; m < mine->fixed_count && !known; m++)
			known = mine->fixed[m].key == more->fixed[i].key;
		if (!known)
			attrs[joined.fixed_count++] = more->fixed[i];
	}
	for (uint32_t i = 0; e->vary && i < more->vary_count; i++) {
		attrs[joined.fixed_count] = more->vary[i];
		attrs[joined.fixed_count++].bits = e->vary[i];
	}
	joined.fixed = attrs;
	b->shape = trace_shape(p->j->trace, &joined, err);
	free(attrs);
	return b->shape ? ST_OK : err->status;
}

static enum status finish(struct joiner *p, struct key *k, uint64_t end_ns, uint8_t flags,
			  const struct event *end, struct error *err)
{
	uint32_t at = k->top - 1;
	struct open *o = &p->opens[at];
	struct event e = o->event;
	enum status status = ST_OK;

	e.end_ns = end_ns > e.begin_ns ? end_ns : e.begin_ns;
	e.flags |= flags;
	e.subkind = e.owner ? (uint8_t)(e.owner - 1) : RANGE_OTHER;
	e.owner = 0;
	if (e.number && k->lane)
		e.track = p->lanes[k->lane - 1].track;
	e.number = 0;
	if (end && !e.name)
		e.name = end->name;
	if (end && end->shape)
		status = join_shapes(p, &e, end, err);
	if (status == ST_OK)
		status = json_trace_put(p->j, &e, err);
	free(o->words);
	k->top = o->below;
	*o = (struct open){ .below = p->free_open };
	p->free_open = at + 1;
	if (!k->top && k->lane) {
		p->lanes[k->lane - 1].busy = false;
		k->lane = 0;
	}
	return status;
}

static enum status join_one(struct joiner *p, const struct event *e, struct error *err)
{
	struct key *k;

	TRY(key_find(p, e, &k, err));
	if (e->subkind == PAIR_BEGIN)
		return begin(p, k, e, err);
	if (k->top)
		return finish(p, k, e->begin_ns, 0, e, err);
	trace_lose(p->j->trace, trace_get_track(p->j->trace, e->track)->process, LOSS_DAMAGED, 1);
	return ST_OK;
}

static enum status finish_rest(struct joiner *p, struct error *err)
{
	uint64_t last = (uint64_t)(p->j->last_ns + SPOOL_BIAS);

	for (size_t i = 0; i < p->key_cap; i++)
		while (p->keys[i].top)
			TRY(finish(p, &p->keys[i], last, EVENT_NEVER_ENDED, NULL, err));
	return ST_OK;
}

static enum status join_all(struct joiner *p, struct error *err)
{
	struct batch batch;
	uint32_t group;
	enum status status;

	while ((status = spool_next(p->j->pairs, &group, &batch, err)) == ST_OK)
		for (size_t i = 0; i < batch.count; i++)
			TRY(join_one(p, &batch.events[i], err));
	return status == ST_END ? finish_rest(p, err) : status;
}

enum status json_pairs_join(struct json_trace *j, struct error *err)
{
	struct joiner p = { .j = j, .lanes = calloc(LANES_MOST, sizeof(struct lane)) };
	enum status status;

	if (!p.lanes)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to join begins and ends");
	status = join_all(&p, err);
	for (uint32_t i = 0; i < p.open_count; i++)
		free(p.opens[i].words);
	free(p.opens);
	free(p.keys);
	free(p.lanes);
	return status;
}
