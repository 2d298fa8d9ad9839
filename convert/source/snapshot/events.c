/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the events of a snapshot: allocations and frees of the allocator, and marks of its CUDA
 * operations. */
#include "convert/source/snapshot/internal.h"

#include <stdio.h>
#include <string.h>

const char *const snapshot_text_keys[SNAPSHOT_TEXTS] = { "user_metadata", "compile_context",
							 "category" };

enum status snapshot_device(struct snapshot *s, size_t ordinal, struct device_state **out,
			    struct error *err)
{
	struct device_state *d = &s->devices[ordinal < SNAPSHOT_DEVICES ? ordinal : 0];
	struct track track = { .type = TRACK_ALLOCATOR,
			       .process = s->to.process,
			       .device = (uint32_t)(d - s->devices),
			       .context = 1 /* device type that PyTorch uses for CUDA */ };
	struct device device = { .process = s->to.process, .id = track.device };
	char text[48];
	uint32_t name;

	*out = d;
	if (d->pool)
		return ST_OK;
	d->begin_us = INT64_MIN;
	if (!trace_device(s->to.trace, &device, err))
		return err->status;
	d->pool = trace_track(s->to.trace, &track, err);
	track = (struct track){ .type = TRACK_THREAD,
				.process = s->to.process,
				.device = NO_ID,
				.context = NO_ID,
				.id = device.id };
	d->segments = d->pool ? trace_track(s->to.trace, &track, err) : 0;
	if (!d->segments)
		return err->status;
	snprintf(text, sizeof(text), "allocator of GPU %u", device.id);
	TRY(import_name(&s->to, text, strlen(text), &name, err));
	trace_set_track_name(s->to.trace, d->segments, name);
	return ST_OK;
}

/* Adds the attributes that all events have: the code, the stream and the pool. */
enum status snapshot_put_place(struct snapshot *s, const struct place *at, const struct entry *e,
			       struct error *err)
{
	const struct stack *stack = at->stack ? &s->stacks[at->stack] : NULL;
	struct attr a = { .key = s->key_where,
			  .type = ATTR_TEXT,
			  .bits = stack ? stack->where : 0 };

	if (stack)
		import_attr(&s->to, &a, false);
	a.key = s->key_stack;
	a.bits = stack ? stack->whole : 0;
	if (a.bits)
		import_attr(&s->to, &a, false);
	if (at->stream)
		TRY(import_number(&s->to, "stream", at->stream, false, err));
	if (at->pool[0] || at->pool[1]) {
		char text[48];

		snprintf(text, sizeof(text), "%lld, %lld", (long long)at->pool[0],
			 (long long)at->pool[1]);
		TRY(import_text(&s->to, "pool", text, strlen(text), err));
	}
	for (size_t i = 0; e && i < SNAPSHOT_TEXTS; i++)
		if (strcmp(pickle_text(e->texts[i], ""), "") && strcmp(e->texts[i]->text, "N/A"))
			TRY(import_text(&s->to, snapshot_text_keys[i], e->texts[i]->text,
					e->texts[i]->len, err));
	return ST_OK;
}

enum status snapshot_put_event(struct snapshot *s, struct event *e, int64_t at_us,
			       struct error *err)
{
	if (at_us > INT64_MAX / SNAPSHOT_US || at_us < -INT64_MAX / SNAPSHOT_US ||
	    !import_times(&s->to, e, at_us * SNAPSHOT_US, 0)) {
		import_lose(&s->to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	TRY(import_schema(&s->to, e, err));
	return import_put(&s->to, e, err);
}

/* Puts an event of the allocator.  Its totals are 0 until snapshot_next() sets them. */
enum status snapshot_put_pool(struct snapshot *s, enum kind kind, const struct place *at,
			      const struct entry *from, struct error *err)
{
	const struct device_state *d = &s->devices[at->device];
	struct place place = *at;
	struct event e = { .kind = (uint8_t)kind,
			   .track = d->pool,
			   .name = s->name_memory,
			   .address = (uint64_t)at->address,
			   .bytes = at->size > 0 ? (uint64_t)at->size : 0,
			   .flags = from ? 0 : EVENT_BEGAN_EARLIER };

	import_begin(&s->to);
	TRY(import_number(&s->to, "total_allocated", 0, true, err));
	TRY(import_number(&s->to, "total_reserved", 0, true, err));
	if (!place.stack)
		TRY(stack_named(s, from ? STACK_NONE : STACK_EARLIER, 0, &place.stack, err));
	TRY(snapshot_put_place(s, &place, from, err));
	return snapshot_put_event(s, &e, from ? from->time_us : d->begin_us, err);
}

enum status snapshot_put_mark(struct snapshot *s, const char *name, const struct place *at,
			      const struct entry *from, int64_t at_us, struct error *err)
{
	struct device_state *d = &s->devices[at->device];
	struct event e = { .kind = KIND_MARK, .track = d->segments };
	bool is_oom = !strcmp(name, "oom");

	if (!strcmp(name, "segment_alloc") || !strcmp(name, "segment_map"))
		d->reserved += (uint64_t)at->size;
	else if (!strcmp(name, "segment_free") || !strcmp(name, "segment_unmap"))
		d->reserved -= (uint64_t)at->size;
	import_begin(&s->to);
	TRY(import_name(&s->to, name, strlen(name), &e.name, err));
	TRY(import_number(&s->to, "bytes", at->size, true, err));
	TRY(import_number(&s->to, is_oom ? "device_free" : "address",
			  (is_oom ? from->device_free : at->address), true, err));
	TRY(import_number(&s->to, "device", at->device, false, err));
	TRY(snapshot_put_place(s, at, from, err));
	return snapshot_put_event(s, &e, at_us, err);
}
