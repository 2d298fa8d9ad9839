/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/hta/hta.h"

#include "schemas/model/call.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>

#define STATS_COLUMNS(X, unit, mean_type, type, combine)                                           \
	X(STATS_COUNT, "count", "count", U64, SUM, "number of values")                             \
	X(STATS_MIN, "min" unit, "min", U64, MAX, "least value")                                   \
	X(STATS_P25, "p25" unit, "25%", type, combine, "first quartile of the values")             \
	X(STATS_P50, "p50" unit, "50%", type, combine, "median of the values")                     \
	X(STATS_P75, "p75" unit, "75%", type, combine, "third quartile of the values")             \
	X(STATS_MAX, "max" unit, "max", U64, MAX, "greatest value")                                \
	X(STATS_STD, "std" unit, "std", type, combine, "standard deviation of a sample")           \
	X(STATS_MEAN, "mean" unit, "mean", mean_type, DERIVED, "sum of the values / count")
enum { STATS_COLUMNS(COLUMN_PLACE, "", U64, U64, MAX) STATS };
/* The keys of all tables under the ranks. */
#define DEVICE_KEY(X)                                                                              \
	X(HTA_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "the device's number in its process")
#define STREAM_KEYS(X)                                                                             \
	DEVICE_KEY(X) X(HTA_STREAM, "stream", "stream", U64, KEY, "stream number on the device")
enum { STREAM_KEYS(COLUMN_PLACE) HTA_STREAM_KEYS };

struct slice { /* events of one GPU, one stream or one name */
	struct hta_event *events;
	size_t count;
};
struct hta { /* the state of the report */
	struct hta_event *events;
	size_t count, cap;
	/* scratch space for a slice: copies of its events, and twice as many of the others */
	struct hta_event *copies;
	struct hta_edge *edges;
	struct hta_rate *rates;
	uint64_t *values;
};

#define TIME_COLUMNS(X)                                                                            \
	X(TIME_IDLE = HTA_STREAM, "idle_ns", "idle", U64, SUM, "time in which no GPU event runs")  \
	X(TIME_COMPUTE, "compute_ns", "compute", U64, SUM, "time of computing kernels")            \
	X(TIME_NON_COMPUTE, "non_compute_ns", "non-compute", U64, SUM,                             \
	  "time in which only other GPU events run")                                               \
	X(TIME_KERNEL, "kernel_ns", "kernel time", U64, SUM,                                       \
	  "time from the first begin to the last end of GPU events")                               \
	X(TIME_COMM, "comm_ns", "comm", U64, SUM, "time of communication kernels")                 \
	X(TIME_OVERLAP, "overlap_ns", "comm and comp", U64, SUM, "communication beside compute")   \
	X(TIME_IDLE_PCT, "idle_pct", "idle %", F64, DERIVED, "idle time / kernel time",            \
	  .of = "kernel time")                                                                     \
	X(TIME_COMPUTE_PCT, "compute_pct", "compute %", F64, DERIVED,                              \
	  "compute time / kernel time", .of = "kernel time")                                       \
	X(TIME_NON_PCT, "non_compute_pct", "non-compute %", F64, DERIVED,                          \
	  "non-compute time / kernel time", .of = "kernel time")                                   \
	X(TIME_OVERLAP_PCT, "comp_comm_overlap_pct", "overlap %", F64, DERIVED,                    \
	  "overlap time / communication time; null without communication", .of = "comm")
enum { TIME_COLUMNS(COLUMN_PLACE) };
#define TIME_LIST(X) DEVICE_KEY(X) TIME_COLUMNS(X)
static RANK_TABLE_TYPE(hta_temporal_breakdown, &table_ranks, TIME_LIST);

#define IDLE_COLUMNS(X)                                                                            \
	X(IDLE_CATEGORY = HTA_STREAM_KEYS, "category", "category", TEXT, KEY,                      \
	  "host_wait: launched after the event before ended; kernel_wait: below 30 us; other")     \
	X(IDLE_NS, "idle_ns", "idle", U64, SUM, "total duration of the gaps")
