/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys/rows.h - from rows of an Nsight Systems export to events in a spool; used while that source
 * opens, and released when it has.
 *
 * A table is read in the order of its rows, all columns that it has: which of them mean something
 * is a table of names (nsys/rows.c); a column that is unknown here is kept as an argument under its
 * own name.  So older and newer exports are read alike, and a missing column is a missing figure.
 */
#ifndef CONVERT_NSYS_ROWS_H
#define CONVERT_NSYS_ROWS_H

#include "convert/nsys/db.h"
#include "convert/nsys/map.h"
#include "convert/spool.h"
#include "schemas/buf.h"

struct nsys_import {
	struct trace *trace;
	struct spool *spool;  /* borrowed */
	struct nsys_db *db;   /* borrowed */
	uint32_t host;        /* a name, 0 unknown */
	int64_t epoch_ns;     /* to be added to the file's times */
	int64_t last_ns;      /* of the file's times: end of what has none */
	struct nsys_map strings, processes, threads, domains;
	struct nsys_map devices; /* (process, ordinal) that were met */
	struct nsys_map contexts; /* (process, context) to its GPU's ordinal + 1 */
	sqlite3_stmt *string;
	struct buf fixed, vary, words; /* struct attr, struct attr, uint64_t: of this row */
	struct buf unread;    /* text: tables that are not read, with their rows */
	uint64_t events;
	bool any_table;
	struct error fault;   /* first damage of the file; told behind the events */
};

void nsys_import_init(struct nsys_import *n, struct trace *trace, struct spool *spool,
		      struct nsys_db *db);
void nsys_import_release(struct nsys_import *n);
/* All tables.  Errors are of memory, ceilings and disks; damage is counted or n->fault. */
enum status nsys_import_tables(struct nsys_import *n, struct error *err);

/* The name of StringIds[id], 0: none; *err only of a full trace. */
enum status nsys_string(struct nsys_import *n, int64_t id, uint32_t *name, struct error *err);
/* The row of (global >> 24), made when it is new. */
enum status nsys_process(struct nsys_import *n, uint64_t global, uint32_t *process,
			 struct error *err);

/* nsys/meta.c: what stands around the events.  Before the tables: clock, host. */
void nsys_meta_clock(struct nsys_import *n);
enum status nsys_meta_host(struct nsys_import *n, struct error *err);
/* Behind them: names of processes, threads and GPUs. */
enum status nsys_meta_names(struct nsys_import *n, struct error *err);
/* Tables with rows that nobody has read: counted, and said of each process. */
enum status nsys_meta_unread(struct nsys_import *n, struct error *err);

/* Whether a table's rows become events. */
bool nsys_table_is_read(const char *name);

#define NSYS_PID(global) ((uint32_t)((global) >> 24) & 0xffffff)
#define NSYS_TID(global) ((uint32_t)(global) & 0xffffff)

#endif
