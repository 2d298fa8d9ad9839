/* SPDX-License-Identifier: Apache-2.0 */
/* The report `summary`: the time of each GPU (DEFINITIONS.md 1, 2) and, with other reports, the
 * page. */
#include "analyze/report/shared.h"
#include "analyze/report/report_list.h"

#define GPUS_COLUMNS(X)                                                                            \
	X(GPU_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "the device's number in its process") \
	X(GPU_NAME, "name", "model", TEXT, MAX, "name of the device")                              \
	X(GPU_UUID, "uuid", NULL, TEXT, MAX, "UUID of the GPU or its MIG slice")                   \
	X(GPU_SPAN, "span_ns", "span", U64, SUM,                                                   \
	  "time from the first GPU event to the end of the last, summed over windows")             \
	X(GPU_COMPUTE, "compute_ns", "compute", U64, SUM, "time in which a compute kernel runs",   \
	  .of = "span")                                                                            \
	X(GPU_EXPOSED_COMM, "exposed_comm_ns", "exposed comm", U64, SUM,                           \
	  "time in which communication and no compute runs", .of = "span")                         \
	X(GPU_EXPOSED_COPY, "exposed_copy_ns", "exposed copy", U64, SUM,                           \
	  "time in which a copy or fill runs, and no compute or communication", .of = "span")      \
	X(GPU_IDLE, "idle_ns", "idle", U64, SUM, "idle time between first and last GPU event",     \
	  .of = "span")                                                                            \
	X(GPU_BUSY, "busy_ns", "busy", U64, SUM, "time in which any GPU event runs")               \
	X(GPU_COMM, "comm_ns", "comm", U64, SUM, "time in which communication runs")               \
	X(GPU_COPY, "copy_ns", "copy", U64, SUM, "time in which a copy or fill runs")              \
	X(GPU_OVERLAP_COMM, "overlap_comm_ns", "comm under compute", U64, SUM,                     \
	  "time in which both communication and compute run")                                      \
	X(GPU_WINDOW, "window_ns", "window", U64, SUM, "lead + span + tail")                       \
	X(GPU_LEAD, "lead_ns", "lead", U64, SUM, "time before the first GPU event")                \
	X(GPU_TAIL, "tail_ns", "tail", U64, SUM, "time after the last GPU event")                  \
	X(GPU_NOT_BUSY, "not_busy_ns", "not busy", U64, SUM, "lead + idle + tail")                 \
	X(GPU_UNATTRIBUTED, "unattributed_ns", "without launch", U64, SUM,                         \
	  "busy time of work without a recorded launch")                                           \
	X(GPU_KERNELS, "kernels", "kernels", U64, SUM, "kernels that began")                       \
	X(GPU_COPIES, "copies", "copies", U64, SUM, "copies and fills that began")                 \
	X(GPU_AFTER_SYNC, "after_sync_ns", "after sync", U64, SUM,                                 \
	  "time of gaps that began inside a synchronizing call of their thread")                   \
	X(GPU_FORGOTTEN, "forgotten_ns", NULL, U64, SUM,                                           \
	  "not busy time without a cause because too many host events were open: part of unknown") \
	X(GPU_TRUSTED, "idle_trusted", NULL, BOOL, DERIVED,                                        \
	  "false: the file is a sample, and idle time is not reliable")                            \
	X(GPU_COMM_WAIT, "exposed_comm_wait_ns", "exposed waiting", U64, DERIVED,                  \
	  "exposed communication that waited for another rank; null: no collective was matched")
enum { GPUS_COLUMNS(COLUMN_PLACE) GPU_COLUMNS };
static RANK_TABLE_TYPE(gpus, &table_ranks, GPUS_COLUMNS, .null_texts = "name uuid");

#define CAUSE_COLUMNS(X)                                                                           \
	X(CAUSE_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY,                                     \
	  "the device's number in its process")                                                    \
	X(CAUSE_NAME, "cause", "cause", TEXT, KEY,                                                 \
	  "why nothing ran; host:PHASE: what the step thread did meanwhile")                       \
	X(CAUSE_NS, "ns", "not busy", U64, SUM,                                                    \
	  "part of lead, idle and tail; all rows add up to not_busy_ns")
