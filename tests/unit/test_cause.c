/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causes of idle time that no Kineto file can show: several windows, losses, garbage collection,
 * JIT; that nothing is lost when too much is to be kept; and the lists against plain search.
 * Everything else: tests/oracle/check_idle.py.
 */
#include "analyze/cause/cause.h"
#include "analyze/cause/threads.h"

#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS = 4096, BASE = 1000000 };

struct scene {
	struct trace *trace;
	struct name_rules *rules;
	uint32_t process, thread, other, stream, late;
	struct event events[EVENTS];
	size_t count;
};
struct answer {
	uint64_t ns[CAUSE_COUNT], all_ns, forgotten_ns, after_sync_ns, idle_ns;
	size_t segments;
};

static uint32_t name(struct scene *s, const char *text)
{
	return trace_name(s->trace, text, strlen(text), NULL);
}

static uint32_t stream_make(struct scene *s, uint32_t device)
{
	struct track k = { .type = TRACK_STREAM, .device = device, .context = NO_ID, .id = 7 };
	struct event_desc desc = { .kind = KIND_KERNEL };

	k.process = s->process;
	desc.track = trace_track(s->trace, &k, NULL);
	desc.name = name(s, "gemm");
	trace_desc(s->trace, &desc, NULL);
	return desc.track;
}

static struct scene *scene_open(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct process p = { .pid = 7, .rank = NO_RANK };
	struct track k = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = 7 };

	if (!CHECK(s))
		return NULL;
	CHECK_OK(trace_new(&s->trace, 1 << 22, NULL), NULL);
	CHECK_OK(name_rules_new(&s->rules, NULL, 0, NULL), NULL);
	s->process = trace_process(s->trace, &p, NULL);
	k.process = s->process;
	s->thread = trace_track(s->trace, &k, NULL);
	trace_add_launches(s->trace, s->thread, 1000);
	k.id = 8;
	s->other = trace_track(s->trace, &k, NULL);
	s->stream = stream_make(s, 0);
	return s;
}

static void scene_close(struct scene *s)
{
	trace_free(s->trace);
	name_rules_free(s->rules);
	free(s);
}

static struct event *put(struct scene *s, unsigned kind, uint32_t track, const char *text,
			 uint64_t begin, uint64_t end)
{
	struct event *e = &s->events[s->count++];

	*e = (struct event){ .begin_ns = BASE + begin,
			     .end_ns = BASE + end,
			     .track = track,
			     .kind = (uint8_t)kind };
	e->name = name(s, text);
	return e;
}

static void launch(struct scene *s, uint64_t id, uint64_t begin, uint64_t end, uint64_t work,
		   uint64_t work_end)
{
	put(s, KIND_API, s->thread, "cudaLaunchKernel", begin, end)->correlation = id;
	put(s, KIND_KERNEL, s->stream, "gemm", work, work_end)->correlation = id;
}

static int compare(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	return event_before(a, b) ? -1 : event_before(b, a);
}

static void take(struct answer *a, const struct segment *segments, size_t count,
		 const struct idle_segment *idle, size_t idle_count)
{
	size_t i;

	for (i = 0; i < count; i++)
		a->idle_ns += segments[i].busy ? 0 : segments[i].end_ns - segments[i].begin_ns;
	for (i = 0; i < idle_count; i++) {
		uint64_t ns = idle[i].end_ns - idle[i].begin_ns;

		a->ns[idle[i].cause] += ns;
		a->all_ns += ns;
		a->forgotten_ns += idle[i].is_forgotten ? ns : 0;
		a->after_sync_ns += idle[i].after_sync ? ns : 0;
	}
	a->segments += idle_count;
}

