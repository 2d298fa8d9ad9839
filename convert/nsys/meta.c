/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/nsys/rows.h"

#include <stdio.h>
#include <string.h>

enum { SQL_BYTES = NSYS_NAME_BYTES + 64, TABLES_MAX = 4096, ATTRS_MAX = 64 };

/* In ns; 2043, as a time since the epoch. */
#define TIME_MOST ((int64_t)1 << 61)

/* Times of the events are those of the session's clock: at ANALYSIS_DETAILS.startTime it was
 * utcEpochNs.  Older exports count from 0 there and have no such row. */
void nsys_meta_clock(struct nsys_import *n)
{
	int64_t utc_ns = 0, start_ns = 0;

	if (!nsys_db_number(n->db, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME",
			    &utc_ns) || utc_ns <= 0)
		utc_ns = 0;
	nsys_db_number(n->db, "SELECT startTime FROM ANALYSIS_DETAILS", &start_ns);
	if (!nsys_db_number(n->db, "SELECT stopTime FROM ANALYSIS_DETAILS", &n->last_ns) ||
	    n->last_ns > TIME_MOST)
		n->last_ns = 0;
	if (utc_ns <= TIME_MOST && start_ns >= 0 && start_ns < utc_ns)
		n->epoch_ns = utc_ns - start_ns;
}

/* The first column of the first row as a name; 0 when there is none. */
static enum status ask_text(struct nsys_import *n, const char *sql, uint32_t *name,
			    struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, sql);
	const char *text = NULL;
	bool full = false;

	*name = 0;
	if (s && sqlite3_step(s) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(s, 0);
	if (text) {
		*name = trace_name(n->trace, text, (size_t)sqlite3_column_bytes(s, 0), err);
		full = !*name;
	}
	sqlite3_finalize(s);
	return full ? err->status : ST_OK;
}

static enum status read_domain(struct nsys_import *n, sqlite3_stmt *s, struct error *err)
{
	int64_t domain = sqlite3_column_int64(s, 0);
	const char *text = (const char *)sqlite3_column_text(s, 1);
	uint32_t name = 0;

	if (text && text[0]) {
		name = trace_name(n->trace, text, (size_t)sqlite3_column_bytes(s, 1), err);
		if (!name)
			return err->status;
	} else if (sqlite3_column_type(s, 2) == SQLITE_INTEGER) {
		TRY(nsys_string(n, sqlite3_column_int64(s, 2), &name, err));
	}
	return name ? nsys_map_put(&n->domains, (uint64_t)domain, name, err) : ST_OK;
}

/* NVTX domains are named by rows of their own. */
static enum status read_domains(struct nsys_import *n, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, "SELECT domainId, text, textId FROM NVTX_EVENTS "
					     "WHERE eventType = 75");
	enum status status = ST_OK;

	while (s && status == ST_OK && sqlite3_step(s) == SQLITE_ROW)
		status = read_domain(n, s, err);
	sqlite3_finalize(s);
	return status;
}

enum status nsys_meta_host(struct nsys_import *n, struct error *err)
{
	TRY(ask_text(n, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'",
		     &n->host, err));
	if (!nsys_db_has(n->db, "NVTX_EVENTS"))
		return ST_OK;
	return read_domains(n, err);
}

/* ---- names of what was met ---- */

static enum status name_processes(struct nsys_import *n, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, "SELECT globalPid, name FROM PROCESSES");
	enum status status = ST_OK;

	while (s && status == ST_OK && sqlite3_step(s) == SQLITE_ROW) {
		uint64_t global = (uint64_t)sqlite3_column_int64(s, 0);
		uint32_t process = nsys_map_find(&n->processes, global >> 24);
		const char *text = (const char *)sqlite3_column_text(s, 1);
		struct process p = *trace_get_process(n->trace, process);

		if (!process || !text)
			continue;
		p.command = trace_name(n->trace, text, (size_t)sqlite3_column_bytes(s, 1), err);
		status = p.command ? ST_OK : err->status;
		if (status == ST_OK)
			trace_set_process(n->trace, process, &p);
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
		uint32_t name = 0, track = nsys_map_find(&n->threads, global);

		if (track)
			status = nsys_string(n, sqlite3_column_int64(s, 1), &name, err);
		if (name)
			trace_set_track_name(n->trace, track, name);
	}
	sqlite3_finalize(s);
	return status;
}

/* One column of TARGET_INFO_GPU to an attribute. */
static enum status gpu_attr(struct nsys_import *n, sqlite3_stmt *s, int i, struct attr *out,
			    bool *is_there, struct error *err)
{
	const char *key = sqlite3_column_name(s, i);
	int type = sqlite3_column_type(s, i);
	uint32_t text = 0;

	*is_there = key && (type == SQLITE_INTEGER || type == SQLITE_TEXT);
	if (!*is_there)
		return ST_OK;
	*out = (struct attr){ .type = ATTR_I64, .bits = (uint64_t)sqlite3_column_int64(s, i) };
	if (type == SQLITE_INTEGER && (int64_t)out->bits >= 0)
		out->type = ATTR_U64;
	out->key = trace_name(n->trace, key, strlen(key), err);
	if (!out->key)
		return err->status;
	if (type != SQLITE_TEXT)
		return ST_OK;
	text = trace_name(n->trace, (const char *)sqlite3_column_text(s, i),
			  (size_t)sqlite3_column_bytes(s, i), err);
	out->type = ATTR_TEXT;
	out->bits = text;
	return text ? ST_OK : err->status;
}

