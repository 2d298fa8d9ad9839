/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto/import.h - from elements of traceEvents to events in a spool; used while a Kineto source
 * opens, and released when it has.
 */
#ifndef CONVERT_KINETO_IMPORT_H
#define CONVERT_KINETO_IMPORT_H

#include "convert/json/known.h"
#include "convert/kineto/event.h"
#include "convert/kineto/head.h"
#include "convert/kineto/tracks.h"
#include "convert/spool/source.h"

struct kineto_import {
	struct trace *trace;
	struct spool *spool; /* borrowed */
	uint32_t process;
	struct kineto_args args;
	struct kineto_tracks tracks;
	struct kineto_event event; /* the one at hand */
	struct kineto_head head;
	struct json_known known; /* elements as those before, but for numbers (kineto/known.h) */
	struct json_hole holes[JSON_HOLES_MOST + 1]; /* of the one at hand */
	unsigned hole_count;
	bool scans_all; /* set after init: nothing is learnt; for tests that compare */
	int64_t first_ns; /* earliest begin, without the base */
	uint64_t events;  /* put into the spool */
	uint64_t derived; /* arrows that were known again, until they are counted as lost */
};

/* `process` is a row of the trace that kineto_import_finish() completes.  All need `err`. */
enum status kineto_import_init(struct kineto_import *k, struct trace *trace, struct spool *spool,
			       uint32_t process, struct error *err);
void kineto_import_release(struct kineto_import *k);

/*
 * All of `in`: json_walk() with this importer.  A fault of the input behind the beginning of its
 * events goes to *fault.
 */
enum status kineto_import_read(struct kineto_import *k, struct input *in, struct error *fault,
			       struct error *err);
/* Takes k->event.  Errors are of memory, ceilings and disks; damage is counted. */
enum status kineto_import_event(struct kineto_import *k, struct error *err);
enum status kineto_import_finish(struct kineto_import *k, const char *path, struct error *err);

#endif
