/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "convert/cut.h"
#include "convert/step.h"

#include <stdlib.h>
#include <string.h>

/* Two ranks with a thread and a stream each; events are added in order. */
struct stage {
	struct trace *trace;
	uint32_t threads[2], streams[2], name_a, name_b;
	struct event events[200];
	size_t count;
};

static void stage_init(struct stage *s)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	CHECK_OK(trace_new(&s->trace, 1 << 20, NULL), NULL);
	for (i = 0; i < 2; i++) {
		struct process p = { .pid = 10 + i, .rank = i };
		uint32_t process = trace_process(s->trace, &p, NULL);
		struct track thread = { HOME_THREAD, process, 0, NO_ID, NO_ID, 1, 0 };
		struct track stream = { HOME_STREAM, process, 0, i, NO_ID, 7, 0 };

		s->threads[i] = trace_track(s->trace, &thread, NULL);
		s->streams[i] = trace_track(s->trace, &stream, NULL);
	}
	s->name_a = trace_name(s->trace, "aten::mm", 8, NULL);
	s->name_b = trace_name(s->trace, "sgemm_128", 9, NULL);
}

static struct event *add(struct stage *s, unsigned kind, uint32_t track, uint64_t begin_ns,
			 uint64_t end_ns)
{
	struct event *e = &s->events[s->count];

	e->begin_ns = begin_ns;
	e->end_ns = end_ns;
	e->kind = (uint8_t)kind;
	e->track = track;
	e->name = event_is_gpu_work(e) ? s->name_b : s->name_a;
	e->number = ++s->count;
	return e;
}

/* The numbers of the events that are left, in the order in which they came. */
static size_t stage_cut(struct stage *s, struct cut *cut, size_t batch, struct event *out)
{
	struct error err = { 0 };
	struct source *below, *top;
	struct event *got;
	size_t n = 0;

	CHECK_OK(cut_parse(cut, &err), &err);
	CHECK_OK(array_source_open(&below, s->events, s->count, batch), NULL);
	if (!CHECK_OK(cut_open(&top, below, s->trace, cut, &err), &err))
		return 0;
	got = events_of(top, &n);
	if (got && n)
		memcpy(out, got, n * sizeof(*got));
	free(got);
	source_close(top);
	CHECK_U64((uint64_t)array_sources_open(), 0);
	return n;
}

void test_cut_parse(void)
{
	struct error err = { 0 };
	struct cut cut = { .steps = "10-20", .ranks = "0,2-5", .devices = "1",
			   .kinds = "kernel,range", .from = "1.5s", .to = "2s" };

	CHECK_OK(cut_parse(&cut, &err), &err);
	CHECK_U64(cut.first_step, 10);
	CHECK_U64(cut.end_step, 20);
	CHECK_U64(cut.from_ns, 1500000000);
	CHECK_U64(cut.to_ns, 2000000000);
	CHECK(cut.times_relative && cut.has_steps && cut.has_ranks && cut.has_devices);
	CHECK(cut_wants_rank(&cut, 0) && !cut_wants_rank(&cut, 1) && cut_wants_rank(&cut, 5));
	CHECK(!cut_wants_rank(&cut, NO_RANK));
	CHECK_U64(cut.kinds_mask, 1 << KIND_KERNEL | 1 << KIND_RANGE);
	cut = (struct cut){ .steps = "7", .from = "2026-11-20T12:00:00Z" };
	CHECK_OK(cut_parse(&cut, &err), &err);
	CHECK_U64(cut.end_step, 8);
	CHECK_U64(cut.to_ns, UINT64_MAX);
	CHECK(!cut.times_relative);
	cut = (struct cut){ 0 };
	CHECK(cut_is_empty(&cut));
	CHECK_OK(cut_parse(&cut, &err), &err);
	CHECK(cut_is_empty(&cut) && cut_wants_rank(&cut, NO_RANK));
}

static const char *refused(struct cut cut)
{
	static struct error err;

	memset(&err, 0, sizeof(err));
	CHECK_U64(cut_parse(&cut, &err), ST_USAGE);
	return err.text;
}

