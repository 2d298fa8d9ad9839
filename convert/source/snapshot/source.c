/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads PyTorch's memory snapshots (torch.cuda.memory._snapshot(), memory_snapshot.cpp): the blocks
 * of the caching allocator at the end, and a ring of its earlier operations.
 *
 * The state before the ring follows from the end.  A block that is in use at the end or freed in
 * the ring, but not allocated in it, becomes an allocation that began earlier.
 *
 * An allocation is an event of the allocator's track that lasts until its memory can be used again
 * (free_completed).  If the program freed it earlier, because another stream still used it, a mark
 * free_requested has the time.  CUDA operations and the segments at the end are marks on a second
 * track.
 */
#include "convert/source/snapshot/internal.h"

#include "convert/input/input.h"
#include "schemas/base/vec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
	VALUES_MOST = 192 << 20, /* bytes of values to which a snapshot refers again */
	BLOCKS_MOST = 1 << 21,   /* blocks in use at the end or before the ring */
	OPEN_MOST = 1024,        /* nested annotations */
};
static const struct pickle_list lists[] = {
	[LIST_TRACES] = { "device_traces", true },
	[LIST_SEGMENTS] = { "segments", false },
	[LIST_ANNOTATIONS] = { "external_annotations", false },
	{ NULL, false },
};

static int snapshot_bid(const uint8_t *head, size_t len)
{
	bool is_pickle = len > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;

	return is_pickle && (pickle_head_has(head, len, "device_traces") ||
			     (pickle_head_has(head, len, "segments") &&
			      pickle_head_has(head, len, "total_size")))
		       ? 98
		       : 0;
}

/* ---- the ring --------------------------------------------------------------------------- */

static uint64_t key_of(const struct place *at)
{
	return (uint64_t)at->address ^ (uint64_t)at->device << 57;
}

/* Puts a mark for memory that the program freed while another stream still used it, once another
 * operation follows. */
static enum status end_pending(struct snapshot *s, struct device_state *d, struct error *err)
{
	bool waits = d->waits;

	d->waits = false;
	return waits ? snapshot_put_mark(s, "free_requested", &d->asked, NULL, d->asked_us, err)
		     : ST_OK;
}

static enum status take_free(struct snapshot *s, struct device_state *d, const struct entry *e,
			     bool is_done, struct error *err)
{
	uint64_t key = key_of(&e->at);
	uint64_t *stack = map_find(&s->live, key);

	if (!stack) { /* allocated before the ring */
		if (s->block_count + s->earlier_count == BLOCKS_MOST) {
			import_lose(&s->to, LOSS_CEILING, 1);
			return ST_OK;
		}
		TRY(vec_reserve(&s->earlier, &s->earlier_cap, s->earlier_count + 1, err));
		s->earlier[s->earlier_count++] = e->at;
		stack = map_put(&s->live, key, NULL);
		if (!stack)
			return fail_memory(err);
		*stack = e->at.stack;
	}
	s->frees_have_stacks |=
		s->stacks && s->stacks[*stack].whole != s->stacks[e->at.stack].whole;
	if (!is_done) {
		d->asked = e->at;
		d->asked_us = e->time_us;
		d->waits = true;
		return ST_OK;
	}
	map_remove(&s->live, key);
	return snapshot_put_pool(s, KIND_FREE, &e->at, e, err);
}

static enum status take_entry(struct snapshot *s, size_t ordinal, struct pickle_value *v,
			      struct error *err)
{
	const char *action;
	struct device_state *d;
	struct entry e;
	uint64_t *stack;
	bool is_new;

