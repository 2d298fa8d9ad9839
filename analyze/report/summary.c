/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each GPU (DEFINITIONS.md 1, 2) and, with the other reports, the one page. */
#include "analyze/engine/report.h"
#include "analyze/report/actions.h"
#include "analyze/report/report_list.h"

#include <stdlib.h>

enum {
	GPU_DEVICE = RANK_KEYS,
	GPU_NAME,
	GPU_UUID,
	GPU_SPAN,
	GPU_COMPUTE,
	GPU_EXPOSED_COMM,
	GPU_EXPOSED_COPY,
	GPU_IDLE,
	GPU_BUSY,
	GPU_COMM,
	GPU_COPY,
	GPU_OVERLAP_COMM,
	GPU_WINDOW,
	GPU_LEAD,
	GPU_TAIL,
	GPU_NOT_BUSY,
	GPU_UNATTRIBUTED,
	GPU_KERNELS,
	GPU_COPIES,
	GPU_AFTER_SYNC,
	GPU_FORGOTTEN,
	GPU_TRUSTED,
	GPU_COMM_WAIT,
	GPU_COLUMNS,
};
static const struct column gpu_columns[] = {
	RANK_COLUMNS,
	{ "device", "GPU", CELL_U64, KEY, NULL, "the device's number in its process" },
	{ "name", "model", CELL_TEXT, MAX, NULL, "what the device calls itself" },
	{ "uuid", NULL, CELL_TEXT, MAX, NULL, "of the GPU or of its MIG slice" },
	{ "span_ns", "span", CELL_U64, SUM, NULL,
	  "from the first GPU event's begin to the last one's end, of each window" },
	{ "compute_ns", "compute", CELL_U64, SUM, "span", "a compute kernel runs" },
	{ "exposed_comm_ns", "exposed comm", CELL_U64, SUM, "span",
	  "communication runs and no compute" },
	{ "exposed_copy_ns", "exposed copy", CELL_U64, SUM, "span",
	  "a copy or fill runs, no compute and no communication" },
	{ "idle_ns", "idle", CELL_U64, SUM, "span", "nothing runs, between first and last event" },
	{ "busy_ns", "busy", CELL_U64, SUM, NULL, "anything runs" },
	{ "comm_ns", "comm", CELL_U64, SUM, NULL, "communication runs" },
	{ "copy_ns", "copy", CELL_U64, SUM, NULL, "a copy or fill runs" },
	{ "overlap_comm_ns", "comm under compute", CELL_U64, SUM, NULL,
	  "communication and compute run" },
	{ "window_ns", "window", CELL_U64, SUM, NULL, "lead, span and tail" },
	{ "lead_ns", "lead", CELL_U64, SUM, NULL, "before the first GPU event" },
	{ "tail_ns", "tail", CELL_U64, SUM, NULL, "after the last GPU event" },
	{ "not_busy_ns", "not busy", CELL_U64, SUM, NULL, "idle, lead and tail" },
	{ "unattributed_ns", "without launch", CELL_U64, SUM, NULL,
	  "busy, but the work has no recorded launch" },
	{ "kernels", "kernels", CELL_U64, SUM, NULL, "kernels that began" },
	{ "copies", "copies", CELL_U64, SUM, NULL, "copies and fills that began" },
	{ "after_sync_ns", "after sync", CELL_U64, SUM, NULL,
	  "gaps of lead, idle and tail that began inside a synchronising call of their thread" },
	{ "forgotten_ns", NULL, CELL_U64, SUM, NULL,
	  "not busy, and what the host did then was more than is kept: part of unknown" },
	{ "idle_trusted", NULL, CELL_BOOL, DERIVED, NULL,
	  "false: the file is a sample, and what looks idle may not be" },
	{ "exposed_comm_wait_ns", "exposed waiting", CELL_U64, DERIVED, NULL,
	  "of exposed communication, what waited for another rank; null: no collective was "
	  "matched" },
	{ .name = NULL },
};
_Static_assert(sizeof(gpu_columns) / sizeof(gpu_columns[0]) == GPU_COLUMNS + 1, "gpu columns");
static const struct table_type table_gpus = {
	.name = "gpus",
	.member = "gpus",
	.under = &table_ranks,
	.null_texts = "name uuid",
	.columns = gpu_columns,
};

