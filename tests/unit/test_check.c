/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/check/check.h"

#include "analyze/engine/engine.h"
#include "analyze/format/format.h"
#include "analyze/format/text/line.h"
#include "analyze/report/report_list.h"
#include "schemas/model/records.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 512, LOG_MAX = 1 << 22, WINDOW_MS = 100 };
#define BEGIN UINT64_C(1700000000000000000)
#define US    UINT64_C(1000)
#define MS    UINT64_C(1000000)

/* ---- a recording, made event by event --------------------------------------------------- */

struct made {
	struct log_run run;
	struct process process;
	uint32_t pid, thread, stream; /* ids */
	uint64_t id, at_ns;           /* of the next launch */
};

static uint32_t name(struct made *m, const char *text)
{
	return trace_name(m->run.trace, text, strlen(text), NULL);
}

static void made_init(struct made *m)
{
	struct track k = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = 77 };

	*m = (struct made){ .id = 1, .at_ns = BEGIN + 2 * MS };
	CHECK_OK(trace_new(&m->run.trace, LOG_MAX, NULL), NULL);
	m->run.events = calloc(EVENTS, sizeof(*m->run.events));
	trace_provenance(m->run.trace)->epoch_known = true;
	m->process =
		(struct process){ .host = name(m, "node1"), .pid = 77, .rank = 0, .world_size = 1 };
	m->pid = k.process = trace_process(m->run.trace, &m->process, NULL);
	m->thread = trace_track(m->run.trace, &k, NULL);
	k = (struct track){
		.type = TRACK_STREAM, .process = m->pid, .device = 0, .context = 1, .id = 7
	};
	m->stream = trace_track(m->run.trace, &k, NULL);
}

static struct event *put(struct made *m, uint8_t kind, uint32_t track, const char *text,
			 uint64_t begin_ns, uint64_t ns)
{
	struct event *e = &m->run.events[m->run.count++];

	*e = (struct event){ .begin_ns = begin_ns,
			     .end_ns = begin_ns + ns,
			     .kind = kind,
			     .track = track,
			     .name = name(m, text) };
	return e;
}

static void put_launch(struct made *m, const char *call, unsigned kernels, uint64_t graph)
{
	struct attr attr = { .key = name(m, "graph"), .type = ATTR_U64, .bits = graph };
	struct arg_schema schema = { .consts = &attr, .const_count = 1 };
	unsigned i;

	put(m, KIND_API, m->thread, call, m->at_ns, 5 * US)->correlation = m->id;
	for (i = 0; i < kernels; i++) {
		struct event *e = put(m, KIND_KERNEL, m->stream, "gemm",
				      m->at_ns + (10 + i * 10) * US, 5 * US);

		e->correlation = m->id;
		e->schema = graph ? trace_schema(m->run.trace, &schema, NULL) : 0;
	}
	m->id++;
	m->at_ns += 200 * US;
}

static void put_window(struct made *m, uint64_t own_ns, bool cut_short)
{
	struct window w = { .process = m->pid,
			    .spec = name(m, "steps:0-2"),
			    .begin_ns = BEGIN,
			    .end_ns = BEGIN + WINDOW_MS * MS,
			    .own_ns = own_ns,
			    .cut_short = cut_short };

	trace_window(m->run.trace, &w, NULL);
}

static void put_anchor(struct made *m, uint64_t after_ns, int64_t set_ns)
{
	struct anchor a = { .process = m->pid,
			    .monotonic_ns = 5000 + after_ns,
			    .realtime_ns = BEGIN + after_ns + (uint64_t)set_ns };

	trace_anchor(m->run.trace, &a, NULL);
}

/* Two steps, ten kernels; nothing wrong. */
static void put_whole(struct made *m)
{
	unsigned i;

	put(m, KIND_STEP, m->thread, "step", BEGIN + MS, 40 * MS)->number = 0;
	put(m, KIND_STEP, m->thread, "step", BEGIN + 41 * MS, 40 * MS)->number = 1;
	for (i = 0; i < 10; i++)
		put_launch(m, "cudaLaunchKernel", 1, 0);
	put_anchor(m, 0, 0);
	put_anchor(m, 1000 * MS, 900 * US);
}

