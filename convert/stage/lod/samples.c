/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/lod/internal.h"

#include <stdlib.h>

static enum status put_change(struct lod *d, const struct lod_bin *b, uint8_t kind, uint64_t at_ns,
			      uint64_t bytes, struct lod_part *counts, struct error *err)
{
	struct event e = b->low.event;

	e.kind = kind;
	e.begin_ns = e.end_ns = at_ns;
	e.bytes = bytes;
	e.address = 0;
	e.flags = EVENT_STANDS_FOR;
	TRY(lod_put_made(d, &e, counts, err));
	*counts = (struct lod_part){ .count = 0 };
	return ST_OK;
}

/* Writes one allocation up to the peak and one free down to the last value.  The first of the two
 * stands for all events of the interval. */
static enum status close_allocator(struct lod *d, struct lod_bin *b, struct lod_totals *totals,
				   struct error *err)
{
	uint64_t taken = (uint64_t)b->most_bytes - (uint64_t)b->begin_bytes;
	uint64_t given = (uint64_t)b->most_bytes - (uint64_t)b->running;
	struct lod_part counts = { .count = b->count, .records = b->records };

	if (b->records == 1)
		return lod_put_kept(d, &b->low.event, err);
	if (!taken && !given)
		totals->merged += b->records;
	if (taken)
		TRY(put_change(d, b, KIND_ALLOC, b->most_ns, taken, &counts, err));
	return given ? put_change(d, b, KIND_FREE, b->last_ns, given, &counts, err) : ST_OK;
}

enum status lod_samples_close(struct lod *d, struct lod_track *t, struct error *err)
{
	struct lod_bin *b = t->bin;

	if (!b || !b->records)
		return ST_OK;
	const struct track *k = trace_get_track(d->trace, b->low.event.track);
	struct lod_totals *totals = &d->totals[k->process];
	if (k->type == TRACK_ALLOCATOR) {
		TRY(close_allocator(d, b, totals, err));
	} else {
		bool is_one = b->low.event.value == b->high.event.value;

		TRY(lod_put_kept(d, &b->low.event, err));
		if (!is_one)
			TRY(lod_put_kept(d, &b->high.event, err));
		totals->merged += b->records - (is_one ? 1 : 2);
	}
	b->records = 0;
	return ST_OK;
}

static enum status add_to_allocator(struct lod *d, struct lod_bin *b, const struct event *e,
				    struct error *err)
{
	uint64_t count, sum_ns, longest_ns;

	if (b->records == 1) {
		TRY(lod_hold(d, &b->low, e, err));
		b->begin_bytes = b->most_bytes = b->running;
		b->count = 0;
		b->most_ns = e->begin_ns;
	}
	lod_weigh(d, e, &count, &sum_ns, &longest_ns);
	b->count += count;
	b->last_ns = e->begin_ns;
	b->running =
		(int64_t)((uint64_t)b->running + (e->kind == KIND_FREE ? 0 - e->bytes : e->bytes));
	if (b->running > b->most_bytes) {
		b->most_bytes = b->running;
		b->most_ns = e->begin_ns;
	}
	return ST_OK;
}

enum status lod_sample_put(struct lod *d, const struct event *e, uint64_t interval,
			   struct error *err)
{
	struct lod_track *t = &d->tracks[e->track];

	if (!t->bin && !(t->bin = calloc(1, sizeof(*t->bin))))
		return fail_memory(err);
	struct lod_bin *b = t->bin;
	if (b->interval != interval)
		TRY(lod_samples_close(d, t, err));
	b->interval = interval;
	b->records++;
	if (trace_get_track(d->trace, e->track)->type != TRACK_COUNTER)
		return add_to_allocator(d, b, e, err);
	if (b->records == 1 || e->value < b->low.event.value)
		TRY(lod_hold(d, &b->low, e, err));
	if (b->records == 1 || e->value > b->high.event.value)
		TRY(lod_hold(d, &b->high, e, err));
	return ST_OK;
}