void test_cut_refuses(void)
{
	CHECK_STR(refused((struct cut){ .steps = "10-x" }),
		  "--steps 10-x: need a number or two, as in 2-5");
	CHECK_STR(refused((struct cut){ .steps = "" }),
		  "--steps : need a number or two, as in 2-5");
	CHECK_STR(refused((struct cut){ .steps = "5-5" }),
		  "--steps 5-5: the end comes before the beginning, which leaves none");
	CHECK_STR(refused((struct cut){ .ranks = "1,,2" }),
		  "--ranks : need a number or two, as in 2-5");
	CHECK_STR(refused((struct cut){ .ranks = "5-2" }), "--ranks 5-2: no such range of numbers");
	CHECK_STR(refused((struct cut){ .kinds = "kernel,kernels" }),
		  "--kinds: there is no kind 'kernels'");
	CHECK_STR(refused((struct cut){ .from = "3s", .to = "2s" }),
		  "--from 3s --to 2s: nothing lies between");
	CHECK_STR(refused((struct cut){ .from = "3s", .to = "2026-11-20T12:00:00Z" }),
		  "--from 3s --to 2026-11-20T12:00:00Z: one is a length of time, the other an instant");
	CHECK(strncmp(refused((struct cut){ .to = "3 parsecs" }), "--to: ", 6) == 0);
}

void test_cut_nothing(void)
{
	struct cut cut = { 0 };
	struct source *below, *top;
	struct stage s;

	stage_init(&s);
	CHECK_OK(array_source_open(&below, s.events, 0, 1), NULL);
	CHECK_OK(cut_open(&top, below, s.trace, &cut, NULL), NULL);
	CHECK(top == below); /* no stage at all */
	source_close(top);
	trace_free(s.trace);
}

void test_cut_lists(void)
{
	struct event out[200];
	struct cut cut;
	struct stage s;
	size_t i;

	stage_init(&s);
	for (i = 0; i < 40; i++) {
		add(&s, KIND_RANGE, s.threads[i & 1], 1000 + i * 10, 1005 + i * 10);
		add(&s, KIND_KERNEL, s.streams[i & 1], 1000 + i * 10, 1001 + i * 10);
	}
	cut = (struct cut){ .ranks = "1" };
	CHECK_U64(stage_cut(&s, &cut, 7, out), 40);
	CHECK_U64(out[0].track, s.threads[1]);
	CHECK_U64(trace_lost(s.trace, 1, LOSS_CUT_OUT), 40);
	CHECK_U64(trace_lost(s.trace, 2, LOSS_CUT_OUT), 0);
	CHECK_U64(trace_lost_total(s.trace, 0), 0);
	cut = (struct cut){ .devices = "0" }; /* host events are of no device */
	CHECK_U64(stage_cut(&s, &cut, 7, out), 60);
	cut = (struct cut){ .kinds = "kernel" };
	CHECK_U64(stage_cut(&s, &cut, 1000, out), 40);
	CHECK_U64(out[0].kind, KIND_KERNEL);
	cut = (struct cut){ .names = "aten::*" };
	CHECK_U64(stage_cut(&s, &cut, 1, out), 40);
	CHECK_U64(out[0].name, s.name_a);
	cut = (struct cut){ .names = "*128", .ranks = "0" };
	CHECK_U64(stage_cut(&s, &cut, 3, out), 20);
	cut = (struct cut){ .names = "nothing" };
	CHECK_U64(stage_cut(&s, &cut, 3, out), 0);
	trace_free(s.trace);
}

/* Clipped ones come first, the longest before the shorter, and are flagged; ends are half-open. */
void test_cut_times(void)
{
	static const uint64_t want[] = { 2, 6, 1, 7, 8, 9 };
	struct cut cut = { .from = "100ns", .to = "200ns" };
	struct event out[200];
	struct stage s;
	size_t batch, i, n;

	stage_init(&s);
	add(&s, KIND_RANGE, s.threads[0], 1000, 1150); /* 1 */
	add(&s, KIND_RANGE, s.threads[0], 1010, 1900); /* 2 */
	add(&s, KIND_RANGE, s.threads[0], 1020, 1090);
	add(&s, KIND_RANGE, s.threads[0], 1030, 1100);
	add(&s, KIND_MARK, s.threads[0], 1099, 1099);
	add(&s, KIND_RANGE, s.threads[0], 1100, 1195); /* 6 */
	add(&s, KIND_RANGE, s.threads[0], 1100, 1110); /* 7 */
	add(&s, KIND_MARK, s.threads[0], 1101, 1101); /* 8 */
	add(&s, KIND_RANGE, s.threads[0], 1199, 1300); /* 9 */
	add(&s, KIND_RANGE, s.threads[0], 1200, 1300);
	for (batch = 1; batch < 12; batch++) {
		n = stage_cut(&s, &cut, batch, out);
		if (!CHECK_U64(n, 6))
			continue;
		for (i = 0; i < n; i++) {
			CHECK_U64(out[i].number, want[i]);
			CHECK(!i || !event_before(&out[i], &out[i - 1]));
		}
		CHECK_U64(out[0].flags, EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED);
		CHECK_U64(out[0].begin_ns, 1100);
		CHECK_U64(out[0].end_ns, 1200);
		CHECK_U64(out[1].flags, 0);
		CHECK_U64(out[2].flags, EVENT_BEGAN_EARLIER);
		CHECK_U64(out[5].end_ns, 1200);
	}
	CHECK_U64(trace_lost(s.trace, 0, LOSS_CUT_OUT), 4 * 11);
	trace_free(s.trace);
}

