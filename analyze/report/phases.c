/* SPDX-License-Identifier: Apache-2.0 */
/* The report `phases`: what the step thread did (DEFINITIONS.md 4), and the GPU time that it
 * launched (5), for complete steps. Which steps these are, and which time between marks belongs to
 * them, is known only at the end, so that time is in a separate list. */
#include "analyze/report/shared.h"
#include "analyze/report/cells.h"

#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#define PHASE_COLUMNS(X)                                                                           \
	X(PHASE_NAME = RANK_KEYS, "name", "phase", TEXT, KEY,                                      \
	  "phase, or annotation that no rule maps to one; other: neither")                         \
	X(PHASE_COUNT, "count", "count", U64, SUM,                                                 \
	  "outermost ranges of the phase that begin in complete steps")                            \
	X(PHASE_WALL, "wall_ns", "wall", U64, SUM,                                                 \
	  "time of the step thread in complete steps, each instant counted once")                  \
	X(PHASE_PCT, "wall_pct", "%", F64, DERIVED, "share of the wall time of complete steps",    \
	  .of = "step time")                                                                       \
	X(PHASE_INCLUSIVE, "inclusive_ns", "inclusive", U64, SUM, "total duration of the ranges")  \
	X(PHASE_AVG, "avg_ns", "average", U64, DERIVED, "inclusive / count")                       \
	X(PHASE_INFERRED, "inferred", "inferred", BOOL, MAX,                                       \
	  "some of the time was inferred from operators and calls, not from a range")              \
	X(PHASE_BUSY, "gpu_busy_ns", "GPU busy", U64, SUM, "GPU time launched in the phase")       \
	X(PHASE_IDLE, "gpu_idle_ns", "GPU idle", U64, SUM, "gaps ended by work of the phase")      \
	X(PHASE_DURING, "gpu_idle_during_ns", "idle meanwhile", U64, SUM,                          \
	  "lead, idle and tail of the GPUs while the step thread was in the phase")
static RANK_TABLE(phases, &table_ranks, PHASE_COLUMNS, .by = "wall_ns");

#define OUTSIDE_COLUMNS(X)                                                                         \
	X(OUTSIDE_NAME = RANK_KEYS, "name", "outside of steps", TEXT, KEY,                         \
	  "phase, or annotation that no rule maps to one; other: neither")                         \
	X(OUTSIDE_WALL, "wall_ns", "wall", U64, SUM,                                               \
	  "time of the step thread in the phase, inside windows and outside steps")
static RANK_TABLE(outside_steps, &table_ranks, OUTSIDE_COLUMNS, .by = "wall_ns", .is_seldom = true);

#define OPERATION_COLUMNS(X)                                                                       \
	X(OPERATION_NAME = RANK_KEYS, "name", NULL, TEXT, KEY, "name of an operator")              \
	X(OPERATION_COUNT, "count", NULL, U64, SUM, "calls that lie in no other operator")         \
	X(OPERATION_NS, "ns", NULL, U64, SUM, "total duration of these calls")
static RANK_TABLE(host_operators, &table_ranks, OPERATION_COLUMNS, .nest = NEST_NEVER);

/* Kinds of steps, by their marks. A step that has not ended may still lose records, so its time and
 * ranges go to MARK_TIME_NOW and MARK_RANGES_NOW until the next step begins, which is earlier for
 * ranges. */
enum mark_kind {
	MARK_GOOD,
	MARK_SETTLING,
	MARK_CUT,
	MARK_ABSENT,
	MARK_TIME_NOW,
	MARK_RANGES_NOW,
	MARK_KINDS
};

