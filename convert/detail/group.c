/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/detail/parts.h"

#include "schemas/buf.h"

#include <stdlib.h>

enum { NAME_BYTES = 1 << 20, ENDS_MOST = 4096 };

/* ---- what a part is called ---- */

static void name_add(struct detail_part *p, uint32_t name, uint64_t count)
{
	for (unsigned i = 0; i < p->name_count; i++) {
		if (p->names[i].name != name)
			continue;
		p->names[i].count += count;
		return;
	}
	if (p->name_count < DETAIL_NAMES)
		p->names[p->name_count++] = (struct detail_name){ name, count };
}

/*
 * "volta_sgemm + 11 more", after the most frequent, of equal ones the first: readers that look at
 * how a name begins take it for what it was.  Beyond the bytes for such names it is "12 short".
 */
static uint32_t part_name(struct detail *d, const struct detail_part *p)
{
	uint32_t best = 0, name, before = trace_count(d->trace, TRACE_NAMES);
	struct error own;
	const char *text;
	struct buf b;
	size_t len;

	for (unsigned i = 1; i < p->name_count; i++)
		if (p->names[i].count > p->names[best].count)
			best = i;
	best = p->names[best].name;
	text = trace_text(d->trace, best, &len);
	buf_init(&b, NAME_BYTES);
	if (d->name_bytes + len > d->how.name_bytes) {
		buf_putf(&b, "%llu short", (unsigned long long)p->count);
	} else {
		buf_put(&b, text, len);
		buf_putf(&b, " + %llu more", (unsigned long long)p->count - 1);
	}
	name = b.status == ST_OK ? trace_name(d->trace, (const char *)b.data, b.len, &own) : 0;
	d->name_bytes += trace_count(d->trace, TRACE_NAMES) > before ? b.len : 0;
	buf_release(&b);
	return name ? name : best;
}

/* ---- the end of a group ---- */

/* What joined it to a launch is gone, and the other end is to know. */
static void note_merged(struct detail *d, const struct event *e)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;

	if (!e->correlation)
		return;
	if (e->kind == KIND_API)
		detail_set_add(&d->ids, process, IDS_MERGED_HOST, e->correlation);
	else if (event_is_gpu_work(e) || e->kind == KIND_SYNC)
		detail_set_add(&d->ids, process, IDS_MERGED_GPU, e->correlation);
}

static int compare_parts(const void *a, const void *b)
{
	const struct detail_part *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->first.event.kind < y->first.event.kind ? -1 : 1;
}

/* Parts lie inside each other or beside: one that would cross another's end becomes longer. */
static void nest(struct detail_part *parts, unsigned count)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (unsigned i = 0; i < count; i++)
			for (unsigned j = i + 1; j < count; j++) {
				if (parts[j].begin_ns >= parts[i].end_ns ||
				    parts[j].end_ns <= parts[i].end_ns)
					continue;
				parts[i].end_ns = parts[j].end_ns;
				moved = true;
			}
	}
}

/* One that is alone and where it was is no other than itself. */
static enum status part_put(struct detail *d, struct detail_part *p, struct error *err)
{
	struct event e = p->first.event;

	if (p->records == 1 && p->end_ns == e.end_ns)
		return detail_put_kept(d, &e, err);
	if (p->records == 1)
		note_merged(d, &e);
	e.begin_ns = p->begin_ns;
	e.end_ns = p->end_ns;
	e.name = part_name(d, p);
	e.bytes = e.kind == KIND_MEMCPY || e.kind == KIND_MEMSET ? p->bytes : 0;
	e.flags = EVENT_STANDS_FOR;
	e.correlation = 0;
	return detail_put_made(d, &e, p->count, p->sum_ns, p->longest_ns, p->records, err);
}

enum status detail_group_close(struct detail *d, struct detail_group *g, struct error *err)
{
	if (!g->part_count)
		return ST_OK;
	qsort(g->parts, g->part_count, sizeof(*g->parts), compare_parts);
	nest(g->parts, g->part_count);
	for (unsigned i = 0; i < g->part_count; i++)
		TRY(part_put(d, &g->parts[i], err));
	g->part_count = 0;
	return ST_OK;
}

/* ---- its events ---- */

static bool same_part(const struct event *a, const struct event *b)
{
	return a->kind == b->kind && (a->kind != KIND_RANGE || a->subkind == b->subkind);
}

/* The part that takes an event; where there are too many kinds it is the last. */
static enum status part_find(struct detail *d, struct detail_group *g, const struct event *e,
			     struct detail_part **out, struct error *err)
{
	struct detail_part *p = g->parts;
	struct detail_held held;
	unsigned i;

