/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep against plain arithmetic: small random traces, every nanosecond asked by itself which
 * events are open in it, who owns it, and what the host does meanwhile.
 */
#include "analyze/timeline/sweep.h"

#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH = 160, EVENTS = 40, GPUS = 2, STREAMS = 3, CLASSES = 3, ORIGIN = 1000 };

struct world {
	struct trace *trace;
	struct name_rules *rules;
	uint32_t streams[GPUS][STREAMS], thread, names[CLASSES], process;
	struct event events[EVENTS];
	size_t count;
	struct phase_interval intervals[LENGTH];
	size_t interval_count;
	uint8_t phase_at[LENGTH];
	uint64_t mark_end;
};

static uint32_t name(struct world *w, const char *text)
{
	return trace_name(w->trace, text, strlen(text), NULL);
}

static void world_open(struct world *w)
{
	static const char *const kernels[CLASSES] = { "gemm", "ncclDevKernel", "Memcpy HtoD" };
	struct process p = { .pid = 7, .rank = NO_RANK };
	struct track k = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = 7 };
	size_t i, j;

	memset(w, 0, sizeof(*w));
	CHECK_OK(trace_new(&w->trace, 1 << 20, NULL), NULL);
	CHECK_OK(name_rules_new(&w->rules, NULL, 0, NULL), NULL);
	w->process = trace_process(w->trace, &p, NULL);
	k.process = w->process;
	w->thread = trace_track(w->trace, &k, NULL);
	k.type = TRACK_STREAM;
	for (i = 0; i < GPUS; i++)
		for (j = 0; j < STREAMS; j++) {
			k.device = (uint32_t)i;
			k.id = 20 - j; /* lower streams later in the file */
			w->streams[i][j] = trace_track(w->trace, &k, NULL);
		}
	for (i = 0; i < CLASSES; i++)
		w->names[i] = name(w, kernels[i]);
}

static void world_close(struct world *w)
{
	trace_free(w->trace);
	name_rules_free(w->rules);
}

