/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/cells.h"

#include "schemas/base/vec.h"

#define CELL_COLUMNS(X)                                                                            \
	X(CELL_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY,                                      \
	  "the device's number in its process")                                                    \
	X(CELL_STEP, "step", "step", U64, KEY,                                                     \
	  "step of the launch; null: outside any step, unknown, or summed over steps")             \
	X(CELL_PHASE, "phase", "phase", TEXT, KEY,                                                 \
	  "phase of the launch; before_window and unattributed: the launch is missing")            \
	X(CELL_FIRST_NS, "compute_ns", "compute", U64, SUM, "compute time of work of the cell")    \
	X(CELL_EXPOSED_COMM, "exposed_comm_ns", "exposed comm", U64, SUM,                          \
	  "exposed communication time of work of the cell")                                        \
	X(CELL_EXPOSED_COPY, "exposed_copy_ns", "exposed copy", U64, SUM,                          \
	  "exposed copy time of work of the cell")                                                 \
	X(CELL_IDLE, "idle_ns", "idle", U64, SUM, "idle gaps that work of the cell ended")
RANK_TABLE(cells, &table_ranks, CELL_COLUMNS);

const char *cells_phase_name(const struct accumulator *f, unsigned phase)
{
	if (phase == PHASE_BEFORE_WINDOW)
		return "before_window";
	if (phase == PHASE_UNATTRIBUTED)
		return "unattributed";
	return context_phase(f->context, phase).name;
}

static enum status row_find(struct accumulator *f, const struct gap_cell *of, union value **row,
			    struct error *err)
{
	union value keys[RANK_KEYS + 3];

	keys[CELL_STEP].u64 = of->step && f->per_step ? of->step - 1 : NO_U64;
	keys[CELL_PHASE].text = cells_phase_name(f, of->phase);
	return acc_gpu_row(f, "cells", of->gpu, keys, row, err);
}

static bool same_cell(const struct gap_cell *a, const struct gap_cell *b)
{
	return a->gpu == b->gpu && a->step == b->step && a->phase == b->phase && a->row == b->row;
}

/* Returns whether a step gets its own cells: in long runs only steps close to the first one. */
static bool is_near(struct cells *c, uint32_t step)
{
	step &= ~STEP_GAP;
	if (!c->first_step)
		c->first_step = step;
	return step < c->first_step ? c->first_step - step <= STEPS_KEPT
				    : step - c->first_step < STEPS_KEPT;
}

static enum status per_step_put(struct accumulator *f, struct cells *c, const struct segment *seg,
				struct error *err)
{
	struct gap_cell key = { .gpu = seg->gpu, .phase = segment_phase(seg) };
	uint64_t ns = seg->end_ns - seg->begin_ns;

	if (key.phase < SWEEP_PHASES)
		key.step = seg->step;
	if (!key.step || !is_near(c, key.step)) {
		c->outside[seg->gpu].ns[key.phase][owner_class(seg->busy)] += ns;
		return ST_OK;
	}
	if (key.step & STEP_GAP) {
		/* Numbers of steps may repeat, so use the row of the mark before the launch. */
		const struct step_list *steps = &f->steps[sweep_gpu(f->sweep, seg->gpu).process];
		size_t at = steps_begun(steps, seg->launch_begin_ns);

		key.row = at < steps->count && steps->rows[at].number == (seg->step & ~STEP_GAP) - 1
				  ? at + 1
				  : 0;
		enum gpu_class class = owner_class(seg->busy);
		if (c->gap_count && same_cell(&c->gaps[c->gap_count - 1], &key)) {
			c->gaps[c->gap_count - 1].ns[class] += ns;
			return ST_OK;
		}
		TRY(vec_reserve(&c->gaps, &c->gap_cap, c->gap_count + 1, err));
		c->gaps[c->gap_count] = key;
		c->gaps[c->gap_count++].ns[class] += ns;
		return ST_OK;
	}
	if (!c->row || !same_cell(&c->row_key, &key)) {
		TRY(row_find(f, &key, &c->row, err));
		c->row_key = key;
	}
	c->row[CELL_FIRST_NS + owner_class(seg->busy)].u64 += ns;
	return ST_OK;
}

enum status cells_put(struct accumulator *f, struct cells *c, const struct segment *segments,
		      size_t count, struct error *err)
{
	if (!f->per_step)
		return ST_OK;
	TRY(acc_gpus(f, &c->outside, &c->gpu_count, sizeof(*c->outside), err));
	for (size_t i = 0; i < count; i++)
		if (segments[i].part == PART_SPAN)
			TRY(per_step_put(f, c, &segments[i], err));
	return ST_OK;
}

static void time_add(const struct gpu_time *t, unsigned phase, uint64_t ns[CLASS_COUNT])
{
	for (unsigned busy = 0; busy < BUSY_MASKS; busy++)
		ns[owner_class(busy)] += t->span_ns[phase][busy];
}

static void row_add(union value *row, const uint64_t ns[CLASS_COUNT])
{
	for (size_t i = 0; i < CLASS_COUNT; i++)
		row[CELL_FIRST_NS + i].u64 += ns[i];
}

enum status cells_end(struct accumulator *f, struct cells *c, struct error *err)
{
	if (f->per_step) {
		/* Decide for work launched between two marks whether it belongs to the step before
		 * or to none. */
		union value *row;
		for (size_t i = 0; i < c->gap_count; i++) {
			struct gap_cell *gap = &c->gaps[i];
			const struct step_list *steps =
				&f->steps[sweep_gpu(f->sweep, gap->gpu).process];

			gap->step &= ~STEP_GAP;
			size_t at = gap->row ? gap->row - 1 : steps_find(steps, gap->step - 1);
			if (at == steps->count || !steps->rows[at].joins)
				/* step 0 if steps are inferred, or none */
				gap->step = steps->is_inferred;
			TRY(row_find(f, gap, &row, err));
			row_add(row, gap->ns);
		}
	}
	/* Add the work without a step. If no step is marked, the window is step 0. */
	size_t gpus = f->per_step ? c->gpu_count : sweep_gpu_count(f->sweep);
	struct gap_cell key = { 0 };
	union value *row;
	for (key.gpu = 0; key.gpu < gpus; key.gpu++) {
		struct sweep_gpu g = sweep_gpu(f->sweep, key.gpu);

		for (key.phase = 0; key.phase < CELL_PHASES; key.phase++) {
			uint64_t sums[CLASS_COUNT] = { 0 };
			const uint64_t *ns = sums;

			if (f->per_step)
				ns = c->outside[key.gpu].ns[key.phase];
			else
				time_add(g.time, key.phase, sums);
			if (!(ns[0] | ns[1] | ns[2] | ns[3]))
				continue;
			key.step = f->steps[g.process].is_inferred && key.phase < SWEEP_PHASES;
			TRY(row_find(f, &key, &row, err));
			row_add(row, ns);
		}
	}
	return ST_OK;
}

void cells_sum(const struct accumulator *f, uint32_t process, unsigned phase,
	       uint64_t ns[CLASS_COUNT])
{
	memset(ns, 0, CLASS_COUNT * sizeof(*ns));
	for (size_t gpu = 0; gpu < sweep_gpu_count(f->sweep); gpu++)
		if (sweep_gpu(f->sweep, gpu).process == process)
			time_add(sweep_gpu(f->sweep, gpu).time, phase, ns);
}
