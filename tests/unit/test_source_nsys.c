/* SPDX-License-Identifier: Apache-2.0 */
/* Nsight Systems' SQLite export: small databases made here, whole, odd and damaged. */
#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/base/buf.h"
#include "schemas/model/records.h"
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* globalTid of process 5, thread 6, and its globalPid. */
#define TID "281474976710656 + 5 * 16777216 + 6"
#define PID "281474976710656 + 5 * 16777216"

static const char schema[] =
	"CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);"
	"CREATE TABLE ANALYSIS_DETAILS(startTime INTEGER, stopTime INTEGER);"
	"CREATE TABLE TARGET_INFO_SYSTEM_ENV(name TEXT, value TEXT);"
	"CREATE TABLE ThreadNames(nameId INTEGER, globalTid INTEGER);"
	"CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT);"
	"CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, smCount INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
	"contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
	"demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridId INTEGER, novelty REAL);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, "
	"contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
	"bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, "
	"deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
	"globalPid INTEGER, syncType INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass INTEGER, "
	"globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
	"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER, globalPid INTEGER, "
	"deviceId INTEGER, contextId INTEGER, address INTEGER, bytes INTEGER, memKind INTEGER, "
	"memoryOperationType INTEGER);"
	"CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, "
	"text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, "
	"uint64Value INTEGER);"
	"CREATE TABLE SCHED_EVENTS(start INTEGER, cpu INTEGER);";

static const char rows[] =
	"INSERT INTO StringIds VALUES(1, 'kernel<float>'), (2, 'cudaLaunchKernel_v7000'), "
	"(3, 'cuMemAlloc'), (4, 'main thread'), (5, 'by id');"
	"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1700000000000000000);"
	"INSERT INTO ANALYSIS_DETAILS VALUES(1000, 9000);"
	"INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES('Hostname', 'node7');"
	"INSERT INTO ThreadNames VALUES(4, " TID ");"
	"INSERT INTO PROCESSES VALUES(" PID ", 5, 'python3');"
	"INSERT INTO TARGET_INFO_GPU VALUES(1, 'H100', 132);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
	"(2000, 2500, 1, 9, 7, 42, " PID ", 1, 1, 128, 77, 0.5);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES"
	"(3000, 3100, 1, 9, 7, 43, " PID ", 4096, 1, 0, 2);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES"
	"(3200, 3300, 0, 9, 7, 44, " PID ", 3);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES"
	"(1500, 1600, 0, " TID ", 42, 2, 0), (1700, 1800, 1, " TID ", 45, 3, 2);"
	"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
	"(1750, " PID ", 1, 9, 65536, 512, 2, 0), (1760, " PID ", 1, 9, 65536, 512, 2, 1);"
	"INSERT INTO NVTX_EVENTS VALUES"
	"(1000, NULL, 75, NULL, 'NCCL', " TID ", NULL, NULL, 3, NULL),"
	"(1100, 5000, 59, NULL, 'outer', " TID ", NULL, NULL, 0, NULL),"
	"(1200, 1300, 60, 8, NULL, " TID ", " TID ", 5, 3, 11),"
	"(1400, NULL, 34, NULL, 'mark', " TID ", NULL, NULL, 0, NULL),"
	"(6000, NULL, 59, NULL, 'open', " TID ", NULL, NULL, 0, NULL);"
	"INSERT INTO SCHED_EVENTS VALUES(1, 2), (3, 4);";

struct made {
	struct folder folder;
	struct trace *trace;
	struct input *in;
	struct source *source;
	struct error err;
	enum status status;
};

static const char *make_file(struct folder *f, const char *more)
{
	const char *path = folder_path(f, "export.sqlite");
	sqlite3 *db = NULL;
	char *why = NULL;

	CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_exec(db, rows, NULL, NULL, NULL) == SQLITE_OK);
	if (more && !CHECK(sqlite3_exec(db, more, NULL, NULL, &why) == SQLITE_OK))
		fprintf(stderr, "%s\n", why);
	sqlite3_free(why);
	sqlite3_close(db);
	return path;
}

static void open_path(struct made *m, const char *path)
{
	struct budget budget = { .opening = 32 << 20, .resident = 65536, .scratch = "/tmp" };

	CHECK_OK(trace_new(&m->trace, 64 << 20, &m->err), &m->err);
	if (CHECK_OK(input_open(&m->in, path, "/tmp", &m->err), &m->err))
		m->status = source_open(&m->source, m->in, m->trace, &budget, NULL, &m->err);
}

static void open_with(struct made *m, const char *more)
{
	*m = (struct made){ .trace = NULL };
	folder_make(&m->folder);
	open_path(m, make_file(&m->folder, more));
}

