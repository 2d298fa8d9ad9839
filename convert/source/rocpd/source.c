/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads ROCm's rocpd, the default output of rocprofv3: kernels, copies, allocations, API calls,
 * ROCTx ranges and hardware counters of AMD GPUs.  Its times count from the boot of the machine.
 */
#include "convert/input/input.h"
#include "convert/source/rocpd/internal.h"

#include <stdio.h>
#include <string.h>

static int rocpd_bid(const uint8_t *head, size_t len)
{
	if (len < sizeof(DATABASE_MAGIC) ||
	    memcmp(head, DATABASE_MAGIC, sizeof(DATABASE_MAGIC)) != 0)
		return 0;
	return memmem(head, len, "rocpd_", 6) ? 97 : 0;
}

/* ---- statements ------------------------------------------------------------------------- */

/* Returns whether a column exists: `name` is ALIAS.[COLUMN], and `from` the rest of the statement,
 * which defines the alias.  SQLite never treats a name in brackets as a text. */
static bool has_column(struct rocpd_database *d, const char *from, const char *name, size_t len)
{
	char sql[ROCPD_SQL_BYTES];
	sqlite3_stmt *s;

	snprintf(sql, sizeof(sql), "SELECT %.*s %s", (int)len, name, from);
	s = database_ask(d->db, sql);
	sqlite3_finalize(s);
	return s != NULL;
}

/* Copies the statement to `out`, as far as it fits, with each {} replaced by the uuid. */
static size_t put_uuid(const struct rocpd_database *d, const char *sql, char out[ROCPD_SQL_BYTES])
{
	size_t at = 0;

	for (; *sql && at + ROCPD_UUID_BYTES < ROCPD_SQL_BYTES; sql++) {
		if (sql[0] == '{' && sql[1] == '}') {
			at += (size_t)snprintf(out + at, ROCPD_SQL_BYTES - at, "%s", d->uuid);
			sql++;
		} else {
			out[at++] = *sql;
		}
	}
	out[at] = '\0';
	return at;
}

sqlite3_stmt *rocpd_ask(struct rocpd_database *d, const char *sql)
{
	char with_uuid[ROCPD_SQL_BYTES], whole[ROCPD_SQL_BYTES];
	const char *at, *from;
	size_t used = 0;

	put_uuid(d, sql, with_uuid);
	from = strstr(with_uuid, " FROM ");
	for (at = with_uuid; from && *at && used + 2 < sizeof(whole); at++) {
		const char *end = *at == '<' ? strchr(at, '>') : NULL;
		size_t len = end ? (size_t)(end - at - 1) : 0;

		if (!end || at > from) {
			whole[used++] = *at;
			continue;
		}
		if (!has_column(d, from, at + 1, len))
			used += (size_t)snprintf(whole + used, sizeof(whole) - used, "NULL");
		else
			used += (size_t)snprintf(whole + used, sizeof(whole) - used, "%.*s",
						 (int)len, at + 1);
		at = end;
		if (used + ROCPD_UUID_BYTES > sizeof(whole))
			return NULL;
	}
	whole[used] = '\0';
	return from ? database_ask(d->db, whole) : NULL;
}

enum status rocpd_text(struct rocpd_database *d, sqlite3_stmt *s, int column, uint32_t *name,
		       struct error *err)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	*name = 0;
	return text && text[0] ? import_name(&d->base.to, text,
					     (size_t)sqlite3_column_bytes(s, column), name, err)
			       : ST_OK;
}

/* ---- processes, threads, agents --------------------------------------------------------- */

static enum status read_processes(struct rocpd_database *d, struct error *err)
{
	sqlite3_stmt *s =
		rocpd_ask(d, "SELECT <p.[id]>, <p.[pid]>, <p.[command]>, <n.[hostname]> "
			     "FROM [rocpd_info_process{}] p LEFT JOIN [rocpd_info_node{}] "
			     "n ON n.id = p.nid");
	enum status status = ST_OK;

	while (status == ST_OK && database_row(s)) {
		struct process one = { .pid = (uint32_t)sqlite3_column_int64(s, 1),
				       .rank = NO_RANK };
		uint32_t process = 0;

		status = rocpd_text(d, s, 2, &one.command, err);
		if (status == ST_OK)
			status = rocpd_text(d, s, 3, &one.host, err);
		if (status == ST_OK)
			process = trace_process(d->base.to.trace, &one, err);
		if (status == ST_OK)
			status = process ? rocpd_keep(&d->base.processes,
						      sqlite3_column_int64(s, 0), process, err)
					 : err->status;
	}
	sqlite3_finalize(s);
	return status;
}

static enum status read_threads(struct rocpd_database *d, struct error *err)
{
	sqlite3_stmt *s = rocpd_ask(
		d,
		"SELECT <t.[id]>, <t.[tid]>, <t.[pid]>, <t.[name]> FROM [rocpd_info_thread{}] t");
	enum status status = ST_OK;

