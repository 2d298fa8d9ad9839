/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sink_files.h"
#include "convert/sink/sink.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	for (text = strstr(text, part); text; text = strstr(text + 1, part))
		count++;
	return count;
}

static unsigned event_lines(const char *text)
{
	return count_of(text, "\n") - count_of(text, "\n#") - (text[0] == '#');
}

void test_text_lines(void)
{
	struct sink_run run;
	struct attr attrs[2], args[1];
	uint64_t words[] = { 9 };
	struct event *e;
	struct buf text;

	sink_run_make(&run);
	attrs[0] = run_number(&run, "grid_x", 8);
	attrs[1] = run_number(&run, "cache_config", 2);
	args[0] = run_number(&run, "external_id", 0);
	run_event(&run, KIND_STEP, run_thread(&run, 101), NULL, 0, 900);
	e = run_event(&run, KIND_KERNEL, run_stream(&run, 1, 7), "gemm", 1000.001, 1002.5);
	e->schema = run_schema(&run, attrs, 2, args, 1);
	e->args = words;
	e->correlation = 40;
	e = run_event(&run, KIND_COUNTER, run_counter(&run, NO_ID, "rss"), NULL, 1003, 1003);
	e->value = 12;
	if (sink_run_write(&run, &sink_text, false, &text)) {
		CHECK(strstr(buf_text(&text), "\n        0.000000      0.900000  step             "
					      "thread 101                  -  number=0\n") != NULL);
		CHECK(strstr(buf_text(&text),
			     "\n        1.000001      0.002499  kernel           "
			     "GPU 1 stream 7              gemm  correlation=40 external_id=9 "
			     "grid_x=8\n") != NULL);
		CHECK(strstr(buf_text(&text),
			     "\n        1.003000             -  counter          "
			     "host counter                rss  value=12.0\n") != NULL);
		CHECK(strstr(buf_text(&text), "# process: pid 100, rank 3 of 4, host node, command "
					      "train \"x\"\n") != NULL);
		CHECK_U64(event_lines(buf_text(&text)), 3);
	}
	buf_release(&text);
	if (sink_run_write(&run, &sink_text, true, &text))
		CHECK(strstr(buf_text(&text), "grid_x=8 cache_config=2\n") != NULL);
	buf_release(&text);
	sink_run_release(&run);
}

/* A line is an event, whatever its names are. */
void test_text_odd_names(void)
{
	struct sink_run run;
	struct attr attr;
	struct buf text;

	sink_run_make(&run);
	attr = run_text(&run, "k\ne", "a\nb\xff");
	run_event(&run, KIND_RANGE, run_thread(&run, 1), "two\nlines\x1b[31m\xff", 1, 2)->schema =
		run_schema(&run, &attr, 1, NULL, 0);
	run_event(&run, 17, run_thread(&run, 1), NULL, 3, 4);
	if (sink_run_write(&run, &sink_text, false, &text)) {
		CHECK_U64(event_lines(buf_text(&text)), 2);
		CHECK(strstr(buf_text(&text), "two\\x0alines\\x1b[31m\\xff  k\\x0ae=\"a\\nb") !=
		      NULL);
		CHECK(strstr(buf_text(&text), "  kind_17  ") != NULL);
	}
	buf_release(&text);
	sink_run_release(&run);
}

void test_text_books(void)
{
	struct sink_run run;
	struct process other = { .pid = 200, .rank = NO_RANK };
	struct window w = { .begin_ns = 1700000000000000000u, .cut_short = true };
	struct error err;
	struct buf text;

	sink_run_make(&run);
	w.process = run.process;
	w.spec = run_name(&run, "steps:1-2");
	CHECK(trace_window(run.trace, &w, &err) != 0);
	trace_lose(run.trace, run.process, LOSS_RING, 12);
	run_event(&run, KIND_RANGE, run_thread(&run, 1), "a", 1, 2);
	run.process = trace_process(run.trace, &other, &err);
	run_event(&run, KIND_RANGE, run_thread(&run, 2), "b", 3, 4);
	if (sink_run_write(&run, &sink_text, false, &text)) {
		CHECK(strstr(buf_text(&text), "# window: r3 2023-11-14T22:13:20Z to the end, never "
					      "closed, asked for steps:1-2, cut short\n") != NULL);
		CHECK(strstr(buf_text(&text), "# note: 12 ring full\n") != NULL);
		CHECK(strstr(buf_text(&text), "  r3 thread 1  ") != NULL);
		CHECK(strstr(buf_text(&text), "  p200 thread 2  ") != NULL);
	}
	buf_release(&text);
	run.count = 0;
	if (sink_run_write(&run, &sink_text, false, &text))
		CHECK_U64(event_lines(buf_text(&text)), 0);
	buf_release(&text);
	sink_run_release(&run);
}
