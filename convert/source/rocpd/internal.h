/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - turns rocprofv3's output, a database (rocpd, versions 3.0.0 to 3.0.5) or JSON, into
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
 * What an event is made of, whatever it was read from: rows.c asks the database for these columns
 * in this order, json.c finds them in records of rocprofv3's JSON, and events.c takes them.
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
	const char *text; /* NULL: it is none; ends with NUL; borrowed while the row lasts */
	size_t len;
};
struct rocpd_import { /* used while the source opens */
	struct import to;
	struct map processes;                 /* id of a process to the trace's */
	struct map threads;                   /* id of a thread to its number on the host, plus 1 */
	struct map gpus;                      /* id of an agent to its GPU's number, plus 1 */
	struct map dispatches, dispatch_gpus; /* event of a kernel to its begin and its GPU */
	struct map allocations;               /* address to bytes */
	uint64_t unread;                      /* rows that are not read */
	bool has_counters;                    /* so that dispatches are kept */
	struct error fault; /* first damage of the file; returned after the events */
};
struct rocpd_row {
	struct rocpd_import *p;
	struct rocpd_cell cells[ROCPD_COLUMNS];
	struct event event; /* these two while it is taken */
	struct track track;
};
struct rocpd_database {
	struct rocpd_import base;
	struct database *db;         /* borrowed */
	char uuid[ROCPD_UUID_BYTES]; /* of the set of tables at hand, with its underscore */
	bool any_table;
};

/* events.c: the event of a row.  Errors are of memory, ceilings and disks; damage is counted. */
enum status rocpd_take(struct rocpd_row *r, enum rocpd_table table, struct error *err);
void rocpd_clear(struct rocpd_import *p); /* ids are of one process alone */
void rocpd_release(struct rocpd_import *p);

/* What must be there for `id`, 0: nothing. */
static inline uint64_t rocpd_find(const struct map *m, int64_t id)
{
	const uint64_t *value = map_find(m, (uint64_t)id);

	return value ? *value : 0;
}
enum status rocpd_keep(struct map *m, int64_t id, uint64_t value, struct error *err);

/* A statement of a set: `{}` stands for its uuid, and `<a.[b]>` for column b of table a where it is
 * there, else NULL.  NULL: it cannot be asked. */
sqlite3_stmt *rocpd_ask(struct rocpd_database *d, const char *sql);
/* The text of a column as a name, 0: it has none. */
enum status rocpd_text(struct rocpd_database *d, sqlite3_stmt *s, int column, uint32_t *name,
		       struct error *err);
/* rows.c: events of the set, once processes, threads and agents are known. */
enum status rocpd_read_rows(struct rocpd_database *d, struct error *err);
