/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "convert/stage/context/internal.h"
#include "tests/unit/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 64 };

struct play {
	struct trace *trace;
	struct name_rules *rules;
	uint32_t process[2], thread[2], stream[2];
	struct event events[EVENTS_MAX];
	size_t count, batch, window;
	uint64_t slack_ns;
	struct context *c;
	struct source *s; /* of the same */
	struct batch last;

	struct event out[EVENTS_MAX];
	struct launch launch[EVENTS_MAX]; /* zeroed: unknown */
	size_t given;
};

static struct error error;

static uint32_t name_of(struct play *p, const char *text)
{
	return trace_name(p->trace, text, strlen(text), &error);
}

static void play_open(struct play *p)
{
	memset(p, 0, sizeof(*p));
	p->batch = 2;
	CHECK_OK(name_rules_new(&p->rules, NULL, 0, &error), &error);
	CHECK_OK(trace_new(&p->trace, 16 << 20, &error), &error);
	for (unsigned i = 0; i < 2; i++) {
		struct process process = { .pid = i + 1 };
		struct track thread = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID };
		struct track stream = { .type = TRACK_STREAM, .id = 7 };

		p->process[i] = trace_process(p->trace, &process, &error);
		thread.process = stream.process = p->process[i];
		p->thread[i] = trace_track(p->trace, &thread, &error);
		p->stream[i] = trace_track(p->trace, &stream, &error);
	}
}

static void play_close(struct play *p)
{
	source_close(p->s);
	name_rules_free(p->rules);
	trace_free(p->trace);
}

static struct event *put(struct play *p, uint8_t kind, uint32_t track, const char *name,
			 uint64_t begin_ns, uint64_t end_ns, uint64_t correlation)
{
	struct event *e = &p->events[p->count++];
	struct event_desc desc = { .track = track, .name = name_of(p, name), .kind = kind };

	if (kind == KIND_RANGE)
		desc.subkind = RANGE_ANNOTATION;
	trace_desc(p->trace, &desc, &error);
	*e = (struct event){ .begin_ns = begin_ns,
			     .end_ns = end_ns,
			     .correlation = correlation,
			     .track = track,
			     .name = desc.name,
			     .kind = kind,
			     .subkind = desc.subkind };
	return e;
}

static void call(struct play *p, const char *name, uint64_t begin_ns, uint64_t end_ns,
		 uint64_t correlation)
{
	put(p, KIND_API, p->thread[0], name, begin_ns, end_ns, correlation);
}

static void kernel(struct play *p, uint64_t begin_ns, uint64_t correlation)
{
	put(p, KIND_KERNEL, p->stream[0], "sgemm", begin_ns, begin_ns + 5, correlation);
}

/* Owns `below`. */
static void play_open_context(struct play *p, struct source *below)
{
	struct context_request how = {
		.rules = p->rules,
		.wants_launches = true,
		.window = p->window,
		.slack_ns = p->slack_ns,
	};

	source_close(p->s);
	CHECK_OK(context_open(&p->c, below, p->trace, &how, &error), &error);
	p->s = context_source(p->c);
}

static void play_start(struct play *p)
{
	struct source *below;

	array_source_open(&below, p->events, p->count, p->batch);
	play_open_context(p, below);
}

static enum status play_next(struct play *p)
{
	enum status status = source_next(p->s, &p->last, &error);

	for (size_t i = 0; status == ST_OK && i < p->last.count; i++) {
		const struct event *e = &p->last.events[i];
		const struct launch *l = batch_launch(&p->last, e);

		if (l) {
			p->launch[p->given] = *l;
			CHECK(e->step == l->step && e->phase == l->phase && e->path == l->path);
		} else if (event_is_gpu_work(e)) {
			CHECK_U64(e->step | e->phase | e->path, 0);
		}
		p->out[p->given++] = *e;
	}
	return status;
}

static struct launch_totals play_run(struct play *p)
{
	play_start(p);
	while (play_next(p) == ST_OK)
		;
	CHECK_U64(p->given, p->count);
	return context_launch_totals(p->c, p->process[0]);
}

