/* SPDX-License-Identifier: Apache-2.0 */
/* Merges short neighbours of a track into one event of each kind. */
#include "convert/stage/lod/internal.h"

#include "schemas/base/buf.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { NAME_BYTES = 1 << 20, ENDS_MOST = 4096 };

/* ---- the end of a group of neighbours ---- */

/*
 * Makes a name such as "volta_sgemm + more" from the most frequent name; of equally frequent ones,
 * from the first.  Tools that classify an event by the beginning of its name still recognize it.
 */
static enum status find_name(struct lod *d, const struct lod_part *p, uint32_t *name,
			     struct error *err)
{
	unsigned best = 0;
	const char *text;
	struct buf b;
	size_t len;

	for (unsigned i = 1; i < p->name_count; i++)
		if (p->names[i].count > p->names[best].count)
			best = i;
	*name = p->names[best].name;
	uint64_t *made = map_put(&d->made_names, *name, NULL);
	if (!made)
		return fail_memory(err);
	if (!*made) {
		text = trace_text(d->trace, *name, &len);
		buf_init(&b, NAME_BYTES);
		buf_put(&b, text, len);
		buf_put_text(&b, " + more");
		*made = b.status == ST_OK ? trace_name(d->trace, (const char *)b.data, b.len, NULL)
					  : 0;
		buf_release(&b);
		if (!*made) /* the tables are full: use the name without a suffix */
			*made = *name;
	}
	*name = (uint32_t)*made;
	return ST_OK;
}

/* Notes the id of a merged event, so that the arrow's other end is handled, too. */
static void note_merged(struct lod *d, const struct event *e)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;

	if (e->correlation && e->kind == KIND_API)
		lod_note_id(&d->ids, process, IDS_MERGED_HOST, e->correlation);
	else if (e->correlation && (event_is_gpu_work(e) || e->kind == KIND_SYNC))
		lod_note_id(&d->ids, process, IDS_MERGED_GPU, e->correlation);
}

static int compare_parts(const void *a, const void *b)
{
	const struct lod_part *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->first.event.kind < y->first.event.kind ? -1 : 1;
}

/* Groups of a track must nest or be disjoint: one that crosses another's end extends that one. */
static void nest(struct lod_part *parts, unsigned count)
{
	for (bool has_moved = true; has_moved;) {
		has_moved = false;
		for (unsigned i = 0; i < count; i++)
			for (unsigned j = i + 1; j < count; j++) {
				if (parts[j].begin_ns >= parts[i].end_ns ||
				    parts[j].end_ns <= parts[i].end_ns)
					continue;
				parts[i].end_ns = parts[j].end_ns;
				has_moved = true;
			}
	}
}

enum status lod_spans_close(struct lod *d, struct lod_track *t, struct error *err)
{
	if (!t->part_count)
		return ST_OK;
	qsort(t->parts, t->part_count, sizeof(*t->parts), compare_parts);
	nest(t->parts, t->part_count);
	for (struct lod_part *p = t->parts; p < t->parts + t->part_count; p++) {
		struct event e = p->first.event;

		if (p->records == 1 &&
		    p->end_ns == e.end_ns) { /* a single event remains as it was */
			TRY(lod_put_kept(d, &e, err));
			continue;
		}
		if (p->records == 1)
			note_merged(d, &e);
		e.begin_ns = p->begin_ns;
		e.end_ns = p->end_ns;
		TRY(find_name(d, p, &e.name, err));
		e.bytes = p->bytes;
		e.flags = EVENT_STANDS_FOR;
		e.correlation = 0;
		TRY(lod_put_made(d, &e, p, err));
	}
	t->part_count = 0;
	return ST_OK;
}

/* ---- events ---- */

/* Finds or adds the group of an event.  If there are too many kinds, events go to the last group.
 */
static enum status find_part(struct lod *d, struct lod_track *t, const struct event *e,
			     struct lod_part **out, struct error *err)
{
	unsigned i = 0;