enum { CAUSE_NAME = RANK_KEYS + 1, CAUSE_NS };
static const struct column cause_columns[] = {
	RANK_COLUMNS,
	{ "device", "GPU", CELL_U64, KEY, NULL, "the device's number in its process" },
	{ "cause", "cause", CELL_TEXT, KEY, NULL,
	  "why nothing ran; host:PHASE: what the host did" },
	{ "ns", "not busy", CELL_U64, SUM, NULL,
	  "of lead, idle and tail; all rows make not_busy_ns" },
	{ .name = NULL },
};
static const struct table_type table_idle_causes = {
	.name = "idle_causes",
	.member = "idle_causes",
	.under = &table_gpus,
	.by = "ns",
	.columns = cause_columns,
};

enum { CAUSE_ROWS = CAUSE_HOST + SWEEP_PHASES }; /* host: one for each phase */
struct sums {
	uint64_t at[GPU_COLUMNS]; /* by column, from GPU_SPAN on */
	uint64_t causes[CAUSE_ROWS];
};
struct summary {
	struct sums *gpus; /* by the sweep's index */
	size_t count;
};

static void put_piece(struct sums *sums, const struct piece *piece)
{
	uint64_t ns = piece->end_ns - piece->begin_ns;

	sums->causes[piece->cause == CAUSE_HOST ? CAUSE_HOST + piece->phase : piece->cause] += ns;
	if (piece->after_sync)
		sums->at[GPU_AFTER_SYNC] += ns;
	if (piece->is_forgotten)
		sums->at[GPU_FORGOTTEN] += ns;
}

static void count_work(const struct accumulator *f, struct summary *s,
		       const struct batch_events *work, size_t column)
{
	for (size_t i = 0; i < work->count; i++) {
		uint32_t gpu = sweep_gpu_of(f->sweep, work->items[i]->track);
		if (gpu < s->count && work->items[i]->kind != KIND_GRAPH)
			s->gpus[gpu].at[column]++;
	}
}

static enum status summary_put(struct accumulator *f, const struct sorted_batch *w,
			       struct error *err)
{
	struct summary *s = f->state;

	TRY(acc_gpus(f, &s->gpus, &s->count, sizeof(*s->gpus), err));
	for (size_t i = 0; i < w->piece_count; i++)
		put_piece(&s->gpus[w->pieces[i].gpu], &w->pieces[i]);
	count_work(f, s, &w->by[BATCH_KERNELS], GPU_KERNELS);
	count_work(f, s, &w->by[BATCH_COPIES], GPU_COPIES);
	return ST_OK;
}

/* An attribute of the device as text, or NULL. */
static const char *device_text(const struct accumulator *f, const struct device *d, const char *key)
{
	const struct attr *a = trace_find_attr(f->trace, d->schema, key);

	return a && a->type == ATTR_TEXT ? trace_text(f->trace, (uint32_t)a->bits, NULL) : NULL;
}

static enum status end_causes(struct accumulator *f, size_t gpu, struct error *err)
{
	struct summary *s = f->state;
	struct sweep_gpu g = sweep_gpu(f->sweep, gpu);
	union value keys[RANK_KEYS + 2], *row;
	char name[512];

	keys[GPU_DEVICE].u64 = g.device == NO_ID ? NO_U64 : g.device;
	for (size_t i = 0; i < CAUSE_ROWS; i++) {
		if (!s->gpus[gpu].causes[i])
			continue;
		keys[CAUSE_NAME].text = name;
		cause_text(f, i < CAUSE_HOST ? (enum cause)i : CAUSE_HOST,
			   i < CAUSE_HOST ? 0 : (unsigned)(i - CAUSE_HOST), name, sizeof(name));
		TRY(acc_row(f, "idle_causes", g.process, keys, &row, err));
		row[CAUSE_NS].u64 += s->gpus[gpu].causes[i];
	}
	return ST_OK;
}