#define IDLE_RATIO_COLUMN(X)                                                                       \
	X(IDLE_RATIO = IDLE_STATS + STATS, "ratio", "%", F64, DERIVED,                             \
	  "share of the stream's gaps", .of = "the stream's gaps")
enum { IDLE_COLUMNS(COLUMN_PLACE) IDLE_STATS, IDLE_RATIO_COLUMN(COLUMN_PLACE) };
#define IDLE_LIST(X)                                                                               \
	STREAM_KEYS(X) IDLE_COLUMNS(X) STATS_COLUMNS(X, "_ns", U64, U64, MAX) IDLE_RATIO_COLUMN(X)
static RANK_TABLE_TYPE(hta_idle_time_breakdown, &table_ranks, IDLE_LIST);

#define TYPE_COLUMNS(X)                                                                            \
	X(TYPE_NAME = HTA_STREAM, "kernel_type", "kernel type", TEXT, KEY,                         \
	  "types of GPU events that run at the same time, and no others")                          \
	X(TYPE_NS, "sum_ns", "sum", U64, SUM, "time in which exactly these types run")             \
	X(TYPE_PCT, "percentage", "%", F64, DERIVED, "share of the busy time", .of = "busy time")
enum { TYPE_COLUMNS(COLUMN_PLACE) };
#define TYPE_LIST(X) DEVICE_KEY(X) TYPE_COLUMNS(X)
static RANK_TABLE_TYPE(hta_kernel_type_breakdown, &table_ranks, TYPE_LIST, .by = "sum_ns");

#define KERNEL_COLUMNS(X)                                                                          \
	X(KERNEL_TYPE = HTA_STREAM, "kernel_type", "kernel type", TEXT, KEY,                       \
	  "COMPUTATION, COMMUNICATION or MEMORY")                                                  \
	X(KERNEL_NAME, "name", "name", TEXT, KEY, "name of the kernel, as in the file")            \
	X(KERNEL_NS, "sum_ns", "sum", U64, SUM, "total duration, overlaps counted twice")
enum { KERNEL_COLUMNS(COLUMN_PLACE) KERNEL_STATS };
#define KERNEL_LIST(X) DEVICE_KEY(X) KERNEL_COLUMNS(X) STATS_COLUMNS(X, "_ns", U64, U64, MAX)
static RANK_TABLE_TYPE(hta_kernel_breakdown, &table_ranks, KERNEL_LIST, .by = "sum_ns");

#define QUEUE_COLUMNS(X)                                                                           \
	X(QUEUE_SUM = HTA_STREAM_KEYS, "sum", NULL, U64, SUM, "sum of the queue lengths")          \
	X(QUEUE_SQUARES, "squares", NULL, U64, SUM, "sum of the squares of the queue lengths")     \
	X(QUEUE_P25, "p25_quarters", NULL, U64, MAX, "first quartile of the lengths x 4")          \
	X(QUEUE_P50, "p50_quarters", NULL, U64, MAX, "median of the lengths x 4")                  \
	X(QUEUE_P75, "p75_quarters", NULL, U64, MAX, "third quartile of the lengths x 4")
enum { QUEUE_COLUMNS(COLUMN_PLACE) QUEUE_STATS };
#define QUEUE_LIST(X) STREAM_KEYS(X) QUEUE_COLUMNS(X) STATS_COLUMNS(X, "", F64, F64, DERIVED)
static RANK_TABLE_TYPE(hta_queue_length_summary, &table_ranks, QUEUE_LIST);

#define CALL_COLUMNS(X)                                                                            \
	X(CALLS_COUNT = HTA_STREAM, "launches", "launches", U64, SUM,                              \
	  "launches of kernels, copies and fills, without graphs")                                 \
	X(CALLS_CPU, "cpu_ns", "cpu", U64, SUM, "total duration of the calls")                     \
	X(CALLS_GPU, "gpu_ns", "gpu", U64, SUM, "total duration of the launched work")             \
	X(CALLS_DELAY, "delay_ns", "launch delay", U64, SUM, "total time from call end to work")   \
	X(CALLS_SHORT, "short_kernels", "short", U64, SUM,                                         \
	  "launches whose work is shorter than their call of up to 50 us")                         \
	X(CALLS_CPU_OUT, "runtime_outliers", "calls > 50 us", U64, SUM, "calls over 50 us")        \
	X(CALLS_DELAY_OUT, "delay_outliers", "delays > 100 us", U64, SUM, "delays over 100 us")
