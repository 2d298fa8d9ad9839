/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - converts rocprofv3's output, a database (rocpd, versions 3.0.0 to 3.0.5) or JSON, to
 * events in a spool.
 *
 * In a database each process has a set of tables whose names end in its uuid; the plain names are
 * views, which are not used.  A row of one table refers to rows of others by (id, guid).  A column
 * that a version lacks is NULL here, and the stored environment of processes is never read.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/sqlite/database.h"
#include "schemas/base/map.h"

enum { ROCPD_UUID_BYTES = 64, ROCPD_SQL_BYTES = 4096 };

/*
 * The columns that describe an event in both formats.  rows.c selects them from the database in
 * this order, json.c finds them in records of rocprofv3's JSON, and events.c converts them.
 */
enum { ROCPD_ROW, ROCPD_BEGIN, ROCPD_END, ROCPD_PROCESS, ROCPD_THREAD, ROCPD_STACK, ROCPD_OWN };
enum {
	ROCPD_KERNEL_AGENT = ROCPD_OWN,
	ROCPD_KERNEL_STREAM,
	ROCPD_KERNEL_QUEUE,
	ROCPD_KERNEL_NAME,
	ROCPD_KERNEL_OTHER_NAME,
	ROCPD_KERNEL_EVENT,
	ROCPD_KERNEL_SHARED,
	ROCPD_KERNEL_REGISTERS,
	ROCPD_KERNEL_GRAPH,
	ROCPD_KERNEL_NODE,
	ROCPD_KERNEL_GRID,
	ROCPD_KERNEL_GROUP = ROCPD_KERNEL_GRID + 3
};
enum {
	ROCPD_COPY_TO = ROCPD_OWN,
	ROCPD_COPY_FROM,
	ROCPD_COPY_STREAM,
	ROCPD_COPY_QUEUE,
	ROCPD_COPY_NAME,
	ROCPD_COPY_SIZE
};
enum { ROCPD_ALLOC_AGENT = ROCPD_OWN, ROCPD_ALLOC_TYPE, ROCPD_ALLOC_ADDRESS, ROCPD_ALLOC_SIZE };
enum { ROCPD_REGION_NAME = ROCPD_OWN, ROCPD_REGION_CATEGORY, ROCPD_REGION_MESSAGE };
enum { ROCPD_COUNTER_EVENT = ROCPD_OWN, ROCPD_COUNTER_NAME, ROCPD_COUNTER_VALUE };
enum { ROCPD_COLUMNS = ROCPD_KERNEL_GROUP + 3 };
enum rocpd_table {
	ROCPD_KERNELS,
	ROCPD_COPIES,
	ROCPD_ALLOCATIONS,
	ROCPD_REGIONS,
	ROCPD_SAMPLES,
	ROCPD_COUNTERS,
	ROCPD_TABLES
};

struct rocpd_cell {
	bool is_there;
	int64_t number;
	double real;
	const char *text; /* NULL: not a text; ends with NUL; borrowed while the row lasts */
	size_t len;
};
struct rocpd_import { /* exists while the source opens */
	struct import to;
	struct map processes;                 /* id of a process to the trace's id */
	struct map threads;                   /* id of a thread to its number on the host, plus 1 */
	struct map gpus;                      /* id of an agent to its GPU's number, plus 1 */
	struct map dispatches, dispatch_gpus; /* event of a kernel to its begin and its GPU */
	struct map allocations;               /* address to bytes */
	uint64_t unread;                      /* rows that are not read */
	bool has_counters;                    /* dispatches must be remembered */
	struct error fault; /* first damage in the file; returned after the events */
};
struct rocpd_row {
	struct rocpd_import *p;
	struct rocpd_cell cells[ROCPD_COLUMNS];
	struct event event; /* `event` and `track` are filled by rocpd_take() */
	struct track track;
};
struct rocpd_database {
	struct rocpd_import base;
	struct database *db;         /* borrowed */
	char uuid[ROCPD_UUID_BYTES]; /* suffix of the current set of tables, with its underscore */
	bool any_table;
};

/* events.c: converts a row to an event.  Returns only errors of memory, limits and disks; damage is
 * counted. */
enum status rocpd_take(struct rocpd_row *r, enum rocpd_table table, struct error *err);
void rocpd_clear(struct rocpd_import *p); /* ids are valid for one process only */
void rocpd_release(struct rocpd_import *p);

/* Returns the value stored for `id`, or 0 if there is none. */
static inline uint64_t rocpd_find(const struct map *m, int64_t id)
{
	const uint64_t *value = map_find(m, (uint64_t)id);

	return value ? *value : 0;
}
enum status rocpd_keep(struct map *m, int64_t id, uint64_t value, struct error *err);

/* Prepares a statement for the current set: `{}` is replaced by its uuid, and `<a.[b]>` by column b
 * of table a, or by NULL if the table has no such column.  Returns NULL if preparing fails. */
sqlite3_stmt *rocpd_ask(struct rocpd_database *d, const char *sql);
/* Interns the text of a column; *name is 0 if there is none. */
enum status rocpd_text(struct rocpd_database *d, sqlite3_stmt *s, int column, uint32_t *name,
		       struct error *err);
/* rows.c: reads the events of the set, after its processes, threads and agents. */
enum status rocpd_read_rows(struct rocpd_database *d, struct error *err);
