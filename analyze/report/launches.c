/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report `launches` (DEFINITIONS.md 6): time in the call, in the queue and on the GPU; and for
 * each GPU the length of its queue and how often it is idle when a launch begins.
 *
 * The greatest length of a queue is exact. A ring holds the begins of launches, which are numbered.
 * A launch whose work begins at e waits at each begin from its own to the last one before e. A
 * begin that leaves the ring is final.
 */
#include "analyze/engine/report.h"

#include "analyze/engine/hist.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"
#include "schemas/model/call.h"

#include <stdlib.h>

#define CALL_COLUMNS(X)                                                                            \
	X(CALL_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY,                                      \
	  "the device's number in its process")                                                    \
	X(CALL_NAME, "call", "call", TEXT, KEY, "name of the call that launches")                  \
	X(CALL_COUNT, "count", "calls", U64, SUM, "launches with GPU work")                        \
	X(CALL_EVENTS, "gpu_events", "GPU events", U64, SUM, "kernels, copies, nodes of graphs")   \
	X(CALL_API, "api_ns", "in calls", U64, SUM, "total duration of the calls")                 \
	X(CALL_API_MEDIAN, "api_median_ns", "median", U64, DERIVED, "median duration, within 1 %") \
	X(CALL_API_MAX, "api_max_ns", "longest", U64, MAX, "longest duration of a call")           \
	X(CALL_QUEUE, "queue_ns", "in queue", U64, SUM,                                            \
	  "total time from the end of a call to its first work; 0 if the work begins earlier")     \
	X(CALL_QUEUE_MEDIAN, "queue_median_ns", "median", U64, DERIVED,                            \
	  "median time of a launch in the queue, within 1 %")                                      \
	X(CALL_QUEUE_MAX, "queue_max_ns", "longest", U64, MAX, "longest time in the queue")        \
	X(CALL_GPU, "gpu_ns", "on GPU", U64, SUM,                                                  \
	  "total duration of the work, overlaps counted twice")                                    \
	X(CALL_SHORT, "short", "short", U64, SUM,                                                  \
	  "GPU events shorter than the call that launched only them")                              \
	X(CALL_WAITED, "waited", "GPU waited", U64, SUM,                                           \
	  "launches that began while the GPU was idle, and whose work ended the idle time")        \
	X(CALL_API_HIST, "api_hist", NULL, HIST, HIST, "histogram of the calls' durations")        \
	X(CALL_QUEUE_HIST, "queue_hist", NULL, HIST, HIST, "histogram of the times in the queue")
static RANK_TABLE(launches, &table_ranks, CALL_COLUMNS, .by = "api_ns");

#define QUEUE_COLUMNS(X)                                                                           \
	X(QUEUE_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY,                                     \
	  "the device's number in its process")                                                    \
	X(QUEUE_LAUNCHES, "launches", "launches", U64, SUM, "calls with GPU work")                 \
	X(QUEUE_EVENTS, "gpu_events", "GPU events", U64, SUM, "GPU events with a launch")          \
	X(QUEUE_GRAPHS, "graph_launches", "graphs", U64, SUM, "launches of CUDA graphs")           \
	X(QUEUE_GRAPH_EVENTS, "graph_events", NULL, U64, SUM, "GPU events of graph launches")      \
	X(QUEUE_SHORT, "short", "short", U64, SUM,                                                 \
	  "GPU events shorter than the call that launched only them")                              \
	X(QUEUE_WAITED, "waited", "GPU waited", U64, SUM,                                          \
	  "launches that began while the GPU was idle, and whose work ended the idle time")        \
	X(QUEUE_BOUND, "launch_bound_pct", "%", F64, DERIVED, "waited / launches",                 \
	  .of = "launches")                                                                        \
	X(QUEUE_QUEUED, "queued_ns", NULL, U64, SUM,                                               \
	  "time from the begin of a call to the begin of its first work, over all launches")       \
	X(QUEUE_WINDOW, "window_ns", NULL, U64, SUM, "lead, span and tail of the GPU")             \
	X(QUEUE_MEAN, "queue_mean", "mean queue", F64, DERIVED,                                    \
	  "mean number of waiting launches: queued_ns / window_ns")                                \
	X(QUEUE_MAX, "queue_max", "longest queue", U64, MAX,                                       \
	  "greatest number of waiting launches (call begun, work not begun)")
static RANK_TABLE(launch_queues, &table_ranks, QUEUE_COLUMNS);