	while (status == ST_OK && database_row(s)) {
		struct track track = { .type = TRACK_THREAD,
				       .process = (uint32_t)rocpd_find(&d->base.processes,
								       sqlite3_column_int64(s, 2)),
				       .device = NO_ID,
				       .context = NO_ID,
				       .id = (uint64_t)sqlite3_column_int64(s, 1) };
		uint32_t name = 0;

		status =
			rocpd_keep(&d->base.threads, sqlite3_column_int64(s, 0), track.id + 1, err);
		if (status == ST_OK)
			status = rocpd_text(d, s, 3, &name, err);
		if (status == ST_OK && name && track.process) {
			uint32_t id = trace_track(d->base.to.trace, &track, err);

			if (!id)
				status = err->status;
			else
				trace_set_track_name(d->base.to.trace, id, name);
		}
	}
	sqlite3_finalize(s);
	return status;
}

static enum status read_agent(struct rocpd_database *d, sqlite3_stmt *s, struct error *err)
{
	const char *type = (const char *)sqlite3_column_text(s, 2);
	struct device device = { .process = (uint32_t)rocpd_find(&d->base.processes,
								 sqlite3_column_int64(s, 1)),
				 .id = (uint32_t)sqlite3_column_int64(s, 3) };

	if (!type || strcmp(type, "GPU") != 0)
		return ST_OK;
	TRY(rocpd_keep(&d->base.gpus, sqlite3_column_int64(s, 0), (uint64_t)device.id + 1, err));
	if (!device.process)
		return ST_OK;
	/* Prefer the product's name ("AMD Instinct MI300X") to the architecture's ("gfx942"). */
	TRY(rocpd_text(d, s, 4, &device.name, err));
	if (!device.name)
		TRY(rocpd_text(d, s, 5, &device.name, err));
	return trace_device(d->base.to.trace, &device, err) ? ST_OK : err->status;
}

static enum status read_set(struct rocpd_database *d, struct error *err)
{
	sqlite3_stmt *s;
	enum status status = ST_OK;

	rocpd_clear(&d->base);
	TRY(read_processes(d, err));
	TRY(read_threads(d, err));
	s = rocpd_ask(d, "SELECT <a.[id]>, <a.[pid]>, <a.[type]>, coalesce(<a.[type_index]>, "
			 "<a.[logical_index]>), <a.[product_name]>, <a.[name]> "
			 "FROM [rocpd_info_agent{}] a");
	while (status == ST_OK && database_row(s))
		status = read_agent(d, s, err);
	sqlite3_finalize(s);
	return status == ST_OK ? rocpd_read_rows(d, err) : status;
}

/* ---- the source ------------------------------------------------------------------------- */

static enum status import(struct rocpd_database *d, struct error *err)
{
	static const char prefix[] = "rocpd_info_process";
	sqlite3_stmt *s =
		database_ask(d->db, "SELECT name FROM sqlite_master WHERE type = 'table' AND "
				    "rootpage > 0 AND name LIKE 'rocpd\\_info\\_process%' "
				    "ESCAPE '\\' ORDER BY name");
	enum status status = ST_OK;

	while (status == ST_OK && database_row(s)) {
		const char *name = (const char *)sqlite3_column_text(s, 0);
		const char *uuid = name ? name + sizeof(prefix) - 1 : "";

		if (strlen(uuid) >= sizeof(d->uuid) || strcspn(uuid, "[]'\"{}<>") != strlen(uuid))
			continue;
		snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
		status = read_set(d, err);
	}
	sqlite3_finalize(s);
	TRY(status);
	if (!d->any_table)
		return fail(err, ST_FORMAT, 0,
			    database_has(d->db, "rocpd_op")
				    ? "a database of rocmProfileData (RPD), which Tacho does not "
				      "read: record with rocprofv3"
				    : "a rocpd database with none of the tables of versions 3.0.0 "
				      "to 3.0.5");
	if (d->base.unread)
		import_lose(&d->base.to, LOSS_UNREAD, d->base.unread);
	if (d->db->is_endless && d->base.fault.status == ST_OK)
		fail(&d->base.fault, ST_FORMAT, NOWHERE,
		     "a damaged SQLite database: one of its tables has no end");
	return import_provenance(&d->base.to, "rocpd SQLite", &d->base.fault, err);
}

static enum status rocpd_read(struct spool_source *s, struct input *in, const struct budget *left,
			      struct error *err)
{
	struct database db = { 0 };
	struct rocpd_database d = { .db = &db };
	enum status status;

	(void)left;
	TRY(input_random(in, err));
	import_init(&d.base.to, s->trace, s->spool, 0);
	status = database_open(&db, in, err);
	if (status == ST_OK)
		status = import(&d, err);
	spool_source_clock(s, 0, d.base.to.first_ns);
	s->fault = d.base.fault;
	database_close(&db);
	rocpd_release(&d.base);
	return status;
}

static const struct spool_reader reader = {
	.own_bytes = 8 << 20, /* SQLite's pages, maps */
	.spools = 1,
	.read = rocpd_read,
};

const struct source_type source_rocpd = {
	.name = "rocpd",
	.help = "ROCm's rocprofv3, SQLite (rocpd)",
	.bid = rocpd_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};