static int compare_events(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	return event_before(a, b) ? -1 : event_before(b, a);
}

/* The log in a file; all but `cut` of its bytes, without END when `cut`. */
static void made_write(struct made *m, size_t cut, char path[32])
{
	struct buf out;
	int fd;

	qsort(m->run.events, m->run.count, sizeof(*m->run.events), compare_events);
	buf_init(&out, LOG_MAX);
	log_run_write(&m->run, cut ? 8 : 0, !cut, &out);
	snprintf(path, 32, "/tmp/tacho-XXXXXX");
	fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, out.data, out.len - cut) == (ssize_t)(out.len - cut));
	close(fd);
	buf_release(&out);
	log_run_release(&m->run);
}

/* ---- what the report says --------------------------------------------------------------- */

static const struct report_type *const reports_asked[] = { &report_check, NULL };

static struct tables *tables_with(char *const *paths, size_t count,
				  const struct report_type *const *reports)
{
	struct engine_outcome outcomes[4];
	struct engine_request how = { .paths = paths,
				      .count = count,
				      .reports = reports,
				      .threads = 1,
				      .memory_bytes = 256 << 20,
				      .scratch = "/tmp" };
	struct name_rules *rules = NULL;
	struct tables *tables = NULL;
	struct error err = { 0 };

	CHECK_OK(name_rules_new(&rules, NULL, 0, NULL), NULL);
	how.rules = rules;
	CHECK_OK(engine_run(&tables, &how, outcomes, &err), &err);
	name_rules_free(rules);
	return tables;
}

static struct tables *tables_of(char *const *paths, size_t count)
{
	return tables_with(paths, count, reports_asked);
}

static struct tables *report_of(struct made *m, size_t cut)
{
	char path[32], *paths[] = { path };
	struct tables *tables;

	made_write(m, cut, path);
	tables = tables_of(paths, 1);
	unlink(path);
	return tables;
}

static const union value *find(struct tables *t, const char *check, const char *of)
{
	struct table *rows = tables_find(t, "checks");
	const union value *row;
	size_t i;

	for (i = 0; (row = table_at(rows, i)); i++)
		if (!strcmp(row[CHECK_NAME].text, check) && !strcmp(row[CHECK_OF].text, of))
			return row;
	return NULL;
}

static void check_row(struct tables *t, const char *check, const char *of, const char *verdict,
		      uint64_t count)
{
	const union value *row = find(t, check, of);

	if (!CHECK(row != NULL)) {
		CHECK_STR(check, "a row");
		return;
	}
	if (CHECK_STR(row[CHECK_VERDICT].text, verdict))
		CHECK_U64(row[CHECK_COUNT].u64, count);
	else
		CHECK_STR(row[CHECK_TEXT].text, check);
}

static void check_text(struct tables *t, const char *check, const char *of, const char *part)
{
	const union value *row = find(t, check, of);

	if (row && !strstr(row[CHECK_TEXT].text, part))
		CHECK_STR(row[CHECK_TEXT].text, part);
	CHECK(row != NULL);
}

static uint64_t rows_with(struct tables *t, const char *verdict)
{
	const union value *row;
	uint64_t count = 0;
	size_t i;

	for (i = 0; (row = table_at(tables_find(t, "checks"), i)); i++)
		count += !strcmp(row[CHECK_VERDICT].text, verdict);
	return count;
}

