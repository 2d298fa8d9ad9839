/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/hta/hta.h"

#include "schemas/model/call.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE                                                                                     \
	{                                                                                          \
		"device", "GPU", CELL_U64, KEY, NULL, "the device's number in its process"         \
	}
#define STREAM                                                                                     \
	{                                                                                          \
		"stream", "stream", CELL_U64, KEY, NULL, "its number on the device"                \
	}

enum {
	TIME_IDLE = RANK_KEYS + 1,
	TIME_COMPUTE,
	TIME_NON_COMPUTE,
	TIME_KERNEL,
	TIME_COMM,
	TIME_OVERLAP,
	TIME_IDLE_PCT,
	TIME_COMPUTE_PCT,
	TIME_NON_PCT,
	TIME_OVERLAP_PCT
};
static const struct column time_columns[] = {
	RANK_COLUMNS,
	DEVICE,
	{ "idle_ns", "idle", CELL_U64, SUM, NULL, "no GPU event runs" },
	{ "compute_ns", "compute", CELL_U64, SUM, NULL, "a computing kernel runs" },
	{ "non_compute_ns", "non-compute", CELL_U64, SUM, NULL, "only other GPU events run" },
	{ "kernel_ns", "kernel time", CELL_U64, SUM, NULL, "from the first begin to the last end" },
	{ "comm_ns", "comm", CELL_U64, SUM, NULL, "a communication kernel runs" },
	{ "overlap_ns", "comm and comp", CELL_U64, SUM, NULL, "both" },
	{ "idle_pct", "idle %", CELL_F64, DERIVED, "kernel time", "share" },
	{ "compute_pct", "compute %", CELL_F64, DERIVED, "kernel time", "share" },
	{ "non_compute_pct", "non-compute %", CELL_F64, DERIVED, "kernel time", "share" },
	{ "comp_comm_overlap_pct", "overlap %", CELL_F64, DERIVED, "comm",
	  "share; null without communication" },
	{ .name = NULL },
};
static const struct table_type table_time = {
	.name = "hta_temporal_breakdown",
	.member = "hta_temporal_breakdown",
	.under = &table_ranks,
	.columns = time_columns,
};

enum {
	IDLE_STREAM = RANK_KEYS + 1,
	IDLE_CATEGORY,
	IDLE_NS,
	IDLE_STATS,
	IDLE_RATIO = IDLE_STATS + STATS_MEAN + 1
};
static const struct column idle_columns[] = {
	RANK_COLUMNS,
	DEVICE,
	STREAM,
	{ "category", "category", CELL_TEXT, KEY, NULL,
	  "host_wait: launched after the event before ended; kernel_wait: below 30 us; other" },
	{ "idle_ns", "idle", CELL_U64, SUM, NULL, "gaps of this category" },
	HTA_STATS_COLUMNS("_ns", CELL_U64),
	{ "ratio", "%", CELL_F64, DERIVED, "the stream's gaps", "share" },
	{ .name = NULL },
};
static const struct table_type table_idle = {
	.name = "hta_idle_time_breakdown",
	.member = "hta_idle_time_breakdown",
	.under = &table_ranks,
	.columns = idle_columns,
};

enum { TYPE_NAME = RANK_KEYS + 1, TYPE_NS, TYPE_PCT };
static const struct column type_columns[] = {
	RANK_COLUMNS,
	DEVICE,
	{ "kernel_type", "kernel type", CELL_TEXT, KEY, NULL, "what runs, and nothing else" },
	{ "sum_ns", "sum", CELL_U64, SUM, NULL, "time" },
	{ "percentage", "%", CELL_F64, DERIVED, "busy time", "share" },
	{ .name = NULL },
};
static const struct table_type table_types = {
	.name = "hta_kernel_type_breakdown",
	.member = "hta_kernel_type_breakdown",
	.under = &table_ranks,
	.by = "sum_ns",
	.columns = type_columns,
};

enum { KERNEL_TYPE = RANK_KEYS + 1, KERNEL_NAME, KERNEL_NS, KERNEL_STATS };
static const struct column kernel_columns[] = {
	RANK_COLUMNS,
	DEVICE,
	{ "kernel_type", "kernel type", CELL_TEXT, KEY, NULL, "of the three" },
	{ "name", "name", CELL_TEXT, KEY, NULL, "as in the file" },
	{ "sum_ns", "sum", CELL_U64, SUM, NULL, "time, overlaps twice" },
	HTA_STATS_COLUMNS("_ns", CELL_U64),
	{ .name = NULL },
};
static const struct table_type table_kernels = {
	.name = "hta_kernel_breakdown",
	.member = "hta_kernel_breakdown",
	.under = &table_ranks,
	.by = "sum_ns",
	.columns = kernel_columns,
};