/* Everything lies before the cut: what reaches in is still given at the end. */
void test_cut_times_end(void)
{
	struct cut cut = { .from = "50ns" };
	struct event out[200];
	struct attr vary = { .key = 1 };
	struct shape shape = { .vary = &vary, .vary_count = 1 };
	uint64_t word = 77;
	struct source *below, *top;
	struct batch batch;
	struct stage s;

	stage_init(&s);
	add(&s, KIND_RANGE, s.threads[0], 1000, 1090);
	add(&s, KIND_RANGE, s.threads[0], 1001, 1095)->vary = &word;
	s.events[1].shape = trace_shape(s.trace, &shape, NULL);
	add(&s, KIND_RANGE, s.threads[0], 1002, 1003);
	CHECK_U64(stage_cut(&s, &cut, 2, out), 2);
	CHECK_U64(out[0].number, 2);
	CHECK_OK(array_source_open(&below, s.events, s.count, 1), NULL);
	CHECK_OK(cut_open(&top, below, s.trace, &cut, NULL), NULL);
	CHECK_OK(source_next(top, &batch, NULL), NULL);
	CHECK_U64(batch.count, 2);
	CHECK(batch.events[0].vary != &word && batch.events[0].vary[0] == 77);
	CHECK_U64(source_next(top, &batch, NULL), ST_END);
	source_close(top);
	trace_free(s.trace);
}

/* As the stage `step` tells it: two calls behind the mark, the second of them near or not. */
static void add_step(struct stage *s, uint32_t number, uint64_t begin_ns, bool is_near)
{
	uint32_t step = number + 1, near = step | STEP_GAP | STEP_NEAR;
	uint32_t second = is_near ? near : step | STEP_GAP;

	add(s, KIND_RANGE, s->threads[0], begin_ns, begin_ns + 1000)->step = step; /* the mark */
	add(s, KIND_API, s->threads[0], begin_ns + 10, begin_ns + 20)->step = step;
	/* runs in the next step, launched in this one */
	add(s, KIND_API, s->threads[0], begin_ns + 1005, begin_ns + 1006)->step = near;
	add(s, KIND_KERNEL, s->streams[0], begin_ns + 1006, begin_ns + 1200)->step = step;
	add(s, KIND_API, s->threads[0], begin_ns + 1010, begin_ns + 1010)->step = second;
	/* of the first of them: whatever has begun since */
	add(s, KIND_KERNEL, s->streams[0], begin_ns + 1020, begin_ns + 1300)->step = near;
	add(s, KIND_SYNC, s->streams[0], begin_ns + 1030, begin_ns + 1300)->step = second;
}

/* What begins near a step's mark is the step's, and so is its work; the rest of a gap nobody's. */
void test_cut_steps(void)
{
	struct cut cut = { .steps = "1-3" };
	struct event out[200];
	struct stage s;
	size_t n, i;

	stage_init(&s);
	add(&s, KIND_API, s.threads[0], 900, 910); /* before the first step */
	add_step(&s, 0, 1000, true);
	add_step(&s, 1, 10000, true);
	add_step(&s, 2, 20000, false);
	add_step(&s, 3, 30000, true);
	n = stage_cut(&s, &cut, 5, out);
	CHECK_U64(n, 12);
	for (i = 0; i < n; i++) {
		CHECK(out[i].begin_ns >= 10000 && out[i].begin_ns < 21030);
		CHECK(!(out[i].step & STEP_NEAR)); /* nobody else knows of it */
	}
	CHECK_U64(out[6].begin_ns, 11030);
	CHECK_U64(out[10].begin_ns, 21006);
	CHECK_U64(out[11].begin_ns, 21020);
	cut = (struct cut){ .steps = "9" };
	CHECK_U64(stage_cut(&s, &cut, 5, out), 0);
	trace_free(s.trace);
}