	for (; i < t->part_count; i++) {
		const struct event *first = &t->parts[i].first.event;

		if (first->kind == e->kind &&
		    (e->kind != KIND_RANGE || first->subkind == e->subkind))
			break;
	}
	*out = &t->parts[i < LOD_PARTS ? i : LOD_PARTS - 1];
	if (i < t->part_count || i == LOD_PARTS)
		return ST_OK;
	**out = (struct lod_part){ .first = (*out)->first, /* keeps its memory */
				   .begin_ns = e->begin_ns,
				   .end_ns = e->end_ns };
	t->part_count++;
	return lod_hold(d, &(*out)->first, e, err);
}

static enum status add(struct lod *d, struct lod_track *t, const struct event *e, struct error *err)
{
	uint64_t count, sum_ns, longest_ns;
	struct lod_part *p;
	unsigned i = 0;

	TRY(find_part(d, t, e, &p, err));
	struct event *first = &p->first.event;
	lod_weigh(d, e, &count, &sum_ns, &longest_ns);
	while (i < p->name_count && p->names[i].name != e->name)
		i++;
	if (i == p->name_count && i < LOD_NAMES)
		p->names[p->name_count++] = (struct lod_name){ e->name, 0 };
	if (i < LOD_NAMES)
		p->names[i].count += count;
	p->count += count;
	p->sum_ns += sum_ns;
	p->records++;
	p->longest_ns = longest_ns > p->longest_ns ? longest_ns : p->longest_ns;
	p->end_ns = e->end_ns > p->end_ns ? e->end_ns : p->end_ns;
	t->end_ns = e->end_ns > t->end_ns ? e->end_ns : t->end_ns;
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		p->bytes += e->bytes;
	if (p->records == 1)
		return ST_OK;
	if (p->records == 2)
		note_merged(d, first);
	note_merged(d, e);
	first->path = first->path == e->path ? e->path : 0;
	if (first->kind == KIND_MEMCPY && first->subkind != e->subkind)
		first->subkind = 0;
	return ST_OK;
}

/* Keeps an end of an arrow, or drops it if the slice that it belongs to is being merged. */
static enum status put_arrow(struct lod *d, const struct lod_track *t, const struct event *e,
			     struct error *err)
{
	uint32_t process = trace_get_track(d->trace, e->track)->process;

	if (!t->part_count || e->begin_ns > t->end_ns || e->begin_ns >= t->limit_ns)
		return spool_put(d->spool, 0, e, 1,
				 err); /* drop_arrow() counts it when it leaves the spool */
	lod_note_id(&d->ids, process, IDS_FLOW, e->number);
	d->totals[process].arrows++;
	d->totals[process].dropped++;
	trace_lose(d->trace, process, LOSS_SUMMED, 1);
	return ST_OK;
}

enum status lod_span_put(struct lod *d, const struct event *e, uint64_t interval_ns,
			 struct error *err)
{
	struct lod_track *t = &d->tracks[e->track];
	uint64_t interval = e->begin_ns / interval_ns;

	while (t->end_count && t->ends[t->end_count - 1] <= e->begin_ns)
		t->end_count--;
	if (lod_length_ns(e) >= t->min_ns) {
		TRY(lod_spans_close(d, t, err));
		if (t->end_count < ENDS_MOST) { /* no viewer draws deeper nesting */
			TRY(vec_reserve(&t->ends, &t->end_cap, t->end_count + 1, err));
			t->ends[t->end_count++] = e->end_ns;
		}
		return lod_put_kept(d, e, err);
	}
	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT)
		return put_arrow(d, t, e, err);
	if (e->begin_ns >= t->limit_ns ||
	    (e->begin_ns >= t->end_ns &&
	     (interval != t->interval || e->begin_ns - t->end_ns >= t->min_ns)))
		TRY(lod_spans_close(d, t, err));
	if (!t->part_count) {
		if (!t->parts && !(t->parts = calloc(LOD_PARTS, sizeof(*t->parts))))
			return fail_memory(err);
		t->end_ns = e->begin_ns;
		t->limit_ns = t->end_count ? t->ends[t->end_count - 1] : UINT64_MAX;
		t->interval = interval;
	}
	t->merged_end_ns = e->end_ns > t->merged_end_ns ? e->end_ns : t->merged_end_ns;
	return add(d, t, e, err);
}
