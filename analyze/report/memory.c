/* SPDX-License-Identifier: Apache-2.0 */
/* The report `memory` (DEFINITIONS.md 8): peaks and their owners, least and most of each step,
 * growth. A process has a level for each device and source of figures (`what`): the framework's
 * allocator, CUDA, samples. */
#include "analyze/report/gauge.h"
#include "analyze/report/shared.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAK_STEPS = 20, GAUGES_MAX = 4096 };

#define MEMORY_COLUMNS(X)                                                                          \
	X(MEM_ABSOLUTE = MEM_WHAT + 1, "absolute", NULL, BOOL, MIN,                                \
	  "false: levels count from the begin of the window, without earlier allocations")         \
	X(MEM_SAMPLES, "samples", "samples", U64, SUM, "number of recorded levels")                \
	X(MEM_PEAK, "peak_bytes", "peak bytes", U64, MAX, "highest level of memory")               \
	X(MEM_PEAK_STEP, "peak_step", "at step", U64, DERIVED,                                     \
	  "step in which the peak was first reached")                                              \
	X(MEM_PEAK_PHASE, "peak_phase", "in phase", TEXT, DERIVED,                                 \
	  "phase in which the peak was first reached")                                             \
	X(MEM_RESERVED, "reserved_bytes", "reserved bytes", U64, MAX,                              \
	  "most memory reserved by the allocator; null: unknown")                                  \
	X(MEM_TOTAL, "total_bytes", "total bytes", U64, MAX,                                       \
	  "memory of the device; null: not recorded")                                              \
	X(MEM_SLOPE, "slope_bytes_per_step", "growth a step", F64, DERIVED,                        \
	  "growth by least squares over the lowest level of each step, without settling steps")    \
	X(MEM_SLOPE_ERROR, "slope_error_bytes", NULL, F64, DERIVED,                                \
	  "standard error of the growth, with the lag-1 correlation of the residuals")             \
	X(MEM_LEAK, "leak", "leak", BOOL, DERIVED,                                                 \
	  "growth is over 3 standard errors and 1 % of the peak; null: under 20 steps")            \
	X(MEM_SPIKES, "spikes", "spikes", U64, DERIVED,                                            \
	  "steps whose highest level is over 1.2 times that of the median step")
static MEMORY_TABLE(memory, &table_ranks, MEMORY_COLUMNS, .null_texts = "peak_phase");

#define MEMORY_STEP_COLUMNS(X)                                                                     \
	X(MSTEP_NUMBER = MEM_WHAT + 1, "step", "step", U64, KEY, "number of the step")             \
	X(MSTEP_BEGIN, "begin_ns", NULL, U64, KEY, "begin of the step since the Unix epoch")       \
	X(MSTEP_MIN, "min_bytes", "least bytes", U64, MIN, "lowest level in the step")             \
	X(MSTEP_MAX, "max_bytes", "most bytes", U64, MAX, "highest level in the step")             \
	X(MSTEP_COUNTED, "counted", NULL, BOOL, MAX, "complete and not settling: used for growth") \
	X(MSTEP_STEPS, "steps", NULL, U64, SUM,                                                    \
	  "steps that the row covers, from this one on; more than one in a long run")
static MEMORY_TABLE(memory_steps, &table_memory, MEMORY_STEP_COLUMNS, .member = "steps",
		    .since = "begin_ns");

#define MEMORY_PEAK_COLUMNS(X)                                                                     \
	X(MPEAK_BYTES = MEM_WHAT + 1, "bytes", "bytes", U64, KEY, "highest level of an input")     \
	X(MPEAK_NS, "at_ns", NULL, U64, KEY, "time of the peak since the Unix epoch")              \
	X(MPEAK_STEP, "step", "step", U64, MAX, "step of the peak")                                \
	X(MPEAK_PHASE, "phase", "phase", TEXT, MAX, "phase of the peak")                           \
	X(MPEAK_RESERVED, "reserved_bytes", "reserved bytes", U64, MAX,                            \
	  "bytes reserved at the peak; null: the allocator did not report them")
MEMORY_TABLE(memory_peaks, &table_memory, MEMORY_PEAK_COLUMNS, .member = "peaks", .by = "bytes",
	     .null_texts = "phase");

#define MEMORY_CURVE_COLUMNS(X)                                                                    \
	X(MCURVE_BEGIN = MEM_WHAT + 1, "begin_ns", NULL, U64, KEY,                                 \
	  "begin of the curve's first part since the Unix epoch")                                  \
	X(MCURVE_WIDTH, "width_ns", NULL, U64, MAX, "duration of a part of the curve")             \
	X(MCURVE_POINTS, "points", NULL, TEXT, MAX, "highest bytes of each part")
