/* SPDX-License-Identifier: Apache-2.0 */
/* The report `roofline`: how close operators and steps come to the peaks of their GPU
 * (DEFINITIONS.md 8). */
#include "analyze/report/roofline/roofline.h"

#include "analyze/report/report_list.h"

#include <math.h>

#define ROOFLINE_COLUMNS(X)                                                                        \
	X(ROOFLINE_NAME = RANK_KEYS, "name", "operator", TEXT, KEY,                                \
	  "outermost operator with a model, or an operator or kernel without one")                 \
	X(ROOFLINE_SHAPES, "shapes", "shapes", TEXT, KEY,                                          \
	  "shapes of its inputs, JSON as in the file; null: it has no model")                      \
	X(ROOFLINE_TYPES, "types", NULL, TEXT, KEY, "types of its inputs, JSON; null: no model")   \
	X(ROOFLINE_FAMILY, "family", NULL, TEXT, MAX, "family of its model; null: no model")       \
	X(ROOFLINE_NUMBER, "number", NULL, TEXT, MAX, "number type whose peak is used")            \
	X(ROOFLINE_CALLS, "calls", NULL, U64, SUM, "calls with GPU work; nested ones count once")  \
	X(ROOFLINE_GPU, "gpu_ns", "GPU", U64, SUM, "GPU time of the calls")                        \
	COST_COLUMNS(X, ROOFLINE, ROOFLINE_GPU + 1)                                                \
	X(ROOFLINE_SAVES, "saves_ns", "above bound", U64, DERIVED, "GPU time - time at the bound") \
	X(ROOFLINE_REASON, "reason", "reason", TEXT, MAX,                                          \
	  "why it is far from its bound, by its shapes, types or kernels; null: unknown")
static RANK_TABLE(roofline, &table_ranks, ROOFLINE_COLUMNS, .by = "gpu_ns",
		  .null_texts = "shapes types family number bound reason");

#define MFU_COLUMNS(X)                                                                             \
	X(MFU_STEP = RANK_KEYS, "step", "step", U64, KEY,                                          \
	  "number of the step; null: all counted steps, or a phase")                               \
	X(MFU_PHASE, "phase", "phase", TEXT, KEY, "phase of the launches; null: all phases")       \
	X(MFU_FLOPS, "model_flops", "model FLOPs", U64, SUM,                                       \
	  "FLOPs of matrix products, convolutions and attention, without recomputation")           \
	X(MFU_HARDWARE, "hardware_flops", "hardware FLOPs", U64, SUM,                              \
	  "model FLOPs and those that activation checkpointing recomputes")                        \
	X(MFU_MODEL_PS, "model_ps", NULL, U64, SUM, "picoseconds of model FLOPs at their peaks")   \
	X(MFU_HARDWARE_PS, "hardware_ps", NULL, U64, SUM,                                          \
	  "picoseconds of hardware FLOPs at their peaks")                                          \
	X(MFU_TIME, "time_ns", "time", U64, SUM, "steps: wall time x GPUs; phase: its GPU work")   \
	X(MFU_TFLOPS, "model_tflops", "TFLOP/s", F64, DERIVED, "model FLOPs / time")               \
	X(MFU_MFU, "mfu_pct", "MFU %", F64, DERIVED, "model FLOPs at their peaks / time",          \
	  .of = "time")                                                                            \
	X(MFU_HFU, "hfu_pct", "HFU %", F64, DERIVED, "hardware FLOPs at their peaks / time",       \
	  .of = "time")
static RANK_TABLE(mfu, &table_ranks, MFU_COLUMNS, .null_texts = "phase");

#define PEAK_COLUMNS(X)                                                                            \
	X(PEAK_WHAT = RANK_KEYS, "what", "peak of", TEXT, KEY,                                     \
	  "number type on tensor or matrix cores, or fp32 or fp64 vector, memory, link, pcie")     \
	X(PEAK_GPU, "gpu", "GPU", TEXT, KEY, "GPU in the table of peaks; null: not in it")         \
	X(PEAK_SOURCE, "source", "from", TEXT, KEY, "data sheet or user's file")                   \
	X(PEAK_RATE, "giga_per_s", "10^9/s", U64, MAX, "10^9 operations or bytes per second")      \
	X(PEAK_SPARSE, "sparse_giga_per_s", "sparse", U64, MAX,                                    \
	  "rate with 2:4 sparsity, which no other figure uses; 0: it has none")
static RANK_TABLE(peaks, &table_ranks, PEAK_COLUMNS, .null_texts = "gpu source");

/* ---- costs ------------------------------------------------------------------------------ */

