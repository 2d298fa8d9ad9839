/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database.h - read-only access to a SQLite file, for sources whose format is a database.
 *
 * SQLite reads it through our own file system as an immutable file, without locks, journals, writes
 * or second files.  So archives and standard input work, and a file that a program still writes is
 * read without its write-ahead log.  The schema is not trusted (no function, view or trigger of it
 * runs), and no value longer than DATABASE_VALUE_BYTES is loaded.
 */
#pragma once

#include "schemas/base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct input;

enum { DATABASE_VALUE_BYTES = 16 << 20 };

/* The first bytes of such a file, with their NUL. */
#define DATABASE_MAGIC "SQLite format 3"

struct database {
	sqlite3 *db;
	sqlite3_vfs vfs;
	char vfs_name[40];
	uint64_t rows_max; /* more than any table of a file of this size can hold */
	/* Calls of SQLite's progress handler, and more than reading the file once can need. */
	uint64_t probes, probes_max;
	bool is_endless; /* pages that lead back to themselves: SQLite was stopped */
};

/* After input_random().  *d must not move until database_close(). */
enum status database_open(struct database *d, struct input *in, struct error *err);
void database_close(struct database *d); /* accepts a zeroed one */
/* The last fault of SQLite, as: ST_FORMAT, ST_MEMORY or ST_IO. */
enum status database_fault(const struct database *d, const char *what, struct error *err);
/* NULL when that cannot be asked of this file (a table or column is missing). */
sqlite3_stmt *database_ask(struct database *d, const char *sql);
/* Whether there is another row of it; `s` may be NULL. */
static inline bool database_row(sqlite3_stmt *s)
{
	return s && sqlite3_step(s) == SQLITE_ROW;
}
/* For RELEASED_BY(). */
static inline void database_end(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}
/* The first column of the first row; false: none, or NULL. */
bool database_number(struct database *d, const char *sql, int64_t *out);
/* An ordinary table of this name; a view or a virtual table is none. */
bool database_has(struct database *d, const char *table);
