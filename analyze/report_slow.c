/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow steps against the median one (DEFINITIONS.md 3): which phase, which cause of idle time and
 * which kernel grew.
 *
 * For each step the time of every phase, cause and kernel is kept, what falls between two marks
 * apart, for whether that joins the step before is known at the end.  Past a ceiling kernels of
 * later steps are left out, and the rows say so.
 */
#include "analyze/report.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	SLOW_STEP = RANK_KEYS, SLOW_BEGIN, SLOW_WHAT, SLOW_NAME, SLOW_NS, SLOW_MEDIAN, SLOW_GREW,
	SLOW_WALL, SLOW_MEDIAN_STEP, SLOW_MEDIAN_WALL, SLOW_PARTIAL,
};
static const struct column slow_columns[] = {
	RANK_COLUMNS,
	{ "step", "step", CELL_U64, KEY, NULL, "a slow one: over 1.5 x the median, or the slowest" },
	{ "begin_ns", NULL, CELL_U64, KEY, NULL, "since the Unix epoch" },
	{ "what", "what", CELL_TEXT, KEY, NULL,
	  "phase: of the step thread; idle: a cause, over GPUs; kernel: that begin in it" },
	{ "name", "grew", CELL_TEXT, KEY, NULL, "the phase, cause or kernel" },
	{ "in_step_ns", "in this step", CELL_U64, SUM, NULL, "time of it in the step" },
	{ "median_ns", "in the median one", CELL_U64, SUM, NULL,
	  "time of it in the counted step whose wall is nearest to the median" },
	{ "grew_ns", "more by", CELL_U64, SUM, NULL, "the difference" },
	{ "wall_ns", "wall", CELL_U64, MAX, NULL, "of the step" },
	{ "median_step", NULL, CELL_U64, MAX, NULL, "number of the step compared with" },
	{ "median_wall_ns", "median wall", CELL_U64, MAX, NULL, "of that step" },
	{ "partial", NULL, CELL_BOOL, MAX, NULL, "kernels of some steps were too many to keep" },
	{ .name = NULL },
};
static const struct table_type table_slow = {
	.name = "slow_steps", .member = "slow_steps", .under = &table_ranks, .by = "grew_ns",
	.columns = slow_columns,
};

enum { CELLS_FIRST = 1 << 12, CELLS_MAX = 1 << 19, SLOW_MAX = 8, GROWN_MAX = 3 };
enum share_of { WHAT_PHASE, WHAT_IDLE, WHAT_KERNEL, WHAT_COUNT };

struct share { /* a hash table's item; ns 0: free */
	uint64_t ns;
	uint32_t process, row, id; /* row: of the list of steps */
	uint8_t what;
	bool in_gap; /* between that mark and the next */
};
struct slow {
	struct share *parts;
	size_t count, cap;
	size_t *gpu_row, *event_row, *stretch_row; /* step_list cursors: by GPU, twice by process */
	size_t gpu_count;
	uint32_t process_count;
	bool is_partial;
};

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for slow steps");
}

static enum status slow_begin(struct fold *f, struct error *err)
{
	struct slow *s = f->state;

	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	s->event_row = calloc((size_t)s->process_count + 1, sizeof(*s->event_row));
	s->stretch_row = calloc((size_t)s->process_count + 1, sizeof(*s->stretch_row));
	return s->event_row && s->stretch_row ? ST_OK : no_memory(err);
}

static void slow_release(struct fold *f)
{
	struct slow *s = f->state;

	free(s->parts);
	free(s->gpu_row);
	free(s->event_row);
	free(s->stretch_row);
}

/* ---- parts ------------------------------------------------------------------------------ */

static struct share *slot_of(const struct slow *s, const struct share *key)
{
	uint64_t h = (uint64_t)key->row << 32 | key->id;
	size_t at;

	h = (h ^ (uint64_t)key->process << 24 ^ (uint64_t)key->what << 8 ^ key->in_gap) *
	    0x9e3779b97f4a7c15u;
	for (at = (size_t)(h >> 32) & (s->cap - 1); s->parts[at].ns; at = (at + 1) & (s->cap - 1))
		if (s->parts[at].row == key->row && s->parts[at].id == key->id &&
		    s->parts[at].what == key->what && s->parts[at].process == key->process &&
		    s->parts[at].in_gap == key->in_gap)
			break;
	return &s->parts[at];
}

