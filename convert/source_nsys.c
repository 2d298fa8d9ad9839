/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nsight Systems' SQLite export (nsys export --type sqlite): kernels, copies, calls, NVTX ranges,
 * memory, waits of all its processes.  Tables are in no common order, so they are read once, one
 * after the other, through a spool; the database is closed before the first event is given.
 *
 * A database that is damaged in the middle gives what could be read of each table and then says so.
 */
#include "convert/input.h"
#include "convert/nsys_rows.h"

#include <stdlib.h>
#include <string.h>

enum { OWN_BYTES = 8 << 20 }; /* of the opening budget: SQLite's pages, maps */

static const char magic[] = "SQLite format 3"; /* with its NUL */

struct nsys_source {
	struct source base;
	struct spool *spool;
	struct error fault; /* told behind the events */
};

static int nsys_bid(const uint8_t *head, size_t len)
{
	if (len < sizeof(magic) || memcmp(head, magic, sizeof(magic)) != 0)
		return 0;
	return memmem(head, len, "CUPTI_ACTIVITY", 14) || memmem(head, len, "StringIds", 9) ||
			       memmem(head, len, "NVTX_EVENTS", 11)
		       ? 95
		       : 60;
}

static enum status fill_provenance(struct nsys_import *n, struct error *err)
{
	struct provenance *p = trace_provenance(n->trace);

	p->format = trace_name(n->trace, "Nsight Systems SQLite", 21, err);
	if (!p->format)
		return err->status;
	p->is_whole = n->fault.status == ST_OK;
	p->epoch_known = n->epoch_ns > 0;
	p->events += n->events;
	return ST_OK;
}

static enum status import(struct nsys_import *n, struct error *err)
{
	nsys_meta_clock(n);
	TRY(nsys_meta_host(n, err));
	TRY(nsys_import_tables(n, err));
	if (!n->any_table)
		return fail(err, ST_FORMAT, 0, "a SQLite database, but no export of Nsight Systems: "
					       "it has none of its tables of events");
	TRY(nsys_meta_names(n, err));
	TRY(nsys_meta_unread(n, err));
	return fill_provenance(n, err);
}

static enum status read_database(struct nsys_source *s, struct input *in, struct trace *trace,
				 struct error *err)
{
	struct nsys_import n;
	struct nsys_db db;
	enum status status = nsys_db_open(&db, in, err);

	if (status == ST_OK) {
		nsys_import_init(&n, trace, s->spool, &db);
		status = import(&n, err);
		s->fault = n.fault;
		nsys_import_release(&n);
	}
	nsys_db_close(&db);
	return status;
}

static void nsys_close(struct source *source)
{
	struct nsys_source *s = (struct nsys_source *)source;

	spool_close(s->spool);
	free(s);
}

static enum status nsys_open(struct source **out, struct input *in, struct trace *trace,
			     const struct budget *budget, const struct cut *wanted,
			     struct error *err)
{
	struct nsys_source *s = calloc(1, sizeof(*s));
	struct budget left = *budget;
	struct error own = { 0 };
	enum status status;

	(void)wanted; /* launches outside a cut are needed to place work inside */
	*out = NULL;
	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a reader of Nsight Systems");
	s->base.type = &source_nsys;
	left.opening = left.opening > 2 * OWN_BYTES ? left.opening - OWN_BYTES : left.opening / 2;
	status = input_random(in, &own);
	if (status == ST_OK)
		status = spool_open(&s->spool, trace, &left, &own);
	if (status == ST_OK)
		status = read_database(s, in, trace, &own);
	if (status != ST_OK) {
		if (err)
			*err = own;
		nsys_close(&s->base);
		return status;
	}
	*out = &s->base;
	return ST_OK;
}

static enum status nsys_next(struct source *source, struct batch *out, struct error *err)
{
	struct nsys_source *s = (struct nsys_source *)source;
	uint32_t group;
	enum status status = spool_next(s->spool, &group, out, err);

	if (status == ST_END && s->fault.status != ST_OK) {
		if (err)
			*err = s->fault;
		return s->fault.status;
	}
	return status;
}

const struct source_type source_nsys = {
	.name = "nsys",
	.help = "Nsight Systems, SQLite export (nsys export --type sqlite)",
	.bid = nsys_bid,
	.open = nsys_open,
	.next = nsys_next,
	.close = nsys_close,
};