static void run(struct scene *s, size_t batch, size_t keep, struct answer *a)
{
	struct context_request context = { .rules = s->rules,
					   .wants_launches = true,
					   .slack_ns = LAUNCH_SLACK_NS };
	struct source *source;
	struct cause_request how = { .trace = s->trace, .owners = true, .keep = keep };
	const struct segment *segments;
	const struct idle_segment *idle;
	struct sweep *sweep;
	struct causes *causes;
	struct batch b;
	size_t count, idle_count;
	enum status status;

	*a = (struct answer){ .all_ns = 0 };
	qsort(s->events, s->count, sizeof(s->events[0]), compare);
	CHECK_OK(array_source_open(&source, s->events, s->count, batch), NULL);
	CHECK_OK(context_open(&how.context, source, s->trace, &context, NULL), NULL);
	source = context_source(how.context);
	CHECK_OK(sweep_open(&sweep, s->trace, s->rules, false, 1 << 24, NULL), NULL);
	how.sweep = sweep;
	CHECK_OK(causes_open(&causes, &how, NULL), NULL);
	do {
		status = source_next(source, &b, NULL);
		CHECK_OK(sweep_put(sweep, &b, &segments, &count, NULL), NULL);
		CHECK_OK(causes_put(causes, &b, &idle, &idle_count, NULL), NULL);
		take(a, segments, count, idle, idle_count);
	} while (status == ST_OK);
	CHECK_U64(status, ST_END);
	CHECK_OK(sweep_end(sweep, &segments, &count, NULL), NULL);
	CHECK_OK(causes_end(causes, &idle, &idle_count, NULL), NULL);
	take(a, segments, count, idle, idle_count);
	CHECK_U64(a->all_ns, a->idle_ns);
	causes_close(causes);
	sweep_close(sweep);
	source_close(source);
}

void test_cause_gc_and_jit(void)
{
	struct scene *s = scene_open();
	struct answer a;

	if (!s)
		return;
	launch(s, 1, 0, 10, 20, 100);
	put(s, KIND_RANGE, s->other, "gc", 200, 300)->subkind = RANGE_GC;
	put(s, KIND_JIT, s->other, "JIT compilation", 250, 320);
	launch(s, 2, 400, 410, 500, 600);
	run(s, 3, 0, &a);
	CHECK_U64(a.ns[CAUSE_GC], 50); /* what is compiled meanwhile comes first */
	CHECK_U64(a.ns[CAUSE_COMPILE], 70);
	CHECK_U64(a.ns[CAUSE_LAUNCH], 20);
	CHECK_U64(a.ns[CAUSE_DISPATCH], 10 + 90);
	CHECK_U64(a.ns[CAUSE_HOST], 300 - 120);
	CHECK_U64(a.all_ns, 420);
	scene_close(s);
}

void test_cause_lost(void)
{
	struct scene *s = scene_open();
	struct answer a;

	if (!s)
		return;
	launch(s, 1, 0, 10, 20, 100);
	launch(s, 2, 400, 410, 500, 600);
	launch(s, 3, 700, 710, 800, 900);
	trace_lose_between(s->trace, BASE + 590, BASE + 650);
	run(s, 100, 0, &a);
	CHECK_U64(a.ns[CAUSE_LOST], 200); /* the whole gap that it touches, and no other */
	CHECK_U64(a.ns[CAUSE_HOST], 300);
	CHECK_U64(a.all_ns, 20 + 400 + 200);
	scene_close(s);
}

enum { MS = 1000000 };

/* Launched work that does not begin for more than a millisecond, or never, is not in the file. */
void test_cause_unrecorded(void)
{
	struct scene *s = scene_open();
	struct answer a;

	if (!s)
		return;
	launch(s, 1, 0, 10, 20, 100);
	launch(s, 2, 200, 300, 300 + MS, 400 + MS); /* at the limit */
	launch(s, 3, MS + 200, MS + 350, 3 * MS,
	       3 * MS + 100); /* launched while the GPU was busy */
	put(s, KIND_API, s->thread, "cudaGraphLaunch", 4 * MS, 4 * MS + 10)->correlation = 4;
	put(s, KIND_API, s->thread, "cuGraphLaunch", 4 * MS + 2, 4 * MS + 8)->correlation = 4;
	put(s, KIND_API, s->thread, "cudaStreamSynchronize", 4 * MS + 20, 8 * MS);
	launch(s, 5, 9 * MS, 9 * MS + 10, 9 * MS + 20, 9 * MS + 100);
	put(s, KIND_API, s->thread, "cudaLaunchKernel", 9 * MS + 30, 9 * MS + 40)->correlation = 6;
	launch(s, 7, 9 * MS + 900, 9 * MS + 910, 9 * MS + 920, 9 * MS + 1000); /* 6 is lost */
	launch(s, 8, 20 * MS, 20 * MS + 10, 20 * MS + 20, 20 * MS + 100);
	run(s, 4, 0, &a);
	CHECK_U64(a.ns[CAUSE_UNRECORDED], (2 * MS - 400) + (5 * MS + 10) + 820);
	CHECK_U64(a.ns[CAUSE_SYNC], 0);
	CHECK_U64(a.ns[CAUSE_DISPATCH], 10 + MS + 10);
	scene_close(s);
}

