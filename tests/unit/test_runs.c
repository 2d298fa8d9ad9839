/* SPDX-License-Identifier: Apache-2.0 */
/* Which inputs are of the same run. */
#include "analyze/engine/engine.h"
#include "analyze/engine/runs.h"
#include "analyze/report/report_list.h"
#include "schemas/base/buf.h"
#include "schemas/log/writer.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

struct given { /* a window of an input */
	unsigned input;
	uint64_t rank, pid, begin_s, end_s;
	const char *host, *id;
};

/* The run of each input as a digit, by the inputs' number. */
static void check_runs(const char *expected, const struct given *all, size_t count)
{
	static const struct report_type *const none[] = { NULL };
	const struct engine_outcome read = { .status = ST_OK };
	struct engine_result r;
	struct error err = { 0 };
	struct runs runs;
	char path[32], found[16] = "";

	CHECK_OK(engine_result_init(&r, none, 1 << 20, &err), &err);
	for (size_t i = 0; i < strlen(expected); i++) {
		snprintf(path, sizeof(path), "f%zu", i);
		CHECK_OK(engine_result_input(&r, path, &read, &err), &err);
	}
	for (size_t i = 0; i < count; i++) {
		struct engine_window w = { .rank = all[i].rank,
					   .pid = all[i].pid,
					   .begin_ns = all[i].begin_s * SECOND_NS,
					   .end_ns = all[i].end_s * SECOND_NS,
					   .host = all[i].host ? all[i].host : "a",
					   .run = all[i].id,
					   .input = all[i].input };

		CHECK_OK(engine_result_window(&r, &w, &err), &err);
	}
	CHECK_OK(runs_find(&runs, &r, &err), &err);
	for (size_t i = 0; i < strlen(expected); i++)
		snprintf(found + i, 2, "%u", runs.of_input[i]);
	CHECK_STR(found, expected);
	runs_release(&runs);
	engine_result_release(&r);
}
#define CHECK_RUNS(expected, ...)                                                                  \
	check_runs(expected, (const struct given[]){ __VA_ARGS__ },                                \
		   sizeof((const struct given[]){ __VA_ARGS__ }) / sizeof(struct given))

void test_runs_by_time(void)
{
	/* a job of two ranks and its restart, in no order; nothing of the last could be read */
	CHECK_RUNS("22110", { 0, 0, 30, 20, 30, NULL, NULL }, { 1, 1, 31, 21, 29, NULL, NULL },
		   { 2, 1, 21, 1, 9, NULL, NULL }, { 3, 0, 20, 0, 10, NULL, NULL });
	/* two windows of a process, in two files; a worker that has its rank */
	CHECK_RUNS("111", { 0, 0, 20, 0, 10, NULL, NULL }, { 1, 0, 20, 20, 30, NULL, NULL },
		   { 2, 0, 22, 5, 25, NULL, NULL });
	/* without ranks: one after the other on a host; beside each other; on another host */
	CHECK_RUNS("12", { 0, NO_U64, 5, 0, 10, NULL, NULL }, { 1, NO_U64, 6, 11, 20, NULL, NULL });
	CHECK_RUNS("11", { 0, NO_U64, 5, 0, 10, NULL, NULL }, { 1, NO_U64, 6, 9, 20, NULL, NULL });
	CHECK_RUNS("11", { 0, NO_U64, 5, 0, 10, NULL, NULL }, { 1, NO_U64, 6, 11, 20, "b", NULL });
	/* ranks may be recorded at different times; a process without rank before a job */
	CHECK_RUNS("11", { 0, 0, 5, 0, 10, NULL, NULL }, { 1, 1, 6, 11, 20, NULL, NULL });
	CHECK_RUNS("12", { 0, NO_U64, 5, 0, 10, NULL, NULL }, { 1, 0, 6, 11, 20, NULL, NULL });
}

void test_runs_by_id(void)
{
	/* at the same time, and one after the other */
	CHECK_RUNS("1212", { 0, 0, 5, 0, 10, NULL, "x" }, { 1, 0, 6, 1, 11, NULL, "y" },
		   { 2, 1, 7, 20, 30, NULL, "x" }, { 3, 1, 8, 21, 31, NULL, "y" });
	/* programs of one recording, and a rank that was started again in it */
	CHECK_RUNS("11", { 0, NO_U64, 5, 0, 10, NULL, "x" }, { 1, NO_U64, 6, 11, 20, NULL, "x" });
	CHECK_RUNS("12", { 0, 0, 5, 0, 10, NULL, "x" }, { 1, 0, 6, 11, 20, NULL, "x" });
}

/* A log with one range of a process that says of which run it is. */
static void write_log(struct trace *trace, struct buf *out, struct error *err)
{
	struct attr id = { .key = trace_name(trace, "run_id", 6, err),
			   .type = ATTR_TEXT,
			   .bits = trace_name(trace, "job-7.1", 7, err) };
	struct arg_schema schema = { .consts = &id, .const_count = 1 };
	struct process p = { .pid = 5, .rank = 0, .schema = trace_schema(trace, &schema, err) };
	struct track k = { .type = TRACK_THREAD,
			   .process = trace_process(trace, &p, err),
			   .device = NO_ID,
			   .context = NO_ID,
			   .id = 5 };
	struct event e = { .begin_ns = SECOND_NS,
			   .end_ns = 2 * SECOND_NS,
			   .track = trace_track(trace, &k, err),
			   .name = trace_name(trace, "work", 4, err),
			   .kind = KIND_RANGE,
			   .subkind = RANGE_ANNOTATION };
	struct event_desc d = { e.track, e.name, 0, e.kind, e.subkind };
	struct log_writer *w = NULL;

	CHECK_OK(log_writer_new(&w, trace, 1 << 20, err), err);
	CHECK_OK(log_writer_begin(w, out, err), err);
	CHECK_OK(log_writer_put(w, &e, trace_desc(trace, &d, err), 0, out, err), err);
	CHECK_OK(log_writer_end(w, out, err), err);
	log_writer_free(w);
}

void test_runs_id_of_log(void)
{
	static const struct report_type *const none[] = { NULL };
	struct name_rules *rules = NULL;
	struct engine_result r = { .tables = NULL };
	struct trace *trace = NULL;
	struct error err = { 0 };
	struct folder s;
	struct buf bytes;
	char *path;

	folder_make(&s);
	buf_init(&bytes, 1 << 20);
	CHECK_OK(trace_new(&trace, 1 << 20, &err), &err);
	write_log(trace, &bytes, &err);
	path = (char *)(uintptr_t)folder_write(&s, "a.tacho", bytes.data, bytes.len);
	CHECK_OK(name_rules_new(&rules, NULL, 0, &err), &err);
	CHECK_OK(engine_accumulate(&r,
				   &(struct engine_request){ .paths = &path,
							     .count = 1,
							     .reports = none,
							     .rules = rules,
							     .memory_bytes = 64 << 20,
							     .threads = 1 },
				   &err),
		 &err);
	if (CHECK_U64(r.window_count, 1))
		CHECK_STR(r.windows[0].run, "job-7.1");
	engine_result_release(&r);
	name_rules_free(rules);
	trace_free(trace);
	buf_release(&bytes);
	folder_remove(&s);
}
