/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "convert/link.h"
#include "convert/step.h"
#include "tests/unit/events.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 64 };

struct play {
	struct trace *trace;
	uint32_t process[2], thread[2], stream[2];
	struct event events[EVENTS_MAX];
	size_t count, batch, window;
	uint64_t slack_ns;
	struct source *s;

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
	p->window = LINK_WINDOW;
	CHECK_OK(trace_new(&p->trace, 16 << 20, &error), &error);
	for (unsigned i = 0; i < 2; i++) {
		struct process process = { .pid = i + 1 };
		struct track thread = { .home = HOME_THREAD, .device = NO_ID, .context = NO_ID };
		struct track stream = { .home = HOME_STREAM, .id = 7 };

		p->process[i] = trace_process(p->trace, &process, &error);
		thread.process = stream.process = p->process[i];
		p->thread[i] = trace_track(p->trace, &thread, &error);
		p->stream[i] = trace_track(p->trace, &stream, &error);
	}
}

static void play_close(struct play *p)
{
	source_close(p->s);
	trace_free(p->trace);
}

static struct event *put(struct play *p, uint8_t kind, uint32_t track, const char *name,
			 uint64_t begin_ns, uint64_t end_ns, uint64_t correlation)
{
	struct event *e = &p->events[p->count++];

	*e = (struct event){ .begin_ns = begin_ns, .end_ns = end_ns, .correlation = correlation,
			     .track = track, .name = name_of(p, name), .kind = kind };
	return e;
}

/* As the stage below leaves a call: its step is its begin here, its phase the step's last digit. */
static void call(struct play *p, const char *name, uint64_t begin_ns, uint64_t end_ns,
		 uint64_t correlation)
{
	struct event *e = put(p, KIND_API, p->thread[0], name, begin_ns, end_ns, correlation);

	e->step = (uint32_t)begin_ns;
	e->phase = (uint8_t)(begin_ns % 10);
	e->owner = e->name;
}

static void kernel(struct play *p, uint64_t begin_ns, uint64_t correlation)
{
	put(p, KIND_KERNEL, p->stream[0], "sgemm", begin_ns, begin_ns + 5, correlation);
}

static void play_start(struct play *p)
{
	struct source *below;

	array_source_open(&below, p->events, p->count, p->batch);
	CHECK_OK(link_open(&p->s, below, p->trace, p->window, p->slack_ns, &error), &error);
}

static enum status play_next(struct play *p)
{
	struct batch b;
	enum status status = source_next(p->s, &b, &error);

	for (size_t i = 0; status == ST_OK && i < b.count; i++) {
		const struct launch *l = link_launch(p->s, &b.events[i]);

		if (l)
			p->launch[p->given] = *l;
		p->out[p->given++] = b.events[i];
	}
	return status;
}

static struct link_totals play_run(struct play *p)
{
	play_start(p);
	while (play_next(p) == ST_OK)
		;
	CHECK_U64(p->given, p->count);
	return link_totals(p->s, p->process[0]);
}

void test_link_copies(void)
{
	struct play p;
	struct link_totals t;

	play_open(&p);
	kernel(&p, 5, 9); /* launched before the recording began */
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
	CHECK_U64(p.out[0].step | p.out[0].phase | p.out[0].owner, 0);
	CHECK_U64(p.launch[0].begin_ns, 0);
	CHECK_U64(p.out[4].step, 13);
	CHECK_U64(p.out[4].phase, 3);
	CHECK_STR(trace_text(p.trace, p.out[4].owner, NULL), "cudaLaunchKernel");
	CHECK_U64(p.launch[4].end_ns, 20);
	CHECK_U64(p.launch[4].track, p.thread[0]);
	CHECK_U64(p.out[5].step, 24);
	CHECK_U64(p.out[6].step, 35);
	CHECK_U64(p.out[7].step, 0);
	CHECK_U64(p.out[8].step, 0);
	CHECK_U64(p.out[10].step, 87);
	CHECK_U64(p.out[11].step, 87);
	CHECK_U64(t.gpu_events, 7);
	CHECK_U64(t.with_launch, 4);
	CHECK_U64(t.launches, 4);
	CHECK_U64(t.without_gpu_event, 1);
	CHECK_U64(t.fell_out, 0);
	CHECK_U64(t.ids, 5);
	CHECK_U64(t.lowest_id, 1);
	CHECK_U64(t.highest_id, 9);
	play_close(&p);
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
	CHECK_U64(p.out[0].step, 1000);
	CHECK_U64(p.out[1].step, 1100);
	CHECK_U64(p.out[2].step, 0);
	CHECK_U64(p.out[6].step, 1101); /* its first work, without a call, is no call */
	play_close(&p);
}