struct tally {
	uint64_t wall_ns, inclusive_ns, count;
	bool inferred;
};
struct gap { /* time between mark `row` and the next; with a count: ranges there */
	uint64_t ns, begin_ns;              /* begin of the time, which has no break */
	uint32_t row, count, process, name; /* name 0: use `phase` */
	uint8_t phase;
	bool inferred;
};
struct named {                  /* ranges of an unmapped annotation, or calls of an operator */
	uint32_t process, name; /* name 0: operators after the first NAMES_MAX names */
	bool is_operator;       /* end of the key */
	bool has_now;
	uint32_t next_now; /* index + 1 of the next item with ranges in MARK_RANGES_NOW */
	struct tally kinds[MARK_KINDS];
};
enum { NAMED_KEY = offsetof(struct named, is_operator) + 1, NAMES_MAX = 16384 };
struct process_phases {
	struct tally kinds[MARK_KINDS][SWEEP_PHASES];
	uint64_t beyond_ns[SWEEP_PHASES];     /* time of its steps outside of all windows */
	uint64_t open_until_ns[SWEEP_PHASES]; /* latest end of a range on the step thread */
	uint64_t unmapped_until_ns, operator_until_ns;
	bool has_stream;                /* a GPU works for it, so its operators only launch */
	size_t interval_row, range_row; /* cursors into step_list */
	size_t time_now, ranges_now;    /* rows of MARK_TIME_NOW and MARK_RANGES_NOW */
	size_t window;                  /* first window of the sweep that may overlap a gap */
	uint32_t first_now;             /* of `named`, index + 1 */
};
struct phases {
	struct process_phases *processes; /* by process id */
	struct gap *gaps;
	size_t gap_count, gap_cap;
	struct named *named;
	size_t named_count, named_cap;
	struct hash_index by_name; /* hash table of `named` */
	/* by name, + 1; [1]: for ranges pushed through tacho.h; 0: none */
	uint16_t *phase_of_name[2];
	uint32_t name_count, process_count;
	struct cells cells;
};

static enum status phases_begin(struct accumulator *f, struct error *err)
{
	struct phases *s = f->state;

	s->name_count = trace_count(f->trace, TRACE_NAMES);
	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	TRY(vec_new(&s->processes, (size_t)s->process_count + 1, err));
	for (uint32_t i = 1; i <= trace_count(f->trace, TRACE_TRACKS); i++)
		if (trace_get_track(f->trace, i)->type == TRACK_STREAM)
			s->processes[acc_process(f, i)].has_stream = true;
	TRY(vec_new(&s->phase_of_name[0], (size_t)s->name_count + 1, err));
	return vec_new(&s->phase_of_name[1], (size_t)s->name_count + 1, err);
}

static enum mark_kind kind_of(const struct step_row *row)
{
	if (row->is_out)
		return MARK_ABSENT;
	return row->is_cut ? MARK_CUT : row->is_settling ? MARK_SETTLING : MARK_GOOD;
}

static void tally_add(struct tally *into, const struct tally *from)
{
	into->wall_ns += from->wall_ns;
	into->inclusive_ns += from->inclusive_ns;
	into->count += from->count;
	into->inferred |= from->inferred;
}

static void tally_move(struct tally *into, struct tally *from)
{
	tally_add(into, from);
	*from = (struct tally){ 0 };
}

/* Moves the time of the current step to its kind when the step thread enters another row. */
static void time_reach(const struct accumulator *f, struct process_phases *p,
		       const struct step_list *steps, size_t row)
{
	unsigned phases = context_phase_count(f->context);

	if (row == p->time_now)
		return;
	if (p->time_now < steps->count) {
		enum mark_kind kind = kind_of(&steps->rows[p->time_now]);
		for (unsigned i = 0; i < phases; i++)
			tally_move(&p->kinds[kind][i], &p->kinds[MARK_TIME_NOW][i]);
	}
	p->time_now = row;
}

/* Does the same for the ranges of the current step. */
static void ranges_reach(const struct accumulator *f, struct process_phases *p,
			 const struct step_list *steps, size_t row)
{
	unsigned phases = context_phase_count(f->context);
	struct phases *s = f->state;
	struct named *named;

	if (row == p->ranges_now)
		return;
	if (p->ranges_now < steps->count) {
		enum mark_kind kind = kind_of(&steps->rows[p->ranges_now]);
		for (unsigned i = 0; i < phases; i++)
			tally_move(&p->kinds[kind][i], &p->kinds[MARK_RANGES_NOW][i]);
		for (; p->first_now; p->first_now = named->next_now) {
			named = &s->named[p->first_now - 1];
			tally_move(&named->kinds[kind], &named->kinds[MARK_RANGES_NOW]);
			named->has_now = false;
		}
	}
	p->ranges_now = row;
}

static enum status gap_put(struct phases *s, const struct gap *gap, struct error *err)
{
	struct gap *last = s->gap_count ? &s->gaps[s->gap_count - 1] : NULL;

	if (last && last->row == gap->row && last->process == gap->process &&
	    last->name == gap->name && last->phase == gap->phase && !last->count == !gap->count) {
		last->ns += gap->ns;
		last->count += gap->count;
		last->inferred |= gap->inferred;
		return ST_OK;
	}
	TRY(vec_reserve(&s->gaps, &s->gap_cap, s->gap_count + 1, err));
	s->gaps[s->gap_count++] = *gap;
	return ST_OK;
}

