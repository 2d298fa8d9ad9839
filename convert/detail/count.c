/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each level would leave, without doing it.  An event is kept up to the level of its class;
 * above, it begins an event of its part exactly at the levels that see something between it and
 * the part's event before: a longer event, a gap, a border of a cell.  So each event adds two
 * ranges of levels, kept as differences.
 */
#include "convert/detail/parts.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64, EDGES = DETAIL_LEVELS + 1 };

struct count_part {
	uint8_t kind, subkind;
	uint8_t broken; /* levels below see a break since its last event */
};
struct count_track {
	struct count_part parts[DETAIL_PARTS];
	unsigned part_count;
	unsigned depth;
	uint64_t ends[DEPTH];     /* of events that are open */
	uint8_t classes[DEPTH];
	uint64_t begin_ns, end_ns; /* of the last one; the last end that has passed */
	unsigned border;          /* of a bin: levels below saw one before the last event */
	bool has_event;
};
struct detail_count {
	const struct trace *trace;
	struct count_track **tracks;
	uint32_t track_count, process_count;
	struct count_edges {
		int64_t kept[EDGES], made[EDGES];
	} *edges; /* by process */
};

enum status detail_count_new(struct detail_count **out, const struct trace *trace,
			     struct error *err)
{
	struct detail_count *c = calloc(1, sizeof(*c));

	*out = c;
	if (!c)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to count events");
	c->trace = trace;
	c->track_count = trace_count(trace, TRACE_TRACKS) + 1;
	c->process_count = trace_count(trace, TRACE_PROCESSES) + 1;
	c->tracks = calloc(c->track_count, sizeof(*c->tracks));
	c->edges = calloc(c->process_count, sizeof(*c->edges));
	if (c->tracks && c->edges)
		return ST_OK;
	detail_count_free(c);
	*out = NULL;
	return fail(err, ST_MEMORY, NOWHERE, "no memory to count events");
}

void detail_count_free(struct detail_count *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->tracks && i < c->track_count; i++)
		free(c->tracks[i]);
	free(c->tracks);
	free(c->edges);
	free(c);
}

/* One event more at levels [from, to). */
static void count_add(int64_t *edges, unsigned from, unsigned to)
{
	if (from >= to)
		return;
	edges[from]++;
	edges[to]--;
}

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* ---- bins ---- */

static void count_sample(struct count_track *t, const struct event *e, struct count_edges *edges)
{
	unsigned border = t->has_event ? detail_cell_class(t->begin_ns, e->begin_ns) :
					 DETAIL_LEVELS;

	border = most(border, 1);
	count_add(edges->kept, 0, border);
	count_add(edges->kept, border, t->border); /* the second of its bin */
	t->border = border;
	t->begin_ns = e->begin_ns;
}

/* ---- groups ---- */

static struct count_part *part_of(struct count_track *t, const struct event *e)
{
	uint8_t subkind = e->kind == KIND_RANGE ? e->subkind : 0;
	unsigned i;

	for (i = 0; i < t->part_count; i++)
		if (t->parts[i].kind == e->kind && t->parts[i].subkind == subkind)
			return &t->parts[i];
	if (i == DETAIL_PARTS)
		return &t->parts[i - 1];
	t->part_count++;
	t->parts[i] = (struct count_part){ e->kind, subkind, DETAIL_LEVELS };
	return &t->parts[i];
}

/* The levels below see something between the track's last event and this one. */
static unsigned find_break(struct count_track *t, const struct event *e)
{
	unsigned broken = 0;
	uint64_t from_ns;

	while (t->depth && t->ends[t->depth - 1] <= e->begin_ns) {
		t->depth--;
		broken = most(broken, t->classes[t->depth] + 1u);
		t->end_ns = t->ends[t->depth] > t->end_ns ? t->ends[t->depth] : t->end_ns;
	}
	if (!t->has_event)
		return broken;
	from_ns = t->begin_ns > t->end_ns ? t->begin_ns : t->end_ns;
	if (e->begin_ns > from_ns)
		broken = most(broken, detail_class(e->begin_ns - from_ns) + 1);
	return most(broken, detail_cell_class(t->begin_ns, e->begin_ns));
}