/* The driver's call inside the runtime's, and an id that is used again. */
void test_link_same_id(void)
{
	struct play p;
	struct link_totals t;

	play_open(&p);
	call(&p, "cudaLaunchKernel", 10, 30, 1);
	call(&p, "cuLaunchKernel", 12, 28, 1);
	kernel(&p, 40, 1);
	call(&p, "cudaLaunchKernel", 50, 60, 1);
	kernel(&p, 70, 1);
	t = play_run(&p);
	CHECK_U64(p.out[2].step, 10);
	CHECK_U64(p.out[4].step, 50);
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
	put(&p, KIND_API, p.thread[1], "hipModuleLaunchKernel", 41, 42, 2)->step = 77;
	put(&p, KIND_KERNEL, p.stream[1], "sgemm", 50, 60, 2);
	kernel(&p, 61, 1);
	CHECK_U64(play_run(&p).with_launch, 1);
	CHECK_U64(p.out[1].step, 0);
	CHECK_U64(p.out[3].step, 77);
	CHECK_U64(p.out[4].step, 10);
	CHECK_U64(link_totals(p.s, p.process[1]).launches, 1);
	CHECK_U64(link_totals(p.s, 99).launches, 0);
	play_close(&p);
}

/* A ring of four calls: the oldest makes room, and is missed if it launched something. */
void test_link_window(void)
{
	struct play p;
	struct link_totals t;

	play_open(&p);
	p.window = 4;
	for (uint64_t i = 1; i <= 6; i++)
		call(&p, "cudaLaunchKernel", i * 10, i * 10 + 5, i);
	call(&p, "cudaStreamSynchronize", 71, 75, 7);
	kernel(&p, 100, 1);
	kernel(&p, 101, 5);
	kernel(&p, 102, 6);
	t = play_run(&p);
	CHECK_U64(p.out[7].step, 0);
	CHECK_U64(p.out[8].step, 50);
	CHECK_U64(p.out[9].step, 60);
	CHECK_U64(t.fell_out, 4); /* the last went for the kernel whose call was gone */
	CHECK_U64(t.launches, 6);
	CHECK_U64(t.without_gpu_event, 4);
	CHECK_U64(t.with_launch, 2);
	play_close(&p);
}

/* Many calls, each with its work a thousand calls later. */
void test_link_many(void)
{
	enum { CALLS = 200000, BEHIND = 1000 };
	struct play p;
	struct event *events = calloc(2 * CALLS, sizeof(*events));
	struct source *below;
	struct batch b;
	size_t count = 0;
	uint64_t bad = 0;

	play_open(&p);
	if (!CHECK(events != NULL))
		return;
	for (uint64_t i = 0; i < CALLS + BEHIND; i++) {
		if (i < CALLS)
			events[count++] = (struct event){
				.begin_ns = i * 10, .end_ns = i * 10 + 5, .kind = KIND_API,
				.track = p.thread[0], .name = name_of(&p, "cudaLaunchKernel"),
				.correlation = i * 3 + 1, .step = (uint32_t)i };
		if (i >= BEHIND)
			events[count++] = (struct event){
				.begin_ns = i * 10 + 1, .end_ns = i * 10 + 2, .kind = KIND_KERNEL,
				.track = p.stream[0], .correlation = (i - BEHIND) * 3 + 1 };
	}
	array_source_open(&below, events, count, 4096);
	CHECK_OK(link_open(&p.s, below, p.trace, 1024, 500, &error), &error);
	while (source_next(p.s, &b, &error) == ST_OK)
		for (size_t i = 0; i < b.count; i++)
			bad += b.events[i].kind == KIND_KERNEL &&
			       b.events[i].step != (b.events[i].correlation - 1) / 3;
	/* A ring of 1,024 is short for 1,000 calls behind and 50 that are read ahead. */
	CHECK(bad > 0);
	source_close(p.s);
	bad = 0;
	array_source_open(&below, events, count, 4096);
	CHECK_OK(link_open(&p.s, below, p.trace, LINK_WINDOW, 500, &error), &error);
	while (source_next(p.s, &b, &error) == ST_OK)
		for (size_t i = 0; i < b.count; i++)
			bad += b.events[i].kind == KIND_KERNEL &&
			       b.events[i].step != (b.events[i].correlation - 1) / 3;
	CHECK_U64(bad, 0);
	CHECK_U64(link_totals(p.s, p.process[0]).with_launch, CALLS);
	free(events);
	play_close(&p);
}

/* What a call of the packed part must come back with. */
static void far_call(struct play *p, uint64_t i, struct event *out)
{
	*out = (struct event){
		.begin_ns = i * 10, .end_ns = i * 10 + 1 + i % 5, .kind = KIND_API,
		.track = p->thread[0], .name = name_of(p, i % 3 ? "cudaLaunchKernel" : "cudaFree"),
		.owner = name_of(p, i % 300 < 150 ? "forward" : "x"), .step = (uint32_t)(i / 1000),
		.phase = (uint8_t)(i / 50 % 4), .correlation = (i % 2 << 40) + i * 2 + 1,
	};
}

static void far_work(struct play *p, uint64_t at, uint64_t of, struct event *out)
{
	*out = (struct event){ .begin_ns = at * 10 + 1, .end_ns = at * 10 + 2,
			       .kind = KIND_KERNEL, .track = p->stream[0],
			       .correlation = (of % 2 << 40) + of * 2 + 1 };
}