enum { CALL_COLUMNS(COLUMN_PLACE) };
#define CALL_LIST(X) DEVICE_KEY(X) CALL_COLUMNS(X)
static RANK_TABLE_TYPE(hta_cuda_kernel_launch_stats, &table_ranks, CALL_LIST);

#define BANDWIDTH_COLUMNS(X)                                                                       \
	X(BW_NAME = HTA_STREAM, "name", "name", TEXT, KEY, "Memset, or Memcpy and its direction")  \
	X(BW_SUM, "sum", NULL, U64, SUM, "sum of the rates after each change, without 0")
enum { BANDWIDTH_COLUMNS(COLUMN_PLACE) BW_STATS };
#define BANDWIDTH_LIST(X)                                                                          \
	DEVICE_KEY(X) BANDWIDTH_COLUMNS(X) STATS_COLUMNS(X, "_bytes_per_s", F64, U64, MAX)
static RANK_TABLE_TYPE(hta_memory_bw_summary, &table_ranks, BANDWIDTH_LIST);

/* ---- events ----------------------------------------------------------------------------- */

enum { EVENTS_MAX = 1 << 21 };
enum { CPU_CUTOFF_NS = 50000, DELAY_CUTOFF_NS = 100000 /* HTA's values */ };

/* Returns HTA's type of an event. HTA has no type for some names; here these have the type of their
 * work. */
static uint32_t class_of(struct accumulator *f, const struct event *e)
{
	if (e->kind != KIND_KERNEL && e->kind != KIND_GRAPH)
		return HTA_MEMORY;
	const char *name = trace_text(f->trace, e->name, NULL);
	return !strncmp(name, "nccl", 4) || !strncmp(name, "hccl", 4) || strstr(name, "ncclKernel")
		       ? HTA_COMM
		       : HTA_COMPUTE;
}

#define RATE_MOST 1e15 /* higher than any machine's */

/* Returns the rate in GB/s; NAN: not in the file. */
static double rate_recorded(const struct accumulator *f, const struct event *e)
{
	const struct arg_schema *schema = trace_get_schema(f->trace, e->schema);
	double rate = NAN;

	for (size_t i = 0; schema && e->args && i < schema->arg_count; i++) {
		const struct attr *a = &schema->args[i];

		if (strcmp(trace_text(f->trace, a->key, NULL), "bandwidth") != 0)
			continue;
		if (a->type == ATTR_F64)
			memcpy(&rate, &e->args[i], sizeof(rate));
		else if (a->type == ATTR_U64) /* JSON without a fraction */
			rate = (double)e->args[i];
	}
	return rate;
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
			    "--compat hta accepts at most %d GPU events per input: select some "
			    "with --steps, --from and --to",
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
	if (to->class == HTA_MEMORY) {
		/* Bytes per second of a copy or fill: from the file, otherwise bytes / duration. */
		uint64_t ns = e->end_ns - e->begin_ns;
		double rate = rate_recorded(f, e) * 1e9;

		if (!(rate >= 0 && rate < RATE_MOST))
			rate = (double)e->bytes * 1e9 / (double)(ns ? ns : HTA_NO_LENGTH_NS);
		to->rate = rate < RATE_MOST ? (uint64_t)llround(rate) : 0;
	}
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

/* ---- end -------------------------------------------------------------------------------- */

/* Returns the process and fills the device's key. */
static uint32_t take_keys(const struct accumulator *f, const struct slice *of, union value *keys)
{
	struct sweep_gpu g = sweep_gpu(f->sweep, of->events[0].gpu);

	keys[RANK_KEYS].u64 = g.device == NO_ID ? NO_U64 : g.device;
	return g.process;
}

static const char *type_text(unsigned mask, char out[80])
{
	static const char *const words[] = { "COMPUTATION", "COMMUNICATION", "MEMORY" };
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < 3; i++)
		if (mask & 1u << i)
			len += (size_t)snprintf(out + len, 80 - len, "%s%s",
						len ? " overlapping " : "", words[i]);
	return out;
}