static MEMORY_TABLE(memory_curves, &table_memory, MEMORY_CURVE_COLUMNS, .member = "curves",
		    .nest = NEST_NEVER, .is_picture = true);

static const char *const whats[] = { "allocator", "cuda", "pinned", "in_use" };
enum what { WHAT_ALLOCATOR, WHAT_CUDA, WHAT_PINNED, WHAT_IN_USE, WHATS };

struct place { /* a gauge and what it measures */
	uint32_t process, device;
	enum what what;
	bool absolute;
	struct gauge gauge;
};
enum total { TOTAL_ALLOCATED, TOTAL_RESERVED, TOTALS };
struct memory {
	struct place **places;
	size_t count, place_cap;
	size_t *step_row;                /* by process id: cursor into step_list */
	uint32_t *place_of_track[WHATS]; /* index + 1 */
	uint8_t *kind_of_schema;         /* cache by schema: 0: none, else 1 + enum what */
	uint32_t track_count, process_count, schema_count;
	uint32_t totals[TOTALS], names[2]; /* interned keys of totals and names of counters */
	uint32_t totals_of;                /* schema for which totals_at holds; NO_ID: none */
	uint32_t totals_at[TOTALS];        /* index among the arguments; NO_ID: missing */
};

static uint32_t name_of(const struct accumulator *f, const char *name)
{
	return trace_find_name(f->trace, name, strlen(name));
}

static enum status memory_begin(struct accumulator *f, struct error *err)
{
	struct memory *m = f->state;

	m->process_count = trace_count(f->trace, TRACE_PROCESSES);
	m->track_count = trace_count(f->trace, TRACE_TRACKS);
	m->schema_count = trace_count(f->trace, TRACE_SCHEMAS);
	TRY(vec_new(&m->kind_of_schema, (size_t)m->schema_count + 1, err));
	TRY(vec_new(&m->step_row, (size_t)m->process_count + 1, err));
	for (size_t i = 0; i < WHATS; i++)
		TRY(vec_new(&m->place_of_track[i], (size_t)m->track_count + 1, err));
	m->totals_of = NO_ID;
	m->totals[0] = name_of(f, "total_allocated");
	m->totals[1] = name_of(f, "total_reserved");
	m->names[0] = name_of(f, "bytes_in_use");
	m->names[1] = name_of(f, "peak_bytes_in_use");
	return ST_OK;
}

static void memory_release(struct accumulator *f)
{
	struct memory *m = f->state;

	for (size_t i = 0; i < m->count; i++) {
		gauge_release(&m->places[i]->gauge);
		free(m->places[i]);
	}
	for (size_t i = 0; i < WHATS; i++)
		free(m->place_of_track[i]);
}

/* ---- level of an event ----------------------------------------------------------------- */

static enum status place_find(struct accumulator *f, uint32_t process, uint32_t device,
			      enum what what, uint32_t *index, struct error *err)
{
	struct memory *m = f->state;

	for (size_t i = 0; i < m->count; i++) {
		const struct place *p = m->places[i];

		if (p->process == process && p->device == device && p->what == what) {
			*index = (uint32_t)i + 1;
			return ST_OK;
		}
	}
	if (m->count == GAUGES_MAX)
		return fail(err, ST_CEILING, NOWHERE, "more than %d devices and kinds of memory",
			    GAUGES_MAX);
	TRY(vec_reserve(&m->places, &m->place_cap, m->count + 1, err));
	struct place *new;
	TRY(vec_new(&new, 1, err));
	*new = (struct place){ .process = process, .device = device, .what = what };
	new->gauge.curve_ns = f->pictures == PICTURES_FINE ? 1000 : 0;
	m->places[m->count] = new;
	*index = (uint32_t)++m->count;
	return ST_OK;
}

/* Classifies by CUPTI's kinds of memory: 1 is pageable and 2 pinned; others are on the device or
 * managed. */
static enum what what_of_schema(const struct accumulator *f, uint32_t schema)
{
	const struct memory *m = f->state;

	if (schema <= m->schema_count && m->kind_of_schema[schema])
		return (enum what)(m->kind_of_schema[schema] - 1);
	const struct attr *kind = trace_find_attr(f->trace, schema, "memory_kind");
	enum what what = !kind ? WHAT_ALLOCATOR : WHAT_CUDA;
	if (kind && (kind->bits == 1 || kind->bits == 2))
		what = WHAT_PINNED;
	if (schema <= m->schema_count)
		m->kind_of_schema[schema] = (uint8_t)(what + 1);
	return what;
}