static enum status widen(struct slow *s, struct error *err)
{
	struct slow wider = *s;
	size_t i;

	if (s->cap && (s->count < s->cap / 2 || s->cap >= 2 * CELLS_MAX))
		return ST_OK;
	wider.cap = s->cap ? s->cap * 2 : CELLS_FIRST;
	wider.parts = calloc(wider.cap, sizeof(*wider.parts));
	if (!wider.parts)
		return no_memory(err);
	for (i = 0; i < s->cap; i++)
		if (s->parts[i].ns)
			*slot_of(&wider, &s->parts[i]) = s->parts[i];
	free(s->parts);
	*s = wider;
	return ST_OK;
}

static enum status part_add(struct slow *s, const struct share *one, struct error *err)
{
	struct share *slot;

	if (!one->ns)
		return ST_OK;
	TRY(widen(s, err));
	slot = slot_of(s, one);
	if (slot->ns) {
		slot->ns += one->ns;
	} else if (s->count < CELLS_MAX / 2 || (one->what != WHAT_KERNEL && s->count < CELLS_MAX)) {
		*slot = *one;
		s->count++;
	} else {
		s->is_partial = true;
	}
	return ST_OK;
}

/* ---- what comes ------------------------------------------------------------------------- */

static enum status put_stretch(struct fold *f, const struct stretch *st, struct error *err)
{
	struct slow *s = f->state;
	const struct step_list *steps = &f->steps[st->process];
	struct share part = { .ns = st->end_ns - st->begin_ns, .process = st->process,
			     .id = st->phase, .what = WHAT_PHASE,
			     .in_gap = (st->step & STEP_GAP) != 0 };
	size_t row = steps_at(steps, st->begin_ns, &s->stretch_row[st->process]);

	part.row = (uint32_t)row;
	return row == steps->count ? ST_OK : part_add(s, &part, err);
}

static enum status put_kernel(struct fold *f, const struct event *e, struct error *err)
{
	struct slow *s = f->state;
	uint32_t process = fold_process(f, e->track);
	const struct step_list *steps = &f->steps[process];
	struct share part = { .ns = e->end_ns - e->begin_ns, .process = process, .id = e->name,
			     .what = WHAT_KERNEL };
	size_t row = steps_at(steps, e->begin_ns, &s->event_row[process]);

	if (row == steps->count)
		return ST_OK;
	part.row = (uint32_t)row;
	part.in_gap = e->begin_ns >= steps->rows[row].mark_end_ns;
	return part_add(s, &part, err);
}

/* By the clock: cut where marks begin and end. */
static enum status put_piece(struct fold *f, const struct piece *p, struct error *err)
{
	struct slow *s = f->state;
	uint32_t process = sweep_gpu(f->sweep, p->gpu).process;
	const struct step_list *steps = &f->steps[process];
	struct share part = { .process = process, .what = WHAT_IDLE };
	uint64_t at_ns = p->begin_ns, to_ns;

	part.id = p->cause == CAUSE_HOST ? CAUSE_HOST + (uint32_t)p->phase : p->cause;
	if (!steps->count || p->end_ns <= steps->rows[0].begin_ns)
		return ST_OK;
	if (at_ns < steps->rows[0].begin_ns)
		at_ns = steps->rows[0].begin_ns;
	for (; at_ns < p->end_ns; at_ns = to_ns) {
		size_t row = steps_at(steps, at_ns, &s->gpu_row[p->gpu]);

		part.row = (uint32_t)row;
		part.in_gap = at_ns >= steps->rows[row].mark_end_ns;
		to_ns = p->end_ns;
		if (!part.in_gap && steps->rows[row].mark_end_ns < to_ns)
			to_ns = steps->rows[row].mark_end_ns;
		if (row + 1 < steps->count && steps->rows[row + 1].begin_ns < to_ns)
			to_ns = steps->rows[row + 1].begin_ns;
		part.ns = to_ns - at_ns;
		TRY(part_add(s, &part, err));
	}
	return ST_OK;
}