static void put_stats(union value *row, const struct hta_stats *s)
{
	row[STATS_COUNT].u64 += s->count;
	row[STATS_MIN].u64 = s->min;
	for (size_t i = 0; i < 3; i++)
		row[STATS_P25 + i].u64 = (s->quartiles[i] + 2) / 4;
	row[STATS_MAX].u64 = s->max;
	row[STATS_STD].u64 = s->std == NO_U64 ? 0 : s->std;
}

static enum status end_time(struct accumulator *f, const struct slice *gpu, struct error *err)
{
	struct hta *s = f->state;
	union value keys[TYPE_NAME + 1], *row;
	uint32_t process = take_keys(f, gpu, keys);
	uint64_t mixes[HTA_MIXES];
	char text[80];

	hta_mixes(gpu->events, gpu->count, s->edges, mixes);
	TRY(acc_row(f, "hta_temporal_breakdown", process, keys, &row, err));
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
		TRY(acc_row(f, "hta_kernel_type_breakdown", process, keys, &row, err));
		row[TYPE_NS].u64 += mixes[mask];
	}
	return ST_OK;
}

static enum status end_calls(struct accumulator *f, const struct slice *gpu, struct error *err)
{
	union value keys[RANK_KEYS + 1], *row;
	uint32_t process = take_keys(f, gpu, keys);

	TRY(acc_row(f, "hta_cuda_kernel_launch_stats", process, keys, &row, err));
	for (size_t i = 0; i < gpu->count; i++) {
		const struct hta_event *e = &gpu->events[i];
		uint64_t cpu_ns = e->launch_end_ns - e->launch_begin_ns;
		uint64_t gpu_ns = e->end_ns - e->begin_ns;
		uint64_t delay_ns =
			e->begin_ns > e->launch_end_ns ? e->begin_ns - e->launch_end_ns : 0;

		if (!e->has_launch || e->is_graph)
			continue;
		row[CALLS_COUNT].u64++;
		row[CALLS_CPU].u64 += cpu_ns;
		row[CALLS_GPU].u64 += gpu_ns;
		row[CALLS_DELAY].u64 += delay_ns;
		row[CALLS_SHORT].u64 += cpu_ns <= CPU_CUTOFF_NS && gpu_ns < cpu_ns;
		row[CALLS_CPU_OUT].u64 += cpu_ns > CPU_CUTOFF_NS;
		row[CALLS_DELAY_OUT].u64 += delay_ns > DELAY_CUTOFF_NS;
	}
	return ST_OK;
}

/* Keeps only the first node of each graph launch, because only that left a queue. */
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

static enum status end_stream(struct accumulator *f, const struct slice *of, struct error *err)
{
	static const char *const words[] = { "host_wait", "kernel_wait", "other" };
	struct hta *s = f->state;
	union value keys[IDLE_CATEGORY + 1], *row;
	uint32_t process = take_keys(f, of, keys);
	struct hta_stats stats;
	size_t points;

	keys[HTA_STREAM].u64 = of->events[0].stream;
	for (unsigned kind = 0; kind < HTA_WAITS; kind++) {
		size_t count = hta_gaps(of->events, of->count, (enum hta_wait)kind, s->values);

		if (!count)
			continue;
		stats = hta_describe(s->values, count);
		keys[IDLE_CATEGORY].text = words[kind];
		TRY(acc_row(f, "hta_idle_time_breakdown", process, keys, &row, err));
		row[IDLE_NS].u64 += stats.sum;
		put_stats(row + IDLE_STATS, &stats);
	}
	points = hta_queue(of->events, without_nodes(of->events, of->count), s->edges, s->values);
	stats = hta_describe(s->values, points);
	if (!stats.count)
		return ST_OK;
	TRY(acc_row(f, "hta_queue_length_summary", process, keys, &row, err));
	row[QUEUE_SUM].u64 += stats.sum;
	put_stats(row + QUEUE_STATS, &stats);
	for (size_t i = 0; i < points; i++)
		row[QUEUE_SQUARES].u64 += s->values[i] * s->values[i];
	/* Lengths are small integers, so the quartiles are not rounded. */
	for (size_t i = 0; i < 3; i++) {
		row[QUEUE_P25 + i].u64 = stats.quartiles[i];
		row[QUEUE_STATS + STATS_P25 + i].f64 = NAN;
	}
	row[QUEUE_STATS + STATS_STD].f64 = NAN;
	return ST_OK;
}