void test_link_copies(void)
{
	struct play p;
	struct launch_totals t;

	play_open(&p);
	kernel(&p, 5, 9); /* launched before the recording began */
	put(&p, KIND_RANGE, p.thread[0], "ProfilerStep#41", 6, 30, 0);
	put(&p, KIND_RANGE, p.thread[0], "forward", 7, 25, 0);
	call(&p, "cudaLaunchKernel", 13, 20, 1);
	call(&p, "cudaMemcpyAsync", 24, 30, 2);
	call(&p, "cudaEventRecord", 35, 36, 3);
	kernel(&p, 40, 1);
	put(&p, KIND_MEMCPY, p.stream[0], "Memcpy HtoD", 50, 60, 2);
	put(&p, KIND_SYNC, p.stream[0], "Stream Sync", 55, 56, 3);
	kernel(&p, 61, 8); /* lost */
	kernel(&p, 70, 0);
	call(&p, "cudaGraphLaunch", 87, 90, 4);
	kernel(&p, 95, 4);
	kernel(&p, 100, 4);
	call(&p, "cudaMemsetAsync", 111, 112, 5); /* nothing comes of it */
	call(&p, "cudaGraphAddMemcpyNode", 114, 115, 6);
	t = play_run(&p);
	CHECK_U64(p.launch[0].begin_ns, 0);
	CHECK_U64(p.out[6].step, 42);
	CHECK_U64(p.out[6].phase, PHASE_FORWARD);
	CHECK_STR(trace_text(p.trace, trace_owner(p.trace, p.out[6].path), NULL), "forward");
	CHECK_U64(p.launch[6].begin_ns, 13);
	CHECK_U64(p.launch[6].end_ns, 20);
	CHECK_U64(p.launch[6].track, p.thread[0]);
	CHECK_U64(p.launch[7].begin_ns, 24);
	CHECK_U64(p.launch[8].begin_ns, 35); /* the synchronisation */
	CHECK_U64(p.out[8].step, 42 | STEP_GAP);
	CHECK_U64(p.launch[9].begin_ns, 0);
	CHECK_U64(p.launch[10].begin_ns, 0);
	CHECK_U64(p.launch[12].begin_ns, 87);
	CHECK_U64(p.launch[13].begin_ns, 87);
	CHECK_U64(t.gpu_events, 7);
	CHECK_U64(t.with_launch, 4);
	CHECK_U64(t.launches, 4);
	CHECK_U64(t.without_gpu_event, 1);
	CHECK_U64(t.fell_out, 0);
	CHECK_U64(t.ids, 6);
	CHECK_U64(t.id_range, 8);
	play_close(&p);
}

static uint64_t range_of_ids(uint64_t count, uint64_t apart, uint64_t stray)
{
	struct id_set set = { .shift = 0 };
	uint64_t range;

	for (uint64_t i = 0; i < count; i++) /* not in order */
		CHECK_OK(id_set_add(&set, ((i ^ 5) + 1) * apart, &error), &error);
	CHECK_OK(id_set_add(&set, stray, &error), &error);
	range = id_set_range(&set, count + 1);
	free(set.runs);
	return range;
}

/* A few stray ids do not make a sample of a whole trace, nor a sample whole. */
void test_link_id_range(void)
{
	uint64_t whole = range_of_ids(4096, 7, 7), with_stray = range_of_ids(4096, 7, UINT32_MAX);

	CHECK(whole > 28000 && whole <= 28672);
	CHECK(with_stray > 28000 && with_stray <= 28673);
	CHECK_U64(range_of_ids(8, 9, UINT32_MAX), 1 + 4 * 1 + 4 * 9);
	CHECK(range_of_ids(4096, 1000, UINT32_MAX) > 4000000);
	CHECK(range_of_ids(24, 1000, 1) > 24 * 100);
	CHECK_U64(range_of_ids(1, UINT64_MAX, 1), 2);
	CHECK_U64(range_of_ids(0, 1, 7), 1);
}