/* The hour between two windows is nobody's. */
void test_cause_windows(void)
{
	struct scene *s = scene_open();
	struct window w = { .begin_ns = BASE, .end_ns = BASE + 1000 };
	struct answer a;

	if (!s)
		return;
	w.process = s->process;
	trace_window(s->trace, &w, NULL);
	w.begin_ns = BASE + 3600000000000u;
	w.end_ns = w.begin_ns + 500;
	trace_window(s->trace, &w, NULL);
	launch(s, 1, 10, 20, 30, 900);
	launch(s, 2, 3600000000010u, 3600000000020u, 3600000000030u, 3600000000100u);
	run(s, 2, 0, &a);
	CHECK_U64(a.all_ns, 30 + 100 + 30 + 400);
	CHECK_U64(a.ns[CAUSE_LAUNCH], 20);
	CHECK_U64(a.ns[CAUSE_DISPATCH], 20);
	CHECK_U64(a.ns[CAUSE_HOST], 10 + 100 + 10 + 400);
	scene_close(s);
}

/* A GPU whose first work comes after all that the host did: its lead needs everything. */
static void fill_late(struct scene *s)
{
	size_t i;

	for (i = 0; i < 500; i++) {
		launch(s, i + 1, i * 100, i * 100 + 10, i * 100 + 10, i * 100 + 90);
		put(s, KIND_API, s->thread, "cudaStreamSynchronize", i * 100 + 20, i * 100 + 40);
	}
	s->late = stream_make(s, 1);
	put(s, KIND_API, s->thread, "cudaLaunchKernel", 50000, 50010)->correlation = 9999;
	put(s, KIND_KERNEL, s->late, "gemm", 50010, 50020)->correlation = 9999;
}

void test_cause_late_gpu(void)
{
	struct scene *s = scene_open();
	struct answer all, some;

	if (!s)
		return;
	fill_late(s);
	run(s, 7, 0, &all);
	CHECK_U64(all.forgotten_ns, 0);
	CHECK_U64(all.ns[CAUSE_UNKNOWN], 0);
	CHECK_U64(all.ns[CAUSE_SYNC], 500 * 20); /* of the late GPU's lead; the other is busy */
	run(s, 7, 64, &some);
	CHECK(some.forgotten_ns > 0);
	CHECK_U64(some.ns[CAUSE_UNKNOWN], some.forgotten_ns);
	CHECK(some.ns[CAUSE_SYNC] > 0 && some.ns[CAUSE_SYNC] < 500 * 20);
	CHECK_U64(some.all_ns, all.all_ns);
	scene_close(s);
}

/* How the input is cut into pulls changes nothing. */
void test_cause_batches(void)
{
	struct scene *s = scene_open();
	struct answer one, many;
	uint64_t seed = 77;
	size_t i;

	if (!s)
		return;
	for (i = 0; i < 300; i++) {
		uint64_t r = random_u64(&seed), at = i * 50 + r % 40;

		launch(s, i + 1, at, at + (r >> 8) % 30, at + (r >> 16) % 200,
		       at + (r >> 16) % 200 + (r >> 24) % 60);
		if (r & 1)
			put(s, KIND_API, (r & 2) ? s->thread : s->other,
			    (r & 4) ? "cudaMalloc" : "cudaDeviceSynchronize", at + (r >> 32) % 50,
			    at + (r >> 32) % 50 + 40);
		if ((r & 24) == 24)
			put(s, KIND_RANGE, s->thread, "aten::mm", at, at + (r >> 40) % 300)
				->subkind = RANGE_OP;
	}
	run(s, 1, 0, &one);
	run(s, 4096, 0, &many);
	CHECK_MEM(one.ns, many.ns, sizeof(one.ns));
	CHECK_U64(one.after_sync_ns, many.after_sync_ns);
	CHECK_U64(one.segments, many.segments);
	CHECK(one.ns[CAUSE_SYNC] > 0 && one.ns[CAUSE_ALLOCATOR] > 0);
	scene_close(s);
}