enum {
	QUEUE_STREAM = RANK_KEYS + 1,
	QUEUE_SUM,
	QUEUE_STATS,
	QUEUE_LEFT_OUT = QUEUE_STATS + HTA_STATS
};
static const struct column queue_columns[] = {
	RANK_COLUMNS,
	DEVICE,
	STREAM,
	{ "sum", NULL, CELL_U64, SUM, NULL, "of lengths" },
	HTA_STATS_COLUMNS("", CELL_F64),
	{ "points_left_out", NULL, CELL_U64, SUM, NULL, "of the series, which has a ceiling" },
	{ .name = NULL },
};
static const struct table_type table_queue = {
	.name = "hta_queue_length_summary",
	.member = "hta_queue_length_summary",
	.under = &table_ranks,
	.columns = queue_columns,
};

enum {
	CALLS_COUNT = RANK_KEYS + 1,
	CALLS_CPU,
	CALLS_GPU,
	CALLS_DELAY,
	CALLS_SHORT,
	CALLS_CPU_OUT,
	CALLS_DELAY_OUT
};
static const struct column call_columns[] = {
	RANK_COLUMNS,
	DEVICE,
	{ "launches", "launches", CELL_U64, SUM, NULL, "of kernels, copies and fills; no graphs" },
	{ "cpu_ns", "cpu", CELL_U64, SUM, NULL, "length of the calls" },
	{ "gpu_ns", "gpu", CELL_U64, SUM, NULL, "length of their work" },
	{ "delay_ns", "launch delay", CELL_U64, SUM, NULL, "from a call's end to its work" },
	{ "short_kernels", "short", CELL_U64, SUM, NULL, "shorter than a call of up to 50 us" },
	{ "runtime_outliers", "calls > 50 us", CELL_U64, SUM, NULL, "calls" },
	{ "delay_outliers", "delays > 100 us", CELL_U64, SUM, NULL, "launches" },
	{ .name = NULL },
};
static const struct table_type table_calls = {
	.name = "hta_cuda_kernel_launch_stats",
	.member = "hta_cuda_kernel_launch_stats",
	.under = &table_ranks,
	.columns = call_columns,
};

/* ---- fold ------------------------------------------------------------------------------- */

enum { EVENTS_MAX = 1 << 21, QUEUE_POINTS = 1 << 17 };

struct hta {
	struct hta_event *events;
	size_t count, cap;
	struct hta_room room;
	size_t points_left; /* of queues' lengths */
};

/* HTA's types; what it takes for none of them by its name is what it is here. */
static uint8_t class_of(struct accumulator *f, const struct event *e)
{
	if (e->kind != KIND_KERNEL && e->kind != KIND_GRAPH)
		return HTA_MEMORY;
	const char *name = trace_text(f->trace, e->name, NULL);
	return !strncmp(name, "nccl", 4) || !strncmp(name, "hccl", 4) || strstr(name, "ncclKernel")
		       ? HTA_COMM
		       : HTA_COMPUTE;
}

static enum status put_event(struct accumulator *f, const struct event *e, struct error *err)
{
	struct hta *s = f->state;
	const struct launch *l = batch_launch(f->batch, e);
	const struct track *track = trace_get_track(f->trace, e->track);

	if (!acc_wants(f, track->process))
		return ST_OK;
	if (s->count == EVENTS_MAX)
		return fail(err, ST_CEILING, NOWHERE,
			    "--compat hta keeps at most %d GPU events of "
			    "an input: take some with --steps, --from and --to",
			    EVENTS_MAX);
	TRY(vec_reserve(&s->events, &s->cap, s->count + 1, err));
	struct hta_event *to = &s->events[s->count];
	*to = (struct hta_event){
		.begin_ns = e->begin_ns,
		.end_ns = e->end_ns,
		.correlation = e->correlation,
		.stream = track->id,
		.order = s->count,
		.gpu = sweep_gpu_of(f->sweep, e->track),
		.name = e->name,
		.class = class_of(f, e),
		.has_launch = l != NULL,
	};
	if (to->class == HTA_MEMORY)
		to->rate = hta_rate_of(f, e);
	s->count++;
	if (!l)
		return ST_OK;
	to->launch_begin_ns = l->begin_ns;
	to->launch_end_ns = l->end_ns;
	size_t len;
	const char *name = trace_text(f->trace, l->name, &len);
	to->is_graph = (call_traits(name, len) & CALL_LAUNCHES_GRAPH) != 0;
	return ST_OK;
}

