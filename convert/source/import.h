/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - how a reader makes an event and puts it into its spool.
 *
 * Every reader whose events wait in a spool (spooled.h) ends an event in the same way:
 *
 *	import_begin(m);                    begins an event without attributes
 *	import_attr(m, &attr, is_arg);      ... for each of them
 *	import_times(m, &e, begin, dur);    if times are of the file's own clock
 *	import_schema(m, &e, err);          the attributes become the event's schema and words
 *	import_put(m, &e, err);             the event is interned, counted and put into the spool
 *
 * import_put() also counts launches by thread.  The thread that launches most becomes the step
 * thread, so all events have to go through it.
 */
#pragma once

#include "convert/source/spooled.h"
#include "schemas/base/buf.h"

/* Times with a greater absolute value, in nanoseconds, count as damage. */
#define IMPORT_TIME_MOST ((int64_t)1 << 61)

struct import {
	struct trace *trace;            /* borrowed */
	struct spool *spool;            /* borrowed */
	uint32_t process;               /* for import_lose(); 0: the input as a whole */
	struct buf consts, args, words; /* struct attr, struct attr, uint64_t: of this event */
	int64_t first_ns, last_ns;      /* first begin and last end on the file's clock */
	uint64_t events;                /* put into the spool */
};

void import_init(struct import *m, struct trace *trace, struct spool *spool, uint32_t process);
void import_release(struct import *m);

void import_lose(struct import *m, enum loss why, uint64_t count);
/* Adds a text to the names of the trace. */
enum status import_name(struct import *m, const char *text, size_t len, uint32_t *name,
			struct error *err);

void import_begin(struct import *m);
/*
 * Adds an attribute whose value is only this event's (`is_arg`), or one that many events share.  A
 * value that no argument can hold, or one beyond their maximum number, becomes a shared one.
 */
void import_attr(struct import *m, const struct attr *attr, bool is_arg);
/* The same, with attr->key set to the name `key`. */
enum status import_attr_named(struct import *m, const char *key, size_t len, struct attr *attr,
			      bool is_arg, struct error *err);
/* The same for a number; one below 0 is signed. */
enum status import_number(struct import *m, const char *key, int64_t number, bool is_arg,
			  struct error *err);
/* Adds a text that many events share. */
enum status import_text(struct import *m, const char *key, const char *text, size_t len,
			struct error *err);
/* Makes the schema of this event's attributes; 0: it has none. */
enum status import_schema_id(struct import *m, uint32_t *schema, struct error *err);
/* The same, for e->schema and e->args, which borrows the words until the next import_begin(). */
enum status import_schema(struct import *m, struct event *e, struct error *err);
/*
 * Sets times of the file's own clock with the bias for spool_source_clock().  Returns false if they
 * are out of range.  A negative duration counts as damage and becomes 0.
 */
bool import_times(struct import *m, struct event *e, int64_t begin_ns, int64_t dur_ns);
/* The event's descriptor is interned; import_put() does so itself. */
enum status import_desc(struct import *m, const struct event *e, struct error *err);
enum status import_put(struct import *m, const struct event *e, struct error *err);
/* The same for an event like an earlier one, whose descriptor exists already. */
enum status import_put_again(struct import *m, const struct event *e, bool launches,
			     struct error *err);
/*
 * The same for an event that was begun by spool_begin() at `place`, after its descriptor was
 * interned, and that ends now, not before its begin.  `launcher`: its track, if it launches work;
 * else 0.
 */
enum status import_finish(struct import *m, uint32_t place, int64_t begin_ns, int64_t end_ns,
			  uint32_t launcher, struct error *err);
bool import_launches(const struct import *m, const struct event *e);

/* Sets what the importer knows about the input as a whole, at its end. */
enum status import_provenance(struct import *m, const char *format, const struct error *fault,
			      struct error *err);