static RANK_TABLE(idle_causes, &table_gpus, CAUSE_COLUMNS, .by = "ns");

enum { CAUSE_ROWS = CAUSE_HOST + SWEEP_PHASES }; /* host has one row for each phase */
struct sums {
	uint64_t at[GPU_COLUMNS]; /* by column, from GPU_SPAN on */
	uint64_t causes[CAUSE_ROWS];
};
struct summary {
	struct sums *gpus; /* by the sweep's index */
	size_t count;
};

static void put_idle(struct sums *sums, const struct idle_segment *idle)
{
	uint64_t ns = idle->end_ns - idle->begin_ns;

	sums->causes[idle->cause == CAUSE_HOST ? CAUSE_HOST + idle->phase : idle->cause] += ns;
	if (idle->after_sync)
		sums->at[GPU_AFTER_SYNC] += ns;
	if (idle->is_forgotten)
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
	for (size_t i = 0; i < w->idle_count; i++)
		put_idle(&s->gpus[w->idle[i].gpu], &w->idle[i]);
	count_work(f, s, &w->by[BATCH_KERNELS], GPU_KERNELS);
	count_work(f, s, &w->by[BATCH_COPIES], GPU_COPIES);
	return ST_OK;
}

static enum status end_causes(struct accumulator *f, size_t gpu, struct error *err)
{
	struct summary *s = f->state;
	union value keys[RANK_KEYS + 2], *row;
	char name[512];

	for (size_t i = 0; i < CAUSE_ROWS; i++) {
		if (!s->gpus[gpu].causes[i])
			continue;
		keys[CAUSE_NAME].text = name;
		cause_text(f, i < CAUSE_HOST ? (enum cause)i : CAUSE_HOST,
			   i < CAUSE_HOST ? 0 : (unsigned)(i - CAUSE_HOST), name, sizeof(name));
		TRY(acc_gpu_row(f, "idle_causes", gpu, keys, &row, err));
		row[CAUSE_NS].u64 += s->gpus[gpu].causes[i];
	}
	return ST_OK;
}

static enum status end_gpu(struct accumulator *f, size_t gpu, struct error *err)
{
	struct summary *s = f->state;
	struct sweep_gpu g = sweep_gpu(f->sweep, gpu);
	const struct device *d =
		trace_get_device(f->trace, trace_find_device(f->trace, g.process, g.device));
	union value keys[RANK_KEYS + 1], *row;

	TRY(acc_gpu_row(f, "gpus", gpu, keys, &row, err));
	if (d->name)
		TRY(acc_text(f, "gpus", &row[GPU_NAME], trace_text(f->trace, d->name, NULL), err));
	TRY(acc_text(f, "gpus", &row[GPU_UUID], trace_attr_text(f->trace, d->schema, "uuid"), err));
	uint64_t *at = s->gpus[gpu].at;
	for (unsigned phase = 0; phase < CELL_PHASES; phase++)
		for (unsigned busy = 0; busy < BUSY_MASKS; busy++) {
			uint64_t ns = g.time->span_ns[phase][busy];
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
	at[GPU_LEAD] += g.time->lead_ns;
	at[GPU_TAIL] += g.time->tail_ns;
	at[GPU_NOT_BUSY] += g.time->lead_ns + g.time->tail_ns;
	at[GPU_WINDOW] += g.time->lead_ns + at[GPU_SPAN] + g.time->tail_ns;
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

const struct report_type report_summary = {
	.name = "summary",
	.help = "the one page: GPU time, phases, steps, kernels, copies, trust",
	.tables = TABLES(&table_gpus, &table_idle_causes),
	.with = REPORTS(&report_phases, &report_steps, &report_kernels, &report_copies,
			&report_idle, &report_memory, &report_comm, &report_ranks, &report_findings,
			&report_hang, &report_snapshot, &report_actions, &report_places,
			&report_host, &report_health),
	.state_size = sizeof(struct summary),
	.owned = OWNED(offsetof(struct summary, gpus)),
	.put = summary_put,
	.end = summary_end,
	.finish = summary_finish,
};