static enum status hta_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	for (size_t i = 0; i < w->in->count; i++)
		if (event_is_gpu_work(&w->in->events[i]))
			TRY(put_event(f, &w->in->events[i], err));
	return ST_OK;
}

static void hta_release(struct accumulator *f)
{
	struct hta *s = f->state;

	free(s->events);
	free(s->room.events);
	free(s->room.edges);
	free(s->room.rates);
	free(s->room.values);
}

/* ---- end -------------------------------------------------------------------------------- */

uint32_t hta_keys(struct accumulator *f, const struct hta_slice *of, union value *keys)
{
	struct sweep_gpu g = sweep_gpu(f->sweep, of->events[0].gpu);

	keys[RANK_KEYS].u64 = g.device == NO_ID ? NO_U64 : g.device;
	return g.process;
}

static const char *type_text(unsigned mask, char out[80])
{
	static const char *const words[] = { "COMPUTATION", "COMMUNICATION", "MEMORY" };
	size_t len = 0;
	unsigned i;

	out[0] = '\0';
	for (i = 0; i < 3; i++)
		if (mask & 1u << i)
			len += (size_t)snprintf(out + len, 80 - len, "%s%s",
						len ? " overlapping " : "", words[i]);
	return out;
}

void hta_put_stats(union value *row, const struct hta_stats *s)
{
	row[STATS_COUNT].u64 += s->count;
	row[STATS_MIN].u64 = s->min;
	row[STATS_P25].u64 = s->p25;
	row[STATS_P50].u64 = s->p50;
	row[STATS_P75].u64 = s->p75;
	row[STATS_MAX].u64 = s->max;
	row[STATS_STD].u64 = s->std == NO_U64 ? 0 : s->std;
}

static enum status end_time(struct accumulator *f, const struct hta_slice *gpu, struct error *err)
{
	struct hta *s = f->state;
	union value keys[TYPE_NAME + 1], *row;
	uint32_t process = hta_keys(f, gpu, keys);
	uint64_t mixes[HTA_MIXES];
	char text[80];

	hta_mixes(gpu->events, gpu->count, s->room.edges, mixes);
	TRY(acc_row(f, table_time.name, process, keys, &row, err));
	for (unsigned mask = 0; mask < HTA_MIXES; mask++) {
		unsigned at = !mask                ? TIME_IDLE
			      : mask & HTA_COMPUTE ? TIME_COMPUTE
						   : TIME_NON_COMPUTE;

		row[at].u64 += mixes[mask];
		row[TIME_KERNEL].u64 += mixes[mask];
		row[TIME_COMM].u64 += mask & HTA_COMM ? mixes[mask] : 0;
		row[TIME_OVERLAP].u64 += mask & HTA_COMM && mask & HTA_COMPUTE ? mixes[mask] : 0;
	}
	for (unsigned mask = 1; mask < HTA_MIXES; mask++) {
		if (!mixes[mask])
			continue;
		keys[TYPE_NAME].text = type_text(mask, text);
		TRY(acc_row(f, table_types.name, process, keys, &row, err));
		row[TYPE_NS].u64 += mixes[mask];
	}
	return ST_OK;
}

static enum status end_calls(struct accumulator *f, const struct hta_slice *gpu, struct error *err)
{
	struct hta_launches sums = { 0, 0, 0, 0, 0, 0, 0 };
	union value keys[RANK_KEYS + 1], *row;
	uint32_t process = hta_keys(f, gpu, keys);

	for (size_t i = 0; i < gpu->count; i++)
		hta_launch_add(&sums, &gpu->events[i]);
	TRY(acc_row(f, table_calls.name, process, keys, &row, err));
	row[CALLS_COUNT].u64 += sums.count;
	row[CALLS_CPU].u64 += sums.cpu_ns;
	row[CALLS_GPU].u64 += sums.gpu_ns;
	row[CALLS_DELAY].u64 += sums.delay_ns;
	row[CALLS_SHORT].u64 += sums.short_count;
	row[CALLS_CPU_OUT].u64 += sums.cpu_outliers;
	row[CALLS_DELAY_OUT].u64 += sums.delay_outliers;
	return ST_OK;
}