struct op_cost cost_of_calls(const struct roofline_gpu *gpu, const struct model_cost *cost,
			     bool is_tf32, uint64_t calls)
{
	struct op_cost sum = { 0 };
	double n = (double)calls;

	if (!cost)
		return sum;
	sum = (struct op_cost){ .flops = cost->flops * n,
				.bytes = isnan(cost->bytes) ? 0 : cost->bytes * n,
				.calls = n };
	if (!gpu->sheet)
		return sum;
	double rate = peaks_rate(gpu->sheet, cost, is_tf32) * gpu->clock_share;
	double memory = (double)gpu->sheet->memory_gb;
	sum.compute_ps = rate > 0 ? sum.flops / cost->fewer / rate : 0;
	sum.memory_ps = memory > 0 ? sum.bytes / memory * 1e3 : 0;
	return sum;
}

static void sum_add(union value *cell, double value)
{
	double most = 9.2e18 - (double)cell->u64; /* limit of 64 bits */

	if (value > 0)
		cell->u64 += (uint64_t)llround(fmin(value, most));
}

enum {
	COST_FLOPS,
	COST_BYTES,
	COST_MODELLED,
	COST_COMPUTE,
	COST_MEMORY,
	COST_INTENSITY,
	COST_TFLOPS,
	COST_TBYTES,
	COST_BOUND,
	COST_OF_BOUND
};
void cost_add(union value *at, const struct op_cost *sum)
{
	sum_add(&at[COST_FLOPS], sum->flops);
	sum_add(&at[COST_BYTES], sum->bytes);
	sum_add(&at[COST_MODELLED], sum->calls);
	sum_add(&at[COST_COMPUTE], sum->compute_ps);
	sum_add(&at[COST_MEMORY], sum->memory_ps);
}

void cost_finish(union value *at, uint64_t gpu_ns)
{
	double flops = (double)at[COST_FLOPS].u64, bytes = (double)at[COST_BYTES].u64;
	double compute = (double)at[COST_COMPUTE].u64, memory = (double)at[COST_MEMORY].u64;

	at[COST_INTENSITY].f64 = bytes > 0 ? flops / bytes : NAN;
	at[COST_TFLOPS].f64 = at[COST_MODELLED].u64 && gpu_ns ? flops / (double)gpu_ns / 1e3 : NAN;
	at[COST_TBYTES].f64 = bytes > 0 && gpu_ns ? bytes / (double)gpu_ns / 1e3 : NAN;
	at[COST_BOUND].text = compute + memory <= 0 ? NULL
			      : compute > memory    ? "compute"
						    : "memory";
	at[COST_OF_BOUND].f64 =
		gpu_ns && compute + memory > 0 ? fmax(compute, memory) / (double)gpu_ns / 10 : NAN;
	if (!at[COST_MODELLED].u64)
		at[COST_FLOPS].u64 = NO_U64;
	if (!at[COST_MODELLED].u64 || bytes <= 0)
		at[COST_BYTES].u64 = NO_U64;
}

/* ---- peaks ------------------------------------------------------------------------------ */

static uint64_t device_number(const struct accumulator *f, uint32_t schema, const char *key)
{
	const struct attr *a = trace_find_attr(f->trace, schema, key);

	return a && (a->type == ATTR_U64 || a->type == ATTR_I64) ? a->bits : 0;
}

struct roofline_gpu roofline_gpu_of(const struct accumulator *f, uint32_t process, uint32_t device)
{
	const struct device *d =
		device == NO_ID
			? NULL
			: trace_get_device(f->trace, trace_find_device(f->trace, process, device));
	struct roofline_gpu gpu = { .name = "", .clock_share = 1 };

	/* some files describe only another device than the one with that number */
	for (uint32_t i = 1; device != NO_ID && i <= trace_count(f->trace, TRACE_DEVICES); i++) {
		const struct device *other = trace_get_device(f->trace, i);

		if (d &&
		    (*trace_text(f->trace, d->name, NULL) || device_number(f, d->schema, "numSms")))
			break;
		d = other->process == process ? other : d;
	}
	if (!d)
		return gpu;
	gpu.name = trace_text(f->trace, d->name, NULL);
	struct peaks_device known = { .name = gpu.name,
				      .units = device_number(f, d->schema, "numSms"),
				      .warp = device_number(f, d->schema, "warpSize"),
				      .major = device_number(f, d->schema, "computeMajor"),
				      .minor = device_number(f, d->schema, "computeMinor"),
				      .memory = device_number(f, d->schema, "totalGlobalMem") };
	gpu.sheet = peaks_find(f->peaks, &known);
	gpu.units = (double)known.units;
	return gpu;
}

