/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - from a database of rocprofv3 (rocpd, versions 3.0.0 to 3.0.5) to events in a spool.
 *
 * Each process has a set of tables whose names end in its uuid; the plain names are views, which
 * are not used.  A row of one table refers to rows of others by (id, guid).  A column that a
 * version lacks is NULL here, and the environment that processes are stored with is never read.
 */
#ifndef CONVERT_SOURCE_ROCPD_INTERNAL_H
#define CONVERT_SOURCE_ROCPD_INTERNAL_H

#include "convert/source/import.h"
#include "convert/source/sqlite/database.h"
#include "schemas/base/map.h"

enum { ROCPD_UUID_BYTES = 64, ROCPD_SQL_BYTES = 4096 };

struct rocpd_agent {    /* a processor */
	uint32_t index; /* among those of its type: the device's number in the process */
	bool is_gpu;
};
struct rocpd_import { /* used while the source opens */
	struct import to;
	struct database *db;         /* borrowed */
	char uuid[ROCPD_UUID_BYTES]; /* of the set of tables at hand, with its underscore */
	struct map processes;        /* id of a process to the trace's */
	struct map threads;          /* id of a thread to its number on the host */
	struct map dispatches, dispatch_gpus; /* event of a kernel to its begin and its GPU */
	struct map allocations;               /* address to bytes */
	struct rocpd_agent *agents;           /* by id */
	size_t agent_cap;
	uint64_t unread; /* rows of tables that are not read */
	bool any_table, has_counters;
	struct error fault; /* first damage of the file; returned after the events */
};

/* The tables of one process.  Errors are of memory, ceilings and disks; damage is counted or
 * p->fault. */
enum status rocpd_read_set(struct rocpd_import *p, struct error *err);

/* A statement of a set: `{}` stands for its uuid, and `<a.[b]>` for column b of table a where it is
 * there, else NULL.  NULL: it cannot be asked. */
sqlite3_stmt *rocpd_ask(struct rocpd_import *p, const char *sql);
/* What must be there for `id`, 0: nothing. */
static inline uint64_t rocpd_find(const struct map *m, int64_t id)
{
	const uint64_t *value = map_find(m, (uint64_t)id);

	return value ? *value : 0;
}
enum status rocpd_keep(struct map *m, int64_t id, uint64_t value, struct error *err);
/* The text of a column as a name, 0: it has none. */
enum status rocpd_text(struct rocpd_import *p, sqlite3_stmt *s, int column, uint32_t *name,
		       struct error *err);

/* rows.c: events of the set, once processes, threads and agents are known. */
enum status rocpd_read_rows(struct rocpd_import *p, struct error *err);

#endif