/* ---- time ------------------------------------------------------------------------------- */

static enum status put_interval(struct accumulator *f, const struct phase_interval *st,
				struct error *err)
{
	struct phases *s = f->state;
	struct process_phases *p = &s->processes[st->process];
	const struct step_list *steps = &f->steps[st->process];
	struct tally tally = { .wall_ns = st->end_ns - st->begin_ns, .inferred = st->inferred };
	size_t row = steps_at(steps, st->begin_ns, &p->interval_row);
	struct gap gap = { .ns = tally.wall_ns,
			   .begin_ns = st->begin_ns,
			   .row = (uint32_t)row,
			   .process = st->process,
			   .phase = st->phase,
			   .inferred = tally.inferred };

	if (row == steps->count)
		return ST_OK; /* before the first mark */
	if (st->step & STEP_GAP)
		return gap_put(s, &gap, err);
	time_reach(f, p, steps, row);
	tally_add(&p->kinds[MARK_TIME_NOW][st->phase], &tally);
	return ST_OK;
}

/* ---- ranges ----------------------------------------------------------------------------- */

/* Returns the phase of a range; PHASE_NONE: no rule maps it. */
static unsigned phase_of(struct accumulator *f, const struct event *e)
{
	struct phases *s = f->state;
	bool pushed = e->subkind == RANGE_PHASE;
	const char *name = trace_text(f->trace, e->name, NULL);
	uint16_t *known = NULL;

	if (e->name <= s->name_count) {
		known = &s->phase_of_name[pushed][e->name];
		if (*known)
			return *known - 1u;
	}
	unsigned phase =
		pushed ? name_rules_pushed(f->rules, name) : name_rules_phase(f->rules, name);
	if (known)
		*known = (uint16_t)(phase + 1);
	return phase;
}

/* Returns whether an annotation has a row: the step thread was in it and in no inner one at some
 * time. */
static bool has_row(const struct accumulator *f, const char *name)
{
	unsigned count = context_phase_count(f->context);

	for (unsigned i = name_rules_phase_count(f->rules); i < count; i++)
		if (context_phase(f->context, i).name == name)
			return true;
	return false;
}

/* Finds or adds the item of a name; *out is NULL if there are too many and this one has no row. */
static enum status named_find(struct accumulator *f, uint32_t process, uint32_t name,
			      bool is_operator, struct named **out, struct error *err)
{
	struct phases *s = f->state;
	struct named new = { .process = process, .name = name, .is_operator = is_operator };
	uint64_t hash = hash_word((uint64_t)process << 32 | name, is_operator);
	uint32_t i = hash_find(&s->by_name, hash, s->named, sizeof(new), &new, NAMED_KEY);

	*out = i == HASH_NONE ? NULL : &s->named[i];
	if (*out)
		return ST_OK;
	if (s->named_count >= NAMES_MAX && name && is_operator)
		return named_find(f, process, 0, true, out, err);
	if (s->named_count >= NAMES_MAX && !is_operator &&
	    !has_row(f, trace_text(f->trace, name, NULL)))
		return ST_OK;
	TRY(vec_reserve(&s->named, &s->named_cap, s->named_count + 1, err));
	TRY(hash_add(&s->by_name, hash, (uint32_t)s->named_count, err));
	*out = &s->named[s->named_count++];
	**out = new;
	return ST_OK;
}

/* Returns whether an earlier range of the same phase contains this one, and notes its end. */
static bool is_nested(uint64_t *until_ns, const struct event *e)
{
	bool nested = e->end_ns <= *until_ns && e->begin_ns < *until_ns;

	*until_ns = later(*until_ns, e->end_ns);
	return nested;
}

