/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks csv and sqlite: what they write is read back. */
#include "schemas/base/json_text.h"
#include "convert/sink/sink.h"
#include "schemas/base/utf8.h"
#include "tests/unit/folder.h"
#include "tests/unit/sink_files.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* Names with everything that breaks tables: quotes, commas, lines, a NUL, bytes that are no text.
 */
static const char evil[] = "a \"b\", c\nd\r;\te\x01 \xff\xfe caf\xc3\xa9";

static void make_run(struct sink_run *run)
{
	struct attr consts, args[2];
	struct event *e;
	static const uint64_t words[2] = { 7, UINT64_C(18446744073709551615) };
	uint32_t thread, stream;

	sink_run_make(run);
	thread = run_thread(run, 100);
	stream = run_stream(run, 1, 7);
	consts = run_text(run, "odd \"key\"", evil);
	args[0] = run_number(run, "grid_id", 0);
	args[1] = run_number(run, "unknown here", 0);
	e = run_event(run, KIND_API, thread, "cudaLaunchKernel", 1, 3);
	e->correlation = 42;
	e->flags = EVENT_RESULT;
	e->result = -3;
	e = run_event(run, KIND_KERNEL, stream, evil, 2, 5);
	e->correlation = 42;
	e->schema = run_schema(run, &consts, 1, args, 2);
	e->args = words;
	e = run_event(run, KIND_MEMCPY, stream, NULL, 6, 7.5);
	e->subkind = 1;
	e->bytes = 1 << 20;
	e = run_event(run, KIND_ALLOC, run_pool(run, 1), NULL, 8, 8);
	e->address = 0xdeadbeef;
	e->bytes = 512;
	e = run_event(run, KIND_COUNTER, run_counter(run, 1, "power"), NULL, 9, 9);
	e->value = 71.5;
	e = run_event(run, KIND_STEP, thread, NULL, 10, 20);
	e->number = 0;
	e->flags = EVENT_NEVER_ENDED;
	e = run_event(run, KIND_UNKNOWN, thread, "of tomorrow", 11, 12);
	(void)e;
}

/* The next cell of RFC 4180 text; *end tells a line's last. */
static const char *next_cell(const char *at, struct buf *cell, bool *end)
{
	bool quoted = *at == '"';

	buf_clear(cell);
	at += quoted;
	while (*at && (quoted || (*at != ',' && *at != '\n'))) {
		if (quoted && *at == '"' && *++at != '"')
			break;
		buf_put_byte(cell, (uint8_t)*at++);
	}
	*end = *at != ',';
	return *at ? at + 1 : at;
}

static void check_row(const char **at, const char *const *want, size_t count)
{
	struct buf cell;
	bool end = false;

	buf_init(&cell, 1 << 20);
	for (size_t i = 0; i < count && !end; i++) {
		*at = next_cell(*at, &cell, &end);
		if (want[i])
			CHECK_STR(buf_text(&cell), want[i]);
		CHECK(end == (i + 1 == count));
	}
	buf_release(&cell);
}

/* The events of make_run() as cells; NULL is a cell that is not compared. */
static const char *const csv_rows[][20] = {
	{ "time_ns", "dur_ns", "kind",   "class",   "name",   "host",        "rank",
	  "pid",     "thread", "device", "context", "stream", "correlation", "bytes",
	  "address", "value",  "result", "number",  "state",  "args" },
	{ "1700000000000001000",
	  "2000",
	  "api",
	  "runtime",
	  "cudaLaunchKernel",
	  "node",
	  "3",
	  "100",
	  "100",
	  "",
	  "",
	  "",
	  "42",
	  "",
	  "",
	  "",
	  "-3",
	  "",
	  "",
	  "" },
	{ "1700000000000002000",
	  "3000",
	  "kernel",
	  "",
	  "a \"b\", c\nd\r;\te\x01 \xef\xbf\xbd\xef\xbf\xbd caf\xc3\xa9",
	  "node",
	  "3",
	  "100",
	  "",
	  "1",
	  NULL,
	  "7",
	  "42",
	  "",
	  "",
	  "",
	  "",
	  "",
	  "",
	  NULL },
	{ "1700000000000006000",
	  "1500",
	  "memcpy",
	  "HtoD",
	  "HtoD",
	  "node",
	  "3",
	  "100",
	  "",
	  "1",
	  NULL,
	  "7",
	  "",
	  "1048576",
	  "",
	  "",
	  "",
	  "",
	  "",
	  "" },
	{ NULL, "0", "alloc", "",    "",           "node", "3", "100", NULL, "1",
	  NULL, "",  "",      "512", "3735928559", "",     "",  "",    "",   "" },
	{ NULL, "0", "counter", "", "power", "node", "3", "100", "", "1",
	  NULL, "",  "",        "", "",      "71.5", "",  "",    "", "" },
	{ NULL, "10000", "step", "", "", "node", "3", "100", "100",         "",
	  "",   "",      "",     "", "", "",     "",  "0",   "never_ended", "" },
	{ NULL,   "1000", "kind_0", "",    "of tomorrow",
	  "node", "3",    "100",    "100", "",
	  "",     "",     "",       "",    "",
	  "",     "",     "",       "",    "" },
};