	for (i = 0; i < g->part_count; i++)
		if (same_part(&p[i].first.event, e))
			break;
	*out = &p[i < DETAIL_PARTS ? i : DETAIL_PARTS - 1];
	if (i < g->part_count || i == DETAIL_PARTS)
		return ST_OK;
	held = (*out)->first; /* its words can be used again */
	**out = (struct detail_part){ .first = held, .begin_ns = e->begin_ns,
				      .end_ns = e->end_ns };
	g->part_count++;
	return detail_hold(d, &(*out)->first, e, err);
}

static enum status group_add(struct detail *d, struct detail_group *g, const struct event *e,
			     struct error *err)
{
	uint64_t count, sum_ns, longest_ns;
	struct detail_part *p;
	struct event *first;

	TRY(part_find(d, g, e, &p, err));
	first = &p->first.event;
	detail_worth(d, e, &count, &sum_ns, &longest_ns);
	name_add(p, e->name, count);
	p->count += count;
	p->sum_ns += sum_ns;
	p->records++;
	p->longest_ns = longest_ns > p->longest_ns ? longest_ns : p->longest_ns;
	p->end_ns = e->end_ns > p->end_ns ? e->end_ns : p->end_ns;
	g->end_ns = e->end_ns > g->end_ns ? e->end_ns : g->end_ns;
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		p->bytes += e->bytes;
	if (p->records == 1)
		return ST_OK;
	if (p->records == 2)
		note_merged(d, first);
	note_merged(d, e);
	first->owner = first->owner == e->owner ? e->owner : 0;
	if (first->kind == KIND_MEMCPY && first->subkind != e->subkind)
		first->subkind = 0;
	return ST_OK;
}

static enum status group_open(struct detail_track *t, const struct event *e, unsigned level,
			      struct error *err)
{
	struct detail_group *g = &t->group;

	if (!g->parts)
		g->parts = calloc(DETAIL_PARTS, sizeof(*g->parts));
	if (!g->parts)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the level of detail");
	g->end_ns = e->begin_ns;
	g->limit_ns = t->end_count ? t->ends[t->end_count - 1] : UINT64_MAX;
	g->cell = e->begin_ns >> detail_cell_shift(level);
	g->level = level;
	return ST_OK;
}

static bool group_is_over(const struct detail_group *g, const struct event *e, unsigned level)
{
	uint64_t floor_ns = detail_floor_ns(level);

	if (e->begin_ns >= g->limit_ns)
		return true;
	if (e->begin_ns < g->end_ns) /* inside one of them */
		return false;
	return level != g->level || e->begin_ns >> detail_cell_shift(level) != g->cell ||
	       e->begin_ns - g->end_ns >= floor_ns;
}

/* ---- kept ones and ends of arrows ---- */

static enum status ends_push(struct detail_track *t, uint64_t end_ns, struct error *err)
{
	size_t room = t->end_room ? t->end_room * 2 : 16;
	uint64_t *bigger;

	if (t->end_count == ENDS_MOST) /* deeper than any viewer draws */
		return ST_OK;
	if (t->end_count == t->end_room) {
		bigger = realloc(t->ends, room * sizeof(*bigger));
		if (!bigger)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for the level of detail");
		t->ends = bigger;
		t->end_room = room;
	}
	t->ends[t->end_count++] = end_ns;
	return ST_OK;
}

/* An arrow ends at the slice that is open there: it goes when that goes. */
static enum status flow_put(struct detail *d, const struct detail_track *t, const struct event *e,
			    struct error *err)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;

	if (!t->group.part_count || e->begin_ns > t->group.end_ns ||
	    e->begin_ns >= t->group.limit_ns)
		return spool_put(d->spool, 0, e, 1, err); /* the other end may go: counted then */
	detail_set_add(&d->ids, process, IDS_FLOW, e->number);
	d->totals[process].arrows++;
	d->totals[process].dropped++;
	trace_lose(d->trace, process, LOSS_SUMMED, 1);
	return ST_OK;
}

enum status detail_group_put(struct detail *d, const struct event *e, unsigned level,
			     struct error *err)
{
	struct detail_track *t = &d->tracks[e->track];

	while (t->end_count && t->ends[t->end_count - 1] <= e->begin_ns)
		t->end_count--;
	if (detail_class(detail_length(e)) >= level) {
		TRY(detail_group_close(d, &t->group, err));
		TRY(ends_push(t, e->end_ns, err));
		return detail_put_kept(d, e, err);
	}
	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT)
		return flow_put(d, t, e, err);
	if (t->group.part_count && group_is_over(&t->group, e, level))
		TRY(detail_group_close(d, &t->group, err));
	if (!t->group.part_count)
		TRY(group_open(t, e, level, err));
	t->merged_end_ns = e->end_ns > t->merged_end_ns ? e->end_ns : t->merged_end_ns;
	return group_add(d, &t->group, e, err);
}
