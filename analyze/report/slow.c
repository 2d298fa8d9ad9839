/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report `slow`: slow steps compared with the median one (DEFINITIONS.md 3), by phase, cause of
 * idle time and kernel.
 *
 * Each step keeps its time by phase, cause and kernel. Time between two marks is separate, because
 * only the end decides to which step it belongs. A long run keeps this only for the longest steps,
 * those around the median and the latest ones. If these are too many, the rows report that kernels
 * were left out.
 */
#include "analyze/engine/report.h"

#include "schemas/base/map.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

#define SLOW_COLUMNS(X)                                                                            \
	X(SLOW_STEP = RANK_KEYS, "step", "step", U64, KEY,                                         \
	  "number of a step that is over 1.5 x the median, or the slowest")                        \
	X(SLOW_BEGIN, "begin_ns", NULL, U64, KEY, "begin of the step since the Unix epoch")        \
	X(SLOW_WHAT, "what", "what", TEXT, KEY,                                                    \
	  "phase: of the step thread; idle: a cause, over GPUs; kernel: begins in the step")       \
	X(SLOW_NAME, "name", "grew", TEXT, KEY, "name of the phase, cause or kernel")              \
	X(SLOW_NS, "in_step_ns", "in this step", U64, SUM, "time of the part in the step")         \
	X(SLOW_MEDIAN, "median_ns", "in the median step", U64, SUM,                                \
	  "time of the part in the reference step, whose wall time is nearest to the median")      \
	X(SLOW_GREW, "grew_ns", "more by", U64, SUM, "in_step_ns - median_ns")                     \
	X(SLOW_WALL, "wall_ns", "wall", U64, MAX, "wall time of the step")                         \
	X(SLOW_MEDIAN_STEP, "median_step", NULL, U64, MAX, "number of the reference step")         \
	X(SLOW_MEDIAN_WALL, "median_wall_ns", "median wall", U64, MAX, "reference step's wall")    \
	X(SLOW_PARTIAL, "partial", NULL, BOOL, MAX, "some steps had too many kernels to keep")
static RANK_TABLE(slow_steps, &table_ranks, SLOW_COLUMNS, .by = "grew_ns");

enum { PARTS_MAX = 1 << 18, SLOW_MAX = 8, GROWN_MAX = 3 };
enum share_of { WHAT_PHASE, WHAT_IDLE, WHAT_KERNEL, WHAT_COUNT };

struct share {                     /* time of a phase, cause or kernel in a step */
	uint32_t process, row, id; /* row: in step_list; the key: members up to `in_gap` */
	uint8_t what;
	bool in_gap; /* between that mark and the next */
	uint64_t ns;
};
enum { SHARE_KEY = offsetof(struct share, in_gap) + 1 };
struct slow {
	struct steps_dropped *dropped; /* by process id */
	struct share *parts;
	size_t count, cap;
	struct hash_index index; /* hash table of `parts` */
	size_t *gpu_row, *event_row,
		*interval_row; /* cursors into step_list: by GPU; by process; by process */
	size_t gpu_count;
	uint32_t process_count;
	bool is_partial;
};

static enum status slow_begin(struct accumulator *f, struct error *err)
{
	struct slow *s = f->state;

	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	TRY(vec_new(&s->event_row, (size_t)s->process_count + 1, err));
	TRY(vec_new(&s->interval_row, (size_t)s->process_count + 1, err));
	return vec_new(&s->dropped, (size_t)s->process_count + 1, err);
}

static void slow_release(struct accumulator *f)
{
	struct slow *s = f->state;

	for (size_t i = 0; s->dropped && i <= s->process_count; i++)
		free(s->dropped[i].rows);
}

/* ---- parts ------------------------------------------------------------------------------ */

static uint64_t part_hash(const struct share *key)
{
	return hash_text((const char *)key, SHARE_KEY);
}