void test_sink_csv(void)
{
	struct sink_run run;
	struct buf out;
	const char *at;

	make_run(&run);
	if (!CHECK(sink_run_write(&run, &sink_csv, true, &out)))
		return;
	at = buf_text(&out);
	for (size_t i = 0; i < sizeof(csv_rows) / sizeof(*csv_rows); i++)
		check_row(&at, csv_rows[i], 20);
	CHECK_STR(at, "");
	CHECK(strstr(buf_text(&out), "\"\"grid_id\"\": 7") != NULL);
	for (size_t i = 0; i < out.len;) { /* nothing but UTF-8 */
		size_t n = utf8_sequence((const char *)out.data + i, out.len - i);

		if (!CHECK(n > 0))
			break;
		i += n;
	}
	buf_release(&out);
	sink_run_release(&run);
}

/* A column of numbers holds no word but those that readers take for a number. */
void test_sink_csv_numbers(void)
{
	static const char *const want[] = { ",nan,", ",inf,", ",-inf,", ",0.25," };
	const double values[] = { NAN, INFINITY, -INFINITY, 0.25 };
	struct sink_run run;
	struct buf out;
	uint32_t counter;

	sink_run_make(&run);
	counter = run_counter(&run, 1, "power");
	for (unsigned i = 0; i < 4; i++)
		run_event(&run, KIND_COUNTER, counter, NULL, i, i)->value = values[i];
	if (CHECK(sink_run_write(&run, &sink_csv, true, &out))) {
		for (unsigned i = 0; i < 4; i++)
			CHECK(strstr(buf_text(&out), want[i]) != NULL);
		CHECK(strstr(buf_text(&out), "null") == NULL);
	}
	buf_release(&out);
	sink_run_release(&run);
}

void test_sink_csv_lean(void)
{
	struct sink_run run;
	struct buf out;

	make_run(&run);
	if (CHECK(sink_run_write(&run, &sink_csv, false, &out))) {
		CHECK(strstr(buf_text(&out), "grid_id") == NULL); /* Kineto writes none */
		CHECK(strstr(buf_text(&out), "unknown here") != NULL);
	}
	buf_release(&out);
	sink_run_release(&run);
}

/* ---- sqlite ---- */

static void check_ask(sqlite3 *db, const char *sql, const char *want)
{
	sqlite3_stmt *s = NULL;
	const char *text;

	if (!CHECK(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK))
		return;
	if (CHECK(sqlite3_step(s) == SQLITE_ROW)) {
		text = (const char *)sqlite3_column_text(s, 0);
		CHECK_STR(text ? text : "NULL", want);
	}
	sqlite3_finalize(s);
}

static const char *const asked[][2] = {
	{ "PRAGMA integrity_check", "ok" },
	{ "SELECT count(*) FROM events", "7" },
	{ "SELECT sum(dur_ns) FROM timeline WHERE kind = 'kernel'", "3000" },
	{ "SELECT name FROM timeline WHERE kind = 'kernel'",
	  "a \"b\", c\nd\r;\te\x01 \xef\xbf\xbd\xef\xbf\xbd caf\xc3\xa9" },
	{ "SELECT a.name FROM timeline a JOIN timeline k USING (correlation, pid) "
	  "WHERE a.kind = 'api' AND k.kind = 'kernel'",
	  "cudaLaunchKernel" },
	{ "SELECT result FROM events WHERE kind = 'api'", "-3" },
	{ "SELECT json_extract(args, '$.grid_id') FROM events WHERE kind = 'kernel'", "7" },
	{ "SELECT json_valid(shape_args) FROM timeline WHERE kind = 'kernel'", "1" },
	{ "SELECT class || ' ' || bytes FROM events WHERE kind = 'memcpy'", "HtoD 1048576" },
	{ "SELECT address FROM events WHERE kind = 'alloc'", "3735928559" },
	{ "SELECT name || ' ' || value FROM timeline WHERE kind = 'counter'", "power 71.5" },
	{ "SELECT number || state FROM events WHERE kind = 'step'", "0never_ended" },
	{ "SELECT count(*) FROM events WHERE kind = 'kind_0'", "1" },
	{ "SELECT host || pid || '/' || rank || '/' || world_size FROM processes", "node100/3/4" },
	{ "SELECT stream FROM timeline WHERE kind = 'kernel'", "7" },
	{ "SELECT thread FROM timeline WHERE kind = 'api'", "100" },
	{ "SELECT count || reason FROM losses", "5damaged" },
};

void test_sink_sqlite(void)
{
	struct sink_run run;
	struct folder folder;
	struct buf out;
	sqlite3 *db = NULL;

	make_run(&run);
	trace_lose(run.trace, 1, LOSS_DAMAGED, 5);
	if (!CHECK(sink_run_write(&run, &sink_sqlite, true, &out)))
		return;
	folder_make(&folder);
	folder_write(&folder, "a.db", out.data, out.len);
	if (CHECK(sqlite3_open(folder_path(&folder, "a.db"), &db) == SQLITE_OK))
		for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
			check_ask(db, asked[i][0], asked[i][1]);
	sqlite3_close(db);
	folder_remove(&folder);
	buf_release(&out);
	sink_run_release(&run);
}