static void add_span(uint64_t *at, unsigned phase, unsigned busy, uint64_t ns)
{
	static const size_t columns[CLASS_COUNT] = {
		[CLASS_COMPUTE] = GPU_COMPUTE,
		[CLASS_COMM] = GPU_EXPOSED_COMM,
		[CLASS_COPY] = GPU_EXPOSED_COPY,
		[CLASS_IDLE] = GPU_IDLE,
	};

	at[GPU_SPAN] += ns;
	at[columns[owner_class(busy)]] += ns;
	at[busy ? GPU_BUSY : GPU_NOT_BUSY] += ns;
	if (busy & BUSY_COMM)
		at[GPU_COMM] += ns;
	if (busy & BUSY_COPY)
		at[GPU_COPY] += ns;
	if ((busy & BUSY_COMM) && (busy & BUSY_COMPUTE))
		at[GPU_OVERLAP_COMM] += ns;
	if (busy && phase >= SWEEP_PHASES)
		at[GPU_UNATTRIBUTED] += ns;
}

static void add_time(uint64_t *at, const struct gpu_time *t)
{
	for (unsigned phase = 0; phase < CELL_PHASES; phase++)
		for (unsigned busy = 0; busy < BUSY_MASKS; busy++)
			add_span(at, phase, busy, t->span_ns[phase][busy]);
	at[GPU_LEAD] += t->lead_ns;
	at[GPU_TAIL] += t->tail_ns;
	at[GPU_NOT_BUSY] += t->lead_ns + t->tail_ns;
	at[GPU_WINDOW] += t->lead_ns + at[GPU_SPAN] + t->tail_ns;
}

static enum status end_gpu(struct accumulator *f, size_t gpu, struct error *err)
{
	struct summary *s = f->state;
	struct sweep_gpu g = sweep_gpu(f->sweep, gpu);
	const struct device *d =
		trace_get_device(f->trace, trace_find_device(f->trace, g.process, g.device));
	union value keys[RANK_KEYS + 1], *row;

	keys[GPU_DEVICE].u64 = g.device == NO_ID ? NO_U64 : g.device;
	TRY(acc_row(f, "gpus", g.process, keys, &row, err));
	if (d->name)
		TRY(acc_text(f, "gpus", &row[GPU_NAME], trace_text(f->trace, d->name, NULL), err));
	TRY(acc_text(f, "gpus", &row[GPU_UUID], device_text(f, d, "uuid"), err));
	add_time(s->gpus[gpu].at, g.time);
	for (size_t i = GPU_SPAN; i < GPU_TRUSTED; i++)
		row[i].u64 += s->gpus[gpu].at[i];
	return end_causes(f, gpu, err);
}

static enum status summary_end(struct accumulator *f, struct error *err)
{
	struct summary *s = f->state;

	TRY(acc_gpus(f, &s->gpus, &s->count, sizeof(*s->gpus), err));
	for (size_t i = 0; i < sweep_gpu_count(f->sweep); i++)
		TRY(end_gpu(f, i, err));
	return ST_OK;
}

static void summary_release(struct accumulator *f)
{
	struct summary *s = f->state;

	free(s->gpus);
}

static enum status summary_finish(struct tables *all, struct error *err)
{
	struct table *gpus = tables_find(all, "gpus"), *trust = tables_find(all, "trust");
	size_t sampled = table_column(trust, "sampled");
	union value *of;

	for (size_t i = 0; i < table_count(gpus); i++) {
		union value *row = table_at(gpus, i);
		TRY(table_have(trust, row, &of, err));
		row[GPU_TRUSTED].u64 = of[sampled].u64 != 1;
	}
	return ST_OK;
}

static const struct table_type *const summary_tables[] = {
	&table_gpus,
	&table_idle_causes,
	NULL,
};
static const struct report_type *const summary_with[] = {
	&report_phases, &report_steps, &report_kernels, &report_copies,   &report_idle,
	&report_memory, &report_comm,  &report_ranks,   &report_findings, &report_actions,
	NULL,
};

const struct report_type report_summary = {
	.name = "summary",
	.help = "the one page: GPU time, phases, steps, kernels, copies, trust",
	.tables = summary_tables,
	.with = summary_with,
	.state_size = sizeof(struct summary),
	.put = summary_put,
	.end = summary_end,
	.release = summary_release,
	.finish = summary_finish,
};