enum { BEGINS = 1 << 16 /* limit of launches that wait at once */, FIRSTS = 1 << 16 };
/* One page more than BEGINS numbers need, because they may start within a page. */
enum { PAGE = 1 << 10, PAGES = BEGINS / PAGE + 1 };

struct begins {           /* begins of launching calls of a process */
	uint64_t *at_ns;  /* a ring, indexed by number & (BEGINS - 1) */
	uint64_t count;   /* number of begins so far */
	uint64_t *firsts; /* latest correlation + 1, indexed by its low bits */
};
struct queue { /* the launch queue of a GPU */
	/* A ring: change of the number of waiting launches at each begin. A page is allocated only
	 * while it may have values other than 0, as a process may have thousands of GPUs. */
	int32_t *pages[PAGES];
	uint64_t settled; /* begins with lower numbers are final */
	int64_t length;   /* length at the last settled begin */
	uint64_t max, queued_ns, window_ns, launches, events, graphs, graph_events, shorts, waited;
	union value *row; /* cached row of `name` */
	uint32_t name;
};
struct launches {
	struct begins *processes;
	struct queue *gpus; /* by the sweep's index */
	size_t gpu_count;
	uint8_t *is_graph; /* cache by name: 0: none, else 1 + whether it launches graphs */
	uint32_t process_count, name_count;
	uint64_t from_ns; /* begin of the filter: earlier waits do not count */
};

static enum status launches_begin(struct accumulator *f, struct error *err)
{
	struct launches *s = f->state;

	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	s->name_count = trace_count(f->trace, TRACE_NAMES);
	TRY(vec_new(&s->processes, (size_t)s->process_count + 1, err));
	return vec_new(&s->is_graph, (size_t)s->name_count + 1, err);
}

static void launches_release(struct accumulator *f)
{
	struct launches *s = f->state;

	for (size_t i = 0; s->processes && i <= s->process_count; i++) {
		free(s->processes[i].at_ns);
		free(s->processes[i].firsts);
	}
	for (size_t i = 0; i < s->gpu_count; i++)
		for (size_t k = 0; k < PAGES; k++)
			free(s->gpus[i].pages[k]);
}

static enum status reach(struct accumulator *f, struct launches *s, struct error *err)
{
	return acc_gpus(f, &s->gpus, &s->gpu_count, sizeof(*s->gpus), err);
}

/* ---- the queue -------------------------------------------------------------------------- */

/* Makes begins below `number` final for this GPU. */
static void queue_settle(struct queue *q, uint64_t number)
{
	while (q->settled < number) {
		int32_t **page = &q->pages[q->settled / PAGE % PAGES];
		uint64_t end = (q->settled / PAGE + 1) * PAGE;

		for (; *page && q->settled < end && q->settled < number; q->settled++) {
			q->length += (*page)[q->settled % PAGE];
			if (q->length > 0 && (uint64_t)q->length > q->max)
				q->max = (uint64_t)q->length;
		}
		if (!*page)
			q->settled = end < number ? end : number;
		if (q->settled == end) {
			free(*page);
			*page = NULL;
		}
	}
}

static enum status queue_change(struct queue *q, uint64_t number, int32_t by, struct error *err)
{
	int32_t **page = &q->pages[number / PAGE % PAGES];

	if (!*page)
		TRY(vec_new(page, PAGE, err));
	(*page)[number % PAGE] += by;
	return ST_OK;
}

/* Makes the ring. A launch before the begin of the filter waits from that begin on. */
static enum status begins_open(struct begins *b, uint64_t from_ns, struct error *err)
{
	if (b->at_ns)
		return ST_OK;
	TRY(vec_new(&b->at_ns, BEGINS, err));
	if (from_ns)
		b->at_ns[b->count++] = from_ns;
	return ST_OK;
}

/* Returns the first number in the ring whose begin is not before `at_ns`. */
static uint64_t begins_find(const struct begins *b, uint64_t at_ns)
{
	uint64_t at, first = b->count > BEGINS - 1 ? b->count - (BEGINS - 1) : 0;

	SEARCH(at, first, b->count, b->at_ns[at & (BEGINS - 1)] < at_ns);
	return at;
}