static enum status end_name(struct accumulator *f, const struct slice *of, struct error *err)
{
	struct hta *s = f->state;
	union value keys[KERNEL_NAME + 1], *row;
	uint32_t process = take_keys(f, of, keys);
	char text[80];

	for (size_t i = 0; i < of->count; i++)
		s->values[i] = of->events[i].end_ns - of->events[i].begin_ns;
	struct hta_stats stats = hta_describe(s->values, of->count);
	keys[KERNEL_TYPE].text = type_text(of->events[0].class, text);
	keys[KERNEL_NAME].text = trace_text(f->trace, of->events[0].name, NULL);
	TRY(acc_row(f, "hta_kernel_breakdown", process, keys, &row, err));
	row[KERNEL_NS].u64 += stats.sum;
	put_stats(row + KERNEL_STATS, &stats);
	return ST_OK;
}

enum { NAMES_MOST = 16, NAME_BYTES = 16 };

/* Writes HTA's name of a copy: the first eleven letters of a name have the direction. */
static void name_of(const struct accumulator *f, const struct hta_event *e, char out[NAME_BYTES])
{
	const char *name = trace_text(f->trace, e->name, NULL);

	if (!strncmp(name, "Memset", 6))
		snprintf(out, NAME_BYTES, "Memset");
	else if (!strncmp(name, "Memcpy", 6))
		snprintf(out, NAME_BYTES, "%.11s", name);
	else
		snprintf(out, NAME_BYTES, "Memcpy Unknown");
}

/* Adds up the copies of a GPU in each direction. */
static enum status end_rates(struct accumulator *f, const struct slice *gpu, struct error *err)
{
	struct hta *s = f->state;
	char names[NAMES_MOST][NAME_BYTES], name[NAME_BYTES];
	size_t count = 0, k;

	for (size_t i = 0; i < gpu->count; i++) {
		if (gpu->events[i].class != HTA_MEMORY)
			continue;
		name_of(f, &gpu->events[i], name);
		for (k = 0; k < count && strcmp(names[k], name) != 0; k++)
			;
		if (k == count && count < NAMES_MOST)
			memcpy(names[count++], name, NAME_BYTES);
	}
	for (k = 0; k < count; k++) {
		struct slice of = { s->copies, 0 };

		for (size_t i = 0; i < gpu->count; i++) {
			if (gpu->events[i].class != HTA_MEMORY)
				continue;
			name_of(f, &gpu->events[i], name);
			if (!strcmp(names[k], name))
				of.events[of.count++] = gpu->events[i];
		}
		union value keys[BW_NAME + 1], *row;
		uint32_t process = take_keys(f, &of, keys);
		size_t points = hta_rates(of.events, of.count, s->rates), some = 0;
		keys[BW_NAME].text = names[k];
		for (size_t i = 0; i < points; i++) {
			uint64_t value = (uint64_t)s->rates[i].change;

			if (value)
				s->values[some++] = value;
		}
		if (!some)
			continue;
		struct hta_stats stats = hta_describe(s->values, some);
		TRY(acc_row(f, "hta_memory_bw_summary", process, keys, &row, err));
		row[BW_SUM].u64 += stats.sum;
		put_stats(row + BW_STATS, &stats);
	}
	return ST_OK;
}

typedef enum status (*end_slice)(struct accumulator *f, const struct slice *of, struct error *err);

/* `parts`: which members define a slice: 1: the GPU; 2: and the stream; 3: and the name. */
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
		TRY(end(f, &(struct slice){ s->events + first, last - first }, err));
	}
	return ST_OK;
}

static enum status hta_end(struct accumulator *f, struct error *err)
{
	struct hta *s = f->state;

