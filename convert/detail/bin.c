/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/detail/parts.h"

#include <stdlib.h>

/* ---- counters: the least and the most of each cell ---- */

static enum status counter_add(struct detail *d, struct detail_bin *b, const struct event *e,
			       struct error *err)
{
	if (b->records == 1) {
		TRY(detail_hold(d, &b->low, e, err));
		return detail_hold(d, &b->high, e, err);
	}
	if (e->value < b->low.event.value)
		return detail_hold(d, &b->low, e, err);
	return e->value > b->high.event.value ? detail_hold(d, &b->high, e, err) : ST_OK;
}

static enum status counter_close(struct detail *d, struct detail_bin *b, uint32_t process,
				 struct error *err)
{
	struct detail_totals *t = &d->totals[process];
	bool is_one = b->low.event.value == b->high.event.value;

	TRY(detail_put_kept(d, &b->low.event, err));
	if (!is_one)
		TRY(detail_put_kept(d, &b->high.event, err));
	t->merged += b->records - (is_one ? 1 : 2);
	return ST_OK;
}

/* ---- pools: what came in and what was left, with the peak between ---- */

static enum status pool_add(struct detail *d, struct detail_bin *b, const struct event *e,
			    struct error *err)
{
	uint64_t count, sum_ns, longest_ns;

	if (b->records == 1) {
		TRY(detail_hold(d, &b->low, e, err));
		b->begin_bytes = b->most_bytes = b->running;
		b->count = 0;
		b->most_ns = e->begin_ns;
	}
	detail_worth(d, e, &count, &sum_ns, &longest_ns);
	b->count += count;
	b->last_ns = e->begin_ns;
	b->running = (int64_t)((uint64_t)b->running +
			       (e->kind == KIND_FREE ? 0 - e->bytes : e->bytes));
	if (b->running > b->most_bytes) {
		b->most_bytes = b->running;
		b->most_ns = e->begin_ns;
	}
	return ST_OK;
}

static enum status pool_put(struct detail *d, const struct detail_bin *b, uint8_t kind,
			    uint64_t at_ns, uint64_t bytes, uint64_t count, uint64_t records,
			    struct error *err)
{
	struct event e = b->low.event;

	e.kind = kind;
	e.begin_ns = e.end_ns = at_ns;
	e.bytes = bytes;
	e.address = 0;
	e.flags = EVENT_STANDS_FOR;
	return detail_put_made(d, &e, count, 0, 0, records, err);
}

static enum status pool_close(struct detail *d, struct detail_bin *b, uint32_t process,
			      struct error *err)
{
	uint64_t taken = (uint64_t)b->most_bytes - (uint64_t)b->begin_bytes;
	uint64_t given = (uint64_t)b->most_bytes - (uint64_t)b->running;
	uint64_t count = b->count, records = b->records;

	if (records == 1)
		return detail_put_kept(d, &b->low.event, err);
	if (!taken && !given)
		d->totals[process].merged += records;
	if (taken) {
		TRY(pool_put(d, b, KIND_ALLOC, b->most_ns, taken, count, records, err));
		count = records = 0;
	}
	return given ? pool_put(d, b, KIND_FREE, b->last_ns, given, count, records, err) : ST_OK;
}

/* ---- both ---- */

enum status detail_bin_close(struct detail *d, struct detail_bin *b, enum home home,
			     struct error *err)
{
	uint32_t process;

	if (!b || !b->records)
		return ST_OK;
	process = trace_get_track(d->trace, b->low.event.track)->process;
	TRY(home == HOME_COUNTER ? counter_close(d, b, process, err) :
				   pool_close(d, b, process, err));
	b->records = 0;
	return ST_OK;
}

enum status detail_bin_put(struct detail *d, const struct event *e, unsigned level,
			   struct error *err)
{
	struct detail_track *t = &d->tracks[e->track];
	enum home home = trace_get_track(d->trace, e->track)->home;
	uint64_t cell = e->begin_ns >> detail_cell_shift(level);

	if (!t->bin)
		t->bin = calloc(1, sizeof(*t->bin));
	if (!t->bin)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the level of detail");
	if (t->bin->records && (t->bin->cell != cell || t->bin->level != level || !level))
		TRY(detail_bin_close(d, t->bin, home, err));
	t->bin->cell = cell;
	t->bin->level = level;
	t->bin->records++;
	return home == HOME_COUNTER ? counter_add(d, t->bin, e, err) : pool_add(d, t->bin, e, err);
}