/* Work that seems to begin before its call, by less than the slack. */
void test_link_slack(void)
{
	struct play p;

	play_open(&p);
	p.slack_ns = 100;
	p.batch = 1;
	kernel(&p, 1000, 1);
	kernel(&p, 1000, 2);
	kernel(&p, 1000, 3);
	call(&p, "cudaLaunchKernel", 1000, 1010, 1); /* the same tick */
	call(&p, "cudaLaunchKernel", 1100, 1110, 2);
	call(&p, "cudaLaunchKernel", 1101, 1111, 3); /* too far */
	kernel(&p, 5000, 3);
	CHECK_U64(play_run(&p).with_launch, 3);
	CHECK_U64(p.launch[0].begin_ns, 1000);
	CHECK_U64(p.launch[1].begin_ns, 1100);
	CHECK_U64(p.launch[2].begin_ns, 0);
	CHECK_U64(p.launch[6].begin_ns, 1101); /* its first work, without a call, is no call */
	play_close(&p);
}

/* The driver's call inside the runtime's, and an id that is used again. */
void test_link_same_id(void)
{
	struct play p;
	struct launch_totals t;

	play_open(&p);
	call(&p, "cudaLaunchKernel", 10, 30, 1);
	call(&p, "cuLaunchKernel", 12, 28, 1);
	kernel(&p, 40, 1);
	call(&p, "cudaLaunchKernel", 50, 60, 1);
	kernel(&p, 70, 1);
	t = play_run(&p);
	CHECK_U64(p.launch[2].begin_ns, 10);
	CHECK_U64(p.launch[4].begin_ns, 50);
	CHECK_U64(t.launches, 2);
	CHECK_U64(t.without_gpu_event, 0);
	play_close(&p);
}

/* Ids are those of one process. */
void test_link_processes(void)
{
	struct play p;

	play_open(&p);
	call(&p, "cudaLaunchKernel", 10, 30, 1);
	put(&p, KIND_KERNEL, p.stream[1], "sgemm", 35, 40, 1);
	put(&p, KIND_API, p.thread[1], "hipModuleLaunchKernel", 41, 42, 2);
	put(&p, KIND_KERNEL, p.stream[1], "sgemm", 50, 60, 2);
	kernel(&p, 61, 1);
	CHECK_U64(play_run(&p).with_launch, 1);
	CHECK_U64(p.launch[1].begin_ns, 0);
	CHECK_U64(p.launch[3].begin_ns, 41);
	CHECK_U64(p.launch[4].begin_ns, 10);
	CHECK_U64(context_launch_totals(p.c, p.process[1]).launches, 1);
	CHECK_U64(context_launch_totals(p.c, 99).launches, 0);
	play_close(&p);
}

/* A ring of four calls: the oldest makes room, and is missed if it launched something. */
void test_link_window(void)
{
	struct play p;
	struct launch_totals t;

	play_open(&p);
	p.window = 4;
	for (uint64_t i = 1; i <= 6; i++)
		call(&p, "cudaLaunchKernel", i * 10, i * 10 + 5, i);
	call(&p, "cudaStreamSynchronize", 71, 75, 7);
	kernel(&p, 100, 1);
	kernel(&p, 101, 5);
	kernel(&p, 102, 6);
	t = play_run(&p);
	CHECK_U64(p.launch[7].begin_ns, 0);
	CHECK_U64(p.launch[8].begin_ns, 50);
	CHECK_U64(p.launch[9].begin_ns, 60);
	CHECK_U64(t.fell_out, 4); /* the last went for the kernel whose call was gone */
	CHECK_U64(t.launches, 6);
	CHECK_U64(t.without_gpu_event, 4);
	CHECK_U64(t.with_launch, 2);
	play_close(&p);
}

/* How many kernels lack their call, which began at 10 ns times its number. */
static uint64_t count_unlinked(struct play *p, const struct event *events, size_t count)
{
	struct source *below;
	struct batch b;
	uint64_t bad = 0;

	array_source_open(&below, events, count, 4096);
	play_open_context(p, below);
	while (source_next(p->s, &b, &error) == ST_OK)
		for (size_t i = 0; i < b.count; i++) {
			const struct launch *l = batch_launch(&b, &b.events[i]);

			bad += b.events[i].kind == KIND_KERNEL &&
			       (!l || l->begin_ns != (b.events[i].correlation - 1) / 3 * 10);
		}
	return bad;
}

