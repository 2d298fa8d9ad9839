/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/nsys/internal.h"

#include <stdio.h>
#include <string.h>

enum { TABLES_MAX = 4096, ATTRS_MAX = 64 };

/* Reads the offset of the session's clock, on which event times are: ANALYSIS_DETAILS.startTime on
 * that clock is utcEpochNs.  Older exports count from 0 there and have no such row. */
void nsys_meta_clock(struct nsys_import *n)
{
	int64_t utc_ns = 0, start_ns = 0;

	database_number(n->db, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME", &utc_ns);
	database_number(n->db, "SELECT startTime FROM ANALYSIS_DETAILS", &start_ns);
	if (!database_number(n->db, "SELECT stopTime FROM ANALYSIS_DETAILS", &n->last_ns) ||
	    n->last_ns > IMPORT_TIME_MOST)
		n->last_ns = 0;
	if (utc_ns <= IMPORT_TIME_MOST && start_ns >= 0 && start_ns < utc_ns)
		n->epoch_ns = utc_ns - start_ns;
}

/* Reads the names of NVTX domains, which have rows of their own. */
static enum status read_domains(struct nsys_import *n, struct error *err)
{
	RELEASED_BY(database_end)
	sqlite3_stmt *s = database_ask(n->db, "SELECT domainId, text, textId FROM NVTX_EVENTS "
					      "WHERE eventType = 75");

	while (database_row(s)) {
		const char *text = (const char *)sqlite3_column_text(s, 1);
		uint32_t name = 0;

		if (text && text[0])
			TRY(nsys_text(n, s, 1, &name, err));
		else if (sqlite3_column_type(s, 2) == SQLITE_INTEGER)
			TRY(nsys_string(n, sqlite3_column_int64(s, 2), &name, err));
		if (name)
			TRY(nsys_keep(&n->domains, (uint64_t)sqlite3_column_int64(s, 0), name,
				      err));
	}
	return ST_OK;
}

enum status nsys_meta_host(struct nsys_import *n, struct error *err)
{
	sqlite3_stmt *s = database_ask(
		n->db, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'");
	enum status status = database_row(s) ? nsys_text(n, s, 0, &n->host, err) : ST_OK;

	sqlite3_finalize(s);
	TRY(status);
	return database_has(n->db, "NVTX_EVENTS") ? read_domains(n, err) : ST_OK;
}

/* ---- names of processes, threads and GPUs ---- */

static enum status name_processes(struct nsys_import *n, struct error *err)
{
	RELEASED_BY(database_end)
	sqlite3_stmt *s = database_ask(n->db, "SELECT globalPid, name FROM PROCESSES");

	while (database_row(s)) {
		uint64_t global = (uint64_t)sqlite3_column_int64(s, 0);
		uint32_t process = nsys_find(&n->processes, global >> 24), command = 0;
		struct process p = *trace_get_process(n->to.trace, process);

		if (process)
			TRY(nsys_text(n, s, 1, &command, err));
		if (!command)
			continue;
		p.command = command;
		trace_set_process(n->to.trace, process, &p);
	}
	return ST_OK;
}

static enum status name_threads(struct nsys_import *n, struct error *err)
{
	RELEASED_BY(database_end)
	sqlite3_stmt *s = database_ask(n->db, "SELECT globalTid, nameId FROM ThreadNames");

	while (database_row(s)) {
		uint64_t global = (uint64_t)sqlite3_column_int64(s, 0);
		uint32_t name = 0, track = nsys_find(&n->threads, global);

		if (track)
			TRY(nsys_string(n, sqlite3_column_int64(s, 1), &name, err));
		if (name)
			trace_set_track_name(n->to.trace, track, name);
	}
	return ST_OK;
}

/* Converts the current row of TARGET_INFO_GPU: *out gets its name, and all other columns as
 * constants. */
static enum status read_gpu(struct nsys_import *n, sqlite3_stmt *s, struct device *out,
			    struct error *err)
{
	int columns = sqlite3_column_count(s);

	import_begin(&n->to);
	for (int i = 0; i < columns && n->to.consts.len < ATTRS_MAX * sizeof(struct attr); i++) {
		const char *key = sqlite3_column_name(s, i);
		int type = sqlite3_column_type(s, i);
		int64_t number = sqlite3_column_int64(s, i);
		struct attr a = { .type = number < 0 ? ATTR_I64 : ATTR_U64,
				  .bits = (uint64_t)number };
		uint32_t text;

		if (!key || (type != SQLITE_INTEGER && type != SQLITE_TEXT))
			continue;
		TRY(import_name(&n->to, key, strlen(key), &a.key, err));
		if (type == SQLITE_TEXT) {
			TRY(nsys_text(n, s, i, &text, err));
			a.type = ATTR_TEXT;
			a.bits = text;
		}
		if (type == SQLITE_TEXT && strcmp(key, "name") == 0)
			out->name = text;
		else
			import_attr(&n->to, &a, false);
	}
	return import_schema_id(&n->to, &out->schema, err);
}

/* Describes GPU `ordinal`, by the process's own numbering of GPUs if the file contains it. */
static enum status describe_gpu(struct nsys_import *n, uint32_t pid, uint32_t ordinal,
				struct device *out, struct error *err)
{
	static const char *const questions[] = {
		"SELECT g.* FROM TARGET_INFO_GPU g JOIN TARGET_INFO_CUDA_DEVICE c "
		"ON c.gpuId = g.id WHERE c.cudaId = ?1 AND c.pid = ?2",
		"SELECT * FROM TARGET_INFO_GPU WHERE id = ?1",
	};

	for (int i = 0; i < 2; i++) {
		RELEASED_BY(database_end) sqlite3_stmt *s = database_ask(n->db, questions[i]);

		sqlite3_bind_int64(s, 1, ordinal); /* harmless error if `s` is NULL or has no ?2 */
		sqlite3_bind_int64(s, 2, pid);
		if (database_row(s))
			return read_gpu(n, s, out, err);
	}
	return ST_OK;
}

enum status nsys_meta_names(struct nsys_import *n, struct error *err)
{
	struct trace *trace = n->to.trace;

	TRY(name_processes(n, err));
	TRY(name_threads(n, err));
	/* Add the GPUs that events refer to.  A device cannot change later, so it is added only
	 * now. */
	for (uint32_t i = 1; i <= trace_count(trace, TRACE_TRACKS); i++) {
		const struct track *t = trace_get_track(trace, i);
		struct device d = { .process = t->process, .id = t->device };
		uint32_t pid = trace_get_process(trace, d.process)->pid;

		if (t->type != TRACK_STREAM || d.id == NO_ID ||
		    trace_find_device(trace, d.process, d.id))
			continue;
		TRY(describe_gpu(n, pid, d.id, &d, err));
		if (!trace_device(trace, &d, err))
			return err->status;
	}
	return ST_OK;
}

/* ---- tables that are not read ---- */

/* Returns whether a table becomes events or describes others, so that no row of it is lost. */
static bool is_read(const char *name)
{
	static const char *const begins[] = { "ENUM_",         "META_DATA_",     "TARGET_INFO_",
					      "ANALYSIS_",     "sqlite_",        "EXPORT_",
					      "NVTX_PAYLOAD_", "StringIds",      "ThreadNames",
					      "PROCESSES",     "ProcessStreams", "DIAGNOSTIC_EVENT",
					      "RANGES" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	for (const struct nsys_table *t = nsys_tables; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return true;
	return false;
}

void nsys_meta_leave(struct nsys_import *n, const char *table)
{
	char sql[NSYS_SQL_BYTES];
	int64_t rows = 0;

	/* count(*) would run without the instructions that the progress handler counts */
	snprintf(sql, sizeof(sql), "SELECT sum(1) FROM \"%s\"", table);
	if (!database_number(n->db, sql, &rows) || rows <= 0)
		return;
	import_lose(&n->to, LOSS_UNREAD, (uint64_t)rows);
	buf_putf(&n->unread, "%s%s (%lld)", n->unread.len ? ", " : "", table, (long long)rows);
}

static void count_unread(struct nsys_import *n)
{
	sqlite3_stmt *s = database_ask(n->db, "SELECT name FROM sqlite_master WHERE type = 'table' "
					      "AND rootpage > 0");

	for (int i = 0; i < TABLES_MAX && database_row(s); i++) {
		const char *table = (const char *)sqlite3_column_text(s, 0);

		if (table && !is_read(table) && !strchr(table, '"') &&
		    strlen(table) < NSYS_NAME_BYTES)
			nsys_meta_leave(n, table);
	}
	sqlite3_finalize(s);
}

enum status nsys_meta_unread(struct nsys_import *n, struct error *err)
{
	uint32_t schema;

	count_unread(n);
	import_begin(&n->to);
	TRY(import_text(&n->to, "exported_by", "Nsight Systems", 14, err));
	if (n->unread.len)
		TRY(import_text(&n->to, "tables_not_read", buf_text(&n->unread), n->unread.len,
				err));
	TRY(import_schema_id(&n->to, &schema, err));
	for (size_t i = 0; i < n->processes.cap; i++) {
		uint32_t process = (uint32_t)n->processes.slots[i].value;
		struct process p = *trace_get_process(n->to.trace, process);

		p.schema = schema;
		if (process)
			trace_set_process(n->to.trace, process, &p);
	}
	return ST_OK;
}