static enum status put_counted(struct accumulator *f, uint32_t process, const struct event *e,
			       unsigned phase, struct error *err)
{
	struct phases *s = f->state;
	struct process_phases *p = &s->processes[process];
	const struct step_list *steps = &f->steps[process];
	struct tally tally = { .inclusive_ns = e->end_ns - e->begin_ns, .count = 1 };
	size_t row = steps_at(steps, e->begin_ns, &p->range_row);
	struct gap gap = { .ns = tally.inclusive_ns,
			   .row = (uint32_t)row,
			   .count = 1,
			   .process = process,
			   .name = phase == PHASE_NONE ? e->name : 0,
			   .phase = (uint8_t)phase };
	enum mark_kind kind = MARK_ABSENT;
	bool is_operator = e->subkind == RANGE_OP;
	struct named *named;

	if (row < steps->count && e->begin_ns >= steps->rows[row].mark_end_ns)
		return is_operator ? ST_OK : gap_put(s, &gap, err);
	if (row < steps->count) {
		kind = MARK_RANGES_NOW;
		ranges_reach(f, p, steps, row);
	}
	if (phase != PHASE_NONE) {
		tally_add(&p->kinds[kind][phase], &tally);
		return ST_OK;
	}
	TRY(named_find(f, process, e->name, is_operator, &named, err));
	if (named)
		tally_add(&named->kinds[kind], &tally);
	if (named && kind == MARK_RANGES_NOW && !named->has_now) {
		named->has_now = true;
		named->next_now = p->first_now;
		p->first_now = (uint32_t)(named - s->named) + 1;
	}
	return ST_OK;
}

/* Returns whether the stage `context` uses a range for phases and annotations. */
static bool is_annotation(struct accumulator *f, const struct event *e)
{
	if (e->subkind == RANGE_PHASE)
		return true;
	if (e->subkind == RANGE_NVTX && trace_find_attr(f->trace, e->schema, "domain"))
		return false;
	return !context_is_step_name(f->context, e->name);
}

static enum status put_range(struct accumulator *f, const struct event *e, struct error *err)
{
	struct phases *s = f->state;
	uint32_t process = acc_process(f, e->track);
	struct process_phases *p = &s->processes[process];

	if (process > s->process_count || e->track != context_step_thread(f->context, process) ||
	    e->flags & EVENT_BEGAN_EARLIER || !is_annotation(f, e))
		return ST_OK;
	unsigned phase = phase_of(f, e);
	if (is_nested(phase == PHASE_NONE ? &p->unmapped_until_ns : &p->open_until_ns[phase], e))
		return ST_OK;
	return put_counted(f, process, e, phase, err);
}

/* Adds an operator. Autograd's nodes and the engine's events around operators do no work; loading,
 * validation and checkpoints have their own findings. */
static enum status put_operator(struct accumulator *f, const struct event *e, struct error *err)
{
	struct phases *s = f->state;
	uint32_t process = acc_process(f, e->track);
	struct process_phases *p = &s->processes[process];

	if (process > s->process_count || p->has_stream || e->end_ns == e->begin_ns ||
	    e->track != context_step_thread(f->context, process) ||
	    name_is_autograd(trace_text(f->trace, e->name, NULL)) ||
	    is_nested(&p->operator_until_ns, e) || e->phase == PHASE_DATA ||
	    e->phase == PHASE_VALIDATION || e->phase == PHASE_CHECKPOINT)
		return ST_OK;
	return put_counted(f, process, e, PHASE_NONE, err);
}

static enum status phases_put(struct accumulator *f, const struct sorted_batch *w,
			      struct error *err)
{
	struct phases *s = f->state;