static void close_made(struct made *m)
{
	source_close(m->source);
	input_close(m->in);
	trace_free(m->trace);
	folder_remove(&m->folder);
}

static const struct event *find(const struct event *e, size_t count, unsigned kind,
				uint64_t begin_ns)
{
	for (size_t i = 0; i < count; i++)
		if (e[i].kind == kind &&
		    e[i].begin_ns == UINT64_C(1700000000000000000) + begin_ns - 1000)
			return &e[i];
	CHECK(!"the event is there");
	return &e[0];
}

static const char *name_of(const struct made *m, const struct event *e)
{
	return trace_text(m->trace, e->name, NULL);
}

static uint64_t number_of(const struct made *m, const struct event *e, const char *key)
{
	const struct attr *a = trace_find_attr(m->trace, e->schema, key);

	return a ? a->bits : 0;
}

static void check_gpu(const struct made *m, const struct event *all, size_t count)
{
	const struct event *e = find(all, count, KIND_KERNEL, 2000);
	const struct track *k = trace_get_track(m->trace, e->track);
	const struct process *p = trace_get_process(m->trace, k->process);
	uint32_t device = trace_find_device(m->trace, k->process, 1);

	CHECK_U64(e->end_ns - e->begin_ns, 500);
	CHECK_U64(e->correlation, 42);
	CHECK_STR(name_of(m, e), "kernel<float>");
	CHECK_U64(number_of(m, e, "grid_x"), 128);
	CHECK_U64(trace_get_schema(m->trace, e->schema)->arg_count, 2); /* grid_id, novelty */
	CHECK(k->type == TRACK_STREAM && k->device == 1 && k->context == 9 && k->id == 7);
	CHECK_U64(p->pid, 5);
	CHECK_STR(trace_text(m->trace, p->host, NULL), "node7");
	CHECK_STR(trace_text(m->trace, p->command, NULL), "python3");
	CHECK_STR(trace_text(m->trace, trace_get_device(m->trace, device)->name, NULL), "H100");
	CHECK(trace_find_attr(m->trace, trace_get_device(m->trace, device)->schema, "smCount") !=
	      NULL);
	e = find(all, count, KIND_MEMCPY, 3000);
	CHECK_U64(e->bytes, 4096);
	CHECK_U64(e->subkind, 1);
	CHECK_U64(number_of(m, e, "src_kind"), 1); /* pageable, as CUPTI counts */
	CHECK_U64(number_of(m, e, "dst_kind"), 3);
	e = find(all, count, KIND_SYNC, 3200);
	CHECK_U64(e->subkind, 3);
	CHECK_U64(trace_get_track(m->trace, e->track)->device, 1); /* of its context, not 0 */
}

static void check_host(const struct made *m, const struct event *all, size_t count)
{
	const struct event *e = find(all, count, KIND_API, 1500);
	const struct track *k = trace_get_track(m->trace, e->track);

	CHECK_STR(name_of(m, e), "cudaLaunchKernel_v7000");
	CHECK(e->subkind == API_RUNTIME && e->flags & EVENT_RESULT && e->result == 0);
	CHECK(k->type == TRACK_THREAD && k->id == 6);
	CHECK_STR(trace_text(m->trace, k->name, NULL), "main thread");
	CHECK_U64(trace_launches(m->trace, e->track), 1);
	e = find(all, count, KIND_API, 1700);
	CHECK(e->subkind == API_DRIVER && e->result == 2);
	e = find(all, count, KIND_ALLOC, 1750);
	CHECK(e->address == 65536 && e->bytes == 512);
	find(all, count, KIND_FREE, 1760);
	e = find(all, count, KIND_RANGE, 1100);
	CHECK_STR(name_of(m, e), "outer");
	CHECK_U64(e->end_ns - e->begin_ns, 3900);
	CHECK_U64(e->subkind, RANGE_NVTX);
	e = find(all, count, KIND_RANGE, 1200);
	CHECK_STR(name_of(m, e), "by id");
	CHECK_STR(trace_text(m->trace, (uint32_t)number_of(m, e, "domain"), NULL), "NCCL");
	e = find(all, count, KIND_MARK, 1400);
	CHECK_STR(name_of(m, e), "mark");
	e = find(all, count, KIND_RANGE, 6000);
	CHECK(e->flags & EVENT_NEVER_ENDED);
	CHECK_U64(e->end_ns - e->begin_ns, 3000); /* to the end of the session */
}