static enum status slow_put(struct fold *f, const struct warm *w, struct error *err)
{
	const struct warm_events *kernels = &w->by[WARM_KERNELS];
	struct slow *s = f->state;
	size_t i;

	TRY(fold_gpus(f, &s->gpu_row, &s->gpu_count, sizeof(*s->gpu_row), err));
	for (i = 0; i < w->in->stretch_count; i++)
		TRY(put_stretch(f, &w->in->stretches[i], err));
	for (i = 0; i < w->piece_count; i++)
		TRY(put_piece(f, &w->pieces[i], err));
	for (i = 0; i < kernels->count; i++)
		if (kernels->items[i]->kind == KIND_KERNEL)
			TRY(put_kernel(f, kernels->items[i], err));
	return ST_OK;
}

/* ---- the end ---------------------------------------------------------------------------- */

static uint64_t wall_of(const struct step_row *row)
{
	return row->end_ns - row->begin_ns;
}

static int compare_walls(const void *pa, const void *pb)
{
	const struct step_row *const *a = pa, *const *b = pb;

	if (wall_of(*a) != wall_of(*b))
		return wall_of(*a) < wall_of(*b) ? -1 : 1;
	return (*a > *b) - (*a < *b);
}

/* Counted steps by wall, the slowest last.  NULL without memory or steps. */
static const struct step_row **steps_sorted(const struct step_list *l, size_t *count)
{
	const struct step_row **rows = calloc(l->count + 1, sizeof(struct step_row *));
	size_t i;

	*count = 0;
	for (i = 0; rows && i < l->count; i++)
		if (l->rows[i].is_counted)
			rows[(*count)++] = &l->rows[i];
	if (rows)
		qsort(rows, *count, sizeof(*rows), compare_walls);
	return rows;
}

static uint64_t median_twice(const struct step_row **rows, size_t count)
{
	return wall_of(rows[(count - 1) / 2]) + wall_of(rows[count / 2]);
}

/* Nearest to the median; of two the later. */
static const struct step_row *median_step(const struct step_row **rows, size_t count)
{
	uint64_t twice = median_twice(rows, count), best = 0;
	const struct step_row *found = NULL;
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t mine = 2 * wall_of(rows[i]);
		uint64_t off = mine > twice ? mine - twice : twice - mine;

		if (!found || off < best || (off == best && rows[i] > found)) {
			found = rows[i];
			best = off;
		}
	}
	return found;
}

struct grown {
	uint64_t ns, median_ns;
	uint32_t id;
};

/* Time of a part in a step, with the gap behind it if that joins. */
static uint64_t part_ns(const struct slow *s, const struct step_list *l, struct share key)
{
	uint64_t ns;

	key.in_gap = false;
	ns = slot_of(s, &key)->ns;
	key.in_gap = true;
	return ns + (l->rows[key.row].joins ? slot_of(s, &key)->ns : 0);
}

/* Keeps the GROWN_MAX that grew most; ties: the lower id. */
static void grown_put(struct grown top[GROWN_MAX], struct grown one)
{
	size_t i;

	for (i = 0; i < GROWN_MAX; i++) {
		uint64_t by = one.ns - one.median_ns, least = top[i].ns - top[i].median_ns;
		struct grown moved = top[i];

		if (by < least || (by == least && one.id > top[i].id))
			continue;
		top[i] = one;
		one = moved;
	}
}

static const char *part_name(const struct fold *f, enum share_of what, uint32_t id, char *text,
			     size_t cap)
{
	if (what == WHAT_KERNEL)
		return trace_text(f->trace, id, NULL);
	if (what == WHAT_PHASE)
		return step_phase(f->step, id).name;
	cause_text(f, id < CAUSE_HOST ? (enum cause)id : CAUSE_HOST,
		   id < CAUSE_HOST ? 0 : id - CAUSE_HOST, text, cap);
	return text;
}

struct compared {
	uint32_t process;
	const struct step_row *step, *median;
};

