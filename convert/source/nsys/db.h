/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.h - the SQLite file of an Nsight Systems export, read through an input.
 *
 * SQLite reads by a file system of our own that gives ranges of the input and can do nothing else:
 * no lock, no journal, no write, no second file.  So archives and standard input work, and a file
 * of which a program still has the write-ahead log is read without it.  The schema is not trusted
 * (no function or trigger of it runs), and no value longer than NSYS_VALUE_BYTES is loaded.
 */
#ifndef CONVERT_SOURCE_NSYS_DB_H
#define CONVERT_SOURCE_NSYS_DB_H

#include "schemas/base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

enum { NSYS_VALUE_BYTES = 16 << 20, NSYS_NAME_BYTES = 128 };

struct nsys_db {
	sqlite3 *db;
	sqlite3_vfs vfs;
	char vfs_name[40];
	uint64_t rows_max; /* more than any table of a file of this size can hold */
	/* Calls of SQLite's progress handler, and more than reading the file once can need. */
	uint64_t probes, probes_max;
	bool is_endless; /* pages that lead back to themselves: SQLite was stopped */
};

/* After input_random().  *d must not move until nsys_db_close(). */
enum status nsys_db_open(struct nsys_db *d, struct input *in, struct error *err);
void nsys_db_close(struct nsys_db *d); /* accepts a zeroed one */

/* The last fault of SQLite, as: ST_FORMAT, ST_MEMORY or ST_IO. */
enum status nsys_db_fault(const struct nsys_db *d, const char *what, struct error *err);

/* NULL when that cannot be asked of this file (a table or column is missing). */
sqlite3_stmt *nsys_db_ask(struct nsys_db *d, const char *sql);
/* The first column of the first row; false: none, or NULL. */
bool nsys_db_number(struct nsys_db *d, const char *sql, int64_t *out);

/* An ordinary table of this name; a view or a virtual table is none. */
bool nsys_db_has(struct nsys_db *d, const char *table);

#endif
