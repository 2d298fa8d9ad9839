/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include "convert/stage/filter/filter.h"
#include "convert/stage/context/context.h"

#include <stdlib.h>
#include <string.h>

/* Two ranks with a thread and a stream each; events are added in order. */
struct stage {
	struct trace *trace;
	uint32_t threads[2], streams[2], name_a, name_b;
	struct event events[200];
	const struct launch *launches[200];
	struct launch calls[8];
	struct step_mark marks[4];
	size_t count, call_count, mark_count;
};

static void stage_init(struct stage *s)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	CHECK_OK(trace_new(&s->trace, 1 << 20, NULL), NULL);
	for (i = 0; i < 2; i++) {
		struct process p = { .pid = 10 + i, .rank = i };
		uint32_t process = trace_process(s->trace, &p, NULL);
		struct track thread = { TRACK_THREAD, process, 0, NO_ID, NO_ID, 1, 0 };
		struct track stream = { TRACK_STREAM, process, 0, i, NO_ID, 7, 0 };

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
static size_t stage_filter(struct stage *s, struct filter *filter, size_t batch, struct event *out)
{
	struct batch all = { .events = s->events,
			     .count = s->count,
			     .launches = s->launches,
			     .marks = s->marks,
			     .mark_count = s->mark_count };
	struct error err = { 0 };
	struct source *below, *top;
	struct event *got;
	size_t n = 0;

	CHECK_OK(filter_parse(filter, &err), &err);
	CHECK_OK(array_source_batch(&below, &all, batch), NULL);
	if (!CHECK_OK(filter_open(&top, below, s->trace, filter, &err), &err))
		return 0;
	got = events_of(top, &n);
	if (got && n)
		memcpy(out, got, n * sizeof(*got));
	free(got);
	source_close(top);
	CHECK_U64((uint64_t)array_sources_open(), 0);
	return n;
}

void test_filter_parse(void)
{
	struct error err = { 0 };
	struct filter filter = { .steps = "10-20",
				 .ranks = "0,2-5",
				 .devices = "1",
				 .kinds = "kernel,range",
				 .from = "1.5s",
				 .to = "2s" };

	CHECK_OK(filter_parse(&filter, &err), &err);
	CHECK_U64(filter.first_step, 10);
	CHECK_U64(filter.end_step, 20);
	CHECK_U64(filter.from_ns, 1500000000);
	CHECK_U64(filter.to_ns, 2000000000);
	CHECK(filter.times_relative && filter.has_steps && filter.has_ranks && filter.has_devices);
	CHECK(filter_wants_rank(&filter, 0) && !filter_wants_rank(&filter, 1) &&
	      filter_wants_rank(&filter, 5));
	CHECK(!filter_wants_rank(&filter, NO_RANK));
	CHECK_U64(filter.kinds_mask, 1 << KIND_KERNEL | 1 << KIND_RANGE);
	filter = (struct filter){ .steps = "7", .from = "2026-11-20T12:00:00Z" };
	CHECK_OK(filter_parse(&filter, &err), &err);
	CHECK_U64(filter.end_step, 8);
	CHECK_U64(filter.to_ns, UINT64_MAX);
	CHECK(!filter.times_relative);
	filter = (struct filter){ 0 };
	CHECK(filter_is_empty(&filter));
	CHECK_OK(filter_parse(&filter, &err), &err);
	CHECK(filter_is_empty(&filter) && filter_wants_rank(&filter, NO_RANK));
}

static const char *refused(struct filter filter)
{
	static struct error err;

	memset(&err, 0, sizeof(err));
	CHECK_U64(filter_parse(&filter, &err), ST_USAGE);
	return err.text;
}

void test_cut_refuses(void)
{
	CHECK_STR(refused((struct filter){ .steps = "10-x" }),
		  "--steps 10-x: must be a number or a range such as 2-5");
	CHECK_STR(refused((struct filter){ .steps = "" }),
		  "--steps : must be a number or a range such as 2-5");
	CHECK_STR(refused((struct filter){ .steps = "5-5" }),
		  "--steps 5-5: the end is before the beginning");
	CHECK_STR(refused((struct filter){ .ranks = "1,,2" }),
		  "--ranks : must be a number or a range such as 2-5");
	CHECK_STR(refused((struct filter){ .ranks = "5-2" }), "--ranks 5-2: not a valid range");
	CHECK_STR(refused((struct filter){ .kinds = "kernel,kernels" }),
		  "--kinds: there is no kind 'kernels'; did you mean kernel?");
	CHECK_STR(refused((struct filter){ .from = "3s", .to = "2s" }),
		  "--from 3s --to 2s: the interval is empty");
	CHECK_STR(refused((struct filter){ .from = "3s", .to = "2026-11-20T12:00:00Z" }),
		  "--from 3s --to 2026-11-20T12:00:00Z: one is relative and the other absolute");
	CHECK(strncmp(refused((struct filter){ .to = "3 parsecs" }), "--to: ", 6) == 0);
}

void test_cut_nothing(void)
{
	struct filter filter = { 0 };
	struct source *below, *top;
	struct stage s;

	stage_init(&s);
	CHECK_OK(array_source_open(&below, s.events, 0, 1), NULL);
	CHECK_OK(filter_open(&top, below, s.trace, &filter, NULL), NULL);
	CHECK(top == below); /* no stage at all */
	source_close(top);
	trace_free(s.trace);
}

void test_cut_lists(void)
{
	struct event out[200];
	struct filter filter;
	struct stage s;
	size_t i;

	stage_init(&s);
	for (i = 0; i < 40; i++) {
		add(&s, KIND_RANGE, s.threads[i & 1], 1000 + i * 10, 1005 + i * 10);
		add(&s, KIND_KERNEL, s.streams[i & 1], 1000 + i * 10, 1001 + i * 10);
	}
	filter = (struct filter){ .ranks = "1" };
	CHECK_U64(stage_filter(&s, &filter, 7, out), 40);
	CHECK_U64(out[0].track, s.threads[1]);
	CHECK_U64(trace_lost(s.trace, 1, LOSS_CUT_OUT), 40);
	CHECK_U64(trace_lost(s.trace, 2, LOSS_CUT_OUT), 0);
	CHECK_U64(trace_lost_total(s.trace, 0), 0);
	filter = (struct filter){ .devices = "0" }; /* host events are of no device */
	CHECK_U64(stage_filter(&s, &filter, 7, out), 60);
	filter = (struct filter){ .kinds = "kernel" };
	CHECK_U64(stage_filter(&s, &filter, 1000, out), 40);
	CHECK_U64(out[0].kind, KIND_KERNEL);
	filter = (struct filter){ .names = "aten::*" };
	CHECK_U64(stage_filter(&s, &filter, 1, out), 40);
	CHECK_U64(out[0].name, s.name_a);
	filter = (struct filter){ .names = "*128", .ranks = "0" };
	CHECK_U64(stage_filter(&s, &filter, 3, out), 20);
	filter = (struct filter){ .names = "nothing" };
	CHECK_U64(stage_filter(&s, &filter, 3, out), 0);
	trace_free(s.trace);
}

/* Clipped ones come first, the longest before the shorter, and are flagged; ends are half-open. */
void test_filter_times(void)
{
	static const uint64_t want[] = { 2, 6, 1, 7, 8, 9 };
	struct filter filter = { .from = "100ns", .to = "200ns" };
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
	add(&s, KIND_MARK, s.threads[0], 1101, 1101);  /* 8 */
	add(&s, KIND_RANGE, s.threads[0], 1199, 1300); /* 9 */
	add(&s, KIND_RANGE, s.threads[0], 1200, 1300);
	for (batch = 1; batch < 12; batch++) {
		n = stage_filter(&s, &filter, batch, out);
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
	struct filter filter = { .from = "50ns" };
	struct event out[200];
	struct attr args = { .key = 1 };
	struct arg_schema schema = { .args = &args, .arg_count = 1 };
	uint64_t word = 77;
	struct source *below, *top;
	struct batch batch;
	struct stage s;

	stage_init(&s);
	add(&s, KIND_RANGE, s.threads[0], 1000, 1090);
	add(&s, KIND_RANGE, s.threads[0], 1001, 1095)->args = &word;
	s.events[1].schema = trace_schema(s.trace, &schema, NULL);
	add(&s, KIND_RANGE, s.threads[0], 1002, 1003);
	CHECK_U64(stage_filter(&s, &filter, 2, out), 2);
	CHECK_U64(out[0].number, 2);
	CHECK_OK(array_source_open(&below, s.events, s.count, 1), NULL);
	CHECK_OK(filter_open(&top, below, s.trace, &filter, NULL), NULL);
	CHECK_OK(source_next(top, &batch, NULL), NULL);
	CHECK_U64(batch.count, 2);
	CHECK(batch.events[0].args != &word && batch.events[0].args[0] == 77);
	CHECK_U64(source_next(top, &batch, NULL), ST_END);
	source_close(top);
	trace_free(s.trace);
}

/* A call, and what launched GPU work looks like after it. */
/* A fault below comes after what was held for its clipped begin, and is not lost for that. */
void test_filter_fault(void)
{
	struct filter filter = { .from = "5us" };
	struct error err = { 0 };
	struct source *below, *top;
	struct batch batch;
	struct stage s;

	stage_init(&s);
	add(&s, KIND_RANGE, s.threads[0], 1000, 9000);
	CHECK_OK(filter_parse(&filter, &err), &err);
	CHECK_OK(array_source_fail(&below, s.events, s.count, 8, ST_TRUNCATED), NULL);
	CHECK_OK(filter_open(&top, below, s.trace, &filter, &err), &err);
	CHECK_U64(source_next(top, &batch, &err), ST_OK);
	CHECK_U64(batch.count, 1);
	CHECK_U64(batch.events[0].begin_ns, 6000);
	CHECK_U64(source_next(top, &batch, &err), ST_TRUNCATED);
	CHECK_STR(err.text, "the array source was told to fail");
	CHECK_U64(source_next(top, &batch, &err), ST_END);
	source_close(top);
	trace_free(s.trace);
}

static struct launch *add_call(struct stage *s, uint32_t step, uint64_t begin_ns, uint64_t end_ns)
{
	struct launch *call = &s->calls[s->call_count++];

	add(s, KIND_API, s->threads[0], begin_ns, end_ns)->step = step;
	*call = (struct launch){ .begin_ns = begin_ns, .end_ns = end_ns, .step = step };
	return call;
}

static void add_work(struct stage *s, unsigned kind, const struct launch *call, uint64_t begin_ns,
		     uint64_t end_ns)
{
	struct event *e = add(s, kind, s->streams[0], begin_ns, end_ns);

	s->launches[e - s->events] = call;
	e->step = call->step;
}

/* As the stage `context` leaves it: two calls after the mark, the second of which is in the grace
 * time of 10 ns or not. */
static void add_step(struct stage *s, uint32_t number, uint64_t begin_ns, bool is_in_grace)
{
	uint32_t step = number + 1, gap = step | STEP_GAP;
	struct launch *first, *second;

	s->marks[s->mark_count++] =
		(struct step_mark){ begin_ns, begin_ns + 1000, number, 1, 0, 0 };
	add(s, KIND_RANGE, s->threads[0], begin_ns, begin_ns + 1000)->step = step; /* the mark */
	add(s, KIND_API, s->threads[0], begin_ns + 10, begin_ns + 20)->step = step;
	/* runs in the next step, launched in this one */
	first = add_call(s, gap, begin_ns + 1005, begin_ns + 1006);
	add(s, KIND_KERNEL, s->streams[0], begin_ns + 1006, begin_ns + 1200)->step = step;
	second = add_call(s, gap, begin_ns + 1010 + !is_in_grace, begin_ns + 1011);
	/* launched by the first call, whatever has begun since */
	add_work(s, KIND_KERNEL, first, begin_ns + 1020, begin_ns + 1300);
	add_work(s, KIND_SYNC, second, begin_ns + 1030, begin_ns + 1300);
}

/* What begins within the grace time of a step's mark is in the step, and so is its work; the rest
 * of a gap is in no step. */
void test_cut_steps(void)
{
	struct filter filter = { .steps = "1-3" };
	struct event out[200];
	struct stage s;
	size_t n, i;

	stage_init(&s);
	add(&s, KIND_API, s.threads[0], 900, 910); /* before the first step */
	add_step(&s, 0, 1000, true);
	add_step(&s, 1, 10000, true);
	add_step(&s, 2, 20000, false);
	add_step(&s, 3, 30000, true);
	n = stage_filter(&s, &filter, 5, out);
	CHECK_U64(n, 12);
	for (i = 0; i < n; i++)
		CHECK(out[i].begin_ns >= 10000 && out[i].begin_ns < 21030);
	CHECK_U64(out[6].begin_ns, 11030);
	CHECK_U64(out[10].begin_ns, 21006);
	CHECK_U64(out[11].begin_ns, 21020);
	filter = (struct filter){ .steps = "9" };
	CHECK_U64(stage_filter(&s, &filter, 5, out), 0);
	trace_free(s.trace);
}