static enum status put_grown(struct fold *f, const struct compared *c, enum share_of what,
			     const struct grown *g, struct error *err)
{
	static const char *const words[WHAT_COUNT] = { "phase", "idle", "kernel" };
	struct slow *s = f->state;
	union value keys[RANK_KEYS + 4], *row;
	char text[512];

	if (g->ns <= g->median_ns)
		return ST_OK;
	keys[SLOW_STEP].u64 = c->step->number;
	keys[SLOW_BEGIN].u64 = c->step->begin_ns;
	keys[SLOW_WHAT].text = words[what];
	keys[SLOW_NAME].text = part_name(f, what, g->id, text, sizeof(text));
	TRY(fold_row(f, "slow_steps", c->process, keys, &row, err));
	row[SLOW_NS].u64 += g->ns;
	row[SLOW_MEDIAN].u64 += g->median_ns;
	row[SLOW_GREW].u64 += g->ns - g->median_ns;
	row[SLOW_WALL].u64 = wall_of(c->step);
	row[SLOW_MEDIAN_STEP].u64 = c->median->number;
	row[SLOW_MEDIAN_WALL].u64 = wall_of(c->median);
	row[SLOW_PARTIAL].u64 |= s->is_partial;
	return ST_OK;
}

static enum status explain(struct fold *f, const struct compared *c, struct error *err)
{
	struct slow *s = f->state;
	const struct step_list *l = &f->steps[c->process];
	struct grown top[WHAT_COUNT][GROWN_MAX] = { { { 0 } } };
	uint32_t row = (uint32_t)(c->step - l->rows), median = (uint32_t)(c->median - l->rows);
	size_t i, k;

	for (i = 0; i < s->cap; i++) {
		struct share key = s->parts[i], at_median;
		struct grown one = { .id = key.id };

		if (!key.ns || key.process != c->process || key.row != row)
			continue;
		if (key.in_gap && (!l->rows[row].joins || slot_of(s, &(struct share){
			.process = key.process, .row = row, .id = key.id, .what = key.what })->ns))
			continue; /* counted with what is in the mark */
		at_median = key;
		at_median.row = median;
		one.ns = part_ns(s, l, key);
		one.median_ns = part_ns(s, l, at_median);
		if (one.ns > one.median_ns)
			grown_put(top[key.what], one);
	}
	for (i = 0; i < WHAT_COUNT; i++)
		for (k = 0; k < GROWN_MAX; k++)
			TRY(put_grown(f, c, (enum share_of)i, &top[i][k], err));
	return ST_OK;
}

static enum status end_process(struct fold *f, uint32_t process, struct error *err)
{
	struct compared c = { .process = process };
	const struct step_row **rows;
	enum status status = ST_OK;
	size_t count, i;

	rows = steps_sorted(&f->steps[process], &count);
	if (!rows)
		return no_memory(err);
	if (count > 1)
		c.median = median_step(rows, count);
	for (i = 0; c.median && i < SLOW_MAX && i < count && status == ST_OK; i++) {
		c.step = rows[count - 1 - i];
		if (i && 4 * wall_of(c.step) <= 3 * median_twice(rows, count))
			break;
		if (c.step != c.median)
			status = explain(f, &c, err);
	}
	free(rows);
	return status;
}

static enum status slow_end(struct fold *f, struct error *err)
{
	struct slow *s = f->state;
	uint32_t process;

	TRY(fold_gpus(f, &s->gpu_row, &s->gpu_count, sizeof(*s->gpu_row), err));
	for (process = 1; s->cap && process <= s->process_count; process++)
		if (!f->steps[process].is_inferred)
			TRY(end_process(f, process, err));
	return ST_OK;
}

static const struct table_type *const slow_tables[] = { &table_slow, NULL };

const struct report_type report_slow = {
	.name = "slow",
	.help = "slow steps against the median one: which phase, cause and kernel grew",
	.tables = slow_tables,
	.state_size = sizeof(struct slow),
	.begin = slow_begin,
	.put = slow_put,
	.end = slow_end,
	.release = slow_release,
};
