/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the database that sink sqlite writes, and rows into it.
 *
 * Names of tables and columns are documented in sqlite_tables.c, beside their SQL, and stable: more
 * may be added, none change meaning.
 */
#ifndef CONVERT_SINK_SQLITE_TABLES_H
#define CONVERT_SINK_SQLITE_TABLES_H

#include "schemas/base/status.h"

#include <sqlite3.h>

enum sqlite_table {
	SQLITE_META,
	SQLITE_NAMES,
	SQLITE_PROCESSES,
	SQLITE_DEVICES,
	SQLITE_TRACKS,
	SQLITE_SCHEMAS,
	SQLITE_WINDOWS,
	SQLITE_EVENTS,
	SQLITE_LOSSES,
	SQLITE_TABLE_COUNT,
};

struct sqlite_tables {
	sqlite3 *db;
	sqlite3_stmt *inserts[SQLITE_TABLE_COUNT];
};

/* Makes the tables in an empty file; one transaction lasts until sqlite_finish(). */
enum status sqlite_begin(struct sqlite_tables *t, const char *path, struct error *err);
/* Adds the row whose columns were bound to t->inserts[table], from 1 on; what was not is NULL. */
enum status sqlite_put_row(struct sqlite_tables *t, enum sqlite_table table, struct error *err);
/* Indexes and views; the file is whole when this was good. */
enum status sqlite_finish(struct sqlite_tables *t, struct error *err);
void sqlite_release(struct sqlite_tables *t); /* accepts a zeroed one */

#endif