/* ---- levels ----------------------------------------------------------------------------- */

static bool total_take(const struct accumulator *f, const struct event *e, enum total which,
		       uint64_t *number)
{
	struct memory *m = f->state;

	if (e->args && e->schema != m->totals_of) {
		/* Find the totals among the arguments of this schema. */
		const struct arg_schema *s = trace_get_schema(f->trace, e->schema);
		uint32_t i;
		m->totals_of = e->schema;
		for (size_t k = 0; k < TOTALS; k++) {
			for (i = 0; i < s->arg_count && s->args[i].key != m->totals[k]; i++)
				;
			m->totals_at[k] = i < s->arg_count && m->totals[k] &&
							  (s->args[i].type == ATTR_U64 ||
							   s->args[i].type == ATTR_I64)
						  ? i
						  : NO_ID;
		}
	}
	if (!e->args || m->totals_at[which] == NO_ID)
		return false;
	*number = e->args[m->totals_at[which]];
	return true;
}

static struct gauge_at at_of(struct accumulator *f, const struct event *e, uint32_t process)
{
	struct memory *m = f->state;
	const struct step_list *steps = &f->steps[process];
	size_t row = steps_at(steps, e->begin_ns, &m->step_row[process]);

	return (struct gauge_at){ .at_ns = e->begin_ns,
				  .step_row = row,
				  .phase = e->phase,
				  .has_step = row < steps->count };
}

static enum status put_sample(struct accumulator *f, const struct event *e, struct place *p,
			      struct error *err)
{
	struct memory *m = f->state;
	struct gauge_at at = at_of(f, e, p->process);
	double value = e->value;
	uint64_t bytes = value >= 0 && value < 0x1p63 ? (uint64_t)value : 0;

	p->absolute = true;
	if (trace_get_track(f->trace, e->track)->name == m->names[0])
		return gauge_put(&p->gauge, bytes, &at, err);
	/* a peak before this instant that no sample shows */
	if (p->gauge.samples && bytes > p->gauge.peak.bytes)
		p->gauge.peak = (struct gauge_peak){ .bytes = bytes,
						     .at_ns = at.at_ns,
						     .step_row = at.step_row,
						     .has_step = at.has_step };
	return ST_OK;
}

static enum status put_pool(struct accumulator *f, const struct event *e, struct place *p,
			    struct error *err)
{
	struct gauge_at at = at_of(f, e, p->process);
	struct gauge *g = &p->gauge;
	/* memory snapshots have the functions that allocated it */
	const struct attr *where = trace_find_attr(f->trace, e->schema, "where");
	uint64_t bytes;

	gauge_enter(g, &at);
	if (e->bytes > (uint64_t)1 << 62)
		return ST_OK;
	total_take(f, e, TOTAL_RESERVED, &g->reserved_bytes);
	if (e->kind == KIND_ALLOC && e->address)
		TRY(gauge_take(g, e->address, e->bytes, where ? 0 : e->path,
			       where ? (uint32_t)where->bits : trace_owner(f->trace, e->path),
			       err));
	else if (e->kind == KIND_FREE)
		gauge_give(g, e->address);
	if (total_take(f, e, TOTAL_ALLOCATED, &bytes)) {
		p->absolute = true;
		g->sum_bytes = (int64_t)bytes;
	} else {
		/* Without a total, add changes to the level before, starting at 0. */
		g->sum_bytes += e->kind == KIND_ALLOC ? (int64_t)e->bytes : -(int64_t)e->bytes;
		if (g->sum_bytes < 0)
			g->sum_bytes = 0; /* memory allocated before the window was freed */
		bytes = (uint64_t)g->sum_bytes;
	}
	return gauge_put(g, bytes, &at, err);
}

static enum status memory_put(struct accumulator *f, const struct sorted_batch *w,
			      struct error *err)
{
	struct memory *m = f->state;

