/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json/trace.h - from elements of Chrome JSON, whoever wrote it, to events in a spool; used while
 * source chrome opens, and released when it has.
 *
 * Each pid is a process, each tid of it a thread, and what has a duration is a range.  Pairs (B and
 * E, b and e, S and F) may be anywhere in the file: they wait in a spool of their own and are joined
 * in order of time (json/pairs.h).
 */
#ifndef CONVERT_JSON_TRACE_H
#define CONVERT_JSON_TRACE_H

#include "convert/json/ids.h"
#include "convert/kineto/args.h"
#include "convert/kineto/event.h"
#include "convert/spool/source.h"

struct json_trace {
	struct trace *trace;
	struct spool *spool; /* borrowed */
	struct spool *pairs; /* own; NULL: there was none */
	struct budget budget;
	struct kineto_args args;
	struct kineto_event event; /* the one at hand */
	struct json_ids ids;       /* processes, threads, counters and their names */
	struct buf key;            /* scratch */
	struct buf attrs;          /* struct attr: of the file as a whole */
	uint64_t base_ns;
	int64_t first_ns, last_ns; /* without the base */
	uint64_t events; /* put */
};

enum status json_trace_init(struct json_trace *j, struct trace *trace, struct spool *spool,
			    const struct budget *budget, const char *path, struct error *err);
void json_trace_release(struct json_trace *j);

/* Takes j->event.  Errors are of memory, ceilings and disks; damage is counted. */
enum status json_trace_event(struct json_trace *j, struct error *err);
/* A key of the top level with its raw value. */
enum status json_trace_key(struct json_trace *j, const struct json *key, const struct json *value,
			   struct error *err);
/* After the last: pairs become events, rows get their names. */
enum status json_trace_finish(struct json_trace *j, struct error *err);

/* One event, its site and its place in the books. */
enum status json_trace_put(struct json_trace *j, const struct event *e, struct error *err);

#endif