static bool far_is_right(const struct play *p, const struct event *e, const struct event *of)
{
	const struct launch *l = link_launch(p->s, e);

	return l && l->begin_ns == of->begin_ns && l->end_ns == of->end_ns &&
	       l->track == of->track && l->name == of->name && l->owner == of->owner &&
	       l->step == of->step && l->phase == of->phase && l->correlation == of->correlation;
}

/* Work of calls that are far back, in an order that is none; `window` calls are kept. */
static void far_play(size_t window, uint64_t calls, uint64_t behind)
{
	struct event *events = calloc(2 * calls, sizeof(*events)), of;
	uint64_t bad = 0, found = 0, seed = 1, lost = 0;
	struct play p;
	struct source *below;
	struct batch b;
	size_t count = 0;

	play_open(&p);
	if (!CHECK(events != NULL))
		return;
	for (uint64_t i = 0; i < calls; i++) {
		far_call(&p, i, &events[count++]);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (i % 64 == 0 && i > behind)
			far_work(&p, i, i - 200 - (seed >> 33) % (behind - 200), &events[count++]);
	}
	array_source_open(&below, events, count, 4096);
	CHECK_OK(link_open(&p.s, below, p.trace, window, 500, &error), &error);
	while (source_next(p.s, &b, &error) == ST_OK)
		for (size_t i = 0; i < b.count; i++) {
			if (b.events[i].kind != KIND_KERNEL)
				continue;
			far_call(&p, (b.events[i].correlation & 0xffffffff) / 2, &of);
			found++;
			lost += !link_launch(p.s, &b.events[i]);
			bad += link_launch(p.s, &b.events[i]) && !far_is_right(&p, &b.events[i], &of);
		}
	CHECK(found > 1000);
	CHECK_U64(bad, 0);
	CHECK_U64(lost > 0, window < behind);
	CHECK_U64(link_totals(p.s, p.process[0]).with_launch, found - lost);
	free(events);
	play_close(&p);
}

void test_link_far_back(void)
{
	far_play(LINK_WINDOW, 300000, 200000);
	far_play(100000, 300000, 99000); /* the ring comes round to what was packed */
	far_play(100000, 300000, 150000);
}

/* Above `step`: stretches wait for the events that are held back here. */
void test_link_holds_stretches(void)
{
	struct play p;
	struct source *below, *step = NULL;
	struct name_rules *rules = NULL;
	const struct stretch *list;
	uint64_t bad = 0, told_ns = 0;
	enum status status;

	play_open(&p);
	for (uint64_t i = 0; i < 50; i++)
		put(&p, i % 2 ? KIND_API : KIND_RANGE, p.thread[0], i % 2 ? "cudaFree" : "f",
		    i * 100, i * 100 + 40, 0)->subkind = i % 2 ? 0 : RANGE_PYTHON;
	CHECK_OK(name_rules_new(&rules, NULL, 0, &error), &error);
	array_source_open(&below, p.events, p.count, 3);
	CHECK_OK(step_open(&step, below, p.trace, rules, &error), &error);
	CHECK_OK(link_open(&p.s, step, p.trace, 100, 1000, &error), &error);
	do {
		size_t count;

		status = play_next(&p);
		count = step_stretches(step, &list);
		for (size_t i = 0; i < count; i++) {
			bad += list[i].begin_ns != told_ns;
			told_ns = list[i].end_ns;
		}
		bad += p.given < p.count && told_ns > p.events[p.given].begin_ns;
		bad += count && step_stretches(step, &list) != count; /* all see the same */
	} while (status == ST_OK);
	CHECK_U64(bad, 0);
	CHECK_U64(told_ns, 49 * 100 + 40);
	CHECK_U64(p.given, p.count);
	play_close(&p);
	name_rules_free(rules);
}

/* Vary words are copied along, and a fault below comes after all that was read. */
void test_link_fault(void)
{
	struct play p;
	struct source *below;
	struct attr key = { .type = ATTR_U64 };
	struct shape shape = { .vary = &key, .vary_count = 1 };
	uint64_t words[EVENTS_MAX], bad = 0;
	struct batch b;

	play_open(&p);
	key.key = name_of(&p, "External id");
	for (uint64_t i = 0; i < 40; i++) {
		words[i] = i * i;
		kernel(&p, i * 10, i);
		if (i % 3 == 0)
			continue;
		p.events[i].shape = trace_shape(p.trace, &shape, &error);
		p.events[i].vary = &words[i];
	}
	array_source_fail(&below, p.events, p.count, 7, ST_IO);
	CHECK_OK(link_open(&p.s, below, p.trace, 100, 95, &error), &error);
	while (source_next(p.s, &b, &error) == ST_OK) {
		for (size_t i = 0; i < b.count; i++, p.given++)
			bad += p.given % 3 ? *b.events[i].vary != p.given * p.given
					   : b.events[i].vary != NULL;
	}
	CHECK_U64(bad, 0);
	CHECK_U64(p.given, 40);
	CHECK_U64(error.status, ST_IO);
	CHECK_U64(source_next(p.s, &b, &error), ST_END);
	play_close(&p);
	CHECK_U64((uint64_t)array_sources_open(), 0);
}
