/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - how a reader creates an event and puts it into its spool.
 *
 * Every reader whose events go through a spool (spooled.h) creates an event in the same way:
 *
 *	import_begin(m);                    begins an event without attributes
 *	import_attr(m, &attr, is_arg);      adds an attribute
 *	import_times(m, &e, begin, dur);    sets times that are on the file's own clock
 *	import_schema(m, &e, err);          sets the event's schema and argument words
 *	import_put(m, &e, err);             interns and counts the event and puts it into the spool
 *
 * import_put() also counts launches by thread.  The thread that launches most becomes the step
 * thread, so all events have to go through it.
 */
#pragma once

#include "convert/source/spooled.h"
#include "schemas/base/buf.h"

/* Times with a greater absolute value, in nanoseconds, are treated as damage. */
#define IMPORT_TIME_MOST ((int64_t)1 << 61)

struct import {
	struct trace *trace; /* borrowed */
	struct spool *spool; /* borrowed */
	uint32_t process;    /* process whose losses import_lose() counts; 0: the whole input */
	struct buf consts, args, words; /* the current event's attributes, values */
	int64_t first_ns, last_ns;      /* first begin and last end, on the file's clock */
	uint64_t events;                /* number of events put into the spool */
};

void import_init(struct import *m, struct trace *trace, struct spool *spool, uint32_t process);
void import_release(struct import *m);

void import_lose(struct import *m, enum loss why, uint64_t count);
/* Interns a text as a name of the trace and sets *name to its id. */
enum status import_name(struct import *m, const char *text, size_t len, uint32_t *name,
			struct error *err);

void import_begin(struct import *m);
/*
 * Adds an attribute to the current event.  `is_arg`: its value belongs to this event only;
 * otherwise many events share it.  A value that no argument can hold, or that exceeds the maximum
 * number of arguments, becomes a shared one.
 */
void import_attr(struct import *m, const struct attr *attr, bool is_arg);
/* Interns `key`, sets attr->key to it and adds the attribute as import_attr() does. */
enum status import_attr_named(struct import *m, const char *key, size_t len, struct attr *attr,
			      bool is_arg, struct error *err);
/* Adds a number as an attribute; a negative one becomes a signed attribute. */
enum status import_number(struct import *m, const char *key, int64_t number, bool is_arg,
			  struct error *err);
/* Adds a text that many events share as an attribute. */
enum status import_text(struct import *m, const char *key, const char *text, size_t len,
			struct error *err);
/* Interns the schema of the current event's attributes; *schema is 0 if the event has none. */
enum status import_schema_id(struct import *m, uint32_t *schema, struct error *err);
/* Sets e->schema and e->args.  e->args points into `m` until the next import_begin(). */
enum status import_schema(struct import *m, struct event *e, struct error *err);
/*
 * Sets the event's times from times on the file's own clock, with the bias that
 * spool_source_clock() declares.  Returns false if they are out of range.  A negative duration is
 * counted as damage and becomes 0.
 */
bool import_times(struct import *m, struct event *e, int64_t begin_ns, int64_t dur_ns);
/* Interns the event's descriptor.  import_put() calls this itself. */
enum status import_desc(struct import *m, const struct event *e, struct error *err);
enum status import_put(struct import *m, const struct event *e, struct error *err);
/* Puts an event whose descriptor is interned already.  `launches`: it launches GPU work. */
enum status import_put_again(struct import *m, const struct event *e, bool launches,
			     struct error *err);
/*
 * Ends an event that spool_begin() began at `place` and whose descriptor is interned already.
 * `end_ns` is not before `begin_ns`.  `launcher`: the event's track if it launches work, otherwise
 * 0.
 */
static inline enum status import_finish(struct import *m, uint32_t place, int64_t begin_ns,
					int64_t end_ns, uint32_t launcher, struct error *err)
{
	if (end_ns - begin_ns > IMPORT_TIME_MOST) {
		import_lose(m, LOSS_NO_TIME, 1);
		return spool_take_back(m->spool, place, &(struct event){ 0 }, err);
	}
	m->first_ns = begin_ns < m->first_ns ? begin_ns : m->first_ns;
	m->last_ns = end_ns > m->last_ns ? end_ns : m->last_ns;
	m->events++;
	if (launcher)
		trace_add_launches(m->trace, launcher, 1);
	spool_finish(m->spool, place, (uint64_t)(end_ns + SPOOL_BIAS));
	return ST_OK;
}
bool import_launches(const struct import *m, const struct event *e);

/* Sets the trace's provenance at the end of the input: its format, whether it was read completely,
 * and its number of events. */
enum status import_provenance(struct import *m, const char *format, const struct error *fault,
			      struct error *err);