/* The row at hand as what is known of a GPU: its name and all else. */
static enum status read_gpu(struct nsys_import *n, sqlite3_stmt *s, struct device *out,
			    struct error *err)
{
	struct attr attrs[ATTRS_MAX];
	struct shape shape = { .fixed = attrs };
	int columns = sqlite3_column_count(s);

	for (int i = 0; i < columns && shape.fixed_count < ATTRS_MAX; i++) {
		const char *key = sqlite3_column_name(s, i);
		struct attr *a = &attrs[shape.fixed_count];
		bool is_there;

		TRY(gpu_attr(n, s, i, a, &is_there, err));
		if (is_there && strcmp(key, "name") == 0 && a->type == ATTR_TEXT)
			out->name = (uint32_t)a->bits;
		else if (is_there)
			shape.fixed_count++;
	}
	out->shape = shape.fixed_count ? trace_shape(n->trace, &shape, err) : 0;
	return shape.fixed_count && !out->shape ? err->status : ST_OK;
}

/* What the export says of GPU `ordinal`: by the process's own numbering where there is one. */
static enum status describe_gpu(struct nsys_import *n, uint32_t pid, uint32_t ordinal,
				struct device *out, struct error *err)
{
	sqlite3_stmt *s = nsys_db_ask(n->db,
		"SELECT g.* FROM TARGET_INFO_GPU g JOIN TARGET_INFO_CUDA_DEVICE c "
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

/* The devices that were met; a row of the trace cannot be changed, so they are made only now. */
static enum status name_devices(struct nsys_import *n, struct error *err)
{
	for (size_t i = 0; i < n->devices.cap; i++) {
		const struct nsys_pair *p = &n->devices.rows[i];
		struct device d = { .process = (uint32_t)(p->key >> 32), .id = (uint32_t)p->key };

		if (!p->value)
			continue;
		TRY(describe_gpu(n, trace_get_process(n->trace, d.process)->pid, d.id, &d, err));
		if (!trace_device(n->trace, &d, err))
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
	static const char *const begins[] = { "ENUM_", "META_DATA_", "TARGET_INFO_", "ANALYSIS_",
					      "sqlite_", "EXPORT_", "NVTX_PAYLOAD_",
					      "StringIds", "ThreadNames", "PROCESSES",
					      "ProcessStreams", "DIAGNOSTIC_EVENT", "RANGES" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void count_unread(struct nsys_import *n, const char *table)
{
	char sql[SQL_BYTES];
	int64_t rows = 0;

	if (strchr(table, '"') || strlen(table) >= NSYS_NAME_BYTES)
		return;
	/* not count(*), which SQLite does without looking at the watch */
	snprintf(sql, sizeof(sql), "SELECT sum(1) FROM \"%s\"", table);
	if (!nsys_db_number(n->db, sql, &rows) || rows <= 0)
		return;
	trace_lose(n->trace, 0, LOSS_UNREAD, (uint64_t)rows);
	buf_putf(&n->unread, "%s%s (%lld)", n->unread.len ? ", " : "", table, (long long)rows);
}

static void count_tables(struct nsys_import *n)
{
	sqlite3_stmt *s = nsys_db_ask(n->db, "SELECT name FROM sqlite_master WHERE type = 'table' "
					     "AND rootpage > 0");

	for (int i = 0; s && i < TABLES_MAX && sqlite3_step(s) == SQLITE_ROW; i++) {
		const char *name = (const char *)sqlite3_column_text(s, 0);

		if (name && !nsys_table_is_read(name) && !is_description(name))
			count_unread(n, name);
	}
	sqlite3_finalize(s);
}

/* Of each process: where it came from, and which tables were left alone. */
static enum status set_shapes(struct nsys_import *n, struct error *err)
{
	struct attr attrs[2] = { { .type = ATTR_TEXT }, { .type = ATTR_TEXT } };
	struct shape shape = { .fixed = attrs, .fixed_count = n->unread.len ? 2 : 1 };
	uint32_t id;

	attrs[0].key = trace_name(n->trace, "exported_by", 11, err);
	attrs[0].bits = trace_name(n->trace, "Nsight Systems", 14, err);
	attrs[1].key = trace_name(n->trace, "tables_not_read", 15, err);
	attrs[1].bits = trace_name(n->trace, buf_text(&n->unread), n->unread.len, err);
	id = attrs[0].bits && attrs[1].bits ? trace_shape(n->trace, &shape, err) : 0;
	if (!id)
		return err->status;
	for (size_t i = 0; i < n->processes.cap; i++) {
		uint32_t process = n->processes.rows[i].value;
		struct process p = *trace_get_process(n->trace, process);

		p.shape = id;
		if (process)
			trace_set_process(n->trace, process, &p);
	}
	return ST_OK;
}

enum status nsys_meta_unread(struct nsys_import *n, struct error *err)
{
	count_tables(n);
	return set_shapes(n, err);
}