static void breaks_raise(struct count_track *t, unsigned broken)
{
	for (unsigned i = 0; i < t->part_count; i++)
		t->parts[i].broken = (uint8_t)most(t->parts[i].broken, broken);
}

static void count_event(struct count_track *t, const struct event *e, struct count_edges *edges)
{
	unsigned class = detail_class(detail_length(e)), broken = find_break(t, e);
	struct count_part *p;

	if (e->kind == KIND_MARK && e->subkind != MARK_INSTANT) { /* with the slice it stands on */
		class = t->depth ? t->classes[t->depth - 1] : DETAIL_LEVELS - 1;
		count_add(edges->kept, 0, class + 1);
		return;
	}
	breaks_raise(t, broken);
	p = part_of(t, e);
	count_add(edges->kept, 0, class + 1);
	count_add(edges->made, class + 1, p->broken);
	p->broken = 0;
	breaks_raise(t, class + 1);
	t->begin_ns = e->begin_ns;
	if (e->end_ns <= e->begin_ns || t->depth == DEPTH)
		return;
	t->ends[t->depth] = e->end_ns;
	t->classes[t->depth++] = (uint8_t)class;
}

enum status detail_count_put(struct detail_count *c, const struct event *events, size_t count,
			     struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct event *e = &events[i];
		const struct track *k = trace_get_track(c->trace, e->track);
		uint32_t at = e->track < c->track_count ? e->track : 0;
		uint32_t process = k->process < c->process_count ? k->process : 0;

		if (!c->tracks[at])
			c->tracks[at] = calloc(1, sizeof(**c->tracks));
		if (!c->tracks[at])
			return fail(err, ST_MEMORY, NOWHERE, "no memory to count events");
		if (k->home == HOME_COUNTER || k->home == HOME_POOL)
			count_sample(c->tracks[at], e, &c->edges[process]);
		else
			count_event(c->tracks[at], e, &c->edges[process]);
		c->tracks[at]->has_event = true;
	}
	return ST_OK;
}

static struct detail_left count_at_level(const struct detail_count *c, uint32_t process,
					 unsigned level)
{
	int64_t kept = 0, made = 0;

	for (uint32_t i = 0; i < c->process_count; i++)
		for (unsigned q = 0; (!process || i == process) && q <= level; q++) {
			kept += c->edges[i].kept[q];
			made += c->edges[i].made[q];
		}
	return (struct detail_left){ (uint64_t)kept, (uint64_t)made };
}

static uint64_t between(uint64_t low, uint64_t high, unsigned part)
{
	return (uint64_t)(((double)low * (DETAIL_FINE - part) + (double)high * part) / DETAIL_FINE);
}

struct detail_left detail_count_at(const struct detail_count *c, uint32_t process, unsigned fine)
{
	struct detail_left low = count_at_level(c, process, fine / DETAIL_FINE), high;

	if (fine % DETAIL_FINE == 0)
		return low;
	high = count_at_level(c, process, fine / DETAIL_FINE + 1);
	return (struct detail_left){ between(low.kept, high.kept, fine % DETAIL_FINE),
				     between(low.made, high.made, fine % DETAIL_FINE) };
}

double detail_cost(const struct detail_left *left, struct detail_cost cost)
{
	return (double)left->kept * cost.kept + (double)left->made * cost.made;
}

static bool is_within(const struct detail_count *c, uint32_t process, unsigned fine,
		      struct detail_cost cost, double most_bytes)
{
	struct detail_left left = detail_count_at(c, process, fine);

	return detail_cost(&left, cost) <= most_bytes;
}

unsigned detail_count_pick(const struct detail_count *c, uint32_t process, unsigned fine,
			   struct detail_cost cost, double most_bytes)
{
	unsigned level = fine / DETAIL_FINE + 1, at;

	while (level < DETAIL_LEVELS - 1 &&
	       !is_within(c, process, level * DETAIL_FINE, cost, most_bytes))
		level++;
	at = (level - 1) * DETAIL_FINE;
	for (at = at > fine ? at : fine, at++; at < level * DETAIL_FINE; at++)
		if (is_within(c, process, at, cost, most_bytes))
			return at;
	return at < DETAIL_MOST ? at : DETAIL_MOST;
}