void test_check_whole(void)
{
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	put_launch(&m, "cudaGraphLaunch", 4, 9);
	put_launch(&m, "cudaGraphLaunch", 4, 9);
	put_launch(&m, "cudaGraphLaunch", 2, 10); /* another graph */
	put_window(&m, 200 * US, false);
	t = report_of(&m, 0);
	CHECK_U64(rows_with(t, "bad") + rows_with(t, "doubt") + rows_with(t, "unknown"), 0);
	CHECK_U64(rows_with(t, "good"), 21); /* all but the recorder's own words */
	CHECK_U64(check_bad(t), 0);
	check_text(t, "windows", "0001", "requested: steps:0-2; recorded: 2 steps");
	check_text(t, "graphs", "", "all 3 graph launches");
	check_text(t, "no_kernels", "", "kernels: 20; calls that launch kernels: 13");
	tables_free(t);
}

/* Of ten launches two have work that began before them. */
void test_check_order(void)
{
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	put_launch(&m, "cudaLaunchKernel", 1, 0);
	m.run.events[m.run.count - 1].begin_ns -= 30 * US;
	put_launch(&m, "cudaLaunchKernel", 1, 0);
	m.run.events[m.run.count - 1].begin_ns -= 12 * US;
	put_window(&m, 0, false);
	t = report_of(&m, 0);
	check_row(t, "order", "", "doubt", 2);
	check_row(t, "waits", "", "good", 0);
	tables_free(t);
}

/* A stream waits for a record that came before, for one that came later, and for none. */
void test_check_waits(void)
{
	static uint64_t records[] = { 690, 900, (uint64_t)-1 };
	struct attr arg = { .type = ATTR_I64 };
	struct arg_schema schema = { .args = &arg, .arg_count = 1 };
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	arg.key = name(&m, "wait_correlation");
	put(&m, KIND_API, m.thread, "cudaEventRecord", m.at_ns - US, US)->correlation = 690;
	put(&m, KIND_API, m.thread, "cudaEventRecord", m.at_ns + US, US)->correlation = 900;
	for (unsigned i = 0; i < 3; i++) {
		struct event *e = put(&m, KIND_SYNC, m.stream, "Stream Wait Event", m.at_ns, US);

		e->subkind = SYNC_STREAM_WAIT;
		e->correlation = 700 + i;
		e->schema = trace_schema(m.run.trace, &schema, NULL);
		e->args = &records[i];
	}
	put_window(&m, 0, false);
	t = report_of(&m, 0);
	check_row(t, "waits", "", "doubt", 2);
	check_text(t, "waits", "",
		   "2 of 3 waits for a CUDA event refer to an event that was recorded later or "
		   "not at all");
	check_row(t, "order", "", "good", 0);
	tables_free(t);
}

void test_check_cut_log(void)
{
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	put_window(&m, 0, false);
	t = report_of(&m, 7);
	check_row(t, "closed", "", "bad", 1);
	CHECK(find(t, "unread", "")[CHECK_COUNT].u64 > 0);
	CHECK_STR(find(t, "unread", "")[CHECK_VERDICT].text, "bad");
	CHECK_U64(check_bad(t), 2);
	tables_free(t);
}

/* The same loss is a doubt among many events, bad among few; disk is always bad. */
void test_check_losses(void)
{
	struct made m;
	struct tables *t;
	unsigned i;

	made_init(&m);
	put_whole(&m);
	put_window(&m, 0, false);
	trace_lose(m.run.trace, m.pid, LOSS_RING, 3);
	trace_lose(m.run.trace, m.pid, LOSS_CUT_OUT, 5);
	trace_lose(m.run.trace, m.pid, LOSS_DEATH, 1);
	t = report_of(&m, 0);
	check_row(t, "losses", "ring", "bad", 3);    /* of 22 events */
	check_row(t, "losses", "death", "doubt", 1); /* nobody knows how many */
	check_row(t, "losses", "cut_out", "good", 5);
	CHECK(find(t, "losses", "") == NULL);
	check_text(t, "losses", "ring", "a thread was full; 12.00 % of all");
	tables_free(t);

	made_init(&m);
	put_whole(&m);
	put_window(&m, 0, false);
	trace_lose(m.run.trace, m.pid, LOSS_UNREAD, 50); /* of what nobody asked for */
	t = report_of(&m, 0);
	check_row(t, "losses", "unread", "good", 50);
	CHECK(find(t, "losses", "") != NULL);
	tables_free(t);

	made_init(&m);
	put_whole(&m);
	for (i = 0; i < 200; i++)
		put_launch(&m, "cudaLaunchKernel", 1, 0);
	put_window(&m, 0, false);
	trace_lose(m.run.trace, m.pid, LOSS_RING, 3);
	trace_lose(m.run.trace, m.pid, LOSS_DISK, 1);
	trace_lose(m.run.trace, m.pid, LOSS_END, 2); /* a reason of a newer writer */
	t = report_of(&m, 0);
	check_row(t, "losses", "ring", "doubt", 3);
	check_row(t, "losses", "disk", "bad", 1);
	check_row(t, "losses", "unknown", "doubt", 2);
	check_text(t, "losses", "unknown", "2 records missing: unknown");
	tables_free(t);
}

