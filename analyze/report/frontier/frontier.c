/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up what a GPU did from the end of one collective to that of the next: segments of the sweep,
 * and idle segments, by phase and by class or cause.
 *
 * Collectives are numbered by their begin, as in the report `comm`. If the next one ends first,
 * there is no time between them. A single GPU has no collectives to match, so nothing is kept for
 * it.
 */
#include "analyze/report/frontier/frontier.h"
#include "analyze/report/cells.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

RANK_TABLE_TYPE(frontier_spans, &table_ranks, SPANS_COLUMNS, .nest = NEST_NEVER);

enum {
	PLACES_OF_JOB = 1 << 20,
	PLACES_LEAST = 256,
	RANKS_UNKNOWN = 256,
	KINDS = 64,
	KIND_REST = KINDS - 1, /* the last kind is for all that exceed the limit */
	CLASSES = 3,
	CODES = CLASSES + CAUSE_COUNT,
	PACKED_BYTES = 1 << 19,
};
struct kind_time {
	unsigned code, phase;
	uint64_t *ns; /* by place */
	size_t count, cap;
};
struct gpu_times { /* the times of a GPU */
	uint32_t process, device;
	uint64_t from_ns, places;
	uint64_t *ends; /* ends of the first `kept` collectives, or a later end of one before */
	size_t kept, cap, most;
	size_t busy_at, idle_at; /* next place, for busy and for idle segments */
	struct kind_time kinds[KINDS];
	size_t kind_count;
	uint8_t kind_of[CODES][CELL_PHASES]; /* index in `kinds`, + 1 */
};

void list_put(struct buf *out, struct packed_list *l, uint64_t value)
{
	if (!value) {
		l->zeros++;
		return;
	}
	if (l->zeros) {
		packed_put(out, 0);
		packed_put(out, l->zeros);
	}
	l->zeros = 0;
	packed_put(out, value);
}

bool list_take(const char **packed, struct packed_list *l, uint64_t *value)
{
	*value = 0;
	if (l->zeros) {
		l->zeros--;
		return true;
	}
	if (!*packed || !**packed)
		return false;
	*value = packed_take(packed);
	if (*value)
		return true;
	l->zeros = packed_take(packed);
	if (l->zeros)
		l->zeros--;
	return true;
}

/* ---- collectives ------------------------------------------------------------------------ */

static enum status gpus_reach(struct accumulator *f, struct error *err)
{
	struct frontier *s = f->state;
	size_t i = s->gpu_count;

	TRY(acc_gpus(f, &s->gpus, &s->gpu_count, sizeof(struct gpu_times *), err));
	for (; i < s->gpu_count; i++) {
		struct sweep_gpu of = sweep_gpu(f->sweep, i);
		uint32_t ranks = trace_get_process(f->trace, of.process)->world_size;
		struct gpu_times *g;

		TRY(vec_new(&g, 1, err));
		size_t share = PLACES_OF_JOB / (ranks ? ranks : RANKS_UNKNOWN);
		g->process = of.process;
		g->device = of.device;
		g->most = share < PLACES_LEAST      ? PLACES_LEAST
			  : share > FRONTIER_PLACES ? FRONTIER_PLACES
						    : share;
		s->gpus[i] = g;
	}
	return ST_OK;
}

static enum status put_collective(struct accumulator *f, const struct event *e, struct error *err)
{
	struct frontier *s = f->state;
	uint32_t gpu = sweep_gpu_of(f->sweep, e->track);
	struct gpu_times *g = gpu < s->gpu_count ? s->gpus[gpu] : NULL;

	if (!g || !acc_wants(f, g->process))
		return ST_OK;
	s->any = true;
	if (!g->places++)
		g->from_ns = e->begin_ns;
	if (g->kept == g->most)
		return ST_OK;
	TRY(vec_reserve(&g->ends, &g->cap, g->kept + 1, err));
	uint64_t last = g->kept ? g->ends[g->kept - 1] : 0;
	g->ends[g->kept++] = e->end_ns > last ? e->end_ns : last;
	return ST_OK;
}

