/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the event tables of a database. */
#include "convert/source/rocpd/internal.h"

#include <stdio.h>

/* The begin of each statement: the row's number and the columns that all events have. */
#define HEAD(begin, end)                                                                           \
	"SELECT d.rowid, " begin ", " end ", <d.[pid]>, <d.[tid]>, <e.[stack_id]>, "
#define EVENTS "LEFT JOIN [rocpd_event{}] e ON e.id = d.event_id AND e.guid = d.guid "
#define REST   "WHERE d.rowid > ?1 ORDER BY d.rowid"

static const char kernel_sql[] = HEAD(
	"<d.[start]>",
	"<d.[end]>") "<d.[agent_id]>, <d.[stream_id]>, <d.[queue_id]>, <k.[display_name]>, "
		     "<k.[kernel_name]>, "
		     "<d.[event_id]>, <d.[group_segment_size]>, <k.[arch_vgpr_count]>, "
		     "<d.[graph_exec_id]>, "
		     "<d.[graph_node_id]>, <d.[grid_size_x]>, <d.[grid_size_y]>, "
		     "<d.[grid_size_z]>, "
		     "<d.[workgroup_size_x]>, <d.[workgroup_size_y]>, <d.[workgroup_size_z]> "
		     "FROM [rocpd_kernel_dispatch{}] d LEFT JOIN [rocpd_info_kernel_symbol{}] k "
		     "ON k.id = d.kernel_id AND k.guid = d.guid " EVENTS REST;

static const char copy_sql[] =
	HEAD("<d.[start]>", "<d.[end]>") "<d.[dst_agent_id]>, <d.[src_agent_id]>, <d.[stream_id]>, "
					 "<d.[queue_id]>, <n.[string]>, "
					 "<d.[size]> FROM [rocpd_memory_copy{}] d LEFT JOIN "
					 "[rocpd_string{}] n ON n.id = d.name_id "
					 "AND n.guid = d.guid " EVENTS REST;

static const char alloc_sql[] =
	HEAD("<d.[start]>", "<d.[end]>") "<d.[agent_id]>, <d.[type]>, <d.[address]>, <d.[size]> "
					 "FROM [rocpd_memory_allocate{}] d " EVENTS REST;

#define REGION_COLUMNS                                                                             \
	"<n.[string]>, <c.[string]>, CASE WHEN json_valid(e.extdata) THEN "                        \
	"json_extract(e.extdata, "                                                                 \
	"'$.message') END "
#define CATEGORIES "LEFT JOIN [rocpd_string{}] c ON c.id = e.category_id AND c.guid = e.guid "
static const char region_sql[] = HEAD("<d.[start]>", "<d.[end]>") REGION_COLUMNS
	"FROM [rocpd_region{}] d LEFT JOIN [rocpd_string{}] n ON n.id = d.name_id AND "
	"n.guid = d.guid " EVENTS CATEGORIES REST;
static const char sample_sql[] =
	"SELECT d.rowid, <d.[timestamp]>, <d.[timestamp]>, <t.[pid]>, <t.[tid]>, "
	"NULL, " REGION_COLUMNS
	"FROM [rocpd_sample{}] d LEFT JOIN [rocpd_track{}] t ON t.id = d.track_id AND "
	"t.guid = d.guid LEFT JOIN [rocpd_string{}] n ON n.id = t.name_id AND n.guid = "
	"t.guid " EVENTS CATEGORIES REST;

static const char counter_sql[] =
	"SELECT d.rowid, 0, 0, <i.[pid]>, NULL, NULL, <d.[event_id]>, <i.[name]>, <d.[value]> "
	"FROM [rocpd_pmc_event{}] d LEFT JOIN [rocpd_info_pmc{}] i ON i.id = d.pmc_id AND "
	"i.guid = d.guid " REST;

/* ---- tables ----------------------------------------------------------------------------- */