static enum status end_rates(struct accumulator *f, const struct hta_slice *gpu, struct error *err)
{
	struct hta *s = f->state;

	return hta_put_rates(f, gpu, &s->room, err);
}

/* Of a graph's nodes only the first left a queue. */
static size_t without_nodes(struct hta_event *events, size_t count)
{
	size_t kept = 0;
	uint64_t last = 0;
	bool inside = false;

	for (size_t i = 0; i < count; i++) {
		if (events[i].is_graph && inside && events[i].correlation == last)
			continue;
		inside = events[i].is_graph;
		last = events[i].correlation;
		events[kept++] = events[i];
	}
	return kept;
}

static enum status end_stream(struct accumulator *f, const struct hta_slice *of, struct error *err)
{
	static const char *const words[] = { "host_wait", "kernel_wait", "other" };
	struct hta *s = f->state;
	union value keys[IDLE_CATEGORY + 1], *row;
	uint32_t process = hta_keys(f, of, keys);
	struct hta_stats stats;
	size_t points, left;
	unsigned kind;

	keys[IDLE_STREAM].u64 = of->events[0].stream;
	for (kind = 0; kind < HTA_WAITS; kind++) {
		size_t count = hta_gaps(of->events, of->count, (enum hta_wait)kind, s->room.values);

		if (!count)
			continue;
		stats = hta_describe(s->room.values, count);
		keys[IDLE_CATEGORY].text = words[kind];
		TRY(acc_row(f, table_idle.name, process, keys, &row, err));
		row[IDLE_NS].u64 += stats.sum;
		hta_put_stats(row + IDLE_STATS, &stats);
	}
	points = hta_queue(of->events, without_nodes(of->events, of->count), s->room.edges,
			   s->room.values);
	left = s->points_left;
	TRY(hta_put_queue(f, of, s->room.edges, s->room.values, points, &s->points_left, err));
	stats = hta_describe(s->room.values, points);
	if (!stats.count)
		return ST_OK;
	TRY(acc_row(f, table_queue.name, process, keys, &row, err));
	row[QUEUE_SUM].u64 += stats.sum;
	row[QUEUE_LEFT_OUT].u64 += points - (left - s->points_left);
	hta_put_stats(row + QUEUE_STATS, &stats);
	return ST_OK;
}

static enum status end_name(struct accumulator *f, const struct hta_slice *of, struct error *err)
{
	struct hta *s = f->state;
	union value keys[KERNEL_NAME + 1], *row;
	uint32_t process = hta_keys(f, of, keys);
	char text[80];

	for (size_t i = 0; i < of->count; i++)
		s->room.values[i] = of->events[i].end_ns - of->events[i].begin_ns;
	struct hta_stats stats = hta_describe(s->room.values, of->count);
	keys[KERNEL_TYPE].text = type_text(of->events[0].class, text);
	keys[KERNEL_NAME].text = trace_text(f->trace, of->events[0].name, NULL);
	TRY(acc_row(f, table_kernels.name, process, keys, &row, err));
	row[KERNEL_NS].u64 += stats.sum;
	hta_put_stats(row + KERNEL_STATS, &stats);
	return ST_OK;
}

typedef enum status (*end_slice)(struct accumulator *f, const struct hta_slice *of,
				 struct error *err);

/* `parts`: how much of the order makes a slice: 1 the GPU, 2 and the stream, 3 and the name. */
static bool same(const struct hta_event *a, const struct hta_event *b, unsigned parts)
{
	if (a->gpu != b->gpu)
		return false;
	if (parts == 2)
		return a->stream == b->stream;
	return parts == 1 || (a->name == b->name && a->class == b->class);
}

static enum status each(struct accumulator *f, unsigned parts, end_slice end, struct error *err)
{
	struct hta *s = f->state;
	size_t last;

	for (size_t first = 0; first < s->count; first = last) {
		for (last = first + 1; last < s->count; last++)
			if (!same(&s->events[first], &s->events[last], parts))
				break;
		TRY(end(f, &(struct hta_slice){ s->events + first, last - first }, err));
	}
	return ST_OK;
}

