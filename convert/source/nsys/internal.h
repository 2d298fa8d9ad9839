/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - converts an Nsight Systems export, a SQLite file, to events in a spool.
 *
 * A table is read in the order of its rows, with all its columns.  columns.c defines the meaning of
 * known columns; an unknown one becomes an argument under its own name.  Therefore the same code
 * reads older and newer exports, and a missing column only means that a figure is missing.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/sqlite/database.h"
#include "schemas/base/map.h"

enum { NSYS_NAME_BYTES = 128, NSYS_SQL_BYTES = NSYS_NAME_BYTES + 128 };

struct nsys_import { /* exists while the source opens */
	struct import to;
	struct database *db; /* borrowed */
	uint32_t host;       /* name id; 0: unknown */
	int64_t epoch_ns;    /* nanoseconds to add to the file's times */
	int64_t last_ns;     /* end of events without one, on the file's clock */
	struct map strings, processes, threads, domains; /* the file's ids to the trace's ids */
	struct map contexts;                             /* (process, context) to its GPU plus 1 */
	sqlite3_stmt *string;
	struct buf unread; /* names and row counts of tables that are not read */
	bool any_table;
	struct error fault; /* first damage in the file; returned after the events */
};

/* rows.c: reads all tables.  Returns only errors of memory, limits and disks; damage is counted or
 * stored in n->fault. */
enum status nsys_import_tables(struct nsys_import *n, struct error *err);
/* Interns the text in a column of the current row; *name is 0 if there is none. */
enum status nsys_text(struct nsys_import *n, sqlite3_stmt *s, int column, uint32_t *name,
		      struct error *err);
/* Interns the text of StringIds[id]; *name is 0 if there is none. */
enum status nsys_string(struct nsys_import *n, int64_t id, uint32_t *name, struct error *err);
/* Returns the trace's id for an id of the file, or 0 if there is none. */
static inline uint32_t nsys_find(const struct map *m, uint64_t key)
{
	const uint64_t *value = map_find(m, key);

	return value ? (uint32_t)*value : 0;
}
enum status nsys_keep(struct map *m, uint64_t key, uint32_t value, struct error *err);

/* meta.c: reads what describes the events.  Before the event tables: clock, host, NVTX domains. */
void nsys_meta_clock(struct nsys_import *n);
enum status nsys_meta_host(struct nsys_import *n, struct error *err);
/* After the event tables: names of processes, threads and GPUs. */
enum status nsys_meta_names(struct nsys_import *n, struct error *err);
/* Counts the rows of a table that is not read as lost, and adds the table to n->unread. */
void nsys_meta_leave(struct nsys_import *n, const char *table);
/* Calls nsys_meta_leave() for all tables that are not read; n->unread becomes an attribute of each
 * process. */
enum status nsys_meta_unread(struct nsys_import *n, struct error *err);

/* columns.c: the tables that become events, and the meaning of their columns.  To support a newer
 * export, add rows there. */
struct nsys_table {
	const char *name;
	uint8_t kind, subkind, type;
	const char *cat; /* category of a range of another tool, or NULL */
};
extern const struct nsys_table nsys_tables[]; /* ends with a NULL name */

enum nsys_role {
	NSYS_OTHER, /* unknown column: kept under its own name */
	NSYS_SKIP,
	NSYS_FIELD, /* an attribute, placed as records.def says, or else a constant */
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
	NSYS_OPERATION,   /* of memory: 0 allocated, 1 freed */
	NSYS_MEMORY_KIND, /* an attribute, converted to CUPTI's numbers */
	NSYS_TEXT_ID,     /* an attribute: the id of a text */
	NSYS_NAME,        /* a text or its id; the column with the lowest `rank` wins */
};

struct nsys_column { /* meaning of a column for events of one kind */
	uint8_t role;
	uint8_t rank;     /* NSYS_NAME: the lowest non-NULL rank wins */
	bool is_arg;      /* an argument value, not a constant */
	struct attr attr; /* its key and unit */
};
/* Sets *out to the meaning of the column `name` for events of `kind`. */
enum status nsys_column(struct import *to, unsigned kind, const char *name, struct nsys_column *out,
			struct error *err);