/* ---- the lists -------------------------------------------------------------------------- */

struct plain {
	uint64_t begin_ns, end_ns;
	uint32_t name;
};

static uint32_t innermost(const struct plain *all, size_t count, uint64_t a, uint64_t b)
{
	const struct plain *best = NULL;
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t inside = 0;

		for (uint64_t at = a; at < b; at++)
			inside += all[i].begin_ns <= at && at < all[i].end_ns;
		if (2 * inside > b - a &&
		    (!best || all[i].begin_ns > best->begin_ns ||
		     (all[i].begin_ns == best->begin_ns && all[i].end_ns <= best->end_ns)))
			best = &all[i];
	}
	return best ? best->name : 0;
}

static int compare_plain(const void *pa, const void *pb)
{
	const struct plain *a = pa, *b = pb;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

void test_cause_ranges(void)
{
	struct plain all[60];
	struct keep keep = { .most = 1024 };
	uint64_t seed = 5, a, b;
	size_t round, i, wrong = 0;

	for (round = 0; round < 200; round++) {
		struct ranges ranges = { 0 };

		for (i = 0; i < 60; i++) {
			all[i].begin_ns = 1 + random_u64(&seed) % 100;
			all[i].end_ns = all[i].begin_ns + 1 + random_u64(&seed) % 30;
			all[i].name = (uint32_t)i + 1;
		}
		qsort(all, 60, sizeof(all[0]), compare_plain);
		for (i = 0; i < 60; i++)
			CHECK_OK(ranges_put(&ranges,
					    (struct range){ .begin_ns = all[i].begin_ns,
							    .end_ns = all[i].end_ns,
							    .name = all[i].name },
					    &keep, NULL),
				 NULL);
		for (i = 0; i < 60; i++) {
			a = random_u64(&seed) % 130;
			b = a + 1 + random_u64(&seed) % 10;
			const struct range *found = ranges_find(&ranges, a, b);
			wrong += (found ? found->name : 0) != innermost(all, 60, a, b);
		}
		free(ranges.items);
	}
	CHECK_U64(wrong, 0);
}

void test_cause_names(void)
{
	CHECK_U64(cause_call_class("cuStreamSynchronize_ptsz"), CALL_SYNC);
	CHECK_U64(cause_call_class("cudaMemcpyAsync"), CALL_COPY);
	CHECK_U64(cause_call_class("hipMemcpyWithStream"), CALL_BLOCKING_COPY);
	CHECK_U64(cause_call_class("cuMemFree_v2"), CALL_ALLOCATOR);
	CHECK_U64(cause_call_class("cudaFreeAsync"), CALL_ALLOCATOR);
	CHECK_U64(cause_call_class("cuModuleLoadDataEx"), CALL_COMPILE);
	CHECK_U64(cause_call_class("cudaGraphAddMemAllocNode"), CALL_OTHER);
	CHECK_U64(cause_call_class("cudaLaunchKernel"), CALL_KERNELS);
	CHECK_U64(cause_call_class("cudaMemsetAsync"), CALL_OTHER);
	CHECK_U64(cause_call_class("cudaStreamCreate"), CALL_SETUP);
	CHECK_U64(cause_overhead("Buffer Flush"), CAUSE_PROFILER);
	CHECK_U64(cause_overhead("Driver Compiler"), CAUSE_COMPILE);
	CHECK_U64(cause_overhead("Command Buffer Full"), CAUSE_COUNT);
}
