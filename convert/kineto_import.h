/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_import.h - from elements of traceEvents to events in a spool; used while a Kineto source
 * opens, and released when it has.
 */
#ifndef CONVERT_KINETO_IMPORT_H
#define CONVERT_KINETO_IMPORT_H

#include "convert/kineto_event.h"
#include "convert/kineto_head.h"
#include "convert/kineto_tracks.h"
#include "convert/spool.h"

/* Times in the spool: the file's nanoseconds plus this, because its base may come last and its
 * own numbers may be negative. */
#define KINETO_BIAS ((int64_t)1 << 62)

struct kineto_import {
	struct trace *trace;
	struct spool *spool; /* borrowed */
	uint32_t process;
	struct kineto_args args;
	struct kineto_tracks tracks;
	struct kineto_event event; /* the one at hand */
	struct kineto_head head;
	int64_t first_ns; /* earliest begin, without the base */
	uint64_t events;  /* put into the spool */
	uint64_t elements, told; /* of traceEvents; those of them with a "ph" */
};

/* `process` is a row of the trace that kineto_import_finish() completes.  All need `err`. */
enum status kineto_import_init(struct kineto_import *k, struct trace *trace, struct spool *spool,
			       uint32_t process, struct error *err);
void kineto_import_release(struct kineto_import *k);

/* Takes k->event.  Errors are of memory, ceilings and disks; damage is counted. */
enum status kineto_import_event(struct kineto_import *k, struct error *err);
enum status kineto_import_finish(struct kineto_import *k, const char *path, struct error *err);

#endif