void test_nsys_events(void)
{
	struct made m;
	const struct attr *unread;
	struct event *all;
	size_t count;

	open_with(&m, NULL);
	if (CHECK_OK(m.status, &m.err)) {
		all = events_of(m.source, &count);
		CHECK_U64(count, 11);
		check_gpu(&m, all, count);
		check_host(&m, all, count);
		CHECK(trace_provenance(m.trace)->is_whole &&
		      trace_provenance(m.trace)->epoch_known);
		CHECK_U64(trace_lost(m.trace, 0, LOSS_UNREAD), 2);
		unread = trace_find_attr(m.trace, trace_get_process(m.trace, 1)->schema,
					 "tables_not_read");
		if (CHECK(unread != NULL))
			CHECK_STR(trace_text(m.trace, (uint32_t)unread->bits, NULL),
				  "SCHED_EVENTS (2)");
		CHECK_U64(trace_lost_total(m.trace, 0), 0);
		free(all);
	}
	close_made(&m);
}

/* Older exports have CUDA events without a time: the table is not read, and its rows are no fault.
 */
void test_nsys_table_without_times(void)
{
	struct made m;
	const struct attr *unread;
	struct event *all;
	size_t count;

	open_with(&m, "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(deviceId INTEGER, contextId "
		      "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
		      "eventId INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES"
		      "(1, 9, 7, 50, " PID ", 1), (1, 9, 7, 51, " PID ", 2), (1, 9, 7, 52, " PID
		      ", 3)");
	if (CHECK_OK(m.status, &m.err)) {
		all = events_of(m.source, &count);
		CHECK_U64(count, 11);
		CHECK_U64(trace_lost(m.trace, 0, LOSS_NO_TIME), 0);
		CHECK_U64(trace_lost(m.trace, 0, LOSS_UNREAD), 5);
		CHECK_U64(trace_lost_total(m.trace, 0), 0);
		unread = trace_find_attr(m.trace, trace_get_process(m.trace, 1)->schema,
					 "tables_not_read");
		if (CHECK(unread != NULL))
			CHECK_STR(trace_text(m.trace, (uint32_t)unread->bits, NULL),
				  "CUPTI_ACTIVITY_KIND_CUDA_EVENT (3), SCHED_EVENTS (2)");
		free(all);
	}
	close_made(&m);
}

/* Rows that are not as they should be: each is lost or repaired, and counted. */
void test_nsys_odd_rows(void)
{
	static const struct {
		const char *sql;
		size_t events;
		uint64_t damaged, no_time;
	} cases[] = {
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 1000", 11, 1, 0 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = NULL", 10, 0, 1 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'", 10, 0, 1 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = x'00ff'", 10, 0, 1 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 9223372036854775807", 10, 0, 1 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = -9223372036854775807", 10, 0, 1 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = -5, streamId = 'x'", 11, 0, 0 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 999, globalPid = NULL", 11,
		  0, 0 },
		{ "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = -1", 11, 0, 0 },
		{ "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
		  12, 0, 0 }, /* a correlation id twice: a graph has many */
		{ "DROP TABLE StringIds; DROP TABLE TARGET_INFO_SESSION_START_TIME;"
		  "DROP TABLE ANALYSIS_DETAILS; DROP TABLE PROCESSES; DROP TABLE ThreadNames;"
		  "DROP TABLE TARGET_INFO_GPU; DROP TABLE TARGET_INFO_SYSTEM_ENV",
		  11, 0, 0 },
		{ "DROP TABLE NVTX_EVENTS; DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME", 5, 0, 0 },
		{ "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL "
		  "AS "
		  "SELECT * FROM CUPTI_ACTIVITY_KIND_MEMCPY",
		  10, 0, 0 },
		{ "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid", 11, 0, 0 },
		{ "CREATE TABLE \"a\"\"b\"(x); CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN "
		  "SELECT 1; END",
		  11, 0, 0 },
		{ "UPDATE NVTX_EVENTS SET text = 'a \"q\" ' || x'0102ff' || char(10)", 11, 0, 0 },
		{ "UPDATE NVTX_EVENTS SET domainId = 77, uint64Value = -1", 11, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct made m;
		struct event *all;
		size_t count;

		open_with(&m, cases[i].sql);
		if (CHECK_OK(m.status, &m.err)) {
			all = events_of(m.source, &count);
			if (!CHECK_U64(count, cases[i].events) ||
			    !CHECK_U64(trace_lost(m.trace, 0, LOSS_DAMAGED), cases[i].damaged) ||
			    !CHECK_U64(trace_lost(m.trace, 0, LOSS_NO_TIME), cases[i].no_time))
				fprintf(stderr, "\tin %s\n", cases[i].sql);
			free(all);
		}
		close_made(&m);
	}
}

