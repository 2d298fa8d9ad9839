/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/segments.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"
#include "schemas/model/args.h"

#include <stdlib.h>

static uint64_t key_of(uint64_t address, uint32_t device)
{
	return address ^ (uint64_t)device << 57;
}

void live_release(struct live_blocks *l)
{
	map_release(&l->places);
	free(l->items);
}

struct live_block *live_find(const struct live_blocks *l, uint64_t address, uint32_t device)
{
	const uint64_t *at = map_find(&l->places, key_of(address, device));

	return at ? &l->items[*at] : NULL;
}

enum status live_put(struct live_blocks *l, const struct event *e, uint32_t device,
		     struct error *err)
{
	bool is_new;
	uint64_t *at = map_put(&l->places, key_of(e->address, device), &is_new);

	if (!at)
		return fail_memory(err);
	if (is_new) {
		TRY(vec_reserve(&l->items, &l->cap, l->count + 1, err));
		*at = l->count++;
	}
	l->items[*at] = (struct live_block){
		.address = e->address, .bytes = e->bytes, .device = device, .schema = e->schema
	};
	return ST_OK;
}

void live_remove(struct live_blocks *l, struct live_block *b)
{
	const struct live_block *last = &l->items[--l->count];

	map_remove(&l->places, key_of(b->address, b->device));
	if (b == last)
		return;
	*map_find(&l->places, key_of(last->address, last->device)) = (uint64_t)(b - l->items);
	*b = *last;
}

bool segments_begin(struct segments *s, const struct trace *t)
{
	static const char *const names[SEGMENT_MARKS] = { "segment",        "oom",
							  "free_requested", "segment_alloc",
							  "segment_map",    "segment_free",
							  "segment_unmap" };
	uint32_t format = trace_find_name(t, "PyTorch memory snapshot", 23);

	if (!format || trace_find_name(t, "total_reserved", 14) == 0)
		return false;
	for (size_t i = 0; i < SEGMENT_MARKS; i++)
		s->names[i] = trace_find_name(t, names[i], strlen(names[i]));
	return true;
}

void segments_release(struct segments *s)
{
	free(s->end.items);
	free(s->operations);
}

uint64_t segment_number(const struct trace *t, const struct event *e, const char *key)
{
	uint64_t bits = 0;

	event_arg(t, e, trace_find_name(t, key, strlen(key)), &bits);
	return bits;
}

static enum status add(struct segment_ranges *r, const struct segment_range *one, struct error *err)
{
	TRY(vec_reserve(&r->items, &r->cap, r->count + 1, err));
	r->items[r->count++] = *one;
	return ST_OK;
}

/* Removes the address range `gone` from the segments.  A segment that extends beyond it keeps its
 * rest on either side. */
static enum status take_away(struct segment_ranges *r, const struct segment_range *gone,
			     struct error *err)
{
	for (size_t i = r->count; i-- > 0;) {
		struct segment_range one = r->items[i], rest = one;

		if (one.device != gone->device || one.end <= gone->begin || one.begin >= gone->end)
			continue;
		r->items[i] = r->items[--r->count];
		rest.end = gone->begin;
		if (one.begin < gone->begin)
			TRY(add(r, &rest, err));
		one.begin = gone->end;
		if (one.end > gone->end)
			TRY(add(r, &one, err));
	}
	return ST_OK;
}

enum status segments_put(struct segments *s, const struct trace *t, const struct event *e,
			 enum segment_mark *which, struct error *err)
{
	struct segment_range at = { .device = (uint32_t)trace_get_track(t, e->track)->id,
				    .schema = e->schema };
	size_t mark = 0;

	while (mark < SEGMENT_MARKS && e->name != s->names[mark])
		mark++;
	*which = (enum segment_mark)mark;
	if (mark != MARK_SEGMENT && (mark < MARK_SEGMENT_ALLOC || mark == SEGMENT_MARKS))
		return ST_OK;
	at.begin = segment_number(t, e, "address");
	at.end = at.begin + segment_number(t, e, "bytes");
	if (at.end < at.begin)
		return ST_OK;
	if (mark == MARK_SEGMENT)
		return add(&s->end, &at, err);
	TRY(vec_reserve(&s->operations, &s->operation_cap, s->operation_count + 1, err));
	s->operations[s->operation_count++] = (struct segment_operation){
		.at = at, .adds = mark == MARK_SEGMENT_ALLOC || mark == MARK_SEGMENT_MAP
	};
	return ST_OK;
}

enum status segments_at(const struct segments *s, size_t operations, uint32_t device,
			struct segment_ranges *out, struct error *err)
{
	*out = (struct segment_ranges){ .count = 0 };
	for (size_t i = 0; i < s->end.count; i++)
		if (device == NO_ID || s->end.items[i].device == device)
			TRY(add(out, &s->end.items[i], err));
	for (size_t i = s->operation_count; i-- > operations;) {
		const struct segment_operation *one = &s->operations[i];

		if (device == NO_ID || one->at.device == device)
			TRY((one->adds ? take_away : add)(out, &one->at, err));
	}
	if (out->count)
		SORT_BY(out->items, out->count, UP(struct segment_range, device),
			UP(struct segment_range, begin), UP(struct segment_range, end));
	return ST_OK;
}