	if (!s->count)
		return ST_OK;
	TRY(vec_new(&s->copies, s->count, err));
	TRY(vec_new(&s->edges, 2 * s->count, err));
	TRY(vec_new(&s->rates, 2 * s->count, err));
	TRY(vec_new(&s->values, 2 * s->count, err));
	SORT_BY(s->events, s->count, UP(struct hta_event, gpu), UP(struct hta_event, name),
		UP(struct hta_event, class), UP(struct hta_event, begin_ns),
		UP(struct hta_event, order));
	TRY(each(f, 3, end_name, err));
	SORT_BY(s->events, s->count, UP(struct hta_event, gpu), UP(struct hta_event, stream),
		UP(struct hta_event, begin_ns), UP(struct hta_event, order));
	TRY(each(f, 1, end_time, err));
	TRY(each(f, 1, end_calls, err));
	TRY(each(f, 1, end_rates, err));
	return each(f, 2, end_stream, err); /* comes last because it drops graph nodes */
}

/* ---- finish ----------------------------------------------------------------------------- */

/* Computes sum / count, rounded if `is_whole`. */
static void finish_means(struct tables *all, const char *name, size_t sum, size_t stats,
			 bool is_whole)
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

static enum status hta_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "hta_temporal_breakdown");
	union value *row;

	(void)err;
	for (size_t i = 0; (row = table_at(t, i)); i++) {
		uint64_t whole = row[TIME_KERNEL].u64;

		row[TIME_IDLE_PCT].f64 = percent_of(row[TIME_IDLE].u64, whole);
		row[TIME_COMPUTE_PCT].f64 = percent_of(row[TIME_COMPUTE].u64, whole);
		row[TIME_NON_PCT].f64 = percent_of(row[TIME_NON_COMPUTE].u64, whole);
		row[TIME_OVERLAP_PCT].f64 =
			row[TIME_COMM].u64 ? percent_of(row[TIME_OVERLAP].u64, row[TIME_COMM].u64)
					   : NAN;
	}
	finish_means(all, "hta_idle_time_breakdown", IDLE_NS, IDLE_STATS, true);
	finish_means(all, "hta_kernel_breakdown", KERNEL_NS, KERNEL_STATS, true);
	finish_means(all, "hta_queue_length_summary", QUEUE_SUM, QUEUE_STATS, false);
	struct table *queue = tables_find(all, "hta_queue_length_summary");
	for (size_t i = 0; (row = table_at(queue, i)); i++) {
		double n = (double)row[QUEUE_STATS + STATS_COUNT].u64;
		double sum = (double)row[QUEUE_SUM].u64;
		double squares = (double)row[QUEUE_SQUARES].u64 - sum * sum / n;

		for (size_t k = 0; k < 3; k++)
			row[QUEUE_STATS + STATS_P25 + k].f64 = (double)row[QUEUE_P25 + k].u64 / 4;
		row[QUEUE_STATS + STATS_STD].f64 = n < 2 ? NAN : sqrt(fmax(squares, 0) / (n - 1));
	}
	finish_means(all, "hta_memory_bw_summary", BW_SUM, BW_STATS, false);
	finish_shares(all, "hta_idle_time_breakdown", IDLE_CATEGORY, IDLE_NS, IDLE_RATIO);
	finish_shares(all, "hta_kernel_type_breakdown", TYPE_NAME, TYPE_NS, TYPE_PCT);
	return ST_OK;
}

const struct report_type report_compat_hta = {
	.name = "hta",
	.help = "the figures of Holistic Trace Analysis, by its definitions",
	.tables = TABLES(&table_hta_temporal_breakdown, &table_hta_idle_time_breakdown,
			 &table_hta_kernel_type_breakdown, &table_hta_kernel_breakdown,
			 &table_hta_queue_length_summary, &table_hta_cuda_kernel_launch_stats,
			 &table_hta_memory_bw_summary),
	.state_size = sizeof(struct hta),
	.owned = OWNED(offsetof(struct hta, events), offsetof(struct hta, copies),
		       offsetof(struct hta, edges), offsetof(struct hta, rates),
		       offsetof(struct hta, values)),
	.put = hta_put,
	.end = hta_end,
	.finish = hta_finish,
};
