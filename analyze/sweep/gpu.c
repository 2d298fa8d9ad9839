/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/sweep/state.h"

#include <stdlib.h>

static struct slot *slot_at(const struct sweep *s, uint32_t slot)
{
	return (struct slot *)s->slots.items + slot;
}

static uint32_t *ids(const struct vec *v)
{
	return v->items;
}

static enum status slot_take(struct sweep *s, uint32_t *out, struct error *err)
{
	if (s->free_slots.count) {
		*out = ids(&s->free_slots)[--s->free_slots.count];
		return ST_OK;
	}
	if (!vec_room(s, &s->slots, sizeof(struct slot), err))
		return ST_CEILING;
	*out = (uint32_t)s->slots.count++;
	return ST_OK;
}

static enum status slot_put(struct sweep *s, uint32_t slot, struct error *err)
{
	uint32_t *room = vec_room(s, &s->free_slots, sizeof(*room), err);

	if (!room)
		return ST_CEILING;
	*room = slot;
	s->free_slots.count++;
	return ST_OK;
}

/* DEFINITIONS.md 2: began first, then the lower stream, then the lower correlation. */
static bool owns_before(const struct slot *a, const struct slot *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	if (a->stream != b->stream)
		return a->stream < b->stream;
	if (a->correlation != b->correlation)
		return a->correlation < b->correlation;
	return a->order < b->order;
}

static int compare_slots(const void *pa, const void *pb, void *self)
{
	const struct slot *a = slot_at(self, *(const uint32_t *)pa);
	const struct slot *b = slot_at(self, *(const uint32_t *)pb);

	return owns_before(a, b) ? -1 : owns_before(b, a) ? 1 : 0;
}

static bool ends_before(const struct sweep *s, uint32_t a, uint32_t b)
{
	return slot_at(s, a)->end_ns < slot_at(s, b)->end_ns;
}

static void heap_up(const struct sweep *s, struct vec *heap)
{
	uint32_t *at = ids(heap), moving = at[heap->count - 1];
	size_t i = heap->count - 1;

	for (; i && ends_before(s, moving, at[(i - 1) / 2]); i = (i - 1) / 2)
		at[i] = at[(i - 1) / 2];
	at[i] = moving;
}

/* Takes the top away. */
static void heap_pop(const struct sweep *s, struct vec *heap)
{
	uint32_t *at = ids(heap), moving = at[--heap->count];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < heap->count; i = child) {
		if (child + 1 < heap->count && ends_before(s, at[child + 1], at[child]))
			child++;
		if (!ends_before(s, at[child], moving))
			break;
		at[i] = at[child];
	}
	at[i] = moving;
}

static bool continues(const struct segment *last, uint32_t gpu, const struct segment *piece)
{
	return last->gpu == gpu && last->end_ns == piece->begin_ns && last->busy == piece->busy &&
	       last->order == piece->order && last->part == piece->part;
}

/* One more segment, or the last one longer. */
static enum status emit(struct sweep *s, uint32_t gpu, const struct segment *piece,
			struct error *err)
{
	struct segment *room = s->segments.items;

	if (piece->begin_ns >= piece->end_ns)
		return ST_OK;
	if (s->segments.count && continues(&room[s->segments.count - 1], gpu, piece)) {
		room[s->segments.count - 1].end_ns = piece->end_ns;
		return ST_OK;
	}
	room = vec_room(s, &s->segments, sizeof(*room), err);
	if (!room)
		return ST_CEILING;
	*room = *piece;
	room->gpu = gpu;
	s->segments.count++;
	return ST_OK;
}

static struct segment owned_by(const struct slot *owner, uint64_t begin_ns, uint64_t end_ns)
{
	return (struct segment){
		.begin_ns = begin_ns, .end_ns = end_ns, .order = owner->order,
		.launch_begin_ns = owner->launch_begin_ns,
		.name = owner->name, .step = owner->step, .phase = owner->phase,
		.kind = owner->kind, .subkind = owner->subkind, .origin = owner->origin,
		.part = PART_SPAN,
	};
}

