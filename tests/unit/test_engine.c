/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/engine.h"

#include "analyze/format/format.h"
#include "analyze/report/report_list.h"
#include "tests/unit/unit.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 6, PATH = 128 };

/*
 * Two steps of 1,000 us, 5 us apart.  In each: data 200 us, ops that launch three kernels and a
 * copy, an optimizer; one kernel communicates and half of it runs under compute.
 */
static void put_step(FILE *f, int number, int at, int id)
{
	fprintf(f,
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":9,"
		"\"tid\":9,\"ts\":%d,\"dur\":1000},\n"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"enumerate(DataLoader)#x\","
		"\"pid\":9,\"tid\":9,\"ts\":%d,\"dur\":200},\n"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":9,\"tid\":9,\"ts\":"
		"%d,"
		"\"dur\":300},\n"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"Optimizer.step#SGD.step\","
		"\"pid\":9,\"tid\":9,\"ts\":%d,\"dur\":100},\n",
		number, at, at, at + 200, at + 800);
	fprintf(f,
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,"
		"\"tid\":9,"
		"\"ts\":%d,\"dur\":5,\"args\":{\"correlation\":%d}},\n"
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,"
		"\"tid\":9,"
		"\"ts\":%d,\"dur\":5,\"args\":{\"correlation\":%d}},\n"
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":9,"
		"\"tid\":9,"
		"\"ts\":%d,\"dur\":5,\"args\":{\"correlation\":%d}},\n",
		at + 210, id, at + 220, id + 1, at + 810, id + 2);
	fprintf(f,
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":%d,"
		"\"dur\":100,\"args\":{\"device\":0,\"stream\":7,\"correlation\":%d}},\n"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,"
		"\"tid\":8,\"ts\":%d,\"dur\":100,\"args\":{\"device\":0,\"stream\":8,"
		"\"correlation\":%d}},\n"
		"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pageable -> "
		"Device)\","
		"\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":40,\"args\":{\"device\":0,\"stream\":7,"
		"\"correlation\":%d,\"bytes\":4000}},\n",
		at + 300, id, at + 350, id + 1, at + 850, id + 2);
}

/* A file of rank `rank`; `whole`: closed as JSON has to be. */
static void file_make(const char *path, int rank, int begin, bool whole)
{
	FILE *f = fopen(path, "w");

	if (!CHECK(f != NULL))
		return;
	fprintf(f, "{\"distributedInfo\":{\"rank\":%d,\"world_size\":4},\"traceEvents\":[\n", rank);
	put_step(f, 3, begin, 1);
	put_step(f, 4, begin + 1005, 11);
	if (whole)
		fprintf(f, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":9,"
			   "\"args\":{\"name\":\"python\"}}]}\n");
	else
		fprintf(f, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::ad");
	fclose(f);
}

struct files {
	char folder[PATH];
	char texts[FILES][PATH + 32];
	char *paths[FILES];
};

static void files_make(struct files *f, const int ranks[], const int begins[], size_t count)
{
	size_t i;

	snprintf(f->folder, sizeof(f->folder), "/tmp/tacho-test-XXXXXX");
	CHECK(mkdtemp(f->folder) != NULL);
	for (i = 0; i < count; i++) {
		snprintf(f->texts[i], sizeof(f->texts[i]), "%s/%zu.json", f->folder, i);
		f->paths[i] = f->texts[i];
		file_make(f->paths[i], ranks[i], begins[i], ranks[i] != 99);
	}
}

static void files_remove(struct files *f, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		unlink(f->paths[i]);
	rmdir(f->folder);
}

static const struct report_type *const all_reports[] = { &report_summary, NULL };

static enum status run(struct tables **out, char *const *paths, size_t count, unsigned threads,
		       struct engine_outcome *outcomes, struct error *err)
{
	struct engine_request how = { .paths = paths,
				      .count = count,
				      .reports = all_reports,
				      .threads = threads,
				      .memory_bytes = 64 << 20,
				      .scratch = "/tmp" };
	struct name_rules *rules = NULL;
	enum status status;

	CHECK_OK(name_rules_new(&rules, NULL, 0, NULL), NULL);
	how.rules = rules;
	status = engine_run(out, &how, outcomes, err);
	name_rules_free(rules);
	return status;
}

static cJSON *json_of(struct tables *tables, struct buf *text)
{
	struct format_request how = { .tables = tables, .reports = all_reports };

	buf_init(text, 1 << 24);
	CHECK_OK(format_json.write(&how, text, NULL), NULL);
	return cJSON_Parse(buf_text(text));
}

static uint64_t number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) ? (uint64_t)item->valuedouble : UINT64_MAX;
}

static const cJSON *row(const cJSON *object, const char *key, int index)
{
	return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(object, key), index);
}