/* Returns NULL if there is none. */
static struct share *part_find(const struct slow *s, const struct share *key)
{
	uint32_t i = hash_find(&s->index, part_hash(key), s->parts, sizeof(*key), key, SHARE_KEY);

	return i == HASH_NONE ? NULL : &s->parts[i];
}

static enum status drop_parts(struct accumulator *f, struct error *err)
{
	struct slow *s = f->state;
	size_t kept = 0;

	for (uint32_t process = 1; process <= s->process_count; process++)
		TRY(steps_drop(&f->steps[process], &s->dropped[process], err));
	hash_clear(&s->index);
	for (size_t i = 0; i < s->count; i++) {
		const struct share *p = &s->parts[i];

		if (steps_is_dropped(&s->dropped[p->process], p->row))
			continue;
		TRY(hash_add(&s->index, part_hash(p), (uint32_t)kept, err));
		s->parts[kept++] = *p;
	}
	/* If many are left, collect no more kernels: each new one would start this search again. */
	s->is_partial = kept > PARTS_MAX / 4;
	s->count = kept;
	return ST_OK;
}

static enum status part_add(struct accumulator *f, const struct share *one, struct error *err)
{
	struct slow *s = f->state;
	size_t most = one->what == WHAT_KERNEL ? PARTS_MAX / 2 : PARTS_MAX;

	if (!one->ns || steps_is_dropped(&s->dropped[one->process], one->row))
		return ST_OK;
	struct share *have = part_find(s, one);
	if (have) {
		have->ns += one->ns;
		return ST_OK;
	}
	if (s->count >= most && !s->is_partial)
		TRY(drop_parts(f, err));
	if (s->count >= most)
		return ST_OK;
	TRY(vec_reserve(&s->parts, &s->cap, s->count + 1, err));
	TRY(hash_add(&s->index, part_hash(one), (uint32_t)s->count, err));
	s->parts[s->count++] = *one;
	return ST_OK;
}

/* ---- events ----------------------------------------------------------------------------- */

static enum status put_kernel(struct accumulator *f, const struct event *e, struct error *err)
{
	struct slow *s = f->state;
	uint32_t process = acc_process(f, e->track);
	const struct step_list *steps = &f->steps[process];
	struct share part = { .ns = e->end_ns - e->begin_ns,
			      .process = process,
			      .id = e->name,
			      .what = WHAT_KERNEL };
	size_t row = steps_at(steps, e->begin_ns, &s->event_row[process]);

	if (row == steps->count)
		return ST_OK;
	part.row = (uint32_t)row;
	part.in_gap = e->begin_ns >= steps->rows[row].mark_end_ns;
	return part_add(f, &part, err);
}

/* Adds an idle segment by wall time, split at the bounds of marks. */
static enum status put_idle(struct accumulator *f, const struct idle_segment *p, struct error *err)
{
	struct slow *s = f->state;
	uint32_t process = sweep_gpu(f->sweep, p->gpu).process;
	const struct step_list *steps = &f->steps[process];
	struct share part = { .process = process, .what = WHAT_IDLE };
	uint64_t at_ns = p->begin_ns, to_ns;

	part.id = p->cause == CAUSE_HOST ? CAUSE_HOST + (uint32_t)p->phase : p->cause;
	if (!steps->count || p->end_ns <= steps->rows[0].begin_ns)
		return ST_OK;
	at_ns = later(at_ns, steps->rows[0].begin_ns);
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
		TRY(part_add(f, &part, err));
	}
	return ST_OK;
}