/* Many calls, each with its work a thousand calls later. */
void test_link_many(void)
{
	enum { CALLS = 200000, BEHIND = 1000 };
	struct play p;
	struct event *events = calloc(2 * CALLS, sizeof(*events));
	size_t count = 0;

	play_open(&p);
	if (!CHECK(events != NULL))
		return;
	for (uint64_t i = 0; i < CALLS + BEHIND; i++) {
		if (i < CALLS)
			events[count++] = (struct event){ .begin_ns = i * 10,
							  .end_ns = i * 10 + 5,
							  .kind = KIND_API,
							  .track = p.thread[0],
							  .name = name_of(&p, "cudaLaunchKernel"),
							  .correlation = i * 3 + 1 };
		if (i >= BEHIND)
			events[count++] = (struct event){ .begin_ns = i * 10 + 1,
							  .end_ns = i * 10 + 2,
							  .kind = KIND_KERNEL,
							  .track = p.stream[0],
							  .correlation = (i - BEHIND) * 3 + 1 };
	}
	/* A window of 1,024 is short for 1,000 calls behind and 50 that are read ahead. */
	p.slack_ns = 500;
	p.window = 1024;
	CHECK(count_unlinked(&p, events, count) > 0);
	p.window = 0;
	CHECK_U64(count_unlinked(&p, events, count), 0);
	CHECK_U64(context_launch_totals(p.c, p.process[0]).with_launch, CALLS);
	free(events);
	play_close(&p);
}

/* Calls of the packed part of the window, in changing steps, phases and owners. */
enum { FAR_STEP = 1000, FAR_RANGE = 150 };

static void far_call(struct play *p, uint64_t i, struct event *out)
{
	*out = (struct event){
		.begin_ns = i * 10,
		.end_ns = i * 10 + 1 + i % 5,
		.kind = KIND_API,
		.track = p->thread[0],
		.name = name_of(p, i % 3 ? "cudaLaunchKernel" : "cudaFree"),
		.correlation = (i % 2 << 40) + i * 2 + 1,
	};
}

static const char *far_owner(uint64_t i)
{
	return i / FAR_RANGE % 2 ? "x" : "forward";
}

/* A mark or a range over the next `calls` calls. */
static void far_range(struct play *p, const char *name, uint64_t i, uint64_t calls,
		      struct event *out)
{
	struct event_desc desc = { .track = p->thread[0],
				   .name = name_of(p, name),
				   .kind = KIND_RANGE,
				   .subkind = RANGE_ANNOTATION };

	trace_desc(p->trace, &desc, &error);
	*out = (struct event){ .begin_ns = i * 10,
			       .end_ns = (i + calls) * 10,
			       .kind = KIND_RANGE,
			       .subkind = RANGE_ANNOTATION,
			       .track = p->thread[0],
			       .name = desc.name };
}

static void far_work(struct play *p, uint64_t at, uint64_t of, struct event *out)
{
	*out = (struct event){ .begin_ns = at * 10 + 1,
			       .end_ns = at * 10 + 2,
			       .kind = KIND_KERNEL,
			       .track = p->stream[0],
			       .correlation = (of % 2 << 40) + of * 2 + 1 };
}

static bool far_is_right(const struct play *p, const struct launch *l, uint64_t i)
{
	struct event of;

	far_call((struct play *)p, i, &of);
	return l->begin_ns == of.begin_ns && l->end_ns == of.end_ns && l->track == of.track &&
	       l->name == of.name && l->correlation == of.correlation &&
	       l->step == i / FAR_STEP + 1 &&
	       strcmp(trace_text(p->trace, trace_owner(p->trace, l->path), NULL), far_owner(i)) ==
		       0 &&
	       strcmp(context_phase(p->c, l->phase).name, far_owner(i)) == 0;
}