void test_engine_one_input(void)
{
	static const int ranks[] = { 2 }, begins[] = { 5000 };
	struct engine_outcome outcome;
	struct error err = { 0 };
	struct files files;
	struct tables *tables = NULL;
	struct buf text;
	const cJSON *rank, *gpu, *phase, *copy;
	cJSON *json;

	files_make(&files, ranks, begins, 1);
	if (!CHECK_OK(run(&tables, files.paths, 1, 1, &outcome, &err), &err))
		return;
	json = json_of(tables, &text);
	rank = row(json, "ranks", 0);
	CHECK_U64(number(rank, "rank"), 2);
	CHECK_U64(number(rank, "world_size"), 4);
	CHECK_U64(number(rank, "complete_steps"), 2);
	CHECK_U64(number(rank, "complete_wall_ns"), 2005000); /* the gap of 5 us joins */
	gpu = row(rank, "gpus", 0);
	CHECK_U64(number(gpu, "compute_ns"), 200000);
	CHECK_U64(number(gpu, "comm_ns"), 200000);
	CHECK_U64(number(gpu, "exposed_comm_ns"), 100000);
	CHECK_U64(number(gpu, "overlap_comm_ns"), 100000);
	CHECK_U64(number(gpu, "exposed_copy_ns"), 80000);
	CHECK_U64(number(gpu, "span_ns"), 1595000);
	CHECK_U64(number(gpu, "idle_ns"), 1595000 - 380000);
	CHECK_U64(number(gpu, "lead_ns"), 300000);
	CHECK_U64(number(gpu, "tail_ns"), 110000);
	CHECK_U64(number(gpu, "kernels"), 4);
	phase = row(rank, "phases", 0); /* the longest: other, between the named */
	CHECK_STR(cJSON_GetObjectItem(phase, "name")->valuestring, "other");
	CHECK_U64(number(phase, "wall_ns"), 805000);
	phase = row(rank, "phases", 1);
	CHECK_STR(cJSON_GetObjectItem(phase, "name")->valuestring, "forward");
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(phase, "inferred")));
	phase = row(rank, "phases", 2);
	CHECK_STR(cJSON_GetObjectItem(phase, "name")->valuestring, "data");
	CHECK_U64(number(phase, "count"), 2);
	CHECK_U64(number(phase, "avg_ns"), 200000);
	copy = row(rank, "copies", 0);
	CHECK_STR(cJSON_GetObjectItem(copy, "from")->valuestring, "Pageable");
	CHECK_U64(number(copy, "bytes"), 8000);
	CHECK_U64(number(copy, "exposed_ns"), 80000);
	CHECK_U64(number(row(row(rank, "steps", 1), "gpus", 0), "comm_count"), 1);
	cJSON_Delete(json);
	buf_release(&text);
	tables_free(tables);
	files_remove(&files, 1);
}

/* The same bytes from one thread and from several. */
void test_engine_threads_agree(void)
{
	static const int ranks[] = { 3, 0, 2, 1 }, begins[] = { 5000, 6000, 5500, 5000 };
	struct engine_outcome outcomes[4];
	struct tables *tables = NULL;
	struct files files;
	struct buf first, other;
	unsigned threads;

	files_make(&files, ranks, begins, 4);
	if (!CHECK_OK(run(&tables, files.paths, 4, 1, outcomes, NULL), NULL))
		return;
	cJSON_Delete(json_of(tables, &first));
	tables_free(tables);
	for (threads = 2; threads <= 4; threads++) {
		CHECK_OK(run(&tables, files.paths, 4, threads, outcomes, NULL), NULL);
		cJSON_Delete(json_of(tables, &other));
		CHECK_STR(buf_text(&other), buf_text(&first));
		buf_release(&other);
		tables_free(tables);
	}
	CHECK(strstr(buf_text(&first), "\"rank\": 3") != NULL);
	buf_release(&first);
	files_remove(&files, 4);
}

void test_engine_same_rank_twice(void)
{
	static const int ranks[] = { 1, 1, 1 }, begins[] = { 5000, 50000, 50500 };
	struct engine_outcome outcomes[3];
	struct tables *tables = NULL;
	struct error err = { 0 };
	struct files files;

	files_make(&files, ranks, begins, 3);
	/* two windows of one rank */
	CHECK_OK(run(&tables, files.paths, 2, 2, outcomes, &err), &err);
	CHECK_U64(table_count(tables_find(tables, "ranks")), 1);
	CHECK_U64(table_at(tables_find(tables, "gpus"), 0)[4].u64 != 0, 0); /* no uuid */
	tables_free(tables);
	/* the third overlaps the second */
	CHECK_U64(run(&tables, files.paths, 3, 2, outcomes, &err), ST_USAGE);
	CHECK(tables == NULL);
	CHECK(strstr(err.text, files.paths[1]) && strstr(err.text, files.paths[2]));
	files_remove(&files, 3);
}

/* What could be read of a damaged input is in the report, and why it ended is known. */
void test_engine_damaged_input(void)
{
	static const int ranks[] = { 0, 99 }, begins[] = { 5000, 5000 };
	struct engine_outcome outcomes[2];
	struct tables *tables = NULL;
	struct error err = { 0 };
	struct files files;
	char *missing[] = { "/nonexistent/trace.json" };

	files_make(&files, ranks, begins, 2);
	CHECK_OK(run(&tables, files.paths, 2, 2, outcomes, &err), &err);
	CHECK_U64(outcomes[0].status, ST_OK);
	CHECK_U64(status_exit(outcomes[1].status), 4);
	CHECK(outcomes[1].is_in_tables);
	CHECK(outcomes[1].error.text[0] != '\0');
	CHECK_U64(table_count(tables_find(tables, "ranks")), 2);
	tables_free(tables);
	CHECK_U64(run(&tables, missing, 1, 1, outcomes, &err), ST_IO);
	CHECK_U64(outcomes[0].status, ST_IO);
	CHECK(tables == NULL);
	files_remove(&files, 2);
}