	for (size_t i = 0; i < w->by[BATCH_MEMORY].count; i++) {
		const struct event *e = w->by[BATCH_MEMORY].items[i];
		const struct track *k = trace_get_track(f->trace, e->track);
		bool is_sample = e->kind == KIND_COUNTER;
		enum what what = is_sample ? WHAT_IN_USE : what_of_schema(f, e->schema);

		if (is_sample && (!k->name || (k->name != m->names[0] && k->name != m->names[1])))
			continue; /* another counter */
		if (e->track > m->track_count || !acc_wants(f, k->process))
			continue;
		uint32_t *index = &m->place_of_track[what][e->track];
		if (!*index)
			TRY(place_find(f, k->process, what == WHAT_PINNED ? NO_ID : k->device, what,
				       index, err));
		TRY((is_sample ? put_sample : put_pool)(f, e, m->places[*index - 1], err));
	}
	return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------------- */

static uint64_t device_total(const struct accumulator *f, const struct place *p)
{
	static const char *const keys[] = { "totalGlobalMem", "memory_size" };
	const struct device *d;
	uint64_t bytes = 0;

	if (p->device == NO_ID)
		return 0;
	d = trace_get_device(f->trace, trace_find_device(f->trace, p->process, p->device));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !bytes; i++)
		bytes = trace_attr_number(f->trace, d->schema, keys[i]);
	return bytes;
}

static enum status end_peak(struct accumulator *f, struct place *p, union value *keys,
			    struct error *err)
{
	const struct gauge_peak *peak = &p->gauge.peak;
	const struct step_list *steps = &f->steps[p->process];
	union value *row;

	keys[MPEAK_BYTES].u64 = peak->bytes;
	keys[MPEAK_NS].u64 = peak->at_ns;
	TRY(acc_row(f, "memory_peaks", p->process, keys, &row, err));
	row[MPEAK_STEP].u64 = NO_U64;
	if (peak->has_step && !steps->is_inferred)
		row[MPEAK_STEP].u64 = steps->rows[peak->step_row].number;
	row[MPEAK_RESERVED].u64 = peak->reserved_bytes;
	if (p->what != WHAT_IN_USE)
		TRY(acc_text(f, "memory_peaks", &row[MPEAK_PHASE],
			     context_phase(f->context, peak->phase).name, err));
	return memory_owners_end(f, &p->gauge, p->process, p->what != WHAT_IN_USE, keys, err);
}

static enum status end_steps(struct accumulator *f, const struct place *p, union value *keys,
			     struct error *err)
{
	const struct step_list *steps = &f->steps[p->process];
	const struct gauge *g = &p->gauge;
	union value *row = NULL;

	for (size_t i = 0; i < g->step_count && i < steps->count; i++) {
		const struct gauge_step *level = steps->is_inferred ? &g->all : &g->steps[i];

		if (level->min_bytes > level->max_bytes || steps->rows[i].is_out)
			continue;
		/* In a long run a row covers all steps up to the next step with a row. */
		if (!row || (steps->rows[i].is_kept && !steps->rows[i].is_extra)) {
			keys[MSTEP_NUMBER].u64 = steps->rows[i].number;
			keys[MSTEP_BEGIN].u64 = steps->rows[i].begin_ns;
			TRY(acc_row(f, "memory_steps", p->process, keys, &row, err));
		}
		row[MSTEP_STEPS].u64++;
		row[MSTEP_MIN].u64 = earlier(row[MSTEP_MIN].u64, level->min_bytes);
		row[MSTEP_MAX].u64 = later(row[MSTEP_MAX].u64, level->max_bytes);
		row[MSTEP_COUNTED].u64 |= steps->rows[i].is_counted && !steps->is_inferred;
	}
	return ST_OK;
}

static enum status end_curve(struct accumulator *f, const struct place *p, union value *keys,
			     struct error *err)
{
	char points[GAUGE_CURVE * 21 + 1];
	const struct gauge *g = &p->gauge;
	union value *row;
	size_t len = 0;

	if (!g->curve_ns)
		return ST_OK;
	for (size_t i = 0; i < g->curve_count; i++)
		len += (size_t)snprintf(points + len, sizeof(points) - len, "%llu ",
					(unsigned long long)g->curve[i]);
	keys[MCURVE_BEGIN].u64 = g->first_ns;
	TRY(acc_row(f, "memory_curves", p->process, keys, &row, err));
	row[MCURVE_WIDTH].u64 = g->curve_ns;
	return acc_text(f, "memory_curves", &row[MCURVE_POINTS], points, err);
}

static enum status memory_end(struct accumulator *f, struct error *err)
{
	struct memory *m = f->state;

