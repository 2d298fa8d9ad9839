/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database.h - read-only access to a SQLite file, for sources whose format is a database.
 *
 * SQLite reads it through our own file system as an immutable file, without locks, journals, writes
 * or second files.  Therefore archives and standard input work, and a file that a program is still
 * writing is read without its write-ahead log.  The schema is not trusted (no function, view or
 * trigger in it runs), and no value longer than DATABASE_VALUE_BYTES is loaded.
 */
#pragma once

#include "schemas/base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct input;

enum { DATABASE_VALUE_BYTES = 16 << 20 };

/* The first bytes of a SQLite file, including their NUL. */
#define DATABASE_MAGIC "SQLite format 3"

struct database {
	sqlite3 *db;
	sqlite3_vfs vfs;
	char vfs_name[40];
	uint64_t rows_max; /* upper bound of the rows of any table in a file of this size */
	/* Calls of SQLite's progress handler so far, and more than reading the file once can need.
	 * */
	uint64_t probes, probes_max;
	bool is_endless; /* SQLite was stopped, because pages form a cycle */
};

/* Opens a database in `in`, after input_random().  *d must not move until database_close(). */
enum status database_open(struct database *d, struct input *in, struct error *err);
void database_close(struct database *d); /* accepts a zeroed one */
/* Sets `err` to SQLite's last error.  Returns ST_MEMORY or ST_FORMAT. */
enum status database_fault(const struct database *d, const char *what, struct error *err);
/* Prepares a statement.  Returns NULL if the file lacks a table or column that it needs.  The
 * caller finalizes the statement. */
sqlite3_stmt *database_ask(struct database *d, const char *sql);
/* Returns whether the statement has another row; `s` may be NULL. */
static inline bool database_row(sqlite3_stmt *s)
{
	return s && sqlite3_step(s) == SQLITE_ROW;
}
/* Finalizes a statement, for RELEASED_BY(). */
static inline void database_end(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}
/* Reads the first column of the first row; returns false if there is none or it is not an integer.
 * */
bool database_number(struct database *d, const char *sql, int64_t *out);
/* Returns whether there is an ordinary table of this name, not a view or a virtual table. */
bool database_has(struct database *d, const char *table);