static enum status slow_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	const struct batch_events *kernels = &w->by[BATCH_KERNELS];
	struct slow *s = f->state;

	TRY(acc_gpus(f, &s->gpu_row, &s->gpu_count, sizeof(*s->gpu_row), err));
	for (size_t i = 0; i < w->in->interval_count; i++) {
		const struct phase_interval *st = &w->in->intervals[i];
		const struct step_list *steps = &f->steps[st->process];
		struct share part = { .ns = st->end_ns - st->begin_ns,
				      .process = st->process,
				      .id = st->phase,
				      .what = WHAT_PHASE,
				      .in_gap = (st->step & STEP_GAP) != 0 };
		size_t row = steps_at(steps, st->begin_ns, &s->interval_row[st->process]);

		part.row = (uint32_t)row;
		TRY(row == steps->count ? ST_OK : part_add(f, &part, err));
	}
	for (size_t i = 0; i < w->idle_count; i++)
		TRY(put_idle(f, &w->idle[i], err));
	for (size_t i = 0; i < kernels->count; i++)
		if (kernels->items[i]->kind == KIND_KERNEL)
			TRY(put_kernel(f, kernels->items[i], err));
	return ST_OK;
}

/* ---- the end ---------------------------------------------------------------------------- */

static uint64_t wall_of(const struct step_row *row)
{
	return row->end_ns - row->begin_ns;
}

struct counted {
	uint64_t wall_ns;
	const struct step_row *row;
	size_t place;
};

/* Returns the counted steps by length, the slowest last, of equal ones the later. NULL: out of
 * memory. */
static struct counted *steps_sorted(const struct step_list *l, size_t *count)
{
	struct counted *steps = calloc(l->count + 1, sizeof(*steps));

	*count = 0;
	for (size_t i = 0; steps && i < l->count; i++)
		if (l->rows[i].is_counted)
			steps[(*count)++] =
				(struct counted){ wall_of(&l->rows[i]), &l->rows[i], i };
	SORT_BY(steps, *count, UP(struct counted, wall_ns), UP(struct counted, place));
	return steps;
}

struct grown {
	uint64_t ns, median_ns;
	uint32_t id;
};

/* Returns the time of a part in a step, and in the gap after it if that belongs to the step. */
static uint64_t part_ns(const struct slow *s, const struct step_list *l, struct share key)
{
	key.in_gap = false;
	const struct share *in_mark = part_find(s, &key);
	key.in_gap = true;
	const struct share *in_gap = l->rows[key.row].joins ? part_find(s, &key) : NULL;
	return (in_mark ? in_mark->ns : 0) + (in_gap ? in_gap->ns : 0);
}

/* Keeps the GROWN_MAX parts that grew most; of equal ones the lower id. */
static void grown_put(struct grown top[GROWN_MAX], struct grown one)
{
	for (size_t i = 0; i < GROWN_MAX; i++) {
		uint64_t by = one.ns - one.median_ns, least = top[i].ns - top[i].median_ns;
		struct grown moved = top[i];

		if (by < least || (by == least && one.id > top[i].id))
			continue;
		top[i] = one;
		one = moved;
	}
}

static const char *part_name(const struct accumulator *f, enum share_of what, uint32_t id,
			     char *text, size_t cap)
{
	if (what == WHAT_KERNEL)
		return trace_text(f->trace, id, NULL);
	if (what == WHAT_PHASE)
		return context_phase(f->context, id).name;
	cause_text(f, id < CAUSE_HOST ? (enum cause)id : CAUSE_HOST,
		   id < CAUSE_HOST ? 0 : id - CAUSE_HOST, text, cap);
	return text;
}

struct compared {
	uint32_t process;
	const struct step_row *step, *median;
};

static enum status put_grown(struct accumulator *f, const struct compared *c, enum share_of what,
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
	TRY(acc_row(f, "slow_steps", c->process, keys, &row, err));
	row[SLOW_NS].u64 += g->ns;
	row[SLOW_MEDIAN].u64 += g->median_ns;
	row[SLOW_GREW].u64 += g->ns - g->median_ns;
	row[SLOW_WALL].u64 = wall_of(c->step);
	row[SLOW_MEDIAN_STEP].u64 = c->median->number;
	row[SLOW_MEDIAN_WALL].u64 = wall_of(c->median);
	row[SLOW_PARTIAL].u64 |= s->is_partial;
	return ST_OK;
}

