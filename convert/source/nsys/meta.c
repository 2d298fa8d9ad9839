/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/nsys/rows.h"

#include <stdio.h>
#include <string.h>

enum { SQL_BYTES = NSYS_NAME_BYTES + 64, TABLES_MAX = 4096, ATTRS_MAX = 64 };

/* Times of the events are those of the session's clock: at ANALYSIS_DETAILS.startTime it was
 * utcEpochNs.  Older exports count from 0 there and have no such row. */
void nsys_meta_clock(struct nsys_import *n)
{
	int64_t utc_ns = 0, start_ns = 0;

	if (!nsys_db_number(n->db, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME",
			    &utc_ns) ||
	    utc_ns <= 0)
		utc_ns = 0;
	nsys_db_number(n->db, "SELECT startTime FROM ANALYSIS_DETAILS", &start_ns);
	if (!nsys_db_number(n->db, "SELECT stopTime FROM ANALYSIS_DETAILS", &n->last_ns) ||
	    n->last_ns > IMPORT_TIME_MOST)
		n->last_ns = 0;
	if (utc_ns <= IMPORT_TIME_MOST && start_ns >= 0 && start_ns < utc_ns)
		n->epoch_ns = utc_ns - start_ns;
}

/* NVTX domains are named by rows of their own. */
static enum status read_domains(struct nsys_import *n, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, "SELECT domainId, text, textId FROM NVTX_EVENTS "
					     "WHERE eventType = 75");
	enum status status = ST_OK;

	while (s && status == ST_OK && sqlite3_step(s) == SQLITE_ROW) {
		int64_t domain = sqlite3_column_int64(s, 0);
		const char *text = (const char *)sqlite3_column_text(s, 1);
		uint32_t name = 0;

		if (text && text[0]) {
			name = trace_name(n->to.trace, text, (size_t)sqlite3_column_bytes(s, 1),
					  err);
			status = name ? ST_OK : err->status;
		} else if (sqlite3_column_type(s, 2) == SQLITE_INTEGER) {
			status = nsys_string(n, sqlite3_column_int64(s, 2), &name, err);
		}
		if (status == ST_OK && name)
			status = nsys_keep(&n->domains, (uint64_t)domain, name, err);
	}
	sqlite3_finalize(s);
	return status;
}

enum status nsys_meta_host(struct nsys_import *n, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(
		n->db, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'");
	const char *text = NULL;

	if (s && sqlite3_step(s) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(s, 0);
	if (text)
		n->host = trace_name(n->to.trace, text, (size_t)sqlite3_column_bytes(s, 0), err);
	sqlite3_finalize(s);
	if (text && !n->host)
		return err->status;
	return nsys_db_has(n->db, "NVTX_EVENTS") ? read_domains(n, err) : ST_OK;
}

/* ---- names of processes, threads and GPUs ---- */

static enum status name_processes(struct nsys_import *n, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, "SELECT globalPid, name FROM PROCESSES");
	enum status status = ST_OK;

	while (s && status == ST_OK && sqlite3_step(s) == SQLITE_ROW) {
		uint64_t global = (uint64_t)sqlite3_column_int64(s, 0);
		uint32_t process = nsys_find(&n->processes, global >> 24);
		const char *text = (const char *)sqlite3_column_text(s, 1);
		struct process p = *trace_get_process(n->to.trace, process);

		if (!process || !text)
			continue;
		p.command = trace_name(n->to.trace, text, (size_t)sqlite3_column_bytes(s, 1), err);
		status = p.command ? ST_OK : err->status;
		if (status == ST_OK)
			trace_set_process(n->to.trace, process, &p);
	}
	sqlite3_finalize(s);
	return status;
}

static enum status name_threads(struct nsys_import *n, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, "SELECT globalTid, nameId FROM ThreadNames");
	enum status status = ST_OK;

	while (s && status == ST_OK && sqlite3_step(s) == SQLITE_ROW) {
		uint64_t global = (uint64_t)sqlite3_column_int64(s, 0);
		uint32_t name = 0, track = nsys_find(&n->threads, global);

		if (track)
			status = nsys_string(n, sqlite3_column_int64(s, 1), &name, err);
		if (name)
			trace_set_track_name(n->to.trace, track, name);
	}
	sqlite3_finalize(s);
	return status;
}

/* The row of TARGET_INFO_GPU at hand becomes a GPU: its name, and all else as constants. */
static enum status read_gpu(struct nsys_import *n, sqlite3_stmt *s, struct device *out,
			    struct error *err)
{
	struct attr attrs[ATTRS_MAX];
	struct arg_schema schema = { .consts = attrs };
	int columns = sqlite3_column_count(s);