	for (size_t i = 0; i < w->in->interval_count; i++)
		TRY(put_interval(f, &w->in->intervals[i], err));
	for (size_t i = 0; i < w->by[BATCH_ANNOTATIONS].count; i++)
		TRY(put_range(f, w->by[BATCH_ANNOTATIONS].items[i], err));
	for (size_t i = 0; i < w->in->count; i++)
		if (w->in->events[i].kind == KIND_RANGE && w->in->events[i].subkind == RANGE_OP)
			TRY(put_operator(f, &w->in->events[i], err));
	return cells_put(f, &s->cells, w->segments, w->segment_count, err);
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Determines the kinds of steps that count; for an inferred step that is everything outside of
 * marks. */
static void counted_kinds(const struct step_list *steps, bool counted[MARK_KINDS])
{
	for (size_t i = 0; i < MARK_KINDS; i++)
		counted[i] = i == MARK_ABSENT && steps->is_inferred;
	for (size_t i = 0; i < steps->count; i++)
		if (steps->rows[i].is_counted && !steps->is_inferred)
			counted[kind_of(&steps->rows[i])] = true;
}

static enum status add_row(struct accumulator *f, uint32_t process, const char *name,
			   const struct tally *tally, union value **row, struct error *err)
{
	union value keys[RANK_KEYS + 1];

	keys[PHASE_NAME].text = name;
	TRY(acc_row(f, "phases", process, keys, row, err));
	(*row)[PHASE_COUNT].u64 += tally->count;
	(*row)[PHASE_WALL].u64 += tally->wall_ns;
	(*row)[PHASE_INCLUSIVE].u64 += tally->inclusive_ns;
	(*row)[PHASE_INFERRED].u64 |= tally->inferred;
	return ST_OK;
}

static uint64_t idle_during(const struct accumulator *f, uint32_t process, unsigned phase)
{
	uint64_t ns = 0;

	for (size_t i = 0; phase < SWEEP_PHASES && i < sweep_gpu_count(f->sweep); i++)
		if (sweep_gpu(f->sweep, i).process == process)
			ns += sweep_gpu(f->sweep, i).during->ns[phase];
	return ns;
}

static enum status end_phase(struct accumulator *f, uint32_t process, unsigned phase,
			     const bool counted[MARK_KINDS], struct error *err)
{
	struct phases *s = f->state;
	struct sweep_process window = sweep_process(f->sweep, process);
	uint64_t ns[CLASS_COUNT], during_ns = idle_during(f, process, phase);
	struct tally sum = { 0 };
	union value *row;

	cells_sum(f, process, phase, ns);
	for (size_t kind = 0; phase < SWEEP_PHASES && kind < MARK_KINDS; kind++)
		if (counted[kind])
			tally_add(&sum, &s->processes[process].kinds[kind][phase]);
	if (phase < SWEEP_PHASES && f->steps[process].is_inferred) {
		sum.wall_ns = window.wall->ns[phase];
		sum.inferred = window.wall->inferred[phase];
	}
	if (!(sum.wall_ns | sum.count | during_ns | ns[0] | ns[1] | ns[2] | ns[3]))
		return ST_OK;
	TRY(add_row(f, process, cells_phase_name(f, phase), &sum, &row, err));
	row[PHASE_BUSY].u64 += ns[CLASS_COMPUTE] + ns[CLASS_COMM] + ns[CLASS_COPY];
	row[PHASE_IDLE].u64 += ns[CLASS_IDLE];
	row[PHASE_DURING].u64 += during_ns;
	return ST_OK;
}

/* Returns the part of a gap in no window. A window ends with its last mark if the next one is
 * filtered out or in another window, but the step reaches to that. Gaps come in time order. */
static uint64_t beyond_windows(const struct accumulator *f, struct process_phases *p,
			       const struct gap *gap)
{
	uint64_t at_ns = gap->begin_ns, end_ns = at_ns + gap->ns, ns = 0;
	const struct sweep_window *all;
	size_t count = sweep_windows(f->sweep, &all);

	while (p->window < count &&
	       (all[p->window].process != gap->process || all[p->window].end_ns <= at_ns))
		p->window++;
	for (size_t i = p->window; i < count && at_ns < end_ns; i++) {
		if (all[i].process != gap->process)
			continue;
		if (all[i].begin_ns >= end_ns)
			break;
		if (all[i].begin_ns > at_ns)
			ns += all[i].begin_ns - at_ns;
		at_ns = later(at_ns, all[i].end_ns);
	}
	return at_ns < end_ns ? ns + end_ns - at_ns : ns;
}

/* Adds the time of a window outside of its steps, such as validation and checkpoints. */
static enum status end_outside(struct accumulator *f, uint32_t process, unsigned phase,
			       struct error *err)
{
	static const enum mark_kind inside[] = { MARK_GOOD, MARK_SETTLING, MARK_CUT };
	const struct phases *s = f->state;
	uint64_t ns = sweep_process(f->sweep, process).wall->ns[phase] +
		      s->processes[process].beyond_ns[phase];
	union value keys[RANK_KEYS + 1], *row;

	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		uint64_t of = s->processes[process].kinds[inside[i]][phase].wall_ns;

		ns -= of < ns ? of : ns;
	}
	if (!ns || f->steps[process].is_inferred)
		return ST_OK;
	keys[OUTSIDE_NAME].text = cells_phase_name(f, phase);
	TRY(acc_row(f, "outside_steps", process, keys, &row, err));
	row[OUTSIDE_WALL].u64 += ns;
	return ST_OK;
}

static enum status end_named(struct accumulator *f, const struct named *named, struct error *err)
{
	const char *name = named->name ? trace_text(f->trace, named->name, NULL) : TABLE_OTHER;
	bool counted[MARK_KINDS];
	struct tally sum = { 0 };
	union value *row, keys[OPERATION_NAME + 1];