static enum status explain(struct accumulator *f, const struct compared *c, struct error *err)
{
	struct slow *s = f->state;
	const struct step_list *l = &f->steps[c->process];
	struct grown top[WHAT_COUNT][GROWN_MAX] = { { { 0 } } };
	uint32_t row = (uint32_t)(c->step - l->rows), median = (uint32_t)(c->median - l->rows);

	for (size_t i = 0; i < s->count; i++) {
		struct share key = s->parts[i];
		struct grown one = { .id = key.id };

		if (key.process != c->process || key.row != row)
			continue;
		struct share in_mark = key;
		in_mark.in_gap = false;
		if (key.in_gap && (!l->rows[row].joins || part_find(s, &in_mark)))
			continue; /* already counted with the part in the mark */
		struct share at_median = key;
		at_median.row = median;
		one.ns = part_ns(s, l, key);
		one.median_ns = part_ns(s, l, at_median);
		if (one.ns > one.median_ns)
			grown_put(top[key.what], one);
	}
	for (size_t i = 0; i < WHAT_COUNT; i++)
		for (size_t k = 0; k < GROWN_MAX; k++)
			TRY(put_grown(f, c, (enum share_of)i, &top[i][k], err));
	return ST_OK;
}

static enum status end_process(struct accumulator *f, uint32_t process, struct error *err)
{
	const struct slow *s = f->state;
	struct compared c = { .process = process };
	size_t count;

	RELEASED_BY(vec_release) struct counted *steps = steps_sorted(&f->steps[process], &count);
	if (!steps)
		return fail_memory(err);
	uint64_t best = UINT64_MAX, twice = 0; /* best: distance; twice: 2 x median */
	if (count > 1)
		twice = steps[(count - 1) / 2].wall_ns + steps[count / 2].wall_ns;
	/* Choose the step nearest to the median; of two the later. */
	for (size_t i = 0; i < count && count > 1; i++) {
		uint64_t mine = 2 * steps[i].wall_ns;
		uint64_t off = mine > twice ? mine - twice : twice - mine;

		if (steps_is_dropped(&s->dropped[process], steps[i].place))
			continue;
		if (!c.median || off < best || (off == best && steps[i].row > c.median)) {
			c.median = steps[i].row;
			best = off;
		}
	}
	for (size_t i = 0; c.median && i < SLOW_MAX && i < count; i++) {
		c.step = steps[count - 1 - i].row;
		if (i && 4 * wall_of(c.step) <= 3 * twice)
			break;
		if (c.step != c.median &&
		    !steps_is_dropped(&s->dropped[process],
				      (size_t)(c.step - f->steps[process].rows)))
			TRY(explain(f, &c, err));
	}
	return ST_OK;
}

static enum status slow_end(struct accumulator *f, struct error *err)
{
	struct slow *s = f->state;

	TRY(acc_gpus(f, &s->gpu_row, &s->gpu_count, sizeof(*s->gpu_row), err));
	for (uint32_t process = 1; s->count && process <= s->process_count; process++)
		if (!f->steps[process].is_inferred)
			TRY(end_process(f, process, err));
	return ST_OK;
}

const struct report_type report_slow = {
	.name = "slow",
	.help = "slow steps compared with the median step: which phase, cause and kernel grew",
	.tables = TABLES(&table_slow_steps),
	.state_size = sizeof(struct slow),
	.owned = OWNED(offsetof(struct slow, dropped), offsetof(struct slow, parts),
		       offsetof(struct slow, index.slots), offsetof(struct slow, gpu_row),
		       offsetof(struct slow, event_row), offsetof(struct slow, interval_row)),
	.begin = slow_begin,
	.put = slow_put,
	.end = slow_end,
	.release = slow_release,
};