/* ---- time ------------------------------------------------------------------------------- */

static inline struct kind_time *kind_find(struct gpu_times *g, unsigned code, unsigned phase)
{
	if (!g->kind_of[code][phase]) {
		g->kind_of[code][phase] =
			(uint8_t)(g->kind_count < KIND_REST ? g->kind_count + 1 : KINDS);
		if (g->kind_count != KIND_REST) {
			g->kinds[g->kind_count].code = code;
			g->kinds[g->kind_count++].phase = phase;
		}
	}
	return &g->kinds[g->kind_of[code][phase] - 1];
}

static enum status kind_add(struct kind_time *k, size_t place, uint64_t ns, struct error *err)
{
	TRY(vec_reserve(&k->ns, &k->cap, place + 1, err)); /* new places are 0 */
	if (k->count <= place)
		k->count = place + 1;
	k->ns[place] += ns;
	return ST_OK;
}

/* Splits time at the ends of collectives. Time after the last one that is kept is dropped. */
static inline enum status add_time(struct gpu_times *g, size_t *at, uint64_t begin_ns,
				   uint64_t end_ns, struct kind_time *k, struct error *err)
{
	while (begin_ns < end_ns) {
		while (*at < g->kept && g->ends[*at] <= begin_ns)
			++*at;
		if (*at == g->most)
			return ST_OK;
		uint64_t until = *at < g->kept && g->ends[*at] < end_ns ? g->ends[*at] : end_ns;
		if (*at < k->count)
			k->ns[*at] += until - begin_ns;
		else
			TRY(kind_add(k, *at, until - begin_ns, err));
		begin_ns = until;
	}
	return ST_OK;
}

static struct gpu_times *times_of(const struct frontier *s, uint32_t gpu)
{
	return gpu < s->gpu_count && s->gpus[gpu]->places ? s->gpus[gpu] : NULL;
}

enum status frontier_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	struct frontier *s = f->state;
	struct gpu_times *g;

	if (f->is_single)
		return ST_OK;
	TRY(gpus_reach(f, err));
	for (size_t i = 0; i < w->by[BATCH_COLLECTIVES].count; i++)
		TRY(put_collective(f, w->by[BATCH_COLLECTIVES].items[i], err));
	for (size_t i = 0; s->any && i < w->segment_count; i++) {
		const struct segment *seg = &w->segments[i];

		g = seg->busy ? times_of(s, seg->gpu) : NULL;
		if (g)
			TRY(add_time(g, &g->busy_at, seg->begin_ns, seg->end_ns,
				     kind_find(g, owner_class(seg->busy), segment_phase(seg)),
				     err));
	}
	for (size_t i = 0; s->any && i < w->idle_count; i++) {
		const struct idle_segment *p = &w->idle[i];

		g = times_of(s, p->gpu);
		if (g)
			TRY(add_time(g, &g->idle_at, p->begin_ns, p->end_ns,
				     kind_find(g, CLASSES + p->cause, p->phase), err));
	}
	return ST_OK;
}

/* ---- the end ---------------------------------------------------------------------------- */

static enum status put_row(struct accumulator *f, const struct gpu_times *g, const char *phase,
			   const char *kind, struct buf *packed, struct error *err)
{
	union value keys[SPANS_PACKED], *row;

	keys[SPANS_DEVICE].u64 = g->device == NO_ID ? NO_U64 : g->device;
	keys[SPANS_FROM].u64 = g->from_ns;
	keys[SPANS_PHASE].text = phase;
	keys[SPANS_KIND].text = kind;
	TRY(buf_status(packed, err));
	TRY(acc_row(f, "frontier_spans", g->process, keys, &row, err));
	return acc_text(f, "frontier_spans", &row[SPANS_PACKED], buf_text(packed), err);
}

/* Joins kinds whose phases have the same name, such as a user's and a built-in one. */
static enum status kinds_merge(struct accumulator *f, struct gpu_times *g, struct error *err)
{
	size_t k;