static int compare_events(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (event_before(a, b) || event_before(b, a))
		return event_before(a, b) ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* Some host calls and some GPU work with many ties and empty events. */
static void world_fill(struct world *w, uint64_t *seed)
{
	size_t i, at;

	w->count = 1 + random_u64(seed) % EVENTS;
	for (i = 0; i < w->count; i++) {
		uint64_t r = random_u64(seed);
		struct event *e = &w->events[i];
		size_t class = r % CLASSES;

		*e = (struct event){ .begin_ns = ORIGIN + (r >> 8) % (LENGTH - 30),
				     .number = i + 1 };
		e->end_ns = e->begin_ns + ((r >> 16) % 4 ? (r >> 20) % 25 : 0);
		if (i && (r >> 28) % 4 == 0) {
			e->kind = KIND_API;
			e->track = w->thread;
			continue;
		}
		e->kind = class == 2 ? KIND_MEMCPY : KIND_KERNEL;
		e->name = w->names[class];
		e->track = w->streams[(r >> 32) % GPUS][(r >> 40) % STREAMS];
	}
	qsort(w->events, w->count, sizeof(w->events[0]), compare_events);
	for (at = 0; at < LENGTH;) {
		uint64_t r = random_u64(seed);
		size_t end = at + 1 + r % 30;

		for (; at < end && at < LENGTH; at++)
			w->phase_at[at] = (uint8_t)((r >> 8) % PHASE_KNOWN);
	}
}

/* Tiles of equal instants; before the host's first event it does nothing that has a name. */
static void intervals_make(struct world *w)
{
	uint64_t first = ORIGIN + LENGTH;
	size_t i;

	for (i = w->count; i; i--)
		if (!event_is_gpu_work(&w->events[i - 1]))
			first = w->events[i - 1].begin_ns;
	memset(w->phase_at, PHASE_OTHER, first - ORIGIN);
	w->interval_count = 0;
	for (i = 0; i < LENGTH; i++) {
		if (!i || w->phase_at[i] != w->phase_at[i - 1])
			w->intervals[w->interval_count++] =
				(struct phase_interval){ .begin_ns = ORIGIN + i,
							 .process = w->process,
							 .phase = w->phase_at[i] };
		w->intervals[w->interval_count - 1].end_ns = ORIGIN + i + 1;
	}
}

/* ---- plain arithmetic ------------------------------------------------------------------- */

static int class_of(const struct world *w, const struct event *e)
{
	return e->kind == KIND_MEMCPY ? 2 : e->name == w->names[1] ? 1 : 0;
}

static bool is_on(const struct world *w, const struct event *e, uint32_t gpu)
{
	return event_is_gpu_work(e) && trace_get_track(w->trace, e->track)->device == gpu;
}

static bool comes_before(const struct world *w, const struct event *a, const struct event *b)
{
	uint64_t x = trace_get_track(w->trace, a->track)->id;
	uint64_t y = trace_get_track(w->trace, b->track)->id;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	if (x != y)
		return x < y;
	return a->correlation < b->correlation;
}

struct instant { /* what is true of one nanosecond of one GPU */
	int busy;
	const struct event *owner; /* of several that are equal in all but their place: any */
};

static struct instant ask(const struct world *w, uint32_t gpu, uint64_t t)
{
	struct instant found = { 0, NULL };
	const struct event *best[CLASSES] = { NULL, NULL, NULL };
	size_t i;

	for (i = 0; i < w->count; i++) {
		const struct event *e = &w->events[i];
		int class = class_of(w, e);

		if (!is_on(w, e, gpu) || e->begin_ns > t || e->end_ns <= t)
			continue;
		found.busy |= 1 << class;
		if (!best[class] || comes_before(w, e, best[class]))
			best[class] = e;
	}
	for (i = 0; i < CLASSES && !found.owner; i++)
		found.owner = best[i];
	for (i = 0; !found.busy && i < w->count; i++) {
		const struct event *e = &w->events[i];

		if (is_on(w, e, gpu) && e->begin_ns > t &&
		    (!found.owner || comes_before(w, e, found.owner)))
			found.owner = e;
	}
	return found;
}

struct bounds {
	uint64_t begin, first, last, end; /* of the window and, in it, of the span */
	bool any;
};

static struct bounds bounds_of(const struct world *w, uint32_t gpu)
{
	struct bounds b = { UINT64_MAX, UINT64_MAX, 0, w->mark_end, false };
	size_t i;

	for (i = 0; i < w->count; i++) {
		const struct event *e = &w->events[i];
		bool mine = is_on(w, e, gpu);

		if (mine || !event_is_gpu_work(e))
			b.begin = e->begin_ns < b.begin ? e->begin_ns : b.begin;
		if (!mine)
			continue;
		b.any = true;
		b.first = e->begin_ns < b.first ? e->begin_ns : b.first;
		b.last = e->end_ns > b.last ? e->end_ns : b.last;
	}
	b.end = b.last > b.end ? b.last : b.end;
	return b;
}

/* ---- the sweep beside it ---------------------------------------------------------------- */

struct answer {
	struct segment at[GPUS][LENGTH];
	bool is_set[GPUS][LENGTH];
	unsigned twice, unsorted;
	uint64_t last_end[4];
};

static void take(struct answer *a, struct sweep *s, const struct segment *segments, size_t count)
{
	size_t i;
	uint64_t t;

	for (i = 0; i < count; i++) {
		uint32_t device = sweep_gpu(s, segments[i].gpu).device;

		a->unsorted += segments[i].begin_ns < a->last_end[segments[i].gpu] ||
			       segments[i].begin_ns >= segments[i].end_ns;
		a->last_end[segments[i].gpu] = segments[i].end_ns;
		for (t = segments[i].begin_ns; t < segments[i].end_ns; t++) {
			a->twice += a->is_set[device][t - ORIGIN];
			a->is_set[device][t - ORIGIN] = true;
			a->at[device][t - ORIGIN] = segments[i];
		}
	}
}

/* Events in batches; stretches when they are over, a little late, or all at the end. */
static struct sweep *sweep_run(struct world *w, struct answer *a, uint64_t *seed)
{
	const struct segment *segments;
	struct sweep *s = NULL;
	size_t at = 0, interval = 0, batch, count, late = random_u64(seed) % 3 * 20;
	struct step_mark mark = { .begin_ns = w->events[0].begin_ns,
				  .end_ns = w->mark_end,
				  .process = w->process };
	bool has_mark = w->mark_end > 0;

	CHECK_OK(sweep_open(&s, w->trace, w->rules, false, 1 << 20, NULL), NULL);
	while (at < w->count || interval < w->interval_count) {
		struct batch in = { .events = w->events + at };

		batch = 1 + random_u64(seed) % 9;
		in.count = batch < w->count - at ? batch : w->count - at;
		at += in.count;
		in.marks = &mark;
		in.mark_count = has_mark;
		has_mark = false;
		in.intervals = w->intervals + interval;
		while (interval < w->interval_count &&
		       (at == w->count ||
			w->intervals[interval].end_ns + late <= w->events[at - 1].begin_ns)) {
			interval++;
			in.interval_count++;
		}
		CHECK_OK(sweep_put(s, &in, &segments, &count, NULL), NULL);
		take(a, s, segments, count);
	}
	CHECK_OK(sweep_end(s, &segments, &count, NULL), NULL);
	take(a, s, segments, count);
	return s;
}

static unsigned compare_gpu(const struct world *w, const struct answer *a, struct sweep *s,
			    uint32_t gpu)
{
	struct bounds b = bounds_of(w, gpu);
	uint64_t during[SWEEP_PHASES] = { 0 }, t;
	unsigned wrong = 0;
	size_t i, k;

	for (t = ORIGIN; t < ORIGIN + LENGTH; t++) {
		bool inside = b.any && t >= b.begin && t < b.end;
		const struct segment *seg = &a->at[gpu][t - ORIGIN];
		struct instant want = ask(w, gpu, t);

		wrong += inside != a->is_set[gpu][t - ORIGIN];
		if (!inside || !a->is_set[gpu][t - ORIGIN])
			continue;
		wrong += seg->part != (t < b.first  ? PART_LEAD
				       : t < b.last ? PART_SPAN
						    : PART_TAIL);
		wrong += seg->busy != want.busy;
		if (want.owner)
			wrong += seg->name != want.owner->name || seg->kind != want.owner->kind;
		if (!want.busy)
			during[w->phase_at[t - ORIGIN]]++;
	}
	for (i = 0; i < sweep_gpu_count(s); i++)
		for (k = 0; sweep_gpu(s, i).device == gpu && k < SWEEP_PHASES; k++)
			wrong += sweep_gpu(s, i).during->ns[k] != during[k];
	return wrong;
}

void test_sweep_equals_arithmetic(void)
{
	struct answer *a = malloc(sizeof(*a));
	struct world w;
	uint64_t seed = 20261120;
	unsigned round, wrong = 0;
	struct sweep *s;

	if (!CHECK(a != NULL))
		return;
	world_open(&w);
	for (round = 0; round < 3000 && !wrong; round++) {
		memset(a, 0, sizeof(*a));
		world_fill(&w, &seed);
		w.mark_end = random_u64(&seed) % 3 ? 0 : ORIGIN + LENGTH - random_u64(&seed) % 40;
		if (w.mark_end && w.mark_end < w.events[0].begin_ns)
			w.mark_end = 0;
		if (w.mark_end && event_is_gpu_work(&w.events[0])) {
			w.events[0].kind = KIND_API; /* the mark is a host event */
			w.events[0].track = w.thread;
		}
		intervals_make(&w);
		s = sweep_run(&w, a, &seed);
		wrong += a->twice + a->unsorted;
		wrong += compare_gpu(&w, a, s, 0) + compare_gpu(&w, a, s, 1);
		sweep_close(s);
	}
	if (!CHECK_U64(wrong, 0))
		CHECK_U64(round, 0); /* which one */
	world_close(&w);
	free(a);
}

void test_sweep_windows_are_apart(void)
{
	struct world w;
	struct window window = { .begin_ns = 1000, .end_ns = 1100 };
	const struct segment *segments;
	const struct sweep_window *over;
	const struct idle_gap *gaps;
	struct sweep *s = NULL;
	struct batch in = { 0 };
	uint64_t sum = 0, lead = 0, tail = 0;
	size_t count, i;

	world_open(&w);
	window.process = w.process;
	trace_window(w.trace, &window, NULL);
	window.begin_ns = 900000;
	window.end_ns = 900050;
	trace_window(w.trace, &window, NULL);
	w.events[0] = (struct event){ .begin_ns = 1010,
				      .end_ns = 1040,
				      .kind = KIND_KERNEL,
				      .name = w.names[0],
				      .track = w.streams[0][0],
				      .correlation = 9 }; /* of one graph, but in two windows */
	w.events[1] = w.events[0];
	w.events[1].begin_ns = 900020;
	w.events[1].end_ns = 900025;
	in.events = w.events;
	in.count = 2;
	CHECK_OK(sweep_open(&s, w.trace, w.rules, false, 1 << 20, NULL), NULL);
	CHECK_OK(sweep_put(s, &in, &segments, &count, NULL), NULL);
	for (i = 0; i < count; i++)
		sum += segments[i].end_ns - segments[i].begin_ns;
	CHECK_OK(sweep_end(s, &segments, &count, NULL), NULL);
	for (i = 0; i < count; i++) {
		uint64_t ns = segments[i].end_ns - segments[i].begin_ns;

		sum += ns;
		lead += segments[i].part == PART_LEAD ? ns : 0;
		tail += segments[i].part == PART_TAIL ? ns : 0;
	}
	for (i = 0, count = sweep_gaps(s, &gaps); i < count; i++)
		CHECK(!gaps[i].is_graph_internal);
	CHECK(count > 1);
	CHECK_U64(sum, 150);
	CHECK_U64(lead, 20);
	CHECK_U64(tail, 25);
	CHECK_U64(sweep_windows(s, &over), 2);
	CHECK_U64(sweep_process(s, w.process).span_ns, 150);
	CHECK_U64(sweep_gpu(s, 0).during->ns[PHASE_OTHER], 150 - 35);
	sweep_close(s);
	world_close(&w);
}

/* A cut has taken the GPU work: the window ends with the last host event, whatever comes behind. */
void test_sweep_host_alone(void)
{
	struct world w;
	const struct segment *segments;
	struct sweep *s = NULL;
	struct batch in = { .count = 2, .interval_count = 2 };
	size_t count;

	world_open(&w);
	w.events[0] = (struct event){
		.begin_ns = 1000, .end_ns = 1050, .kind = KIND_API, .track = w.thread
	};
	w.events[1] = (struct event){ .begin_ns = 1070, .end_ns = 1070, .kind = KIND_ALLOC };
	w.intervals[0] =
		(struct phase_interval){ 1000, 1040, w.process, 0, PHASE_FORWARD, true, false };
	w.intervals[1] =
		(struct phase_interval){ 1040, 1080, w.process, 0, PHASE_OTHER, false, false };
	in.events = w.events;
	in.intervals = w.intervals;
	CHECK_OK(sweep_open(&s, w.trace, w.rules, false, 1 << 20, NULL), NULL);
	CHECK_OK(sweep_put(s, &in, &segments, &count, NULL), NULL);
	CHECK_OK(sweep_end(s, &segments, &count, NULL), NULL);
	CHECK_U64(sweep_process(s, w.process).span_ns, 50);
	CHECK_U64(sweep_process(s, w.process).wall->ns[PHASE_FORWARD], 40);
	CHECK_U64(sweep_process(s, w.process).wall->ns[PHASE_OTHER], 10);
	sweep_close(s);
	world_close(&w);
}

/* What the host does for a profiler bounds no window, though GPU work begins with it, in whatever
 * order the three stand. */
void test_sweep_profiler_begins_with_work(void)
{
	static const char orders[6][4] = { "abc", "acb", "bac", "bca", "cab", "cba" };

	for (size_t i = 0; i < 6; i++) {
		struct world w;
		const struct segment *segments;
		struct sweep *s = NULL;
		struct batch in = { .count = 5 };
		size_t count, k;
		uint64_t lead_ns = 0;

		world_open(&w);
		struct event same[] = {
			{ .end_ns = 1010, .kind = KIND_API, .track = w.thread },
			{ .end_ns = 1020, .kind = KIND_KERNEL, .track = w.streams[0][0] },
			{ .end_ns = 1005,
			  .kind = KIND_RANGE,
			  .subkind = RANGE_PYTHON,
			  .track = w.thread,
			  .name = name(&w, "$profiler.py:101 start_trace") },
		};
		for (k = 0; k < 3; k++) {
			w.events[k] = same[orders[i][k] - 'a'];
			w.events[k].begin_ns = 1000;
		}
		w.events[3] = (struct event){
			.begin_ns = 1007, .end_ns = 1008, .kind = KIND_API, .track = w.thread
		};
		w.events[4] = (struct event){ .begin_ns = 1030,
					      .end_ns = 1040,
					      .kind = KIND_KERNEL,
					      .track = w.streams[1][0] };
		in.events = w.events;
		CHECK_OK(sweep_open(&s, w.trace, w.rules, false, 1 << 20, NULL), NULL);
		CHECK_OK(sweep_put(s, &in, &segments, &count, NULL), NULL);
		for (int end = 0; end < 2; end++) {
			for (k = 0; k < count; k++)
				if (segments[k].part == PART_LEAD)
					lead_ns += segments[k].end_ns - segments[k].begin_ns;
			if (!end)
				CHECK_OK(sweep_end(s, &segments, &count, NULL), NULL);
		}
		CHECK_U64(lead_ns, 1030 - 1007);
		sweep_close(s);
		world_close(&w);
	}
}

void test_sweep_ceiling(void)
{
	struct world w;
	const struct segment *segments;
	struct sweep *s = NULL;
	struct event e;
	struct batch in = { .events = &e, .count = 1 };
	enum status status = ST_OK;
	size_t count, i;

	world_open(&w);
	CHECK_OK(sweep_open(&s, w.trace, w.rules, false, 64 * 1024, NULL), NULL);
	for (i = 0; i < 100000 && status == ST_OK; i++) {
		e = (struct event){ .begin_ns = 1000 + i,
				    .end_ns = 1u << 30,
				    .kind = KIND_KERNEL,
				    .name = w.names[0],
				    .track = w.streams[0][0] };
		status = sweep_put(s, &in, &segments, &count, NULL);
	}
	CHECK_U64(status, ST_CEILING);
	CHECK(i > 100);
	sweep_close(s);
	world_close(&w);
}