/* For the host's stretches, which may come later. */
static enum status note_busy(struct sweep *s, struct gpu *g, uint64_t begin_ns, uint64_t end_ns,
			     struct error *err)
{
	struct interval *room = g->busy.items;

	if (g->busy.count > g->busy.head && room[g->busy.count - 1].end_ns == begin_ns) {
		room[g->busy.count - 1].end_ns = end_ns;
		return ST_OK;
	}
	room = vec_room(s, &g->busy, sizeof(*room), err);
	if (!room)
		return ST_CEILING;
	*room = (struct interval){ begin_ns, end_ns };
	g->busy.count++;
	return ST_OK;
}

/* The slots of a class without those that are over. */
static enum status class_sweep(struct sweep *s, struct vec *running, struct error *err)
{
	size_t from, to = 0;

	for (from = running->head; from < running->count; from++) {
		uint32_t slot = ids(running)[from];

		if (slot_at(s, slot)->over)
			TRY(slot_put(s, slot, err));
		else
			ids(running)[to++] = slot;
	}
	running->head = 0;
	running->count = to;
	return ST_OK;
}

/* The earliest end is reached. */
static enum status one_ends(struct sweep *s, struct gpu *g, struct error *err)
{
	uint32_t slot = ids(&g->ends)[0];
	enum class class = slot_at(s, slot)->class;
	struct vec *running = &g->running[class];

	heap_pop(s, &g->ends);
	slot_at(s, slot)->over = true;
	g->live[class]--;
	while (running->head < running->count &&
	       slot_at(s, ids(running)[running->head])->over)
		TRY(slot_put(s, ids(running)[running->head++], err));
	if (running->count - running->head > 2 * g->live[class] + 64 || running->head > 4096)
		TRY(class_sweep(s, running, err));
	return ST_OK;
}

static enum status emit_busy(struct sweep *s, uint32_t gpu, uint64_t end_ns, struct error *err)
{
	static const uint8_t bits[CLASS_COUNT] = { BUSY_COMPUTE, BUSY_COMM, BUSY_COPY };
	struct gpu *g = s->gpus[gpu];
	struct segment piece;
	uint8_t mask = 0;
	int class, winner = CLASS_COUNT;

	if (g->at_ns >= end_ns)
		return ST_OK;
	for (class = CLASS_COUNT - 1; class >= 0; class--) {
		if (!g->live[class])
			continue;
		mask |= bits[class];
		winner = class;
	}
	piece = owned_by(slot_at(s, ids(&g->running[winner])[g->running[winner].head]), g->at_ns,
			 end_ns);
	piece.busy = mask;
	TRY(note_busy(s, g, g->at_ns, end_ns, err));
	g->at_ns = end_ns;
	return emit(s, gpu, &piece, err);
}

/* Running work up to an instant before which nothing else begins. */
static enum status run_until(struct sweep *s, uint32_t gpu, uint64_t until_ns, struct error *err)
{
	struct gpu *g = s->gpus[gpu];
	uint64_t end_ns;

	while (g->ends.count) {
		end_ns = slot_at(s, ids(&g->ends)[0])->end_ns;
		if (end_ns > until_ns)
			return emit_busy(s, gpu, until_ns, err);
		TRY(emit_busy(s, gpu, end_ns, err));
		TRY(one_ends(s, g, err));
	}
	return ST_OK;
}

static enum status start(struct sweep *s, struct gpu *g, uint32_t slot, struct error *err)
{
	enum class class = slot_at(s, slot)->class;
	uint32_t *room;