static const struct table {
	const char *name, *sql;
} tables[ROCPD_TABLES] = {
	[ROCPD_KERNELS] = { "rocpd_kernel_dispatch", kernel_sql },
	[ROCPD_COPIES] = { "rocpd_memory_copy", copy_sql },
	[ROCPD_ALLOCATIONS] = { "rocpd_memory_allocate", alloc_sql },
	[ROCPD_REGIONS] = { "rocpd_region", region_sql },
	[ROCPD_SAMPLES] = { "rocpd_sample", sample_sql },
	[ROCPD_COUNTERS] = { "rocpd_pmc_event", counter_sql },
};
/* Except for dependencies, the tables above contain everything that these rows do. */
static const char *const unread[] = { "rocpd_graph_launch", "rocpd_hip_event",
				      "rocpd_event_operation" };

static void note_fault(struct rocpd_database *d, const char *table, uint64_t rows)
{
	char what[128];

	if (d->base.fault.status != ST_OK)
		return;
	snprintf(what, sizeof(what), "table %s is damaged after %llu rows", table,
		 (unsigned long long)rows);
	database_fault(d->db, what, &d->base.fault);
}

/* Skips a row that is too long to be loaded; *last becomes its number. */
static bool pass_long_row(struct rocpd_database *d, sqlite3_stmt *s, const char *table,
			  int64_t *last)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT min(rowid) FROM [%s%s] WHERE rowid > %lld", table,
		 d->uuid, (long long)*last);
	sqlite3_reset(s);
	if (!database_number(d->db, sql, last))
		return false;
	import_lose(&d->base.to, LOSS_CEILING, 1);
	sqlite3_bind_int64(s, 1, *last);
	return true;
}

static void read_cell(struct rocpd_cell *out, sqlite3_stmt *s, int column)
{
	int type = sqlite3_column_type(s, column);

	*out = (struct rocpd_cell){ .is_there = type != SQLITE_NULL };
	if (type == SQLITE_NULL)
		return;
	out->number = sqlite3_column_int64(s, column);
	out->real = sqlite3_column_double(s, column);
	if (type != SQLITE_TEXT)
		return;
	out->text = (const char *)sqlite3_column_text(s, column);
	out->len = (size_t)sqlite3_column_bytes(s, column);
}

static enum status read_table(struct rocpd_database *d, enum rocpd_table which, struct error *err)
{
	const struct table *t = &tables[which];
	struct rocpd_row row = { .p = &d->base };
	char name[128];
	sqlite3_stmt *s;
	int64_t last = INT64_MIN;
	uint64_t rows = 0;
	enum status status = ST_OK;

	snprintf(name, sizeof(name), "%s%s", t->name, d->uuid);
	if (!database_has(d->db, name))
		return ST_OK;
	d->any_table = true;
	s = rocpd_ask(d, t->sql);
	if (!s) {
		note_fault(d, t->name, 0);
		return ST_OK;
	}
	sqlite3_bind_int64(s, 1, last);
	while (status == ST_OK) {
		int code = sqlite3_step(s);

		if (code == SQLITE_DONE)
			break;
		if (code == SQLITE_TOOBIG && pass_long_row(d, s, t->name, &last))
			continue;
		if (code == SQLITE_NOMEM)
			status = database_fault(d->db, t->name, err);
		else if (code != SQLITE_ROW || rows >= d->db->rows_max) {
			note_fault(d, t->name, rows);
			break;
		} else {
			for (int i = 0; i < sqlite3_column_count(s); i++)
				read_cell(&row.cells[i], s, i);
			last = row.cells[ROCPD_ROW].number;
			rows++;
			status = rocpd_take(&row, which, err);
		}
	}
	sqlite3_finalize(s);
	return status;
}

enum status rocpd_read_rows(struct rocpd_database *d, struct error *err)
{
	char sql[128];
	int64_t count;

	/* Counters need the begin of their kernels. */
	snprintf(sql, sizeof(sql), "SELECT 1 FROM [rocpd_pmc_event%s]", d->uuid);
	d->base.has_counters = database_number(d->db, sql, &count);
	for (size_t i = 0; i < ROCPD_TABLES; i++)
		TRY(read_table(d, (enum rocpd_table)i, err));
	for (size_t i = 0; i < sizeof(unread) / sizeof(unread[0]); i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM [%s%s]", unread[i], d->uuid);
		if (database_number(d->db, sql, &count) && count > 0)
			d->base.unread += (uint64_t)count;
	}
	return ST_OK;
}
