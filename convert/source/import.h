/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - how a reader makes an event of what it has read, and hands it on.
 *
 * Every reader whose events wait in a spool (spooled.h) ends an event in the same way:
 *
 *	import_begin(m);                    the event at hand has no attributes yet
 *	import_attr(m, &attr, is_arg);      ... for each of them
 *	import_times(m, &e, begin, dur);    where times are of the file's own clock
 *	import_schema(m, &e, err);          the attributes become the event's schema and words
 *	import_put(m, &e, err);             the event is interned, counted and put into the spool
 *
 * import_put() also counts launches by thread.  The stage that places steps takes the thread that
 * launches most as the step thread, so an event that went around import_put() could move it.
 */
#pragma once

#include "convert/source/spooled.h"
#include "schemas/base/buf.h"

/* In nanoseconds; a time beyond it, on either side of zero, is taken for damage. */
#define IMPORT_TIME_MOST ((int64_t)1 << 61)

struct import {
	struct trace *trace;            /* borrowed */
	struct spool *spool;            /* borrowed */
	uint32_t process;               /* whose losses import_lose() counts, 0: the input's */
	struct buf consts, args, words; /* struct attr, struct attr, uint64_t: of this event */
	int64_t first_ns, last_ns;      /* of the file's clock: first begin, last end */
	uint64_t events;                /* put into the spool */
};

void import_init(struct import *m, struct trace *trace, struct spool *spool, uint32_t process);
void import_release(struct import *m);

void import_lose(struct import *m, enum loss why, uint64_t count);
/* A text as a name of the trace. */
enum status import_name(struct import *m, const char *text, size_t len, uint32_t *name,
			struct error *err);

void import_begin(struct import *m);
/*
 * An attribute whose value is the event's alone (`is_arg`), or one that many events share.  A value
 * that no argument can hold, or one too many of them, is shared all the same.
 */
void import_attr(struct import *m, const struct attr *attr, bool is_arg);
/* The same, with attr->key set to the name `key`. */
enum status import_attr_named(struct import *m, const char *key, size_t len, struct attr *attr,
			      bool is_arg, struct error *err);
/* The same for a number; one below 0 is signed. */
enum status import_number(struct import *m, const char *key, int64_t number, bool is_arg,
			  struct error *err);
/* A text that many events share. */
enum status import_text(struct import *m, const char *key, const char *text, size_t len,
			struct error *err);
/* The schema of the attributes at hand, 0: there are none. */
enum status import_schema_id(struct import *m, uint32_t *schema, struct error *err);
/* ... as e->schema and e->args, which borrows the words until the next import_begin(). */
enum status import_schema(struct import *m, struct event *e, struct error *err);
/*
 * Times on the file's own clock, biased as spool_source_clock() wants it.  False: they are out of
 * range.  A negative duration is counted as damage and taken as 0.
 */
bool import_times(struct import *m, struct event *e, int64_t begin_ns, int64_t dur_ns);
enum status import_put(struct import *m, const struct event *e, struct error *err);
/* The same for an event that is like one before it, whose descriptor is there already. */
enum status import_put_again(struct import *m, const struct event *e, bool launches,
			     struct error *err);
bool import_launches(const struct import *m, const struct event *e);

/* What the importer knows of the input as a whole, at the end. */
enum status import_provenance(struct import *m, const char *format, const struct error *fault,
			      struct error *err);