static enum status queue_put(struct queue *q, const struct begins *b, uint64_t begin_ns,
			     const struct event *e, struct error *err)
{
	if (e->begin_ns <= begin_ns)
		return ST_OK;
	q->queued_ns += e->begin_ns - begin_ns;
	if (b->count >= BEGINS)
		queue_settle(q, b->count - (BEGINS - 1));
	uint64_t first = begins_find(b, begin_ns);
	uint64_t end = begins_find(b, e->begin_ns);
	first = first < q->settled ? q->settled : first;
	if (first >= end)
		return ST_OK;
	TRY(queue_change(q, first, 1, err));
	return queue_change(q, end, -1, err);
}

/* ---- events ----------------------------------------------------------------------------- */

static bool is_graph(const struct accumulator *f, struct launches *s, uint32_t name)
{
	uint8_t none = 0, *known = name <= s->name_count ? &s->is_graph[name] : &none;

	if (!*known) {
		size_t len;
		const char *text = trace_text(f->trace, name, &len);

		*known = call_traits(text, len) & CALL_LAUNCHES_GRAPH ? 2 : 1;
	}
	return *known == 2;
}

/* Sets *is to whether this is the first work of its launch; false: out of memory. */
static bool is_first(struct begins *b, const struct launch *l, bool *is, struct error *err)
{
	if (!b->firsts)
		b->firsts = calloc(FIRSTS, sizeof(*b->firsts));
	if (!b->firsts) {
		fail_memory(err);
		return false;
	}
	uint64_t *first = &b->firsts[l->correlation & (FIRSTS - 1)];
	*is = *first != l->correlation + 1;
	*first = l->correlation + 1;
	return true;
}

static enum status row_find(struct accumulator *f, struct queue *q, size_t gpu, uint32_t name,
			    struct error *err)
{
	union value keys[RANK_KEYS + 2];
	struct table *t = tables_find(f->tables, "launches");

	if (q->row && q->name == name)
		return ST_OK;
	keys[CALL_NAME].text = trace_text(f->trace, name, NULL);
	TRY(acc_gpu_row(f, "launches", gpu, keys, &q->row, err));
	q->name = name;
	if (!q->row[CALL_API_HIST].hist)
		q->row[CALL_API_HIST].hist = table_hist(t, err);
	if (!q->row[CALL_QUEUE_HIST].hist)
		q->row[CALL_QUEUE_HIST].hist = table_hist(t, err);
	return q->row[CALL_API_HIST].hist && q->row[CALL_QUEUE_HIST].hist ? ST_OK : ST_MEMORY;
}

static enum status put_work(struct accumulator *f, const struct event *e, struct error *err)
{
	struct launches *s = f->state;
	const struct launch *l = batch_launch(f->batch, e);
	uint32_t gpu = sweep_gpu_of(f->sweep, e->track);
	bool first;

	if (!l || gpu >= s->gpu_count || e->flags & EVENT_BEGAN_EARLIER)
		return ST_OK;
	struct queue *q = &s->gpus[gpu];
	uint32_t process = sweep_gpu(f->sweep, gpu).process;
	bool graph = is_graph(f, s, l->name);
	TRY(row_find(f, q, gpu, l->name, err));
	if (!is_first(&s->processes[process], l, &first, err))
		return ST_MEMORY;
	q->events++;
	q->graph_events += graph;
	q->row[CALL_EVENTS].u64++;
	q->row[CALL_GPU].u64 += e->end_ns - e->begin_ns;
	if (!graph && e->end_ns - e->begin_ns < l->end_ns - l->begin_ns) {
		q->shorts++;
		q->row[CALL_SHORT].u64++;
	}
	if (!first)
		return ST_OK;
	TRY(begins_open(&s->processes[process], s->from_ns, err));
	TRY(queue_put(q, &s->processes[process],
		      l->begin_ns < s->from_ns ? s->from_ns : l->begin_ns, e, err));
	uint64_t api_ns = l->end_ns - l->begin_ns;
	uint64_t queue_ns = e->begin_ns > l->end_ns ? e->begin_ns - l->end_ns : 0;
	q->launches++;
	q->graphs += graph;
	q->row[CALL_COUNT].u64++;
	q->row[CALL_API].u64 += api_ns;
	q->row[CALL_QUEUE].u64 += queue_ns;
	cell_raise(&q->row[CALL_API_MAX], api_ns);
	cell_raise(&q->row[CALL_QUEUE_MAX], queue_ns);
	TRY(hist_put(q->row[CALL_API_HIST].hist, api_ns, err));
	return hist_put(q->row[CALL_QUEUE_HIST].hist, queue_ns, err);
}