/* Work of calls that are far back, in no order; `window` calls are kept. */
static void far_play(size_t window, uint64_t calls, uint64_t behind)
{
	struct event *events = calloc(3 * calls, sizeof(*events));
	uint64_t bad = 0, found = 0, seed = 1, lost = 0;
	struct play p;
	struct source *below;
	struct batch b;
	size_t count = 0;
	char mark[32];

	play_open(&p);
	if (!CHECK(events != NULL))
		return;
	for (uint64_t i = 0; i < calls; i++) {
		snprintf(mark, sizeof(mark), "ProfilerStep#%u", (unsigned)(i / FAR_STEP));
		if (i % FAR_STEP == 0)
			far_range(&p, mark, i, FAR_STEP, &events[count++]);
		if (i % FAR_RANGE == 0)
			far_range(&p, far_owner(i), i, FAR_RANGE, &events[count++]);
		far_call(&p, i, &events[count++]);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (i % 64 == 0 && i > behind)
			far_work(&p, i, i - 200 - (seed >> 33) % (behind - 200), &events[count++]);
	}
	p.window = window;
	p.slack_ns = 500;
	array_source_open(&below, events, count, 4096);
	play_open_context(&p, below);
	while (source_next(p.s, &b, &error) == ST_OK)
		for (size_t i = 0; i < b.count; i++) {
			const struct launch *l = batch_launch(&b, &b.events[i]);

			if (b.events[i].kind != KIND_KERNEL)
				continue;
			found++;
			lost += !l;
			bad += l &&
			       !far_is_right(&p, l, (b.events[i].correlation & 0xffffffff) / 2);
		}
	CHECK(found > 1000);
	CHECK_U64(bad, 0);
	CHECK_U64(lost > 0, window < behind);
	CHECK_U64(context_launch_totals(p.c, p.process[0]).with_launch, found - lost);
	free(events);
	play_close(&p);
}

void test_link_far_back(void)
{
	far_play(LAUNCH_WINDOW, 300000, 200000);
	far_play(100000, 300000, 99000); /* the ring comes round to what was packed */
	far_play(100000, 300000, 150000);
}

/* Intervals wait for the events that wait for calls. */
void test_link_holds_intervals(void)
{
	struct play p;
	uint64_t bad = 0, until_ns = 0;
	enum status status;

	play_open(&p);
	for (uint64_t i = 0; i < 50; i++)
		put(&p, i % 2 ? KIND_API : KIND_RANGE, p.thread[0], i % 2 ? "cudaFree" : "f",
		    i * 100, i * 100 + 40, 0)
			->subkind = i % 2 ? 0 : RANGE_PYTHON;
	p.batch = 3;
	p.window = 100;
	p.slack_ns = 1000;
	play_start(&p);
	do {
		status = play_next(&p);
		for (size_t i = 0; i < p.last.interval_count; i++) {
			bad += p.last.intervals[i].begin_ns != until_ns;
			until_ns = p.last.intervals[i].end_ns;
		}
		bad += p.given < p.count && until_ns > p.events[p.given].begin_ns;
	} while (status == ST_OK);
	CHECK_U64(bad, 0);
	CHECK_U64(until_ns, 49 * 100 + 40);
	CHECK_U64(p.given, p.count);
	play_close(&p);
}

/* Argument words are copied along, and a fault below comes after all that was read. */
void test_link_fault(void)
{
	struct play p;
	struct source *below;
	struct attr key = { .type = ATTR_U64 };
	struct arg_schema schema = { .args = &key, .arg_count = 1 };
	uint64_t words[EVENTS_MAX], bad = 0;
	struct batch b;

	play_open(&p);
	key.key = name_of(&p, "External id");
	for (uint64_t i = 0; i < 40; i++) {
		words[i] = i * i;
		kernel(&p, i * 10, i);
		if (i % 3 == 0)
			continue;
		p.events[i].schema = trace_schema(p.trace, &schema, &error);
		p.events[i].args = &words[i];
	}
	array_source_fail(&below, p.events, p.count, 7, ST_IO);
	p.window = 100;
	p.slack_ns = 95;
	play_open_context(&p, below);
	while (source_next(p.s, &b, &error) == ST_OK) {
		for (size_t i = 0; i < b.count; i++, p.given++)
			bad += p.given % 3 ? *b.events[i].args != p.given * p.given
					   : b.events[i].args != NULL;
	}
	CHECK_U64(bad, 0);
	CHECK_U64(p.given, 40);
	CHECK_U64(error.status, ST_IO);
	CHECK_U64(source_next(p.s, &b, &error), ST_END);
	play_close(&p);
	CHECK_U64((uint64_t)array_sources_open(), 0);
}