	for (size_t i = 1; i < g->kind_count; i++) {
		struct kind_time *from = &g->kinds[i];

		for (k = 0; k < i && (g->kinds[k].code != from->code ||
				      strcmp(cells_phase_name(f, g->kinds[k].phase),
					     cells_phase_name(f, from->phase)) != 0);
		     k++)
			;
		for (size_t at = 0; k < i && at < from->count; at++)
			TRY(kind_add(&g->kinds[k], at, from->ns[at], err));
		from->count = k < i ? 0 : from->count;
	}
	return ST_OK;
}

static enum status put_kind(struct accumulator *f, const struct gpu_times *g,
			    const struct kind_time *k, struct buf *packed, struct error *err)
{
	struct packed_list list = { 0, 0 };
	char kind[320] = "more";

	if (k != &g->kinds[KIND_REST]) {
		size_t cap = sizeof(kind);
		static const char *const classes[CLASSES] = { "compute", "exposed_comm",
							      "exposed_copy" };

		if (k->code < CLASSES)
			snprintf(kind, cap, "%s", classes[k->code]);
		else
			cause_text(f, (enum cause)(k->code - CLASSES), k->phase, kind, cap);
	}
	buf_clear(packed);
	for (size_t i = 0; i < k->count && i < g->kept; i++)
		list_put(packed, &list, k->ns[i]);
	const char *phase = k != &g->kinds[KIND_REST] ? cells_phase_name(f, k->phase) : "";
	return put_row(f, g, phase, kind, packed, err);
}

enum status frontier_end(struct accumulator *f, struct error *err)
{
	struct frontier *s = f->state;
	RELEASED_BY(buf_release) struct buf packed;

	buf_init(&packed, PACKED_BYTES);
	for (size_t i = 0; i < s->gpu_count; i++) {
		struct gpu_times *g = s->gpus[i];

		if (!g->kept)
			continue;
		/* Write for each collective the number of windows that began before its end: no
		 * path leads from one window to the next. */
		const struct sweep_window *w;
		size_t count = sweep_windows(f->sweep, &w);
		buf_clear(&packed);
		for (size_t j = 0; j < g->kept; j++) {
			uint64_t begun = 0;

			for (size_t k = 0; k < count; k++)
				begun += w[k].process == g->process && w[k].begin_ns < g->ends[j];
			packed_put(&packed, begun);
		}
		TRY(put_row(f, g, "", "", &packed, err));
		TRY(kinds_merge(f, g, err));
		for (size_t k = 0; k < KINDS; k++)
			if (g->kinds[k].count)
				TRY(put_kind(f, g, &g->kinds[k], &packed, err));
	}
	return ST_OK;
}

void frontier_release(struct accumulator *f)
{
	struct frontier *s = f->state;

	for (size_t i = 0; i < s->gpu_count; i++) {
		for (size_t k = 0; s->gpus[i] && k < KINDS; k++)
			free(s->gpus[i]->kinds[k].ns);
		if (s->gpus[i])
			free(s->gpus[i]->ends);
		free(s->gpus[i]);
	}
}

/* The tables that are printed. */

const struct table_type table_frontier = {
	.name = "frontier",
	.by = "ns",
	.null_texts = "host",
	.is_finished = true,
	.columns = COLUMNS(CULPRIT_COLUMNS(COLUMN_ROW) FRONTIER_COLUMNS(COLUMN_ROW)),
};

TABLE_TYPE(frontier_steps, FRONTIER_STEP_COLUMNS, .is_finished = true);

const struct table_type table_frontier_parts = {
	.name = "frontier_pieces",
	.member = "pieces",
	.under = &table_frontier_steps,
	.by = "ns",
	.null_texts = "host",
	.is_finished = true,
	.columns = COLUMNS(FRONTIER_PART_STEP(COLUMN_ROW) CULPRIT_COLUMNS(COLUMN_ROW)
				   FRONTIER_PART_COLUMNS(COLUMN_ROW)),
};

TABLE_TYPE(frontier_total, FRONTIER_TOTAL_COLUMNS, .nest = NEST_OBJECT, .is_finished = true);
