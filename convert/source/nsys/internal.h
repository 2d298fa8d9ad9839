/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - turns an Nsight Systems export, a SQLite file, into events in a spool.
 *
 * A table is read in the order of its rows, with all its columns.  columns.c defines the meaning of
 * known columns; an unknown one becomes an argument under its own name.  So one code reads older
 * and newer exports, and a missing column is only a missing figure.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/sqlite/database.h"
#include "schemas/base/map.h"

enum { NSYS_NAME_BYTES = 128, NSYS_SQL_BYTES = NSYS_NAME_BYTES + 128 };

struct nsys_import { /* used while the source opens */
	struct import to;
	struct database *db; /* borrowed */
	uint32_t host;       /* a name, 0 unknown */
	int64_t epoch_ns;    /* to be added to the file's times */
	int64_t last_ns;     /* of the file's times: end of what has none */
	struct map strings, processes, threads, domains; /* the file's ids to the trace's */
	struct map contexts;                             /* (process, context) to its GPU */
	sqlite3_stmt *string;
	struct buf unread; /* text: tables that are not read, with their rows */
	bool any_table;
	struct error fault; /* first damage of the file; returned after the events */
};

/* rows.c: reads all tables.  Errors are of memory, ceilings and disks; damage is counted or
 * n->fault. */
enum status nsys_import_tables(struct nsys_import *n, struct error *err);
/* The text in a column of the row at hand as a name, 0: it has none. */
enum status nsys_text(struct nsys_import *n, sqlite3_stmt *s, int column, uint32_t *name,
		      struct error *err);
/* The name of StringIds[id], 0: none. */
enum status nsys_string(struct nsys_import *n, int64_t id, uint32_t *name, struct error *err);
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
/* The rows of a table that is not read: they are counted, and named in n->unread. */
void nsys_meta_leave(struct nsys_import *n, const char *table);
/* All tables that nothing here knows are left so; n->unread becomes an attribute of each process.
 */
enum status nsys_meta_unread(struct nsys_import *n, struct error *err);

/* columns.c: which tables become events, and what their columns mean; a newer export is a row
 * more. */
struct nsys_table {
	const char *name;
	uint8_t kind, subkind, type;
	const char *cat; /* of a range that is none of ours, else NULL */
};
extern const struct nsys_table nsys_tables[]; /* ends with a NULL name */

enum nsys_role {
	NSYS_OTHER, /* unknown here: kept under its own name */
	NSYS_SKIP,
	NSYS_FIELD, /* an attribute; its place is that of records.def, else the constants */
	NSYS_BEGIN,
	NSYS_END,
	NSYS_DEVICE,
	NSYS_CONTEXT,
	NSYS_STREAM,
	NSYS_GLOBAL_PID,
	NSYS_GLOBAL_TID,
	NSYS_END_TID,
	NSYS_CORRELATION,
	NSYS_ADDRESS,
	NSYS_BYTES,
	NSYS_RESULT,
	NSYS_SUBKIND,
	NSYS_API_CLASS,
	NSYS_NVTX_TYPE,
	NSYS_DOMAIN,
	NSYS_OPERATION,   /* of memory: 0 taken, 1 given back */
	NSYS_MEMORY_KIND, /* an attribute, counted as CUPTI does */
	NSYS_TEXT_ID,     /* an attribute: a text by its id */
	NSYS_NAME,        /* a text or the id of one; of several the lowest `rank` that is there */
};

struct nsys_column { /* for events of one kind */
	uint8_t role;
	uint8_t rank;     /* NSYS_NAME: the lowest that is there counts */
	bool is_arg;      /* as an attribute */
	struct attr attr; /* its key and unit */
};
/* What a column of this name is. */
enum status nsys_column(struct import *to, unsigned kind, const char *name, struct nsys_column *out,
			struct error *err);
