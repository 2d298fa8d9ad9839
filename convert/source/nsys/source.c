/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Nsight Systems' SQLite export (nsys export --type sqlite): kernels, copies, calls, NVTX
 * ranges, memory and waits of all processes.  Tables have no common order, so each is read once
 * through a spool, and the database is closed before the first event is delivered.  Of a damaged
 * database, the readable rows of each table are returned, and then the error.
 */
#include "convert/input/input.h"
#include "convert/source/nsys/internal.h"

#include <string.h>

enum { UNREAD_BYTES = 16 * 1024 };

static int nsys_bid(const uint8_t *head, size_t len)
{
	if (len < sizeof(DATABASE_MAGIC) ||
	    memcmp(head, DATABASE_MAGIC, sizeof(DATABASE_MAGIC)) != 0)
		return 0;
	return memmem(head, len, "CUPTI_ACTIVITY", 14) || memmem(head, len, "StringIds", 9) ||
			       memmem(head, len, "NVTX_EVENTS", 11)
		       ? 95
		       : 60;
}

static enum status import(struct nsys_import *n, struct error *err)
{
	if (database_has(n->db, "StringTable") && !database_has(n->db, "StringIds"))
		return fail(err, ST_FORMAT, 0,
			    "a database of nvprof, which nsys replaces: record with nsys");
	nsys_meta_clock(n);
	TRY(nsys_meta_host(n, err));
	TRY(nsys_import_tables(n, err));
	if (!n->any_table)
		return fail(err, ST_FORMAT, 0,
			    "a SQLite database, but not an export of Nsight Systems: it has none "
			    "of its event tables");
	TRY(nsys_meta_names(n, err));
	TRY(nsys_meta_unread(n, err));
	if (n->db->is_endless && n->fault.status == ST_OK)
		fail(&n->fault, ST_FORMAT, NOWHERE,
		     "a damaged SQLite database: one of its tables has no end");
	trace_provenance(n->to.trace)->epoch_known = n->epoch_ns > 0;
	return import_provenance(&n->to, "Nsight Systems SQLite", &n->fault, err);
}

static enum status nsys_read(struct spool_source *s, struct input *in, const struct budget *left,
			     struct error *err)
{
	struct database db = { 0 };
	struct nsys_import n = { .db = &db };
	enum status status;

	(void)left;
	TRY(input_random(in, err));
	import_init(&n.to, s->trace, s->spool, 0);
	buf_init(&n.unread, UNREAD_BYTES);
	status = database_open(&db, in, err);
	if (status == ST_OK)
		status = import(&n, err);
	s->fault = n.fault;
	sqlite3_finalize(n.string);
	database_close(&db);
	import_release(&n.to);
	map_release(&n.strings);
	map_release(&n.processes);
	map_release(&n.threads);
	map_release(&n.domains);
	map_release(&n.contexts);
	buf_release(&n.unread);
	return status;
}

static const struct spool_reader reader = {
	.own_bytes = 8 << 20, /* SQLite's pages, maps */
	.spools = 1,
	.read = nsys_read,
};

const struct source_type source_nsys = {
	.name = "nsys",
	.help = "Nsight Systems, SQLite export (nsys export --type sqlite)",
	.bid = nsys_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};