	if (slot_at(s, slot)->begin_ns == slot_at(s, slot)->end_ns)
		return slot_put(s, slot, err); /* never runs, but may have ended a gap */
	room = vec_room(s, &g->running[class], sizeof(*room), err);
	if (!room)
		return ST_CEILING;
	*room = slot;
	g->running[class].count++;
	g->live[class]++;
	room = vec_room(s, &g->ends, sizeof(*room), err);
	if (!room)
		return ST_CEILING;
	*room = slot;
	g->ends.count++;
	heap_up(s, &g->ends);
	return ST_OK;
}

/* DEFINITIONS.md 5: what has no launch is told apart in the order of owners. */
static void group_origin(struct sweep *s, struct gpu *g)
{
	size_t i;

	for (i = 0; i < g->group.count; i++) {
		struct slot *slot = slot_at(s, ids(&g->group)[i]);

		if (slot->origin == ORIGIN_LAUNCH)
			g->launch_seen = true;
		else
			slot->origin = g->launch_seen ? ORIGIN_UNKNOWN : ORIGIN_BEFORE;
	}
}

/* Whether the stream of `e` was told to wait after its op before was asked for, but before `e`. */
static bool has_waited(const struct sweep *s, const struct slot *e)
{
	const struct stream *stream = &s->streams[e->track <= s->track_count ? e->track : 0];
	const uint64_t *waits = stream->waits.items;
	size_t low = 0, high = stream->waits.count, mid;

	if (!high || e->origin != ORIGIN_LAUNCH)
		return false;
	while (low < high) {
		mid = low + (high - low) / 2;
		if (waits[mid] <= e->launch_begin_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low && waits[low - 1] >= stream->asked_ns;
}

static enum status gap_put(struct sweep *s, const struct idle_gap *gap, struct error *err)
{
	struct idle_gap *room;

	if (gap->begin_ns >= gap->end_ns)
		return ST_OK;
	room = vec_room(s, &s->gaps, sizeof(*room), err);
	if (!room)
		return ST_CEILING;
	*room = *gap;
	s->gaps.count++;
	return ST_OK;
}

static enum status gap_end(struct sweep *s, uint32_t gpu, const struct slot *e, uint8_t part,
			   struct error *err)
{
	struct gpu *g = s->gpus[gpu];
	struct idle_gap gap = {
		.begin_ns = g->at_ns, .end_ns = e->begin_ns, .gpu = gpu, .part = part,
		.origin = e->origin, .correlation = e->correlation, .launch_begin_ns = e->launch_begin_ns,
		.launch_end_ns = e->launch_end_ns, .launch_track = e->launch_track,
		.launch_name = e->launch_name, .launch_owner = e->launch_owner,
		.phase = e->phase,
		.is_graph_internal = e->correlation && e->correlation == g->last_correlation,
	};

	if (gap.begin_ns >= gap.end_ns)
		return ST_OK;
	gap.has_waited = has_waited(s, e);
	return gap_put(s, &gap, err);
}

/* What the next gaps have to know of what begins now. */
static void group_note(struct sweep *s, struct gpu *g)
{
	size_t i;

	for (i = 0; i < g->group.count; i++) {
		const struct slot *slot = slot_at(s, ids(&g->group)[i]);

		s->streams[slot->track <= s->track_count ? slot->track : 0].asked_ns =
			slot->origin == ORIGIN_LAUNCH ? slot->launch_begin_ns : slot->begin_ns;
		if (slot->end_ns < g->last_end_ns)
			continue;
		g->last_end_ns = slot->end_ns;
		g->last_correlation = slot->correlation;
	}
}

/* All that begins at one instant has come: it ends the gap before it and begins to run. */
static enum status group_start(struct sweep *s, uint32_t gpu, struct error *err)
{
	struct gpu *g = s->gpus[gpu];
	struct segment gap;
	uint64_t begin_ns;
	size_t i;

	if (!g->group.count)
		return ST_OK;
	if (g->group.count > 1)
		qsort_r(g->group.items, g->group.count, sizeof(uint32_t), compare_slots, s);
	group_origin(s, g);
	begin_ns = slot_at(s, ids(&g->group)[0])->begin_ns;
	TRY(run_until(s, gpu, begin_ns, err));
	gap = owned_by(slot_at(s, ids(&g->group)[0]), g->at_ns, begin_ns);
	if (!g->in_span)
		gap.part = PART_LEAD;
	g->in_span = true;
	TRY(gap_end(s, gpu, slot_at(s, ids(&g->group)[0]), gap.part, err));
	if (begin_ns > g->at_ns) {
		TRY(emit(s, gpu, &gap, err));
		g->at_ns = begin_ns;
	}
	group_note(s, g);
	for (i = 0; i < g->group.count; i++)
		TRY(start(s, g, ids(&g->group)[i], err));
	g->group.count = 0;
	return ST_OK;
}

static enum class class_of(struct sweep *s, const struct event *e)
{
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		return CLASS_COPY;
	return e->kind == KIND_KERNEL && sweep_communicates(s, e->name) ? CLASS_COMM
									: CLASS_COMPUTE;
}

static void launch_take(struct slot *slot, const struct launch *launch)
{
	slot->launch_begin_ns = launch->begin_ns;
	slot->launch_end_ns = launch->end_ns;
	slot->launch_track = launch->track;
	slot->launch_name = launch->name;
	slot->launch_owner = launch->owner;
}

enum status gpu_put(struct sweep *s, uint32_t gpu, const struct event *e, struct error *err)
{
	const struct launch *launch = s->link ? link_launch(s->link, e) : NULL;
	struct gpu *g = s->gpus[gpu];
	uint32_t slot, *room;

	if (g->group.count && slot_at(s, ids(&g->group)[0])->begin_ns != e->begin_ns)
		TRY(group_start(s, gpu, err));
	TRY(slot_take(s, &slot, err));
	*slot_at(s, slot) = (struct slot){
		.begin_ns = e->begin_ns, .end_ns = e->end_ns, .correlation = e->correlation,
		.stream = trace_get_track(s->trace, e->track)->id, .order = ++s->order,
		.name = e->name, .step = e->step, .phase = e->phase, .kind = e->kind,
		.subkind = e->subkind, .class = class_of(s, e), .track = e->track,
		.origin = launch ? ORIGIN_LAUNCH : ORIGIN_UNKNOWN,
	};
	if (launch)
		launch_take(slot_at(s, slot), launch);
	room = vec_room(s, &g->group, sizeof(*room), err);
	if (!room)
		return ST_CEILING;
	*room = slot;
	g->group.count++;
	if (e->end_ns > g->end_ns)
		g->end_ns = e->end_ns;
	return ST_OK;
}

enum status gpu_advance(struct sweep *s, uint32_t gpu, uint64_t until_ns, struct error *err)
{
	struct gpu *g = s->gpus[gpu];

	if (g->group.count && slot_at(s, ids(&g->group)[0])->begin_ns < until_ns)
		TRY(group_start(s, gpu, err));
	return run_until(s, gpu, until_ns, err);
}

enum status gpu_close(struct sweep *s, uint32_t gpu, uint64_t end_ns, struct error *err)
{
	struct gpu *g = s->gpus[gpu];
	struct segment tail = { .begin_ns = g->at_ns, .end_ns = end_ns, .part = PART_TAIL };
	struct idle_gap gap = { .begin_ns = g->at_ns, .end_ns = end_ns, .gpu = gpu, .part = PART_TAIL };

	TRY(gap_put(s, &gap, err));
	g->last_end_ns = g->last_correlation = 0;
	TRY(emit(s, gpu, &tail, err));
	g->is_open = g->in_span = false;
	return ST_OK;
}

void gpu_free(struct gpu *g)
{
	int class;

	if (!g)
		return;
	vec_release(&g->group);
	vec_release(&g->ends);
	vec_release(&g->busy);
	for (class = 0; class < CLASS_COUNT; class++)
		vec_release(&g->running[class]);
	free(g);
}
