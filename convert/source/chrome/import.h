/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - from elements of Chrome JSON, whoever wrote it, to events in a spool.  An importer is
 * used while the source opens, and is released when it has.
 *
 * Each pid is a process, each tid of it a thread, and what has a duration is a range.  Pairs (B and
 * E, b and e, S and F) may be anywhere in the file, so they wait in a spool of their own and are
 *matched in order of time (pairs.h).
 */
#ifndef CONVERT_SOURCE_CHROME_IMPORT_H
#define CONVERT_SOURCE_CHROME_IMPORT_H

#include "convert/source/chrome/ids.h"
#include "convert/source/import.h"
#include "convert/source/kineto/event.h"

struct chrome_import {
	struct import to;
	struct spool *pairs; /* NULL: there was none; closed with the importer */
	struct budget budget;
	struct kineto_args args;
	struct kineto_event event; /* the element at hand */
	struct chrome_ids ids;     /* processes, threads, counters and their names */
	struct buf key;            /* scratch */
	struct buf attrs;          /* struct attr: of the file as a whole */
	uint64_t base_ns;
};

/* *j must not move. */
enum status chrome_import_init(struct chrome_import *j, struct trace *trace, struct spool *spool,
			       const struct budget *budget, const char *path, struct error *err);
void chrome_import_release(struct chrome_import *j);

/* Takes j->event.  Errors are of memory, ceilings and disks; damage is counted. */
enum status chrome_import_event(struct chrome_import *j, struct error *err);
/* Takes a key of the top level with its raw value. */
enum status chrome_import_key(struct chrome_import *j, const struct json *key,
			      const struct json *value, struct error *err);
/* After the last element: pairs become events, rows get their names. */
enum status chrome_import_finish(struct chrome_import *j, struct error *err);

#endif
