/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - from rows of an Nsight Systems export to events in a spool.  An importer is used while
 * that source opens, and is released when it has.
 *
 * A table is read in the order of its rows, with all columns that it has.  columns.c has which of
 * them mean something; a column that it does not know is kept as an argument under its own name.
 * So older and newer exports are read alike, and a missing column is a missing figure.
 */
#ifndef CONVERT_SOURCE_NSYS_ROWS_H
#define CONVERT_SOURCE_NSYS_ROWS_H

#include "convert/source/import.h"
#include "convert/source/nsys/db.h"
#include "schemas/base/map.h"

struct nsys_import {
	struct import to;
	struct nsys_db *db; /* borrowed */
	uint32_t host;      /* a name, 0 unknown */
	int64_t epoch_ns;   /* to be added to the file's times */
	int64_t last_ns;    /* of the file's times: end of what has none */
	struct map strings, processes, threads, domains; /* the file's ids to the trace's */
	struct map contexts;                             /* (process, context) to its GPU */
	sqlite3_stmt *string;
	struct buf unread; /* text: tables that are not read, with their rows */
	bool any_table;
	struct error fault; /* first damage of the file; returned after the events */
};

void nsys_import_init(struct nsys_import *n, struct trace *trace, struct spool *spool,
		      struct nsys_db *db);
void nsys_import_release(struct nsys_import *n);
/* Reads all tables.  Errors are of memory, ceilings and disks; damage is counted or n->fault. */
enum status nsys_import_tables(struct nsys_import *n, struct error *err);

/* The name of StringIds[id], 0: none; *err only of a full trace. */
enum status nsys_string(struct nsys_import *n, int64_t id, uint32_t *name, struct error *err);
/* The row of (global >> 24), made when it is new. */
enum status nsys_process(struct nsys_import *n, uint64_t global, uint32_t *process,
			 struct error *err);

/* What the trace has for an id of the file, 0: nothing. */
static inline uint32_t nsys_find(const struct map *m, uint64_t key)
{
	const uint64_t *value = map_find(m, key);

	return value ? (uint32_t)*value : 0;
}
enum status nsys_keep(struct map *m, uint64_t key, uint32_t value, struct error *err);

/* meta.c: what stands around the events.  Before the tables: clock, host, NVTX domains. */
void nsys_meta_clock(struct nsys_import *n);
enum status nsys_meta_host(struct nsys_import *n, struct error *err);
/* After them: names of processes, threads and GPUs. */
enum status nsys_meta_names(struct nsys_import *n, struct error *err);
/* Tables with rows that are not read become losses, and an attribute of each process. */
enum status nsys_meta_unread(struct nsys_import *n, struct error *err);

/* Whether a table's rows become events. */
bool nsys_table_is_read(const char *name);

#define NSYS_PID(global) ((uint32_t)((global) >> 24) & 0xffffff)
#define NSYS_TID(global) ((uint32_t)(global)&0xffffff)

#endif