	for (size_t i = 0; i < m->count; i++) {
		struct place *p = m->places[i];
		union value keys[MEMORY_OWNER_KEYS], *row;
		uint64_t total_bytes = device_total(f, p);

		if (!p->gauge.samples)
			continue;
		keys[MEM_DEVICE].u64 = p->device == NO_ID ? NO_U64 : p->device;
		keys[MEM_WHAT].text = whats[p->what];
		TRY(acc_row(f, "memory", p->process, keys, &row, err));
		if (row[MEM_ABSOLUTE].u64 == NO_U64 || !p->absolute)
			row[MEM_ABSOLUTE].u64 = p->absolute;
		row[MEM_SAMPLES].u64 += p->gauge.samples;
		cell_raise(&row[MEM_PEAK], p->gauge.peak.bytes);
		cell_raise(&row[MEM_RESERVED], p->gauge.most_reserved_bytes);
		cell_raise(&row[MEM_TOTAL], total_bytes);
		TRY(gauge_end(&p->gauge, f->steps[p->process].count, err));
		TRY(end_steps(f, p, keys, err));
		TRY(end_curve(f, p, keys, err));
		TRY(end_peak(f, p, keys, err));
	}
	return ST_OK;
}

/* ---- growth ----------------------------------------------------------------------------- */

/* Computes the growth of `row` from its child rows [first, end) of `steps`. */
static enum status finish_growth(struct table *steps, size_t first, size_t end, union value *row,
				 struct error *err)
{
	struct growth_step *counted;
	size_t n = 0;
	double of_row = 0; /* steps per row */

	TRY(vec_new(&counted, end - first, err));
	for (; first < end; first++) {
		const union value *step = table_at(steps, first);

		if (step[MSTEP_COUNTED].u64 != 1)
			continue;
		counted[n++] = (struct growth_step){ step[MSTEP_BEGIN].u64, step[MSTEP_MIN].u64,
						     step[MSTEP_MAX].u64 };
		of_row += (double)step[MSTEP_STEPS].u64;
	}
	struct growth fit = growth_fit(counted, n);
	free(counted);
	of_row = n ? of_row / (double)n : 1;
	row[MEM_SLOPE].f64 = n > 2 ? fit.slope / of_row : NAN;
	row[MEM_SLOPE_ERROR].f64 = n > 2 ? fit.error / of_row : NAN;
	row[MEM_SPIKES].u64 = fit.spikes;
	row[MEM_LEAK].u64 =
		n < LEAK_STEPS ? NO_U64
			       : fit.slope > 3 * fit.error &&
					 fit.slope * (double)n > 0.01 * (double)row[MEM_PEAK].u64;
	return ST_OK;
}

static bool is_below(const union value *row, const union value *parent)
{
	return row && !memcmp(row, parent, (MEM_WHAT + 1) * sizeof(*row));
}

/* Sets a MAX cell that is still 0 to null. These amounts are never 0 if a file contains them. */
static void null_if_nothing(union value *cell)
{
	if (!cell->u64)
		cell->u64 = NO_U64;
}

static enum status memory_finish(struct tables *all, struct error *err)
{
	struct table *memory = tables_find(all, "memory");
	struct table *steps = tables_find(all, "memory_steps");
	struct table *peaks = tables_find(all, "memory_peaks");
	size_t step = 0, peak = 0;
	union value *row;

	for (size_t i = 0; (row = table_at(memory, i)); i++) {
		null_if_nothing(&row[MEM_RESERVED]);
		null_if_nothing(&row[MEM_TOTAL]);
		size_t first = step;
		while (is_below(table_at(steps, step), row))
			step++;
		TRY(finish_growth(steps, first, step, row, err));
		/* sorted by keys: the highest peak is the last */
		for (; is_below(table_at(peaks, peak), row); peak++) {
			row[MEM_PEAK_STEP].u64 = table_at(peaks, peak)[MPEAK_STEP].u64;
			row[MEM_PEAK_PHASE].text = table_at(peaks, peak)[MPEAK_PHASE].text;
			null_if_nothing(&table_at(peaks, peak)[MPEAK_RESERVED]);
		}
	}
	memory_owners_finish(all);
	return ST_OK;
}

const struct report_type report_memory = {
	.name = "memory",
	.help = "peak memory and its owners, memory by step, growth",
	.tables = TABLES(&table_memory, &table_memory_steps, &table_memory_peaks,
			 &table_memory_owners, &table_memory_paths, &table_memory_curves),
	.state_size = sizeof(struct memory),
	.owned = OWNED(offsetof(struct memory, places), offsetof(struct memory, step_row),
		       offsetof(struct memory, kind_of_schema)),
	.begin = memory_begin,
	.put = memory_put,
	.end = memory_end,
	.release = memory_release,
	.finish = memory_finish,
};
