/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sink_files.h"
#include "convert/sink/sink.h"
#include "tests/unit/unit.h"

#include <cjson/cJSON.h>
#include <string.h>

static void sample(struct sink_run *run, uint32_t track, uint32_t step, double value)
{
	struct event *e =
		run_event(run, KIND_COUNTER, track, NULL, (double)run->count, (double)run->count);

	e->value = value;
	e->step = step;
}

static void profile_is(struct sink_run *run, const char *want)
{
	struct buf text;
	cJSON *got, *wanted = cJSON_Parse(want);

	if (sink_run_write(run, &sink_memory, false, &text)) {
		got = cJSON_ParseWithOpts(buf_text(&text), NULL, true);
		if (!CHECK(cJSON_Compare(got, wanted, true)))
			CHECK_STR(buf_text(&text), want);
		cJSON_Delete(got);
	}
	cJSON_Delete(wanted);
	buf_release(&text);
	sink_run_release(run);
}

void test_memory_steps(void)
{
	struct sink_run run;
	uint32_t gpu, host, peak;

	sink_run_make(&run);
	gpu = run_counter(&run, 0, "bytes_in_use");
	peak = run_counter(&run, 0, "peak_bytes_in_use");
	host = run_counter(&run, NO_ID, "bytes_in_use");
	sample(&run, gpu, 0, 900); /* before the first step: for the peak only */
	sample(&run, gpu, 1, 100);
	sample(&run, gpu, 1, 300);
	sample(&run, host, 1, 50);
	sample(&run, gpu, 1 | STEP_GAP, 200); /* between two marks: of the step before */
	sample(&run, gpu, 3, 400);            /* step 1 has none */
	sample(&run, peak, 3, 1500);
	sample(&run, run_counter(&run, 0, "temperature"), 3, 70);
	sample(&run, host, 4, 40);
	profile_is(&run, "[{\"step\": 0, \"memory\": {"
			 "\"cuda:0\": {\"bytes_in_use\": 200, \"peak_bytes_in_use\": 900}}},"
			 "{\"step\": 2, \"memory\": {"
			 "\"cuda:0\": {\"bytes_in_use\": 400, \"peak_bytes_in_use\": 1500}}},"
			 "{\"step\": 3, \"memory\": {}}]"); /* the host is no device */
}

/* Numbers may come again, right behind the first: each mark is a step. */
void test_memory_steps_again(void)
{
	struct sink_run run;
	uint32_t gpu, thread, i;

	sink_run_make(&run);
	gpu = run_counter(&run, 0, "bytes_in_use");
	thread = run_thread(&run, 5);
	for (i = 0; i < 4; i++) {
		struct event *e = run_event(&run, KIND_STEP, thread, NULL, (double)run.count,
					    (double)run.count + 3);

		e->number = i == 2 ? 8 : 7;
		e->step = (uint32_t)e->number + 1;
		sample(&run, gpu, (uint32_t)e->number + 1, 100 + i);
		if (!i)
			sample(&run, gpu, 8 | STEP_GAP, 90);
	}
	profile_is(&run, "[{\"step\": 7, \"memory\": {"
			 "\"cuda:0\": {\"bytes_in_use\": 90, \"peak_bytes_in_use\": 100}}},"
			 "{\"step\": 7, \"memory\": {"
			 "\"cuda:0\": {\"bytes_in_use\": 101, \"peak_bytes_in_use\": 101}}},"
			 "{\"step\": 8, \"memory\": {"
			 "\"cuda:0\": {\"bytes_in_use\": 102, \"peak_bytes_in_use\": 102}}},"
			 "{\"step\": 7, \"memory\": {"
			 "\"cuda:0\": {\"bytes_in_use\": 103, \"peak_bytes_in_use\": 103}}}]");
}

void test_memory_without_steps(void)
{
	struct sink_run run;
	uint32_t gpu;

	sink_run_make(&run);
	gpu = run_counter(&run, 2, "bytes_in_use");
	sample(&run, gpu, 0, 700);
	sample(&run, gpu, 0, 500);
	profile_is(&run, "[{\"step\": 0, \"memory\": {\"cuda:2\": "
			 "{\"bytes_in_use\": 500, \"peak_bytes_in_use\": 700}}}]");
	sink_run_make(&run);
	run_event(&run, KIND_KERNEL, run_stream(&run, 0, 7), "k", 1, 2);
	profile_is(&run, "[]");
}

/* What PyTorch's allocator says. */
void test_memory_allocator(void)
{
	struct sink_run run;
	uint64_t words[][2] = { { 5, 4096 }, { 6, 1024 } };
	struct attr args[2];
	struct event *e;

	sink_run_make(&run);
	args[0] = run_number(&run, "ev_idx", 0);
	args[1] = run_number(&run, "total_allocated", 0);
	for (unsigned i = 0; i < 2; i++) {
		e = run_event(&run, i ? KIND_FREE : KIND_ALLOC, run_pool(&run, 1), "[memory]", i,
			      i);
		e->schema = run_schema(&run, NULL, 0, args, 2);
		e->args = words[i];
		e->step = 8;
	}
	run_event(&run, KIND_ALLOC, run_pool(&run, NO_ID), "[memory]", 3, 3); /* says nothing */
	profile_is(&run, "[{\"step\": 7, \"memory\": {\"cuda:1\": "
			 "{\"bytes_in_use\": 1024, \"peak_bytes_in_use\": 4096}}}]");
}

void test_memory_odd_samples(void)
{
	struct sink_run run;
	struct trace *trace;
	struct buf text;

	sink_run_make(&run);
	trace = run.trace;
	sample(&run, run_counter(&run, 100000, "bytes_in_use"), 1, 5);
	sample(&run, run_counter(&run, 2, "bytes_in_use"), 1, -5);
	sample(&run, run_counter(&run, 2, "bytes_in_use"), 1, 1e300);
	if (sink_run_write(&run, &sink_memory, false, &text))
		CHECK_STR(buf_text(&text), "[{\"step\": 0, \"memory\": {\"cuda:2\": "
					   "{\"bytes_in_use\": 0, \"peak_bytes_in_use\": 0}}}]\n");
	CHECK_U64(trace_lost(trace, 0, LOSS_NO_PLACE), 1);
	buf_release(&text);
	sink_run_release(&run);
}