static enum status hta_end(struct accumulator *f, struct error *err)
{
	struct hta *s = f->state;

	if (!s->count)
		return ST_OK;
	s->room.events = calloc(s->count, sizeof(*s->room.events));
	s->room.edges = calloc(2 * s->count, sizeof(*s->room.edges));
	s->room.rates = calloc(2 * s->count, sizeof(*s->room.rates));
	s->room.values = calloc(2 * s->count, sizeof(*s->room.values));
	if (!s->room.events || !s->room.edges || !s->room.rates || !s->room.values)
		return fail_memory(err);
	s->points_left = QUEUE_POINTS;
	qsort(s->events, s->count, sizeof(*s->events), hta_by_name);
	TRY(each(f, 3, end_name, err));
	qsort(s->events, s->count, sizeof(*s->events), hta_by_stream);
	TRY(each(f, 1, end_time, err));
	TRY(each(f, 1, end_calls, err));
	TRY(each(f, 1, end_rates, err));
	return each(f, 2, end_stream, err); /* the last: it drops nodes */
}

/* ---- finish ----------------------------------------------------------------------------- */

void hta_finish_means(struct tables *all, const char *name, size_t sum, size_t stats, bool is_whole)
{
	struct table *t = tables_find(all, name);

	for (size_t i = 0; i < table_count(t); i++) {
		union value *row = table_at(t, i);
		uint64_t count = row[stats + STATS_COUNT].u64;

		if (is_whole)
			row[stats + STATS_MEAN].u64 =
				count ? (row[sum].u64 + count / 2) / count : NO_U64;
		else
			row[stats + STATS_MEAN].f64 =
				count ? (double)row[sum].u64 / (double)count : NAN;
	}
}

/* Share of the sum over rows that agree in the first `keys` columns: they stand together. */
static void finish_shares(struct tables *all, const char *name, size_t keys, size_t part,
			  size_t share)
{
	struct table *t = tables_find(all, name);
	size_t count = table_count(t), last;

	for (size_t first = 0; first < count; first = last) {
		uint64_t whole = 0;

		for (last = first; last < count; last++) {
			if (memcmp(table_at(t, last), table_at(t, first),
				   keys * sizeof(union value)))
				break;
			whole += table_at(t, last)[part].u64;
		}
		for (size_t i = first; i < last; i++)
			table_at(t, i)[share].f64 = percent_of(table_at(t, i)[part].u64, whole);
	}
}

static enum status hta_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, table_time.name);

	(void)err;
	for (size_t i = 0; i < table_count(t); i++) {
		union value *row = table_at(t, i);
		uint64_t whole = row[TIME_KERNEL].u64;

		row[TIME_IDLE_PCT].f64 = percent_of(row[TIME_IDLE].u64, whole);
		row[TIME_COMPUTE_PCT].f64 = percent_of(row[TIME_COMPUTE].u64, whole);
		row[TIME_NON_PCT].f64 = percent_of(row[TIME_NON_COMPUTE].u64, whole);
		row[TIME_OVERLAP_PCT].f64 =
			row[TIME_COMM].u64 ? percent_of(row[TIME_OVERLAP].u64, row[TIME_COMM].u64)
					   : NAN;
	}
	hta_finish_means(all, table_idle.name, IDLE_NS, IDLE_STATS, true);
	hta_finish_means(all, table_kernels.name, KERNEL_NS, KERNEL_STATS, true);
	hta_finish_means(all, table_queue.name, QUEUE_SUM, QUEUE_STATS, false);
	hta_finish_rates(all);
	finish_shares(all, table_idle.name, IDLE_CATEGORY, IDLE_NS, IDLE_RATIO);
	finish_shares(all, table_types.name, TYPE_NAME, TYPE_NS, TYPE_PCT);
	return ST_OK;
}

static const struct table_type *const hta_tables[] = {
	&table_time,
	&table_idle,
	&table_types,
	&table_kernels,
	&table_queue,
	&table_calls,
	&table_hta_rates,
	&table_hta_queue_series,
	&table_hta_rate_series,
	NULL,
};

const struct report_type report_compat_hta = {
	.name = "hta",
	.help = "the figures of Holistic Trace Analysis, by its definitions",
	.tables = hta_tables,
	.state_size = sizeof(struct hta),
	.put = hta_put,
	.end = hta_end,
	.release = hta_release,
	.finish = hta_finish,
};