static enum status put_event(struct accumulator *f, const struct event *e, struct error *err)
{
	struct launches *s = f->state;

	if (event_is_gpu_work(e))
		return put_work(f, e, err);
	if (e->kind != KIND_API || !e->correlation)
		return ST_OK;
	uint32_t process = acc_process(f, e->track);
	struct begins *b = &s->processes[process <= s->process_count ? process : 0];
	TRY(begins_open(b, s->from_ns, err));
	b->at_ns[b->count++ & (BEGINS - 1)] = e->begin_ns;
	return ST_OK;
}

static enum status launches_put(struct accumulator *f, const struct sorted_batch *w,
				struct error *err)
{
	struct launches *s = f->state;
	const struct idle_gap *gaps;
	size_t count = sweep_gaps(f->sweep, &gaps);

	TRY(reach(f, s, err));
	if (w->in->count)
		s->from_ns = w->in->from_ns;
	for (size_t i = 0; i < w->in->count; i++)
		TRY(put_event(f, &w->in->events[i], err));
	for (size_t i = 0; i < count; i++) {
		struct queue *q = &s->gpus[gaps[i].gpu];

		if (gaps[i].part == PART_TAIL || gaps[i].origin != ORIGIN_LAUNCH ||
		    gaps[i].is_graph_internal || gaps[i].launch_begin_ns < gaps[i].begin_ns)
			continue;
		TRY(row_find(f, q, gaps[i].gpu, gaps[i].launch_name, err));
		q->row[CALL_WAITED].u64++;
		q->waited++;
	}
	for (size_t i = 0; i < w->segment_count; i++)
		s->gpus[w->segments[i].gpu].window_ns +=
			w->segments[i].end_ns - w->segments[i].begin_ns;
	return ST_OK;
}

static enum status launches_end(struct accumulator *f, struct error *err)
{
	TRY(reach(f, f->state, err));
	for (size_t i = 0; i < sweep_gpu_count(f->sweep); i++) {
		struct launches *s = f->state;
		struct queue *q = &s->gpus[i];
		union value keys[RANK_KEYS + 1], *row;

		queue_settle(q, s->processes[sweep_gpu(f->sweep, i).process].count);
		TRY(acc_gpu_row(f, "launch_queues", i, keys, &row, err));
		row[QUEUE_LAUNCHES].u64 += q->launches;
		row[QUEUE_EVENTS].u64 += q->events;
		row[QUEUE_GRAPHS].u64 += q->graphs;
		row[QUEUE_GRAPH_EVENTS].u64 += q->graph_events;
		row[QUEUE_SHORT].u64 += q->shorts;
		row[QUEUE_WAITED].u64 += q->waited;
		row[QUEUE_QUEUED].u64 += q->queued_ns;
		row[QUEUE_WINDOW].u64 += q->window_ns;
		cell_raise(&row[QUEUE_MAX], q->max);
	}
	return ST_OK;
}

static enum status launches_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "launches"), *queues = tables_find(all, "launch_queues");
	union value *row;

	for (size_t i = 0; (row = table_at(t, i)); i++) {
		if (!row[CALL_COUNT].u64)
			continue;
		row[CALL_API_MEDIAN].u64 = hist_median(row[CALL_API_HIST].hist);
		row[CALL_QUEUE_MEDIAN].u64 = hist_median(row[CALL_QUEUE_HIST].hist);
	}
	for (size_t i = 0; (row = table_at(queues, i)); i++) {
		row[QUEUE_BOUND].f64 = percent_of(row[QUEUE_WAITED].u64, row[QUEUE_LAUNCHES].u64);
		row[QUEUE_MEAN].f64 = row[QUEUE_WINDOW].u64 ? (double)row[QUEUE_QUEUED].u64 /
								      (double)row[QUEUE_WINDOW].u64
							    : 0;
	}
	return ST_OK;
}

const struct report_type report_launches = {
	.name = "launches",
	.help = "launch latency: time in the call, in the queue and on the GPU; queue length",
	.tables = TABLES(&table_launches, &table_launch_queues),
	.state_size = sizeof(struct launches),
	.owned = OWNED(offsetof(struct launches, processes), offsetof(struct launches, gpus),
		       offsetof(struct launches, is_graph)),
	.begin = launches_begin,
	.put = launches_put,
	.end = launches_end,
	.release = launches_release,
	.finish = launches_finish,
};