void test_check_launches(void)
{
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	put_window(&m, 0, false);
	put_launch(&m, "cudaLaunchKernel", 0, 0); /* and no kernel */
	put(&m, KIND_KERNEL, m.stream, "gemm", m.at_ns, US)->correlation = 999;
	put_launch(&m, "cudaGraphLaunch", 6, 9);
	put_launch(&m, "cudaGraphLaunch", 4, 9);
	put_launch(&m, "cudaGraphLaunch", 6, 9);
	put_launch(&m, "cudaGraphLaunch", 3, 0); /* siblings by their first kernel */
	put_launch(&m, "cudaGraphLaunch", 2, 0);
	t = report_of(&m, 0);
	check_row(t, "no_gpu_event", "", "doubt", 1);
	check_row(t, "no_launch", "", "doubt", 1);
	check_row(t, "graphs", "", "doubt", 2);
	check_text(t, "graphs", "",
		   "2 of 5 graph launches have fewer GPU events than another launch of the same "
		   "graph; 3 events are missing");
	check_row(t, "no_kernels", "", "good", 0);
	tables_free(t);

	made_init(&m);
	put_launch(&m, "cudaLaunchKernel", 0, 0);
	put_launch(&m, "cudaMemcpyAsync", 0, 0);
	t = report_of(&m, 0);
	check_row(t, "no_kernels", "", "bad", 1);
	check_row(t, "sampled", "", "unknown", 0);
	tables_free(t);

	made_init(&m);
	put_launch(&m, "cudaMemcpyAsync", 0, 0);
	t = report_of(&m, 0);
	check_row(t, "no_kernels", "", "unknown", 0);
	tables_free(t);
}

void test_check_clock(void)
{
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	put_anchor(&m, 2000 * MS, 900 * US - 1100 * (int64_t)US); /* set back by 1.1 ms */
	put_anchor(&m, 3000 * MS, 3600 * 1000 * (int64_t)MS);
	put_anchor(&m, 103000 * MS, 3600 * 1000 * (int64_t)MS + 40 * (int64_t)MS); /* slewed */
	put(&m, KIND_RANGE, m.thread, "late", BEGIN + (WINDOW_MS + 30) * MS, US);
	put(&m, KIND_RANGE, m.thread, "at the edge", BEGIN + WINDOW_MS * MS + 500 * US, US);
	put_window(&m, 0, false);
	t = report_of(&m, 0);
	check_row(t, "clock", "", "doubt", 2);
	check_text(t, "clock", "", "2 of 5 anchors differ, by at most 3,600,000.2 ms");
	check_row(t, "bounds", "", "doubt", 1);
	check_text(t, "bounds", "", "by at most 30.0 ms");
	tables_free(t);
}