static enum status put_peak(struct accumulator *f, uint32_t process, const struct peaks *p,
			    const char *what, double rate, bool is_sparse, struct error *err)
{
	union value keys[PEAK_RATE] = { 0 }, *row;

	if (rate <= 0)
		return ST_OK;
	keys[PEAK_WHAT].text = what;
	keys[PEAK_GPU].text = p->name;
	keys[PEAK_SOURCE].text = p->source;
	TRY(acc_row(f, "peaks", process, keys, &row, err));
	row[PEAK_RATE].u64 = (uint64_t)llround(rate);
	row[PEAK_SPARSE].u64 =
		is_sparse && p->sparse > 1 ? (uint64_t)llround(rate * (double)p->sparse) : 0;
	return ST_OK;
}

enum status roofline_put_gpu(struct accumulator *f, uint32_t process,
			     const struct roofline_gpu *gpu, struct error *err)
{
	const struct peaks *p = gpu->sheet;

	if (!p || !tables_find(f->tables, "peaks"))
		return ST_OK;
	for (int n = NUMBER_FP64; n < NUMBER_COUNT; n++)
		TRY(put_peak(f, process, p, number_words[n], (double)p->matrix[n] * 1e3,
			     n >= NUMBER_TF32, err));
	const struct {
		const char *what;
		double rate;
	} rest[] = {
		{ "fp64 vector", (double)p->fp64 * 1e3 }, { "fp32 vector", (double)p->fp32 * 1e3 },
		{ "memory", (double)p->memory_gb },       { "link", (double)p->link_gb },
		{ "pcie", (double)p->pcie_gb },
	};
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		TRY(put_peak(f, process, p, rest[i].what, rest[i].rate, false, err));
	return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------------- */

enum { SMALL_WORK_NS = 5000 };

/* Returns the first reason that applies for a low rate; NULL: none found. */
static const char *reason_of(const struct roofline_gpu *gpu, const struct roofline_row *row)
{
	const struct model_cost *c = row->cost;
	double waves = gpu->units > 0 ? c->tiles / gpu->units : 0;

	if (cost_of_calls(gpu, c, row->is_tf32, row->calls).compute_ps / 1000 > (double)row->gpu_ns)
		return "over the peak: the model of its FLOPs, or the peak, is wrong";
	if (row->calls && row->gpu_ns / row->calls < SMALL_WORK_NS)
		return "small: less than 5 us a call";
	if (c->is_matrix && c->number == NUMBER_FP32 && !row->is_tf32 && gpu->sheet &&
	    gpu->sheet->matrix[NUMBER_FP16] > 0)
		return "FP32: tensor cores would do it in 16 bits or TF32";
	if (c->is_misaligned)
		return "misaligned: a size of 16-bit matrices is no multiple of 8";
	if (c->is_small)
		return "small batch: a matrix has fewer than 64 rows or columns";
	if (waves > 0 && waves < 1)
		return "small: fewer tiles of 128 x 128 than the GPU has multiprocessors";
	if (waves > 1 && waves < 8 && waves / ceil(waves) < 0.8)
		return "tail wave: the last tiles leave multiprocessors idle";
	if (!strcmp(c->family, "softmax"))
		return "unfused: fused attention keeps the scores on the chip";
	if (!strcmp(c->family, "copy"))
		return "layout: it only moves data into another order or type";
	if (!strcmp(c->family, "elementwise"))
		return "unfused: it reads and writes memory for little work";
	return NULL;
}

enum status roofline_put_row(struct accumulator *f, const struct roofline_gpu *gpu,
			     const struct roofline_row *from, struct error *err)
{
	union value keys[ROOFLINE_FAMILY] = { 0 }, *row;
	const struct model_cost *c = from->cost;

	if (!from->gpu_ns || !tables_find(f->tables, "roofline"))
		return ST_OK;
	keys[ROOFLINE_NAME].text = from->name;
	keys[ROOFLINE_SHAPES].text = c ? from->shapes : NULL;
	keys[ROOFLINE_TYPES].text = c ? from->types : NULL;
	TRY(acc_row(f, "roofline", from->process, keys, &row, err));
	row[ROOFLINE_CALLS].u64 += from->calls;
	row[ROOFLINE_GPU].u64 += from->gpu_ns;
	if (!c)
		return ST_OK;
	struct op_cost sum = cost_of_calls(gpu, c, from->is_tf32, from->calls);
	enum number n = c->number == NUMBER_FP32 && from->is_tf32 ? NUMBER_TF32 : c->number;
	cost_add(&row[ROOFLINE_FLOPS], &sum);
	TRY(acc_text(f, "roofline", &row[ROOFLINE_FAMILY], c->family, err));
	TRY(acc_text(f, "roofline", &row[ROOFLINE_NUMBER], number_words[n], err));
	const char *reason = reason_of(gpu, from);
	return reason ? acc_text(f, "roofline", &row[ROOFLINE_REASON], reason, err) : ST_OK;
}

void roofline_count(struct accumulator *f, uint32_t process, struct roofline_gpu *gpu)
{
	const struct step_list *steps = &f->steps[process];

	for (size_t i = 0; i < sweep_gpu_count(f->sweep); i++)
		gpu->count += sweep_gpu(f->sweep, i).process == process;
	for (size_t i = 0; i < steps->count; i++)
		if (steps->rows[i].is_counted || steps->is_inferred)
			gpu->walls_ns += steps->rows[i].end_ns - steps->rows[i].begin_ns;
}

/* Adds a cell to a row of `mfu`. `is_more`: the time is the cell's own, otherwise that of all cells
 * with these keys. */
static enum status add_mfu(struct accumulator *f, const struct roofline_cell *c, uint64_t step,
			   const char *phase, uint64_t time_ns, bool is_more, struct error *err)
{
	union value keys[MFU_FLOPS] = { 0 }, *row;

	keys[MFU_STEP].u64 = step;
	keys[MFU_PHASE].text = phase;
	TRY(acc_row(f, "mfu", c->process, keys, &row, err));
	sum_add(&row[MFU_FLOPS], c->flops[0]);
	sum_add(&row[MFU_HARDWARE], c->flops[1]);
	sum_add(&row[MFU_MODEL_PS], c->peak_ps[0]);
	sum_add(&row[MFU_HARDWARE_PS], c->peak_ps[1]);
	if (is_more || !row[MFU_TIME].u64)
		row[MFU_TIME].u64 += time_ns;
	return ST_OK;
}

enum status roofline_put_cell(struct accumulator *f, const struct roofline_gpu *gpu,
			      const struct roofline_cell *c, struct error *err)
{
	const struct step_list *steps = &f->steps[c->process];
	uint32_t number = c->step & ~STEP_GAP;
	size_t at = steps->is_inferred ? 0 : number ? steps_find(steps, number - 1) : steps->count;
	uint64_t gpus = gpu->count ? gpu->count : 1; /* without a GPU: wall time of the host */

	if (!tables_find(f->tables, "mfu"))
		return ST_OK;
	TRY(add_mfu(f, c, NO_U64, context_phase(f->context, c->phase).name, c->gpu_ns, true, err));
	if (at >= steps->count ||
	    (!steps->is_inferred && (c->step & STEP_GAP) && !steps->rows[at].joins))
		return ST_OK;
	const struct step_row *step = &steps->rows[at];
	uint64_t wall = (step->end_ns - step->begin_ns) * gpus;
	if (step->is_kept || steps->is_inferred)
		TRY(add_mfu(f, c, step->number, NULL, wall, false, err));
	if (!step->is_counted && !steps->is_inferred)
		return ST_OK;
	return add_mfu(f, c, NO_U64, NULL, gpu->walls_ns * gpus, false, err);
}

static enum status roofline_finish(struct tables *all, struct error *err)
{
	union value *row;

	(void)err;
	for (size_t i = 0; (row = table_at(tables_find(all, "roofline"), i)); i++) {
		uint64_t ns = row[ROOFLINE_GPU].u64;
		uint64_t bound = row[ROOFLINE_COMPUTE].u64 > row[ROOFLINE_MEMORY].u64
					 ? row[ROOFLINE_COMPUTE].u64
					 : row[ROOFLINE_MEMORY].u64;

		cost_finish(&row[ROOFLINE_FLOPS], ns);
		row[ROOFLINE_SAVES].u64 = bound && bound / 1000 < ns ? ns - bound / 1000
					  : bound                    ? 0
								     : NO_U64;
	}
	for (size_t i = 0; (row = table_at(tables_find(all, "mfu"), i)); i++) {
		double ns = (double)row[MFU_TIME].u64;

		row[MFU_TFLOPS].f64 = ns > 0 ? (double)row[MFU_FLOPS].u64 / ns / 1e3 : NAN;
		bool has_peak = ns > 0 && row[MFU_HARDWARE_PS].u64;
		row[MFU_MFU].f64 = has_peak ? (double)row[MFU_MODEL_PS].u64 / ns / 10 : NAN;
		row[MFU_HFU].f64 = has_peak ? (double)row[MFU_HARDWARE_PS].u64 / ns / 10 : NAN;
	}
	return ST_OK;
}

static const struct report_type *const roofline_with[] = { &report_operators, NULL };
const struct report_type report_roofline = {
	.name = "roofline",
	.help = "operators compared with the GPU's peaks; MFU and HFU of steps and phases",
	.tables = TABLES(&table_roofline, &table_mfu, &table_peaks),
	.with = roofline_with,
	.finish = roofline_finish,
};