	for (int i = 0; i < columns && schema.const_count < ATTRS_MAX; i++) {
		const char *key = sqlite3_column_name(s, i);
		int type = sqlite3_column_type(s, i);
		int64_t number = sqlite3_column_int64(s, i);
		struct attr a = { .type = number < 0 ? ATTR_I64 : ATTR_U64,
				  .bits = (uint64_t)number };

		if (!key || (type != SQLITE_INTEGER && type != SQLITE_TEXT))
			continue;
		a.key = trace_name(n->to.trace, key, strlen(key), err);
		if (!a.key)
			return err->status;
		if (type == SQLITE_TEXT) {
			a.type = ATTR_TEXT;
			a.bits = trace_name(n->to.trace, (const char *)sqlite3_column_text(s, i),
					    (size_t)sqlite3_column_bytes(s, i), err);
			if (!a.bits)
				return err->status;
			if (strcmp(key, "name") == 0) {
				out->name = (uint32_t)a.bits;
				continue;
			}
		}
		attrs[schema.const_count++] = a;
	}
	out->schema = schema.const_count ? trace_schema(n->to.trace, &schema, err) : 0;
	return schema.const_count && !out->schema ? err->status : ST_OK;
}

/* Describes GPU `ordinal`: by the process's own numbering where there is one. */
static enum status describe_gpu(struct nsys_import *n, uint32_t pid, uint32_t ordinal,
				struct device *out, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(
		n->db, "SELECT g.* FROM TARGET_INFO_GPU g JOIN TARGET_INFO_CUDA_DEVICE c "
		       "ON c.gpuId = g.id WHERE c.cudaId = ?1 AND c.pid = ?2");
	enum status status = ST_OK;
	bool found = false;

	if (s) {
		sqlite3_bind_int64(s, 1, ordinal);
		sqlite3_bind_int64(s, 2, pid);
		found = sqlite3_step(s) == SQLITE_ROW;
	}
	if (!found) {
		sqlite3_finalize(s);
		s = nsys_db_ask(n->db, "SELECT * FROM TARGET_INFO_GPU WHERE id = ?1");
		if (s)
			sqlite3_bind_int64(s, 1, ordinal);
		found = s && sqlite3_step(s) == SQLITE_ROW;
	}
	if (found)
		status = read_gpu(n, s, out, err);
	sqlite3_finalize(s);
	return status;
}

/* GPUs that events have named.  A device cannot be changed, so it is made only now. */
static enum status name_devices(struct nsys_import *n, struct error *err)
{
	struct trace *trace = n->to.trace;

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

enum status nsys_meta_names(struct nsys_import *n, struct error *err)
{
	TRY(name_processes(n, err));
	TRY(name_threads(n, err));
	return name_devices(n, err);
}

/* ---- what nobody has read ---- */

/* Tables that describe others; without rows that belong on a timeline. */
static bool is_description(const char *name)
{
	static const char *const begins[] = { "ENUM_",         "META_DATA_",     "TARGET_INFO_",
					      "ANALYSIS_",     "sqlite_",        "EXPORT_",
					      "NVTX_PAYLOAD_", "StringIds",      "ThreadNames",
					      "PROCESSES",     "ProcessStreams", "DIAGNOSTIC_EVENT",
					      "RANGES" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void count_unread(struct nsys_import *n)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, "SELECT name FROM sqlite_master WHERE type = 'table' "
					     "AND rootpage > 0");

	for (int i = 0; s && i < TABLES_MAX && sqlite3_step(s) == SQLITE_ROW; i++) {
		const char *table = (const char *)sqlite3_column_text(s, 0);
		char sql[SQL_BYTES];
		int64_t rows = 0;

		if (!table || nsys_table_is_read(table) || is_description(table) ||
		    strchr(table, '"') || strlen(table) >= NSYS_NAME_BYTES)
			continue;
		/* count(*) would do without the instructions that the progress handler counts */
		snprintf(sql, sizeof(sql), "SELECT sum(1) FROM \"%s\"", table);
		if (!nsys_db_number(n->db, sql, &rows) || rows <= 0)
			continue;
		import_lose(&n->to, LOSS_UNREAD, (uint64_t)rows);
		buf_putf(&n->unread, "%s%s (%lld)", n->unread.len ? ", " : "", table,
			 (long long)rows);
	}
	sqlite3_finalize(s);
}

enum status nsys_meta_unread(struct nsys_import *n, struct error *err)
{
	struct attr attrs[2] = { { .type = ATTR_TEXT }, { .type = ATTR_TEXT } };
	struct arg_schema schema = { .consts = attrs, .const_count = n->unread.len ? 2 : 1 };
	uint32_t id;

	count_unread(n);
	attrs[0].key = trace_name(n->to.trace, "exported_by", 11, err);
	attrs[0].bits = trace_name(n->to.trace, "Nsight Systems", 14, err);
	attrs[1].key = trace_name(n->to.trace, "tables_not_read", 15, err);
	attrs[1].bits = trace_name(n->to.trace, buf_text(&n->unread), n->unread.len, err);
	id = attrs[0].bits && attrs[1].bits ? trace_schema(n->to.trace, &schema, err) : 0;
	if (!id)
		return err->status;
	for (size_t i = 0; i < n->processes.cap; i++) {
		uint32_t process = (uint32_t)n->processes.slots[i].value;
		struct process p = *trace_get_process(n->to.trace, process);

		p.schema = id;
		if (process)
			trace_set_process(n->to.trace, process, &p);
	}
	return ST_OK;
}