void test_check_windows(void)
{
	struct window never = { .begin_ns = BEGIN + 500 * MS, .end_ns = BEGIN + 600 * MS };
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	put_window(&m, 12 * MS, true);
	never.process = m.pid;
	trace_window(m.run.trace, &never, NULL);
	t = report_of(&m, 0);
	check_row(t, "windows", "0001", "doubt", 1);
	check_text(t, "windows", "0001", "2 steps, 100.0 ms, because the window was cut short");
	check_row(t, "windows", "empty", "doubt", 1);
	check_row(t, "own_cost", "", "bad", 12 * MS);
	tables_free(t);

	made_init(&m); /* an imported log without a window */
	put_whole(&m);
	t = report_of(&m, 0);
	check_row(t, "windows", "0001", "unknown", 0);
	check_row(t, "bounds", "", "unknown", 0);
	check_row(t, "own_cost", "", "unknown", 0);
	check_row(t, "losses", "", "unknown", 0);
	tables_free(t);
}

void test_check_recorder(void)
{
	struct attr attrs[3];
	struct arg_schema schema = { .consts = attrs, .const_count = 3 };
	struct made m;
	struct tables *t;

	made_init(&m);
	put_whole(&m);
	put_window(&m, 0, false);
	attrs[0] = (struct attr){ .key = name(&m, "ignored_calls"),
				  .type = ATTR_TEXT,
				  .bits = name(&m, "12") };
	attrs[1] = (struct attr){ .key = name(&m, "cupti_problem"),
				  .type = ATTR_TEXT,
				  .bits = name(&m, "no driver") };
	attrs[2] = (struct attr){ .key = name(&m, "launcher"),
				  .type = ATTR_TEXT,
				  .bits = name(&m, "torchrun") };
	m.process.schema = trace_schema(m.run.trace, &schema, NULL);
	trace_set_process(m.run.trace, m.pid, &m.process);
	put(&m, 60, m.thread, "of the future", BEGIN + 90 * MS, US);
	trace_provenance(m.run.trace)->is_synthetic = true;
	t = report_of(&m, 0);
	check_row(t, "recorder", "ignored_calls", "doubt", 1);
	check_text(t, "recorder", "ignored_calls", "12 calls were ignored");
	check_row(t, "recorder", "cupti_problem", "bad", 1);
	check_text(t, "recorder", "cupti_problem", "could not be recorded: no driver");
	CHECK(find(t, "recorder", "launcher") == NULL);
	check_row(t, "unknown_kinds", "", "doubt", 1);
	check_row(t, "no_kernels", "", "good", 0);
	check_row(t, "synthetic", "", "doubt", 1);
	tables_free(t);
}

/* Real files: a sample, and a whole one. */
void test_check_traces(void)
{
	char first[512], second[512], whole[512], *paths[] = { first, second }, *one[] = { whole };
	struct format_request how = { .reports = reports_asked, .is_utf8 = true, .width = 100 };
	struct tables *t;
	struct buf page;

	if (!unit_traces()) {
		SKIP("no sample traces");
		return;
	}
	snprintf(first, sizeof(first), "%s/kineto/job128_sampled_rank0.json.gz", unit_traces());
	snprintf(second, sizeof(second), "%s/kineto/job128_sampled_rank1.json.gz", unit_traces());
	snprintf(whole, sizeof(whole), "%s/kineto/a100_ddp_rank0of2_nccl_args.json.gz",
		 unit_traces());
	t = tables_of(paths, 2);
	check_row(t, "sampled", "", "bad", 202157 - 1204);
	CHECK_U64(rows_with(t, "bad"), 2); /* of each rank one */
	how.tables = t;
	buf_init(&page, LOG_MAX);
	CHECK_OK(format_text.write(&how, &page, NULL), NULL);
	CHECK(strstr(buf_text(&page),
		     "rank 0: the input is a sample: it contains 1,204 of 202,157") != NULL);
	CHECK(strstr(buf_text(&page), "rank 1: the input is a sample: ") != NULL);
	CHECK(strstr(buf_text(&page), "all ranks: all bytes were read") != NULL);
	buf_release(&page);
	check_row(t, "epoch", "", "good", 0);
	tables_free(t);
	t = tables_of(one, 1);
	check_row(t, "sampled", "", "good", 0);
	check_row(t, "no_launch", "", "good", 0);
	check_row(t, "closed", "", "good", 0);
	check_row(t, "losses", "", "unknown", 0);
	CHECK_U64(check_bad(t), 0);
	tables_free(t);
}