	if (!named->is_operator && !has_row(f, name)) /* most names have none */
		return ST_OK;
	counted_kinds(&f->steps[named->process], counted);
	for (size_t kind = 0; kind < MARK_KINDS; kind++)
		if (counted[kind])
			tally_add(&sum, &named->kinds[kind]);
	if (!sum.count)
		return ST_OK;
	if (!named->is_operator)
		return add_row(f, named->process, name, &sum, &row, err);
	keys[OPERATION_NAME].text = name;
	TRY(acc_row(f, "host_operators", named->process, keys, &row, err));
	row[OPERATION_COUNT].u64 += sum.count;
	row[OPERATION_NS].u64 += sum.inclusive_ns;
	return ST_OK;
}

static enum status phases_end(struct accumulator *f, struct error *err)
{
	struct phases *s = f->state;
	bool counted[MARK_KINDS];

	for (uint32_t process = 1; process <= s->process_count; process++) {
		time_reach(f, &s->processes[process], &f->steps[process], SIZE_MAX);
		ranges_reach(f, &s->processes[process], &f->steps[process], SIZE_MAX);
	}
	/* Add gaps that join a counted step to it. */
	struct named *named;
	for (size_t i = 0; i < s->gap_count; i++) {
		const struct gap *gap = &s->gaps[i];
		const struct step_row *row = &f->steps[gap->process].rows[gap->row];
		struct tally tally = { .wall_ns = gap->count ? 0 : gap->ns,
				       .inclusive_ns = gap->count ? gap->ns : 0,
				       .count = gap->count,
				       .inferred = gap->inferred };

		enum mark_kind kind =
			f->steps[gap->process].is_inferred ? MARK_ABSENT : kind_of(row);
		if (!row->joins && kind != MARK_ABSENT)
			continue;
		if (!gap->name) {
			struct process_phases *p = &s->processes[gap->process];

			tally_add(&p->kinds[kind][gap->phase], &tally);
			if (kind != MARK_ABSENT && !gap->count)
				p->beyond_ns[gap->phase] += beyond_windows(f, p, gap);
			continue;
		}
		TRY(named_find(f, gap->process, gap->name, false, &named, err));
		if (named)
			tally_add(&named->kinds[kind], &tally);
	}
	for (uint32_t process = 1; process <= s->process_count; process++) {
		counted_kinds(&f->steps[process], counted);
		for (unsigned i = 0; i < context_phase_count(f->context); i++) {
			TRY(end_phase(f, process, i, counted, err));
			TRY(end_outside(f, process, i, err));
		}
		TRY(end_phase(f, process, PHASE_BEFORE_WINDOW, counted, err));
		TRY(end_phase(f, process, PHASE_UNATTRIBUTED, counted, err));
	}
	for (size_t i = 0; i < s->named_count; i++)
		TRY(end_named(f, &s->named[i], err));
	return cells_end(f, &s->cells, err);
}

static enum status phases_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "phases"), *ranks = tables_find(all, "ranks");
	size_t wall = table_column(ranks, "complete_wall_ns");
	union value *rank;

	for (size_t i = 0; i < table_count(t); i++) {
		union value *row = table_at(t, i);
		TRY(table_have(ranks, row, &rank, err));
		row[PHASE_PCT].f64 = percent_of(row[PHASE_WALL].u64, rank[wall].u64);
		if (row[PHASE_COUNT].u64)
			row[PHASE_AVG].u64 = row[PHASE_INCLUSIVE].u64 / row[PHASE_COUNT].u64;
	}
	return ST_OK;
}

const struct report_type report_phases = {
	.name = "phases",
	.help = "what the step thread did, and the GPU time launched in each phase",
	.tables = TABLES(&table_phases, &table_outside_steps, &table_cells, &table_host_operators),
	.with = REPORTS(&report_actions),
	.state_size = sizeof(struct phases),
	.owned = OWNED(offsetof(struct phases, processes), offsetof(struct phases, gaps),
		       offsetof(struct phases, named), offsetof(struct phases, by_name.slots),
		       offsetof(struct phases, phase_of_name[0]),
		       offsetof(struct phases, phase_of_name[1]),
		       offsetof(struct phases, cells.outside), offsetof(struct phases, cells.gaps)),
	.begin = phases_begin,
	.put = phases_put,
	.end = phases_end,
	.finish = phases_finish,
};