/* A text of 20 MB is not loaded: its row is counted, those around it stay. */
/* Ranges of PyTorch's emit_nvtx(): operators, and the number of the call as a field. */
void test_nsys_torch_ranges(void)
{
	static const struct {
		const char *text, *name;
		uint8_t subkind;
	} cases[] = {
		{ "aten::mm, seq = 12, op_id = 345", "aten::mm", RANGE_OP },
		{ "AddmmBackward0, op_id = 9", "AddmmBackward0", RANGE_OP },
		{ "FSDP::pre_forward, op_id = 7", "FSDP::pre_forward", RANGE_NVTX },
		{ "my Backward, and more", "my Backward, and more", RANGE_NVTX },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char sql[128];
		struct made m;
		struct event *all;
		size_t count;

		snprintf(sql, sizeof(sql), "UPDATE NVTX_EVENTS SET text = '%s' WHERE start = 1100",
			 cases[i].text);
		open_with(&m, sql);
		if (CHECK_OK(m.status, &m.err)) {
			all = events_of(m.source, &count);
			CHECK_STR(name_of(&m, find(all, count, KIND_RANGE, 1100)), cases[i].name);
			CHECK_U64(find(all, count, KIND_RANGE, 1100)->subkind, cases[i].subkind);
			free(all);
		}
		close_made(&m);
	}
}

void test_nsys_huge_text(void)
{
	struct made m;
	struct event *all;
	size_t count;

	open_with(&m, "UPDATE NVTX_EVENTS SET text = replace(hex(zeroblob(10500000)), '0', 'x') "
		      "WHERE eventType = 34");
	if (CHECK_OK(m.status, &m.err)) {
		all = events_of(m.source, &count);
		CHECK_U64(count, 10);
		CHECK_U64(trace_lost(m.trace, 0, LOSS_CEILING), 1);
		free(all);
	}
	close_made(&m);
}

/* A file whose program keeps a write-ahead log beside it, which may not be here. */
void test_nsys_write_ahead(void)
{
	struct made m;
	size_t count;

	open_with(&m, "PRAGMA journal_mode = WAL; CREATE TABLE more(x INTEGER)");
	if (CHECK_OK(m.status, &m.err)) {
		free(events_of(m.source, &count));
		CHECK_U64(count, 11);
	}
	close_made(&m);
}

void test_nsys_refused(void)
{
	struct made m = { .trace = NULL };
	sqlite3 *db = NULL;

	folder_make(&m.folder);
	if (CHECK(sqlite3_open(folder_path(&m.folder, "other.sqlite"), &db) == SQLITE_OK))
		sqlite3_exec(db, "CREATE TABLE cookies(host TEXT)", NULL, NULL, NULL);
	sqlite3_close(db);
	open_path(&m, folder_path(&m.folder, "other.sqlite"));
	CHECK_U64(m.status, ST_FORMAT);
	CHECK(strstr(m.err.text, "not an export of Nsight Systems") != NULL);
	close_made(&m);
}

/* Reads all that is there; whatever the file is like, nothing but a status may come of it. */
static bool read_damaged(const char *path)
{
	struct made m = { .trace = NULL };
	bool good = false;
	struct batch batch;

	open_path(&m, path);
	if (m.status == ST_OK)
		while (source_next(m.source, &batch, &m.err) == ST_OK)
			good |= batch.count > 0;
	else
		CHECK(m.err.text[0] != 0);
	source_close(m.source);
	input_close(m.in);
	trace_free(m.trace);
	return good;
}

void test_nsys_cut(void)
{
	struct folder f;
	size_t len, step;
	uint8_t *bytes;
	unsigned readable = 0;

	folder_make(&f);
	bytes = folder_read(make_file(&f, NULL), &len);
	step = len / 256 + 1;
	for (size_t cut = 16; bytes && cut < len; cut += step)
		readable += read_damaged(folder_write(&f, "cut.sqlite", bytes, cut));
	CHECK(readable > 0); /* tables before the cut are read */
	free(bytes);
	folder_remove(&f);
}

void test_nsys_damage(void)
{
	struct folder f;
	uint64_t seed = 7;
	size_t len;
	uint8_t *bytes, *bad;
	unsigned readable = 0;

	folder_make(&f);
	bytes = folder_read(make_file(&f, NULL), &len);
	bad = malloc(len + 1);
	for (unsigned round = 0; bytes && bad && round < 200; round++) {
		memcpy(bad, bytes, len);
		for (size_t i = 0; i < (round % 2 ? len / 100 : 5); i++)
			bad[100 + random_u64(&seed) % (len - 100)] = (uint8_t)random_u64(&seed);
		readable += read_damaged(folder_write(&f, "bad.sqlite", bad, len));
	}
	CHECK(readable > 0);
	free(bytes);
	free(bad);
	folder_remove(&f);
}