	TRY(snapshot_device(s, ordinal, &d, err));
	TRY(entry_read(s, v, &e, err));
	action = pickle_text(e.action, "");
	if (!action[0] || ordinal >= SNAPSHOT_DEVICES || e.at.size < 0) {
		import_lose(&s->to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	e.at.device = (uint32_t)ordinal;
	if (!e.has_time) /* before version 2.1: only their order is known */
		e.time_us = d->entries;
	if (!d->entries++)
		d->begin_us = e.time_us - 1;
	d->last_us = e.time_us > d->last_us ? e.time_us : d->last_us;
	if (!strcmp(action, "free_completed") || !strcmp(action, "free")) {
		d->waits = d->waits && d->asked.address != e.at.address;
		TRY(end_pending(s, d, err));
		return take_free(s, d, &e, true, err);
	}
	TRY(end_pending(s, d, err));
	if (!strcmp(action, "free_requested"))
		return take_free(s, d, &e, false, err);
	if (strcmp(action, "alloc") != 0)
		return snapshot_put_mark(s, action, &e.at, &e, e.time_us, err);
	stack = map_put(&s->live, key_of(&e.at), &is_new);
	if (!stack)
		return fail_memory(err);
	*stack = e.at.stack;
	if (!is_new) /* the ring does not contain the previous free */
		import_lose(&s->to, LOSS_DAMAGED, 1);
	return is_new ? snapshot_put_pool(s, KIND_ALLOC, &e.at, &e, err) : ST_OK;
}

/* ---- segments --------------------------------------------------------------------------- */

/* Reads a block.  Versions before 2.0 have a `history`, whose first item is its last use. */
static enum status take_block(struct snapshot *s, struct segment *g, struct pickle_value *v,
			      int64_t *address, struct error *err)
{
	const struct pickle_value *history = pickle_get(v, "history");
	struct entry b, last;
	const char *state;
	uint64_t size;

	TRY(entry_read(s, v, &b, err));
	state = pickle_text(b.state, "");
	if (pickle_count(history) && history->type == PICKLE_LIST) {
		TRY(entry_read(s, history->items[0], &last, err));
		b.at.stack = last.at.stack;
		b.requested = last.requested;
	}
	if (b.at.size < 0 || !state[0]) {
		import_lose(&s->to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	if (!b.has_address)
		b.at.address = *address;
	*address = (int64_t)((uint64_t)b.at.address + (uint64_t)b.at.size);
	size = (uint64_t)b.at.size;
	if (!strcmp(state, "inactive")) {
		g->sums[SEGMENT_INACTIVE] += size;
		g->sums[SEGMENT_FREE_BLOCKS]++;
		if (size > g->sums[SEGMENT_LARGEST])
			g->sums[SEGMENT_LARGEST] = size;
		return ST_OK;
	}
	if (b.requested < 0 || b.requested > b.at.size)
		b.requested = b.at.size;
	g->sums[SEGMENT_BLOCKS]++;
	if (!strcmp(state, "active_allocated")) {
		g->sums[SEGMENT_ALLOCATED] += size;
		g->sums[SEGMENT_REQUESTED] += (uint64_t)b.requested;
	} else {
		g->sums[SEGMENT_PENDING] += size;
	}
	if (s->block_count + s->earlier_count == BLOCKS_MOST) {
		import_lose(&s->to, LOSS_CEILING, 1);
		return ST_OK;
	}
	TRY(vec_reserve(&s->blocks, &s->block_cap, s->block_count + 1, err));
	b.at.size = b.requested;
	b.at.device = g->at.device;
	b.at.stream = g->at.stream;
	memcpy(b.at.pool, g->at.pool, sizeof(b.at.pool));
	s->blocks[s->block_count++] = b.at;
	return ST_OK;
}

static enum status take_segment(struct snapshot *s, struct pickle_value *v, struct error *err)
{
	struct device_state *d;
	struct segment g = { .is_large = false };
	struct entry e;
	int64_t address;

	TRY(entry_read(s, v, &e, err));
	if (e.total < 0 || e.device < 0 || e.device >= SNAPSHOT_DEVICES) {
		import_lose(&s->to, LOSS_DAMAGED, 1);
		return ST_OK;
	}
	TRY(snapshot_device(s, (size_t)e.device, &d, err));
	g.at = e.at;
	g.at.device = (uint32_t)e.device;
	g.sums[SEGMENT_TOTAL] = (uint64_t)e.total;
	g.is_large = !strcmp(pickle_text(e.type, ""), "large");
	g.is_expandable = e.is_expandable;
	address = g.at.address;
	for (size_t i = 0; i < pickle_count(e.blocks) && e.blocks->type == PICKLE_LIST; i++)
		TRY(take_block(s, &g, e.blocks->items[i], &address, err));
	TRY(vec_reserve(&s->all, &s->all_cap, s->all_count + 1, err));
	s->all[s->all_count++] = g;
	return ST_OK;
}

/* Reads an annotation of record_function, such as a step: a range has two entries. */
static enum status take_annotation(struct snapshot *s, struct pickle_value *v, struct error *err)
{
	struct device_state *d;
	struct event e = { .kind = KIND_RANGE, .subkind = RANGE_ANNOTATION };
	struct entry from;
	const char *name;

	TRY(entry_read(s, v, &from, err));
	TRY(snapshot_device(s, from.device >= 0 ? (size_t)from.device : 0, &d, err));
	name = pickle_text(from.name, "");
	if (!name[0] || !from.has_time)
		return ST_OK;
	TRY(import_name(&s->to, name, strlen(name), &e.name, err));
	if (!strcmp(pickle_text(from.stage, ""), "START") && s->open_count < OPEN_MOST) {
		TRY(vec_reserve(&s->open, &s->open_cap, s->open_count + 1, err));
		s->open[s->open_count++] = (struct open){ e.name, from.time_us };
		return ST_OK;
	}
	for (size_t i = s->open_count; i-- > 0;) {
		if (s->open[i].name != e.name)
			continue;
		from.requested = s->open[i].begin_us;
		s->open_count = i; /* nested ranges have ended */
		e.track = d->segments;
		import_begin(&s->to);
		if (from.time_us < INT64_MAX / SNAPSHOT_US &&
		    from.requested > -INT64_MAX / SNAPSHOT_US &&
		    import_times(&s->to, &e, from.requested * SNAPSHOT_US,
				 (from.time_us - from.requested) * SNAPSHOT_US))
			return import_put(&s->to, &e, err);
	}
	return ST_OK;
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Puts a mark with the sums of a segment after the last entry of the ring. */
static enum status put_segment(struct snapshot *s, const struct segment *g, struct error *err)
{
	static const char *const keys[SEGMENT_SUMS] = {
#define X(name, key, text) key,
		SEGMENT_LIST(X)
#undef X
	};
	const struct device_state *d = &s->devices[g->at.device];
	struct event e = { .kind = KIND_MARK, .track = d->segments, .name = s->name_segment };

	import_begin(&s->to);
	TRY(import_number(&s->to, "bytes", (int64_t)g->sums[SEGMENT_TOTAL], true, err));
	TRY(import_number(&s->to, "address", g->at.address, true, err));
	for (size_t i = SEGMENT_TOTAL + 1; i < SEGMENT_SUMS; i++)
		TRY(import_number(&s->to, keys[i], (int64_t)g->sums[i], true, err));
	TRY(import_number(&s->to, "device", g->at.device, false, err));
	TRY(import_text(&s->to, "size_class", g->is_large ? "large" : "small", 5, err));
	if (g->is_expandable)
		TRY(import_number(&s->to, "expandable", 1, false, err));
	TRY(snapshot_put_place(s, &g->at, NULL, err));
	return snapshot_put_event(s, &e, d->last_us + 1, err);
}

/* Puts what existed before the ring: blocks in use and segments that the ring did not allocate. */
static enum status take_end(struct snapshot *s, struct error *err)
{
	for (size_t i = 0; i < SNAPSHOT_DEVICES; i++) {
		struct device_state *d = &s->devices[i];

		TRY(d->pool ? end_pending(s, d, err) : ST_OK);
		if (d->begin_us == INT64_MIN)
			d->begin_us = d->last_us = 0;
	}
	/* Put memory that was allocated before the ring and freed in it.  If the history of all
	 * operations was recorded, a free has its own stack, which does not show who allocated. */
	for (size_t i = 0; i < s->earlier_count; i++) {
		struct place at = s->earlier[i];

		if (at.stack && s->frees_have_stacks)
			TRY(stack_named(s, STACK_FREED, at.stack, &at.stack, err));
		TRY(snapshot_put_pool(s, KIND_ALLOC, &at, NULL, err));
	}
	for (size_t i = 0; i < s->block_count; i++) {
		uint64_t key = key_of(&s->blocks[i]);

		if (map_find(&s->live, key))
			map_remove(&s->live, key);
		else
			TRY(snapshot_put_pool(s, KIND_ALLOC, &s->blocks[i], NULL, err));
	}
	if (s->all_count && s->live.count) /* the file was truncated or changed */
		import_lose(&s->to, LOSS_DAMAGED, s->live.count);
	for (size_t i = 0; i < s->all_count; i++)
		TRY(put_segment(s, &s->all[i], err));
	return ST_OK;
}

/* ---- the file --------------------------------------------------------------------------- */

static enum status take_item(void *user, size_t list, size_t ordinal, struct pickle_value *item,
			     struct error *err)
{
	struct snapshot *s = user;

	switch (list) {
	case LIST_TRACES:
		return take_entry(s, ordinal, item, err);
	case LIST_SEGMENTS:
		return take_segment(s, item, err);
	}
	return take_annotation(s, item, err);
}

/* Adds the settings of the allocator as attributes of the process. */
static enum status put_settings(struct snapshot *s, const struct pickle_value *settings,
				struct error *err)
{
	struct process p = *trace_get_process(s->to.trace, s->to.process);

	import_begin(&s->to);
	for (size_t i = 0; i + 1 < pickle_count(settings) && settings->type == PICKLE_DICT;
	     i += 2) {
		const char *key = pickle_text(settings->items[i], "");
		const struct pickle_value *v = settings->items[i + 1];

		if (v->type == PICKLE_TEXT && key[0])
			TRY(import_text(&s->to, key, v->text, v->len, err));
		else if ((v->type == PICKLE_INT || v->type == PICKLE_BOOL) && key[0])
			TRY(import_number(&s->to, key, v->number, false, err));
	}
	TRY(import_schema_id(&s->to, &p.schema, err));
	trace_set_process(s->to.trace, s->to.process, &p);
	return ST_OK;
}

/* Reads a list that was not streamed, because the writer marks the types of lists. */
static enum status take_rest(struct snapshot *s, const struct pickle_value *root, size_t list,
			     struct error *err)
{
	const struct pickle_value *items = pickle_get(root, lists[list].key);

	for (size_t i = 0; i < pickle_count(items) && items->type == PICKLE_LIST; i++) {
		struct pickle_value *one = items->items[i];

		for (size_t k = 0; lists[list].is_nested && k < pickle_count(one); k++)
			if (one->type == PICKLE_LIST)
				TRY(take_item(s, list, i, one->items[k], err));
		if (!lists[list].is_nested)
			TRY(take_item(s, list, 0, one, err));
	}
	return ST_OK;
}

/* Sets the rank from the file's name: rank0_snapshot.pickle, snapshot-rank_12.pkl. */
static enum status take_process(struct snapshot *s, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/'), *at = strcasestr(slash ? slash : path, "rank");
	struct process p = { .rank = NO_RANK };

	if (at) {
		at += strlen("rank");
		at += strspn(at, "_-r");
		if (isdigit((unsigned char)*at))
			p.rank = (uint32_t)strtoul(at, NULL, 10);
	}
	s->to.process = trace_process(s->to.trace, &p, err);
	return s->to.process ? ST_OK : err->status;
}

static enum status read_all(struct snapshot *s, struct input *in, struct error *err)
{
	const struct pickle_taker taker = { .lists = lists, .take = take_item, .user = s };
	const struct pickle_value *root = NULL;

	TRY(take_process(s, input_path(in), err));
	TRY(import_name(&s->to, "where", 5, &s->key_where, err));
	TRY(import_name(&s->to, "stack", 5, &s->key_stack, err));
	TRY(import_name(&s->to, "[memory]", 8, &s->name_memory, err));
	TRY(import_name(&s->to, "segment", 7, &s->name_segment, err));
	TRY(pickle_stream(&s->values, &root, in, &taker, VALUES_MOST, err));
	for (size_t i = 0; lists[i].key; i++)
		TRY(take_rest(s, root, i, err));
	return put_settings(s, pickle_get(root, "allocator_settings"), err);
}

/* ---- totals ----------------------------------------------------------------------------- */

/* Running sums in time order: how much is allocated and reserved after each event. */
struct levels {
	uint64_t allocated[SNAPSHOT_DEVICES], reserved[SNAPSHOT_DEVICES];
	uint32_t names[4]; /* names of marks: two that increase `reserved`, two that decrease it */
	uint64_t *words;
	size_t cap;
};

/* Computes what was reserved when the ring began: the bytes at the end minus the ring's changes. */
static enum status take_levels(struct snapshot *s, struct spool_source *source, struct error *err)
{
	static const char *const names[4] = { "segment_alloc", "segment_map", "segment_free",
					      "segment_unmap" };
	struct levels *l = calloc(1, sizeof(*l));

	source->own = l;
	if (!l)
		return fail_memory(err);
	for (size_t i = 0; i < 4; i++)
		TRY(import_name(&s->to, names[i], strlen(names[i]), &l->names[i], err));
	for (size_t i = 0; i < SNAPSHOT_DEVICES; i++)
		l->reserved[i] = 0 - s->devices[i].reserved;
	for (size_t i = 0; i < s->all_count; i++)
		l->reserved[s->all[i].at.device] += s->all[i].sums[SEGMENT_TOTAL];
	for (size_t i = 0; i < SNAPSHOT_DEVICES; i++)
		if ((int64_t)l->reserved[i] < 0) /* the end does not belong to this ring */
			l->reserved[i] = 0;
	return ST_OK;
}

static void level_put(struct levels *l, const struct trace *t, struct event *e, uint64_t *words)
{
	const struct track *k = trace_get_track(t, e->track);
	size_t device = k->type == TRACK_ALLOCATOR ? k->device : (size_t)k->id;

	if (device >= SNAPSHOT_DEVICES)
		return;
	for (size_t i = 0; e->kind == KIND_MARK && i < 4; i++)
		if (e->name == l->names[i])
			l->reserved[device] += i < 2 ? e->args[0] : 0 - e->args[0];
	if (e->kind != KIND_ALLOC && e->kind != KIND_FREE)
		return;
	l->allocated[device] += e->kind == KIND_ALLOC ? e->bytes : 0 - e->bytes;
	words[0] = l->allocated[device];
	words[1] = l->reserved[device];
	e->args = words;
}

static enum status snapshot_next(struct source *source, struct batch *out, struct error *err)
{
	struct spool_source *s = (struct spool_source *)source;
	struct levels *l = s->own;

	TRY(spool_source_next(source, out, err));
	TRY(vec_reserve(&l->words, &l->cap, 2 * out->count, err));
	for (size_t i = 0; i < out->count; i++)
		level_put(l, s->trace, &out->events[i], l->words + 2 * i);
	return ST_OK;
}

static void snapshot_close(struct source *source)
{
	struct levels *l = ((struct spool_source *)source)->own;

	free(l->words);
	spool_source_close(source);
}

static enum status snapshot_read(struct spool_source *source, struct input *in,
				 const struct budget *left, struct error *err)
{
	struct snapshot *s;
	struct error own = { .status = ST_OK };
	enum status status;

	(void)left;
	TRY(vec_new(&s, 1, err));
	import_init(&s->to, source->trace, source->spool, 0);
	status = read_all(s, in, &own);
	if (status != ST_OK && s->to.events) { /* keep the events before the error */
		source->fault = own;
		status = ST_OK;
	}
	if (status == ST_OK)
		status = take_end(s, &own);
	if (status == ST_OK)
		status = take_levels(s, source, &own);
	if (status == ST_OK)
		status = import_provenance(&s->to, "PyTorch memory snapshot", &source->fault, &own);
	spool_source_clock(source, 0, s->to.first_ns);
	import_release(&s->to);
	pickle_free(s->values);
	map_release(&s->live);
	map_release(&s->field_of);
	map_release(&s->stack_of);
	free(s->stacks);
	free(s->all);
	free(s->blocks);
	free(s->earlier);
	free(s->open);
	free(s);
	if (status != ST_OK)
		*err = own;
	return status;
}

static const struct spool_reader reader = {
	.own_bytes = 32 << 20,
	.spools = 1,
	.read = snapshot_read,
};

const struct source_type source_snapshot = {
	.name = "snapshot",
	.help = "PyTorch's memory snapshots",
	.bid = snapshot_bid,
	.spooled = &reader,
	.next = snapshot_next,
	.close = snapshot_close,
};