/* Every line fits at every width, and the worst stands first. */
void test_check_page(void)
{
	struct format_request how = { .reports = reports_asked, .is_utf8 = true };
	const char *bad, *good;
	char *line, *end;
	unsigned widest = 0;
	struct made m;
	struct buf out;

	made_init(&m);
	put_whole(&m);
	put_window(&m, 0, false);
	trace_lose(m.run.trace, m.pid, LOSS_RING, 3);
	how.tables = report_of(&m, 0);
	for (how.width = 100; how.width >= 20; how.width--) {
		buf_init(&out, LOG_MAX);
		CHECK_OK(format_text.write(&how, &out, NULL), NULL);
		bad = strstr(buf_text(&out), "\n! BAD");
		good = strstr(buf_text(&out), "\nGOOD");
		CHECK(bad && good && bad < good);
		for (line = (char *)(uintptr_t)buf_text(&out); (end = strchr(line, '\n'));
		     line = end + 1) {
			*end = '\0';
			if (text_width(line) > how.width)
				widest = how.width;
		}
		buf_release(&out);
	}
	CHECK_U64(widest, 0);
	tables_free(how.tables);
}

/* A window that ends in a step and one that begins in it: the page counts that step once. */
void test_check_step_of_two_windows(void)
{
	static const struct report_type *const reports[] = { &report_summary, NULL };
	struct format_request how = { .reports = reports, .is_utf8 = true, .width = 100 };
	char path[32], *paths[] = { path };
	struct event *e;
	struct made m;
	struct buf out;

	made_init(&m);
	put_launch(&m, "cudaLaunchKernel", 1, 0);
	e = put(&m, KIND_STEP, m.thread, "step", BEGIN + 90 * MS, 10 * MS);
	e->number = 0;
	e->flags = EVENT_NEVER_ENDED;
	e = put(&m, KIND_STEP, m.thread, "step", BEGIN + 150 * MS, 10 * MS);
	e->number = 0;
	e->flags = EVENT_BEGAN_EARLIER;
	put(&m, KIND_STEP, m.thread, "step", BEGIN + 160 * MS, 30 * MS)->number = 1;
	put_window(&m, 0, false);
	made_write(&m, 0, path);
	how.tables = tables_with(paths, 1, reports);
	unlink(path);
	buf_init(&out, LOG_MAX);
	CHECK_OK(format_text.write(&how, &out, NULL), NULL);
	CHECK(strstr(buf_text(&out), "2 steps, 0 to 1") != NULL);
	buf_release(&out);
	tables_free(how.tables);
}

/* A partial result of a newer Tacho: its recorder says what this one has no words around. */
void test_check_newer_words(void)
{
	struct table *told, *checks;
	union value keys[RANK_KEYS + 1], *row;
	struct made m;
	struct tables *all;

	made_init(&m);
	put_whole(&m);
	all = report_of(&m, 0);
	told = tables_find(all, "check_told");
	checks = tables_find(all, "checks");
	memcpy(keys, table_at(checks, 0), RANK_KEYS * sizeof(keys[0]));
	keys[RANK_KEYS].text = "of_the_future";
	CHECK_OK(table_row(told, keys, &row, NULL), NULL);
	row[table_column(told, "text")].text = table_text(told, "fans are loud", NULL);
	table_clear(checks);
	CHECK_OK(report_check.finish(all, NULL), NULL);
	check_row(all, "recorder", "of_the_future", "doubt", 1);
	check_text(all, "recorder", "of_the_future", "fans are loud");
	tables_free(all);
}
